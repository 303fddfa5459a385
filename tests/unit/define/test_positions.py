"""The line and column of a document path, in files of any style."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.define.source.positions import Position, find_positions
from interlock.define.source.text_form import FORMAT_BYTES_MAX, TextFormat


def find_position(data: bytes, text_format: TextFormat, path: str) -> Position | None:
    return find_positions(data, text_format, [path]).get(path)


def place(data: bytes | str, text_format: TextFormat, path: str) -> tuple[int, int] | None:
    found = find_position(data.encode() if isinstance(data, str) else data, text_format, path)
    return None if found is None else (found.line, found.column)


AS_JSON = """{
  "id": "a.b",
  "conditions": {"ready": "é", "done": [1, [2, 3]]},
  "steps": [
    {"id": "one", "promptBlocks": {"goal": "x"}},
    7, {"id": "two"
    }
  ]
}
"""
AS_YAML = """# A comment.
id: a.b
conditions: {ready: é, "done": [1, [2, 3]]}
steps:
  - id: one
    promptBlocks:
      goal: >-
        x: 1
  - 7
  -
    ? id
    : two
"""
PLACES = [
    ("", (1, 1), (1, 1)),
    ("id", (2, 3), (2, 1)),
    ("conditions", (3, 3), (3, 1)),
    ("conditions.ready", (3, 18), (3, 14)),
    ("conditions.done", (3, 32), (3, 24)),
    ("conditions.done[1]", (3, 44), (3, 36)),
    ("conditions.done[1][1]", (3, 48), (3, 40)),
    ("steps", (4, 3), (4, 1)),
    ("steps[0]", (5, 5), (5, 5)),
    ("steps[0].promptBlocks", (5, 19), (6, 5)),
    ("steps[0].promptBlocks.goal", (5, 36), (7, 7)),
    ("steps[1]", (6, 5), (9, 5)),
    ("steps[2]", (6, 8), (11, 5)),
    ("steps[2].id", (6, 9), (11, 7)),
]


@pytest.mark.parametrize(("path", "in_json", "in_yaml"), PLACES)
def test_the_position_of_a_member_is_its_key_and_of_an_item_its_value(
    path: str, in_json: tuple[int, int], in_yaml: tuple[int, int]
) -> None:
    assert place(AS_JSON, "json", path) == in_json
    assert place(AS_YAML, "yaml", path) == in_yaml


@pytest.mark.parametrize(
    ("missing", "around"),
    [
        ("name", ""),
        ("conditions.never", "conditions"),
        ("conditions.ready.deeper[3]", "conditions.ready"),
        ("conditions[0]", "conditions"),
        ("steps[9]", "steps"),
        ("steps[9].id", "steps"),
        ("steps.id", "steps"),
        ("steps[0].title", "steps[0]"),
        ("steps[1].title", "steps[1]"),
        ("steps[00]", "steps"),
        ("steps[0", "steps"),
        ("steps[-1]", "steps"),
        ("step", ""),
        ("conditions.readyx", "conditions"),
        ("[0]", ""),
    ],
)
def test_a_missing_path_has_the_position_of_its_nearest_container(missing: str, around: str) -> None:
    assert place(AS_JSON, "json", missing) == place(AS_JSON, "json", around)
    assert place(AS_YAML, "yaml", missing) == place(AS_YAML, "yaml", around)


@pytest.mark.parametrize("form", ["json", "yaml"])
@pytest.mark.parametrize(
    ("text", "path", "column"),
    [
        ('{"a": 1, "a": 2}', "a", 10),
        ('{"a": 1, "a": 2, "a": 3}', "a", 10),
        ('{"s": [{"a": 1, "a": 2}]}', "s[0].a", 17),
        ('{"a": {"b": 1}, "a": {}}', "a.b", 8),
    ],
)
def test_of_a_duplicate_key_the_second_is_found(text: str, path: str, column: int, form: TextFormat) -> None:
    assert place(text, form, path) == (1, column)


@pytest.mark.parametrize("form", ["json", "yaml"])
@pytest.mark.parametrize(
    ("text", "path", "column"),
    [
        ('{"a.b": 1}', "a.b", 2),
        ('{"a": {"c": 1}, "a.b": {"c": 1}}', "a.b.c", 25),
        ('{"a": {"b": 1}, "a.b": 1}', "a.b", 17),
        ('{"a.b": 1, "a": {"b": 1}}', "a.b", 2),
        ('{"a.b": 1, "a": {"b": {"c": 1}}}', "a.b.c", 24),
        ('{"a[0]": {"x": 1}, "a": [1]}', "a[0].x", 11),
        ('{"[0]": 1}', "[0]", 2),
        ('{"": {"": 1}}', "", 1),
        ('{"a": {"": {"b": 1}}}', "a..b", 13),
        ('{"a]": {"b": 1}}', "a].b", 9),
    ],
)
def test_a_key_may_contain_the_delimiters_of_a_path(text: str, path: str, column: int, form: TextFormat) -> None:
    assert place(text, form, path) == (1, column)


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_byte_order_mark_takes_no_column(form: TextFormat) -> None:
    assert place(b'\xef\xbb\xbf{"a": 1}', form, "a") == (1, 2)


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_carriage_return_before_the_end_of_a_line_begins_no_line(form: TextFormat) -> None:
    assert place('{\r\n "a": 1,\r\n "b": 2}', form, "b") == (3, 2)


def test_a_key_is_found_however_it_is_written() -> None:
    assert place('{"x": 1, "\\u00e9\\n": 2}', "json", "é\n") == (1, 10)
    assert place('{x: 1, "\\u00e9\\n": 2}', "yaml", "é\n") == (1, 8)


def test_paths_around_a_key_that_is_not_a_text_are_found_in_yaml() -> None:
    text = "a:\n  ? [x, {y: 1}]\n  : {b: 1}\n  c: {d: 1}\n"
    assert place(text, "yaml", "a") == (1, 1)
    assert place(text, "yaml", "a.c.d") == (4, 7)


@pytest.mark.parametrize("form", ["json", "yaml"])
@pytest.mark.parametrize("text", ["[1, [2]]", "7", '"a"'])
def test_a_document_that_is_no_object_has_places_too(text: str, form: TextFormat) -> None:
    assert place(text, form, "") == (1, 1)
    assert place(text, form, "[1][0]") == ((1, 6) if text.startswith("[") else (1, 1))


def test_all_paths_are_found_at_once_and_each_is_named_as_it_was_asked_for() -> None:
    paths = ["steps[2].id", "id", "", "id", "steps[9]"]
    found = find_positions(AS_JSON.encode(), "json", iter(paths))
    assert found == {path: find_position(AS_JSON.encode(), "json", path) for path in paths}
    assert found["id"] == Position(line=2, column=3)


UNREADABLE: list[tuple[bytes, TextFormat]] = [
    *(
        (text, "json")
        for text in (
            *(b"", b" ", b"{", b'{"a"', b'{"a":', b'{"a": 1', b'{"a": 1,', b'{"a": 1,}', b'{"a" 1}', b"{a: 1}"),
            *(b'{"a": 1} x', b'{"a": 1}}', b"{1: 1}", b'{"a": [1 2]}', b'{"a": [1,]}', b'{"a": [', b'{"a": 1; "b": 1}'),
            *(b'{"a": "\xff"}', b'{"a": \x00}', b'{"a": ' + b"[" * 100_000, b'{"b": ' + b"1" * 5000 + b"}"),
        )
    ),
    *(
        (text, "yaml")
        for text in (
            b"a: [",
            b"a: 1\n b: 2",
            b"a: \xff",
            b"a: &x 1",
            b"a: *x",
            b"a: 1\n---\nb: 1",
            b"a: " + b"[" * 100_000,
        )
    ),
]


@pytest.mark.inv("PLAN-4")
@pytest.mark.parametrize(("data", "form"), UNREADABLE)
def test_an_unreadable_text_has_no_positions(data: bytes, form: TextFormat) -> None:
    assert find_position(data, form, "a[0].b") is None
    assert find_positions(data, form, ["a", "a.b", ""]) == {}


@pytest.mark.inv("PLAN-4")
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_file_that_is_too_large_has_no_positions(form: TextFormat) -> None:
    frame = '{"a": ""}'
    text = frame.replace('""', f'"{"x" * (FORMAT_BYTES_MAX[form] - len(frame))}"')
    assert place(text, form, "a") == (1, 2)
    assert place(text + " ", form, "a") is None


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_an_endless_path_leads_as_far_as_it_is_followed(form: TextFormat) -> None:
    assert place('{"a": {"a": 1}}', form, "a" + ".a" * 100_000) == (1, 8)
    assert place('{"a": [[1]]}', form, "a" + "[0]" * 100_000) == (1, 9)


@pytest.mark.inv("PLAN-4")
def test_a_path_is_followed_no_deeper_than_a_document_may_nest() -> None:
    """Only JSON is asked: YAML so deep cannot be read at all."""
    text = '{"a":' + "[" * 300 + "]" * 300 + "}"
    assert place(text, "json", "a" + "[0]" * 299) == (1, 69)


@dataclass
class Written:
    """A text that is written piece by piece, and where each path was when it came to be."""

    space: Callable[[], str]
    text: str = ""
    at: dict[str, int] = field(default_factory=dict[str, int])

    def write(self, value: object, path: str) -> None:
        if isinstance(value, dict):
            members = cast("dict[str, object]", value).items()
            self._between("{}", [(f"{path}.{key}" if path else key, key, item) for key, item in members])
        elif isinstance(value, list):
            self._between("[]", [(f"{path}[{at}]", None, item) for at, item in enumerate(cast("list[object]", value))])
        else:
            self.text += json.dumps(value, ensure_ascii=False)

    def _between(self, ends: str, members: list[tuple[str, str | None, object]]) -> None:
        self.text += ends[0]
        for at, (path, key, item) in enumerate(members):
            self.text += ("," if at else "") + self.space()
            self.at[path] = len(self.text)
            if key is not None:
                self.text += json.dumps(key, ensure_ascii=False) + ": " + self.space()
            self.write(item, path)
            self.text += self.space()
        self.text += ends[1]


_keys = st.text('abé😀 "\\\n:,{}#-', min_size=1, max_size=3)
_scalars = st.none() | st.booleans() | st.integers(-99, 99) | st.text('ab é😀"\\\n:,{}[].#', max_size=5)
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_keys, inner, max_size=4), max_leaves=20
)
_documents = st.dictionaries(_keys, _values, max_size=5)


@given(document=_documents, spaces=st.lists(st.sampled_from(["", " ", "\n", "\n   ", "\r\n  ", "  \n"]), min_size=1))
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_every_path_of_a_document_is_found_where_its_key_or_item_was_written(
    document: dict[str, object], spaces: list[str], form: TextFormat
) -> None:
    turns = cycle_of(spaces)
    written = Written(lambda: next(turns))
    written.write(document, "")
    assert json.loads(written.text) == document
    found = find_positions(written.text.encode(), form, ["", *written.at])
    lines = {path: written.text[:at].split("\n") for path, at in written.at.items()}
    expected = {path: Position(line=len(before), column=len(before[-1]) + 1) for path, before in lines.items()}
    assert found == {"": Position(line=1, column=1)} | expected


def cycle_of(spaces: list[str]) -> Iterator[str]:
    while True:
        yield from spaces


@given(
    data=st.binary(max_size=40),
    text=st.text('{}[]",:. ab\\1\n-?#&*!|', max_size=40),
    path=st.text("ab.[]01 ", max_size=12),
)
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_no_bytes_and_no_path_make_it_stumble(data: bytes, text: str, path: str, form: TextFormat) -> None:
    for each in (data, text.encode(), b'{"a": ' + text.encode() + b"}"):
        found = find_position(each, form, path)
        assert found is None or (found.line >= 1 and found.column >= 1)
