"""Checks every request before any page sees it, and adds the headers of every response (CON-2, CON-3).

One middleware, so that no page can forget a check. Nothing here reads the store.
"""

from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from interlock.console.access import Access, make_secret
from interlock.console.decision_link import PATH, DecisionLink, parse_decision_link
from interlock.console.rendering.templates import Templates
from interlock.kernel.budgets.console import (
    CONSOLE_BODY_BYTES_MAX,
    CONSOLE_SOURCE_BODY_BYTES_MAX,
    CONSOLE_TARGET_BYTES_MAX,
)

TOKEN_HEADER = "x-interlock-token"  # noqa: S105 — the name of a header, not a secret
OPEN_PATHS = ("/enter", "/static/console.css", "/static/console.js")
"""What a browser gets before it is admitted: the exchange of a link, and the files of the page that makes it."""
_READS = ("GET", "HEAD")
_OWN_SITES = ("same-origin", "none")
_FIXED_HEADERS: Mapping[str, str] = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_NOT_KEPT = (b"cache-control", b"no-store")
"""What every answer says that does not say itself how long it may be kept: only the script and the style do."""

_Refused = tuple[int, str, str]
"""A status, what was found, and what to do instead."""


class Guard:
    """Lets through only requests of an admitted browser's own pages to this console."""

    def __init__(self, app: ASGIApp, *, access: Access, templates: Templates) -> None:
        self._app, self._access, self._templates = app, access, templates
        self._hosts = (f"127.0.0.1:{access.port}", f"localhost:{access.port}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, and pass it on or answer it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        request = Request(scope)
        nonce = make_secret(self._access.clock)
        scope.setdefault("state", {})["nonce"] = nonce
        answer = self._answer(request)
        guarded = _with_headers(send, nonce)
        if answer is not None:
            await answer(scope, receive, guarded)
            return
        await self._app(scope, _limited(receive, _body_bytes_max(request.url.path)), guarded)

    def _answer(self, request: Request) -> Response | None:
        """Return the response that ends a request here; None if a page may have it."""
        refused = self._refusal(request)
        if refused is not None:
            status, found, fix = refused
            return self._templates.message(request, status, found, fix)
        browser = self._access.browser_of(_cookie(request, self._access.cookie))
        link = _decision_link(request)
        # A link decides with its own signature, also in a browser that is admitted.
        token = link.signature if link is not None else browser.token if browser is not None else None
        request.state.token = token
        admitted = link if link is not None else browser
        request.state.is_person = admitted is not None and admitted.is_person
        if token is None and request.url.path not in OPEN_PATHS:
            is_page = request.method in _READS and request.headers.get("sec-fetch-mode", "navigate") == "navigate"
            return self._templates.page(request, "enter.html", {"port": self._access.port}, 200 if is_page else 401)
        # A browser that is not admitted sees nothing that another site could not show.
        if self._is_foreign_navigation(request):
            return self._templates.page(request, "neutral.html", {"target": _own_target(request)})
        if request.method == "POST" and request.url.path != "/enter" and request.headers.get(TOKEN_HEADER) != token:
            return self._templates.message(request, 403, "The request has no valid token.", "Reload the page.")
        return None

    def _refusal(self, request: Request) -> _Refused | None:
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return 421, "This console has another address.", f"Open http://{self._hosts[0]}/."
        if request.method not in (*_READS, "POST"):
            return 405, "This method is not allowed.", "Use GET or POST."
        if len(_target(request)) > CONSOLE_TARGET_BYTES_MAX:
            return 414, "The address is too long.", f"Shorten it to {CONSOLE_TARGET_BYTES_MAX} bytes."
        if request.method == "POST" and (fault := _body_fault(request)) is not None:
            return fault
        return _origin_fault(request, f"http://{hosts[0]}")

    def _is_foreign_navigation(self, request: Request) -> bool:
        return request.headers.get("sec-fetch-site") == "cross-site"


def _origin_fault(request: Request, own: str) -> _Refused | None:
    """Return why the origin of a request is not that of a page of this console."""
    origins, site = request.headers.getlist("origin"), request.headers.get("sec-fetch-site")
    foreign = "The request comes from another site."
    if origins and origins != [own]:
        return 403, foreign, "Open the address yourself."
    if site is not None and site not in _OWN_SITES and not _is_plain_link(request):
        return 403, foreign, "Open the address yourself."
    if origins:
        return None
    if request.method == "POST":
        return 403, "The request does not name its origin.", "Send it from a page of this console."
    if site is None:
        return 403, "The request does not say where it comes from.", "Open the address in a current browser."
    return None


def _is_plain_link(request: Request) -> bool:
    """Say whether a person followed a link of another site to here, in a tab of its own."""
    wanted = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    is_wanted = all(request.headers.get(name) == value for name, value in wanted.items())
    return is_wanted and request.method == "GET"


def _body_fault(request: Request) -> _Refused | None:
    length = request.headers.get("content-length")
    if length is None or not length.isdecimal():
        return 411, "The request does not say how long it is.", "Send it from a page of this console."
    bytes_max = _body_bytes_max(request.url.path)
    if len(length) > len(str(bytes_max)) or int(length) > bytes_max:
        return 413, "The request is too large.", f"Send at most {bytes_max} bytes."
    return None


def _decision_link(request: Request) -> DecisionLink | None:
    """Return the link that a request opens. Its page checks the signature, because that covers what the page shows."""
    path = request.url.path
    return parse_decision_link(path.removeprefix(PATH)) if path.startswith(PATH) else None


def _own_target(request: Request) -> str:
    """Return the address of a request as a link that stays on this console: `//name` would lead to another site."""
    path = "/" + quote(request.scope["path"].lstrip("/"))
    return f"{path}?{request.url.query}" if request.url.query else path


def _target(request: Request) -> str:
    query = request.url.query
    return f"{request.url.path}?{query}" if query else request.url.path


def _cookie(request: Request, name: str) -> str | None:
    try:
        found = SimpleCookie(request.headers.get("cookie", "")).get(name)
    except CookieError:
        return None
    return found.value if found is not None else None


def _body_bytes_max(path: str) -> int:
    """Return the largest body of a request: only sources of workflows are large."""
    is_source = path.startswith("/workflows/")
    return CONSOLE_SOURCE_BODY_BYTES_MAX if is_source else CONSOLE_BODY_BYTES_MAX


def _limited(receive: Receive, bytes_max: int) -> Receive:
    """Return a source of a request's body that ends after the largest body, whatever its length was said to be."""
    taken = 0

    async def limited() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > bytes_max:
            return {"type": "http.disconnect"}
        return message

    return limited


def _with_headers(send: Send, nonce: str) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            kept = [pair for pair in message.get("headers", []) if pair[0].decode().lower() not in _FIXED_HEADERS]
            fixed = {**_FIXED_HEADERS, "content-security-policy": content_policy(nonce)}
            if all(name.lower() != _NOT_KEPT[0] for name, _ in kept):
                kept.append(_NOT_KEPT)
            message = {**message, "headers": [*kept, *((name.encode(), fixed[name].encode()) for name in fixed)]}
        await send(message)

    return guarded


def content_policy(nonce: str) -> str:
    """Return the policy of a page: only scripts and styles that carry its nonce, and nothing of other servers."""
    return (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; "
        "img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )
