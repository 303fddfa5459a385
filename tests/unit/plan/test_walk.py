"""Where a run stands in its plan: one rule joins everything, and what a pass marked goes with it."""

import itertools

import pytest
from tests.support.flow import IS_FAST, choose, compiled, loop, parallel, step
from tests.support.record import complete, key_set, running

from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.walk import ExecutionState
from interlock.record.snapshot import LoopFrame

A, B, C, D = step("a"), step("b"), step("c"), step("d")
LINEAR = compiled(A, B, C)
CHOICE = compiled(A, choose("ch", (IS_FAST, [B]), otherwise=[C]), D)
BRANCHES = compiled(parallel("p", [A], [B]), C)
LOOPS = compiled(loop("o", A, loop("i", B, **{"for": {"count": 2}}), **{"for": {"count": 2}}), C)


def following(here: ExecutionState) -> LoopFrame:
    """Return the frame of the pass after the innermost one."""
    return LoopFrame(loop_id=here.stack[-1].loop_id, iteration=here.stack[-1].iteration + 1)


def marks(workflow: CompiledWorkflow) -> ExecutionState:
    return ExecutionState(workflow.graphs)


def opened(marks: ExecutionState) -> tuple[str, bool]:
    found = marks.next_open()
    assert found is not None
    return found.node.node_id, found.is_dead


def take(marks: ExecutionState, edge_id: str) -> None:
    (edge,) = [edge for edges in marks.graphs.out_edges.values() for edge in edges if edge.edge_id == edge_id]
    marks.take(edge)


def test_the_first_node_that_is_not_resolved_is_open_in_plan_order() -> None:
    here = marks(LINEAR)
    for name in ("a", "b", "c", "--end"):
        assert opened(here) == (name, False)
        here.complete(name)
    assert here.next_open() is None


def test_nodes_are_open_in_plan_order_from_any_state_and_in_each_pass() -> None:
    """The search begins where a walk is; a state that was loaded is searched from its first node."""
    here = ExecutionState(LINEAR.graphs, running("c", "a", "b"))
    assert opened(here) == ("c", False)
    assert opened(ExecutionState(LINEAR.graphs, running("c", "b"))) == ("a", False)
    loops = marks(LOOPS)
    loops.enter(LoopFrame(loop_id="o", iteration=0))
    loops.complete("a")
    assert opened(loops) == ("i", False)
    loops.begin_next_pass(following(loops))
    assert opened(loops) == ("a", False)
    loops.leave()
    assert opened(loops) == ("c", False)


def test_a_node_that_no_taken_edge_leads_to_is_dead_and_what_follows_it_alone_too() -> None:
    two = compiled(A, choose("ch", (IS_FAST, [B, C])), D)
    here = marks(two)
    here.complete("a")
    here.complete("ch")
    take(here, "ch>d")
    assert opened(here) == ("b", True)
    here.skip("b")
    assert opened(here) == ("c", True)
    here.skip("c")
    assert opened(here) == ("d", False)


def test_of_a_decision_only_the_edge_that_was_chosen_is_taken() -> None:
    for chosen, alive in (("ch>b", "b"), ("ch>c", "c")):
        here = marks(CHOICE)
        here.complete("a")
        here.complete("ch")
        take(here, chosen)
        found: dict[str, bool] = {}
        while (name := opened(here)[0]) != "d":
            found[name] = opened(here)[1]
            here.skip(name) if found[name] else here.complete(name)
        assert found == {"b": alive != "b", "c": alive != "c"}
        assert opened(here) == ("d", False)


def test_a_decision_that_took_no_edge_leads_nowhere() -> None:
    here = marks(CHOICE)
    here.complete("a")
    here.complete("ch")
    assert opened(here) == ("b", True)


def test_all_edges_out_of_a_fork_are_taken_and_the_barrier_is_open_last() -> None:
    here = marks(BRANCHES)
    for name in ("p", "a", "b", "p--join", "c"):
        assert opened(here) == (name, False)
        here.complete(name)


def test_a_barrier_is_reached_where_one_branch_is_and_dead_where_none_is() -> None:
    here = marks(BRANCHES)
    here.complete("p")
    here.skip("a")
    here.complete("b")
    assert opened(here) == ("p--join", False)
    here = marks(BRANCHES)
    here.complete("p")
    here.skip("a")
    here.skip("b")
    assert opened(here) == ("p--join", True)


def test_inside_a_loop_only_its_body_is_in_scope_and_its_keys_name_the_passes() -> None:
    here = marks(LOOPS)
    assert (here.scope, here.prefix, here.key("o")) == (None, "", "o")
    here.enter(LoopFrame(loop_id="o", iteration=0))
    assert opened(here) == ("a", False)
    here.complete("a")
    here.enter(LoopFrame(loop_id="i", iteration=0))
    here.begin_next_pass(following(here))
    assert (here.scope, here.prefix, here.key("b")) == ("i", "o@0/i@1::", "o@0/i@1::b")
    assert opened(here) == ("b", False)


@pytest.mark.inv("SNAP-6")
def test_a_new_pass_forgets_all_that_the_one_before_it_marked_and_nothing_else() -> None:
    body = [step("x", when=IS_FAST), loop("i", B, **{"for": {"count": 1}})]
    here = marks(compiled(A, loop("o", *body, **{"for": {"count": 2}}), C))
    here.complete("a")
    here.enter(LoopFrame(loop_id="o", iteration=0))
    here.complete("x--when")
    take(here, "x--when>i")
    here.skip("x")
    here.enter(LoopFrame(loop_id="i", iteration=0))
    here.complete("b")
    here.leave()
    assert [key_sets.values for key_sets in here.sets()] == [
        ("a", "o@0::i", "o@0::x--when"),
        ("o@0::x",),
        ("o@0::x--when>i",),
    ]
    here.begin_next_pass(following(here))
    assert [key_sets.values for key_sets in here.sets()] == [("a",), (), ()]
    assert here.prefix == "o@1::"
    here.leave()
    assert here.sets()[0].values == ("a", "o")
    assert here.scope is None


def test_of_passes_with_like_numbers_only_the_finished_one_is_forgotten() -> None:
    """`o@1` is no beginning of `o@10`: a key ends its pass with a delimiter."""
    many = compiled(loop("o", A, maxIterations=20, **{"for": {"count": 20}}), loop("o1", B, **{"for": {"count": 1}}))
    here = marks(many)
    here.enter(LoopFrame(loop_id="o", iteration=0))
    for _ in range(10):
        here.begin_next_pass(following(here))
    here.complete("a")
    assert here.sets()[0].values == ("o@10::a",)
    here.begin_next_pass(following(here))
    assert here.sets()[0].values == ()


def test_marks_begin_with_a_state_and_leave_it_alone() -> None:
    state = running("c", "a", "ch", skipped=("b",), taken=("ch>c",))
    here = ExecutionState(CHOICE.graphs, state)
    assert opened(here) == ("c", False)
    assert here.sets() == (state.completed, state.skipped, state.edges_taken)
    here.complete("c")
    assert state.completed.values == ("a", "ch")
    assert ExecutionState(LINEAR.graphs, complete("a", "b", "c")).sets()[0].values == ("a", "b", "c")


@pytest.mark.inv("SNAP-3")
def test_what_is_marked_is_stored_sorted_and_once_in_whatever_order_it_came() -> None:
    """Every set over five nodes, in every order of completing them."""
    names = ["a", "b", "c", "b-c", "zz"]
    plan = compiled(*map(step, names))
    for size in range(len(names) + 1):
        for chosen in itertools.permutations(names, size):
            here = marks(plan)
            for name in (*chosen, *chosen):
                here.complete(name)
            assert here.sets() == (key_set(*sorted(chosen)), key_set(), key_set())


@pytest.mark.parametrize(
    ("workflow", "node", "around"),
    [(LOOPS, "a", ("o",)), (LOOPS, "b", ("o", "i")), (LOOPS, "i", ("o",)), (LOOPS, "c", ()), (BRANCHES, "a", ())],
)
def test_the_loops_around_a_node_are_known_from_the_outermost_on(
    workflow: CompiledWorkflow, node: str, around: tuple[str, ...]
) -> None:
    assert workflow.graphs.loops_around(node) == around
