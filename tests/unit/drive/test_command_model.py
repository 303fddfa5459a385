"""A model that is a command: what it does with its request is its own matter."""

import sys
from dataclasses import replace

import anyio
import pytest
from tests.unit.drive.test_vendor import REQUEST

from interlock.drive.faults import TurnError
from interlock.drive.models.command import CommandModel

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
