"""`interlock event send` and `event sign`: tell a run that something happened outside."""

import argparse
import sys

from interlock.cli.options import add_store_options
from interlock.cli.outside.key_file import parse_object, read_key, read_small
from interlock.cli.outside.person import word_of_command
from interlock.cli.outside.writing import command_ports, finish_sending
from interlock.cli.screen import RefusedError, StopError, say, say_json
from interlock.cli.session.chosen import chosen_run
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.engine.outside import SentEvent, parse_event_artifact
from interlock.engine.request import MemberFault
from interlock.kernel.canonical import Json
from interlock.kernel.errors import Refusal
from interlock.kernel.ids import RunId
from interlock.record.base import RUN_ID
from interlock.service.outside.demand import how_to_send
from interlock.service.outside.signatures import sign_event
from interlock.service.run.plans import Plans
from interlock.service.tools.send_event import EventReport, send_event


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of both commands."""
    add_store_options(parser)
    parser.add_argument("event", metavar="KIND", help="the kind of the event, `namespace.name`")
    parser.add_argument("--run", dest="wanted", required=True, metavar="RUN", help="a run label or id")
    parser.add_argument("--id", dest="sent_id", required=True, metavar="EVENT", help="your own id of it")
    parser.add_argument("--fields", metavar="JSON", help="the fields of the event, a JSON object (default: none)")
    parser.add_argument("--node", metavar="NODE", help="the node that it is about, if it is about one only")
    parser.add_argument("--sign", metavar="KEYFILE", help="sign it with the key that `keys source new` wrote")
    parser.add_argument("--signed", metavar="FILE", help="send the event that `event sign` printed; `-` reads stdin")


def run(options: argparse.Namespace) -> int:
    """Send or sign an event and return the exit code.

    Raises:
        StopError: The event, the run or the key cannot be used, or the store failed.
    """
    if options.action == "sign":
        return _sign(options)
    store = open_chosen_reader(options)
    with answered_by_store():
        session, chosen = chosen_run(store, Plans(store), options.wanted)
    sent = _sent(options, chosen.run)
    ports = command_ports(options)
    how, actor = word_of_command(options)
    with answered_by_store():
        outcome = send_event(ports, (session.session, chosen.run), sent, how, actor)
        if isinstance(outcome, Refusal):
            raise RefusedError(outcome)
        finish_sending(ports)
    _report(outcome, as_json=options.as_json)
    return 0


def _sign(options: argparse.Namespace) -> int:
    """Print a signed event. A whole run id needs no data directory, so that the key can stay where the source is."""
    if options.sign is None or options.signed is not None:
        fix = "Add `--sign KEYFILE`, and leave `--signed` out: `event send` sends the event that this prints."
        raise StopError("`event sign` signs an event with a key.", fix, exit_code=2)
    wanted = str(options.wanted).strip()
    if not RUN_ID.fullmatch(wanted):
        store = open_chosen_reader(options)
        with answered_by_store():
            wanted = chosen_run(store, Plans(store), wanted)[1].run
    say_json(_artifact(_sent(options, RunId(wanted))))
    return 0


def _sent(options: argparse.Namespace, run: RunId) -> SentEvent:
    """Return the event of the command line, or the signed one of a file, which must be the same event."""
    given: dict[str, Json] = {"event": options.event, "id": options.sent_id}
    if options.fields is not None:
        given["fields"] = parse_object(options.fields, "--fields")
    if options.node is not None:
        given["node"] = options.node
    if options.signed is not None:
        signed = parse_object(read_small(options.signed), "--signed")
        for name, value in given.items():
            if signed.get(name) != value:
                fix = "Name the event that was signed, or sign this one with `interlock event sign`."
                raise StopError(f"{options.signed} holds an event with another `{name}`.", fix, exit_code=2)
        given = signed
    found = parse_event_artifact(given)
    if isinstance(found, MemberFault):
        raise StopError(f"{found.member}: {found.found}", found.fix, exit_code=2)
    if options.sign is None:
        return found
    return sign_event(run, found, read_key(options.sign))


def _artifact(sent: SentEvent) -> dict[str, Json]:
    return {"kind": "wr.event", **sent.to_json()}


def _report(outcome: EventReport, *, as_json: bool) -> None:
    data = outcome.received.data
    if as_json:
        say_json(
            {
                "event": data.event,
                "id": data.sent_id,
                "eventId": outcome.received.event_id,
                "run": outcome.received.run,
                "assurance": outcome.level,
                "isNew": outcome.is_new,
                "isAdvanced": outcome.is_advanced,
                "expired": outcome.expired,
                "demanded": outcome.unmet.assurance if outcome.unmet is not None else None,
                "warnings": [one.to_json() for one in outcome.warnings],
            }
        )
        return
    again = "" if outcome.is_new else " It was recorded before; that record is unchanged."
    if outcome.expired == data.event:
        now = "continues" if outcome.is_advanced else "continued"
        advanced = f" It came too late: its step had waited longer than it may, and {now} without it."
    elif outcome.expired is not None:
        advanced = f" The step had waited for `{outcome.expired}` longer than it may, and continues without it."
    else:
        advanced = " The run continued." if outcome.is_advanced else ""
    say(f"Run `{outcome.label}`: the event `{data.event}` is recorded as {outcome.level}.{again}{advanced}")
    if outcome.unmet is not None:
        by = how_to_send(outcome.unmet, outcome.label, outcome.received.run)
        say(f"No step takes it so: it must be {outcome.unmet.assurance} or better. For that, {by}.")
    for warned in outcome.warnings:
        print(f"interlock: {warned.message}", file=sys.stderr)
