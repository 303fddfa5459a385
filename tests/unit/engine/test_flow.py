"""How a run goes on: through decisions, loops and barriers, each decided once; where one cannot be, nothing moves."""

from typing import Any

import pytest
from tests.support.flow import (
    IS_FAST,
    SOME_NODE,
    Walker,
    at_some_node,
    choose,
    compiled,
    compiled_dialect,
    deciding,
    loop,
    parallel,
    step,
)
from tests.support.record import WORKFLOW_HASH

from interlock.decide.evaluate import Undecided
from interlock.engine.walk.evaluating import Evaluating
from interlock.engine.walk.flow import (
    EndlessWalk,
    LoopLimit,
    WalkResult,
    loop_decisions_of,
    run_to_next_task,
    with_loop_variables,
)
from interlock.kernel.budgets.workflow import (
    TRACE_ENTRIES_MAX,
    TRACE_SUMMARY_BYTES_MAX,
    WALK_NODES_MAX,
)
from interlock.kernel.canonical import Json
from interlock.plan.fit import snapshot_fault
from interlock.plan.walk import ExecutionState
from interlock.record.payloads import IterationRef, TraceEntry
from interlock.record.snapshot import Complete, ListFrame, LoopFrame, Running, build_snapshot

A, B, C, D = step("a"), step("b"), step("c"), step("d")
Document = dict[str, Any]


def ways(*steps: Document, **context: Json) -> list[str]:
    return Walker(compiled(*steps), **context).ways()


def result(trace: tuple[TraceEntry, ...]) -> list[tuple[str, str]]:
    return [(entry.kind, entry.summary) for entry in trace]


# Plain steps.


def test_plain_steps_are_handed_out_one_after_the_other_and_nothing_is_decided() -> None:
    walker = Walker(compiled(A, B))
    assert (walker.at, walker.trace) == ("a", ())
    assert (walker.done().at, walker.trace) == ("b", ())
    assert (walker.done().at, walker.trace) == (None, ())
    assert walker.state.completed.values == ("a", "b")
    assert walker.state.edges_taken.values == ()


# Conditions on steps, and choices.


@pytest.mark.parametrize(
    ("mode", "found", "skipped", "taken"),
    [("fast", ["a", "b", "c"], (), "b--when>b"), ("slow", ["a", "c"], ("b",), "b--when>c")],
)
def test_a_step_is_handed_out_where_its_condition_holds_and_else_skipped(
    mode: str, found: list[str], skipped: tuple[str, ...], taken: str
) -> None:
    walker = Walker(compiled(A, step("b", when=IS_FAST), C), mode=mode)
    assert walker.ways() == found
    assert walker.state.skipped.values == skipped
    assert walker.state.edges_taken.values == (taken,)
    assert "b--when" in walker.state.completed.values


def test_a_condition_is_read_when_it_is_reached_and_not_before() -> None:
    walker = Walker(compiled(A, step("b", when=IS_FAST), C), mode="slow")
    assert walker.done(mode="fast").at == "b"
    assert Walker(compiled(A, step("b", when=IS_FAST), C), mode="fast").done(mode="slow").at == "c"


@pytest.mark.inv("WALK-4")
def test_a_condition_that_cannot_be_decided_moves_nothing_and_says_what_it_turns_on() -> None:
    walker = Walker(compiled(A, step("b", when=IS_FAST), C))
    assert walker.at == "a"
    before = walker.state
    stuck = walker.done().stuck
    assert stuck.reason == Undecided(path="mode", found="not set", expected="a value")
    assert stuck.node.node_id == "b--when"
    assert walker.state == before
    assert walker.done(mode="fast").at == "b"


def test_a_first_step_that_cannot_be_decided_keeps_the_run_from_beginning() -> None:
    assert Walker(compiled(step("a", when=IS_FAST), B)).stuck.node.node_id == "a--when"
    assert Walker(compiled(step("a", when=IS_FAST), B), mode="slow").at == "b"


THREE_WAYS = choose(
    "c",
    ({"var": "level", "gt": 2}, [step("high"), step("higher")]),
    ({"var": "level", "gt": 1}, [step("middle")]),
    otherwise=[step("low")],
)


@pytest.mark.parametrize(("level", "found"), [(3, ["high", "higher"]), (2, ["middle"]), (1, ["low"])])
def test_of_a_choice_the_first_branch_that_holds_is_taken_and_no_other(level: int, found: list[str]) -> None:
    assert ways(A, THREE_WAYS, B, level=level) == ["a", *found, "b"]


def test_all_that_a_choice_did_not_take_is_skipped_and_one_edge_is_marked() -> None:
    walker = Walker(compiled(A, THREE_WAYS, B), level=2)
    walker.ways()
    assert walker.state.skipped.values == ("high", "higher", "low")
    assert walker.state.edges_taken.values == ("c>middle",)


def test_a_branch_before_the_one_that_would_hold_must_be_decidable() -> None:
    two = choose("c", ({"var": "mode", "equals": "x"}, [step("x")]), ({"var": "level", "gt": 1}, [step("y")]))
    assert Walker(compiled(A, two), level=5).done().stuck.reason == Undecided(
        path="mode", found="not set", expected="a value"
    )


def test_an_otherwise_without_steps_goes_straight_on() -> None:
    one = choose("ch", (IS_FAST, [B]))
    assert ways(A, one, C, mode="slow") == ["a", "c"]
    assert ways(A, one, mode="slow") == ["a"]


@pytest.mark.parametrize(
    ("mode", "level", "found"),
    [("fast", 2, ["x", "y", "z"]), ("fast", 0, ["x", "z"]), ("slow", 2, ["z"]), ("slow", 0, ["z"])],
)
def test_choices_nest_and_conditions_on_blocks_pass_over_all_that_is_inside(
    mode: str, level: int, found: list[str]
) -> None:
    inner = choose("inner", ({"var": "level", "gt": 1}, [step("y")]))
    outer = choose("outer", ({"var": "goal", "exists": False}, [step("x"), inner]), when=IS_FAST)
    assert ways(outer, step("z"), mode=mode, level=level) == found


def test_what_is_decided_is_recorded_with_the_condition_and_the_step_it_led_to() -> None:
    walker = Walker(compiled(A, step("b", when=IS_FAST)), mode="fast").done()
    assert result(walker.trace) == [
        ("evaluated_condition", "`mode` equals 'fast': holds"),
        ("selected_next_step", "Next: Step b"),
    ]
    assert [ref.to_json() for entry in walker.trace for ref in entry.refs or ()] == [
        {"kind": "condition_id", "conditionId": "b--when"},
        {"kind": "step_id", "stepId": "b"},
    ]
    assert result(Walker(compiled(A, step("b", when=IS_FAST)), mode="slow").done().trace) == [
        ("evaluated_condition", "`mode` equals 'fast': does not hold")
    ]


# Needs.


def test_a_step_is_not_handed_out_before_the_keys_it_needs_are_set() -> None:
    workflow = compiled(A, step("b", needs=["mode", "box"]), C)
    walker = Walker(workflow, mode="fast").done()
    assert walker.stuck.reason == Undecided(path="box", found="not set", expected="a value")
    assert walker.stuck.node.node_id == "b"
    assert walker.done(box={}).at == "b"


def test_a_key_that_holds_null_is_not_set_and_false_is() -> None:
    workflow = compiled(A, step("b", needs=["is_urgent"]))
    assert Walker(workflow).done(is_urgent=False).at == "b"
    assert isinstance(Walker(workflow, is_urgent=True).done(is_urgent=None).stuck.reason, Undecided)


def test_what_a_step_that_is_skipped_needs_is_not_asked_for() -> None:
    assert ways(step("a", when=IS_FAST, needs=["box"]), B, mode="slow") == ["b"]


# Parallel branches.


@pytest.mark.inv("WALK-5")
def test_branches_are_handed_out_one_by_one_and_the_barrier_waits_for_all() -> None:
    walker = Walker(compiled(parallel("p", [A, B], [C]), D))
    assert walker.ways() == ["a", "b", "c", "d"]
    assert {"p", "p--join"} <= set(walker.state.completed.values)


def test_a_branch_whose_steps_are_all_skipped_holds_nothing_up() -> None:
    branches = parallel("p", [step("a", when=IS_FAST)], [B])
    assert ways(branches, D, mode="slow") == ["b", "d"]
    both = parallel("p", [step("a", when=IS_FAST)], [step("b", when=IS_FAST)])
    assert ways(both, D, mode="slow") == ["d"]


def test_branches_nest_and_each_barrier_waits_for_its_own() -> None:
    inner = parallel("inner", [A], [B])
    walker = Walker(compiled(parallel("outer", [inner, C], [D]), step("e")))
    found: list[str] = []
    while walker.at != "e":
        found.append(str(walker.at))
        assert ("inner--join" in walker.state.completed.values) == (walker.at in {"c", "d"})
        walker.done()
    assert found == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("name", "others"),
    [("a", ("d",)), ("b", ("c", "d")), ("c", ("b", "d")), ("d", ("a", "b", "c")), ("e", ())],
)
def test_a_step_knows_which_others_need_not_wait_for_it(name: str, others: tuple[str, ...]) -> None:
    inner = parallel("inner", [B], [C])
    workflow = compiled(parallel("outer", [A, inner], [D]), step("e"))
    assert workflow.graphs.parallel_to(name) == others


@pytest.mark.inv("WALK-5")
@pytest.mark.parametrize(
    ("name", "others"),
    [("a", ("b", "c", "d")), ("b", ("a", "d")), ("c", ("a", "d")), ("d", ("a", "b", "c")), ("e", ())],
)
def test_a_step_in_a_loop_is_parallel_to_what_its_loop_is_parallel_to(name: str, others: tuple[str, ...]) -> None:
    counted = loop("l", B, C, **{"for": {"count": 2}})
    workflow = compiled(parallel("p", [A], [counted], [D]), step("e"))
    assert workflow.graphs.parallel_to(name) == others


@pytest.mark.inv("WALK-5")
def test_a_pending_step_names_the_open_steps_outside_of_its_loop_and_none_of_a_loop_that_has_not_begun() -> None:
    counted = loop("l", parallel("q", [B], [C]), **{"for": {"count": 2}})
    walker = Walker(compiled(parallel("p", [A], [counted], [D]), step("e")))
    found: list[tuple[str, list[str]]] = []
    while walker.at is not None:
        marks = ExecutionState(walker.workflow.graphs, walker.state)
        name = str(walker.at).rpartition(":")[2]
        found.append((name, [*marks.ready_beside(name).values()]))
        walker.done()
    assert found == [
        ("a", ["d"]),
        ("b", ["l@0::c", "d"]),
        ("c", ["d"]),
        ("b", ["l@1::c", "d"]),
        ("c", ["d"]),
        ("d", []),
        ("e", []),
    ]


# Loops that count.


@pytest.mark.parametrize(("count", "passes"), [(0, 0), (1, 1), (2, 2), (3, 3), (9, 3)])
@pytest.mark.inv("WALK-3")
def test_a_counted_loop_has_so_many_passes_and_never_more_than_its_bound(count: int, passes: int) -> None:
    assert ways(A, loop("l", B, **{"for": {"count": count}}), C) == ["a", *[f"l@{n}::b" for n in range(passes)], "c"]


@pytest.mark.parametrize(("level", "passes"), [(0, 0), (2, 2), (2.0, 2), (-1, 0)])
def test_a_loop_that_counts_from_the_context_reads_a_whole_number(level: float, passes: int) -> None:
    assert len(ways(loop("l", B, **{"for": {"countFrom": "level"}}), C, level=level)) == passes + 1


@pytest.mark.parametrize(
    ("context", "found"),
    [
        ({}, "not set"),
        ({"level": "2"}, "a string"),
        ({"level": True}, "true or false"),
        ({"level": 1.5}, "a number"),
        ({"level": []}, "a list"),
    ],
)
def test_a_count_that_is_no_whole_number_cannot_be_decided(context: dict[str, Json], found: str) -> None:
    walker = Walker(compiled(A, loop("l", B, **{"for": {"countFrom": "level"}})), **context).done()
    assert walker.stuck.reason == Undecided(path="level", found=found, expected="a whole number")
    assert walker.stuck.node.node_id == "l"


# Loops over items.


@pytest.mark.parametrize("count", range(5))
def test_a_loop_over_items_takes_one_each_pass_up_to_its_bound(count: int) -> None:
    workflow = compiled(loop("l", B, forEach={"items": "things"}), C)
    assert Walker(workflow, things=list(range(count))).ways() == [*[f"l@{n}::b" for n in range(min(count, 3))], "c"]


@pytest.mark.parametrize(("things", "found"), [(None, "not set"), ("ab", "a string"), ({"a": 1}, "an object")])
def test_what_is_no_list_has_no_items(things: Json, found: str) -> None:
    context = {} if things is None else {"things": things}
    walker = Walker(compiled(A, loop("l", B, forEach={"items": "things"})), **context).done()
    assert walker.stuck.reason == Undecided(path="things", found=found, expected="a list")


def test_a_list_that_shrinks_or_grows_under_way_is_read_anew_before_each_pass() -> None:
    workflow = compiled(loop("l", B, forEach={"items": "things"}), C)
    assert Walker(workflow, things=[1, 2]).done(things=[1]).at == "c"
    assert Walker(workflow, things=[1]).done(things=[1, 2]).at == "l@1::b"


# Loops that turn on a condition.


def test_a_while_loop_goes_on_while_its_condition_holds_read_before_every_pass() -> None:
    workflow = compiled(loop("l", B, **{"while": {"var": "level", "gt": 0}}), C)
    assert Walker(workflow, level=0).at == "c"
    walker = Walker(workflow, level=2)
    assert walker.at == "l@0::b"
    assert walker.done(level=1).at == "l@1::b"
    assert walker.done(level=0).at == "c"


def test_an_until_loop_goes_on_until_its_condition_holds() -> None:
    workflow = compiled(loop("l", B, until={"var": "level", "equals": 0}), C)
    assert Walker(workflow, level=0).at == "c"
    walker = Walker(workflow, level=2)
    assert walker.at == "l@0::b"
    assert walker.done(level=1).at == "l@1::b"
    assert walker.done(level=0).at == "c"


def test_a_condition_of_a_loop_reads_the_pass_that_would_begin() -> None:
    assert ways(loop("l", B, **{"while": {"var": "index", "lt": 2}}), C) == ["l@0::b", "l@1::b", "c"]
    assert ways(loop("l", B, until={"var": "iteration", "gt": 2}), C) == ["l@0::b", "l@1::b", "c"]


def test_a_loop_whose_condition_cannot_be_decided_neither_begins_nor_ends() -> None:
    workflow = compiled(A, loop("l", B, **{"while": {"var": "level", "gt": 0}}), C)
    assert Walker(workflow).done().stuck.node.node_id == "l"
    walker = Walker(workflow, level=1).done()
    assert walker.done(level=None).stuck.node.node_id == "l"
    assert walker.done(level=1).at == "l@1::b"


def test_a_loop_that_is_used_up_ends_where_it_may_and_says_so() -> None:
    walker = Walker(compiled(loop("l", B, maxIterations=2, **{"while": {"var": "level", "gt": 0}}), C), level=1)
    walker.done()
    assert walker.done().at == "c"
    assert ("exited_loop", "`l` ends: all 2 passes are used up.") in result(walker.trace)
    refs = [(entry.kind, ref) for entry in walker.trace for ref in entry.refs or ()]
    passes = [(kind, ref.value) for kind, ref in refs if isinstance(ref, IterationRef)]
    assert passes == [("evaluated_condition", 2), ("exited_loop", 2)]


def test_a_loop_that_is_done_in_its_last_pass_is_not_used_up() -> None:
    walker = Walker(compiled(loop("l", B, maxIterations=2, **{"while": {"var": "level", "gt": 0}}), C), level=1)
    walker.done()
    assert walker.done(level=0).at == "c"
    assert ("exited_loop", "`l` ends: its condition says so.") in result(walker.trace)


@pytest.mark.parametrize("spec", [{"for": {"count": 2}}, {"forEach": {"items": "things"}}])
def test_a_loop_that_comes_to_its_end_at_its_bound_is_not_used_up(spec: Document) -> None:
    walker = Walker(compiled(loop("l", B, maxIterations=2, **spec), C), things=[1, 2])
    walker.done()
    assert walker.done().at == "c"
    assert not [entry for entry in walker.trace if "used up" in entry.summary]


# Loops that turn on what the last step of a pass decides.

CONTROLLED = loop("l", B, deciding("d"), **{"while": {"kind": "loop_control"}})


def test_a_loop_under_loop_control_begins_unasked_and_goes_on_as_its_artifact_says() -> None:
    walker = Walker(compiled(A, CONTROLLED, C)).done()
    assert walker.at == "l@0::b"
    assert walker.done().at == "l@0::d"
    assert walker.done("continue").at == "l@1::b"
    assert walker.done().done("stop").at == "c"


@pytest.mark.inv("WALK-7")
def test_without_a_decision_for_this_loop_nothing_moves() -> None:
    walker = Walker(compiled(CONTROLLED, C)).done()
    for decisions in ((), (("other", "stop"),)):
        stuck = walker.done(*decisions).stuck
        assert isinstance(stuck.reason, Undecided)
        assert (stuck.reason.path, stuck.node.node_id) == (None, "l")
    assert walker.done(("l", "stop")).at == "c"


@pytest.mark.inv("WALK-7")
def test_a_loop_under_loop_control_that_is_used_up_blocks_until_it_is_stopped() -> None:
    walker = Walker(compiled(CONTROLLED, C))
    for _ in range(2):
        walker.done().done("continue")
    stuck = walker.done().done("continue").stuck
    assert stuck.reason == LoopLimit(loop_id="l", iteration=3, max_iterations=3)
    assert walker.state.completed.values == ("l@2::b",)
    assert walker.done("stop").at == "c"


def test_a_decision_is_used_up_by_the_loop_that_reads_it() -> None:
    """Of two loops that end in one call, one artifact decides one; the other has none and waits for its own."""
    inner = loop("inner", B, deciding("d"), **{"while": {"kind": "loop_control"}})
    outer = loop("outer", inner, deciding("e"), **{"while": {"kind": "loop_control"}})
    walker = Walker(compiled(outer, C))
    assert walker.at == "outer@0/inner@0::b"
    assert walker.done().done("stop").at == "outer@0::e"
    assert walker.done("continue").at == "outer@1/inner@0::b"
    assert walker.done().done("stop").done("stop").at == "c"


def test_a_decision_that_began_a_pass_does_not_decide_the_next_one() -> None:
    empty = step("b", when=IS_FAST)
    body = loop("l", empty, deciding("d", notes="optional"), **{"while": {"kind": "loop_control"}})
    walker = Walker(compiled(body, C), mode="slow")
    assert walker.at == "l@0::d"
    assert walker.done("continue").at == "l@1::d"


@pytest.mark.parametrize(
    ("artifacts", "decisions"),
    [
        ([], ()),
        ([{"kind": "wr.loop_control", "decision": "stop", "summary": "Done."}], ((None, "stop"),)),
        ([{"kind": "wr.loop_control", "loopId": "l", "decision": "continue"}], (("l", "continue"),)),
        ([{"kind": "wr.loop_control", "loopId": 5, "decision": "continue"}], ((None, "continue"),)),
        ([{"kind": "wr.loop_control", "decision": "perhaps"}], ()),
        ([{"kind": "other", "decision": "stop"}], ()),
        (
            [{"kind": "wr.loop_control", "decision": d} for d in ("stop", "continue")],
            ((None, "stop"), (None, "continue")),
        ),
    ],
)
def test_what_artifacts_say_of_loop_control_is_read_in_their_order(
    artifacts: list[dict[str, Json]], decisions: tuple[tuple[str | None, str], ...]
) -> None:
    assert loop_decisions_of(artifacts) == decisions


# Nested loops.

NESTED = loop("o", A, loop("i", B, **{"for": {"count": 2}}), C, **{"for": {"count": 2}})


def test_nested_loops_count_their_passes_each_for_itself() -> None:
    one = ["a", "i@0::b", "i@1::b", "c"]
    keys = [f"o@{n}/{key}" if key.startswith("i") else f"o@{n}::{key}" for n in (0, 1) for key in one]
    assert ways(NESTED, D) == [*keys, "d"]


@pytest.mark.inv("SNAP-6")
def test_what_a_finished_pass_marked_is_forgotten_and_a_finished_loop_is_one_completed_node() -> None:
    walker = Walker(compiled(NESTED, D))
    for _ in range(3):
        walker.done()
    assert (walker.at, walker.state.completed.values) == ("o@0::c", ("o@0::a", "o@0::i"))
    walker.done()
    assert (walker.at, walker.state.completed.values) == ("o@1::a", ())
    for _ in range(4):
        walker.done()
    assert (walker.at, walker.state.completed.values) == ("d", ("o",))


def test_every_state_on_the_way_fits_the_plan() -> None:
    early = step("early", when={"var": "i_index", "lt": 1})
    body = loop("i", early, CONTROLLED, indexVar="i_index", **{"for": {"count": 2}})
    workflow = compiled(A, parallel("p", [body], [choose("ch", (IS_FAST, [step("x")]))]), step("z"))
    walker, calls = Walker(workflow, mode="slow"), 0
    while walker.at is not None:
        assert snapshot_fault(build_snapshot(WORKFLOW_HASH, walker.state), workflow) is None
        calls += 1
        is_decision = walker.at.endswith("::d")
        walker.done(*(["continue" if calls % 3 == 0 else "stop"] if is_decision else []))
    assert snapshot_fault(build_snapshot(WORKFLOW_HASH, walker.state), workflow) is None
    assert isinstance(walker.state, Complete)


def test_inner_loops_read_what_the_outer_ones_add() -> None:
    inner = loop("i", B, iterationVar="n", forEach={"items": "thing.parts", "itemVar": "part"})
    workflow = compiled(loop("o", inner, forEach={"items": "things", "itemVar": "thing"}), C)
    walker = Walker(workflow, things=[{"parts": ["x"]}, {"parts": []}, {"parts": ["y", "z"]}])
    assert walker.ways() == ["o@0/i@0::b", "o@2/i@0::b", "o@2/i@1::b", "c"]


# Loop variables.


def frames(*passes: tuple[str, int]) -> list[LoopFrame]:
    return [LoopFrame(loop_id=name, iteration=iteration) for name, iteration in passes]


def test_loop_variables_count_passes_from_one_and_indexes_from_zero_and_name_the_item() -> None:
    workflow = compiled(
        loop(
            "o",
            loop("i", B, iterationVar="n", indexVar="at", **{"for": {"count": 2}}),
            forEach={"items": "things", "itemVar": "thing"},
        )
    )
    context: dict[str, Json] = {"things": ["x", "y"], "thing": "mine", "mode": "fast"}
    outer = ListFrame(loop_id="o", iteration=1, items_at=SOME_NODE, items=["x", "y"])
    seen = with_loop_variables(workflow.graphs, context, [outer, *frames(("i", 0))])
    assert dict(seen) == context | {"thing": "y", "iteration": 2, "index": 1, "n": 1, "at": 0}
    assert context == {"things": ["x", "y"], "thing": "mine", "mode": "fast"}
    assert with_loop_variables(workflow.graphs, context, []) is context


def test_of_loops_that_use_one_name_the_inner_one_counts() -> None:
    workflow = compiled(NESTED, D)
    assert dict(with_loop_variables(workflow.graphs, {}, frames(("o", 1), ("i", 0)))) == {"iteration": 1, "index": 0}


def item_of(walker: Walker) -> Json:
    state = walker.state
    assert isinstance(state, Running), "a step is pending"
    return with_loop_variables(walker.workflow.graphs, walker.context, state.loop_stack)["thing"]


def test_a_list_that_changes_under_way_counts_from_the_next_pass_on() -> None:
    workflow = compiled(loop("o", A, B, forEach={"items": "things", "itemVar": "thing"}), C)
    walker = Walker(workflow, things=["x", "y", "z"])
    assert (walker.at, item_of(walker)) == ("o@0::a", "x")
    assert (walker.done(things=["p", "q"]).at, item_of(walker)) == ("o@0::b", "x")
    assert (walker.done().at, item_of(walker)) == ("o@1::a", "q")
    assert walker.done(things=[]).at == "o@1::b"
    assert walker.done().at == "c"


# Loops that are read before every step, as the WorkRail dialect has them.

PLAIN = [{"id": name, "title": name, "prompt": name} for name in ("b", "c")]
LAST = {"id": "z", "title": "z", "prompt": "z"}


def old(kind: str, body: list[Document] | None = None, name: str = "l", **spec: object) -> Document:
    members = {"type": "loop", "title": name, "loop": {"type": kind, "maxIterations": 3, **spec}}
    return {"id": name, "body": body or PLAIN, **members}


OPEN = {"var": "open", "equals": True}


def test_a_loop_that_is_read_before_every_step_ends_in_the_middle_of_a_pass() -> None:
    workflow = compiled_dialect(old("while", condition=OPEN), LAST)
    assert Walker(workflow).at == "z"
    walker = Walker(workflow, open=True)
    assert walker.at == "l@0::b"
    assert walker.done().at == "l@0::c"
    assert walker.done().at == "l@1::b"
    assert walker.done(open=False).at == "z"
    assert walker.state.completed.values == ("l",)
    assert ("exited_loop", "`l` ends: its condition says so.") in result(walker.trace)


def test_an_until_loop_of_the_dialect_is_left_as_soon_as_its_condition_holds() -> None:
    workflow = compiled_dialect(old("until", condition={"var": "open", "equals": False}), LAST)
    assert Walker(workflow, open=True).done(open=False).at == "z"
    assert Walker(workflow, open=True).done().at == "l@0::c"


def test_a_loop_of_the_dialect_that_is_used_up_goes_on_behind_it() -> None:
    walker = Walker(compiled_dialect(old("while", condition=OPEN), LAST), open=True)
    assert walker.ways() == [f"l@{n}::{name}" for n in range(3) for name in ("b", "c")] + ["z"]


def test_a_step_inside_two_loops_ends_the_outermost_that_does_not_go_on() -> None:
    """No file of today nests such a loop; plans may."""
    inner = loop("i", B, C, maxIterations=1, **{"for": {"count": 1}})
    workflow = compiled(loop("o", inner, **{"while": {"var": "level", "gt": 0}}), D)
    loops = tuple(
        one.changed(**{"checked": "before_step"} if one.loop_id == "o" else {}) for one in workflow.plan.loops
    )
    workflow = workflow.changed(plan=workflow.plan.changed(loops=loops))
    walker = Walker(workflow, level=1)
    assert walker.done().done().at == "o@1/i@0::b"
    assert walker.done(level=0).at == "d"
    assert walker.state.completed.values == ("o",)
    assert [words for kind, words in result(walker.trace) if kind == "exited_loop"] == [
        "`i` ends: its condition says so.",
        "`o` ends: its condition says so.",
    ]


def test_a_loop_control_artifact_ends_a_loop_of_the_dialect_wherever_it_comes() -> None:
    source = {"kind": "artifact_contract", "contractRef": "wr.contracts.loop_control", "loopId": "any"}
    workflow = compiled_dialect(old("while", conditionSource=source), LAST)
    walker = Walker(workflow)
    assert walker.done("continue").at == "l@0::c"
    assert walker.done("stop").at == "z"
    assert len(Walker(workflow).ways()) == 7


# Bounds of one call.


def test_so_much_that_asks_nobody_is_a_fault_of_the_workflow_and_moves_nothing() -> None:
    body = loop("i", step("b", when=IS_FAST), maxIterations=1000, **{"for": {"count": 1000}})
    workflow = compiled(A, loop("o", body, maxIterations=1000, **{"for": {"count": 1000}}), C)
    walker = Walker(workflow, mode="slow").done()
    assert walker.stuck.reason == EndlessWalk()
    assert walker.stuck.node.node_id in workflow.graphs.nodes
    assert walker.done(mode="fast").at == "o@0/i@0::b"


def test_a_loop_without_work_in_it_for_this_run_ends_in_one_call() -> None:
    passes = WALK_NODES_MAX // 20
    quiet = loop("l", step("b", when=IS_FAST), maxIterations=min(passes, 1000), **{"for": {"count": passes}})
    assert Walker(compiled(A, quiet, C), mode="slow").done().at == "c"


def test_all_of_many_reasons_are_reported_each_within_its_budget() -> None:
    long = {"var": "mode", "in": ["x" * 300, "é" * 300]}
    steps = [step(f"s{number}", when=long) for number in range(TRACE_ENTRIES_MAX + 5)]
    walker = Walker(compiled(A, *steps, C), mode="slow").done()
    assert len(walker.trace) == TRACE_ENTRIES_MAX + 6
    assert walker.trace[-1].kind == "selected_next_step"
    assert all(len(entry.summary.encode()) <= TRACE_SUMMARY_BYTES_MAX for entry in walker.trace)


def test_the_same_state_context_and_artifacts_always_lead_to_the_same_place() -> None:
    workflow = compiled(THREE_WAYS, loop("o", A, loop("i", B, **{"for": {"count": 2}}), **{"for": {"count": 2}}), D)
    first, second = (Walker(workflow, level=2) for _ in range(2))
    while first.at is not None:
        first.done()
        second.done()
        assert first.found == second.found


def test_what_a_walk_marks_is_left_alone_in_the_state_it_began_from() -> None:
    workflow = compiled(A, B)
    state = Walker(workflow).state
    assert isinstance(state, Running)
    marks = ExecutionState(workflow.graphs, state)
    marks.complete("a")
    assert isinstance(run_to_next_task(workflow, marks, at_some_node({}), Evaluating(workflow.graphs)), WalkResult)
    assert state.completed.values == ()
