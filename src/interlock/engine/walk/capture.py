"""The captured record of one advance: what its decisions and its step read, their results, what was set (TRACE-3).

Stored by digest, next to the decision trace. It contains only what the decisions read, and the digest of the operators
that evaluated it. A run never needs it to continue: it lets every decision be repeated later and compared.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import cast

from interlock.decide.catalogue import catalogue_digest
from interlock.decide.evaluation_pass import EmitEffect, Outcome
from interlock.engine.walk.trace import DecisionRecord
from interlock.kernel.budgets.workflow import (
    CAPTURE_BYTES_MAX,
    CAPTURE_FRAME_BYTES_MAX,
    CAPTURED_VALUE_BYTES_MAX,
)
from interlock.kernel.canonical import Json, canonical_bytes, digest_of_bytes
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import Digest
from interlock.record.context import Context

CAPTURE_VERSIONS = (1, 2)
"""The known versions, the present one last. Version 1 had no triggers, no outcomes and nothing that a step read."""


def as_version_1(capture: Mapping[str, Json]) -> dict[str, Json]:
    """Return a captured record as version 1 had it, to compare it with one of that version."""
    kept = {name: value for name, value in capture.items() if name in _VERSION_1}
    decisions = cast("list[dict[str, Json]]", capture.get("decisions", []))
    plain: list[Json] = [{name: value for name, value in one.items() if name != "emitted"} for one in decisions]
    return {**kept, "v": 1, "decisions": plain}


_VERSION_1 = frozenset({"kind", "catalogue", "decisions", "effects", "leftOut", "gate"})


@frozen
class Gate:
    """An approval of a step, and who gave it."""

    step_id: str
    opened_by: str


@frozen
class StepPass:
    """The pass over the actions of a step.

    `triggers` says by name whether each trigger emitted; None: it could not be decided, and emitted nothing. `effects`
    are by key, `outcomes` by the name of the action: the key, or that of an intent. `intents` are those to send, and
    `mirrored` names those of them that set keys.
    """

    read: Context = field(default_factory=dict[str, Json])
    triggers: Mapping[str, bool | None] = field(default_factory=dict[str, bool | None])
    outcomes: Mapping[str, Outcome] = field(default_factory=dict[str, Outcome])
    effects: Context = field(default_factory=dict[str, Json])
    intents: Mapping[str, EmitEffect] = field(default_factory=dict[str, EmitEffect])
    mirrored: frozenset[str] = frozenset()


@frozen
class DecisionCapture:
    """The decisions and effects of one advance. `adapter` is the digest of the workflow's manifest."""

    decided: tuple[DecisionRecord, ...] = ()
    step: StepPass = field(default_factory=StepPass)
    gate: Gate | None = None
    adapter: Digest | None = None

    def is_empty(self) -> bool:
        """Say whether there was nothing to decide."""
        return not (self.decided or self.step.outcomes or self.gate)

    def to_bytes(self) -> bytes:
        """Return the record's canonical bytes, within the budget: what does not fit is counted."""
        step = self.step
        parts: dict[str, list[dict[str, Json]]] = {
            "effects": [{"key": key} | _value(value) for key, value in sorted(step.effects.items())],
            "outcomes": [{"key": key} | outcome.to_json() for key, outcome in sorted(step.outcomes.items())],
            "triggers": [{"trigger": name, "emitted": emitted} for name, emitted in sorted(step.triggers.items())],
            "read": _read(step.read),
            "decisions": list(map(_decision, self.decided)),
        }
        if step.intents:
            parts["intents"] = [_intent(name, one) for name, one in sorted(step.intents.items())]
        body: dict[str, Json] = {"kind": "capture", "v": CAPTURE_VERSIONS[-1], "catalogue": catalogue_digest()}
        room, left_out = CAPTURE_BYTES_MAX - CAPTURE_FRAME_BYTES_MAX, 0
        for name, listed in parts.items():
            kept, room = _fitting(listed, room)
            body[name] = kept
            left_out += len(listed) - len(kept)
        body["leftOut"] = left_out
        if self.adapter is not None:
            body["adapter"] = self.adapter
        if self.gate is not None:
            body["gate"] = {"stepId": self.gate.step_id, "openedBy": self.gate.opened_by}
        return canonical_bytes(body)


def _decision(one: DecisionRecord) -> dict[str, Json]:
    body: dict[str, Json] = {
        "at": one.point.node_id,
        "read": cast("list[Json]", _read(one.read)),
        "verdict": one.verdict,
    }
    if one.point.frames:
        body["passes"] = [frame.to_json() for frame in one.point.frames]
    if one.condition_id is not None:
        body["conditionId"] = one.condition_id
        body["emitted"] = one.verdict is True
    if one.took is not None:
        body["took"] = one.took
    return body


def _intent(name: str, one: EmitEffect) -> dict[str, Json]:
    return {"key": name, "sends": one.sends} | _value(dict(one.fields))


def _read(read: Context) -> list[dict[str, Json]]:
    return [{"path": path} | _value(value) for path, value in sorted(read.items())]


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
