"""A browser for the console's application, in this process: it sends what a browser sends, and keeps its cookie."""

import asyncio
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from starlette.applications import Starlette

from interlock.cli.workflow.places import WorkflowLocations
from interlock.config.settings import Settings
from interlock.console.access import Access
from interlock.console.app import build_app
from interlock.console.decisions import Decisions
from interlock.console.maintenance import Maintenance
from interlock.console.reading import Sources
from interlock.kernel.ids import SessionId
from interlock.service.clock import Clock, SystemClock
from interlock.testing.harness import Harness

PORT = 7517
HOST = f"127.0.0.1:{PORT}"
ORIGIN = f"http://{HOST}"
LINK = "the-first-link"
NOWHERE = Path("/nonexistent")
"""The data directory of a harness in memory: no file of it is read."""


def console_of(
    harness: Harness,
    clock: Clock | None = None,
    *,
    is_person: bool = True,
    faults: str | None = None,
    kept: Collection[SessionId] = (),
) -> tuple[Starlette, Access]:
    """Return the console over a harness, with the first link `LINK`.

    `is_person`: a person started it. `faults`: those of the configuration file. `kept`: sessions marked to be kept.
    """
    sources = Sources(
        store=harness.store,
        catalog=harness.ports.catalog,
        workspace=None,
        repo=None,
        clock=clock or SystemClock(),
        keys=harness.ports.signing_keys,
    )
    access = Access(port=PORT, clock=clock or SystemClock(), first_link=LINK)
    user = harness.data_dir / "workflows" if harness.data_dir is not None else None
    settings = Settings(data_dir=harness.data_dir or NOWHERE, workspace=harness.workspace, user_workflows=user)
    decisions = Decisions(ports=harness.ports, settings=settings, is_of_agent=lambda: not is_person)
    places = WorkflowLocations(
        workspace=harness.workspace or NOWHERE, user_dir=user or NOWHERE / "workflows", core_source=None
    )
    maintenance = Maintenance(
        keys=lambda: {"keys": 1},
        collection=lambda: {"sessions": 0},
        kept=lambda: frozenset(kept),
        clients=lambda: {"json": "a block"},
        read_settings=lambda: faults or settings,
        authoring=places.author,
    )
    return build_app(sources, decisions, maintenance, access), access


@dataclass(slots=True)
class Browser:
    """A browser at the console's own address. `cookies` are empty until it has entered."""

    app: Starlette
    cookies: dict[str, str] = field(default_factory=dict[str, str])

    def send(self, method: str, path: str, headers: Mapping[str, str] | None = None, **more: Any) -> httpx.Response:
        """Send exactly these headers besides the host and the cookies."""
        return asyncio.run(self._send(method, path, dict(headers or {}), more))

    def get(self, path: str) -> httpx.Response:
        """Follow a link of a page, and redirects. A page that reads a long log is asked for until it is read."""
        while True:
            page = self.send("GET", path, {"sec-fetch-site": "same-origin"}, follow_redirects=True)
            if "data-reading" not in page.text:
                return page

    def post(self, path: str, fields: Mapping[str, str]) -> httpx.Response:
        """Send a form of a page, as the page sends it."""
        page = self.get(path if "/questions/" in path or path.startswith("/decide/") else "/inbox").text
        found = re.search(r'name="interlock-token" content="([^"]*)"', page)
        assert found is not None, page
        headers = {"origin": ORIGIN, "sec-fetch-site": "same-origin", "x-interlock-token": found[1]}
        return self.send("POST", path, headers, data=dict(fields), follow_redirects=False)

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


def entered(harness: Harness, *, is_person: bool = True, kept: Collection[SessionId] = ()) -> Browser:
    """Return a browser that was admitted to the console over a harness."""
    browser = Browser(console_of(harness, is_person=is_person, kept=kept)[0])
    assert browser.enter().status_code == 204
    return browser
