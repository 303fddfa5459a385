"""Notes as parts: what an agent structured stays structured, and no word of any text is lost."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from interlock.kernel.text import printable
from interlock.service.report.document import Notes, Paragraph, Prose, Table, UntrustedText
from interlock.service.report.markdown import as_markdown
from interlock.service.report.notes import CodePart, ItemPart, NotePart, Span, TextPart, parse_notes, spans_of

TEXT = "# Done\nBuilt `it`\ntwice.\n\n- one\n  - **two**\n2. three\n```py\nx = 1\n```\n| a |\n> said\n\n    code"


def words_of(parts: tuple[NotePart, ...]) -> str:
    texts = [part.text if isinstance(part, CodePart) else "".join(span.text for span in part.spans) for part in parts]
    return " ".join(texts)


@pytest.mark.inv("EVD-4")
def test_headings_paragraphs_lists_and_code_are_parts() -> None:
    assert parse_notes(TEXT) == (
        TextPart((Span("text", "Done"),), is_heading=True),
        TextPart((Span("text", "Built "), Span("code", "it"), Span("text", " twice."))),
        ItemPart(0, None, (Span("text", "one"),)),
        ItemPart(1, None, (Span("strong", "two"),)),
        ItemPart(0, 2, (Span("text", "three"),)),
        CodePart("x = 1"),
        CodePart("| a |\n> said"),
        CodePart("    code"),
    )


@pytest.mark.inv("EVD-4")
@given(st.text(alphabet="ab `*#-1.)|>~\n\t<@", max_size=60))
def test_no_letter_of_any_notes_is_lost(text: str) -> None:
    letters = re.compile(r"[ab<@]")
    kept = letters.findall(words_of(parse_notes(text)))
    # The language of a block of code is not shown.
    fenced = re.compile(r"^\s{0,3}(`{3,}|~{3,})", re.MULTILINE).search(text)
    assert fenced is not None or kept == letters.findall(printable(text))


def test_a_block_of_code_ends_with_its_own_fence_or_with_the_notes() -> None:
    assert parse_notes("````\n```\nx\n````\nafter") == (CodePart("```\nx"), TextPart((Span("text", "after"),)))
    assert parse_notes("~~~\nx") == (CodePart("x"),)


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
