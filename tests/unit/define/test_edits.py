"""Corrections of diagnostics as edits of the text: exactly what was found is replaced, or nothing."""

import json

import pytest
import yaml

from interlock.define.diagnostics import Diagnostic, Replacement, fault
from interlock.define.source.edits import text_edits
from interlock.define.source.text_form import TextFormat


def wrong(path: str, found: str, write: str | None, *, is_key: bool) -> Diagnostic:
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


EXTRA = wrong("steps[0].extra", "extra", None, is_key=True)
FEW = wrong("steps[0].most", "0", "1", is_key=False)


@pytest.mark.inv("CON-13")
@pytest.mark.parametrize(
    ("form", "text", "diagnostic", "expected"),
    [
        ("json", '{"steps": [{"extra": [1, {}], "a": 2}]}', EXTRA, '{"steps": [{"a": 2}]}'),
        ("json", '{"steps": [{\n  "a": 2,\n  "extra": "x,"\n}]}', EXTRA, '{"steps": [{\n  "a": 2\n}]}'),
        ("json", '{"steps": [{ "extra": 1 }]}', EXTRA, '{"steps": [{ }]}'),
        ("yaml", "steps:\n  - a: 1\n    extra: x # y\n    b: 2\n", EXTRA, "steps:\n  - a: 1\n    b: 2\n"),
        ("yaml", "steps:\n  - a: 1\n    extra:\n    - x\n    - y\n  - c: 3\n", EXTRA, "steps:\n  - a: 1\n  - c: 3\n"),
        (
            "yaml",
            "steps:\n  - a: 1\n    extra: |\n      x\n\n      y\n\n\nz: 1\n",
            EXTRA,
            "steps:\n  - a: 1\n\n\nz: 1\n",
        ),
        ("yaml", "steps:\n  - a: 1\n    extra: [1, 2]", EXTRA, "steps:\n  - a: 1\n"),
        ("json", '{"steps": [{"most": 0}]}', FEW, '{"steps": [{"most": 1}]}'),
        ("yaml", "steps:\n  - most: 0 # none\n", FEW, "steps:\n  - most: 1 # none\n"),
    ],
)
def test_a_key_is_removed_with_its_value_and_a_number_is_replaced(
    form: TextFormat, text: str, diagnostic: Diagnostic, expected: str
) -> None:
    edited = corrected(text, form, diagnostic)
    assert edited is not None
    assert edited == expected
    assert (json.loads if form == "json" else yaml.safe_load)(edited) is not None


@pytest.mark.inv("CON-13")
@pytest.mark.parametrize(
    ("form", "text", "diagnostic"),
    [
        ("yaml", "steps:\n  - extra: 1\n    a: 2\n", EXTRA),
        ("yaml", 'steps:\n  - a: 1\n    extra: "x\n  y"\n', EXTRA),
        ("yaml", "steps:\n  - a: 1\n    extra: [1,\n  2]\n", EXTRA),
        ("yaml", "steps:\n  - a: 1\n    extra: &b 1\nz: *b\n", EXTRA),
        ("yaml", "steps:\n  - a: 1\n    extra:\n      c: &b 1\nz: *b\n", EXTRA),
        ("yaml", "steps:\n  - a: 1\n    'extra': 1\n", EXTRA),
        ("yaml", "steps:\n  - {a: 1, extra: 1}\n", EXTRA),
        ("json", '{"steps": [{"most": 0.5}]}', FEW),
        ("json", '{"steps": [{"most": 01}]}', FEW),
        ("json", '{"steps": [{"most": "0"}]}', wrong("steps[0].most", "1", "2", is_key=False)),
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
        ("json", '{"steps": [{"titel": 1}]}', fault("steps[0].titel", "missing_key", "", "Add the key.")),
    ],
)
def test_what_is_not_certain_is_left_to_the_author(form: TextFormat, text: str, diagnostic: Diagnostic) -> None:
    assert corrected(text, form, diagnostic) is None


@pytest.mark.inv("CON-13")
def test_a_correction_is_written_as_json_writes_it() -> None:
    edited = corrected('{"steps": [{"risk": "lo"}]}', "json", wrong("steps[0].risk", "lo", 'a"b\n', is_key=False))
    assert edited is not None
    assert json.loads(edited) == {"steps": [{"risk": 'a"b\n'}]}


@pytest.mark.inv("CON-13")
@pytest.mark.parametrize(
    ("form", "text", "path", "expected"),
    [
        ("json", '{"steps": [{"id": "read-code"}]}', "steps[0].title", '{"title": "Read code", "id": "read-code"}'),
        ("json", '{"steps": [{"title": "Read the code!"}]}', "steps[0].id", '{"id": "read-the-code", "title": "Read'),
        ("json", '{"id": "team.ship_it"}', "name", '{"name": "Ship it", "id": "team.ship_it"}'),
        (
            "yaml",
            "steps:\n  - title: Read code\n    prompt: x\n",
            "steps[0].id",
            '  - id: "read-code"\n    title: Read',
        ),
        ("yaml", "steps:\n  - prompt: x\n    id: a\n", "steps[0].title", 'x\n    title: "A"\n    id: a\n'),
        ("yaml", "id: team.ship\n", "name", 'name: "Ship"\nid: team.ship\n'),
        ("yaml", "steps: [{id: a, prompt: x}]\n", "steps[0].title", '[{title: "A", id: a, prompt: x}]'),
        ("yaml", "steps:\n  - 'id': 'a'\n", "steps[0].title", None),
        ("json", '{"steps": [{"id": 1}]}', "steps[0].title", None),
        ("json", '{"steps": [{"id": "--"}]}', "steps[0].title", None),
        ("json", '{"steps": [{"title": "!"}]}', "steps[0].id", None),
        ("json", '{"steps": [{"prompt": "x"}]}', "steps[0].title", None),
        ("json", '{"steps": [{"id": "a"}]}', "steps[0].prompt", None),
    ],
)
def test_a_missing_member_is_added_if_it_follows_from_the_one_beside_it(
    form: TextFormat, text: str, path: str, expected: str | None
) -> None:
    added = corrected(text, form, fault(path, "missing_key", "", ""))
    if expected is None:
        assert added is None
        return
    assert added is not None
    assert expected in added
    parsed = yaml.safe_load(added)
    assert parsed != yaml.safe_load(text)


@pytest.mark.inv("CON-13")
def test_a_member_that_is_there_with_another_spelling_is_renamed_and_not_added() -> None:
    missing = fault("steps[0].title", "missing_key", "", "")
    edits = text_edits('{"steps": [{"id": "a", "titel": "A"}]}', "json", [missing, TITEL])
    assert [one is not None for one in edits] == [False, True]
