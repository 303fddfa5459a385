"""What a collection sees of a session that begins while it is looked at."""

from pathlib import Path

import pytest
from tests.support.crash import apply, session_id, start_plan
from tests.support.sweep import advance

from interlock.kernel.ids import SessionId
from interlock.store.local import layout
from interlock.store.local.collect.mark import mark
from interlock.store.local.files import FileStat, OsFiles
from interlock.store.local.locks import OsLocks
from interlock.store.local.store import LocalStore

A = session_id("a")


class BegunMeanwhile(OsFiles):
    """A disk on which a session begins, and continues, before an operation on its directory."""

    def __init__(self, root: Path, before: str) -> None:
        super().__init__(root)
        self._store = LocalStore(root)
        self._before = before

    def is_link(self, path: str) -> bool:
        self._begin("is_link", path)
        return super().is_link(path)

    def own_stat(self, path: str) -> FileStat | None:
        self._begin("own_stat", path)
        return super().own_stat(path)

    def _begin(self, operation: str, path: str) -> None:
        if operation == self._before and path == layout.session_dir(A):
            self._before = ""
            apply(self._store, start_plan("a"))
            advance(self._store, "a")


@pytest.mark.inv("GC-6")
@pytest.mark.parametrize(("before", "sessions"), [("is_link", [A]), ("own_stat", [])])
def test_a_session_that_begins_while_it_is_looked_at_is_not_damaged(
    tmp_path: Path, before: str, sessions: list[SessionId]
) -> None:
    LocalStore(tmp_path)
    (tmp_path / layout.events_dir(A)).mkdir(parents=True)
    found = mark(BegunMeanwhile(tmp_path, before), OsLocks(tmp_path))
    assert ([one.session for one in found.sessions], found.unsound) == (sessions, ())
