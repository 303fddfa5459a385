"""Corrections of diagnostics as edits of the text: exactly what was found is replaced, or nothing."""

import json

import pytest

from interlock.define.diagnostics import Diagnostic, Replacement, fault
from interlock.define.source.edits import text_edits
from interlock.define.source.text_form import TextFormat


def wrong(path: str, found: str, write: str, *, is_key: bool) -> Diagnostic:
    return fault(path, "unknown_key", "", "", Replacement(found=found, write=write, is_key=is_key))


def corrected(text: str, form: TextFormat, *diagnostics: Diagnostic) -> str | None:
    (edit,) = text_edits(text, form, diagnostics)
    return None if edit is None else text[: edit.start] + edit.write + text[edit.end :]


TITEL = wrong("steps[0].titel", "titel", "title", is_key=True)
LOW = wrong("steps[0].risk", "lo", "low", is_key=False)
ITEM = wrong("kinds[1]", "lo", "low", is_key=False)


@pytest.mark.inv("CON-13")
@pytest.mark.parametrize(
    ("form", "text", "diagnostic", "expected"),
    [
        ("json", '{"steps": [{\n  "titel": "é\U0001f600"}]}', TITEL, '{"steps": [{\n  "title": "é\U0001f600"}]}'),
        ("json", '{"steps": [{"titel"\n: 1}]}', TITEL, '{"steps": [{"title"\n: 1}]}'),
        ("json", '{"steps": [{"risk": "lo"}]}', LOW, '{"steps": [{"risk": "low"}]}'),
        ("json", '{"steps": [{"risk"  :\n "l\\u006f"}]}', LOW, '{"steps": [{"risk"  :\n "low"}]}'),
        ("json", '{"kinds": ["a", "lo"]}', ITEM, '{"kinds": ["a", "low"]}'),
        ("yaml", "steps:\n  - titel: x # titel\n", TITEL, "steps:\n  - title: x # titel\n"),
        ("yaml", 'steps:\n  - "titel": x\n', TITEL, 'steps:\n  - "title": x\n'),
        ("yaml", "steps:\n  - risk:  lo # why\n", LOW, "steps:\n  - risk:  low # why\n"),
        ("yaml", 'steps:\n  - risk: "lo"\n', LOW, 'steps:\n  - risk: "low"\n'),
        ("yaml", "kinds:\n  - a\n  - lo\n", ITEM, "kinds:\n  - a\n  - low\n"),
    ],
)
def test_a_correction_replaces_exactly_what_was_found(
    form: TextFormat, text: str, diagnostic: Diagnostic, expected: str
) -> None:
    assert corrected(text, form, diagnostic) == expected


@pytest.mark.inv("CON-13")
@pytest.mark.parametrize(
    ("form", "text", "diagnostic"),
    [
        ("json", '{"steps": [{"title": 1}]}', TITEL),
        ("json", '{"steps": []}', TITEL),
        ("json", '{"steps": [', TITEL),
        ("json", '{"steps": [{"risk": ["lo"]}]}', LOW),
        ("yaml", "steps:\n  - 'titel': x\n", TITEL),
        ("yaml", "steps:\n  - risk: lo\n      more\n", wrong("steps[0].risk", "lo more", "low", is_key=False)),
        ("yaml", "steps:\n  - risk: &a lo\n", LOW),
        ("yaml", "steps:\n  - risk: >-\n      lo\n", LOW),
        ("yaml", "steps: [{risk: lo, b: 1}]\n", LOW),
        ("yaml", "steps:\n  - titel: x\n", wrong("steps[0].titel", "titel", "a: b", is_key=True)),
        ("json", '{"steps": [{"titel": 1}]}', fault("steps[0].titel", "unknown_key", "", "Remove the key.")),
    ],
)
def test_what_is_not_certain_is_left_to_the_author(form: TextFormat, text: str, diagnostic: Diagnostic) -> None:
    assert corrected(text, form, diagnostic) is None


@pytest.mark.inv("CON-13")
def test_a_correction_is_written_as_json_writes_it() -> None:
    edited = corrected('{"steps": [{"risk": "lo"}]}', "json", wrong("steps[0].risk", "lo", 'a"b\n', is_key=False))
    assert edited is not None
    assert json.loads(edited) == {"steps": [{"risk": 'a"b\n'}]}
