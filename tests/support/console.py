"""A browser for the console's application, in this process: it sends what a browser sends, and keeps its cookie."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
from starlette.applications import Starlette

from interlock.console.access import Access
from interlock.console.app import build_app
from interlock.console.reading import Sources
from interlock.service.clock import Clock, SystemClock
from interlock.testing.harness import Harness

PORT = 7517
HOST = f"127.0.0.1:{PORT}"
ORIGIN = f"http://{HOST}"
LINK = "the-first-link"


def console_of(harness: Harness, clock: Clock | None = None) -> tuple[Starlette, Access]:
    """Return the console over a harness, with the first link `LINK`."""
    sources = Sources(
        store=harness.store, catalog=harness.ports.catalog, workspace=None, repo=None, clock=clock or SystemClock()
    )
    access = Access(port=PORT, clock=clock or SystemClock(), first_link=LINK)
    return build_app(sources, access), access


@dataclass(slots=True)
class Browser:
    """A browser at the console's own address. `cookies` are empty until it has entered."""

    app: Starlette
    cookies: dict[str, str] = field(default_factory=dict[str, str])

    def send(self, method: str, path: str, headers: Mapping[str, str] | None = None, **more: Any) -> httpx.Response:
        """Send exactly these headers besides the host and the cookies."""
        return asyncio.run(self._send(method, path, dict(headers or {}), more))

    def get(self, path: str) -> httpx.Response:
        """Follow a link of a page, and redirects."""
        return self.send("GET", path, {"sec-fetch-site": "same-origin"}, follow_redirects=True)

    def enter(self, secret: str = LINK) -> httpx.Response:
        """Exchange the secret of a link."""
        answer = self.send(
            "POST", "/enter", {"origin": ORIGIN, "sec-fetch-site": "same-origin"}, content=secret.encode()
        )
        self.cookies |= dict(answer.cookies)
        return answer

    async def _send(self, method: str, path: str, headers: dict[str, str], more: dict[str, Any]) -> httpx.Response:
        transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(
            transport=transport, base_url=ORIGIN, cookies=self.cookies, trust_env=False
        ) as client:
            return await client.request(method, path, headers=headers, **more)


def entered(harness: Harness) -> Browser:
    """Return a browser that was admitted to the console over a harness."""
    browser = Browser(console_of(harness)[0])
    assert browser.enter().status_code == 204
    return browser
