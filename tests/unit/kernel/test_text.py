import itertools
import unicodedata

import pytest

from interlock.kernel.text import TRUNCATION_MARKER, json_line, one_line, printable, truncated, utf8_bytes

ONE_TO_FOUR_BYTES = "aé€😀"


@pytest.mark.inv("ID-5")
def test_a_length_is_counted_in_utf_8_bytes() -> None:
    assert [utf8_bytes(char) for char in ONE_TO_FOUR_BYTES] == [1, 2, 3, 4]
    assert utf8_bytes("") == 0
    assert utf8_bytes("a" * 1000 + "é") == 1002
    assert utf8_bytes("\ud800") == 3


@pytest.mark.inv("ID-5")
def test_the_marker_is_spelled_as_locked() -> None:
    assert TRUNCATION_MARKER == "\n\n[TRUNCATED]"


@pytest.mark.inv("ID-5")
def test_a_cut_text_is_the_longest_prefix_of_whole_characters_that_fits_with_the_marker() -> None:
    """Every text of up to five characters of each width, under every budget from the bare marker on."""
    for length in range(6):
        for chars in itertools.product(ONE_TO_FOUR_BYTES, repeat=length):
            text = "".join(chars)
            for bytes_max in range(3, 21):
                fitting = [text[:at] for at in range(length + 1) if len(text[:at].encode()) + 3 <= bytes_max]
                expected = text if len(text.encode()) <= bytes_max else fitting[-1] + "…"
                assert truncated(text, bytes_max, "…") == expected


@pytest.mark.inv("ID-5")
def test_a_text_of_exactly_the_budget_is_left_alone_and_one_byte_more_is_cut_and_marked() -> None:
    assert truncated("é" * 50, 100) == "é" * 50
    cut = truncated("é" * 50 + "a", 100)
    assert cut == "é" * 43 + TRUNCATION_MARKER
    assert len(cut.encode()) == 99


@pytest.mark.inv("ID-5")
def test_a_budget_that_cannot_hold_the_marker_is_a_callers_mistake() -> None:
    assert truncated("x" * 14, len(TRUNCATION_MARKER)) == TRUNCATION_MARKER
    with pytest.raises(AssertionError):
        truncated("x" * 14, len(TRUNCATION_MARKER) - 1)


def test_a_text_on_one_line_has_no_line_break_and_no_run_of_spaces() -> None:
    assert one_line("  a\n\n b\t\u2028c ", 100) == "a b c"
    assert one_line("one two three", 10) == "one two…"
    assert one_line(" \n ", 3) == ""


HIDDEN = (
    *(*range(0xE0000, 0xE1000), *range(0x2060, 0x2070), *range(0x202A, 0x202F), *range(0xFFF0, 0xFFFC)),
    *(0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180E, 0x200B, 0x3164, 0xFEFF, 0xFFA0),
)


@pytest.mark.inv("REC-3")
def test_a_character_that_hides_text_is_written_out() -> None:
    for char in map(chr, HIDDEN):
        assert printable(f"a{char}b") == f"a{char.encode('unicode_escape').decode()}b"
        assert json_line(f"a{char}b").isascii()


@pytest.mark.inv("REC-3")
def test_joiners_variation_selectors_and_all_visible_characters_are_unchanged() -> None:
    """Words of Hindi and Persian, and emoji, need them."""
    visible = {"L", "M", "N", "P", "S"}
    texts = ["\u0915\u094d\u200d\u0937", "\u0645\u06cc\u200c\u062e", "\u2764\ufe0f"]
    texts += [char for char in map(chr, range(0x110000)) if unicodedata.category(char)[0] in visible]
    hidden = set(map(chr, HIDDEN))
    assert [text for text in texts if printable(text) != text and text not in hidden] == []
