"""The directory that a call creates for a new session: it is removed again if the call records nothing.

Only a directory without history is removed: under the session's lock, with an empty manifest, no segment and no
settled mark. One rename removes it, so another process that creates or waits for the same session sees all of it or
nothing.
"""

from collections.abc import Generator
from contextlib import contextmanager, suppress

from interlock.kernel.ids import SessionId
from interlock.store.local import layout
from interlock.store.local.content import discard
from interlock.store.local.files import FileOps
from interlock.store.local.locks import Locks
from interlock.store.local.session.settled import read_mark
from interlock.store.ports.errors import SessionBusyError
from interlock.store.regular_file import unused_name


@contextmanager
def beginning(files: FileOps, locks: Locks, session: SessionId) -> Generator[None]:
    """Make the directories of a session without history; the first append syncs them.

    A directory that was made in this context is removed again if nothing was recorded, if the disk permits it.
    """
    was_missing = _is_missing(files, session)
    try:
        _make_dirs(files, session)
        yield
    except SessionBusyError:
        # The holder of the session is about to record something in it.
        raise
    except Exception:
        if was_missing:
            _remove_if_unused(files, locks, session)
        raise
    if was_missing:
        _remove_if_unused(files, locks, session)


def _make_dirs(files: FileOps, session: SessionId) -> None:
    """Make the directories and an empty manifest. One that exists proves nothing: a crash may have left it."""
    for path in (layout.SESSIONS, layout.session_dir(session), layout.events_dir(session)):
        files.make_dir(path)
    for path in (layout.SNAPSHOTS, layout.WORKFLOWS, layout.PINNED, layout.ARTIFACTS):
        files.make_dir(path)
    with suppress(FileExistsError):
        files.write(layout.manifest(session), b"")


def _is_missing(files: FileOps, session: SessionId) -> bool:
    try:
        return files.stat(layout.session_dir(session)) is None
    except OSError:
        return False


def _remove_if_unused(files: FileOps, locks: Locks, session: SessionId) -> None:
    with suppress(OSError, SessionBusyError):
        if _is_unused(files, session):
            with locks.hold(session):
                if _is_unused(files, session):
                    _remove(files, session)


def _is_unused(files: FileOps, session: SessionId) -> bool:
    manifest, mark = files.stat(layout.manifest(session)), read_mark(files, session)
    if (manifest is not None and manifest.size) or (mark is not None and mark.manifest_bytes != 0):
        return False
    made = {path.rpartition("/")[2] for path in _made(session)}
    return not files.names(layout.events_dir(session)) and made.issuperset(files.names(layout.session_dir(session)))


def _remove(files: FileOps, session: SessionId) -> None:
    directory = layout.session_dir(session)
    gone = layout.temp(directory, unused_name())
    files.rename(directory, gone)
    events, *plain = (gone + path.removeprefix(directory) for path in _made(session))
    for path in plain:
        discard(files, path)
    with suppress(FileNotFoundError):
        files.remove_dir(events)
    files.remove_dir(gone)


def _made(session: SessionId) -> tuple[str, ...]:
    """Return the entries that a hold creates in a session's directory, the subdirectory first."""
    return layout.events_dir(session), layout.manifest(session), layout.lock(session), layout.settled(session)
