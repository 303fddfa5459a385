"""`interlock session lifecycle`: the events of a run's life, as a view of the log."""

import argparse
import json

from interlock.cli.options import add_store_options
from interlock.cli.screen import StopError, say, say_json, say_table
from interlock.cli.session.lifecycle.branch import add_branch_arguments, read_chosen_branch
from interlock.kernel.canonical import Json
from interlock.views.lifecycle.events import LifecycleEvent
from interlock.views.lifecycle.projection import PartialAt

_HEADS = ("NUMBER", "EVENT", "STEP", "ATTEMPT", "DETAIL")
_PARTIAL_WORDS = {
    "decisions_left_out": "the record of the decisions is too long and was cut",
    "capture_missing": "the record of the decisions is missing or damaged",
    "snapshot_differs": "the recorded decisions do not lead to the stored position",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    add_branch_arguments(parser)
    lines = "print one event a line, and nothing else: the form that `session conformance --file` reads"
    parser.add_argument("--jsonl", dest="as_lines", action="store_true", help=lines)


def run(options: argparse.Namespace) -> int:
    """Print the lifecycle of one branch; return the exit code.

    Raises:
        StopError: Two forms or no single run are named, or the store cannot answer.
    """
    if options.as_lines and options.as_json:
        raise StopError("--json and --jsonl are two forms.", "Name one of them.", exit_code=2)
    branch = read_chosen_branch(options)
    lifecycle = branch.lifecycle
    if options.as_lines:
        for event in lifecycle.events:
            print(json.dumps(event.to_json(), separators=(",", ":")))
    elif options.as_json:
        place: dict[str, Json] = {
            "session": branch.run.session.session,
            "run": branch.run.run.run,
            "tip": branch.tip.node,
        }
        say_json(place | lifecycle.to_json())
    else:
        say_table(_HEADS, map(_row, lifecycle.events), ids=("STEP",))
        for one in lifecycle.partial:
            say(partial_words(one))
    return 0


def partial_words(one: PartialAt) -> str:
    """Say where a view does not show everything."""
    reason = _PARTIAL_WORDS[one.reason]
    return f"Not everything is shown at event {one.event_index} of the log (node {one.node}): {reason}."


def _row(event: LifecycleEvent) -> tuple[str, ...]:
    detail = event.edge or event.code or event.workflow_hash or ""
    attempt = str(event.attempt) if event.attempt is not None else ""
    return str(event.seq), event.kind.removeprefix("workflow."), event.instance or "", attempt, detail
