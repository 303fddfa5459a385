"""`interlock session diff`: two runs or two branches, aligned by step, and what differs."""

import argparse
from collections.abc import Iterator

from interlock.cli.options import add_store_options
from interlock.cli.render.phrases import place_words
from interlock.cli.render.terminal import as_text
from interlock.cli.screen import flat, say, say_json
from interlock.cli.session.chosen import SelectedSession
from interlock.cli.session.evidence.configured import known_keys
from interlock.cli.session.evidence.damage import Viewed, view_session
from interlock.cli.session.lifecycle.branch import Branch, chosen_branch
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.kernel.budgets import PASSAGE_BYTES_MAX
from interlock.kernel.canonical import Json, readable_json
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import SessionId
from interlock.kernel.text import one_line
from interlock.record.context import Context
from interlock.service.report.difference import Change, Difference, StepDifference, compare_branches
from interlock.service.report.session_report import SessionReporter
from interlock.service.report.step_report import StepReport
from interlock.service.run.context import load_run_context
from interlock.service.run.history import History
from interlock.service.run.plans import Plans
from interlock.store.ports.store import StoreReader
from interlock.views.session import EMPTY_CONTEXT

_NAMED = "a session id, a run label or id, a node id, or a token; a node or a token names the branch to it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    parser.add_argument("first", metavar="A", help=_NAMED)
    parser.add_argument("second", metavar="B", help="as A")


def run(options: argparse.Namespace) -> int:
    """Print what differs between two branches; return 1 if anything does, or if something of them is lost.

    Raises:
        StopError: A name fits no run or several, or the store cannot answer.
    """
    store = open_chosen_reader(options)
    with answered_by_store():
        plans = Plans(store)
        sides = [_load(store, plans, name, options) for name in (options.first, options.second)]
        (first, a), (second, b) = ((side.branch, side.viewed.view) for side in sides)
        found = compare_branches(a.steps, b.steps, (a.context, b.context))
    hashes = (first.run.run.workflow_hash, second.run.run.workflow_hash)
    damaged = {side.session: side.viewed.damage for side in sides if side.viewed.damage is not None}
    if options.as_json:
        lost: dict[str, Json] = {"damage": {name: one.to_json() for name, one in damaged.items()}} if damaged else {}
        say_json(_json(found, (first, second)) | lost)
    else:
        for name, one in damaged.items():
            say(f"{name}\n{as_text(one.blocks(), None)}")
        say(f"A: {_described(first)}\nB: {_described(second)}")
        if hashes[0] != hashes[1]:
            say("They follow different plans.")
        say("\n".join(_lines(found)))
    return 0 if found.is_none and hashes[0] == hashes[1] and not damaged else 1


@frozen
class _Steps:
    """The steps of a branch, and the context at its end; of its sound beginning if it is damaged."""

    steps: tuple[StepReport, ...]
    context: Context


@frozen
class _Side:
    """One of the two branches, with what is lost of its session."""

    session: SessionId
    branch: Branch
    viewed: Viewed[_Steps]


def _load(store: StoreReader, plans: Plans, name: str, options: argparse.Namespace) -> _Side:
    is_place = name.startswith(("node_", "st_", "ack_", "chk_")) or "." in name
    branch = chosen_branch(store, plans, name, name if is_place else None)
    session = branch.run.session.session

    def view(history: History) -> _Steps:
        # A sound beginning may end before the branch does, or before its run begins.
        found = history.session
        run = found.runs.get(branch.run.run.run)
        if run is None or run.tip is None:
            return _Steps(steps=(), context=EMPTY_CONTEXT)
        tip = found.nodes.get(branch.tip.node, found.nodes[run.tip])
        steps = SessionReporter(store, plans, history, known_keys(options, found)).branch(
            load_run_context(found, run, plans), tip
        )
        return _Steps(steps=steps, context=found.context(tip.node))

    viewed = view_session(store, plans, SelectedSession(session=session), view)
    return _Side(session=session, branch=branch, viewed=viewed)


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
    text = value if isinstance(value, str) else readable_json(value)
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
