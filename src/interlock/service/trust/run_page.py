"""What the page in a chat shows of a run, and the answer that a person gives there (CHAT-1, CHAT-2)."""

from interlock.engine.answer.model import Answer
from interlock.engine.gates import ApprovalContext
from interlock.engine.published import Published
from interlock.kernel.budgets import WORDS_BYTES_MAX
from interlock.kernel.budgets.console import APP_NODES_SHOWN
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.frozen import frozen
from interlock.kernel.text import one_line
from interlock.record.events import Actor
from interlock.service.outside.approvals import way_out
from interlock.service.ports import Ports
from interlock.service.run.context import RunContext
from interlock.service.run.evidence.approval import OpenApproval, open_approval
from interlock.service.tokens.resolve import SentTokens
from interlock.service.tools.target import load_target
from interlock.service.trust.approve import GivenAnswer, answer_approval
from interlock.service.trust.word import arrival_of
from interlock.service.unanswered import after_append
from interlock.views.picture.svg import render_svg
from interlock.views.run_graph import newest_part, run_graph
from interlock.views.status import run_status

BY_APP = arrival_of("app", is_by_person=False, is_of_agent=None)
"""A page in a chat says so. The host sees all that the page sees, so no one can prove that it was the person."""


class ShownPart(Published):
    """Something that is shown with a question."""

    name: str
    text: str


class OpenQuestion(Published):
    """The question that a run waits for. `how` says where it is answered if the page cannot."""

    title: str
    question: str
    shown: tuple[ShownPart, ...]
    choices: tuple[str, ...]
    mark: str
    needs_note: bool
    how: str | None = None


class RunPage(Published):
    """What the page shows: the picture as SVG, and the question if the run waits for one.

    `notice` says what came of an answer.
    """

    title: str
    status: str
    picture: str
    question: OpenQuestion | None = None
    notice: str | None = None


@frozen
class AppAnswer:
    """The answer to the question with a mark."""

    mark: str
    choice: str
    note: str = ""


def show_run(ports: Ports, tokens: SentTokens, asking: ApprovalContext) -> Answer | Refusal:
    """Return what the page shows of the run of a token. Reading writes nothing.

    Raises:
        StoreFailureError, SessionUnhealthyError, ContentDamagedError, KeyRingDamagedError: See `service.failures`.
    """
    target = load_target(ports.read, tokens)
    return target if isinstance(target, Refusal) else _answer(_page(ports, target.run_context, asking))


def answer_question(
    ports: Ports, tokens: SentTokens, given: AppAnswer, asking: ApprovalContext, actor: Actor | None
) -> Answer | Refusal:
    """Record an answer from the page as a claim, if the configuration accepts it, and let the run continue.

    Raises:
        StoreFailureError, SessionBusyError, SessionUnhealthyError, ContentDamagedError, KeyRingDamagedError:
            See `service.failures`.
    """
    target = load_target(ports.read, tokens)
    if isinstance(target, Refusal):
        return target
    run_context, run = target.run_context, target.run_context.run.run
    approval = _open(ports, run_context)
    if approval is not None and (how := _elsewhere(run_context, approval, asking, ports.clock.unix_ms())) is not None:
        return _refused(run_context, how)
    session = run_context.session.session
    first = approval.ask.choices[0] if approval is not None else None
    answer = GivenAnswer(is_approved=given.choice == first, choice=given.choice, note=given.note, mark=given.mark)
    found = answer_approval(ports, (session, run), answer, BY_APP, actor or Actor(type="agent", identifier="app"))
    if isinstance(found, Refusal):
        return found
    state = "the run continues" if found.is_advanced else "the run still waits"
    notice = f"{given.choice!r} was recorded as a claim, through a page in the chat: {state}."
    with after_append():
        now = load_target(ports.read, tokens)
        if isinstance(now, Refusal):
            return now
        return _answer(_page(ports, now.run_context, asking).changed(notice=notice))


def _page(ports: Ports, run_context: RunContext, asking: ApprovalContext) -> RunPage:
    from interlock.service.report.session_report import draw_chart  # noqa: PLC0415 — only a page in a chat draws

    view, tip = run_context.view(), run_context.run.tip
    assert tip is not None, "a run has a root"
    node = run_context.session.nodes[tip]
    graph = newest_part(run_graph(run_context.session, run_context.run.run), APP_NODES_SHOWN)
    approval = _open(ports, run_context)
    how = _elsewhere(run_context, approval, asking, ports.clock.unix_ms()) if approval is not None else None
    return RunPage(
        title=f"{view.workflow_name} · run {view.label}",
        status=run_status(run_context.session, node, run_context.snapshot(node)),
        picture=render_svg(draw_chart(run_context, graph), is_embedded=True),
        question=_question(approval, how) if approval is not None else None,
    )


def _open(ports: Ports, run_context: RunContext) -> OpenApproval | None:
    tip = run_context.run.tip
    if tip is None or run_context.run.ended is not None:
        return None
    return open_approval(ports.read.reader, run_context, run_context.session.nodes[tip])


def _question(approval: OpenApproval, how: str | None) -> OpenQuestion:
    return OpenQuestion(
        title=approval.title,
        question=approval.question,
        shown=tuple(ShownPart(name=name, text=text) for name, text in approval.shown),
        choices=approval.ask.choices,
        mark=approval.mark,
        needs_note=approval.ask.needs_note,
        how=how,
    )


def _elsewhere(run_context: RunContext, approval: OpenApproval, asking: ApprovalContext, now_ms: int) -> str | None:
    """Return where a question is answered that an answer from the page cannot decide; None if it can (CHAT-2)."""
    if approval.expiry.is_over(now_ms):
        return f"The question has expired. {way_out(run_context, approval.node).words}"
    label = run_context.view().label
    command = f"Answer with `interlock approve {label}` or `interlock reject {label}` in a terminal, or in the console."
    if approval.assurance != "claimed":
        return f"The step demands an {approval.assurance} answer, and one from this page is only claimed. {command}"
    if not asking.takes_app_answers:
        return f"The configuration accepts no answer from this page (`gates.apps`, `gates.claims`). {command}"
    return None


def _refused(run_context: RunContext, how: str) -> Refusal:
    found, _, fix = how.partition(". ")
    view = run_context.view()
    return Refusal(
        code=ErrorCode.VALIDATION_ERROR,
        message=f"Run `{view.label}` ({view.workflow_id}): {found}. Nothing was recorded.",
        suggestion=fix,
        details={"run": view.to_json()},
    )


def _answer(page: RunPage) -> Answer:
    parts = [f"{page.title}: {page.status}."]
    if page.question is not None:
        parts.append(f"It waits for an answer: {one_line(page.question.question, WORDS_BYTES_MAX)}")
    if page.notice is not None:
        parts.append(page.notice)
    return Answer(data=page, text=" ".join(parts))
