"""No block of code that notes leave open swallows what follows them (D14)."""

import pytest
from markdown_it import MarkdownIt

from interlock.kernel.text import utf8_bytes
from interlock.views.recap import closed, cut_closed

NOTES = [
    "plain",
    "```\ncode",
    "````\ncode\n```\nstill code",
    "````md\n```js\nx\n```",
    "~~~~\nx\n~~~",
    "~~~ `tick`\nx",
    "```js\nx\n```\nok",
    "```\nx\n```` \nok\n~~~",
    "``` not a `fence`",
    "````\na\n\x85 ~~~",
    "````\na\u2028```",
    "  ```\n  x",
    "```\n``` not closing\nx",
]


@pytest.mark.parametrize("notes", NOTES)
def test_what_follows_notes_is_not_part_of_their_code(notes: str) -> None:
    tokens = MarkdownIt().parse(f"{closed(notes)}\n\n# What follows\n")
    assert [token.type for token in tokens][-3:] == ["heading_open", "inline", "heading_close"]
    assert closed(closed(notes)) == closed(notes)


@pytest.mark.parametrize("notes", NOTES)
@pytest.mark.parametrize("bytes_max", [20, 24, 40])
def test_what_closes_a_cut_is_within_the_budget(notes: str, bytes_max: int) -> None:
    cut = cut_closed(notes * 5, bytes_max, marker="")
    assert utf8_bytes(cut) <= bytes_max
    assert closed(cut) == cut


def test_what_fits_is_not_cut() -> None:
    assert cut_closed("```\nx\n```", 100) == "```\nx\n```"
    assert cut_closed("x" * 100, 40) == "x" * 27 + "\n\n[TRUNCATED]"
