"""`interlock approve` and `interlock reject`: answer the question that a run waits for."""

import argparse

from interlock.cli.options import add_store_options
from interlock.cli.outside.key_file import read_key
from interlock.cli.outside.person import word_of_command
from interlock.cli.outside.writing import command_ports, finish_sending
from interlock.cli.screen import RefusedError, StopError, say, say_json
from interlock.cli.session.chosen import chosen_run
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.kernel.budgets import APPROVAL_NOTE_BYTES_MAX
from interlock.kernel.errors import Refusal
from interlock.kernel.text import has_surrogate, utf8_bytes
from interlock.service.outside.demand import is_below
from interlock.service.run.context import load_run_context
from interlock.service.run.evidence.approval import OpenApproval, open_approval
from interlock.service.run.plans import Plans
from interlock.service.trust.approve import ApprovalReport, GivenAnswer, answer_approval


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of both commands."""
    add_store_options(parser)
    parser.add_argument("wanted", metavar="RUN", help="a run label or id")
    parser.add_argument("--choice", metavar="NAME", help="which choice; needed if the question has more than two")
    parser.add_argument("--shown", metavar="MARK", help="refuse if what is shown is not what `inbox` printed with this")
    parser.add_argument("--sign", metavar="KEYFILE", help="sign the answer with the key that `keys source new` wrote")
    parser.add_argument("--note", default="", metavar="TEXT", help="why, stored unencrypted")


def run(options: argparse.Namespace) -> int:
    """Show the question with what belongs to it, record the answer and return the exit code: 1 if it decides nothing.

    Raises:
        StopError: The run waits for no answer, the answer does not count, or the store failed.
    """
    if utf8_bytes(options.note) > APPROVAL_NOTE_BYTES_MAX or has_surrogate(options.note):
        raise StopError(
            "--note is too long or no text.", f"Write at most {APPROVAL_NOTE_BYTES_MAX} bytes.", exit_code=2
        )
    key = read_key(options.sign) if options.sign is not None else None
    is_approved = options.command == "approve"
    given = GivenAnswer(is_approved=is_approved, choice=options.choice, note=options.note, mark=options.shown, key=key)
    store, ports = open_chosen_reader(options), command_ports(options)
    how, actor = word_of_command(options)
    with answered_by_store():
        session, chosen = chosen_run(store, Plans(store), options.wanted)
        run_context = load_run_context(session, chosen, ports.read.plans)
        assert chosen.tip is not None, "a run has a root"
        asked = open_approval(store, run_context, session.nodes[chosen.tip])
        outcome = answer_approval(ports, (session.session, chosen.run), given, how, actor)
        finish_sending(ports)
    if isinstance(outcome, Refusal):
        raise RefusedError(outcome)
    _report(asked, outcome, as_json=options.as_json)
    is_rejected = not outcome.answer.fields["approved"] and not is_below(outcome.answer.assurance, outcome.demanded)
    return 0 if outcome.is_advanced or is_rejected else 1


def _report(asked: OpenApproval | None, outcome: ApprovalReport, *, as_json: bool) -> None:
    answer = outcome.answer
    if as_json:
        fields = {name: answer.fields[name] for name in ("choice", "approved", "note", "shown")}
        say_json({"label": outcome.label, **fields, "assurance": answer.assurance, "isAdvanced": outcome.is_advanced})
        return
    if asked is not None:
        say(asked.text())
    advanced = " The run continued." if outcome.is_advanced else " The run still waits."
    say(f"Run `{outcome.label}`: {answer.fields['choice']!r} is recorded as {answer.assurance}.{advanced}")
    if outcome.demanded == "signed" != answer.assurance:
        say("The run demands a signed answer: repeat the command with `--sign KEYFILE`.")
    elif answer.assurance == "claimed" and outcome.demanded != "claimed":
        say(f"The run demands the level {outcome.demanded}: run the command in a terminal that no agent controls.")
