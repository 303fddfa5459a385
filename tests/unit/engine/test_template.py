"""`{{key.path}}` in authored text: filled once, visibly when it cannot be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.engine.template import rendered, rendered_line
from interlock.kernel.canonical import Json

CONTEXT: dict[str, Json] = {
    "name": "Ada",
    "count": 3,
    "price": 1.5,
    "yes": True,
    "nested": {"deep": {"er": "down"}, "null": None, "list": [1, "zwei"]},
    "hole": "{{name}}",
    "dash-ed_key": "d",
    "empty": "",
    "ümlaut": "x",
}


@pytest.mark.inv("PLAN-6")
@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("Hello {{name}}!", "Hello Ada!"),
        ("{{ name }}{{count}}", "Ada3"),
        ("{{\tname\n}}", "Ada"),
        ("{{price}} {{yes}}", "1.5 true"),
        ("{{nested.deep.er}}", "down"),
        ("{{nested.null}}", "null"),
        ("{{nested.list}}", '[1,"zwei"]'),
        ("{{nested.deep}}", '{"er":"down"}'),
        ("{{dash-ed_key}}", "d"),
        ("[{{empty}}]", "[]"),
        ("no holes", "no holes"),
        ("", ""),
    ],
)
def test_a_hole_shows_the_value_of_its_key(template: str, text: str) -> None:
    assert rendered(template, CONTEXT) == text


@pytest.mark.inv("PLAN-6", "REC-3")
@pytest.mark.parametrize(
    ("value", "text", "line"),
    [
        ("one\ntwo", "a \n\n> one\n> two\n\n b", "a one two b"),
        ("one\r\n\r\ntwo\n", "a \n\n> one\n>\n> two\n\n b", "a one two b"),
        ("one\n", "a one b", "a one b"),
        ("\n", "a  b", "a  b"),
        ("x\ry\u2028z", "a x\\ry\\u2028z b", "a x y z b"),
        ("\u202ex", "a \\u202ex b", "a \\u202ex b"),
    ],
)
def test_a_value_of_several_lines_is_a_quote_and_in_a_title_one_line(value: str, text: str, line: str) -> None:
    assert rendered("a {{key}} b", {"key": value}) == text
    assert rendered_line("a {{key}} b", {"key": value}) == line


@pytest.mark.inv("PLAN-6")
@pytest.mark.parametrize(
    "path", ["missing", "name.first", "nested.missing", "nested.list.0", "nested.null.x", "count.x"]
)
def test_an_unset_key_is_a_visible_mark_with_its_name(path: str) -> None:
    assert rendered(f"a {{{{{path}}}}} b", CONTEXT) == f"a [context key not set: {path}] b"


@pytest.mark.inv("PLAN-6")
def test_what_a_value_brings_is_never_read_as_a_template() -> None:
    assert rendered("{{hole}} {{name}}", CONTEXT) == "{{name}} Ada"


@pytest.mark.parametrize("text", ["{{}}", "{{ }}", "{name}", "{{na me}}", "{{name", "name}}", "{{.name}}", "{{a..b}}"])
def test_what_is_no_hole_stays_as_it_is(text: str) -> None:
    assert rendered(text, CONTEXT) == text


@pytest.mark.inv("PLAN-6")
@given(st.text(alphabet="{} nametx.", max_size=60))
def test_rendering_never_fails_and_leaves_no_fillable_hole(template: str) -> None:
    text = rendered(template, {"n": "{{n}}", "a": {"m": 1}})
    assert text == template or "{{" in template


@pytest.mark.inv("PLAN-6")
def test_a_template_full_of_braces_costs_no_more_than_its_length() -> None:
    """A pattern that backtracks would take minutes here."""
    assert rendered("{{" + " " * 200_000, CONTEXT).startswith("{{")
    assert rendered("{{a." * 50_000, CONTEXT).startswith("{{")
