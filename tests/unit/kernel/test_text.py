import itertools

import pytest

from interlock.kernel.text import TRUNCATION_MARKER, one_line, truncated, utf8_bytes

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
