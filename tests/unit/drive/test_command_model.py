"""A model that is a command: what it does with its request is its own matter."""

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from tests.unit.drive.test_vendor import REQUEST

from interlock.drive.faults import TurnError
from interlock.drive.models.answers import parse_answer
from interlock.drive.models.command import CommandModel
from interlock.drive.models.protocol import InferenceResponse

LONG = replace(REQUEST, system_prompt="x" * 1_000_000)
"""Longer than what a pipe holds."""


def test_a_command_that_ends_without_reading_its_request_is_a_fault_of_the_model() -> None:
    model = CommandModel([sys.executable, "-c", "raise SystemExit('no key is configured')"])
    with pytest.raises(TurnError) as raised:
        anyio.run(model.infer, LONG)
    assert (raised.value.fault.code, raised.value.fault.recoverable) == ("LLM_ERROR", True)
    assert "ended with 1: no key is configured" in raised.value.fault.message


def test_a_command_receives_the_whole_request() -> None:
    model = CommandModel(
        [sys.executable, "-c", "import json, sys; sys.exit(str(len(json.load(sys.stdin)['messages'])))"]
    )
    with pytest.raises(TurnError, match=f"ended with 1: {len(REQUEST.messages)}"):
        anyio.run(model.infer, LONG)


@pytest.mark.parametrize("count", [10**20, 10**400])
def test_more_tokens_than_any_request_has_are_a_malformed_answer(count: int) -> None:
    with pytest.raises(TurnError, match="`usage` has more than") as raised:
        parse_answer({"content": "x", "usage": {"inputTokens": count}}, "m")
    assert raised.value.fault.code == "LLM_ERROR"


@pytest.mark.parametrize("count", [True, -1, "5", 1.5, None])
def test_what_is_no_count_does_not_count(count: object) -> None:
    answer = parse_answer({"content": "x", "usage": {"inputTokens": count, "outputTokens": 2}}, "m")
    assert answer.usage.to_json() == {"inputTokens": 0, "outputTokens": 2, "cost": 0.0}
    with pytest.raises(TurnError) as raised:
        parse_answer({"error": {"code": "RATE_LIMITED", "message": "x", "retryAfterMs": count}}, "m")
    assert raised.value.fault.retry_after_ms is None


def test_a_pause_of_any_length_is_a_number_of_the_error() -> None:
    with pytest.raises(TurnError) as raised:
        parse_answer({"error": {"code": "RATE_LIMITED", "message": "x", "retryAfterMs": 10**400}}, "m")
    after = raised.value.fault.retry_after_ms
    assert after is not None
    assert after / 1000 > 0


def test_an_answer_that_is_too_long_ends_the_command_before_it_fills_the_memory() -> None:
    flood = (
        "import sys, time\nfor _ in range(50): sys.stdout.write('x' * 1_000_000); sys.stdout.flush()\ntime.sleep(60)"
    )

    async def ask() -> None:
        with anyio.fail_after(30):
            await CommandModel([sys.executable, "-c", flood]).infer(REQUEST)

    with pytest.raises(TurnError, match="more than 4000000 bytes"):
        anyio.run(ask)


@pytest.mark.skipif(sys.platform == "win32", reason="has no process groups")
def test_a_process_that_a_model_left_behind_holds_up_nobody_and_ends_with_it(tmp_path: Path) -> None:
    mark = tmp_path / "late.txt"
    late = f"import time, pathlib; time.sleep(1); pathlib.Path({str(mark)!r}).touch(); time.sleep(60)"
    leaving = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {late!r}]); print('{{}}')"

    async def ask() -> None:
        with anyio.fail_after(30):
            await CommandModel([sys.executable, "-c", leaving]).infer(REQUEST)
        await anyio.sleep(1.5)

    anyio.run(ask)
    assert not mark.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="has no sessions")
def test_the_answer_of_a_command_counts_although_its_daemon_keeps_the_output_open(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    daemon = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(120)'], start_new_session=True)"
    leaving = (
        f"import subprocess, sys, pathlib; daemon = {daemon}\n"
        f"pathlib.Path({str(pid_file)!r}).write_text(str(daemon.pid))\n"
        "print('{\"content\": \"' + 'x' * 1_000_000 + '\"}')"
    )

    async def ask() -> InferenceResponse:
        with anyio.fail_after(30):
            return await CommandModel([sys.executable, "-c", leaving]).infer(REQUEST)

    try:
        assert len(anyio.run(ask).content or "") == 1_000_000
    finally:
        os.kill(int(pid_file.read_text()), signal.SIGKILL)
