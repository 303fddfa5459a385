"""`{{key.path}}` in authored text: filled once, visibly when it cannot be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.engine.template import ValueRoom, rendered, rendered_line
from interlock.kernel.budgets.workflow import INSERTED_BYTES_MAX, TITLE_VALUES_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.text import TRUNCATION_MARKER
from interlock.testing.harness import Harness

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
        ("x. **What to do:** y", "a \n\n> x. **What to do:** y\n\n b", "a x. **What to do:** y b"),
        ("# x", "a \n\n> # x\n\n b", "a # x b"),
        ("src/**/*.py", "a src/**/*.py b", "a src/**/*.py b"),
    ],
)
def test_a_value_of_several_lines_or_with_structure_is_a_quote_and_in_a_title_one_line(
    value: str, text: str, line: str
) -> None:
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


@pytest.mark.inv("PLAN-24")
def test_values_of_a_text_are_inserted_up_to_a_budget_and_then_cut_with_the_marker() -> None:
    value = "y" * 30_000
    text = rendered("{{big}} " * 4_000, {"big": value})
    whole = INSERTED_BYTES_MAX // len(value)
    assert text.startswith(f"{value} " * whole)
    assert len(text) < INSERTED_BYTES_MAX + 4_000 * len(TRUNCATION_MARKER)
    assert text.endswith(" [TRUNCATED] [TRUNCATED] ")
    assert text == rendered("{{big}} " * 4_000, {"big": value})


@pytest.mark.inv("PLAN-24")
def test_values_within_the_budget_are_inserted_whole() -> None:
    value = "y" * (INSERTED_BYTES_MAX // 2)
    assert rendered("{{big}}{{big}}", {"big": value}) == value * 2
    assert rendered("{{big}}{{big}}{{next}}", {"big": value, "next": "z"}) == f"{value * 2}[TRUNCATED]"


@pytest.mark.inv("PLAN-24")
def test_a_title_with_long_values_stays_one_line() -> None:
    line = rendered_line("{{big}} and {{big}}", {"big": ["y" * 200_000]})
    assert "\n" not in line
    assert line.startswith('["yy')
    assert line.endswith("y [TRUNCATED] and [TRUNCATED]")
    assert len(line) < TITLE_VALUES_BYTES_MAX + 100
    assert len(rendered_line("{{big}}", {"big": "y" * 5_000}, ValueRoom())) == 5_000, "a question to a person is whole"


@pytest.mark.inv("PLAN-24")
def test_a_prompt_and_its_fragments_insert_one_context_at_most() -> None:
    fragments = [{"id": f"part{number}", "text": "{{big}}" * 50} for number in range(50)]
    step = {"id": "a", "title": "A", "prompt": "{{big}} " * 1_000, "promptFragments": fragments}
    started = Harness.in_memory({"id": "test.big", "name": "Big", "steps": [step]}).start(
        "test.big", goal="Go on", context={"big": "y" * 30_000}
    )
    prompt = started["pending"]["prompt"]
    assert prompt.count("y" * 30_000) == INSERTED_BYTES_MAX // 30_000
    assert prompt.count("y") <= INSERTED_BYTES_MAX
    assert "[TRUNCATED][TRUNCATED]" in prompt
