"""What a log says beside what follows from it: the first place where they differ, and what kind of thing it is."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Literal, cast

from interlock.decide.evaluate import ABSENT, is_same_value
from interlock.kernel.budgets import FOUND_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.text import one_line
from interlock.record.append_plan import AppendPlan, Stamps, stamp
from interlock.record.events import Event

Code = Literal["decision_mismatch", "effect_mismatch", "snapshot_mismatch"]

_WORDED = frozenset({"advance_recorded", "gap_recorded", "decision_trace_appended"})
_WORDS = frozenset({"message", "suggestedFix", "summary"})
"""Members of those kinds that tell people what other members say: a later release may word it better."""
_COMPARED_APART = frozenset({"requestDigest", "captureRef"})
_DECISIONS = frozenset({"run_started", "advance_recorded", "node_created", "edge_created", "decision_trace_appended"})
"""Kinds that say what was decided; the others say what came of it."""
_FROM_OUTSIDE = frozenset({"observation_recorded"})
"""Kinds that nothing in the log leads to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One difference: its kind, where it stands, what is recorded there and what follows, in words."""

    code: Code
    where: str
    found: str


def compared_events(recorded: Sequence[Event], derived: AppendPlan) -> Difference | None:
    """Return the first difference between the events of a recorded plan and those of the derived one, or None.

    Ids, times and actors of events stand for nothing that was decided, so the recorded ones are taken for both.
    """
    written = [event for event in recorded if event.kind not in _FROM_OUTSIDE]
    here, there = list(map(_fact, written)), list(map(_fact, _stamped(derived, written)))
    for number in range(max(len(here), len(there))):
        one, other = _at(here, number), _at(there, number)
        if not is_same_value(one, other):
            return _of_events(one, other)
    return None


def compared_captures(recorded: Mapping[str, Json], derived: Mapping[str, Json]) -> Difference | None:
    """Return the first difference between two captured records, the operators aside, or None."""
    names = sorted({*recorded, *derived} - {"catalogue"}, key=lambda name: (name != "decisions", name))
    for name in names:
        one, other = recorded.get(name, ABSENT), derived.get(name, ABSENT)
        if not is_same_value(one, other):
            code: Code = "effect_mismatch" if name == "effects" else "decision_mismatch"
            return _difference(code, f"capture: {name}", one, other)
    return None


def _of_events(one: object, other: object) -> Difference:
    facts = [cast("dict[str, Json]", fact) for fact in (one, other) if fact is not ABSENT]
    kinds = {str(fact["kind"]) for fact in facts}
    code: Code = "decision_mismatch" if kinds <= _DECISIONS else "effect_mismatch"
    if kinds == {"node_created"} and is_same_value(*(_without(fact, frozenset({"snapshotRef"})) for fact in facts)):
        code = "snapshot_mismatch"
    if len(facts) > 1 and len(kinds) == 1:
        return _difference(code, next(iter(kinds)), one, other)
    return Difference(code=code, where=" / ".join(sorted(kinds)), found=_beside(one, other))


def _difference(code: Code, where: str, one: object, other: object) -> Difference:
    """Return a difference with the innermost place that holds all of it."""
    while True:
        inner = list(_members_apart(one, other))
        if len(inner) != 1:
            return Difference(code=code, where=where, found=_beside(one, other))
        member, one, other = inner[0]
        where += f".{member}" if isinstance(member, str) else f"[{member}]"


def _members_apart(one: object, other: object) -> Iterator[tuple[str | int, object, object]]:
    """Yield the members in which two values of a kind differ; of lists, the first."""
    if isinstance(one, dict) and isinstance(other, dict):
        left, right = cast("dict[str, object]", one), cast("dict[str, object]", other)
        for key in sorted({*left, *right}):
            if not is_same_value(left.get(key, ABSENT), right.get(key, ABSENT)):
                yield key, left.get(key, ABSENT), right.get(key, ABSENT)
    elif isinstance(one, list) and isinstance(other, list):
        items, others = cast("list[object]", one), cast("list[object]", other)
        for number in range(max(len(items), len(others))):
            if not is_same_value(_at(items, number), _at(others, number)):
                yield number, _at(items, number), _at(others, number)
                return


def _at(items: Sequence[object], number: int) -> object:
    return items[number] if number < len(items) else ABSENT


def _stamped(derived: AppendPlan, recorded: Sequence[Event]) -> tuple[Event, ...]:
    """Return the events of a derived plan as they would stand in the place of the recorded ones."""
    ids = chain((event.event_id for event in recorded), repeat(recorded[-1].event_id))
    stamps = Stamps(mint_event_id=lambda: next(ids), recorded_at=recorded[0].recorded_at or "")
    return stamp(derived, next_index=recorded[0].event_index, stamps=stamps).events


def _fact(event: Event) -> dict[str, Json]:
    """Return what an event says, without the words for it and what is compared apart."""
    body = event.to_json()
    left_out = _COMPARED_APART | _WORDS if event.kind in _WORDED else frozenset[str]()
    return {"kind": event.kind, "scope": body.get("scope"), "data": _without(body["data"], left_out)}


def _without(value: Json, left_out: frozenset[str]) -> Json:
    if isinstance(value, dict):
        return {key: _without(member, left_out) for key, member in value.items() if key not in left_out}
    return [_without(item, left_out) for item in value] if isinstance(value, list) else value


def _beside(one: object, other: object) -> str:
    return f"recorded: {_shown(one)}; replayed: {_shown(other)}"


def _shown(value: object) -> str:
    if value is ABSENT:
        return "nothing"
    return one_line(json.dumps(value, ensure_ascii=False, sort_keys=True), FOUND_BYTES_MAX)
