"""Files that keep the next call from working although no record is damaged: for `interlock doctor` (DOC-1)."""

import errno
from collections.abc import Iterator
from contextlib import suppress

from interlock.kernel.ids import SessionId
from interlock.store.local import layout
from interlock.store.local.checks import allowed_obstacle
from interlock.store.local.collect.mark import apart_from_trash
from interlock.store.local.definitions import damaged_definitions
from interlock.store.local.failures import error_name
from interlock.store.local.files import FileOps, UnreadableError
from interlock.store.local.live import unread
from interlock.store.local.session.reading import DamageError, follow
from interlock.store.local.session.reading import unread as unread_session
from interlock.store.local.session.settled import read_mark
from interlock.store.local.upkeep import TRASH_DIRS
from interlock.store.ports.maintenance import Obstacle

_DIRS = (
    layout.SESSIONS,
    layout.WORKFLOWS,
    *layout.CONTENT_DIRS,
    layout.KEYS,
    layout.CONFIG,
    layout.LIVE,
    layout.OUTBOX,
    layout.DEFINITIONS,
    *TRASH_DIRS,
)
_FILES = (layout.UPKEEP_LOCK, layout.KEYRING_MARK, layout.KEEP_MARK)
_MOVE = "Move it elsewhere: the next call that needs it makes it again."
_RESTORE = "Make what it leads to available again, or put a copy from a backup in its place."
_TOGETHER = "Move the whole data directory to one file system, and name its new place with `--data-dir`."
_PUBLISH = (
    "Restore it from a backup, or publish it again from its sources (`interlock contract publish`). Move a directory in"
    " its place elsewhere before."
)
_ALLOW = "Let the user who runs Interlock write to it."


def find_obstacles(files: FileOps) -> Iterator[Obstacle]:
    """Yield the obstacles of the whole store, then those of each session.

    If the data directory itself cannot be written, only what cannot be read is yielded.

    Raises:
        OSError: The disk failed.
    """
    is_writable = files.is_writable("")
    for path in (*_DIRS, *_FILES):
        yield from _at(files, path, is_dir=path in _DIRS, is_writable=is_writable)
    # What cannot be read of them is among those above.
    with suppress(UnreadableError):
        for path in apart_from_trash(files):
            what = "it is on another file system than `trash`, so nothing in it can be deleted"
            yield Obstacle(name=path, found=what, fix=_TOGETHER)
    with suppress(UnreadableError):
        for path, error in unread(files):
            what = f"it cannot be read ({error}), so no command here counts as one of a person"
            yield Obstacle(name=path, found=what, fix="Move it elsewhere, and restart the clients of your agents.")
    with suppress(UnreadableError):
        for damaged in damaged_definitions(files).values():
            yield Obstacle(name=damaged.name, found=damaged.found, fix=_PUBLISH)
    allowed = allowed_obstacle(files)
    if allowed is not None:
        yield allowed
    try:
        names = files.names(layout.SESSIONS)
    except UnreadableError:
        return  # it is among the directories above, or the check of the sessions names it
    for name in sorted(filter(layout.is_session, names)):
        yield from _of_session(files, SessionId(name), is_writable=is_writable)


def _of_session(files: FileOps, session: SessionId, *, is_writable: bool) -> Iterator[Obstacle]:
    try:
        manifest = files.stat(layout.manifest(session))
    except UnreadableError:
        # The check of the sessions names it.
        return
    if manifest is None:
        return
    for path in (layout.session_dir(session), layout.events_dir(session)):
        yield from _at(files, path, is_dir=True, is_writable=is_writable, session=session)
    found = list[Obstacle]()
    for path in (layout.manifest(session), layout.lock(session), layout.settled(session)):
        found += _at(files, path, is_dir=False, is_writable=is_writable, session=session)
    yield from found
    if layout.settled(session) not in {one.name for one in found} and _is_unmarked(files, session, manifest.size):
        what = "it is not a mark of this log, so the last append of the session may not be shown"
        fix = f"Run `interlock session repair {session}`, which writes it again, or let the next call do it."
        yield Obstacle(name=layout.settled(session), found=what, fix=fix, session=session)


def _is_unmarked(files: FileOps, session: SessionId, manifest_bytes: int) -> bool:
    """Return whether the next writer would write the settled mark again. The log is read only if the mark is behind."""
    mark = read_mark(files, session)
    if mark is None or not mark.is_of_this_boot or mark.manifest_bytes == manifest_bytes:
        return False
    try:
        return follow(files, unread_session(session)).is_unmarked
    except (DamageError, UnreadableError):
        # The check of the sessions names it.
        return mark.manifest_bytes is None


def _at(
    files: FileOps, path: str, *, is_dir: bool, is_writable: bool, session: SessionId | None = None
) -> Iterator[Obstacle]:
    """Yield why a path cannot be used. What is missing can: the next call makes it."""
    problem = _problem_at(files, path, is_dir=is_dir, is_writable=is_writable)
    if problem is not None:
        found, fix = problem
        yield Obstacle(name=path, found=found, fix=fix, session=session)


def _problem_at(files: FileOps, path: str, *, is_dir: bool, is_writable: bool) -> tuple[str, str] | None:
    """Return why a path cannot be used, and what to do."""
    # No link is followed to a lock, and what is moved to the trash stays in the data directory.
    if (path in TRASH_DIRS or path.endswith("/.lock")) and files.is_link(path):
        return "it is a link, and none is followed here", _MOVE
    try:
        stat = files.stat(path)
    except UnreadableError as error:
        if error.filename != path:
            return None  # the directory in which it would be is an obstacle of its own
        if error.errno == errno.ENOENT:
            # What the marks hold can be made again.
            return "it is a link that leads nowhere", _RESTORE if is_dir else _MOVE
        return f"it cannot be used ({error_name(error)})", _ALLOW
    if stat is None:
        return None
    if not (stat.is_dir if is_dir else stat.is_file):
        return f"it is not a {'directory' if is_dir else 'regular file'}", _MOVE
    return ("it cannot be written", _ALLOW) if is_writable and not files.is_writable(path) else None
