"""Retired identifiers and phrases stay out of the product, its messages and its documents; each has a replacement.

The table bans names and phrases, never ordinary words. A phrase matches in any case and across a line break.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
SUFFIXES = {".py", ".md", ".json", ".toml"}

IDENTIFIERS = {
    "ExportOrder": "ExportOptions",
    "KEEP_MARKS_MAX": "RETENTION_PINS_MAX",
    "KeepFile": "PinFile",
    "KeyRingFacts": "KeyRingStatus",
    "ListOrder": "ListOptions",
    "MemoryKeepMarks": "MemoryPins",
    "Misfit": "TypeMismatch",
    "NOBODY_ASKED": "NO_APPROVAL",
    "NeedsPerson": "HumanInputRequired",
    "PassWords": "LoopIteration",
    "Scene": "RunContext",
    "StepWords": "PendingStepView",
    "Witness": "SessionLock",
    "_told": "render, to_response or report",
    "account_page": "a function that renders a SessionReport",
    "doubts_of": "find_gc_blockers",
    "ensured": "ensure_keys",
    "glance": "overview",
    "go_on": "run_to_next_task",
    "handed_out": "render_pending_step",
    "key_ring_facts": "key_ring_status",
    "mended": "recover_document",
    "owed": "violations",
    "own_witness": "own_lock",
    "scene_of": "load_run_context",
    "stands_at": "describe_position",
    "token_meant": "suggest_token",
    "unfit": "TypeMismatch",
    "with_marks": "add_pins",
    "witness_of": "cross_check_token",
}
"""Names of code, matched as whole words in their own case."""

PHRASES = {
    "a text that matches": "a string that matches",
    "are told": "read, get, or: the answer says",
    "as it stood": "unchanged",
    "be told": "be reported",
    "been told": "was informed, or: the answer said",
    "came to be": "was created",
    "come to be": "are created",
    "comes to be": "is created",
    "goes by itself": "is deleted automatically",
    "go by themselves": "are deleted automatically",
    "handed out": "returned, issued or rendered",
    "hands out": "returns, issues or renders",
    "is lost on": "does not affect",
    "is not a text": "is not a string",
    "is told": "reads, gets, or: the answer says",
    "keep mark": "retention pin",
    "keep marks": "retention pins",
    "leave word": "record",
    "left word": "recorded",
    "made true": "recorded",
    "may be said of": "is known of",
    "none are told": "no one is informed",
    "nobody asks": "the name of the actor that does not ask",
    "of ours": "of Interlock",
    "stands alone": "is complete without the other",
    "stands at": "is at",
    "stands still": "does not change",
    "takes in": "accepts or reads",
    "told again": "reported again",
    "was meant": "was intended",
    "was told": "was informed, or: the answer said",
    "were told": "were informed, or: the answer said",
    "what is meant": "the intended call",
    "what only looks": "read-only commands",
    "what was meant": "the intended call",
    "whose it is": "its owner",
    "worth nothing": "invalid",
    "write a text": "write a string",
}
"""Phrases of prose, with what to write instead."""

EXEMPT = {
    ("docs/glossary.md", "keep mark"): "the entry of the new term names the stored one",
    ("src/interlock/cli/upkeep/sessions.py", "keep marks"): "the name of a check of `doctor`, which programs compare",
}
"""Grows only with a reason; a stale entry fails."""


class Retired(NamedTuple):
    """A retired entry that a text contains, at a line counted from 1."""

    line: int
    entry: str
    replacement: str


def pattern_of(entry: str) -> re.Pattern[str]:
    """Return the pattern of an entry: words may be separated by a line break, with a comment sign or quotes."""
    words = r"[\s#>\"']+".join(map(re.escape, entry.split()))
    return re.compile(rf"(?<!\w){words}(?!\w)", re.NOFLAG if entry in IDENTIFIERS else re.IGNORECASE)


PATTERNS = {entry: pattern_of(entry) for entry in IDENTIFIERS | PHRASES}


def find_retired(text: str) -> Iterator[Retired]:
    lowered = text.lower()
    for entry, replacement in (IDENTIFIERS | PHRASES).items():
        # Most texts lack the longest word of an entry, and a pattern takes much longer to say so.
        if max(entry.lower().split(), key=len) not in lowered:
            continue
        for found in PATTERNS[entry].finditer(text):
            yield Retired(text.count("\n", 0, found.start()) + 1, entry, replacement)


def product_files() -> Iterator[Path]:
    yield ROOT / "README.md"
    for directory in ("src", "docs"):
        yield from (path for path in sorted((ROOT / directory).rglob("*")) if path.suffix in SUFFIXES)


@cache
def findings() -> tuple[tuple[str, Retired], ...]:
    return tuple(
        (path.relative_to(ROOT).as_posix(), one)
        for path in product_files()
        for one in find_retired(path.read_text(encoding="utf-8"))
    )


def test_no_retired_name_or_phrase_is_in_the_product_or_its_documents() -> None:
    assert [
        f"{name}:{one.line}: {one.entry!r} is retired; write: {one.replacement}"
        for name, one in findings()
        if (name, one.entry) not in EXEMPT
    ] == []


def test_every_exemption_is_still_needed() -> None:
    assert EXEMPT.keys() == {(name, one.entry) for name, one in findings()} & EXEMPT.keys()


@pytest.mark.parametrize("entry", IDENTIFIERS | PHRASES)
def test_each_entry_is_found_where_it_is_and_with_its_replacement(entry: str) -> None:
    replacement = (IDENTIFIERS | PHRASES)[entry]
    assert Retired(2, entry, replacement) in find_retired(f"First line.\nA call of `{entry}`, and more.\n")
    assert not [one for one in find_retired(f"un{entry}ly") if one.entry == entry]


@pytest.mark.parametrize("entry", PHRASES)
@pytest.mark.parametrize("between", ["\n", "\n    # ", '"\n        " '])
def test_a_phrase_is_found_in_any_case_and_across_a_line_break(entry: str, between: str) -> None:
    written = between.join(entry.capitalize().split(" ", 1))
    assert Retired(1, entry, PHRASES[entry]) in find_retired(f"{written}.")


def test_ordinary_words_are_free() -> None:
    ordinary = (
        "The user told the agent to stand by; the context holds text, and the lock is handed on to the witnesses."
    )
    assert list(find_retired(ordinary)) == []


def test_no_replacement_is_retired_itself() -> None:
    assert [one for text in (IDENTIFIERS | PHRASES).values() for one in find_retired(text)] == []
