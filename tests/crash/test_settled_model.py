"""A state model of the settled mark: every interleaving of two writers, a reader, a failing disk and a power loss.

The model is small and is explored in full. One group is written to a log that holds earlier, settled groups. What the
kernel does is modelled after Linux: a failed sync marks the pages clean, its error is reported once, and a later sync
then succeeds without having written anything. The same exploration finds the fault in each protocol that lost.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Literal

import pytest

Mark = Literal["none", "other boot, before", "other boot, after", "before", "after", "unreadable"]
"""What the mark says: nothing, or settled up to before or after the group, written in this boot or in another one."""
Protocol = Literal[
    "settled mark",
    "readers sync",
    "readers believe",
    "mark before sync",
    "read the mark first",
    "cut and write again",
    "sync again",
    "no mark before the group",
    "keep the segment",
]
OTHER_BOOT: dict[Mark, Mark] = {"before": "other boot, before", "after": "other boot, after"}


class Extent(IntEnum):
    """How much of something is there."""

    NOTHING = 0
    TORN = 1
    WHOLE = 2


@dataclass(frozen=True, slots=True)
class Bytes:
    """A file's bytes in memory and on the disk, and what the kernel knows of the difference."""

    cache: Extent = Extent.NOTHING
    disk: Extent = Extent.NOTHING
    is_dirty: bool = False
    has_unseen_error: bool = False

    def written(self, extent: Extent) -> "Bytes":
        return replace(self, cache=extent, is_dirty=True)

    def synced(self) -> Iterator[tuple[bool, "Bytes"]]:
        """Yield every outcome of a sync: whether it succeeds, and the bytes after it."""
        if self.is_dirty:
            clean = replace(self, is_dirty=False, has_unseen_error=False)
            yield True, replace(clean, disk=self.cache)
            yield False, clean
            yield False, replace(clean, disk=self.cache)
        elif self.has_unseen_error:
            yield False, replace(self, has_unseen_error=False)
        else:
            yield True, self

    def written_back(self) -> Iterator["Bytes"]:
        """Yield what the kernel's own writing in the background may leave."""
        if self.is_dirty:
            yield replace(self, disk=self.cache, is_dirty=False)
            yield replace(self, is_dirty=False, has_unseen_error=True)

    def after_power_loss(self) -> Iterator["Bytes"]:
        left = {self.disk}
        if self.is_dirty:
            left.add(self.cache)
            if self.disk is Extent.NOTHING and self.cache is Extent.WHOLE:
                left.add(Extent.TORN)
        for extent in left:
            yield Bytes(cache=extent, disk=extent)


@dataclass(frozen=True, slots=True)
class Writer:
    """Where a writer is in its program, and how often it may still begin."""

    at: str = "idle"
    tries: int = 2


@dataclass(frozen=True, slots=True)
class State:
    manifest: Bytes = Bytes()
    segment: Bytes = Bytes()
    mark: Mark = "none"
    mark_on_disk: Mark = "none"
    writers: tuple[Writer, Writer] = (Writer(), Writer())
    holder: int | None = None
    reader: str = "idle"
    is_answered: bool = False
    """Somebody outside has been given an answer that rests on the group."""
    power_losses: int = 1

    def write(self, number: int, at: str, **changes: object) -> "State":
        """Return the state with a writer at another place of its program; at rest it holds no lock."""
        writers = list(self.writers)
        writers[number] = replace(writers[number], at=at)
        holder = None if at == "idle" else number
        return replace(self, writers=(writers[0], writers[1]), holder=holder, **changes)  # type: ignore[arg-type]


def is_this_boot(mark: Mark) -> bool:
    return mark in {"before", "after", "unreadable"}


def counts(mark: Mark) -> bool:
    """Say whether a whole group counts for a reader that sees this mark."""
    return mark == "after" or not is_this_boot(mark)


def next_states(state: State, protocol: Protocol) -> Iterator[State]:
    yield from background(state)
    yield from reading(state, protocol)
    for number in range(2):
        yield from writing(state, number, protocol)
        if state.writers[number].at != "idle":
            # Killed: nothing more of its program happens, and the system frees the lock.
            yield state.write(number, "idle")
            yield from (killed.write(number, "idle") for killed in writing(state, number, protocol))
    if state.power_losses:
        yield from power_loss(state)


def background(state: State) -> Iterator[State]:
    yield from (replace(state, manifest=after) for after in state.manifest.written_back())
    yield from (replace(state, segment=after) for after in state.segment.written_back())
    if state.mark_on_disk != state.mark:
        yield replace(state, mark_on_disk=state.mark)


def power_loss(state: State) -> Iterator[State]:
    marks: set[Mark] = {state.mark_on_disk, state.mark}
    for manifest in state.manifest.after_power_loss():
        for segment in state.segment.after_power_loss():
            for mark in marks:
                left = OTHER_BOOT.get(mark, mark)
                yield State(
                    manifest=manifest,
                    segment=segment,
                    mark=left,
                    mark_on_disk=left,
                    is_answered=state.is_answered,
                    power_losses=state.power_losses - 1,
                )


def reading(state: State, protocol: Protocol) -> Iterator[State]:
    """Yield what a reader's next step may leave."""
    whole = state.manifest.cache is Extent.WHOLE
    if protocol == "readers believe":
        yield replace(state, is_answered=state.is_answered or whole)
    elif protocol == "readers sync":
        yield from reading_with_a_sync(state)
    elif protocol == "read the mark first":
        yield from reading_the_mark_first(state)
    elif state.reader == "idle":
        yield replace(state, reader="saw the group" if whole else "idle")
    else:
        yield replace(state, reader="idle", is_answered=state.is_answered or counts(state.mark))


def reading_with_a_sync(state: State) -> Iterator[State]:
    if state.manifest.cache is not Extent.WHOLE:
        return
    for is_synced, segment in state.segment.synced():
        for is_safe, manifest in state.manifest.synced():
            is_answered = state.is_answered or (is_synced and is_safe)
            yield replace(state, segment=segment, manifest=manifest, is_answered=is_answered)


def reading_the_mark_first(state: State) -> Iterator[State]:
    if state.reader == "idle":
        yield replace(state, reader="believes" if counts(state.mark) else "does not believe")
    else:
        is_answered = state.reader == "believes" and state.manifest.cache is Extent.WHOLE
        yield replace(state, reader="idle", is_answered=state.is_answered or is_answered)


def writing(state: State, number: int, protocol: Protocol) -> Iterator[State]:
    """Yield what a writer's next step may leave."""
    yield from PROGRAM[state.writers[number].at](state, number, protocol)


def has_mark(protocol: Protocol) -> bool:
    return protocol not in {"readers sync", "readers believe"}


def begin(state: State, number: int, protocol: Protocol) -> Iterator[State]:  # noqa: ARG001 — as all steps
    writer = state.writers[number]
    if state.holder is None and writer.tries:
        begun = Writer(at="look", tries=writer.tries - 1)
        first, second = state.writers
        yield replace(state, writers=(begun, second) if number == 0 else (first, begun), holder=number)


def cut(state: State, number: int, protocol: Protocol) -> Iterator[State]:  # noqa: ARG001 — as all steps
    for is_synced, manifest in state.manifest.written(Extent.NOTHING).synced():
        yield state.write(number, "mark" if is_synced else "idle", manifest=manifest)


def mark_before(state: State, number: int, protocol: Protocol) -> Iterator[State]:
    is_left_out = protocol == "no mark before the group" or not has_mark(protocol)
    if is_left_out or is_this_boot(state.mark):
        yield state.write(number, "segment")
    else:
        yield state.write(number, "segment", mark="before")


def write_segment(state: State, number: int, protocol: Protocol) -> Iterator[State]:
    """Under its own name, if there is none; else under a temporary name, synced, then renamed: a new file each time."""
    if state.segment.cache is Extent.NOTHING:
        yield state.write(number, "sync the segment", segment=state.segment.written(Extent.WHOLE))
        yield state.write(number, "idle", segment=state.segment.written(Extent.TORN))
    elif protocol == "keep the segment" and state.segment.cache is Extent.WHOLE:
        yield state.write(number, "sync the segment")
    else:
        for is_synced, segment in Bytes().written(Extent.WHOLE).synced():
            yield state.write(number, "group", segment=segment) if is_synced else state.write(number, "idle")


def sync_segment(state: State, number: int, protocol: Protocol) -> Iterator[State]:  # noqa: ARG001 — as all steps
    """Sync a segment that has its own name already. After a failure it is removed, if the disk permits it."""
    for is_synced, segment in state.segment.synced():
        yield state.write(number, "group" if is_synced else "idle", segment=segment)
        if not is_synced:
            yield state.write(number, "idle", segment=Bytes())


def write_group(state: State, number: int, protocol: Protocol) -> Iterator[State]:  # noqa: ARG001 — as all steps
    yield state.write(number, "sync", manifest=state.manifest.written(Extent.WHOLE))
    if state.manifest.cache is Extent.NOTHING:
        yield state.write(number, "idle", manifest=state.manifest.written(Extent.TORN))


def sync_group(state: State, number: int, protocol: Protocol) -> Iterator[State]:
    early: Mark = "after" if protocol == "mark before sync" else state.mark
    for is_synced, manifest in state.manifest.synced():
        yield state.write(number, "settle" if is_synced else "failed", manifest=manifest, mark=early)


def fail(state: State, number: int, protocol: Protocol) -> Iterator[State]:
    yield state.write(number, "idle")
    if not has_mark(protocol):
        yield state.write(number, "idle", manifest=state.manifest.written(Extent.NOTHING))


def settle(state: State, number: int, protocol: Protocol) -> Iterator[State]:
    yield state.write(number, "answer", mark="after" if has_mark(protocol) else state.mark)


def answer(state: State, number: int, protocol: Protocol) -> Iterator[State]:  # noqa: ARG001 — as all steps
    yield state.write(number, "idle", is_answered=True)


def look(state: State, number: int, protocol: Protocol) -> Iterator[State]:
    """Decide how a writer goes on that has just been given the lock."""
    is_counted = protocol == "readers believe" or (has_mark(protocol) and counts(state.mark))
    if state.manifest.cache is Extent.TORN:
        yield state.write(number, "cut")
    elif state.manifest.cache is Extent.NOTHING:
        yield state.write(number, "mark")
    elif is_counted:
        yield state.write(number, "answer")
    elif protocol in {"readers sync", "sync again"}:
        yield state.write(number, "sync")
    else:
        yield state.write(number, "cut" if protocol == "cut and write again" else "segment")


PROGRAM: dict[str, Callable[[State, int, Protocol], Iterator[State]]] = {
    "idle": begin,
    "look": look,
    "cut": cut,
    "mark": mark_before,
    "segment": write_segment,
    "sync the segment": sync_segment,
    "group": write_group,
    "sync": sync_group,
    "failed": fail,
    "settle": settle,
    "answer": answer,
}
"""A writer's program: each place in it, and the step that is taken there."""


def violation(state: State) -> str | None:
    on_disk = state.manifest.disk is Extent.WHOLE and state.segment.disk is Extent.WHOLE
    if state.is_answered and state.manifest.cache is not Extent.WHOLE:
        return "an answer was given, and the group is gone"
    if state.is_answered and not on_disk:
        return "an answer was given, and a power loss takes the group back"
    if state.mark in {"after", "other boot, after"} and state.manifest.cache is not Extent.WHOLE:
        return "the mark says more than the manifest holds: a sound log would be called damaged"
    return None


BEGINNINGS: tuple[Mark, ...] = ("none", "other boot, before", "before")


def explored(protocol: Protocol, beginnings: tuple[State, ...]) -> tuple[int, str | None]:
    """Return how many states there are, and the first violation found."""
    waiting, seen = deque(beginnings), set(beginnings)
    while waiting:
        state = waiting.popleft()
        found = violation(state)
        if found is not None:
            return len(seen), found
        for after in next_states(state, protocol):
            if after not in seen:
                seen.add(after)
                waiting.append(after)
    return len(seen), None


def fresh() -> tuple[State, ...]:
    return tuple(State(mark=mark, mark_on_disk=mark) for mark in BEGINNINGS)


def acknowledged_with_an_unreadable_mark() -> State:
    whole = Bytes(cache=Extent.WHOLE, disk=Extent.WHOLE)
    return State(manifest=whole, segment=whole, mark="unreadable", mark_on_disk="unreadable", is_answered=True)


@pytest.mark.inv("CRASH-3")
def test_with_the_settled_mark_no_answer_is_ever_taken_back() -> None:
    states, found = explored("settled mark", (*fresh(), acknowledged_with_an_unreadable_mark()))
    assert found is None
    assert states > 5_000


@pytest.mark.inv("CRASH-3")
@pytest.mark.parametrize(
    "protocol",
    [
        "readers sync",
        "readers believe",
        "mark before sync",
        "read the mark first",
        "sync again",
        "no mark before the group",
        "keep the segment",
    ],
)
def test_each_protocol_that_lost_takes_an_answer_back(protocol: Protocol) -> None:
    _, found = explored(protocol, fresh())
    assert found is not None


@pytest.mark.inv("CRASH-3")
def test_cutting_an_unsettled_group_before_writing_it_again_can_lose_an_acknowledged_one() -> None:
    _, found = explored("cut and write again", (acknowledged_with_an_unreadable_mark(),))
    assert found is not None
