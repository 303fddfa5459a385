"""The console opens a browser: by a private file, which leads on and is deleted."""

import os
import pty
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.support.browser import chromium, free_port, require_browser


@pytest.mark.inv("CON-4")
def test_the_browser_gets_a_private_file_that_leads_on_and_the_link_is_printed_at_once(tmp_path: Path) -> None:
    require_browser()
    opened, browser_program = tmp_path / "opened", tmp_path / "browser"
    os.mkfifo(opened)
    browser_program.write_text(f"#!/bin/sh\nprintf %s \"$*\" > '{opened}'\n")
    browser_program.chmod(0o755)
    terminal, stdin = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("INTERLOCK_", "PYTHON"))}
    environment |= {"BROWSER": str(browser_program)}
    command = [sys.executable, "-m", "interlock", "console", "--port", str(free_port())]
    with (
        chromium() as browser,
        subprocess.Popen(
            [*command, "--data-dir", str(tmp_path / "data")],
            stdin=stdin,
            stdout=subprocess.PIPE,
            env=environment,
            cwd=tmp_path,
            text=True,
        ) as process,
    ):
        os.close(stdin)
        try:
            assert process.stdout is not None
            secret = process.stdout.readline().split()[-1].partition("#")[2]
            argument = opened.read_text()
            assert argument.startswith("file://"), argument
            assert secret not in argument
            written = Path(argument.removeprefix("file://"))
            assert secret in written.read_text()
            assert stat.S_IMODE(written.stat().st_mode) == 0o600
            assert stat.S_IMODE(written.parent.stat().st_mode) == 0o700
            page = browser.new_page()
            page.goto(argument)
            expect(page.get_by_role("heading", level=1)).to_have_text("Now")
            assert not written.exists()
            page.reload()
            expect(page.get_by_role("heading", level=1)).to_have_text("Now")
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=20)
            os.close(terminal)
    assert not written.parent.exists()
