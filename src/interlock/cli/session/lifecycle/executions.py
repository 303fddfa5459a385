"""`interlock session executions`: a run as executions of blocks and of a flow, with their executors."""

import argparse

from interlock.cli.options import add_store_options
from interlock.cli.screen import say, say_json, say_table
from interlock.cli.session.lifecycle.branch import add_branch_arguments, chosen_branch
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.service.run.lifecycle import read_executions
from interlock.service.run.plans import Plans
from interlock.views.executions.derive import executor_lineage
from interlock.views.executions.model import BlockExecution

_HEADS = ("STEP", "STATE", "EXECUTORS", "EVENTS")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    add_branch_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Print the executions of one branch; return the exit code.

    Raises:
        StopError: No single run was named, or the store cannot answer.
    """
    store = open_chosen_reader(options)
    with answered_by_store():
        plans = Plans(store)
        branch = chosen_branch(store, plans, options.session, options.tip)
        executions = read_executions(store, branch.run, branch.tip)
    if options.as_json:
        say_json(executions.to_json())
        return 0
    say_table(_HEADS, (_row(executions.slots[one.id], one) for one in executions.blocks), ids=("STEP",))
    say(f"\nFlow execution {executions.flow.id}: {executions.flow.state.replace('_', ' ')}")
    return 0


def _row(instance: str, block: BlockExecution) -> tuple[str, ...]:
    executors = ", ".join(one.identifier for one in executor_lineage(block.events))
    return instance, block.state.replace("_", " "), executors, str(len(block.events))
