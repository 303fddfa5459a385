"""The inbox: what waits for a person, and the pages on which the person decides it (CON-8, CON-9)."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from interlock.console.access import Access
from interlock.console.decision_link import PATH, DecisionLink, parse_decision_link
from interlock.console.decisions import AskedQuestion, Decisions, linked_question
from interlock.console.pages.forms import read_form
from interlock.console.reading import RefusedPageError, Sources, missing
from interlock.console.rendering.templates import Templates
from interlock.kernel.budgets import APPROVAL_NOTE_BYTES_MAX
from interlock.kernel.budgets.console import CONSOLE_ITEMS_SHOWN
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.ids import Digest, IntentId, NodeId, SessionId
from interlock.kernel.text import utf8_bytes
from interlock.record.world import ASSURANCES
from interlock.service.outside.approvals import way_out
from interlock.service.outside.dispatch import Undelivered
from interlock.service.trust.approve import ApprovalReport, GivenAnswer


@dataclass(frozen=True, kw_only=True)
class Inbox:
    """The handlers of what a person decides. Each reads or writes in a worker thread."""

    sources: Sources
    decisions: Decisions
    access: Access
    templates: Templates

    def listed(self, request: Request) -> Response:
        """Show what waits for a person, oldest first."""
        items = self.decisions.inbox(self.sources.listing())
        project = self.decisions.project() if any(one.kind == "check_to_allow" for one in items) else None
        values = {
            "title": "Inbox",
            "items": items[:CONSOLE_ITEMS_SHOWN],
            "left_out": max(0, len(items) - CONSOLE_ITEMS_SHOWN),
            "total": len(items),
            "project": project,
            "level": self._level(request),
            "live": "*",
        }
        return self.templates.page(request, "inbox.html", values)

    def question(self, request: Request) -> Response:
        """Show a question with all that is shown with it, and the form that answers it."""
        session, node = _named(request)
        asked = self.decisions.question(session, node)
        return self._question_page(request, session, node, asked)

    def linked_question(self, request: Request) -> Response:
        """Show the question of a link. This decides nothing, so a program may open the link in advance."""
        link, asked = self._linked(request)
        return self._question_page(request, link.session, link.node, asked)

    async def answer(self, request: Request) -> Response:
        """Record the answer to a question."""
        fields = await read_form(request, "choice", "note", "shown")
        session, node = _named(request)
        return await run_in_threadpool(self._answer, request, (session, node), fields)

    async def linked_answer(self, request: Request) -> Response:
        """Record the answer to the question of a link, if the link is still valid for it."""
        fields = await read_form(request, "choice", "note", "shown")

        def answer() -> Response:
            link, _ = self._linked(request)
            return self._answer(request, (link.session, link.node), fields)

        return await run_in_threadpool(answer)

    async def deliver(self, request: Request) -> Response:
        """Send an intent now."""
        fields = await read_form(request, "again")
        return await self._settle(
            request,
            lambda session, intent: self.decisions.deliver(session, intent, is_repeated=fields["again"] == "yes"),
        )

    async def abandon(self, request: Request) -> Response:
        """Record that an intent is not sent any more."""
        await read_form(request)
        is_person: bool = request.state.is_person
        return await self._settle(
            request, lambda session, intent: self.decisions.abandon(session, intent, is_by_person=is_person)
        )

    async def allow(self, request: Request) -> Response:
        """Allow the project's own checks as they were shown."""
        fields = await read_form(request, "digest")
        is_person: bool = request.state.is_person
        found = await run_in_threadpool(self.decisions.allow_checks, fields["digest"], is_by_person=is_person)
        if isinstance(found, Refusal):
            raise RefusedPageError(found, 409)
        values = {"title": "Allowed", "lines": [f"The checks of {found.directory} are allowed as they are."]}
        return self.templates.page(request, "done.html", {**values, "run": None, "again": None})

    def _level(self, request: Request) -> str:
        return self.decisions.level(is_by_person=request.state.is_person).assurance

    def _linked(self, request: Request) -> tuple[DecisionLink, AskedQuestion]:
        link = parse_decision_link(request.path_params["link"])
        asked = self.decisions.question(link.session, link.node) if link is not None else None
        ring = self.decisions.ports.read.key_ring.keys(fresh=True)
        if link is None or asked is None or ring is None:
            raise _void_link()
        expected = linked_question(asked, is_person=link.is_person)
        if not link.is_valid(expected, self.access.port, ring.keys(), self.access.clock):
            raise _void_link()
        return link, asked

    def _question_page(
        self, request: Request, session: SessionId, node: NodeId, asked: AskedQuestion | None
    ) -> Response:
        if asked is None:
            address = f"/sessions/{session}/nodes/{node}"
            values = {"title": "Decided", "lines": ["This question is not open any more."], "again": None}
            return self.templates.page(request, "done.html", {**values, "run": address}, 410)
        approval, level = asked.approval, self._level(request)
        expires = approval.expiry.at_ms
        is_over = approval.expiry.is_over(self.decisions.ports.clock.unix_ms())
        values = {
            "title": approval.title,
            "session": session,
            "asked": approval,
            "run": asked.run_context.view(),
            "run_address": f"/sessions/{session}/runs/{asked.run_context.run.run}",
            "digest": approval.digest(),
            "level": level,
            "is_enough": ASSURANCES.index(level) >= ASSURANCES.index(approval.assurance),
            "action": request.url.path,
            "way_out": way_out(asked.run_context, approval.node).words if is_over else None,
            "expires": _moment(expires) if expires is not None else None,
            "note_bytes_max": APPROVAL_NOTE_BYTES_MAX,
            "is_linked": request.url.path.startswith(PATH),
        }
        return self.templates.page(request, "question.html", values)

    def _answer(self, request: Request, where: tuple[SessionId, NodeId], fields: dict[str, str]) -> Response:
        session, node = where
        if utf8_bytes(fields["note"]) > APPROVAL_NOTE_BYTES_MAX:
            fix = f"Write at most {APPROVAL_NOTE_BYTES_MAX} bytes."
            message = "The note is too long. Nothing was recorded."
            raise RefusedPageError(Refusal(code=ErrorCode.VALIDATION_ERROR, message=message, suggestion=fix), 400)
        asked = self.decisions.question(session, node)
        is_approved = asked is None or fields["choice"] == asked.approval.ask.choices[0]
        given = GivenAnswer(
            is_approved=is_approved,
            choice=fields["choice"],
            note=fields["note"],
            asked=(node, Digest(fields["shown"])),
        )
        report = self.decisions.answer(session, node, given, is_by_person=request.state.is_person)
        self.sources.versions.expire()
        if report is None:
            raise RefusedPageError(missing(f"node {node}", session), 404)
        if isinstance(report, Refusal):
            raise RefusedPageError(report, 409)
        run = asked.run_context.run.run if asked is not None else None
        values = {
            "title": "Recorded",
            "lines": _answer_lines(report),
            "run": f"/sessions/{session}/runs/{run}" if run is not None else None,
            "again": None,
        }
        return self.templates.page(request, "done.html", values)

    async def _settle(self, request: Request, settle: Callable[[SessionId, IntentId], Any]) -> Response:
        session, intent = SessionId(request.path_params["session"]), IntentId(request.path_params["intent"])
        found = await run_in_threadpool(settle, session, intent)
        self.sources.versions.expire()
        if found is None:
            raise RefusedPageError(missing(f"intent {intent}", session), 404)
        is_left = isinstance(found, Undelivered)
        words = found.why if is_left else f"{found.state}{f': {found.note}' if found.note else ''}"
        values = {
            "title": "Recorded"
            if not isinstance(found, Undelivered)
            else "Not recorded"
            if found.was_made
            else "Not sent",
            "lines": [f"{intent}: {words}"],
            "run": f"/sessions/{session}",
            "again": request.url.path if is_left and request.url.path.endswith("/deliver") else None,
        }
        return self.templates.page(request, "done.html", values, 409 if is_left else 200)


def _answer_lines(report: ApprovalReport) -> list[str]:
    answer = report.answer
    advanced = "The run continued." if report.is_advanced else "The run still waits."
    lines = [f"{answer.fields['choice']!r} is recorded as {answer.assurance}.", advanced]
    if not report.is_advanced and ASSURANCES.index(answer.assurance) < ASSURANCES.index(report.demanded):
        lines.append(f"The run demands the level {report.demanded}.")
    return lines


def _moment(unix_ms: int) -> str:
    return datetime.fromtimestamp(unix_ms / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _named(request: Request) -> tuple[SessionId, NodeId]:
    return SessionId(request.path_params["session"]), NodeId(request.path_params["node"])


def _void_link() -> RefusedPageError:
    message = "This link was used, has expired, or is not one of this console."
    fix = "Open the inbox of the console; `interlock inbox` prints what is still open."
    return RefusedPageError(Refusal(code=ErrorCode.VALIDATION_ERROR, message=message, suggestion=fix), 410)
