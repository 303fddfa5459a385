"""The settled mark: the writer's record of how much of a session's manifest is durable (APP-8).

`sessions/<id>/settled` holds the byte up to which the manifest was synced, and the boot of the operating system. Its
check covers the session, so a mark that was copied from another session is none of this one (decision 0116). A writer
overwrites it in place after the sync of a group and before any answer depends on that group. The mark itself is never
synced: within one boot every process sees it in memory, and after a power loss there is a new boot, so everything that
the manifest then holds came from the disk.
"""

from collections.abc import Sequence
from functools import cache
from hashlib import sha256

from interlock.kernel.budgets import MARK_READS_MAX
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import SessionId
from interlock.store.local import layout
from interlock.store.local.files import FileOps, UnreadableError
from interlock.store.regular_file import NotRegularFileError

_TORN = bytes(2)
"""The end of a mark that did not reach the disk. A single NUL can be a flipped newline."""


@frozen
class SettledMark:
    """A session's settled mark. `manifest_bytes` is None if it cannot be read, or its bytes do not parse."""

    manifest_bytes: int | None
    is_of_this_boot: bool

    @property
    def has_settled_nothing(self) -> bool:
        """Whether the session has no history: marks of this boot are never older than what was acknowledged."""
        return self.is_of_this_boot and self.manifest_bytes == 0


def missing_bytes(mark: SettledMark | None, manifest_bytes: int) -> int:
    """Return how many settled bytes the manifest lacks: they are acknowledged history (CRASH-9)."""
    settled = mark.manifest_bytes if mark is not None else None
    return max((settled or 0) - manifest_bytes, 0)


def read_mark(files: FileOps, session: SessionId) -> SettledMark | None:
    """Return a session's mark; None if there is none, as in a copy without it.

    A torn mark counts as none: only a power loss leaves it, if the first mark did not reach the disk. Bytes after the
    mark are ignored: no writer leaves them, and a mark says the same whatever follows it.

    Raises:
        OSError: The disk failed.
    """
    for _ in range(MARK_READS_MAX):
        try:
            data = files.read(layout.settled(session), bytes_max=_BYTES)
        except FileNotFoundError:
            return None
        except (NotRegularFileError, UnreadableError):
            break
        if len(data) < _BYTES or data.endswith(_TORN):
            return None
        boot, manifest_bytes = _fields(data)
        if data == _encoded(session, boot, manifest_bytes, form=1 if data.startswith(b"1") else 2):
            return SettledMark(manifest_bytes=manifest_bytes, is_of_this_boot=boot == _short_digest(files.boot_id()))
    return SettledMark(manifest_bytes=None, is_of_this_boot=True)


def write_mark(files: FileOps, session: SessionId, manifest_bytes: int) -> None:
    """Record that the manifest is durable up to a byte. The caller holds the session's lock and has synced that far.

    Raises:
        OSError: The disk failed; the mark may be unreadable.
    """
    path = layout.settled(session)
    size = files.write_at(path, 0, _encoded(session, _short_digest(files.boot_id()), manifest_bytes))
    if size > _BYTES:
        files.truncate(path, _BYTES)


def is_of_log(mark: SettledMark, known: int, ends: Sequence[int], proven: int) -> bool:
    """Say whether a writer of a log leaves this mark.

    A writer leaves at most one group after its mark, and a restore all of them after a mark that nothing is settled.

    Args:
        mark: A mark of this boot.
        known: The bytes of the manifest that were settled when they were read before.
        ends: Where each group after them ends.
        proven: The end of what is settled by the mark, or by a cached summary.
    """
    if mark.manifest_bytes == 0:
        return known == proven == 0
    return mark.manifest_bytes in (known, *ends) and sum(end > proven for end in ends) <= 1


@cache
def _short_digest(boot_id: str) -> str:
    """Return how marks name a boot. A list of sessions reads the mark of each."""
    return sha256(boot_id.encode()).hexdigest()[:16]


def _encoded(session: SessionId, boot: str, manifest_bytes: int, *, form: int = 2) -> bytes:
    """Return the mark's bytes. Their number is fixed, so overwriting leaves nothing of the old mark.

    The check of a mark of form 1 does not cover the session. Such marks are read, and no longer written.
    """
    fields = f"{form} {boot} {manifest_bytes:020d}"
    checked = fields if form == 1 else f"{session} {fields}"
    return f"{fields} {sha256(checked.encode()).hexdigest()[:32]}\n".encode()


_BYTES = len(_encoded(SessionId(""), "0" * 16, 0))


def _fields(data: bytes) -> tuple[str, int]:
    """Return the fields of a mark, unchecked; encoding them again shows whether the bytes are a mark."""
    _, boot, manifest_bytes, *_ = (*data.decode("ascii", "replace").split(" ", 3), "", "")
    return boot, int(manifest_bytes) if manifest_bytes.isdecimal() else 0


def is_lost(files: FileOps, session: SessionId, mark: SettledMark | None) -> bool:
    """Say whether a session without a group had history, by its mark or, without one, its cached summary (CRASH-9).

    A summary is cached after an append only. An append that was interrupted before its group leaves neither.

    Raises:
        OSError: The disk failed.
    """
    if mark is None or mark.manifest_bytes is None:
        return files.stat(layout.cached_summary(session)) is not None
    return mark.manifest_bytes > 0
