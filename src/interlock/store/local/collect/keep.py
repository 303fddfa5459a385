"""The retention pins: one small file, replaced as a whole (GC-2).

A writer that synced the pins records the digest of their bytes in the settled mark, as that of the key ring does. So a
lost file is damage, and not a data directory in which no session is pinned.
"""

from collections.abc import Callable, Collection

from interlock.kernel.ids import SessionId
from interlock.record.errors import MalformedRecordError, UnknownVersionError
from interlock.record.keep import build_keep_marks, parse_keep_marks
from interlock.store.local import layout
from interlock.store.local.content import write_durably
from interlock.store.local.failures import error_name, store_failure
from interlock.store.local.files import FileOps, UnreadableError
from interlock.store.local.locks import Locks
from interlock.store.local.session.reading import DamageError
from interlock.store.local.small_files import read_small, settled_mark
from interlock.store.local.upkeep import replacing, upkeep_lock
from interlock.store.ports.errors import PinsDamagedError, SessionsMissingError
from interlock.store.regular_file import NotRegularFileError

_Pins = frozenset[SessionId]


class PinFile:
    """`config/keep.json` and its settled mark. Without both, no session is pinned."""

    def __init__(self, files: FileOps, locks: Locks) -> None:
        self._files = files
        self._locks = locks

    def kept(self) -> frozenset[SessionId]:
        """See `RetentionPins.kept`."""
        try:
            if self._files.stat(layout.KEEP) is None and not self._has_mark():
                return frozenset()
            # A writer may have made the file since, and its mark after it.
            return parse_keep_marks(read_small(self._files, layout.KEEP))
        except FileNotFoundError as error:
            raise PinsDamagedError("it is missing, but sessions were marked to be kept", _FORGET) from error
        except UnknownVersionError as error:
            raise PinsDamagedError(f"written by a newer Interlock ({error.found})", _REMOVE) from error
        except MalformedRecordError as error:
            raise PinsDamagedError(error.found, _REMOVE) from error
        except NotRegularFileError as error:
            raise PinsDamagedError("it is not a regular file", _REMOVE) from error
        except UnreadableError as error:
            raise PinsDamagedError(f"the system refuses it ({error_name(error)})", _REMOVE) from error
        except OSError as error:
            raise store_failure(error) from error

    def keep(self, sessions: Collection[SessionId]) -> frozenset[SessionId]:
        """See `RetentionPins.keep`."""

        def pinned(kept: _Pins) -> _Pins:
            from interlock.store.retention import add_pins  # noqa: PLC0415 — a reader needs none

            after = add_pins(kept, sessions)
            self._check_there(sessions)
            return after

        # The first check creates no lock file for a missing session; under the lock, no collection can remove one.
        pinned(self.kept())
        return self._change(pinned)

    def unkeep(self, sessions: Collection[SessionId]) -> frozenset[SessionId]:
        """See `RetentionPins.unkeep`. If no session was ever pinned, no file is created."""
        try:
            if self._files.stat(layout.KEEP) is None and not self._has_mark():
                return frozenset()
        except OSError as error:
            raise store_failure(error) from error
        return self._change(lambda kept: kept.difference(sessions))

    def _change(self, change: Callable[[_Pins], _Pins]) -> _Pins:
        """Write the pins after a change, even if nothing changed: the stored ones may not be durable yet."""
        with upkeep_lock(self._files, self._locks):
            before = self.kept()
            with replacing(self._files, layout.KEEP):
                after = change(before)
                data = _bytes_of(after)
                write_durably(self._files, layout.KEEP, data)
                self._files.sync_dir(layout.CONFIG, full=True)
                self._files.sync_dir("", full=True)
                write_durably(self._files, layout.KEEP_MARK, settled_mark(data))
                self._files.sync_dir(layout.CONFIG, full=True)
        return after

    def _has_mark(self) -> bool:
        """Say whether pins were durable, by their mark: one that cannot be read counts, and one of no pin does not."""
        try:
            return read_small(self._files, layout.KEEP_MARK) != settled_mark(_bytes_of(frozenset()))
        except FileNotFoundError:
            return False
        except (NotRegularFileError, UnreadableError):
            return True

    def _check_there(self, sessions: Collection[SessionId]) -> None:
        try:
            missing = tuple(sorted(one for one in frozenset(sessions) if not self._is_there(one)))
        except OSError as error:
            raise store_failure(error) from error
        if missing:
            raise SessionsMissingError(missing)

    def _is_there(self, session: SessionId) -> bool:
        """Return whether a collection finds a session under this id, healthy, damaged or unreadable."""
        from interlock.store.local.collect.mark import is_beginning, read_session  # noqa: PLC0415 — a reader needs none

        try:
            return bool(read_session(self._files, session).segments) or not is_beginning(self._files, session)
        except DamageError:
            return True
        except UnreadableError:
            return session in self._files.names(layout.SESSIONS)


def _bytes_of(pins: _Pins) -> bytes:
    return build_keep_marks(pins).to_bytes() + b"\n"


_AGAIN = "pin the sessions again with `interlock session keep`"
_REMOVE = f"Without one, note the session ids that it still shows, remove both it and {layout.KEEP_MARK}, and {_AGAIN}."
_FORGET = f"Without one, remove {layout.KEEP_MARK}, and {_AGAIN}."
"""What to do about pins without a backup."""
