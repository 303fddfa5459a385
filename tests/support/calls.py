"""Calls that answers show, in a form that tests can compare at a glance."""

import json
from collections.abc import Mapping
from typing import Any

from interlock.kernel.blanks import fill_in


def with_samples(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call with its blanks in place: each as its words in angle brackets."""
    return {
        "tool": call["tool"],
        "arguments": fill_in(call["arguments"], call["fill"], lambda one: f"<{one.get('what', 'written by you')}>"),
    }


def assert_shown(call: Mapping[str, Any], text: str) -> None:
    """Assert that a text shows a call as the structure has it."""
    shown = {"tool": call["tool"], "arguments": call["arguments"]}
    assert json.dumps(shown, separators=(",", ":"), ensure_ascii=False) in text
    for blank in call["fill"]:
        assert f"- `{blank['path']}`" in text
        assert blank.get("what", "") in text
