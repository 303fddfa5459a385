"""From a file's bytes to a JSON value: strict in what it takes, and every refusal has a code, a place and a fix."""

import json
from typing import Any

import pytest

from interlock.define.diagnostics import Diagnostic
from interlock.define.text_form import Form, parse_text
from interlock.kernel.budgets import DOCUMENT_BYTES_MAX, DOCUMENT_DEPTH_MAX


def read(data: bytes | str, form: Form) -> dict[str, Any]:
    value = parse_text(data.encode() if isinstance(data, str) else data, form)
    assert not isinstance(value, Diagnostic), value
    return value


def refused(data: bytes | str, form: Form) -> Diagnostic:
    value = parse_text(data.encode() if isinstance(data, str) else data, form)
    assert isinstance(value, Diagnostic), value
    assert value.severity == "error"
    assert value.message
    assert value.fix
    value.line().encode("utf-8")
    return value


@pytest.mark.inv("PLAN-1")
def test_json_and_yaml_of_one_content_are_one_value() -> None:
    as_json = '{"id": "a.b", "steps": [{"n": 1, "f": 1.5, "t": true, "z": null, "s": "x: y"}], "e": {}, "l": []}'
    as_yaml = 'id: a.b\nsteps:\n  - n: 1\n    f: 1.5\n    t: true\n    z: null\n    s: "x: y"\ne: {}\nl: []\n'
    assert read(as_json, "json") == read(as_yaml, "yaml") == json.loads(as_json)


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_byte_order_mark_is_no_part_of_the_text(form: Form) -> None:
    assert read(b'\xef\xbb\xbf{"id": "a.b"}', form) == {"id": "a.b"}


REFUSED: list[tuple[str, bytes, Form, str, str]] = [
    ("json that ends early", b'{"id": ', "json", "not_json", ""),
    ("an empty json file", b"", "json", "not_json", ""),
    ("json with a comma too many", b'{"id": "a",}', "json", "not_json", ""),
    ("a comment in json", b'{"id": 1} // no', "json", "not_json", ""),
    ("NaN", b'{"a": NaN}', "json", "not_json", ""),
    ("minus infinity", b'{"a": -Infinity}', "json", "not_json", ""),
    ("a json list", b"[]", "json", "not_an_object", ""),
    ("a json text", b'"id"', "json", "not_an_object", ""),
    ("an empty yaml file", b"", "yaml", "not_an_object", ""),
    ("a yaml list", b"- a\n- b\n", "yaml", "not_an_object", ""),
    ("a number too large to be finite", b'{"a": {"b": [0, 1e999]}}', "json", "number_not_exact", "a.b[1]"),
    ("an integer beyond 2^53", b'{"a": 9007199254740993}', "json", "number_not_exact", "a"),
    ("an integer beyond 2^53 in yaml", b"a: 9007199254740993\n", "yaml", "number_not_exact", "a"),
    ("bytes that are not utf-8", b'{"a": "\xff"}', "json", "not_utf8", ""),
    ("utf-16", '{"a": 1}'.encode("utf-16"), "json", "not_utf8", ""),
    ("yaml bytes that are not utf-8", b"a: \xff\n", "yaml", "not_utf8", ""),
    ("yaml with a tab as indent", b"a:\n\tb: 1\n", "yaml", "not_yaml", ""),
    ("yaml with a control character", b"a: \x01\n", "yaml", "not_yaml", ""),
    ("two yaml documents", b"a: 1\n---\nb: 2\n", "yaml", "not_yaml", ""),
    ("a yaml list as key", b"? [a, b]\n: 1\n", "yaml", "not_yaml", ""),
    ("a yaml anchor", b"a: &x 1\n", "yaml", "not_yaml", ""),
    ("a yaml alias", b"a: &x {b: 1}\nc: *x\n", "yaml", "not_yaml", ""),
    ("a tag of one's own", b"a: !mine 1\n", "yaml", "not_yaml", ""),
    ("a python tag", b"a: !!python/object/apply:os.system [ls]\n", "yaml", "not_yaml", ""),
    ("a timestamp tag", b"s: [{a: !!timestamp 2024-01-31}]\n", "yaml", "not_yaml", ""),
    ("a binary tag", b"a: !!binary aGk=\n", "yaml", "not_yaml", ""),
    ("a key twice in json", b'{"id": 1, "id": 2}', "json", "duplicate_key", "id"),
    ("a key twice in yaml", b"id: 1\nid: 2\n", "yaml", "duplicate_key", "id"),
    ("a nested key twice in yaml", b"s:\n  - t: 1\n    t: 2\n", "yaml", "duplicate_key", "s[0].t"),
    ("too many bytes", b'{"a": "' + b"x" * DOCUMENT_BYTES_MAX + b'"}', "json", "too_large", ""),
    ("too deep", b'{"a":' + b"[" * 100 + b"]" * 100 + b"}", "json", "too_deep", ""),
    ("too deep for the reader itself", b'{"a":' + b"[" * 100_000, "json", "too_deep", ""),
    ("yaml that is too deep", b"a: " + b"[" * 100 + b"]" * 100, "yaml", "too_deep", ""),
]


@pytest.mark.inv("PLAN-4")
@pytest.mark.parametrize(("_what", "data", "form", "code", "path"), REFUSED, ids=[case[0] for case in REFUSED])
def test_a_file_that_holds_no_document_is_refused_with_its_code_and_place(
    _what: str, data: bytes, form: Form, code: str, path: str
) -> None:
    found = refused(data, form)
    assert (found.code, found.path) == (code, path)


@pytest.mark.inv("PLAN-4")
def test_a_key_that_stands_twice_is_named_with_its_whole_path_in_json_too() -> None:
    found = refused('{"steps": [{"title": "a"}, {"title": "b", "title": "c"}]}', "json")
    assert (found.code, found.path) == ("duplicate_key", "steps[1].title")


UNREADABLE: list[tuple[str, bytes, Form]] = [
    ("an integer of 5,000 digits in json", b'{"a": ' + b"1" * 5000 + b"}", "json"),
    ("an integer of 5,000 digits in yaml", b"a: " + b"1" * 5000, "yaml"),
    ("an integer tag on a text", b"a: !!int abc", "yaml"),
    ("a float tag on a text", b"a: !!float abc", "yaml"),
    ("an escape beyond unicode", b'a: "\\UFFFFFFFF"', "yaml"),
    ("half a character as value in json", b'{"a": "\\ud800"}', "json"),
    ("half a character as value in yaml", b'a: "\\ud800"', "yaml"),
    ("half a character as key in json", b'{"\\ud800": 1}', "json"),
    ("half a character as key, twice, in json", b'{"\\ud800": 1, "\\ud800": 2}', "json"),
    ("half a character as key, twice, in yaml", b'"\\ud800": 1\n"\\ud800": 2', "yaml"),
]


@pytest.mark.inv("PLAN-4", "SRC-4")
@pytest.mark.parametrize(("_what", "data", "form"), UNREADABLE, ids=[case[0] for case in UNREADABLE])
def test_what_the_reader_stumbles_over_is_a_refusal_and_no_exception(_what: str, data: bytes, form: Form) -> None:
    """One such file in a source must not take the whole catalogue down."""
    refused(data, form)


@pytest.mark.inv("PLAN-4")
def test_deep_yaml_is_refused_before_the_rest_of_it_is_read() -> None:
    """The library's scanner takes quadratic time in open brackets: 5,000 take seconds, a whole file hours.

    That the brackets are never closed may not be found out, because nobody may read that far.
    """
    assert refused(b"a: " + b"[" * 1_500, "yaml").code == "too_deep"


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_the_deepest_lawful_document_is_read(form: Form) -> None:
    lists = DOCUMENT_DEPTH_MAX - 1
    assert read('{"a":' + "[" * lists + "1" + "]" * lists + "}", form)
    assert refused('{"a":' + "[" * (lists + 1) + "1" + "]" * (lists + 1) + "}", form).code == "too_deep"


def test_a_document_of_the_largest_lawful_size_is_read() -> None:
    frame = len(b'{"a": ""}')
    assert read(b'{"a": "' + b"x" * (DOCUMENT_BYTES_MAX - frame) + b'"}', "json")


TEXTS = [
    *("yes", "Yes", "no", "on", "off", "y", "n", "OFF"),
    *("2024-01-31", "2024-01-31T10:00:00Z", "12:30", "1:2:3"),
    *("017", "0755", "0o17", "0x1F", "0b1", "1_000"),
    *(".inf", "-.inf", ".nan", "nan", "=", "<<", "1.2.3", "1e", "tRuE", "nULL"),
]


@pytest.mark.inv("PLAN-1")
@pytest.mark.parametrize("text", TEXTS)
def test_what_only_old_yaml_takes_for_more_than_text_is_text(text: str) -> None:
    assert read(f"a: {text}\n", "yaml") == {"a": text}


SCALARS: list[tuple[str, object]] = [
    *(("true", True), ("True", True), ("FALSE", False)),
    *(("null", None), ("~", None), ("", None)),
    *(("0", 0), ("-7", -7), ("+7", 7), ("1.5", 1.5), ("-.5", -0.5), ("1e3", 1000.0)),
    *(('"1"', "1"), ("'true'", "true"), ("|\n  two\n  lines", "two\nlines\n")),
]


@pytest.mark.parametrize(("text", "value"), SCALARS)
def test_a_yaml_scalar_is_what_the_core_schema_says(text: str, value: object) -> None:
    found = read(f"a: {text}\n", "yaml")["a"]
    assert found == value
    assert type(found) is type(value)


def test_yaml_keys_are_texts_whatever_they_look_like() -> None:
    assert read("yes: 1\n1: 2\nnull: 3\ntrue: 4\n", "yaml") == {"yes": 1, "1": 2, "null": 3, "true": 4}


def test_a_yaml_merge_key_merges_nothing() -> None:
    assert read("a:\n  <<: {b: 1}\n", "yaml") == {"a": {"<<": {"b": 1}}}


def test_the_place_of_a_syntax_error_is_told_by_line_and_column() -> None:
    assert "Line 2, column 3" in refused('{\n  "a" 1}'.replace('"a" 1', "a"), "json").message
    assert "Line 2" in refused("a: 1\n b: 2\n", "yaml").message
