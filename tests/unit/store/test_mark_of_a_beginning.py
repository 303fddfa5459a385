"""What a collection sees of a session that begins while it is looked at."""

from pathlib import Path

import pytest
from tests.support.crash import apply, session_id, start_plan
from tests.support.sweep import advance

from interlock.store.local import layout
from interlock.store.local.collect.mark import mark
from interlock.store.local.files import OsFiles
from interlock.store.local.locks import OsLocks
from interlock.store.local.store import LocalStore

A = session_id("a")


class BegunMeanwhile(OsFiles):
    """A disk on which a session begins, and continues, after a collection has read that it has no group."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._store = LocalStore(root)
        self._has_begun = False

    def is_link(self, path: str) -> bool:
        if path == layout.session_dir(A) and not self._has_begun:
            self._has_begun = True
            apply(self._store, start_plan("a"))
            advance(self._store, "a")
        return super().is_link(path)


@pytest.mark.inv("GC-6")
def test_a_session_that_begins_while_it_is_looked_at_is_sound(tmp_path: Path) -> None:
    LocalStore(tmp_path)
    (tmp_path / layout.events_dir(A)).mkdir(parents=True)
    found = mark(BegunMeanwhile(tmp_path), OsLocks(tmp_path))
    assert ([one.session for one in found.sessions], found.unsound) == ([A], ())
