"""Answers the question that a run waits for, as a command does it, and lets the run continue (APPR-2)."""

from interlock.engine.outside import SentEvent
from interlock.kernel.budgets import ECHO_BYTES_MAX, NAMED_MAX
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import Digest, NodeId, RunId, SessionId
from interlock.kernel.text import one_line
from interlock.record.events import Actor
from interlock.record.world import APPROVAL, Assurance, EventReceived
from interlock.service.outside.approvals import approval_record, lacks_note, way_out
from interlock.service.outside.receive import Arrival, Intake, hold_run, take_in
from interlock.service.outside.signatures import SigningKey, sign_event, verified
from interlock.service.ports import Ports
from interlock.service.run.attempts import deciding_event
from interlock.service.run.context import RunContext
from interlock.service.run.evidence.approval import OpenApproval, open_approval
from interlock.service.tools.end_run import refuse_ended
from interlock.service.tools.send_event import record_advancing


@frozen
class ApprovalReport:
    """An answer that was recorded, and whether the run has advanced with it."""

    label: str
    demanded: Assurance
    answer: EventReceived
    is_advanced: bool


@frozen
class GivenAnswer:
    """A person's answer. `choice` None: the only one that approves or rejects; refused if the question has several.

    `asked` is the node and the digest of the question that the person saw, `mark` only that beginning of the digest
    which `inbox` prints; None: whichever is open now. `key` signs the answer.
    """

    is_approved: bool
    choice: str | None = None
    note: str = ""
    asked: tuple[NodeId, Digest] | None = None
    mark: str | None = None
    key: SigningKey | None = None


def answer_approval(
    ports: Ports, where: tuple[SessionId, RunId], given: GivenAnswer, how: Arrival, actor: Actor
) -> ApprovalReport | Refusal:
    """Record a person's answer to the question that a run waits for, with its advance; a question is decided once.

    Raises:
        StoreFailureError, SessionBusyError, SessionUnhealthyError, ContentDamagedError, KeyRingDamagedError:
            See `service.failures`.
    """
    with hold_run(ports, where) as held:
        if isinstance(held, Refusal):
            return held
        run_context = replace(held.run_context, signing_keys=ports.signing_keys)
        tip = run_context.run.tip
        assert tip is not None, "a run has a root"
        node, intake = run_context.session.nodes[tip], Intake(session=run_context.session)
        approval = open_approval(ports.read.reader, run_context, node)
        refusal = refuse_ended(run_context)
        if refusal is not None or approval is None:
            return refusal or _nothing_open(run_context)
        if deciding_event(run_context, node) is None:
            answer = _checked_answer(ports, run_context, approval, given, how)
            if isinstance(answer, Refusal):
                return answer
            taken = take_in(ports, intake, run_context, (answer, approval.node.node), actor)
            if isinstance(taken, Refusal):
                return taken
            intake = taken
        recorded = record_advancing(ports, held, intake, actor)
    if not recorded.events:
        return _nothing_open(recorded.run_context, is_advanced=recorded.is_advanced)
    return ApprovalReport(
        label=recorded.run_context.view().label,
        demanded=approval.assurance,
        answer=recorded.events[-1].data,
        is_advanced=recorded.is_advanced,
    )


def _checked_answer(
    ports: Ports, run_context: RunContext, approval: OpenApproval, given: GivenAnswer, how: Arrival
) -> EventReceived | Refusal:
    """Return the record of an answer to an open question, signed if it has a key; or why it does not count."""
    if given.asked not in (None, (approval.node.node, approval.digest())):
        found = "The question that was shown is not open; another one is"
        return _refused(run_context, found, "Open the question again and answer what it shows now.")
    if given.mark not in (None, approval.mark):
        found = f"What it shows is not what was shown as {one_line(given.mark, ECHO_BYTES_MAX)!r}"
        return _refused(run_context, found, "`interlock inbox` prints the question as it is now, with its command.")
    choice = given.choice
    if choice is None:
        if approval.ask.has_several:
            return _wrong_choice(
                run_context, approval, given, "The question has more than two choices, and none is named"
            )
        choice = approval.ask.choices[0 if given.is_approved else 1]
    refusal = _answer_refusal(ports, run_context, approval, choice, given)
    if refusal is not None:
        return refusal
    answer = approval_record(run_context, approval, choice, given.note, how)
    return answer if given.key is None else _signed(ports, run_context, (answer, approval.node.node), given.key)


def _signed(
    ports: Ports, run_context: RunContext, answer: tuple[EventReceived, NodeId], key: SigningKey
) -> EventReceived | Refusal:
    """Return an answer, which is about a node, with a signature; refuse a key that is not configured (APPR-5)."""
    run, (record, node) = run_context.run, answer
    sent = SentEvent(event=APPROVAL, id=record.sent_id, node=node, fields=dict(record.fields))
    signed = verified(run.run, sign_event(run.run, sent, key), ports.sources)
    if isinstance(signed, str):
        fix = f"Add the public key to `config.toml` as `[sources.{key.source}]`, with `{APPROVAL}` among its `kinds`."
        return _refused(run_context, signed.rstrip("."), fix)
    return record.changed(signed=signed, assurance="signed")


def _answer_refusal(
    ports: Ports, run_context: RunContext, approval: OpenApproval, choice: str, given: GivenAnswer
) -> Refusal | None:
    """Return why an answer does not count: the question has expired, there is no such choice, or a note is missing."""
    if approval.expiry.is_over(ports.clock.unix_ms()):
        return _refused(run_context, "The question has expired", way_out(run_context, approval.node).words)
    choices = approval.ask.choices
    if choice not in choices or (choice == choices[0]) != given.is_approved:
        verb = "approve" if given.is_approved else "reject"
        return _wrong_choice(run_context, approval, given, f"{choice!r} is no choice of `interlock {verb}`")
    if lacks_note(approval, choice, given.note):
        return _refused(run_context, "A rejection needs a note", "Write why in the note (`--note`).")
    return None


def _wrong_choice(run_context: RunContext, approval: OpenApproval, given: GivenAnswer, found: str) -> Refusal:
    possible = approval.ask.choices[:1] if given.is_approved else approval.ask.choices[1:]
    return _refused(run_context, found, f"Write `--choice` with {' or '.join(possible[:NAMED_MAX])}.")


def _nothing_open(run_context: RunContext, *, is_advanced: bool = False) -> Refusal:
    """Refuse an answer to no question; it names the last one that was answered, and if the run advanced with it."""
    last = next(run_context.session.outside.latest(run_context.run.run, APPROVAL), None)
    found = "It does not wait for an approval"
    if last is not None:
        who = last.actor.identifier if last.actor is not None else "an unknown caller"
        level = run_context.session.describe_level(last.index, last.data, run_context.signing_keys)
        found += f"; the last answer was {last.data.fields.get('choice')!r}, {level}, by {who}"
    fix = "`interlock inbox` lists what waits for a person."
    return _refused(run_context, found, fix, is_advanced=is_advanced)


def _refused(run_context: RunContext, found: str, fix: str, *, is_advanced: bool = False) -> Refusal:
    view = run_context.view()
    recorded = "Your answer was not recorded; the run continued with the earlier one" if is_advanced else ""
    return Refusal(
        code=ErrorCode.VALIDATION_ERROR,
        message=f"Run `{view.label}` ({view.workflow_id}): {found}. {recorded or 'Nothing was recorded'}.",
        suggestion=fix,
        details={"run": view.to_json()},
    )
