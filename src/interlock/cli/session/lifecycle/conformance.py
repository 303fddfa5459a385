"""`interlock session conformance`: whether lifecycle events are a possible history of their plan."""

import argparse
import json
from collections.abc import Iterator
from typing import cast

from interlock.cli.options import add_store_options
from interlock.cli.screen import StopError, counted, say, say_json, say_table
from interlock.cli.session.lifecycle.branch import RUN_HELP, chosen_branch
from interlock.cli.session.lifecycle.events import partial_words
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.cli.workflow.places import chosen_places, chosen_workflow, given_path, read_given, shown
from interlock.kernel.budgets.operations import CONFORMANCE_FILE_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.plan.records import Plan
from interlock.service.run.plans import Plans
from interlock.views.lifecycle.conformance import Fault, faults_of

_HEADS = ("EVENT", "FAULT", "AT", "FOUND")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    parser.add_argument("runs", metavar="RUN", nargs="*", help=RUN_HELP)
    parser.add_argument("--file", metavar="FILE", help="check the events of a file, one JSON event a line")
    plan = "the plan for --file: a file that `workflow plan --json` wrote, or the id of a workflow"
    parser.add_argument("--plan", metavar="FILE|ID", help=plan)


def run(options: argparse.Namespace) -> int:
    """Print every fault; return 0 if there is none, else 1.

    Raises:
        StopError: A run, a file or a plan cannot be read.
    """
    if (options.file is None) != (options.plan is None) or (options.file is not None and options.runs):
        raise StopError(
            "--file and --plan belong together, and replace RUN.",
            "Send `--file events.jsonl --plan plan.json`, or the names of runs.",
            exit_code=2,
        )
    found = [_judged_file(options)] if options.file is not None else list(_judged_runs(options))
    is_sound = all(not faults and not notes for _, faults, notes in found)
    if options.as_json:
        say_json({"checked": [_json(*one) for one in found], "conforms": is_sound})
        return 0 if is_sound else 1
    for name, faults, notes in found:
        say(f"{name}: {counted(len(faults), 'fault') if faults else 'conforms' if not notes else 'cannot be judged'}")
        if faults:
            say_table(_HEADS, map(_row, faults), ids=("FAULT",))
        for note in notes:
            say(note)
    return 0 if is_sound else 1


_Judged = tuple[str, tuple[Fault, ...], tuple[str, ...]]


def _judged_runs(options: argparse.Namespace) -> Iterator[_Judged]:
    store = open_chosen_reader(options)
    with answered_by_store():
        plans = Plans(store)
        for name in options.runs or [None]:
            branch = chosen_branch(store, plans, name, None)
            lifecycle = branch.lifecycle
            label = f"run {branch.run.session.label(branch.run.run.run)} of {branch.run.session.session}"
            if lifecycle.partial:
                yield label, (), tuple(map(partial_words, lifecycle.partial))
                continue
            events = [event.to_json() for event in lifecycle.events]
            yield label, faults_of(events, branch.run.workflow.plan), ()


def _judged_file(options: argparse.Namespace) -> _Judged:
    lines = _read(options.file).splitlines()
    return str(options.file), faults_of(map(_parsed, lines), _plan_of(options)), ()


def _parsed(line: str) -> object:
    try:
        return cast("object", json.loads(line))
    except (ValueError, RecursionError):
        return None


def _read(name: str) -> str:
    path = given_path(name)
    data = read_given(path, CONFORMANCE_FILE_BYTES_MAX)
    if len(data) > CONFORMANCE_FILE_BYTES_MAX:
        message = f"{shown(path)} has more than {CONFORMANCE_FILE_BYTES_MAX} bytes."
        raise StopError(message, "Check fewer runs at once.", exit_code=1)
    return data.decode("utf-8", "replace")


def _plan_of(options: argparse.Namespace) -> Plan:
    _, pinned = chosen_workflow(chosen_places(options), options.plan)
    return pinned.workflow.plan


def _row(fault: Fault) -> tuple[str, ...]:
    return "-" if fault.line is None else str(fault.line), fault.code, fault.where, fault.found


def _json(name: str, faults: tuple[Fault, ...], notes: tuple[str, ...]) -> dict[str, Json]:
    found: list[Json] = [
        {"code": one.code, "event": one.line, "where": one.where, "found": one.found} for one in faults
    ]
    return {"name": name, "faults": found, "notes": list(notes)}
