"""The application of the console: its addresses, and what it answers when something fails."""

import logging
from threading import Event

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ExceptionHandler

from interlock.console.access import Access
from interlock.console.decision_link import PATH
from interlock.console.decisions import Decisions
from interlock.console.guard import Guard
from interlock.console.live import Watcher
from interlock.console.maintenance import Maintenance
from interlock.console.pages.contracts import ContractPages
from interlock.console.pages.edit import EditPages
from interlock.console.pages.history import PastPages
from interlock.console.pages.inbox import Inbox
from interlock.console.pages.runs import Pages
from interlock.console.pages.settings import SettingsPage
from interlock.console.reading import RefusedPageError, Sources
from interlock.console.rendering.static_files import static_file
from interlock.console.rendering.templates import Templates
from interlock.kernel.budgets.console import CONSOLE_TARGET_BYTES_MAX
from interlock.service.failures import EXPECTED_ERRORS, command_refusal

_log = logging.getLogger(__name__)


def build_app(
    sources: Sources, decisions: Decisions, maintenance: Maintenance, access: Access, ending: Event | None = None
) -> Starlette:
    """Return the application. Every request passes the guard first; only those of `Decisions` write.

    `ending` is set when the process is about to end: streams end, too.
    """
    templates = Templates()
    pages, enter = Pages(sources=sources, maintenance=maintenance, templates=templates), _Entrance(decisions, access)
    inbox = Inbox(sources=sources, decisions=decisions, access=access, templates=templates)
    past = PastPages(sources=sources, templates=templates)
    contracts = ContractPages(sources=sources, decisions=decisions, templates=templates)
    settings = SettingsPage(decisions=decisions, maintenance=maintenance, templates=templates)
    edits = EditPages(authoring=maintenance.authoring, templates=templates)
    question, intent = "/sessions/{session}/questions/{node}", "/inbox/intents/{session}/{intent}"
    routes = [
        Route("/", pages.now, name="now"),
        Route("/enter", enter.exchange, methods=["POST"]),
        Route("/live", Watcher(sources, ending or Event()).stream),
        Route("/static/{name}", static_file),
        Route("/inbox", inbox.listed),
        Route("/inbox/checks", inbox.allow, methods=["POST"]),
        Route(f"{intent}/deliver", inbox.deliver, methods=["POST"]),
        Route(f"{intent}/abandon", inbox.abandon, methods=["POST"]),
        Route(question, inbox.question),
        Route(question, inbox.answer, methods=["POST"]),
        Route(f"{PATH}{{link}}", inbox.linked_question),
        Route(f"{PATH}{{link}}", inbox.linked_answer, methods=["POST"]),
        Route("/compare", pages.compare),
        Route("/workflows", pages.workflows),
        Route("/workflows/{workflow}", pages.workflow),
        Route("/workflows/{workflow}/edit", edits.edit),
        Route("/workflows/{workflow}/check", edits.check, methods=["POST"]),
        Route("/workflows/{workflow}/save", edits.save, methods=["POST"]),
        Route("/workflows/{workflow}/copy", edits.copy, methods=["POST"]),
        Route("/sessions/{session}", pages.session),
        Route("/sessions/{session}/prove", pages.prove),
        Route("/sessions/{session}/nodes/{node}", pages.node),
        Route("/sessions/{session}/contract", contracts.contract),
        Route("/sessions/{session}/runs/{run}", pages.run),
        Route("/sessions/{session}/runs/{run}/replay", past.replay),
        Route("/sessions/{session}/runs/{run}/turns", past.turns),
        Route("/contracts", contracts.listed),
        Route("/settings", settings.shown),
    ]

    def fail(request: Request, error: Exception) -> Response:
        return _failed(templates, request, error)

    handlers: dict[int | type[Exception], ExceptionHandler] = dict.fromkeys(
        (*EXPECTED_ERRORS, RefusedPageError, HTTPException, Exception), fail
    )
    guard = Middleware(Guard, access=access, templates=templates)
    app = Starlette(routes=routes, middleware=[guard], exception_handlers=handlers)
    # A path that no page has is not found: no answer sends a browser to an address that a request wrote.
    app.router.redirect_slashes = False
    return app


def _failed(templates: Templates, request: Request, error: Exception) -> Response:
    """Return the page of an error: what was found and what to do, never a traceback."""
    if isinstance(error, RefusedPageError):
        refusal = error.refusal
        return templates.message(request, error.status, f"{refusal.code}: {refusal.message}", refusal.suggestion)
    if isinstance(error, HTTPException):
        return templates.message(request, error.status_code, error.detail, "Begin with the list of all runs.")
    if isinstance(error, EXPECTED_ERRORS):
        refusal = command_refusal(error)
        return templates.message(request, 503, f"{refusal.code}: {refusal.message}", refusal.suggestion)
    _log.error("A page failed", exc_info=error)
    fix = "Reload the page. If it fails again, report it with what this process printed."
    return templates.message(request, 500, "This page failed because of a fault of Interlock.", fix)


class _Entrance:
    def __init__(self, decisions: Decisions, access: Access) -> None:
        self._decisions, self._access = decisions, access

    async def exchange(self, request: Request) -> Response:
        """Exchange the secret of a link for the cookie of this browser."""
        secret = (await request.body()).decode("ascii", "replace")
        browser = None
        if len(secret) < CONSOLE_TARGET_BYTES_MAX:
            # The link that the console printed needs no key, so a damaged key ring keeps nobody out.
            browser = self._access.admit(secret, ()) or await run_in_threadpool(self._admit, secret)
        if browser is None:
            return Response("This link was used, has expired, or is from an earlier start of the console.", 403)
        response = Response("", 204)
        response.set_cookie(self._access.cookie, browser, httponly=True, samesite="strict", path="/")
        return response

    def _admit(self, secret: str) -> str | None:
        ring = self._decisions.ports.read.key_ring.keys(fresh=True)
        return self._access.admit(secret, ring.keys()) if ring is not None else None
