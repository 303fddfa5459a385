"""One pass over a decision graph: evaluates each node once, on one snapshot of the inputs.

Effects are collected, not applied. Passes share no state: only a later pass sees an effect, through the context.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Literal, TypeAlias, assert_never, cast

from interlock.decide.evaluate import (
    ABSENT,
    EVIDENCE_ROOTS,
    LOOP_CONTROL,
    NOT_SET,
    ConditionInputs,
    Undecided,
    Verdict,
    combine_verdicts,
    evaluate,
)
from interlock.decide.graph import Action, Compute, Constant, EmitIntent, SetKey, Source, Trigger
from interlock.decide.schedule import Schedule, ScheduledNode
from interlock.decide.value import (
    INTENT_FIELD,
    NUMBER,
    VALUE_TERMS,
    CalculationError,
    calculate,
    describe_inexact_number,
    describe_unsendable,
)
from interlock.kernel.budgets import EVENT_FIELDS_BYTES_MAX
from interlock.kernel.canonical import Json, JsonScalar, canonical_bytes
from interlock.kernel.frozen import frozen, mutable, positional

Conform: TypeAlias = Callable[[str, Json], Json | Undecided]
"""Holds a value to the declaration of a context key. It is pure."""
OutcomeKind = Literal["completed", "skipped", "rejected", "failed", "cancelled", "attempted"]
"""The outcome of an action. `attempted`: something is sent outside the server, and whether it arrives is not known."""


@frozen
class Outcome:
    """The outcome of one action.

    Completed: it sets a key. Attempted: it sends an intent. Skipped: its gate is closed, or the evidence that it reads
    was not sent. Rejected: a value does not fit. Failed: something that a value needs is missing. Cancelled: the pass
    was aborted. `why` says what is wrong with the value, or which undecided trigger closed the gate.
    """

    kind: OutcomeKind
    why: Undecided | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the outcome as JSON."""
        why: dict[str, Json] = {} if self.why is None else {"why": _undecided_json(self.why)}
        return {"kind": self.kind, **why}


@frozen
class SetEffect:
    """An effect of an action: set a context key to a value. Null deletes the key."""

    action: str
    key: str
    value: Json


@frozen
class EmitEffect:
    """An effect of an action: send an intent of a kind with these fields. `number` is its place in the step."""

    action: str
    number: int
    sends: str
    fields: Mapping[str, JsonScalar]


@frozen
class PassResult:
    """The results of a pass, by node id, in the order of evaluation.

    `values` holds the results of sources and computes: a value, ABSENT, or an `Undecided`. `read` holds the values that
    were read from the snapshot, by path, without those that are not set. `triggers` says whether each trigger emitted.
    `effects` and `intents` are in the order of their actions; a key that an intent sets is one of `effects`.
    """

    values: Mapping[str, object]
    read: Mapping[str, Json]
    triggers: Mapping[str, Verdict]
    outcomes: Mapping[str, Outcome]
    effects: tuple[SetEffect, ...]
    intents: tuple[EmitEffect, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """Return the results as JSON. The same graph and inputs always give the same value."""
        effects: list[Json] = [
            {"kind": "set", "action": effect.action, "key": effect.key, "value": effect.value}
            for effect in self.effects
        ]
        effects += [
            {"kind": "emit", "action": one.action, "sends": one.sends, "fields": cast("Json", dict(one.fields))}
            for one in self.intents
        ]
        return {
            "values": {node: _value_json(value) for node, value in self.values.items()},
            "triggers": {node: _trigger_json(verdict) for node, verdict in self.triggers.items()},
            "outcomes": {node: outcome.to_json() for node, outcome in self.outcomes.items()},
            "effects": effects,
        }


@frozen
class PassAborted:
    """A computation failed, so the whole pass has no outcome and no effect.

    `name` is the condition that failed, or the key whose value failed (`is_value`). `read` holds what was read until
    then. Every action of the pass was cancelled, also one that was not reached.
    """

    node: str
    name: str
    is_value: bool
    read: Mapping[str, Json]
    outcomes: Mapping[str, Outcome]
    found: str
    expected: str


def run_pass(
    schedule: Schedule, inputs: ConditionInputs, conform: Conform = lambda _, value: value
) -> PassResult | PassAborted:
    """Evaluate every node of a graph once. Pure: the same graph and inputs always give the same result.

    `conform` returns the value as it is set under a key, or why it does not fit. If the computation of a node fails,
    the result is `PassAborted`: no action takes effect.
    """
    state = _PassState(schedule=schedule, inputs=inputs, conform=conform)
    for scheduled in schedule.nodes:
        aborted = state.evaluate(scheduled)
        if aborted is not None:
            return aborted
    return PassResult(
        values=state.values,
        read=state.read,
        triggers=state.triggers,
        outcomes=state.outcomes,
        effects=tuple(state.effects),
        intents=tuple(state.intents),
    )


@positional
class _Ports:
    """The inputs of one compute: what leads into its ports, by their names."""

    values: Mapping[str, object]

    def read(self, name: str) -> object:
        return self.values[name]


@mutable
class _PassState:
    """The results of a pass so far."""

    schedule: Schedule
    inputs: ConditionInputs
    conform: Conform
    paths: dict[str, str] = field(default_factory=dict[str, str])
    values: dict[str, object] = field(default_factory=dict[str, object])
    read: dict[str, Json] = field(default_factory=dict[str, Json])
    triggers: dict[str, Verdict] = field(default_factory=dict[str, Verdict])
    outcomes: dict[str, Outcome] = field(default_factory=dict[str, Outcome])
    effects: list[SetEffect] = field(default_factory=list[SetEffect])
    intents: list[EmitEffect] = field(default_factory=list[EmitEffect])

    def evaluate(self, scheduled: ScheduledNode) -> PassAborted | None:
        node = scheduled.node
        match node:
            case Source():
                self.values[node.id] = self._read(node)
            case Compute():
                computed = self._compute(node, scheduled)
                if isinstance(computed, PassAborted):
                    return computed
                self.values[node.id] = computed
            case Trigger():
                self.triggers[node.id] = self._join(scheduled.inputs.values())
            case Action():
                self.outcomes[node.id] = self._act(node, scheduled.inputs)
            case _:
                assert_never(node)
        return None

    def _read(self, node: Source) -> object:
        if isinstance(node.reads, Constant):
            return node.reads.value
        self.paths[node.id] = node.reads.path
        value = self.inputs.read(node.reads.name)
        if node.reads.kind == LOOP_CONTROL:
            decisions = cast("tuple[tuple[str | None, str], ...]", value)
            self.read[f"wr.{LOOP_CONTROL}"] = [f"{loop or '*'}:{decision}" for loop, decision in decisions]
        elif value is not ABSENT:
            self.read[node.reads.path] = cast("Json", value)
        return value

    def _join(self, inputs: Iterable[str]) -> Verdict:
        """Join truths and events by `and`: an event is true if it occurred."""
        known = [self.triggers[one] if one in self.triggers else self.values[one] for one in inputs]
        return combine_verdicts(cast("list[Verdict]", known), deciding=False)

    def _compute(self, node: Compute, scheduled: ScheduledNode) -> object:
        ports = {port: self.values[source] for port, source in scheduled.inputs.items()}
        fault = next(filter(None, map(describe_inexact_number, ports.values())), None)
        if fault is not None:
            return self._abort(node, fault, NUMBER)
        try:
            if isinstance(node.of, VALUE_TERMS):
                return calculate(node.of, _Ports(ports))
            return evaluate(node.of, _Ports(ports))
        except CalculationError as error:
            return self._abort(node, error.found, error.expected)
        except (TypeError, ValueError, ArithmeticError, RecursionError) as error:
            # Constants are not checked when a graph is built. A failed computation must abort the whole pass.
            return self._abort(node, f"a failure ({type(error).__name__}) of `{node.of.op}`", "a result")

    def _abort(self, node: Compute, found: str, expected: str) -> PassAborted:
        actions = [one.node.id for one in self.schedule.nodes if isinstance(one.node, Action)]
        return PassAborted(
            node=node.id,
            name=node.name,
            is_value=node.is_value,
            read=self.read,
            outcomes=dict.fromkeys(actions, Outcome(kind="cancelled")),
            found=found,
            expected=expected,
        )

    def _act(self, node: Action, inputs: Mapping[str, str]) -> Outcome:
        gate = self._join(list(inputs.values())[: node.gates])
        if isinstance(gate, Undecided):
            return Outcome(kind="skipped", why=None if _is_unsent(gate) else gate)
        if not gate:
            return Outcome(kind="skipped")
        payload: dict[str, Json] = {}
        for port in node.effect.payload:
            value = self._payload(inputs[port])
            if isinstance(value, Outcome):
                return value
            payload[port] = value
        match node.effect:
            case SetKey(key=key):
                return self._set(node.id, {key: payload["value"]})
            case EmitIntent():
                return self._emit(node.id, node.effect, payload)
            case _:
                assert_never(node.effect)

    def _payload(self, source: str) -> "Json | Outcome":
        """Return the value that a node gives an action, or the outcome of the action if there is none."""
        value = self.values[source]
        if value is ABSENT:
            value = Undecided(path=self.paths[source], found=NOT_SET, expected="a value")
        if isinstance(value, Undecided):
            return Outcome(kind="skipped") if _is_unsent(value) else Outcome(kind="failed", why=value)
        fault = describe_inexact_number(value)
        if fault is not None:
            return Outcome(kind="rejected", why=Undecided(path=None, found=fault, expected=NUMBER))
        return cast("Json", value)

    def _set(self, action: str, values: Mapping[str, Json]) -> Outcome:
        """Set context keys, all or none of them."""
        held: list[SetEffect] = []
        for key, value in values.items():
            fitted = self.conform(key, value)
            if isinstance(fitted, Undecided):
                return Outcome(kind="rejected", why=fitted)
            held.append(SetEffect(action=action, key=key, value=fitted))
        self.effects += held
        return Outcome(kind="completed")

    def _emit(self, action: str, effect: EmitIntent, payload: Mapping[str, Json]) -> Outcome:
        fields = {name: payload[f"field.{name}"] for name in effect.fields}
        for name, value in fields.items():
            found = describe_unsendable(value)
            if found is not None:
                why = Undecided(path=None, found=f"{name}: {found}", expected=INTENT_FIELD)
                return Outcome(kind="rejected", why=why)
        size = len(canonical_bytes(fields))
        if size > EVENT_FIELDS_BYTES_MAX:
            limit = f"at most {EVENT_FIELDS_BYTES_MAX} bytes in all fields"
            return Outcome(kind="rejected", why=Undecided(path=None, found=f"{size} bytes", expected=limit))
        mirrored = self._set(action, {key: fields[name] for key, name in sorted(effect.mirror.items())})
        if mirrored.kind != "completed":
            return mirrored
        scalars = cast("dict[str, JsonScalar]", fields)
        self.intents.append(EmitEffect(action=action, number=effect.number, sends=effect.sends, fields=scalars))
        return Outcome(kind="attempted")


def _is_unsent(missing: Undecided) -> bool:
    """Say whether what is missing is optional evidence that was not sent: that is no fault."""
    return missing.found == NOT_SET and (missing.path or "").partition(".")[0] in EVIDENCE_ROOTS


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


def _undecided_json(undecided: Undecided) -> Json:
    return {"path": undecided.path, "found": undecided.found, "wanted": undecided.expected}
