"""The captured record of the decisions of one walk: what each read, its result, what was set (TRACE-3).

Stored by digest, next to the decision trace. It contains only what the decisions read, and the digest of the operators
that evaluated it. A run never needs it to continue: it lets every decision be repeated later and compared.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from interlock.decide.catalogue import catalogue_digest
from interlock.engine.walk.trace import DecisionRecord
from interlock.kernel.budgets import CAPTURE_BYTES_MAX, CAPTURE_FRAME_BYTES_MAX, CAPTURED_VALUE_BYTES_MAX
from interlock.kernel.canonical import Json, canonical_bytes, digest_of_bytes
from interlock.record.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """An approval of a step, and who gave it."""

    step_id: str
    opened_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionCapture:
    """The decisions and effects of one walk."""

    decided: tuple[DecisionRecord, ...] = ()
    effects: Context = field(default_factory=dict[str, Json])
    gate: Gate | None = None

    def is_empty(self) -> bool:
        """Say whether there was nothing to decide."""
        return not (self.decided or self.effects or self.gate)

    def to_bytes(self) -> bytes:
        """Return the record's canonical bytes, within the budget: what does not fit is counted."""
        effects: list[dict[str, Json]] = [{"key": key} | _value(value) for key, value in sorted(self.effects.items())]
        room = CAPTURE_BYTES_MAX - CAPTURE_FRAME_BYTES_MAX
        kept_effects, room = _fitting(effects, room)
        decisions, room = _fitting(map(_decision, self.decided), room)
        body: dict[str, Json] = {
            "kind": "capture",
            "v": 1,
            "catalogue": catalogue_digest(),
            "decisions": decisions,
            "effects": kept_effects,
            "leftOut": len(self.decided) - len(decisions) + len(effects) - len(kept_effects),
        }
        if self.gate is not None:
            body["gate"] = {"stepId": self.gate.step_id, "openedBy": self.gate.opened_by}
        return canonical_bytes(body)


def _decision(one: DecisionRecord) -> dict[str, Json]:
    body: dict[str, Json] = {
        "at": one.spot.node_id,
        "read": [{"path": path} | _value(value) for path, value in sorted(one.read.items())],
        "verdict": one.verdict,
    }
    if one.spot.frames:
        body["passes"] = [frame.to_json() for frame in one.spot.frames]
    if one.condition_id is not None:
        body["conditionId"] = one.condition_id
    if one.took is not None:
        body["took"] = one.took
    return body


def _value(value: Json) -> dict[str, Json]:
    """Return the captured form of a value: itself, or its digest if it is long."""
    data = canonical_bytes(value)
    if len(data) <= CAPTURED_VALUE_BYTES_MAX:
        return {"value": value}
    return {"digest": digest_of_bytes(data), "bytes": len(data)}


def _fitting(parts: Iterable[Mapping[str, Json]], room: int) -> tuple[list[Json], int]:
    kept: list[Json] = []
    for part in parts:
        room -= len(canonical_bytes(dict(part))) + 1
        if room < 0:
            return kept, 0
        kept.append(dict(part))
    return kept, room
