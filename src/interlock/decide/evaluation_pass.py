"""One pass over a decision graph: evaluates each node once, on one snapshot of the inputs.

Effects are collected, not applied. Passes share no state: only a later pass sees an effect, through the context.
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
"""The outcome of an action. The last three are for effects outside the server; there are none yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of one action.

    `why` says why the action was rejected, or which undecided trigger skipped it.
    """

    kind: OutcomeKind
    why: Undecided | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetEffect:
    """An effect of an action: set a context key to a value. Null deletes the key."""

    action: str
    key: str
    value: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class PassResult:
    """The results of a pass, by node id, in the order of evaluation.

    `values` holds the results of sources and computes: a value, ABSENT, or an `Undecided`. `triggers` says whether each
    trigger emitted. `effects` are in the order of their actions.
    """

    values: Mapping[str, object]
    triggers: Mapping[str, Verdict]
    outcomes: Mapping[str, Outcome]
    effects: tuple[SetEffect, ...]

    def to_json(self) -> dict[str, Json]:
        """Return the results as JSON. The same graph and inputs always give the same value."""
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
    """A computation failed, so the whole pass has no outcome and no effect.

    `condition` names the condition that the failed node belongs to, if any.
    """

    node: str
    condition: str | None
    found: str
    expected: str


def run_pass(schedule: Schedule, inputs: ConditionInputs) -> PassResult | PassAborted:
    """Evaluate every node of a graph once. Pure: the same graph and inputs always give the same result.

    If the computation of a node fails, the result is `PassAborted`: no action takes effect.
    """
    state = _PassState(inputs=inputs)
    for scheduled in schedule.nodes:
        aborted = state.evaluate(scheduled)
        if aborted is not None:
            return aborted
    return PassResult(
        values=state.values,
        triggers=state.triggers,
        outcomes=state.outcomes,
        effects=tuple(state.effects),
    )


_Computed: TypeAlias = Verdict | PassAborted


@dataclass(slots=True, kw_only=True)
class _PassState:
    """The results of a pass so far."""

    inputs: ConditionInputs
    values: dict[str, object] = field(default_factory=dict[str, object])
    triggers: dict[str, Verdict] = field(default_factory=dict[str, Verdict])
    outcomes: dict[str, Outcome] = field(default_factory=dict[str, Outcome])
    effects: list[SetEffect] = field(default_factory=list[SetEffect])

    def evaluate(self, scheduled: ScheduledNode) -> PassAborted | None:
        node = scheduled.node
        match node:
            case Source():
                self.values[node.id] = _read_source(node.reads, self.inputs)
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
        """Return truths and events as verdicts: an event is true if it occurred."""
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
            # Constants are not checked when a graph is built. A failed computation must abort the whole pass.
            found = f"a failure ({type(error).__name__}) of `{node.operation.op}`"
            return PassAborted(node=node.id, condition=node.condition, found=found, expected="true or false")
        is_own = verdict is not inputs[0] and isinstance(node.operation, Comparison)
        if isinstance(verdict, Undecided) and is_own and scheduled.path is None:
            # The value was not read from the context, so no caller can correct it.
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


def _read_source(reads: Reading, inputs: ConditionInputs) -> object:
    match reads:
        case FromContext(kind="key"):
            return inputs.context.get(reads.path, ABSENT)
        case FromContext():
            return value_at(inputs.context, reads.path)
        case LoopDecisions():
            return inputs.loop_decisions or ABSENT
        case Constant():
            return reads.value


def _apply_operation(operation: Operation, inputs: list[object], path: str | None) -> Verdict:
    """Apply an operation to its inputs. An undecided input gives an undecided result, unless another part decides."""
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
            decisions = cast("tuple[tuple[str | None, LoopDecision], ...]", () if first is ABSENT else first)
            return evaluate_loop_control(operation, decisions)


_NUMBER = "a number that JSON keeps exact"


def _describe_inexact_number(value: object) -> str | None:
    """Describe a number that JSON cannot represent exactly; None for any other value."""
    if isinstance(value, float) and not isfinite(value):
        return "a number that is not finite"
    if isinstance(value, int) and abs(value) > SAFE_INTEGER_MAX:
        return "an integer of 2^53 or beyond"
    return None


def _check_payload(node: Action, value: object, path: str | None) -> Undecided | None:
    """Return why a key cannot be set to a value, or None if it can."""
    if isinstance(value, Undecided):
        return value
    if value is ABSENT:
        return Undecided(path=path, found="not set", expected="a value")
    fault = _describe_inexact_number(value)
    if fault is not None:
        return Undecided(path=path, found=fault, expected=_NUMBER)
    expected = find_expected_kind(node.effect.type, value)
    return None if expected is None else Undecided(path=path, found=describe_kind(value), expected=expected)


def _value_json(value: object) -> Json:
    if isinstance(value, Undecided):
        return {"undecided": _undecided_json(value)}
    if value is ABSENT:
        return {"absent": True}
    if isinstance(value, tuple):
        return {"value": [list(pair) for pair in cast("tuple[tuple[Json, Json], ...]", value)]}
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
