"""Files that keep the next call from working although no record is damaged: for `interlock doctor` (DOC-1)."""

from collections.abc import Iterator

from interlock.kernel.ids import SessionId
from interlock.store.local import layout
from interlock.store.local.files import FileOps
from interlock.store.local.session.settled import read_mark
from interlock.store.ports.maintenance import Obstacle


def find_obstacles(files: FileOps) -> Iterator[Obstacle]:
    """Yield the obstacles of each session.

    Raises:
        OSError: The disk failed.
    """
    for name in sorted(filter(layout.is_session, files.names(layout.SESSIONS))):
        yield from _of_session(files, SessionId(name))


def _of_session(files: FileOps, session: SessionId) -> Iterator[Obstacle]:
    mark = read_mark(files, session)
    if mark is not None and mark.manifest_bytes is None:
        yield Obstacle(
            name=layout.settled(session),
            found="it does not say what it should, so the last append of the session may not be shown",
            fix=f"Run `interlock session repair {session}`, which writes it again, or let the next call do it.",
            session=session,
        )
