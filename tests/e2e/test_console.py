"""The console as a process: a link that it prints is exchanged over HTTP, and Ctrl-C ends it."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from interlock.testing.harness import Harness, linear_workflow


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.inv("CON-2", "CON-4")
def test_a_console_serves_whoever_has_its_link_until_it_is_interrupted(tmp_path: Path) -> None:
    Harness.on_disk(tmp_path / "data", linear_workflow("team.ship", "a")).start("team.ship", goal="Ship the box")
    port = free_port()
    command = [sys.executable, "-m", "interlock", "console", "--no-open", "--port", str(port)]
    places = ["--data-dir", str(tmp_path / "data"), "--workspace", str(tmp_path)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen([*command, *places], stdout=subprocess.PIPE, env=environment, text=True) as process:
        try:
            assert process.stdout is not None
            link = process.stdout.readline().split()[-1]
            origin, _, secret = link.partition("/#")
            assert origin == f"http://127.0.0.1:{port}"
            retrying = httpx.HTTPTransport(retries=5)
            with httpx.Client(base_url=origin, transport=retrying, headers={"sec-fetch-site": "same-origin"}) as client:
                assert "Ship the box" not in client.get("/").text
                assert client.post("/enter", content=secret, headers={"origin": origin}).status_code == 204
                assert "Ship the box" in client.get("/").text
                assert client.post("/enter", content=secret, headers={"origin": origin}).status_code == 403
                assert client.get("/static/console.css").headers["content-type"].startswith("text/css")
                assert client.get("/", headers={"host": "evil.test"}).status_code == 421
                with client.stream("GET", "/live?session=*") as stream:
                    assert next(stream.iter_text()).startswith("retry:")
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=10)
    assert process.returncode == 130
