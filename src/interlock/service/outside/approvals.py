"""Answers of people to the questions that steps wait for: how a person is asked, and the record (APPR-1)."""

from interlock.define.parts import ApprovalAsk
from interlock.engine.gates import ApprovalContext, Question, QuestionItem, Reply
from interlock.engine.judge.confirmation import claim_in
from interlock.engine.request import Request
from interlock.engine.template import title_in_code
from interlock.kernel.budgets import APPROVAL_NOTE_BYTES_MAX
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import SourceKind
from interlock.kernel.text import truncated
from interlock.plan.compiled import CompiledWorkflow
from interlock.record.payloads import UserReason
from interlock.record.world import APPROVAL, NEEDS_PERSON, EventReceived, Fields
from interlock.service.outside.receive import BY_CLAIM, Arrival, free_id
from interlock.service.ports import Ports
from interlock.service.run.attempts import pending_task, retry_node
from interlock.service.run.context import RunContext
from interlock.service.run.evidence.approval import OpenApproval
from interlock.views.node_position import chain_head
from interlock.views.session import Node

_BY_CLOCK = Arrival(via="clock", assurance="executed")
"""The server itself: nobody is asked in a run that never stops."""


def notifies(ports: Ports, workflow: CompiledWorkflow, source: SourceKind) -> bool:
    """Say whether a channel tells people when a run of a workflow waits for them (WORLD-12)."""
    return workflow.asks_people and ports.outbox.uncovered(NEEDS_PERSON, source) is None


@frozen
class WayOut:
    """What follows on a question that has expired. `redone` is the step to do again; None if none can or has to be."""

    words: str
    redone: Node | None = None


def way_out(run_context: RunContext, node: Node) -> WayOut:
    """Return what follows if the question of the waiting step of a node has expired (APPR-9).

    Raises:
        ContentDamagedError: A snapshot is missing or damaged.
    """
    awaits = pending_task(run_context, node).awaits
    if node.preferences.never_stops or awaits is None or awaits.must is None:
        return WayOut(words="The run continues without an answer, with the next call of its agent.")
    redone = retry_node(run_context, node)
    if redone.node == chain_head(run_context.session, node).node:
        return WayOut(words="No step before it can be done again, so only a new run asks again.")
    title = title_in_code(run_context.title(redone))
    return WayOut(words=f"To ask again, the step before it, {title}, is done again on a new branch.", redone=redone)


def approval_record(
    run_context: RunContext, approval: OpenApproval, choice: str, note: str, how: Arrival
) -> EventReceived:
    """Return the record of an answer: each answer to a question has a number of its own."""
    node = approval.node.node
    earlier = [one for one in run_context.session.outside.received(run_context.run.run, APPROVAL) if one.node == node]
    fields: Fields = {
        "approved": choice == approval.ask.choices[0],
        "choice": choice,
        "note": truncated(note, APPROVAL_NOTE_BYTES_MAX),
        "shown": approval.digest(),
    }
    return EventReceived(
        event=APPROVAL,
        sent_id=free_id(run_context, APPROVAL, node, len(earlier) + 1),
        fields=fields,
        assurance=how.assurance,
        via=how.via,
    )


def answer_in(run_context: RunContext, approval: OpenApproval, request: Request) -> EventReceived | None:
    """Return the record of the answer that a call has: a person's through the client, or an agent's claim.

    In a run that never stops, nobody is asked: the server itself takes the first rejection (MODE-2).
    """
    reply, choices = request.asking.reply, approval.ask.choices
    chosen = _chosen(approval.ask, reply) if reply is not None else None
    if reply is not None and chosen in choices and not lacks_note(approval, chosen, reply.comment):
        return approval_record(
            run_context, approval, chosen, reply.comment or "", Arrival(via="elicitation", assurance=reply.assurance)
        )
    claim = claim_in(request.artifacts)
    if claim is not None and approval.assurance == "claimed":
        return approval_record(run_context, approval, choices[0], f"{claim[0]}: {claim[1]}", BY_CLAIM)
    if approval.node.preferences.never_stops:
        return approval_record(run_context, approval, choices[1], "No person was asked.", _BY_CLOCK)
    return None


def _chosen(ask: ApprovalAsk, reply: Reply) -> str | None:
    """Return the choice that a reply names; None if it names none: a no is one of two choices, and none of more."""
    if reply.action == "cancel":
        return None
    if ask.has_several:
        return reply.answers.get("1", "").strip() or None
    return ask.choices[0] if reply.action == "accept" else ask.choices[1]


def lacks_note(approval: OpenApproval, choice: str, note: str | None) -> bool:
    """Say whether an answer is a rejection without the note that it needs."""
    return approval.ask.needs_note and choice != approval.ask.choices[0] and not (note or "").strip()


def missing_note(approval: OpenApproval, reply: Reply | None) -> str | None:
    """Return what to say of a reply that decides nothing because its note is missing; None if it is none."""
    chosen = _chosen(approval.ask, reply) if reply is not None else None
    if reply is None or chosen not in approval.ask.choices or not lacks_note(approval, chosen, reply.comment):
        return None
    return (
        f"The user answered {chosen!r} (through {reply.client}), but without the note that this answer needs, so it was"
        " not recorded. The call asks again: the reason belongs into the comment of the form, and the form is submitted"
        " with it."
    )


def question_of(approval: OpenApproval, asking: ApprovalContext, now_ms: int) -> Question | None:
    """Return the question to ask a person through the client; None if it cannot ask, has asked, or it expired."""
    if not asking.client_can or asking.reply is not None or approval.expiry.is_over(now_ms):
        return None
    reason: UserReason = "needs_user_choice" if approval.ask.has_several else "needs_user_approval"
    item = QuestionItem(
        reason=reason, ask=approval.text(), choices=approval.ask.choices, needs_note=approval.ask.needs_note
    )
    return Question(title=approval.title, asks=(item,), demands=approval.assurance)
