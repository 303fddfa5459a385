"""The settled mark: up to where a session's manifest is durable, as its writer left word (APP-8).

`sessions/<id>/settled` says up to which byte the manifest was synced, and in which boot of the operating system. A
writer overwrites it in place after the sync of a group and before anyone gets an answer that rests on that group. It is
never synced itself: within one boot everybody sees it in memory, and after a power loss the boot is another one, so
that whatever the manifest then holds came from the disk.
"""

from dataclasses import dataclass
from hashlib import sha256

from interlock.kernel.budgets import MARK_READS_MAX
from interlock.kernel.ids import SessionId
from interlock.store.local import layout
from interlock.store.local.files import FileOps
from interlock.store.regular_file import NotRegularFileError

_TORN = bytes(2)
"""How a mark ends that was not written back. One NUL alone is what a flipped newline looks like."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledMark:
    """A session's settled mark. `manifest_bytes` is None where its bytes are not those of a mark."""

    manifest_bytes: int | None
    is_of_this_boot: bool


def missing_bytes(mark: SettledMark | None, manifest_bytes: int) -> int:
    """Return how many more bytes of the manifest were settled than are there: acknowledged history (CRASH-9)."""
    settled = mark.manifest_bytes if mark is not None else None
    return max((settled or 0) - manifest_bytes, 0)


def read_mark(files: FileOps, session: SessionId) -> SettledMark | None:
    """Return a session's mark; None where there is none, as in a copy without it.

    A torn one is none either: only a power loss leaves it, where the first mark was not written back.

    Raises:
        OSError: The disk failed.
    """
    for _ in range(MARK_READS_MAX):
        try:
            data = files.read(layout.settled(session))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except NotRegularFileError:
            break
        if len(data) < _BYTES or data.endswith(_TORN):
            return None
        boot, manifest_bytes = _fields(data)
        if data == _encoded(boot, manifest_bytes):
            return SettledMark(manifest_bytes=manifest_bytes, is_of_this_boot=boot == _boot(files))
    return SettledMark(manifest_bytes=None, is_of_this_boot=True)


def write_mark(files: FileOps, session: SessionId, manifest_bytes: int) -> None:
    """Leave word that the manifest is durable up to a byte. Only under the session's lock, after that sync.

    Raises:
        OSError: The disk failed; the mark may be unreadable.
    """
    files.write_at(layout.settled(session), 0, _encoded(_boot(files), manifest_bytes))


def _boot(files: FileOps) -> str:
    return sha256(files.boot_id().encode()).hexdigest()[:16]


def _encoded(boot: str, manifest_bytes: int) -> bytes:
    """Return the mark's bytes: always as many, so that overwriting leaves nothing of the old one."""
    fields = f"1 {boot} {manifest_bytes:020d}"
    return f"{fields} {sha256(fields.encode()).hexdigest()[:32]}\n".encode()


_BYTES = len(_encoded("0" * 16, 0))


def _fields(data: bytes) -> tuple[str, int]:
    """Return what stands in the places of a mark's fields; whether it is a mark shows when it is encoded again."""
    _, boot, manifest_bytes, *_ = (*data.decode("ascii", "replace").split(" ", 3), "", "")
    return boot, int(manifest_bytes) if manifest_bytes.isdecimal() else 0
