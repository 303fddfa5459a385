"""The keep marks: one small file, written whole (locks 2.2)."""

from collections.abc import Callable, Collection

from interlock.kernel.budgets import KEEP_MARKS_MAX
from interlock.kernel.ids import SessionId
from interlock.record.base import MalformedRecordError, UnknownVersionError
from interlock.record.keep import keep_marks, parse_keep_marks
from interlock.store.local import layout
from interlock.store.local.content import write_durably
from interlock.store.local.files import FileOps, store_failure
from interlock.store.local.locks import Locks
from interlock.store.local.upkeep import alone
from interlock.store.retention import KeepMarksDamagedError, TooManyMarksError

_Marks = frozenset[SessionId]


class KeepFile:
    """`config/keep.json`. Without it, no session is kept."""

    def __init__(self, files: FileOps, locks: Locks) -> None:
        self._files = files
        self._locks = locks

    def kept(self) -> frozenset[SessionId]:
        """See `KeepMarksPort.kept`."""
        try:
            return frozenset(parse_keep_marks(self._files.read(layout.KEEP)).sessions)
        except (FileNotFoundError, NotADirectoryError):
            return frozenset()
        except UnknownVersionError as error:
            raise KeepMarksDamagedError(f"written by a newer Interlock ({error.found})") from error
        except MalformedRecordError as error:
            raise KeepMarksDamagedError(error.found) from error
        except OSError as error:
            raise store_failure(error) from error

    def keep(self, sessions: Collection[SessionId]) -> frozenset[SessionId]:
        """See `KeepMarksPort.keep`."""
        return self._changed(lambda kept: kept.union(sessions))

    def unkeep(self, sessions: Collection[SessionId]) -> frozenset[SessionId]:
        """See `KeepMarksPort.unkeep`."""
        return self._changed(lambda kept: kept.difference(sessions))

    def _changed(self, change: Callable[[_Marks], _Marks]) -> _Marks:
        with alone(self._files, self._locks):
            before = self.kept()
            after = change(before)
            if len(after) > KEEP_MARKS_MAX:
                raise TooManyMarksError(len(after))
            if after != before:
                self._write(after)
        return after

    def _write(self, marks: _Marks) -> None:
        try:
            write_durably(self._files, layout.KEEP, keep_marks(marks).to_bytes() + b"\n")
            self._files.sync_dir(layout.CONFIG, full=True)
            self._files.sync_dir("", full=True)
        except OSError as error:
            raise store_failure(error) from error
