"""`interlock session state`: the state of each step of a run, and where the run can be resumed."""

import argparse

from interlock.cli.options import add_store_options
from interlock.cli.screen import say, say_json, say_table
from interlock.cli.session.lifecycle.branch import add_branch_arguments, read_chosen_branch
from interlock.cli.session.lifecycle.events import partial_words
from interlock.cli.store import answered_by_store
from interlock.kernel.canonical import Json
from interlock.views.lifecycle.state import InstanceState, ResumePoint, instance_states, resume_point

_HEADS = ("STEP", "STATE", "REFUSED ATTEMPTS")
_OBSTACLES = {
    "complete": "Nothing is left to do: the run is complete.",
    "run_ended": "The run was ended. Start a new run to continue the work.",
    "attempts_used_up": "The step was refused too often. It can only be done on a new branch.",
    "step_done": "The step of this node is done. A new report on it begins a new branch.",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    add_branch_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Print the state of each step instance and where to resume; return the exit code.

    Raises:
        StopError: No single run was named, or the store cannot answer.
    """
    branch = read_chosen_branch(options)
    lifecycle = branch.lifecycle
    states = instance_states(lifecycle, branch.run.workflow)
    with answered_by_store():
        point = resume_point(branch.run.session, branch.tip, branch.run.workflow, branch.run.snapshot)
    if options.as_json:
        shown: list[Json] = [_state_json(one) for one in states]
        say_json({"states": shown, "resume": _resume_json(point), "partial": lifecycle.to_json()["partial"]})
        return 0
    say_table(_HEADS, ((one.instance, one.state, ", ".join(one.failed)) for one in states), ids=("STEP",))
    say(f"\nLast completed: {point.last_completed or 'nothing yet'}")
    say(f"Next: {point.next_runnable or 'nothing'}")
    if point.parallel:
        say(f"Need not wait for it: {', '.join(point.parallel)}")
    say(_OBSTACLES[point.obstacle] if point.obstacle is not None else "It is safe to resume here.")
    for one in lifecycle.partial:
        say(partial_words(one))
    return 0


def _state_json(one: InstanceState) -> dict[str, Json]:
    return {"instance": one.instance, "node": one.node, "state": one.state, "failed": list(one.failed)}


def _resume_json(point: ResumePoint) -> dict[str, Json]:
    return {
        "tip": point.tip,
        "lastCompleted": point.last_completed,
        "nextRunnable": point.next_runnable,
        "parallel": list(point.parallel),
        "isSafe": point.obstacle is None,
        "obstacle": point.obstacle,
    }
