"""Questions that a person decides before the work: what they are shown, and the record of their answer (APPR-1)."""

import json
from datetime import timedelta

from interlock.decide.evaluate import ABSENT, value_at
from interlock.define.parts import ApprovalAsk
from interlock.engine.gates import ApprovalContext, Question, QuestionItem, Reply
from interlock.engine.judge.confirmation import claim_in
from interlock.engine.request import Request
from interlock.engine.template import ValueRoom, rendered_line, with_loop_variables
from interlock.kernel.budgets import APPROVAL_MARK_CHARS, APPROVAL_NOTE_BYTES_MAX
from interlock.kernel.canonical import Json, digest_of
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import Digest, SourceKind
from interlock.kernel.text import flat, quoted, truncated
from interlock.plan.compiled import CompiledWorkflow
from interlock.record.payloads import UserReason
from interlock.record.world import APPROVAL, NEEDS_PERSON, Assurance, EventReceived
from interlock.service.outside.receive import BY_CLAIM, Arrival, waiting_since
from interlock.service.ports import Ports
from interlock.service.run.attempts import brought_by
from interlock.service.run.context import RunContext
from interlock.store.ports.reader import SessionReader
from interlock.views.node_position import chain_head
from interlock.views.outside import Received
from interlock.views.session import Node

BY_ELICITATION = Arrival(via="elicitation", assurance="observed")
"""A person answered through the client."""
_BY_CLOCK = Arrival(via="clock", assurance="executed")
"""The server itself: nobody is asked in a run that never stops."""


def notifies(ports: Ports, workflow: CompiledWorkflow, source: SourceKind) -> bool:
    """Say whether a channel tells people when a run of a workflow waits for them (WORLD-12)."""
    return workflow.asks_people and ports.outbox.uncovered(NEEDS_PERSON, source) is None


@frozen
class OpenApproval:
    """A question that a step waits for. `shown` is what the person sees, by heading; `expires_ms` is unix time."""

    ask: ApprovalAsk
    node: Node
    title: str
    question: str
    shown: tuple[tuple[str, str], ...]
    assurance: Assurance
    expires_ms: int | None = None

    def digest(self) -> Digest:
        """Return the digest of the question with all that is shown with it."""
        shown: list[Json] = [[name, text] for name, text in self.shown]
        return digest_of({"question": self.question, "shown": shown})

    @property
    def mark(self) -> str:
        """The beginning of the digest, by which a command names what its user saw."""
        return self.digest().removeprefix("sha256:")[:APPROVAL_MARK_CHARS]

    def text(self) -> str:
        """Render the question with what is shown, for a person. Each line of what is shown has a mark (APPR-7)."""
        parts = [f"{flat(name)}:\n{quoted(text)}" for name, text in self.shown]
        return "\n\n".join([f"Question: {flat(self.question)}", *parts])


def open_approval(reader: SessionReader, run_context: RunContext, node: Node) -> OpenApproval | None:
    """Return the question that the pending step of a node waits for; None if it waits for none.

    Raises:
        ContentDamagedError: A snapshot or an artifact is missing or damaged.
    """
    pending = run_context.pending(node)
    step = run_context.workflow.steps[pending.step_id] if pending is not None else None
    awaits = step.task.awaits if step is not None and step.task is not None else None
    if step is None or awaits is None or awaits.approval is None:
        return None
    head = chain_head(run_context.session, node)
    since, context = waiting_since(run_context, node), run_context.session.context(node.node)
    seen = with_loop_variables(run_context.workflow.graphs, context, run_context.frames(node))
    expires = (
        since + timedelta(seconds=awaits.timeout_s) if since is not None and awaits.timeout_s is not None else None
    )
    return OpenApproval(
        ask=awaits.approval,
        node=head,
        title=run_context.title(node),
        question=rendered_line(awaits.approval.question, seen, ValueRoom()),
        shown=tuple(_shown(reader, run_context, head, path) for path in awaits.approval.show),
        assurance=awaits.assurance,
        expires_ms=int(expires.timestamp() * 1000) if expires is not None else None,
    )


def _shown(reader: SessionReader, run_context: RunContext, node: Node, path: str) -> tuple[str, str]:
    """Return what a path of `show` refers to, in full: a heading of Interlock, and text of others."""
    part, _, step_id = path.partition(".")
    if part not in ("notes", "artifact", "check") or not step_id:
        value = value_at(run_context.session.context(node.node), path)
        if value is ABSENT:
            return path, "(not set)"
        return path, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    made = _report_of(run_context, node, step_id)
    if made is None:
        return path, "(the step was not done)"
    if part == "check":
        before = made.parent
        found = run_context.session.outside.received(made.run, "wr.check")
        results = [one for one in found if before is not None and one.node == before]
        is_imported = bool(results) and results[-1].index < run_context.session.imported
        return _shown_result(path, results[-1], is_imported=is_imported) if results else (path, "(no result)")
    sent = brought_by(reader, made)
    if part == "notes":
        return path, sent.notes or "(no notes)"
    artifacts = "\n".join(json.dumps(dict(one), ensure_ascii=False, indent=2) for one in sent.evidence)
    return path, artifacts or "(no artifact)"


def _shown_result(path: str, result: Received, *, is_imported: bool) -> tuple[str, str]:
    """Return the result of a check: whether it passed is in the heading, which no output can imitate (WORLD-11)."""
    fields = result.data.fields
    word, imported = "passed" if fields.get("passed") else "did not pass", ", imported" if is_imported else ""
    heading = f"{path} ({word}, exit code {fields.get('exit')}{imported})"
    return heading, f"{fields.get('command')}\n{fields.get('output')}"


def _report_of(run_context: RunContext, node: Node, step_id: str) -> Node | None:
    """Return the node that the last report of a step made on the branch of a node."""
    here = chain_head(run_context.session, node)
    while here.parent is not None:
        parent = run_context.session.nodes[here.parent]
        pending = run_context.pending(parent)
        if pending is not None and pending.step_id == step_id:
            return here
        here = chain_head(run_context.session, parent)
    return None


def approval_record(
    run_context: RunContext, approval: OpenApproval, choice: str, note: str, how: Arrival
) -> EventReceived:
    """Return the record of an answer: each answer to a question has a number of its own."""
    node = approval.node.node
    earlier = [one for one in run_context.session.outside.received(run_context.run.run, APPROVAL) if one.node == node]
    fields: dict[str, object] = {
        "approved": choice == approval.ask.choices[0],
        "choice": choice,
        "note": truncated(note, APPROVAL_NOTE_BYTES_MAX),
        "shown": approval.digest(),
    }
    return EventReceived.model_validate(
        {
            "event": APPROVAL,
            "sent_id": f"{node}.{len(earlier) + 1}",
            "fields": fields,
            "assurance": how.assurance,
            "via": how.via,
        }
    )


def answer_in(run_context: RunContext, approval: OpenApproval, request: Request) -> EventReceived | None:
    """Return the record of the answer that a call has: a person's through the client, or an agent's claim.

    In a run that never stops, nobody is asked: the server itself takes the first rejection (MODE-2).
    """
    reply, choices = request.asking.reply, approval.ask.choices
    chosen = _chosen(approval.ask, reply) if reply is not None else None
    if reply is not None and chosen in choices and not lacks_note(approval, chosen, reply.comment):
        return approval_record(run_context, approval, chosen, reply.comment or "", BY_ELICITATION)
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


def question_of(approval: OpenApproval, asking: ApprovalContext) -> Question | None:
    """Return the question to ask a person through the client; None if it cannot ask, or has asked."""
    if not asking.client_can or asking.reply is not None:
        return None
    reason: UserReason = "needs_user_choice" if approval.ask.has_several else "needs_user_approval"
    item = QuestionItem(reason=reason, ask=approval.text(), choices=approval.ask.choices)
    return Question(title=approval.title, asks=(item,))
