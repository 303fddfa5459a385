"""`interlock intent`: what was to be sent outside, what became of it, and what to do about it."""

import argparse
from collections.abc import Callable, Iterator
from functools import partial

from interlock.cli.options import add_store_options
from interlock.cli.outside.writing import command_settings
from interlock.cli.screen import StopError, counted, say, say_json, say_table
from interlock.cli.session.chosen import chosen_session, listing, say_unreadable
from interlock.cli.session.lifecycle.end import COMMAND_LINE
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.config.ports import local_ports
from interlock.config.settings import Settings
from interlock.kernel.canonical import Json
from interlock.kernel.errors import ErrorCode
from interlock.kernel.ids import IntentId
from interlock.kernel.text import one_line
from interlock.record.world import IntentSettled
from interlock.service.failures import EXPECTED_ERRORS, command_refusal
from interlock.service.outside.dispatch import Dispatcher, Undelivered
from interlock.service.outside.intents import OPEN_STATES, ShownIntent, abandon_intent, deliver_intent, shown_intents
from interlock.service.run.plans import Plans
from interlock.service.run.summaries import Unreadable
from interlock.store.ports.store import StoreReader
from interlock.views.session import Session


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of one of the four commands."""
    add_store_options(parser)
    action = parser.prog.rpartition(" ")[2]
    parser.add_argument("--run", dest="wanted", metavar="RUN", help="only of this run or session (default: of all)")
    if action == "list":
        parser.add_argument("--undelivered", action="store_true", help="only what did not arrive, as far as is known")
    elif action == "show":
        parser.add_argument("intents", metavar="ID", nargs=1, help="the id of an intent, or its last characters")
    else:
        parser.add_argument("intents", metavar="ID", nargs="+", help="the ids of intents, or their last characters")
    if action == "deliver":
        parser.add_argument("--again", action="store_true", help="send it even if it may have arrived before")


def run(options: argparse.Namespace) -> int:
    """Run the chosen command. Return the exit code: 1 if an intent was not delivered.

    Raises:
        StopError: An intent or a run was not found, or the store failed.
    """
    settings, store = command_settings(options), open_chosen_reader(options)
    with answered_by_store():
        unreadable = list[Unreadable]()
        found = list(_found(store, settings, options.wanted, unreadable))
        if not options.as_json:
            say_unreadable(unreadable)
        match options.action:
            case "list":
                shown = [one for _, one in found if not options.undelivered or one.state in OPEN_STATES]
                if options.as_json:
                    missing: list[Json] = [one.session for one in unreadable]
                    say_json({"intents": [one.to_json() for one in shown], "unreadable": missing})
                else:
                    _say_list(shown, only_open=options.undelivered)
                return 0
            case "show":
                [one] = _chosen(found, options.intents)
                say_json(one[1].to_json()) if options.as_json else _show(one[1])
                return 0
            case "deliver":
                return _deliver(settings, _chosen(found, options.intents), options)
            case _:
                return _abandon(settings, _chosen(found, options.intents), options)


def _found(
    store: StoreReader, settings: Settings, wanted: str | None, unreadable: list[Unreadable]
) -> Iterator[tuple[Session, ShownIntent]]:
    plans = Plans(store)
    if wanted is not None:
        chosen = chosen_session(store, plans, wanted)
        sessions, run = [chosen.session], chosen.run
    else:
        found = listing(store, plans)
        unreadable += found.unreadable
        sessions, run = [one.session for one in found.sessions if any(each.intents for each in one.runs)], None
    for session_id in sessions:
        session = store.load(session_id)
        for one in shown_intents(session, settings.config.channels) if session is not None else ():
            if session is not None and run in (None, one.intent.run):
                yield session, one


def _chosen(found: list[tuple[Session, ShownIntent]], names: list[str]) -> list[tuple[Session, ShownIntent]]:
    chosen: list[tuple[Session, ShownIntent]] = []
    for name in names:
        fitting = [pair for pair in found if pair[1].intent.intent_id.endswith(name.strip().lower())]
        if len(fitting) != 1:
            what = "No intent has" if not fitting else f"{len(fitting)} intents have"
            fix = "`interlock intent list` lists them; `--run SESSION` names the session of one."
            raise StopError(f"{what} the id {name!r}.", fix, exit_code=1, code=ErrorCode.SESSION_NOT_FOUND)
        chosen += fitting
    return chosen


def _say_list(shown: list[ShownIntent], *, only_open: bool) -> None:
    if not shown:
        say("No intent is recorded." if not only_open else "Every intent was delivered or given up.")
    else:
        rows = [
            (one.intent.intent_id, one.label, one.session, one.intent.sends, one.state, one_line(one.why or "", 100))
            for one in shown
        ]
        say_table(("intent", "run", "session", "sends", "state", "why"), rows, ids=("intent", "session"))


def _show(one: ShownIntent) -> None:
    say(f"{one.intent.intent_id} of run `{one.label}`: sends `{one.intent.sends}`, {one.state}.")
    if one.why is not None:
        say(f"Why: {one_line(one.why, 1000)}")
    settled = one.intent.settled
    if settled is not None and settled.channel is not None:
        tries = counted(one.intent.attempt, "time")
        say(f"Tried {tries}, the last time through the channel `{settled.channel}`.")
    for name, value in sorted(one.intent.fields.items()):
        say(f"- {name}: {one_line(str(value), 1000)}")


def _deliver(settings: Settings, chosen: list[tuple[Session, ShownIntent]], options: argparse.Namespace) -> int:
    ports = local_ports(settings)
    assert isinstance(ports.outbox, Dispatcher), "as local ports are built"
    results: list[tuple[IntentId, str]] = []
    is_whole = True
    sender = ports.outbox.sender
    for session, one in chosen:
        intent_id = one.intent.intent_id
        found = _unless_failed(partial(deliver_intent, sender, session, intent_id, is_repeated=options.again))
        is_whole &= not isinstance(found, Undelivered) and found.state == "delivered"
        if isinstance(found, Undelivered):
            words = found.why if found.was_made else f"not sent: {found.why}"
        else:
            words = found.state if found.note is None else f"{found.state}: {found.note}"
        results.append((intent_id, words))
    _report(results, as_json=options.as_json)
    return 0 if is_whole else 1


def _abandon(settings: Settings, chosen: list[tuple[Session, ShownIntent]], options: argparse.Namespace) -> int:
    ports, results, is_whole = local_ports(settings), list[tuple[IntentId, str]](), True
    for session, one in chosen:
        found = _unless_failed(partial(abandon_intent, ports, session.session, one.intent.intent_id, COMMAND_LINE))
        is_whole &= not isinstance(found, Undelivered)
        results.append((one.intent.intent_id, found.why if isinstance(found, Undelivered) else found.state))
    _report(results, as_json=options.as_json)
    return 0 if is_whole else 1


def _unless_failed(settle: Callable[[], IntentSettled | Undelivered]) -> IntentSettled | Undelivered:
    """Return what became of one intent; a failure of the store is about this one only, and is said of it."""
    try:
        return settle()
    except EXPECTED_ERRORS as error:
        refusal = command_refusal(error)
        return Undelivered(why=f"{refusal.code}: {refusal.message} {refusal.suggestion}")


def _report(results: list[tuple[IntentId, str]], *, as_json: bool) -> None:
    if as_json:
        say_json({"intents": [{"intent": intent, "result": words} for intent, words in results]})
        return
    for intent, words in results:
        say(f"{intent}: {words}")
