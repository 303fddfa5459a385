"""The questions of a step at a terminal: field by field, and again after an answer that is none."""

import asyncio
import os
import sys

import pytest
from mcp import types

from interlock.cli.drive.asking import answer_form

FIELDS = {
    "decision": {"type": "string", "title": "Decision", "enum": ["confirm", "decline"]},
    "is_urgent": {"type": "boolean"},
    "copies": {"type": "integer"},
    "comment": {"type": "string"},
}


def answered(monkeypatch: pytest.MonkeyPatch, typed: str) -> types.ElicitResult:
    """Answer the form with what is typed, until the end of the input."""
    read, write = os.pipe()
    os.write(write, typed.encode())
    os.close(write)
    schema = {"type": "object", "properties": FIELDS, "required": ["decision"]}
    params = types.ElicitRequestFormParams(message="May it be sent?", requested_schema=schema)
    with os.fdopen(read, encoding="utf-8") as stdin, monkeypatch.context() as patched:
        patched.setattr(sys, "stdin", stdin)
        return asyncio.run(answer_form(None, params))


def test_an_answer_that_is_none_of_a_field_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = answered(monkeypatch, "maybe\nConfirm\nperhaps\nno\ntwo\n2\nSend it.\n")
    assert result.action == "accept"
    assert result.content == {"decision": "confirm", "is_urgent": False, "copies": 2, "comment": "Send it."}
    said = capsys.readouterr().err
    assert "'maybe' is not an answer here. Type confirm | decline, or nothing to leave it out." in said
    assert "'perhaps' is not an answer here. Type yes | no, or nothing to leave it out." in said
    assert "'two' is not an answer here. Type a number, or nothing to leave it out." in said
    assert said.count("Decision (confirm | decline): ") == 2


@pytest.mark.parametrize("typed", ["", "\n", "maybe\n\n", "maybe\n"])
def test_a_decision_that_is_left_out_cancels_the_answer(monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
    assert answered(monkeypatch, typed).action == "cancel"
