"""Texts that would take the TOML parser long, or down: each is refused before, at its line and column."""

import tomllib
from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from interlock.config.bounds import find_costly
from interlock.config.form import parse_config
from interlock.config.model import Config, ConfigFault
from interlock.kernel.budgets import CONFIG_BYTES_MAX, CONFIG_DEPTH_MAX, CONFIG_KEY_PARTS_MAX, CONFIG_WORD_CHARS_MAX
from interlock.kernel.canonical import members_of


def filled(begin: str, unit: str, end: str = "") -> str:
    return begin + unit * ((CONFIG_BYTES_MAX - len(begin) - len(end)) // len(unit)) + end


def fault_of(text: str) -> ConfigFault:
    found = parse_config(text)
    assert not isinstance(found, Config)
    return found[0]


@pytest.mark.inv("LIM-4")
@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        (filled("x = ", "1"), 1, 5, "has 65532 characters"),
        (filled("# a\n[gates]\nx = 0x", "f"), 3, 5, "characters; the limit is 128"),
        (filled("x = 1.", "1"), 1, 7, "characters; the limit is 128"),
        (filled("", "a.", "a = 1"), 1, 2 * CONFIG_KEY_PARTS_MAX, "more than 16 parts"),
        (filled("\n[", "'a' . ", "a]"), 2, None, "more than 16 parts"),
        (filled('t = """\n""."""\nx = {', '"."."b".', "a = 1}"), 3, None, "more than 16 parts"),
        (filled("x = ", "["), 1, 5 + CONFIG_DEPTH_MAX, "deeper than 16 levels"),
        (filled("x = ", "[[],"), 1, 6 + 4 * (CONFIG_DEPTH_MAX - 1), "deeper than 16 levels"),
        (filled("x = ", "{a = "), 1, 5 + 5 * CONFIG_DEPTH_MAX, "deeper than 16 levels"),
    ],
)
def test_what_takes_the_parser_long_is_refused_where_it_stands(
    text: str, line: int, column: int | None, words: str
) -> None:
    found = fault_of(text)
    assert words in found.message
    assert found.line == line
    assert column is None or found.column == column


@pytest.mark.inv("LIM-4")
@pytest.mark.parametrize(
    "text",
    [
        f'[workflows]\nuser_dir = "/{"a.b.c/" * 600}[[[{"9" * 600}"\n',
        f"[workflows]\nuser_dir = '/{'a.b.c/' * 600}[[[{'9' * 600}'\n",
        f"# {'1' * 600}{'a.' * 600}{'[' * 600}\n",
        '[workflows]\nuser_dir = """/it says "no" or ""no"" \\""" [[[[[[[[[[[[[[[[[[[[ """\n',
        "[workflows]\nuser_dir = '''/it's ''no'' [[[[[[[[[[[[[[[[[[[[ '''\n",
    ],
)
def test_what_stands_in_texts_and_comments_is_not_counted(text: str) -> None:
    assert isinstance(parse_config(text), Config)


@pytest.mark.inv("LIM-4")
def test_what_is_just_within_the_bounds_is_judged_by_its_meaning() -> None:
    word, key = "1" * CONFIG_WORD_CHARS_MAX, ".".join("a" * CONFIG_KEY_PARTS_MAX)
    for text in (f"x = {word}", f"{key} = 1", f"x = {'[' * CONFIG_DEPTH_MAX}{']' * CONFIG_DEPTH_MAX}"):
        assert fault_of(text).message.endswith("is not known here.")


PIECES = st.sampled_from(
    [*"ab.=[]{}\"'#\n,\\_-+:1 \t\0é", '"""', "'''", "[[", "]]", " = ", "gates", "claims", "days", "0x", "1e9", "nan"]
) | st.sampled_from(
    ["2024-01-01T00:00:00Z", "99:99:99", "0000-00-00", "9" * 130, "a." * 17, "[" * 17, "\r\n", "\\u0041", "\\ud800"]
)


@pytest.mark.inv("LIM-4")
@settings(deadline=None, max_examples=500)
@given(st.lists(PIECES, max_size=30).map("".join) | st.text(max_size=40))
@example(filled("x = ", "1_", "1"))
@example("a = 9999-99-99T99:99:99")
@example('"' * 5)
def test_every_text_is_a_configuration_or_has_faults_in_words(text: str) -> None:
    found = parse_config(text)
    assert isinstance(found, Config) or all(one.message and one.fix for one in found)


def deepest(value: object) -> int:
    inside = [deepest(member) for member in members_of(value)]
    return max(inside) + 1 if inside else 0


HARMLESS = st.sampled_from(
    ['"."', "'#'", '#"', "#'", '"\\""', "'\\'", '"""\n"""', "'''\"'''", '""""."""""', "b", "=", "\n", " "]
)


@pytest.mark.inv("LIM-4")
@settings(deadline=None, max_examples=500)
@given(st.lists(HARMLESS, max_size=12).map("".join), st.sampled_from(["", "[", "[[", "c = {"]))
@example(before='b="."', opening="")
@example(before='b = """\n""."""\nc = \'#\'', opening="[")
def test_a_key_that_the_parser_would_read_is_met_whatever_stands_before_it(before: str, opening: str) -> None:
    """A scan that took a key for the inside of a text would let it through."""
    closing = {"": " = 1", "[": "]", "[[": "]]", "c = {": " = 1}"}[opening]
    text = f"{before}\n{opening}{'.'.join('k' * (CONFIG_KEY_PARTS_MAX + 1))}{closing}\n"
    with suppress(tomllib.TOMLDecodeError):
        if deepest(tomllib.loads(text)) > CONFIG_KEY_PARTS_MAX:
            assert find_costly(text) is not None
