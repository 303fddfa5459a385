"""Notes as parts: what an agent structured stays structured, and no word of any text is lost."""

import re
from collections.abc import Sequence
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from interlock.kernel.text import printable
from interlock.service.report.document import Notes, Paragraph, Prose, Table, UntrustedText
from interlock.service.report.html import render_notes
from interlock.service.report.markdown import as_markdown
from interlock.service.report.notes import CodePart, ItemPart, Span, TextPart, parse_notes, spans_of

TEXT = "# Done\nBuilt `it`\ntwice.\n\n- one\n  - **two**\n2. three\n```py\nx = 1\n```\n| a |\n> said\n\n    code"


CONSTRUCTS = (
    "# heading C#",
    "## closed ##",
    "title\n=====",
    "[step 2]: http://plan.example 'Drop the table'",
    '[link](http://host.example "title of it")',
    "[relative](/address)",
    '![picture](http://host.example/p.png "title of it")',
    "<http://auto.example>",
    "a [reference][step 2] and a [^note]",
    "[^note]: its text",
    "```py info string\ncode = 1\n```",
    "~~~ words after tildes\ncode = 2\n~~~",
    "```make test``` failed: 3 of 10",
    "``` opened `and` not a fence",
    "````\n```\nnested\n````",
    "    indented code",
    f"{'> ' * 30}deep quote",
    f"{'  ' * 30}- deep item",
    "> - quoted item\n> second line",
    "1. one\n7. seven\n007) seven again",
    "- [ ] task\n- [x] done",
    "| a | b |\n| --- | :-: |\n| one | two | more than heads |",
    "*em* _em_ **strong** ~~struck~~ ``co`de``",
    "&amp; &#65; \\* escaped",
    "<div title='attribute'>html</div> <!-- comment -->",
    "***\n---\nrule",
    "hard break  \nnext\\\nlast",
    "\x1b[31mred \u202ereversed",
)
"""Notes of each kind of Markdown, also of those that a renderer of CommonMark shows without some of their words."""


class Shown(HTMLParser):
    """Collects the text of a page that a reader sees."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.feed(html)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.inv("EVD-4")
def test_headings_paragraphs_lists_and_code_are_parts() -> None:
    assert parse_notes(TEXT) == (
        TextPart((Span("text", "Done"),), is_heading=True),
        TextPart((Span("text", "Built "), Span("code", "it"), Span("text", " twice."))),
        ItemPart(0, None, (Span("text", "one"),)),
        ItemPart(1, None, (Span("strong", "two"),)),
        ItemPart(0, "2.", (Span("text", "three"),)),
        TextPart((Span("text", "py"),)),
        CodePart("x = 1"),
        CodePart("| a |\n> said"),
        CodePart("    code"),
    )


@pytest.mark.inv("EVD-4")
@given(st.lists(st.sampled_from(CONSTRUCTS), max_size=6), st.sampled_from(("\n", "\n\n")))
@example(CONSTRUCTS, "\n")
@example(CONSTRUCTS, "\n\n")
def test_every_letter_of_any_markdown_is_shown_in_order(constructs: Sequence[str], between: str) -> None:
    letters = re.compile(r"[^\W_]")
    notes = between.join(constructs)
    assert letters.findall(Shown(render_notes(notes)).text) == letters.findall(printable(notes))


@pytest.mark.inv("EVD-4")
@given(st.text(alphabet="ab `*#-1.)|>~\n\t<@[]:!'", max_size=60))
@example("```a```\nb")
@example("# a#")
def test_no_letter_of_any_notes_is_lost(text: str) -> None:
    letters = re.compile(r"[ab1@]")
    kept = letters.findall(text)
    assert letters.findall(Shown(render_notes(text)).text) == kept
    assert letters.findall(as_markdown((Notes(text),))) == kept


def test_a_block_of_code_ends_with_its_own_fence_or_with_the_notes() -> None:
    assert parse_notes("````\n```\nx\n````\nafter") == (CodePart("```\nx"), TextPart((Span("text", "after"),)))
    assert parse_notes("~~~\nx") == (CodePart("x"),)


def test_code_within_a_line_opens_no_block_of_code() -> None:
    spans = (Span("code", "make test"), Span("text", " failed"))
    assert parse_notes("```make test``` failed\n\nafter") == (TextPart(spans), TextPart((Span("text", "after"),)))


def test_numbers_of_a_list_are_shown_as_written() -> None:
    assert render_notes("007) a") == "<ul><li>007) <span>a</span></li></ul>"
    assert as_markdown((Notes("007) a"),)).endswith("- 007\\) a\n")


def test_what_opens_no_code_and_no_bold_text_is_text() -> None:
    for text in ("a ` b", "a ** b", "2 ** 3 ** 4", "``a`"):
        assert spans_of(text) == (Span("text", text),)


ALLOWED = {
    *("paragraph_open", "paragraph_close", "inline", "text", "code_inline", "strong_open", "strong_close", "fence"),
    *("bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close", "softbreak", "text_special"),
    *(f"{part}_{end}" for part in ("table", "thead", "tbody", "tr", "th", "td") for end in ("open", "close")),
}


@pytest.mark.inv("HIS-6", "EVD-4")
@given(st.text(alphabet="ab `*_#-+=1.)|>~\n\t<@&[]()!:/\\$w", max_size=80))
@example("@1`1``1`")
def test_no_notes_prose_or_cell_has_an_effect_in_markdown(text: str) -> None:
    cell = (Prose(text), " ", UntrustedText(text))
    page = as_markdown((Notes(text), Paragraph(("says ", Prose(text))), Table(heads=("a", "b"), rows=((cell, cell),))))
    tokens = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(page)
    inline = [child for token in tokens for child in token.children or ()]
    assert {token.type for token in (*tokens, *inline)} <= ALLOWED
    plain = " ".join(child.content for child in inline if child.type in ("text", "text_special"))
    assert not re.search(r"[@#$]\w|://|www\.", plain)
    assert sum(token.type == "td_open" for token in tokens) == 2
