"""Calls that answers show, in a form that tests can compare at a glance."""

from collections.abc import Mapping
from typing import Any

from tests.support.shown import shown_calls

from interlock.kernel.blanks import fill_in


def with_samples(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call with its blanks in place: each as its words in angle brackets."""
    return {
        "tool": call["tool"],
        "arguments": fill_in(call["arguments"], call["fill"], lambda one: f"<{one.get('what', 'written by you')}>"),
    }


def assert_shown(call: Mapping[str, Any], text: str) -> None:
    """Assert that a text shows a call as the structure has it."""
    tool, arguments, fill = shown_calls(text)[-1]
    assert (tool, arguments) == (call["tool"], call["arguments"])
    assert [one["path"] for one in fill] == [one["path"] for one in call["fill"]]
    assert all(one.get("what", "") in text for one in call["fill"])
