"""Random histories of sessions, crashes and sweeps: what a model says must be there is there, whole and readable."""

from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.support.crash import STEPS, apply, assert_readable, opened, session_id, start_plan
from tests.support.shares import examples
from tests.support.sweep import (
    DAY_S,
    HOUR_S,
    advance,
    collector_on,
    dated_disk,
    settle,
    swept,
    write,
)

from interlock.kernel.ids import SessionId
from interlock.store.local import layout
from interlock.store.ports.errors import SessionsMissingError
from interlock.testing.power_cut import CrashDisk, InjectedFault, PowerCutError
from interlock.views.session import Session

pytestmark = pytest.mark.exhaustive

NAMES = st.sampled_from("abcd")
ARTIFACTS = st.sampled_from([None, "x", "y"])
DAYS = st.sampled_from([0, 1, 90])
SURVIVORS_MAX = 64


@dataclass(frozen=True, kw_only=True)
class Known:
    """A session as the model knows it."""

    session: Session
    advances: int


class Retention(RuleBasedStateMachine):
    """Sessions that share content, a clock, processes that die at any operation, and sweeps."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = dated_disk()
        self.known: dict[str, Known] = {}
        # What a sweep moved to the trash: a later sweep moves it back if it has not expired by its days.
        self.trashed: dict[str, Known] = {}
        self.kept: set[str] = set()

    @initialize()
    def begin(self) -> None:
        apply(opened(self.disk), start_plan("a"))
        self.learn("a", 0)

    def learn(self, name: str, advances: int) -> None:
        session = opened(self.disk).load(session_id(name))
        assert session is not None
        self.known[name] = Known(session=session, advances=advances)

    def write(self, disk: CrashDisk, name: str, artifact: str | None) -> None:
        """Begin a session, or take its next step."""
        if name in self.known:
            advance(opened(disk), name, artifact=artifact)
        else:
            apply(opened(disk), start_plan(name))

    def is_through(self, name: str) -> bool:
        return name in self.known and self.known[name].advances == len(STEPS)

    @rule(name=NAMES, artifact=ARTIFACTS)
    def go_on(self, name: str, artifact: str | None) -> None:
        if self.is_through(name):
            return
        advances = self.known[name].advances + 1 if name in self.known else 0
        self.write(self.disk, name, artifact)
        self.learn(name, advances)

    @rule(name=NAMES, artifact=ARTIFACTS, at=st.integers(0, 40), left=st.integers(0, SURVIVORS_MAX))
    def die_in_going_on(self, name: str, artifact: str | None, at: int, left: int) -> None:
        if self.is_through(name):
            return
        disk = self.disk.copy()
        disk.fault = InjectedFault(at=at, keep_bytes=30)
        with suppress(PowerCutError):
            self.write(disk, name, artifact)
        self.lose_power(disk, left)
        # Whether what was written to its end counts is decided by the next one that holds the lock.
        with opened(self.disk).hold(session_id(name)) as lock:
            found = lock.session
        before = self.known.get(name)
        if found is not None and (before is None or found != before.session):
            self.learn(name, before.advances + 1 if before is not None else 0)

    def lose_power(self, disk: CrashDisk, left: int) -> None:
        """Go on with what a power loss leaves; with none, which is the first choice, nothing is lost."""
        disk.fault = None
        survivors = list(islice(disk.survivors(), SURVIVORS_MAX)) if left else [disk.copy()]
        self.disk = survivors[left % len(survivors)]

    @rule(hours=st.sampled_from([1, 13, 25, 50 * 24, 91 * 24]))
    def wait(self, hours: int) -> None:
        self.disk.now_s += hours * HOUR_S

    @rule(name=NAMES)
    def keep(self, name: str) -> None:
        pins = collector_on(self.disk).retention_pins
        if name not in self.known:
            with pytest.raises(SessionsMissingError):
                pins.keep([session_id(name)])
            return
        pins.keep([session_id(name)])
        self.kept.add(name)

    @rule(name=NAMES)
    def unkeep(self, name: str) -> None:
        collector_on(self.disk).retention_pins.unkeep([session_id(name)])
        self.kept.discard(name)

    @rule(path=st.sampled_from(["snapshots/x.json", "sessions/left/manifest.jsonl", "artifacts/x"]))
    def litter(self, path: str) -> None:
        temp = layout.temp(path, "0123456789abcdef")
        if temp not in self.disk.names_now:
            write(self.disk, temp)
            self.disk = settle(self.disk)

    def expired(self, days: int) -> set[str]:
        """Return the sessions that a sweep may take by now."""
        found = set[str]()
        for name in self.known.keys() - self.kept:
            manifest = self.disk.stat(layout.manifest(session_id(name)))
            assert manifest is not None
            if days and self.disk.now_s - manifest.modified_s > days * DAY_S:
                found.add(name)
        return found

    @rule(days=DAYS)
    def sweep(self, days: int) -> None:
        gone = self.expired(days)
        result = swept(self.disk, days=days, is_dry_run=True)
        found = swept(self.disk, days=days)
        assert not found.is_safe_mode
        assert sorted(found.taken.sizes()) == sorted(result.taken.sizes())
        assert {one.session for one in found.taken.sessions} == {session_id(name) for name in gone}
        returned = {name for name in self.trashed if session_id(name) in found.restored}
        assert len(returned) == len(found.restored)
        self.known |= {name: self.trashed[name] for name in returned}
        self.trashed = {name: self.known.pop(name) for name in gone}

    @rule(days=DAYS, at=st.integers(0, 60), left=st.integers(0, SURVIVORS_MAX))
    def die_in_a_sweep(self, days: int, at: int, left: int) -> None:
        gone = self.expired(days)
        disk = self.disk.copy()
        disk.fault = InjectedFault(at=at)
        with suppress(PowerCutError):
            swept(disk, days=days)
        self.lose_power(disk, left)
        there = self.there()
        for name in gone - there:
            self.trashed[name] = self.known.pop(name)
        for name in there & self.trashed.keys() - self.known.keys():
            self.known[name] = self.trashed.pop(name)

    def there(self) -> set[str]:
        names: dict[SessionId, str] = {session_id(name): name for name in "abcd"}
        store = opened(self.disk)
        return {names[session] for session in store.sessions() if store.load(session) is not None}

    @invariant()
    def what_must_be_there_is_there_and_can_be_read(self) -> None:
        assert self.there() == set(self.known)
        store = opened(self.disk)
        for name, known in self.known.items():
            assert store.load(session_id(name)) == known.session
            assert_readable(store, known.session)

    @rule()
    def settle(self) -> None:
        self.disk = settle(self.disk)


TestRetention = pytest.mark.inv("GC-1", "GC-2", "GC-8", "GC-9")(Retention.TestCase)
TestRetention.settings = settings(max_examples=examples(60), stateful_step_count=25, deadline=None)
