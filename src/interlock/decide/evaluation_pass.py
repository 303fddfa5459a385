"""One pass over a decision graph: each node once, over one snapshot of inputs; effects are collected, never applied.

A pass remembers nothing of any other. What it brings about is seen by a later pass, through the context.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal, TypeAlias, assert_never, cast

from interlock.decide.condition import LoopControl
from interlock.decide.evaluate import (
    ABSENT,
    ConditionInputs,
    LoopDecision,
    Undecided,
    Verdict,
    apply_operator,
    combine_verdicts,
    describe_kind,
    evaluate_loop_control,
    value_at,
)
from interlock.decide.graph import (
    Action,
    Comparison,
    Compute,
    Constant,
    FromContext,
    Junction,
    LoopDecisions,
    Negation,
    Operation,
    Reading,
    Source,
    Trigger,
)
from interlock.decide.schedule import Schedule, ScheduledNode
from interlock.decide.validate import find_expected_kind
from interlock.kernel.canonical import SAFE_INTEGER_MAX, Json

OutcomeKind = Literal["completed", "skipped", "rejected", "failed", "cancelled", "attempted"]
"""What came of an action. The last three are for effects on the world outside, of which there are none yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one action: recorded, and seen by no node.

    `why` says what was found where it was rejected, or skipped because a trigger of it could not be decided.
    """

    kind: OutcomeKind
    why: Undecided | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetEffect:
    """An effect: this key is to be set to this value, on behalf of this action. Null deletes the key."""

    action: str
    key: str
    value: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class PassResult:
    """What came of a pass, by node id, in the order of evaluation.

    `values` holds what sources and computes yield: a value, NOTHING, or what keeps a truth from being decided.
    `triggers` says whether each emitted. `effects` are in the order of their actions.
    """

    values: Mapping[str, object]
    triggers: Mapping[str, Verdict]
    outcomes: Mapping[str, Outcome]
    effects: tuple[SetEffect, ...]

    def to_json(self) -> dict[str, Json]:
        """Return the pass as a JSON value, the same for the same graph and inputs."""
        return {
            "values": {node: _value_json(value) for node, value in self.values.items()},
            "triggers": {node: _trigger_json(verdict) for node, verdict in self.triggers.items()},
            "outcomes": {node: _outcome_json(outcome) for node, outcome in self.outcomes.items()},
            "effects": [
                {"kind": "set", "action": effect.action, "key": effect.key, "value": effect.value}
                for effect in self.effects
            ],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PassAborted:
    """A computation failed, so the pass came to nothing: no outcome and no effect of it exists.

    `condition` names the condition that the node is a part of, if it is one of a condition.
    """

    node: str
    condition: str | None
    found: str
    expected: str


def run_pass(schedule: Schedule, given: ConditionInputs) -> PassResult | PassAborted:
    """Evaluate every node of a graph once. Pure: the same graph and inputs always give the same."""
    running = _PassState(given=given)
    for scheduled in schedule.nodes:
        aborted = running.evaluate(scheduled)
        if aborted is not None:
            return aborted
    return PassResult(
        values=running.values,
        triggers=running.triggers,
        outcomes=running.outcomes,
        effects=tuple(running.effects),
    )


_Computed: TypeAlias = Verdict | PassAborted


@dataclass(slots=True, kw_only=True)
class _PassState:
    """The part of a pass that has come so far."""

    given: ConditionInputs
    values: dict[str, object] = field(default_factory=dict[str, object])
    triggers: dict[str, Verdict] = field(default_factory=dict[str, Verdict])
    outcomes: dict[str, Outcome] = field(default_factory=dict[str, Outcome])
    effects: list[SetEffect] = field(default_factory=list[SetEffect])

    def evaluate(self, scheduled: ScheduledNode) -> PassAborted | None:
        node = scheduled.node
        match node:
            case Source():
                self.values[node.id] = _read_source(node.reads, self.given)
            case Compute():
                computed = self._compute(node, scheduled)
                if isinstance(computed, PassAborted):
                    return computed
                self.values[node.id] = computed
            case Trigger():
                self.triggers[node.id] = combine_verdicts(self._verdicts(scheduled.inputs), deciding=False)
            case Action():
                self._act(node, scheduled)
            case _:
                assert_never(node)
        return None

    def _verdicts(self, inputs: tuple[str, ...]) -> list[Verdict]:
        """Return truths and events as verdicts; of an event, whether it occurred."""
        known = [self.triggers[one] if one in self.triggers else self.values[one] for one in inputs]
        return cast("list[Verdict]", known)

    def _compute(self, node: Compute, scheduled: ScheduledNode) -> _Computed:
        inputs = [self.values[one] for one in scheduled.inputs]
        fault = _describe_inexact_number(inputs[0])
        if fault is not None:
            return PassAborted(node=node.id, condition=node.condition, found=fault, expected=_NUMBER)
        try:
            verdict = _apply_operation(node.operation, inputs, scheduled.path)
        except (TypeError, ValueError, ArithmeticError, RecursionError) as error:
            # What is compared with was not judged where the graph was made. Nothing may come of half a decision.
            found = f"a failure ({type(error).__name__}) of `{node.operation.op}`"
            return PassAborted(node=node.id, condition=node.condition, found=found, expected="true or false")
        is_own = verdict is not inputs[0] and isinstance(node.operation, Comparison)
        if isinstance(verdict, Undecided) and is_own and scheduled.path is None:
            # Nobody can send another value where none was read.
            return PassAborted(node=node.id, condition=node.condition, found=verdict.found, expected=verdict.expected)
        return verdict

    def _act(self, node: Action, scheduled: ScheduledNode) -> None:
        *gates, payload = scheduled.inputs
        gate = combine_verdicts(self._verdicts(tuple(gates)), deciding=False)
        if gate is not True:
            self.outcomes[node.id] = Outcome(kind="skipped", why=gate if isinstance(gate, Undecided) else None)
            return
        value = self.values[payload]
        why = _check_payload(node, value, scheduled.path)
        if why is not None:
            self.outcomes[node.id] = Outcome(kind="rejected", why=why)
            return
        self.outcomes[node.id] = Outcome(kind="completed")
        self.effects.append(SetEffect(action=node.id, key=node.effect.key, value=cast("Json", value)))


def _read_source(reads: Reading, given: ConditionInputs) -> object:
    match reads:
        case FromContext(kind="key"):
            return given.context.get(reads.path, ABSENT)
        case FromContext():
            return value_at(given.context, reads.path)
        case LoopDecisions():
            return given.loop_decisions or ABSENT
        case Constant():
            return reads.value


def _apply_operation(operation: Operation, inputs: list[object], path: str | None) -> Verdict:
    """Return what an operation makes of its inputs. What is undecided stays so, unless another part settles it."""
    first = inputs[0]
    match operation:
        case Comparison():
            if isinstance(first, Undecided):
                return first
            return apply_operator(operation.op, first, operation.value, path=path)
        case Junction():
            return combine_verdicts(cast("list[Verdict]", inputs), deciding=operation.op == "or")
        case Negation():
            return first if isinstance(first, Undecided) else not first
        case LoopControl():
            said = cast("tuple[tuple[str | None, LoopDecision], ...]", () if first is ABSENT else first)
            return evaluate_loop_control(operation, said)


_NUMBER = "a number that JSON keeps exact"


def _describe_inexact_number(value: object) -> str | None:
    """Return what is wrong with a number that no JSON text can have carried."""
    if isinstance(value, float) and not isfinite(value):
        return "a number that is not finite"
    if isinstance(value, int) and abs(value) > SAFE_INTEGER_MAX:
        return "an integer beyond 2^53"
    return None


def _check_payload(node: Action, value: object, path: str | None) -> Undecided | None:
    """Return why a key cannot be set to a value, or None where it can."""
    if isinstance(value, Undecided):
        return value
    if value is ABSENT:
        return Undecided(path=path, found="not set", expected="a value")
    fault = _describe_inexact_number(value)
    if fault is not None:
        return Undecided(path=path, found=fault, expected=_NUMBER)
    wanted = find_expected_kind(node.effect.type, value)
    return None if wanted is None else Undecided(path=path, found=describe_kind(value), expected=wanted)


def _value_json(value: object) -> Json:
    if isinstance(value, Undecided):
        return {"undecided": _undecided_json(value)}
    if value is ABSENT:
        return {"absent": True}
    if isinstance(value, tuple):
        return {"value": [list(said) for said in cast("tuple[tuple[Json, Json], ...]", value)]}
    return {"value": cast("Json", value)}


def _trigger_json(verdict: Verdict) -> Json:
    if isinstance(verdict, Undecided):
        return {"undecided": _undecided_json(verdict)}
    return "emitted" if verdict else "not_emitted"


def _outcome_json(outcome: Outcome) -> Json:
    why: dict[str, Json] = {} if outcome.why is None else {"why": _undecided_json(outcome.why)}
    return {"kind": outcome.kind, **why}


def _undecided_json(undecided: Undecided) -> Json:
    return {"path": undecided.path, "found": undecided.found, "wanted": undecided.expected}
