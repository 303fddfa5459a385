"""Compares recorded events with replayed ones: finds the first difference, and its kind."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Literal, cast

from interlock.decide.evaluate import ABSENT, is_same_value
from interlock.engine.walk.capture import as_version_1
from interlock.kernel.budgets import FOUND_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen
from interlock.kernel.text import one_line
from interlock.record.append_plan import AppendPlan, Stamps, is_recorded_as, stamp
from interlock.record.events import Event

Code = Literal["decision_mismatch", "effect_mismatch", "snapshot_mismatch"]

_KINDS_WITH_WORDS = frozenset({"advance_recorded", "gap_recorded", "decision_trace_appended"})
_WORD_MEMBERS = frozenset({"message", "suggestedFix", "summary"})
"""Members of those kinds that only describe other members in words; a later release may use other words."""
_COMPARED_APART = frozenset({"requestDigest", "captureRef"})
_NOT_DERIVED: Mapping[str, frozenset[str]] = {"session_created": frozenset({"imported"})}
"""Members that no decision gives: an import sets the mark of the session that it makes."""
_DECISIONS = frozenset(
    {"run_started", "advance_recorded", "node_created", "edge_created", "decision_trace_appended", "work_recorded"}
)
"""Kinds that record decisions; the other kinds record their effects."""
_EFFECTS = frozenset({"effects", "outcomes", "intents"})
"""The members of a captured record that record effects; the others record decisions."""
_OBSERVED_KINDS = frozenset({"observation_recorded"})
"""Kinds that come from outside and cannot be replayed from the log."""


@frozen
class Difference:
    """One difference: its kind, its place, and in words what is recorded and what the replay gives."""

    code: Code
    where: str
    found: str


def is_identical(recorded: Sequence[Event], derived: AppendPlan) -> bool:
    """Say whether a recorded plan and the replayed one are the same to the byte, also in their words and digests.

    Most plans are, and this takes a tenth of the time in which the other comparisons find the first difference.
    """
    written = [event for event in recorded if event.kind not in _OBSERVED_KINDS]
    ids = [event.event_id for event in written]
    return len(written) == len(derived.drafts) and all(
        is_recorded_as(draft, event, ids) for draft, event in zip(derived.drafts, written, strict=True)
    )


def compared_events(recorded: Sequence[Event], derived: AppendPlan) -> Difference | None:
    """Return the first difference between the events of a recorded plan and of the replayed one, or None.

    Ids, times and actors of events are not decisions, so the replayed events get the recorded ones.
    """
    written = [event for event in recorded if event.kind not in _OBSERVED_KINDS]
    recorded_facts, derived_facts = list(map(_comparable, written)), list(map(_comparable, _stamp(derived, written)))
    for number in range(max(len(recorded_facts), len(derived_facts))):
        one, other = _item(recorded_facts, number), _item(derived_facts, number)
        if not is_same_value(one, other):
            return _describe_events(one, other)
    return None


def compared_words(recorded: Sequence[Event], derived: AppendPlan) -> Difference | None:
    """Return the first difference between the texts of two plans whose facts are the same, or None."""
    written = [event for event in recorded if event.kind not in _OBSERVED_KINDS]
    for one, other in zip(written, _stamp(derived, written), strict=True):
        if one.kind in _KINDS_WITH_WORDS:
            left, right = (_without(event.to_json()["data"], _COMPARED_APART) for event in (one, other))
            if not is_same_value(left, right):
                return _difference("effect_mismatch", one.kind, left, right)
    return None


def compared_captures(recorded: Mapping[str, Json], derived: Mapping[str, Json]) -> Difference | None:
    """Return the first difference between two captured records, apart from the operators, or None."""
    if recorded.get("v") == 1:
        derived = as_version_1(derived)
    names = sorted({*recorded, *derived} - {"catalogue"}, key=lambda name: (name != "decisions", name))
    for name in names:
        one, other = recorded.get(name, ABSENT), derived.get(name, ABSENT)
        if not is_same_value(one, other):
            code: Code = "effect_mismatch" if name in _EFFECTS else "decision_mismatch"
            return _difference(code, f"capture: {name}", one, other)
    return None


def _describe_events(one: object, other: object) -> Difference:
    facts = [cast("dict[str, Json]", fact) for fact in (one, other) if fact is not ABSENT]
    kinds = {str(fact["kind"]) for fact in facts}
    code: Code = "decision_mismatch" if kinds <= _DECISIONS else "effect_mismatch"
    if kinds == {"node_created"} and is_same_value(*(_without(fact, frozenset({"snapshotRef"})) for fact in facts)):
        code = "snapshot_mismatch"
    if len(facts) > 1 and len(kinds) == 1:
        return _difference(code, next(iter(kinds)), one, other)
    return Difference(code=code, where=" / ".join(sorted(kinds)), found=_both(one, other))


def _difference(code: Code, where: str, one: object, other: object) -> Difference:
    """Build the difference, with the innermost place that contains all of it."""
    while True:
        inner = list(_differing_members(one, other))
        if len(inner) != 1:
            return Difference(code=code, where=where, found=_both(one, other))
        member, one, other = inner[0]
        where += f".{member}" if isinstance(member, str) else f"[{member}]"


def _differing_members(one: object, other: object) -> Iterator[tuple[str | int, object, object]]:
    """Yield the members in which two dicts differ, or the first item in which two lists differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        left, right = cast("dict[str, object]", one), cast("dict[str, object]", other)
        for key in sorted({*left, *right}):
            if not is_same_value(left.get(key, ABSENT), right.get(key, ABSENT)):
                yield key, left.get(key, ABSENT), right.get(key, ABSENT)
    elif isinstance(one, list) and isinstance(other, list):
        items, others = cast("list[object]", one), cast("list[object]", other)
        for number in range(max(len(items), len(others))):
            if not is_same_value(_item(items, number), _item(others, number)):
                yield number, _item(items, number), _item(others, number)
                return


def _item(items: Sequence[object], number: int) -> object:
    return items[number] if number < len(items) else ABSENT


def _stamp(derived: AppendPlan, recorded: Sequence[Event]) -> tuple[Event, ...]:
    """Return the events of a replayed plan with the ids, times and indexes of the recorded ones."""
    ids = chain((event.event_id for event in recorded), repeat(recorded[-1].event_id))
    stamps = Stamps(mint_event_id=lambda: next(ids), recorded_at=recorded[0].recorded_at or "")
    return stamp(derived, next_index=recorded[0].event_index, stamps=stamps).events


def _comparable(event: Event) -> dict[str, Json]:
    """Return the facts of an event: without descriptions, and without members that are compared separately."""
    body = event.to_json()
    left_out = _NOT_DERIVED.get(event.kind, frozenset())
    if event.kind in _KINDS_WITH_WORDS:
        left_out = _COMPARED_APART | _WORD_MEMBERS
    return {"kind": event.kind, "scope": body.get("scope"), "data": _without(body["data"], left_out)}


def _without(value: Json, left_out: frozenset[str]) -> Json:
    if isinstance(value, dict):
        return {key: _without(member, left_out) for key, member in value.items() if key not in left_out}
    return [_without(item, left_out) for item in value] if isinstance(value, list) else value


def _both(one: object, other: object) -> str:
    return f"recorded: {_to_text(one)}; replayed: {_to_text(other)}"


def _to_text(value: object) -> str:
    if value is ABSENT:
        return "nothing"
    return one_line(json.dumps(value, ensure_ascii=False, sort_keys=True), FOUND_BYTES_MAX)
