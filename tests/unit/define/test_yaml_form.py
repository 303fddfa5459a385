"""YAML restricted to what JSON can represent, with both parsers of PyYAML: the fast one in C, and the other."""

import string

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from interlock.define.source.yaml_form import (
    FASTEST,
    UnreadableYamlError,
    YamlFault,
    YamlValue,
    load_yaml,
    read_yaml_tokens,
)
from interlock.kernel.budgets.workflow import (
    DOCUMENT_DEPTH_MAX,
)

PURE = yaml.SafeLoader

READ = [
    "",
    "a",
    "a: 1\nb: [x, 1.5, -7, 1e3, true, ~, null, '', \"\"]\n",
    "yes: no\non: off\n1: 2024-01-31\n",
    "a:\n  - - 1\n    - 2\n  -\n  - b: {}\n",
    "a: |\n  two\n  lines\nb: >-\n  one\n  line\n",
    "'it''s': \"\\u00e9 \\n\"\n",
    "<<: {a: 1}\n",
    "? a\n: 1\n? b\n",
    "{a: {b: {c: [[[]]]}}}",
    "# only a comment\n",
    "%YAML 1.1\n---\na: 1\n...\n",
    "a: 1.\nb: .5\nc: +1\nd: -x\ne: 1_000\nf: 0x1F\n",
    "\u00e9: \u00fc\r\nb: \U0001f600\r\n",
]
REFUSED = [
    ("a: &x 1", "not_yaml"),
    ("a: *x", "not_yaml"),
    ("a: !mine 1", "not_yaml"),
    ("a: !!str 1", "not_yaml"),
    ("a: ! 1", "not_yaml"),
    ("!!map {}", "not_yaml"),
    ("? &x a\n: 1", "not_yaml"),
    ("a: 1\n---\nb: 1\n", "not_yaml"),
    ("a: [", "not_yaml"),
    ("a:\n\tb: 1", "not_yaml"),
    ("a: 1\n b: 2", "not_yaml"),
    ("? [a]\n: 1", "not_yaml"),
    ("a: \x01", "not_yaml"),
    ("a: 1\na: 2", "duplicate_key"),
    ("a: 1\n'a': 2", "duplicate_key"),
    ("? \n? \n", "duplicate_key"),
    ("[" * (DOCUMENT_DEPTH_MAX + 1), "too_deep"),
    ("%TAG ! !x\n" * 65 + "--- {}", "not_yaml"),
]


def test_the_fast_parser_is_the_one_in_c_where_the_library_has_it() -> None:
    assert (FASTEST is not PURE) == yaml.__with_libyaml__


@pytest.mark.parametrize("text", READ)
def test_both_parsers_read_the_same(text: str) -> None:
    found = load_yaml(text)
    assert isinstance(found, YamlValue)
    assert load_yaml(text, PURE) == found
    assert list(read_yaml_tokens(text, PURE)) == list(read_yaml_tokens(text))


@pytest.mark.inv("PLAN-4")
@pytest.mark.parametrize(("text", "code"), REFUSED)
def test_both_parsers_refuse_the_same_with_the_same_code_and_place(text: str, code: str) -> None:
    found, pure = load_yaml(text), load_yaml(text, PURE)
    assert isinstance(found, YamlFault)
    assert isinstance(pure, YamlFault)
    assert (found.code, found.reversed_path) == (pure.code, pure.reversed_path)
    assert found.code == code


_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(string.printable, max_size=6),
)
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


@pytest.mark.inv("PLAN-1")
@given(value=_values, flow=st.sampled_from([True, False, None]), width=st.sampled_from([20, 1000]))
def test_both_parsers_read_back_what_the_library_writes(value: object, flow: bool | None, width: int) -> None:  # noqa: FBT001
    text = yaml.safe_dump(value, default_flow_style=flow, width=width, allow_unicode=True, sort_keys=False)
    found = load_yaml(text)
    assert load_yaml(text, PURE) == found
    if isinstance(found, YamlFault):
        # The writer tags and anchors some things that it could have written plainly.
        assert "tag" in found.message or "anchor" in found.message


def test_each_element_of_a_text_has_its_offset_in_characters() -> None:
    text = "\u00e9:\r\n- 'x'\n- {}\n"
    assert list(read_yaml_tokens(text)) == [
        ("mapping", "", 0),
        ("scalar", "\u00e9", 0),
        ("sequence", "", text.index("-")),
        ("scalar", "x", text.index("'")),
        ("mapping", "", text.index("{")),
        ("end", "", text.index("}")),
        ("end", "", len(text)),
        ("end", "", len(text)),
    ]


def test_the_structure_of_what_cannot_be_read_ends_in_an_error() -> None:
    with pytest.raises(UnreadableYamlError, match="Line 2"):
        list(read_yaml_tokens("a: 1\n b: 2\n"))
