"""Workflows with a question to a person, and answers as commands and clients give them."""

from dataclasses import replace

from tests.support.flow import Document, declared, document, step

from interlock.engine.gates import ApprovalContext, Reply
from interlock.engine.outside import SentEvent
from interlock.kernel.errors import Refusal
from interlock.record.events import Actor
from interlock.record.world import APPROVAL, Assurance
from interlock.service.outside.approvals import approval_record
from interlock.service.outside.receive import Arrival, HeldRun, Intake, append_intake, hold_run, take_in
from interlock.service.outside.signatures import SigningKey, sign_event, verified
from interlock.service.run.evidence.approval import open_approval
from interlock.service.trust.approve import ApprovalReport, GivenAnswer, answer_approval
from interlock.testing.harness import Harness, ToolResult

PERSON = Actor(type="human", identifier="command line")
ASK: Document = {"type": "approve", "id": "agree", "title": "Agree the plan", "question": "Do it this way?"}
CHOICE = declared("choice", required=False)


def asking(**changes: object) -> Document:
    """Return a workflow whose second step a person decides."""
    return document(step("a"), {**ASK, **changes}, step("b"), inputs=[CHOICE])


READING = asking(set=[{"key": "choice", "from": "event.choice"}])
"""The workflow goes on with any answer."""


def given(
    harness: Harness,
    start: ToolResult,
    *,
    is_approved: bool = True,
    assurance: Assurance = "observed",
    choice: str | None = None,
    note: str = "",
    mark: str | None = None,
    key: SigningKey | None = None,
) -> ApprovalReport | Refusal:
    """Answer as a command does."""
    where = harness.session_of(start), harness.reference_of(start).run
    answer = GivenAnswer(is_approved=is_approved, choice=choice, note=note, mark=mark, key=key)
    return answer_approval(harness.ports, where, answer, Arrival(via="command", assurance=assurance), PERSON)


def recorded_alone(harness: Harness, start: ToolResult, key: SigningKey | None = None) -> None:
    """Record the approval without its advance, as Interlock did before both were one append."""
    ports, where = harness.ports, (harness.session_of(start), harness.reference_of(start).run)
    with hold_run(ports, where) as held:
        assert isinstance(held, HeldRun)
        run_context = held.run_context
        assert run_context.run.tip is not None
        approval = open_approval(ports.read.reader, run_context, run_context.session.nodes[run_context.run.tip])
        assert approval is not None
        how = Arrival(via="command", assurance="observed")
        answer, node = approval_record(run_context, approval, "approve", "", how), approval.node.node
        if key is not None:
            sent = SentEvent(event=APPROVAL, id=answer.sent_id, node=node, fields=dict(answer.fields))
            signed = verified(run_context.run.run, sign_event(run_context.run.run, sent, key), ports.sources)
            answer = answer.changed(signed=signed, assurance="signed")
        intake = take_in(ports, Intake(session=run_context.session), run_context, (answer, node), PERSON)
        assert isinstance(intake, Intake)
        append_intake(ports, held.lock, intake, PERSON)


def replying(harness: Harness, action: str, comment: str | None = None) -> Harness:
    """Return the harness with a client whose person answers the next question like this."""
    reply = Reply(action=action, client="pen", answers={}, comment=comment)  # pyright: ignore[reportArgumentType] — a test's word
    return replace(harness, asking=ApprovalContext(client_can=True, reply=reply))
