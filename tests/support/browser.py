"""Chromium as a person uses it, and consoles as processes that a person starts in a terminal."""

import os
import pty
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import BrowserContext, ConsoleMessage, Frame, Page, expect, sync_playwright

ROOT = Path(__file__).parents[2]
INSTALLED = Path(os.environ.get("INTERLOCK_BROWSER") or ROOT / ".browser").absolute()
"""The directory that `make browser` fills."""
ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
WAIT_MS = 20_000
"""How long a test waits for something in a page: far longer than it takes."""
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
AXE = "node_modules/axe-core/axe.min.js"
AXE_RULES = {
    "light": {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]},
    "dark": {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}},
}
"""What axe checks in each theme: all that a theme cannot change is checked in one."""


def require_browser() -> str:
    """Return the path of Chromium; skip the test, and say what installs it, where it is not."""
    found = shutil.which("chromium")
    if found is None or not (INSTALLED / "browser.stamp").is_file():
        pytest.skip("SKIPPED: the console is not tested in a browser. `make browser` installs Chromium and axe.")
    return found


@contextmanager
def chromium() -> Generator[BrowserContext]:
    """Start Chromium with a new profile; give its context."""
    path = require_browser()
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser.new_context()
        browser.close()


@dataclass(slots=True)
class Watched:
    """A page of a browser, and everything that went wrong in it: errors, refusals of the policy, failed scripts."""

    page: Page
    wrong: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.page.set_default_timeout(WAIT_MS)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", self._noting())

    def _noting(self) -> Callable[[ConsoleMessage], None]:
        return lambda message: self._note(message)  # noqa: PLW0108 — Playwright writes to the object of a bound method

    def _note(self, message: ConsoleMessage) -> None:
        # A status is part of an answer, and a stream that was lost is part of a test.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.wrong.append(message.text)

    def findings(self, frame: Frame | None = None) -> list[str]:
        """Return the serious and critical findings of axe on the page, or in a frame of it, in both themes."""
        tested = frame or self.page
        tested.evaluate((INSTALLED / AXE).read_text(encoding="utf-8"))
        found: list[str] = []
        for theme in THEMES:
            self.page.emulate_media(color_scheme=theme)
            result: dict[str, Any] = tested.evaluate("(rules) => axe.run(document, rules)", AXE_RULES[theme])
            grave = [one for one in result["violations"] if one["impact"] in ("serious", "critical")]
            found += [f"{theme}: {one['id']}: {one['nodes'][0]['html']}" for one in grave]
        return found

    def width_over(self) -> int:
        """Return by how many pixels the content is wider than the window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def console_process(
    data_dir: Path, workspace: Path, port: int, *, ends_by: signal.Signals = signal.SIGINT
) -> Generator[str]:
    """Start a console in a terminal of its own, as a person does; give the link that it prints."""
    terminal, stdin = pty.openpty()
    command = [sys.executable, "-m", "interlock", "console", "--no-open", "--port", str(port)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
    environment |= {"PYTHONUNBUFFERED": "1", "INTERLOCK_WORKFLOWS_DIR": str(workspace / "none")}
    with subprocess.Popen(
        [*command, "--data-dir", str(data_dir), "--workspace", str(workspace)],
        stdin=stdin,
        stdout=subprocess.PIPE,
        env=environment,
        cwd=workspace,
        text=True,
    ) as process:
        os.close(stdin)
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1]
        finally:
            process.send_signal(ends_by)
            process.communicate(timeout=20)
            os.close(terminal)
