"""Notes as parts: what an agent structured stays structured, and no word of any text is lost."""

import re
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from tests.support.notes import CONSTRUCTS, letters_of, text_of

from interlock.kernel.text import printable
from interlock.service.report.document import Notes, Paragraph, Prose, Table, UntrustedText
from interlock.service.report.html import blocks_html
from interlock.service.report.markdown import as_markdown
from interlock.service.report.notes import CodePart, ItemPart, Span, TextPart, parse_notes, spans_of

TEXT = "# Done\nBuilt `it`\ntwice.\n\n- one\n  - **two**\n2. three\n```py\nx = 1\n```\n| a |\n> said\n\n    code"


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
    notes = between.join(constructs)
    assert letters_of(text_of(blocks_html((Notes(notes),)))) == letters_of(printable(notes))


@pytest.mark.inv("EVD-4")
@given(st.text(alphabet="ab `*#-1.)|>~\n\t<@[]:!'", max_size=60))
@example("```a```\nb")
@example("# a#")
def test_no_letter_of_any_notes_is_lost(text: str) -> None:
    letters = re.compile(r"[ab1@]")
    kept = letters.findall(text)
    assert letters.findall(text_of(blocks_html((Notes(text),)))) == kept
    assert letters.findall(as_markdown((Notes(text),))) == kept


def test_a_block_of_code_ends_with_its_own_fence_or_with_the_notes() -> None:
    assert parse_notes("````\n```\nx\n````\nafter") == (CodePart("```\nx"), TextPart((Span("text", "after"),)))
    assert parse_notes("~~~\nx") == (CodePart("x"),)


def test_code_within_a_line_opens_no_block_of_code() -> None:
    spans = (Span("code", "make test"), Span("text", " failed"))
    assert parse_notes("```make test``` failed\n\nafter") == (TextPart(spans), TextPart((Span("text", "after"),)))


def test_numbers_of_a_list_are_shown_as_written() -> None:
    assert "<li>007) a</li>" in blocks_html((Notes("007) a"),))
    assert as_markdown((Notes("007) a"),)).endswith("- 007\\) a\n")


def test_an_item_is_at_most_one_list_deeper_than_the_one_before() -> None:
    text = "    - a\n- b\n      - c\n      - d\n   - e\n\nf\n\n  - g"
    items = [part for part in parse_notes(text) if isinstance(part, ItemPart)]
    assert [(item.depth, item.spans[0].text) for item in items] == [
        (0, "a"),
        (0, "b"),
        (1, "c"),
        (1, "d"),
        (1, "e"),
        (0, "g"),
    ]


def test_what_opens_no_code_and_no_bold_text_is_text() -> None:
    for text in ("a ` b", "a ** b", "2 ** 3 ** 4", "``a`"):
        assert spans_of(text) == (Span("text", text),)


ALLOWED = {
    *("paragraph_open", "paragraph_close", "inline", "text", "code_inline", "strong_open", "strong_close", "fence"),
    *(
        "blockquote_open",
        "blockquote_close",
        "bullet_list_open",
        "bullet_list_close",
        "list_item_open",
        "list_item_close",
        "softbreak",
        "text_special",
    ),
    *(f"{part}_{end}" for part in ("table", "thead", "tbody", "tr", "th", "td") for end in ("open", "close")),
}


@pytest.mark.inv("HIS-6", "EVD-4")
@given(st.text(alphabet="ab `*_#-+=1.)|>~\n\t<@&[]()!:/\\$w", max_size=80))
@example("@1`1``1`")
@example("\t-\t")
@example("- a\n  - ")
@example("- a\n\t\t- b\n\t\t- a")
def test_no_notes_prose_or_cell_has_an_effect_in_markdown(text: str) -> None:
    cell = (Prose(text), " ", UntrustedText(text))
    page = as_markdown((Notes(text), Paragraph(("says ", Prose(text))), Table(heads=("a", "b"), rows=((cell, cell),))))
    tokens = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(page)
    inline = [child for token in tokens for child in token.children or ()]
    assert {token.type for token in (*tokens, *inline)} <= ALLOWED
    plain = " ".join(child.content for child in inline if child.type in ("text", "text_special"))
    assert not re.search(r"[@#$]\w|://|www\.", plain)
    assert sum(token.type == "td_open" for token in tokens) == 2
