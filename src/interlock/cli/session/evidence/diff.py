"""`interlock session diff`: two runs or two branches, aligned by step, and what differs."""

import argparse
import json
from collections.abc import Iterator

from interlock.cli.options import add_store_options
from interlock.cli.render.phrases import place_words
from interlock.cli.screen import flat, say, say_json
from interlock.cli.session.chosen import SelectedSession, read_history
from interlock.cli.session.lifecycle.branch import Branch, chosen_branch
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.kernel.budgets import PASSAGE_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.text import one_line
from interlock.record.context import Context
from interlock.service.report.difference import Change, Difference, StepDifference, compare_branches
from interlock.service.report.session_report import SessionReporter
from interlock.service.report.step_report import StepReport
from interlock.service.run.plans import Plans
from interlock.store.ports.store import StoreReader

_NAMED = "a session id, a run label or id, a node id, or a token; a node or a token names the branch to it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    parser.add_argument("first", metavar="A", help=_NAMED)
    parser.add_argument("second", metavar="B", help="as A")


def run(options: argparse.Namespace) -> int:
    """Print what differs between two branches; return 1 if anything does.

    Raises:
        StopError: A name fits no run or several, or the store cannot answer.
    """
    store = open_chosen_reader(options)
    with answered_by_store():
        plans = Plans(store)
        (first, a, first_context), (second, b, second_context) = (
            _load(store, plans, name) for name in (options.first, options.second)
        )
        found = compare_branches(a, b, (first_context, second_context))
    hashes = (first.run.run.workflow_hash, second.run.run.workflow_hash)
    if options.as_json:
        say_json(_json(found, (first, second)))
    else:
        say(f"A: {_described(first)}\nB: {_described(second)}")
        if hashes[0] != hashes[1]:
            say("They follow different plans.")
        say("\n".join(_lines(found)))
    return 0 if found.is_none and hashes[0] == hashes[1] else 1


def _load(store: StoreReader, plans: Plans, name: str) -> tuple[Branch, tuple[StepReport, ...], Context]:
    is_place = name.startswith(("node_", "st_", "ack_", "chk_")) or "." in name
    branch = chosen_branch(store, plans, name, name if is_place else None)
    history = read_history(store, SelectedSession(session=branch.run.session.session))
    steps = SessionReporter(store, plans, history).branch(branch.run, branch.tip)
    return branch, steps, history.session.context(branch.tip.node)


def _described(branch: Branch) -> str:
    view = branch.run.view(branch.tip)
    return flat(f"run {view.label} of {view.session}, {view.workflow_id}, to {branch.tip.node}")


def _lines(found: Difference) -> Iterator[str]:
    if found.is_none:
        yield "Nothing differs in path, evidence, context or text."
        return
    for step in found.steps:
        yield from _step_lines(step)
    if found.context:
        yield "At the end"
        for change in found.context:
            yield from _change_lines(change)


def _step_lines(step: StepDifference) -> Iterator[str]:
    name = flat(place_words(step.place))
    if step.side != "both":
        yield f"{name}: only in {'A' if step.side == 'first' else 'B'}"
    elif not step.changes:
        yield f"{name}: the same"
    else:
        yield name
        for change in step.changes:
            yield from _change_lines(change)


def _change_lines(change: Change) -> Iterator[str]:
    yield f"  {flat(change.what)}"
    if change.lines:
        yield from (f"    {line}" for line in change.lines)
        return
    yield f"    A: {_value(change.first)}"
    yield f"    B: {_value(change.second)}"


def _value(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return "-" if value is None else one_line(text, PASSAGE_BYTES_MAX)


def _json(found: Difference, branches: tuple[Branch, Branch]) -> dict[str, Json]:
    named: list[Json] = [
        {
            "session": one.run.session.session,
            "run": one.run.run.run,
            "tip": one.tip.node,
            "workflowHash": one.run.run.workflow_hash,
        }
        for one in branches
    ]
    steps: list[Json] = [
        {
            "stepId": step.step_id,
            "number": step.place.number,
            "title": step.place.title,
            "pass": step.place.loop.pass_ if step.place.loop is not None else None,
            "side": step.side,
            "changes": [_change_json(change) for change in step.changes],
        }
        for step in found.steps
    ]
    return {"branches": named, "steps": steps, "context": [_change_json(one) for one in found.context]}


def _change_json(change: Change) -> dict[str, Json]:
    return {"what": change.what, "first": change.first, "second": change.second, "lines": list(change.lines)}
