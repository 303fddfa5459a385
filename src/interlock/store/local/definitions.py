"""Published definitions as files: `definitions/<id>.<version>.<digest>.json`, written once (OPS-3).

The name binds the content, so an altered file is found by whoever reads it. Files without a digest in their names are
read, and no longer written: of those, only the form, the id and the version can be checked.
"""

import re
from collections.abc import Iterator, Mapping

from interlock.kernel.canonical import NotCanonicalError, canonical_bytes, digest_of_bytes, parse_object
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import Digest
from interlock.kernel.uuids import Uuid
from interlock.store.local import layout
from interlock.store.local.content import write_durably
from interlock.store.local.failures import error_name, store_failure
from interlock.store.local.files import FileOps, UnreadableError
from interlock.store.local.locks import Locks
from interlock.store.local.upkeep import upkeep_lock
from interlock.store.ports.definitions import DamagedDefinition, DefinitionKey
from interlock.store.ports.errors import DefinitionDamagedError, DefinitionTakenError
from interlock.store.regular_file import NotRegularFileError

_NAME = re.compile(r"([0-9a-f-]{36})\.([1-9][0-9]*)(?:\.([0-9a-f]{64}))?\.json")
_NOT_A_FILE = "not a regular file"


class DefinitionFiles:
    """Reads and writes the files of definitions. Names of another form are ignored."""

    def __init__(self, files: FileOps, locks: Locks) -> None:
        self._files = files
        self._locks = locks

    def published(self) -> Mapping[DefinitionKey, bytes]:
        """See `DefinitionArchive.published`."""
        try:
            read = ((key, _sound(key, found)) for key, found in _read(self._files).items())
            return {key: one.data for key, one in read if one is not None}
        except OSError as error:
            raise store_failure(error) from error

    def damaged(self) -> Mapping[DefinitionKey, DamagedDefinition]:
        """See `DefinitionArchive.damaged_definitions`."""
        try:
            return damaged_definitions(self._files)
        except OSError as error:
            raise store_failure(error) from error

    def publish(self, definitions: Mapping[DefinitionKey, bytes]) -> None:
        """See `DefinitionArchive.publish`."""
        with upkeep_lock(self._files, self._locks):
            try:
                known = _read(self._files)
            except OSError as error:
                raise store_failure(error) from error
            new = {key: data for key, data in definitions.items() if not _is_published(key, known.get(key, []), data)}
            try:
                self._files.make_dir(layout.DEFINITIONS)
                for key, data in new.items():
                    self._write(key, data)
                self._files.sync_dir(layout.DEFINITIONS)
                self._files.sync_dir("")
            except OSError as error:
                raise store_failure(error, may_be_recorded=self._has_any(new)) from error

    def _has_any(self, new: Mapping[DefinitionKey, bytes]) -> bool:
        """Say whether one of the definitions to publish may be there."""
        try:
            return any(self._files.stat(_path_of(key, data)) is not None for key, data in new.items())
        except OSError:
            return True

    def _write(self, key: DefinitionKey, data: bytes) -> None:
        path = _path_of(key, data)
        try:
            write_durably(self._files, path, data)
        except IsADirectoryError as error:
            raise DefinitionDamagedError(name=path, found=_NOT_A_FILE) from error


def _path_of(key: DefinitionKey, data: bytes) -> str:
    return f"{layout.DEFINITIONS}/{key[0]}.{key[1]}.{digest_of_bytes(data).removeprefix('sha256:')}.json"


def damaged_definitions(files: FileOps) -> dict[DefinitionKey, DamagedDefinition]:
    """Return what `DefinitionArchive.damaged_definitions` returns.

    Raises:
        OSError: The directory cannot be read, or the disk failed.
    """
    damaged = dict[DefinitionKey, DamagedDefinition]()
    for key, found in _read(files).items():
        match _contents(key, found):
            case [_]:
                continue
            case [one, other, *_]:
                problem = f"another content than {other.path}, under one id and version"
            case _:
                one = found[0]
                problem = one.problem or "other bytes than were published"
        damaged[key] = DamagedDefinition(name=one.path, found=problem)
    return damaged


@frozen
class _File:
    """A file of a definition: the digest in its name, if there is one, and its bytes or why they cannot be read."""

    path: str
    digest: Digest | None
    data: bytes = b""
    problem: str = ""


def _read(files: FileOps) -> dict[DefinitionKey, list[_File]]:
    found: dict[DefinitionKey, list[_File]] = {}
    for key, one in _files(files):
        found.setdefault(key, []).append(one)
    return found


def _files(files: FileOps) -> Iterator[tuple[DefinitionKey, _File]]:
    for name in sorted(files.names(layout.DEFINITIONS)):
        named = _NAME.fullmatch(name)
        if named is None:
            continue
        key, path = (Uuid(named[1]), int(named[2])), f"{layout.DEFINITIONS}/{name}"
        digest = Digest(f"sha256:{named[3]}") if named[3] else None
        try:
            yield key, _File(path=path, digest=digest, data=files.read(path))
        except FileNotFoundError:
            continue
        except NotRegularFileError:
            yield key, _File(path=path, digest=digest, problem=_NOT_A_FILE)
        except UnreadableError as error:
            yield key, _File(path=path, digest=digest, problem=f"cannot be read ({error_name(error)})")


def _sound(key: DefinitionKey, found: list[_File]) -> _File | None:
    """Return a file that holds what was published under a key; None if none does, or they hold different content."""
    contents = _contents(key, found)
    return contents[0] if len(contents) == 1 else None


def _contents(key: DefinitionKey, found: list[_File]) -> list[_File]:
    """Return the sound files of a key, one for each content."""
    digests = {one.digest for one in found if one.digest is not None}
    sound = (one for one in found if not one.problem and _is_sound(key, one.data, digests))
    return list({one.data: one for one in sound}.values())


def _is_sound(key: DefinitionKey, data: bytes, digests: set[Digest]) -> bool:
    if digests:
        return digest_of_bytes(data) in digests
    held = parse_object(data)
    try:
        is_canonical = canonical_bytes(held) == data
    except NotCanonicalError:
        return False
    return held is not None and is_canonical and (held.get("id"), held.get("version")) == key


def _is_published(key: DefinitionKey, found: list[_File], data: bytes) -> bool:
    """Say whether a definition need not be written. A damaged file is written again with the content of its name.

    Raises:
        DefinitionTakenError: It was published with other content.
    """
    sound, digests = _sound(key, found), {one.digest for one in found if one.digest is not None}
    is_other = sound.data != data if sound is not None else bool(digests) and digest_of_bytes(data) not in digests
    if is_other:
        raise DefinitionTakenError(definition_id=key[0], version=key[1])
    return sound is not None and sound.digest is not None
