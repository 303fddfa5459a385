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
from interlock.service.outside.receive import Arrival, record_event
from interlock.service.outside.signatures import SigningKey, sign_event, verified
from interlock.service.ports import Ports
from interlock.service.run.attempts import deciding_event
from interlock.service.run.context import RunContext, load_run_context
from interlock.service.run.evidence.approval import OpenApproval, open_approval
from interlock.service.tools.end_run import refuse_ended
from interlock.service.tools.send_event import advance_waiting


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
    """Record a person's answer to the question that a run waits for; a question is decided once.

    Raises:
        StoreFailureError, SessionBusyError, SessionUnhealthyError, ContentDamagedError, KeyRingDamagedError:
            See `service.failures`.
    """
    session_id, run_id = where
    with ports.hold(session_id) as lock:
        session = lock.session
        assert session is not None, "the run was found in it"
        loaded = load_run_context(session, session.runs[run_id], ports.read.plans)
        run_context = replace(loaded, signing_keys=ports.signing_keys)
        tip = run_context.run.tip
        assert tip is not None, "a run has a root"
        approval = open_approval(ports.read.reader, run_context, session.nodes[tip])
        refusal = refuse_ended(run_context)
        if refusal is not None or approval is None:
            return refusal or _nothing_open(run_context)
        answer = None
        if deciding_event(run_context, session.nodes[tip]) is None:
            answer = _checked_answer(ports, run_context, approval, given, how)
            if isinstance(answer, Refusal):
                return answer
            recorded = record_event(ports, lock, run_context, (answer, approval.node.node), actor)
            if isinstance(recorded, Refusal):
                return recorded
            run_context = run_context.at(recorded)
    # Whoever recorded a deciding answer may have ended before the run advanced with it.
    is_advanced = advance_waiting(ports, run_context, actor)
    if answer is None:
        return _nothing_open(run_context)
    label, demanded = run_context.view().label, approval.assurance
    return ApprovalReport(label=label, demanded=demanded, answer=answer, is_advanced=is_advanced)


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


def _nothing_open(run_context: RunContext) -> Refusal:
    """Refuse an answer to no question; the last one that was answered is named."""
    last = next(run_context.session.outside.latest(run_context.run.run, APPROVAL), None)
    found = "It does not wait for an approval"
    if last is not None:
        who = last.actor.identifier if last.actor is not None else "an unknown caller"
        level = run_context.session.describe_level(last.index, last.data, run_context.signing_keys)
        found += f"; the last answer was {last.data.fields.get('choice')!r}, {level}, by {who}"
    return _refused(run_context, found, "`interlock inbox` lists what waits for a person.")


def _refused(run_context: RunContext, found: str, fix: str) -> Refusal:
    view = run_context.view()
    return Refusal(
        code=ErrorCode.VALIDATION_ERROR,
        message=f"Run `{view.label}` ({view.workflow_id}): {found}. Nothing was recorded.",
        suggestion=fix,
        details={"run": view.to_json()},
    )
