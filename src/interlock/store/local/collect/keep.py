"""The keep marks: one small file, written whole (GC-2)."""

from collections.abc import Callable, Collection

from interlock.kernel.budgets import KEEP_MARKS_MAX
from interlock.kernel.ids import SessionId
from interlock.record.base import MalformedRecordError, UnknownVersionError
from interlock.record.keep import build_keep_marks, parse_keep_marks
from interlock.store.local import layout
from interlock.store.local.collect.mark import is_beginning, read_session
from interlock.store.local.content import write_durably
from interlock.store.local.files import FileOps, store_failure
from interlock.store.local.locks import Locks
from interlock.store.local.session.reading import DamageError
from interlock.store.local.upkeep import alone, replacing
from interlock.store.retention import KeepMarksDamagedError, SessionsMissingError, TooManyMarksError

_Marks = frozenset[SessionId]


class KeepFile:
    """`config/keep.json`. Without it, no session is kept."""

    def __init__(self, files: FileOps, locks: Locks) -> None:
        self._files = files
        self._locks = locks

    def kept(self) -> frozenset[SessionId]:
        """See `KeepMarksPort.kept`."""
        try:
            return parse_keep_marks(self._files.read(layout.KEEP))
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

        def marked(kept: _Marks) -> _Marks:
            self._check_there(sessions)
            return kept.union(sessions)

        # Where there is no session, no lock is made either; under the lock, no collection can take one any more.
        self._check_there(sessions)
        return self._change(marked)

    def unkeep(self, sessions: Collection[SessionId]) -> frozenset[SessionId]:
        """See `KeepMarksPort.unkeep`. Where no marks were ever set, no file is made."""
        try:
            if self._files.stat(layout.KEEP) is None:
                return frozenset()
        except OSError as error:
            raise store_failure(error) from error
        return self._change(lambda kept: kept.difference(sessions))

    def _change(self, change: Callable[[_Marks], _Marks]) -> _Marks:
        """Write the marks after a change, also where nothing changed: what is there may not be durable yet."""
        with alone(self._files, self._locks):
            before = self.kept()
            with replacing(self._files, layout.KEEP):
                after = change(before)
                if len(after) > KEEP_MARKS_MAX:
                    raise TooManyMarksError(len(after))
                write_durably(self._files, layout.KEEP, build_keep_marks(after).to_bytes() + b"\n")
                self._files.sync_dir(layout.CONFIG, full=True)
                self._files.sync_dir("", full=True)
        return after

    def _check_there(self, sessions: Collection[SessionId]) -> None:
        try:
            missing = tuple(sorted(one for one in frozenset(sessions) if not self._is_there(one)))
        except OSError as error:
            raise store_failure(error) from error
        if missing:
            raise SessionsMissingError(missing)

    def _is_there(self, session: SessionId) -> bool:
        """Say whether a collection finds a session under this id, healthy or not."""
        try:
            return bool(read_session(self._files, session).segments) or not is_beginning(self._files, session)
        except DamageError:
            return True
