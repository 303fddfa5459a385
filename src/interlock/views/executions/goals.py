"""Reads verdicts: whether an assessed outcome is met (GOAL-6, GOAL-7).

A verdict is read only from the artifacts `wr.decision` and `wr.gate_verdict`, sent beside the outputs of the terminal
slot or as one of them. Any other verdict is shown as it is.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from interlock.kernel.canonical import Json

GoalState = Literal["not_assessed", "met", "not_met", "undetermined", "verdict"]
"""`verdict`: there is one, which is not read. A closed set."""

_GATE: Mapping[Json, GoalState] = {"approved": "met", "rejected": "not_met", "uncertain": "undetermined"}


def read_verdict(artifacts: Sequence[Mapping[str, Json]]) -> GoalState:
    """Return what the artifacts of a completed assessment say; the first one that can be read counts."""
    for one in _candidates(artifacts):
        if one.get("kind") == "wr.decision" and isinstance(one.get("result"), bool):
            return "met" if one["result"] else "not_met"
        if one.get("kind") == "wr.gate_verdict":
            verdict = one.get("verdict")
            return _GATE.get(verdict, "undetermined") if isinstance(verdict, str) else "undetermined"
    return "verdict" if artifacts else "undetermined"


def combine_goals(states: Sequence[GoalState]) -> GoalState:
    """Return the state of an outcome with several assessments: met if all of them say so, not met if any says so."""
    if not states:
        return "not_assessed"
    for state in ("not_met", "undetermined", "not_assessed", "verdict"):
        if state in states:
            return state
    return "met"


def _candidates(artifacts: Iterable[Mapping[str, Json]]) -> Iterable[Mapping[str, Json]]:
    for artifact in artifacts:
        yield artifact
        outputs = artifact.get("outputs")
        if artifact.get("kind") == "wr.block_outputs" and isinstance(outputs, dict):
            yield from (value for value in outputs.values() if isinstance(value, dict))
