"""More than two hundred hostile requests over a socket to a console: none shows, decides or changes anything."""

import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import httpx
import pytest
from tests.support.approvals import ASK
from tests.support.browser import console_process, free_port
from tests.support.server import tree

from interlock.testing.harness import Harness, linear_workflow

SECRET = "The goal that nobody else may read"
SHIP = linear_workflow("team.ship", {"id": "a", "title": "A", "prompt": "Do a."}, ASK)
READS = [
    "/",
    "/inbox",
    "/settings",
    "/live?session=*",
    "/static/../app.py",
    "{run}",
    "{question}",
    "/workflows/wr.quick_task",
]
WRITES = ["{question}", "/inbox/checks", "/workflows/wr.quick_task/copy", "/workflows/wr.quick_task/save", "/enter"]
ODD_PATHS = [
    *("/../../etc/passwd", "/static/%2e%2e/%2e%2e/app.py", "/static/..%5capp.py", "//evil.test/", "/%2f%2fevil.test"),
    *(
        "/sessions/..%2f..%2fkeys%2fkeyring.json",
        "/sessions/%00/prove",
        "/workflows/..%2f..%2f/edit",
        "/keys/keyring.json",
    ),
    *("/decide/..%2f", "/decide/1.person.a.b.c", "/static/console.css/..%2f..%2fapp.py", "http://evil.test/", "*"),
]


@pytest.mark.inv("CON-2", "CON-4", "CON-9")
def test_no_hostile_request_over_a_socket_is_answered_with_content_or_changes_anything(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path / "data", SHIP)
    began = harness.start("team.ship", goal=SECRET)
    waiting = harness.advance(began, "The plan: change one file, and test it.")
    session, port = harness.session_of(began), free_port()
    places = {
        "run": f"/sessions/{session}/runs/{harness.reference_of(waiting).run}",
        "question": f"/sessions/{session}/questions/{harness.reference_of(waiting).node}",
    }
    with console_process(tmp_path / "data", tmp_path, port) as other_start:
        old_secret = other_start.partition("/#")[2]
        old_cookie = _entered(port, old_secret)
    with console_process(tmp_path / "data", tmp_path, port) as link:
        secret = link.partition("/#")[2]
        cookie = _entered(port, secret)
        assert SECRET in _sent(port, _request("GET", "/", {"host": f"127.0.0.1:{port}", **_OWN, "cookie": cookie}))
        token = re.search(r'interlock-token" content="([^"]+)"', _page(port, cookie, "/inbox"))
        assert token is not None
        before, found, count = tree(tmp_path), list[str](), 0
        for request in _attacks(port, places, _Stolen(cookie, old_cookie, token[1], secret, old_secret)):
            count += 1
            answer = _sent(port, request)
            is_shown = SECRET in answer or "keyring" in answer or "access-control" in answer.lower()
            is_done = answer.startswith(("HTTP/1.1 204", "HTTP/1.1 3")) or "set-cookie" in answer.lower()
            if is_shown or is_done:
                found.append(f"{request[:300]!r} -> {answer[:200]!r}")
        assert count >= 200
        assert found == []
        assert tree(tmp_path) == before
        assert SECRET in _page(port, cookie, places["run"]), "it still answers its own page"


@dataclass(frozen=True, slots=True)
class _Stolen:
    """A cookie, one of another start, the token of a page, and the used secrets of both links."""

    cookie: str
    old_cookie: str
    token: str
    secret: str
    old_secret: str


_OWN = {"sec-fetch-site": "same-origin"}


def _attacks(port: int, places: dict[str, str], stolen: _Stolen) -> Iterator[bytes]:
    cookie, old_cookie, token = stolen.cookie, stolen.old_cookie, stolen.token
    secret, old_secret = stolen.secret, stolen.old_secret
    host = f"127.0.0.1:{port}"
    own = {"host": host, "cookie": cookie}
    signed = {**own, "origin": f"http://{host}", "x-interlock-token": token, **_OWN}
    hosts = ["evil.test", f"evil.test:{port}", "127.0.0.1", f"0.0.0.0:{port}", f"[::1]:{port}", f"{host}.evil.test", ""]
    origins = ["null", "http://evil.test", f"https://{host}", f"http://localhost:{port}", f"http://{host}/", "file://"]
    sites: list[dict[str, str]] = [
        {},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
    ]
    reads, writes = ([one.format(**places) for one in each] for each in (READS, WRITES))
    # Rebinding, forged origins and other sites, with the cookie of the browser.
    yield from (_request("GET", path, {**own, **_OWN, "host": one}) for path, one in product(reads, hosts))
    yield from (_request("GET", path, {**own, **_OWN, "origin": one}) for path, one in product(reads, origins))
    yield from (_request("GET", path, {**own, **one}) for path, one in product(reads, sites))
    # CSRF: a form of another site, without a token, with another one, and without an origin.
    form = b"choice=approve&note=&shown=" + b"0" * 64
    for path in writes:
        changes: list[dict[str, str | None]] = [
            *({"origin": one} for one in (*origins, None)),
            *([{"x-interlock-token": one} for one in (None, "", "x", token[:-1])] if path != "/enter" else []),
            {"host": "evil.test"},
            {"sec-fetch-site": "cross-site"},
            {"content-length": "99999999"},
        ]
        yield from (_request("POST", path, {**signed, **one}, form) for one in changes)
    # Traversal, cookies and links of another start, links that were used, and other methods.
    yield from (_request("GET", path, {**own, **_OWN}) for path in ODD_PATHS)
    cookies = ["", old_cookie, cookie[:-1], cookie.replace("=", "=x"), f"{cookie}; {cookie}x"]
    yield from (_request("GET", path, {**own, **_OWN, "cookie": one}) for path, one in product(reads[:3], cookies))
    used = [secret, old_secret, "", secret[:-1], f"{secret}x", "1.person.x.y", secret * 99]
    yield from (_request("POST", "/enter", signed, one.encode()) for one in used)
    methods = ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT")
    yield from (_request(one, "/", {**own, **_OWN}) for one in methods)
    # A body of unknown or of two lengths, one that never ends, and headers that are too large.
    chunked = {**signed, "content-length": None, "transfer-encoding": "chunked"}
    yield _request("POST", "/enter", chunked, b"ffffffff\r\n" + b"a" * 100_000)
    yield _request("POST", "/enter", {**signed, "transfer-encoding": "chunked"}, b"0\r\n\r\n")
    yield _request("GET", "/" + "a" * 70_000, {**own, **_OWN})
    yield _request("GET", "/", {**own, **_OWN, "x-large": "a" * 300_000})
    yield _request("GET", "/", {**own, **_OWN, "upgrade": "websocket", "connection": "upgrade", "host": "evil.test"})


def _request(method: str, path: str, headers: dict[str, str | None] | dict[str, str], body: bytes = b"") -> bytes:
    lengths = {"content-length": str(len(body))} if method == "POST" else {}
    every = {**lengths, **headers, "connection": headers.get("connection") or "close"}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in every.items() if value is not None)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def _sent(port: int, request: bytes) -> str:
    """Return the answer, or its beginning if it does not end."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=1.0) as connection:
        try:
            connection.sendall(request)
            while (part := connection.recv(65_536)) and len(answer) < 300_000:
                answer += part
        except OSError:
            pass
    return answer.decode("utf-8", "replace")


def _page(port: int, cookie: str, path: str) -> str:
    return _sent(port, _request("GET", path, {"host": f"127.0.0.1:{port}", "cookie": cookie, **_OWN}))


def _entered(port: int, secret: str) -> str:
    origin = f"http://127.0.0.1:{port}"
    with httpx.Client(base_url=origin, transport=httpx.HTTPTransport(retries=5), trust_env=False) as client:
        answer = client.post("/enter", content=secret, headers={"origin": origin, **_OWN})
        assert answer.status_code == 204
        return "; ".join(f"{name}={value}" for name, value in answer.cookies.items())
