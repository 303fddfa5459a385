"""The demo is run as a user runs it."""

import subprocess
import sys

import pytest


@pytest.mark.inv("CRASH-8", "ANS-3")
def test_the_demo_plays_to_its_end_and_draws_the_run() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "interlock", "demo"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for act in (
        "starts a workflow",
        "kill -9",
        "sends its last call again",
        "refused",
        "a branch of its own",
        "verified",
    ):
        assert act in done.stdout
    assert done.stdout.count("the run stands here") == 1
    assert "Traceback" not in done.stderr
