"""`interlock session plan`: the plan that a run follows, as it was pinned when the run began."""

import argparse

from interlock.cli.options import add_store_options
from interlock.cli.screen import say, say_json
from interlock.cli.session.chosen import add_session_argument, chosen_session, read_history
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.cli.workflow.plan import add_plan_options, say_plan
from interlock.kernel.canonical import Json
from interlock.plan.check.plan_file import plan_document
from interlock.service.run.plans import Plans


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    add_session_argument(parser)
    add_plan_options(parser)


def run(options: argparse.Namespace) -> int:
    """Print the pinned plan of each selected run; return the exit code.

    Raises:
        StopError: The name fits no session or several, or the store cannot answer.
    """
    store = open_chosen_reader(options)
    with answered_by_store():
        plans = Plans(store)
        chosen = chosen_session(store, plans, options.session)
        session = read_history(store, chosen).session
        runs = [session.runs[run] for run in chosen.runs(session)]
        pinned = {run.workflow_hash: plans.workflow(run.workflow_hash) for run in runs}
    if options.as_json:
        found: list[Json] = [
            {"run": run.run, "workflowHash": run.workflow_hash, "plan": plan_document(pinned[run.workflow_hash])}
            for run in runs
        ]
        say_json({"session": session.session, "runs": found})
        return 0
    for number, (workflow_hash, workflow) in enumerate(pinned.items()):
        labels = ", ".join(session.label(run.run) for run in runs if run.workflow_hash == workflow_hash)
        say(f"{'' if number == 0 else chr(10)}Run {labels}")
        say_plan(workflow, workflow_hash, options)
    return 0
