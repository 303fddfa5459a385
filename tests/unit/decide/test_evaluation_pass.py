"""One pass over a decision graph: its verdicts, its effects, rejected actions, and passes that abort."""

import random
from typing import Any, cast, get_args

import pytest
from pydantic import TypeAdapter

from interlock.decide.catalogue import CATALOGUE, catalogue_digest
from interlock.decide.condition import Condition, Operator
from interlock.decide.evaluate import ABSENT, ConditionInputs, LoopDecision, Undecided
from interlock.decide.evaluation_pass import Outcome, OutcomeKind, PassAborted, PassResult, SetEffect, run_pass
from interlock.decide.graph import Constant, DecisionGraph, EmitIntent, Reading, SetKey
from interlock.decide.lowering import Assignment, build_graph, trigger_id
from interlock.decide.schedule import Schedule, build_schedule
from interlock.decide.value import OPERANDS, Value
from interlock.kernel.canonical import Json, NotCanonicalError, canonical_bytes, digest_of
from interlock.record.context import Context, merge_context

CONDITION: TypeAdapter[Condition] = TypeAdapter(Condition)
VALUE: TypeAdapter[Value] = TypeAdapter(Value)
YES: dict[str, Any] = {"op": "equals", "var": "yes", "value": True}
NO: dict[str, Any] = {"op": "not", "of": YES}
UNSET: dict[str, Any] = {"op": "equals", "var": "gone.part", "value": 1}
GIVEN: dict[str, Json] = {"yes": True, "text": "word", "number": 3, "box": {"deep": [1, 2]}}


def scheduled(graph: DecisionGraph) -> Schedule:
    found = build_schedule(graph)
    assert isinstance(found, Schedule), found
    return found


def assignment(
    key: str,
    value: Any = None,
    *,
    path: str | None = None,
    compute: dict[str, Any] | None = None,
    when: tuple[str, ...] = (),
) -> Assignment:
    read = {"op": "read", "var": path} if path is not None else {"op": "constant", "value": value}
    return Assignment(
        name=key,
        effect=SetKey(kind="set", key=key),
        payload=(VALUE.validate_python(compute or read),),
        when=when,
    )


def lowered(*assignments: Assignment, **conditions: dict[str, Any]) -> DecisionGraph:
    return build_graph({name: CONDITION.validate_python(one) for name, one in conditions.items()}, assignments)


UNFIT = Undecided(path=None, found="a number", expected="a string")


def conform(key: str, value: Json) -> Json | Undecided:
    """Return the value in lower case for the key `text`, which takes no numbers; other keys take anything."""
    if key != "text":
        return value
    return value.lower() if isinstance(value, str) else UNFIT


def ran(graph: DecisionGraph, context: Context | None = None) -> PassResult:
    found = run_pass(scheduled(graph), ConditionInputs(context=GIVEN if context is None else context), conform)
    assert isinstance(found, PassResult), found
    return found


def aborted(graph: DecisionGraph, context: dict[str, Any]) -> PassAborted:
    found = run_pass(scheduled(graph), ConditionInputs(context=context))
    assert isinstance(found, PassAborted), found
    return found


def rewired(nodes: list[dict[str, Any]], wires: list[str]) -> DecisionGraph:
    edges = [dict(zip(("source", "target", "port"), wire.split(), strict=True)) for wire in wires]
    return DecisionGraph.of_json({"v": 1, "nodes": nodes, "edges": edges})


MANY = lowered(
    assignment("mode", path="text", when=("yes", "any")),
    assignment("copy", path="box"),
    assignment("lost", path="gone"),
    assignment("never", value=1, when=("no",)),
    yes=YES,
    no=NO,
    unset=UNSET,
    any={"op": "or", "of": [UNSET, {"op": "gt", "var": "number", "value": 2}]},
    on={"op": "loop_control", "whenAbsent": "hold"},
)


@pytest.mark.inv("DEC-1")
def test_a_hundred_passes_over_shuffled_graphs_give_the_same_bytes() -> None:
    shuffling = random.Random(3)
    given = ConditionInputs(context=GIVEN, loop_decisions=((None, "stop"), ("l", "continue")))
    found: set[tuple[str, bytes]] = set()
    for _ in range(100):
        nodes, edges = list(MANY.nodes), list(MANY.edges)
        shuffling.shuffle(nodes)
        shuffling.shuffle(edges)
        graph = DecisionGraph(v=1, nodes=tuple(nodes), edges=tuple(edges))
        done = run_pass(scheduled(graph), given)
        assert isinstance(done, PassResult)
        # Not sorted: the order of nodes, outcomes and effects is part of what must not differ.
        found.add((graph.digest(), repr(done.to_json()).encode() + canonical_bytes(done.to_json())))
    assert len(found) == 1


def test_a_pass_result_as_json_lists_every_node() -> None:
    as_json = ran(lowered(assignment("k", path="gone"), yes=YES, no=NO, unset=UNSET)).to_json()
    undecided = {"undecided": {"path": "gone.part", "found": "not set", "wanted": "a value"}}
    assert as_json["triggers"] == {
        "trigger:*": "emitted",
        "trigger:no": "not_emitted",
        "trigger:unset": undecided,
        "trigger:yes": "emitted",
    }
    values = cast("dict[str, Json]", as_json["values"])
    assert values["path:yes"] == {"value": True}
    assert values["path:gone"] == {"absent": True}
    assert values["compute:unset"] == undecided
    why = {"path": "gone", "found": "not set", "wanted": "a value"}
    assert as_json["outcomes"] == {"action:k": {"kind": "failed", "why": why}}
    assert as_json["effects"] == []


@pytest.mark.inv("DEC-6")
def test_each_node_is_evaluated_once_with_its_inputs_before_it() -> None:
    order = scheduled(MANY).nodes
    before: set[str] = set()
    for one in order:
        assert set(one.inputs.values()) <= before
        before.add(one.node.id)
    assert sorted(one.node.id for one in order) == sorted(node.id for node in MANY.nodes)


@pytest.mark.inv("DEC-4")
def test_a_trigger_that_does_not_emit_leaves_its_action_skipped_and_without_effect() -> None:
    done = ran(lowered(assignment("k", value=1, when=("no",)), no=NO))
    assert done.triggers[trigger_id("no")] is False
    assert (done.outcomes, done.effects) == ({"action:k": Outcome(kind="skipped")}, ())


@pytest.mark.inv("DEC-4")
@pytest.mark.parametrize(
    ("when", "kind"), [(("yes", "also"), "completed"), (("yes", "no"), "skipped"), (("no", "yes"), "skipped")]
)
def test_all_the_triggers_of_an_action_must_emit(when: tuple[str, ...], kind: str) -> None:
    done = ran(lowered(assignment("k", value=1, when=when), yes=YES, also=YES, no=NO))
    assert done.outcomes["action:k"].kind == kind
    assert len(done.effects) == (kind == "completed")


@pytest.mark.parametrize(("other", "is_reported"), [("yes", True), ("no", False)])
def test_an_undecided_gate_is_reported_unless_another_is_closed(other: str, *, is_reported: bool) -> None:
    done = ran(lowered(assignment("k", value=1, when=("unset", other)), yes=YES, no=NO, unset=UNSET))
    why = Undecided(path="gone.part", found="not set", expected="a value") if is_reported else None
    assert done.outcomes["action:k"] == Outcome(kind="skipped", why=why)
    assert done.effects == ()


@pytest.mark.inv("DEC-7")
def test_a_chained_trigger_emits_where_its_truth_holds_and_its_events_occurred() -> None:
    graph = lowered(yes=YES, no=NO)
    for after, truth, emits in (("yes", "yes", True), ("no", "yes", False), ("yes", "no", False)):
        nodes = [*cast("list[dict[str, Any]]", graph.to_json()["nodes"]), {"kind": "trigger", "id": "t", "after": 1}]
        wires = [f"{edge.source} {edge.target} {edge.port}" for edge in graph.edges]
        done = ran(rewired(nodes, [*wires, f"trigger:{after} t after.0", f"compute:{truth} t when"]))
        assert done.triggers["t"] is emits


@pytest.mark.inv("DEC-4")
def test_a_source_sees_the_old_value_in_the_pass_that_sets_it_and_the_new_one_in_the_next() -> None:
    graph = lowered(assignment("number", value=4, when=("three",)), three={"op": "equals", "var": "number", "value": 3})
    first = ran(graph)
    assert (first.values["path:number"], first.effects) == (
        3,
        (SetEffect(action="action:number", key="number", value=4),),
    )
    second = ran(graph, merge_context(GIVEN, {effect.key: effect.value for effect in first.effects}))
    assert (second.values["path:number"], second.outcomes["action:number"].kind) == (4, "skipped")


@pytest.mark.inv("DEC-8")
def test_a_latch_made_of_reading_and_setting_fires_once_in_three_passes() -> None:
    unlatched: dict[str, Any] = {"op": "exists", "var": "fired", "value": False}
    graph = lowered(
        assignment("fired", value=True, when=("first",)),
        assignment("copy", path="text", when=("first",)),
        first=unlatched,
    )
    context: Context = GIVEN
    fired: list[str] = []
    for _ in range(3):
        done = ran(graph, context)
        fired.append(done.outcomes["action:copy"].kind)
        context = merge_context(context, {effect.key: effect.value for effect in done.effects})
    assert fired == ["completed", "skipped", "skipped"]
    assert context["copy"] == "word"


@pytest.mark.inv("DEC-8")
def test_a_latch_stays_closed_until_its_key_is_set_and_closes_itself_again() -> None:
    """A trigger on a key that is not set is undecided, and an undecided trigger opens nothing."""
    armed: dict[str, Any] = {"op": "equals", "var": "armed", "value": True}
    graph = lowered(assignment("armed", value=False, when=("armed",)), armed=armed)
    context: Context = GIVEN
    fired: list[str] = []
    for incoming in ({}, {"armed": True}, {}):
        context = merge_context(context, incoming)
        done = ran(graph, context)
        fired.append(done.outcomes["action:armed"].kind)
        context = merge_context(context, {effect.key: effect.value for effect in done.effects})
    assert fired == ["skipped", "completed", "skipped"]
    assert context["armed"] is False


@pytest.mark.inv("DEC-4")
def test_an_action_that_is_rejected_or_fails_has_no_effect_and_the_others_run() -> None:
    assignments = [assignment("a", path="gone"), assignment("b", path="number")]
    done = ran(lowered(*assignments, assignment("text", path="number")))
    assert done.outcomes == {
        "action:a": Outcome(kind="failed", why=Undecided(path="gone", found="not set", expected="a value")),
        "action:b": Outcome(kind="completed"),
        "action:text": Outcome(kind="rejected", why=UNFIT),
    }
    assert [effect.key for effect in done.effects] == ["b"]


def test_a_value_is_set_as_its_declaration_spells_it() -> None:
    assert [effect.value for effect in ran(lowered(assignment("text", "WORD"))).effects] == ["word"]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 2**53, 2.0**53])
def test_a_payload_that_json_cannot_carry_is_rejected(number: float) -> None:
    done = ran(lowered(assignment("k", path="n")), {"n": number})
    assert (done.outcomes["action:k"].kind, done.effects) == ("rejected", ())


def test_a_payload_that_is_a_truth_is_set_and_fails_if_it_is_undecided() -> None:
    for condition, kind, effects in ((YES, "completed", [True]), (UNSET, "failed", [])):
        graph = lowered(assignment("k", value=0), c=condition)
        wires = [f"{e.source} {e.target} {e.port}" for e in graph.edges if e.port != "value"]
        nodes = cast("list[dict[str, Any]]", graph.to_json()["nodes"])
        done = ran(rewired(nodes, [*wires, "compute:c action:k value"]))
        assert (done.outcomes["action:k"].kind, [effect.value for effect in done.effects]) == (kind, effects)


@pytest.mark.parametrize("is_sent", [True, False])
def test_evidence_that_was_not_sent_skips_the_action_even_if_the_context_has_such_a_key(*, is_sent: bool) -> None:
    evidence: dict[str, Json] = {"artifact": {"n": 1}} if is_sent else {}
    given = ConditionInputs(context={"artifact": {"n": 2}}, evidence=evidence)
    done = run_pass(scheduled(lowered(assignment("k", path="artifact.n"))), given)
    assert isinstance(done, PassResult)
    assert done.outcomes == {"action:k": Outcome(kind="completed" if is_sent else "skipped")}
    assert [effect.value for effect in done.effects] == ([1] if is_sent else [])


def test_null_may_be_set_to_delete_a_key() -> None:
    done = ran(lowered(assignment("number", value=None)))
    assert "number" not in merge_context(GIVEN, {effect.key: effect.value for effect in done.effects})


WORKS = assignment("fine", value=1)


@pytest.mark.parametrize(
    ("number", "found"),
    [
        (float("nan"), "a number that is not finite"),
        (float("-inf"), "a number that is not finite"),
        (2**53, "an integer of 2^53 or beyond"),
    ],
)
def test_a_number_that_json_cannot_carry_aborts_the_pass(number: float, found: str) -> None:
    graph = lowered(WORKS, first={"op": "or", "of": [YES, {"op": "gt", "var": "n", "value": 1}]})
    done = aborted(graph, {"yes": True, "n": number})
    assert (done.node, done.name, done.found) == ("compute:first", "first", found)


@pytest.mark.inv("DEC-5")
@pytest.mark.parametrize(
    "broken",
    [
        {"op": "in", "var": "text", "value": 3},
        {"op": "starts_with", "var": "text", "value": 3},
        {"op": "gt", "var": "number", "value": "3"},
    ],
)
def test_a_computation_that_fails_aborts_the_pass_naming_node_and_condition(broken: dict[str, Any]) -> None:
    done = aborted(lowered(WORKS, first=YES, second=broken), GIVEN)
    assert (done.node, done.name) == ("compute:second", "second")
    assert (done.found, done.expected) == (f"a failure (TypeError) of `{broken['op']}`", "a result")
    assert not hasattr(done, "effects")


DIVIDED: dict[str, Any] = {"op": "divide", "of": [{"op": "read", "var": "number"}, {"op": "read", "var": "zero"}]}


@pytest.mark.inv("DEC-5", "DEC-9")
@pytest.mark.parametrize(
    ("zero", "found", "expected"),
    [(0, "a division by zero", "a divisor other than 0"), ("0", "a string", "a number"), (None, "null", "a number")],
)
def test_a_value_that_cannot_be_computed_cancels_every_action_of_the_pass(
    zero: Json, found: str, expected: str
) -> None:
    graph = lowered(assignment("a", 1), assignment("k", compute=DIVIDED), assignment("z", 1, when=("no",)), no=NO)
    done = aborted(graph, {**GIVEN, "zero": zero})
    assert (done.node, done.name, done.is_value, done.found, done.expected) == ("value:k", "k", True, found, expected)
    assert done.outcomes == dict.fromkeys(("action:a", "action:k", "action:z"), Outcome(kind="cancelled"))


def test_a_value_that_lacks_an_input_fails_its_action_alone() -> None:
    done = ran(lowered(assignment("a", 1), assignment("k", compute=DIVIDED)))
    missing = Undecided(path="zero", found="not set", expected="a value")
    assert done.outcomes == {"action:a": Outcome(kind="completed"), "action:k": Outcome(kind="failed", why=missing)}
    assert done.read == {"number": 3}


def test_a_computed_value_that_does_not_fit_is_rejected() -> None:
    value = {"op": "negate", "of": [{"op": "read", "var": "number"}]}
    assert ran(lowered(assignment("text", compute=value))).outcomes["action:text"].kind == "rejected"
    assert [effect.value for effect in ran(lowered(assignment("k", compute=value))).effects] == [-3]


@pytest.mark.parametrize("is_sent", [True, False])
def test_a_gate_on_evidence_that_was_not_sent_skips_the_action(*, is_sent: bool) -> None:
    graph = lowered(assignment("k", 1, when=("many",)), many={"op": "gt", "var": "artifact.n", "value": 0})
    evidence: dict[str, Json] = {"artifact": {"n": 1}} if is_sent else {}
    done = run_pass(scheduled(graph), ConditionInputs(context={}, evidence=evidence))
    assert isinstance(done, PassResult)
    assert done.outcomes == {"action:k": Outcome(kind="completed" if is_sent else "skipped")}


@pytest.mark.inv("DEC-1")
def test_independent_actions_run_in_the_order_of_their_ids() -> None:
    keys = ["z", "B", "a", "é", "a-1", "10", "9"]
    done = ran(lowered(*(assignment(key, value=1) for key in keys)))
    assert [effect.key for effect in done.effects] == ["10", "9", "B", "a", "a-1", "z", "é"]
    assert list(done.outcomes) == [f"action:{effect.key}" for effect in done.effects]


@pytest.mark.inv("DEC-1")
def test_a_node_comes_as_soon_as_its_inputs_are_there_and_its_id_is_the_least() -> None:
    graph = lowered(a={"op": "exists", "var": "z", "value": True}, b={"op": "exists", "var": "y", "value": True})
    order = [one.node.id for one in scheduled(graph).nodes]
    assert order == ["path:y", "compute:b", "path:z", "compute:a", "trigger:a", "trigger:b"]


@pytest.mark.inv("DEC-10")
def test_incoming_context_wins_over_stored_and_null_leaves_nothing_to_read() -> None:
    graph = lowered(any={"op": "equals", "var": "a", "value": 2})
    for incoming, value in (({"a": 2}, 2), ({}, 1), ({"a": None}, ABSENT)):
        done = ran(graph, merge_context({"a": 1}, cast("dict[str, Json]", incoming)))
        assert done.values["path:a"] == value


@pytest.mark.inv("DEC-13")
def test_a_missing_key_is_reported_only_if_the_decision_needs_it() -> None:
    settled = lowered(
        needed={"op": "and", "of": [YES, UNSET]},
        settled={"op": "and", "of": [UNSET, NO]},
        other={"op": "or", "of": [UNSET, YES]},
    )
    done = ran(settled)
    assert done.triggers == {
        "trigger:needed": Undecided(path="gone.part", found="not set", expected="a value"),
        "trigger:other": True,
        "trigger:settled": False,
    }


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ((), None),
        (((None, "continue"),), True),
        ((("other", "stop"), ("l", "stop")), False),
        ((("other", "stop"),), None),
    ],
)
def test_loop_control_is_read_from_its_source(
    said: tuple[tuple[str | None, LoopDecision], ...],
    verdict: bool | None,  # noqa: FBT001 — a table
) -> None:
    graph = lowered(on={"op": "loop_control", "loopId": "l", "whenAbsent": "missing"})
    done = run_pass(scheduled(graph), ConditionInputs(context={}, loop_decisions=said))
    assert isinstance(done, PassResult)
    assert done.values["loop_control"] == said
    assert done.read == {"wr.loop_control": [f"{loop or '*'}:{decision}" for loop, decision in said]}
    missing = Undecided(path=None, found="no loop-control artifact", expected="`continue` or `stop`")
    assert done.triggers[trigger_id("on")] == (missing if verdict is None else verdict)


@pytest.mark.parametrize("value", [float("nan"), 2**53, "\ud800", {1: 2}], ids=ascii)
def test_what_json_cannot_carry_has_no_digest(value: Any) -> None:
    done = ran(lowered(any={"op": "exists", "var": "k.v", "value": True}), {"k": {"v": [value]}})
    with pytest.raises(NotCanonicalError):
        digest_of(done.to_json())


def test_the_catalogue_names_every_primitive_and_nothing_else() -> None:
    reads = {kind for one in (Reading, Constant) for kind in get_args(one.__annotations__["kind"])}
    effects = {kind for one in (SetKey, EmitIntent) for kind in get_args(one.__annotations__["kind"])}
    assert set(CATALOGUE) == {
        "trigger",
        *(f"source.{kind}" for kind in reads),
        *(f"compute.{op}" for op in (*get_args(Operator), "and", "or", "not", "loop_control")),
        *(f"compute.{op}" for op in (*OPERANDS, "read", "constant", "if")),
        *(f"action.{kind}" for kind in effects),
    }


def test_the_digest_of_the_catalogue_is_that_of_its_names_and_versions() -> None:
    assert catalogue_digest() == digest_of(dict(CATALOGUE))
    assert catalogue_digest() == "sha256:d2f24c9dafe22528a469b0a08db46542020ae22e39547bee795a379568f804f8"


@pytest.mark.inv("DEC-9")
def test_the_outcomes_are_a_closed_set_with_room_for_effects_outside() -> None:
    assert set(get_args(OutcomeKind)) == {"completed", "skipped", "rejected", "failed", "cancelled", "attempted"}
