"""`interlock session turns`: the turns that drivers recorded in a run."""

import argparse
from collections.abc import Mapping

from interlock.cli.options import add_store_options
from interlock.cli.screen import say, say_json, say_table
from interlock.cli.session.chosen import add_session_argument, chosen_session, deleted_meanwhile
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.kernel.canonical import Json
from interlock.service.run.plans import Plans
from interlock.service.run.turns import RunTurns, totals_of, turns_of

_HEADS = ("TURN", "STEP", "MODEL", "IN", "OUT", "COST", "TOOLS", "ERRORS", "STATUS")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    add_session_argument(parser)


def run(options: argparse.Namespace) -> int:
    """Print the turns of a run, or of all runs of a session, with what they sum up to; return the exit code.

    Raises:
        StopError: The name fits no session or several, or the store cannot answer.
    """
    store = open_chosen_reader(options)
    with answered_by_store():
        chosen = chosen_session(store, Plans(store), options.session)
        session = store.load(chosen.session)
        if session is None:
            raise deleted_meanwhile(chosen.session)
        names = (
            [chosen.run] if chosen.run is not None else sorted(session.runs, key=lambda run: session.runs[run].index)
        )
        found = {session.label(name): turns_of(store, session, name) for name in names}
    if options.as_json:
        runs: list[Json] = [{"label": label, **turns.to_json()} for label, turns in found.items()]
        say_json({"session": chosen.session, "runs": runs})
        return 0
    for label, turns in found.items():
        _say(label, turns)
    return 0


def _say(label: str, turns: RunTurns) -> None:
    if not turns.turns:
        say(f"run {label}: no turns are recorded.")
        return
    records = {str(_object(one.record.get("ids")).get("interactionId")): one.record for one in turns.turns}
    say_table(_HEADS, map(_row, records.values()))
    sums = totals_of([one.record for one in turns.turns])
    say(
        f"run {label}: {sums['turns']} turns, {sums['inputTokens']} tokens in, {sums['outputTokens']} out,"
        f" cost {sums['cost']}, {sums['toolCalls']} tool calls, {sums['errors']} errors"
    )


def _row(record: Mapping[str, Json]) -> tuple[str, ...]:
    model, usage = _object(record.get("model")), _object(record.get("usage"))
    tools = [_object(one) for one in _list(record.get("tools"))]
    names = ", ".join(str(one.get("toolName")) for one in tools)
    return (
        str(record.get("turn")),
        str(record.get("stepId")),
        str(model.get("actual") or model.get("requested") or "-"),
        str(usage.get("inputTokens", 0)),
        str(usage.get("outputTokens", 0)),
        str(usage.get("cost", 0)),
        names or "-",
        str(len(_list(record.get("errors")))),
        str(record.get("status")),
    )


def _object(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
