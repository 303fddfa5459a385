"""Parsing of a file's bytes to a JSON value: strict, and every refusal has a code, a place and a fix."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.define.diagnostics import Diagnostic
from interlock.define.front import parse_workflow
from interlock.define.source.text_form import FORMAT_BYTES_MAX, TextFormat, parse_text
from interlock.kernel.budgets import (
    NUMBER_DIGITS_MAX,
)
from interlock.kernel.budgets.workflow import (
    DOCUMENT_BYTES_MAX,
    DOCUMENT_DEPTH_MAX,
    DOCUMENT_VALUES_MAX,
)
from interlock.kernel.canonical import NotCanonicalError, canonical_bytes


def read(data: bytes | str, form: TextFormat) -> dict[str, Any]:
    value = parse_text(data.encode() if isinstance(data, str) else data, form)
    assert not isinstance(value, Diagnostic), value
    return value


def refused(data: bytes | str, form: TextFormat) -> Diagnostic:
    value = parse_text(data.encode() if isinstance(data, str) else data, form)
    assert isinstance(value, Diagnostic), value
    assert value.severity == "error"
    assert value.message
    assert value.fix
    value.render_line().encode("utf-8")
    return value


@pytest.mark.inv("PLAN-1")
def test_json_and_yaml_of_one_content_are_one_value() -> None:
    as_json = '{"id": "a.b", "steps": [{"n": 1, "f": 1.5, "t": true, "z": null, "s": "x: y"}], "e": {}, "l": []}'
    as_yaml = 'id: a.b\nsteps:\n  - n: 1\n    f: 1.5\n    t: true\n    z: null\n    s: "x: y"\ne: {}\nl: []\n'
    assert read(as_json, "json") == read(as_yaml, "yaml") == json.loads(as_json)


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_byte_order_mark_is_no_part_of_the_text(form: TextFormat) -> None:
    assert read(b'\xef\xbb\xbf{"id": "a.b"}', form) == {"id": "a.b"}


REFUSED: list[tuple[str, bytes, TextFormat, str, str]] = [
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
    ("a whole float beyond 2^53", b'{"a": 1e17}', "json", "number_not_exact", "a"),
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
    _what: str, data: bytes, form: TextFormat, code: str, path: str
) -> None:
    found = refused(data, form)
    assert (found.code, found.path) == (code, path)


@pytest.mark.inv("PLAN-4")
def test_a_duplicate_key_is_named_with_its_whole_path_in_json_too() -> None:
    found = refused('{"steps": [{"title": "a"}, {"title": "b", "title": "c"}]}', "json")
    assert (found.code, found.path) == ("duplicate_key", "steps[1].title")


UNREADABLE: list[tuple[str, bytes, TextFormat]] = [
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
def test_a_text_that_breaks_the_parser_is_refused_without_an_exception(
    _what: str, data: bytes, form: TextFormat
) -> None:
    """One such file in a source must not take the whole catalogue down."""
    refused(data, form)


@pytest.mark.inv("PLAN-4")
def test_deep_yaml_is_refused_before_the_rest_of_it_is_read() -> None:
    """The library's scanner takes quadratic time in open brackets: 5,000 take seconds, a whole file hours.

    That the brackets are never closed may not be found out, because nobody may read that far.
    """
    assert refused(b"a: " + b"[" * 1_500, "yaml").code == "too_deep"


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_the_deepest_lawful_document_is_read(form: TextFormat) -> None:
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
def test_a_constant_of_old_yaml_versions_is_text(text: str) -> None:
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


def test_the_place_of_a_syntax_error_is_reported_by_line_and_column() -> None:
    assert "Line 2, column 3" in refused('{\n  "a" 1}'.replace('"a" 1', "a"), "json").message
    assert "Line 2" in refused("a: 1\n b: 2\n", "yaml").message


def filled(begin: bytes, unit: bytes, end: bytes, form: TextFormat) -> bytes:
    """Return the largest lawful file of many equal pieces."""
    room = FORMAT_BYTES_MAX[form] - len(begin) - len(end)
    values = 2 * sum(unit.count(mark) for mark in (b",", b"[", b"{", b":", b"-", b"?"))
    count = min(room // len(unit), (DOCUMENT_VALUES_MAX - 10) // values) if values else room // len(unit)
    return begin + unit * count + end


HOSTILE: list[tuple[str, bytes, bytes, bytes, str | None]] = [
    ("brackets never closed", b'{"a":', b"[", b"", "too_deep"),
    ("objects never closed", b"", b'{"a":', b"", "too_deep"),
    ("brackets closed at once", b'{"a":', b"[]", b"}", "not_form"),
    ("small numbers", b'{"a":[', b"1,", b"1]}", None),
    ("small fractions", b'{"a":[', b"1.5,", b"1]}", None),
    ("empty lists", b'{"a":[', b"[],", b"1]}", None),
    ("tiny mappings", b'{"a":[', b'{"b":1},', b"1]}", None),
    ("lawful towers", b'{"a":[', b"[" * 60 + b"]" * 60 + b",", b"1]}", None),
    ("one text", b'{"a":"', b"x", b'"}', None),
    ("quotes in a text", b'{"a":"', b'\\"', b'"}', None),
    ("escapes", b'{"a":"', b"\\u00e9", b'"}', None),
    ("blanks", b'{"a":', b" ", b"1}", None),
    ("NUL in a text", b'{"a":"', b"\0", b'"}', "not_form"),
    ("nothing but NUL", b"", b"\0", b"", "not_form"),
    ("one key many times", b"{", b'"k":1,', b'"k":1}', "duplicate_key"),
    ("many keys twice", b'{"a":[', b'{"k":1,"k":1},', b"1]}", "duplicate_key"),
    ("a key twice at the very end", b'{"a":[', b'{"b":1},', b'{"c":1,"c":2}]}', "duplicate_key"),
    ("a number too large at the very end", b'{"a":[', b"1,", b"9007199254740993]}", "number_not_exact"),
    ("a number of all the digits", b'{"a":', b"1", b"}", "not_form"),
    ("a fraction of all the digits", b'{"a":1.', b"1", b"}", "not_form"),
    ("an exponent of all the digits", b'{"a":1e', b"9", b"}", "not_form"),
    ("a small exponent of all the digits", b'{"a":1e-', b"9", b"}", "not_form"),
    ("huge exponents", b'{"a":[', b"1e999999,", b"1]}", "number_not_exact"),
    ("something behind the end", b'{"a":[', b"1,", b"1]}x", "not_form"),
]


@pytest.mark.inv("PLAN-4")
@pytest.mark.parametrize("form", ["json", "yaml"])
@pytest.mark.parametrize(("_what", "begin", "unit", "end", "code"), HOSTILE, ids=[case[0] for case in HOSTILE])
def test_the_largest_file_of_one_thing_repeated_is_read_or_refused(
    _what: str, begin: bytes, unit: bytes, end: bytes, code: str | None, form: TextFormat
) -> None:
    data = filled(begin, unit, end, form)
    if code is None:
        assert read(data, form)
    else:
        assert refused(data, form).code == code.replace("form", form)


HOSTILE_YAML: list[tuple[str, bytes, bytes, bytes, str | None]] = [
    ("dashes on one line", b"a:\n ", b"- ", b"", "too_deep"),
    ("question marks", b"", b"? ", b"", "too_deep"),
    ("a list", b"a:\n", b"- 1\n", b"", None),
    ("a list of mappings", b"a:\n", b"- b: 1\n", b"", None),
    ("merge keys", b"a:\n", b"- <<: {a: 1}\n", b"", None),
    ("one merge key many times", b"", b"<<: {a: 1}\n", b"", "duplicate_key"),
    ("laughs", b"a: &a [x, x]\n", b"b: &b [*a, *a]\n", b"", "not_yaml"),
    ("documents", b"a: 1\n", b"---\n", b"", "not_yaml"),
    ("ends of documents", b"a: 1\n", b"...\n", b"", None),
    ("comments", b"", b"# nothing\n", b"", "not_an_object"),
    ("one comment", b"", b"#", b"", "not_an_object"),
    ("tabs between blanks", b"a:\n", b" \tb: 1\n", b"", "not_yaml"),
    ("quotes doubled", b"a: '", b"''", b"'", None),
    ("lines of a block", b"a: |\n", b" x\n", b"", None),
    ("a plain key beyond the library's limit", b"", b"k", b": 1", "not_yaml"),
    ("an explicit key", b"? ", b"k", b"\n: 1", None),
    ("tag directives", b"", b"%TAG ! !x\n", b"--- {}", "not_yaml"),
    ("an anchor's name", b"a: &", b"x", b" 1", "not_yaml"),
    ("a tag's name", b"a: !<", b"x", b"> 1", "not_yaml"),
    ("an alias behind much that is lawful", b"a:\n", b"- 1\n", b"- *x\n", "not_yaml"),
]


@pytest.mark.inv("PLAN-4")
@pytest.mark.parametrize(
    ("_what", "begin", "unit", "end", "code"), HOSTILE_YAML, ids=[case[0] for case in HOSTILE_YAML]
)
def test_the_largest_yaml_of_one_thing_repeated_is_read_or_refused(
    _what: str, begin: bytes, unit: bytes, end: bytes, code: str | None
) -> None:
    data = filled(begin, unit, end, "yaml")
    if code is None:
        assert read(data, "yaml")
    else:
        assert refused(data, "yaml").code == code


@pytest.mark.inv("PLAN-4")
@pytest.mark.parametrize(
    ("begin", "unit", "end", "form", "unit_values"),
    [
        (b'{"a":[', b"1,", b"1]}", "json", 1),
        (b'{"a":[', b"[],", b"1]}", "json", 2),
        (b'{"a":[', b'{"b":1},', b"1]}", "json", 2),
        (b"a:\n", b"- 1\n", b"", "yaml", 1),
        (b"a: [", b"[],", b"]", "yaml", 1),
    ],
)
def test_a_file_of_more_values_than_a_workflow_has_is_too_large(
    begin: bytes, unit: bytes, end: bytes, form: TextFormat, unit_values: int
) -> None:
    """The frames hold three values and four."""
    count = (DOCUMENT_VALUES_MAX - 3) // unit_values
    assert read(begin + unit * (count - 1) + end, form)
    found = refused(begin + unit * (count + 1) + end, form)
    assert (found.code, str(DOCUMENT_VALUES_MAX) in found.message) == ("too_large", True)


@pytest.mark.inv("PLAN-4")
@pytest.mark.parametrize(("form", "column"), [("json", 3), ("yaml", 1)])
def test_a_number_with_too_many_digits_is_refused_at_its_place(form: TextFormat, column: int) -> None:
    digits = "1" * (NUMBER_DIGITS_MAX - 2)
    assert read(f'{{"a": 0.{digits}, "b": "{digits * 9}"}}', form)
    found = refused(f'{{"a": 1, "b":\n0.{digits}111}}', form)
    assert (found.code, found.line, found.column) == (f"not_{form}", 2, column)
    assert found.message == f"A number has more than {NUMBER_DIGITS_MAX} digits."


@pytest.mark.inv("PLAN-4")
def test_yaml_is_held_to_fewer_bytes_than_json() -> None:
    data = b'{"a": "' + b"x" * (FORMAT_BYTES_MAX["yaml"] - 9) + b'"}'
    assert read(data, "yaml") == read(data, "json")
    assert refused(data + b" ", "yaml").code == "too_large"
    assert read(data + b" ", "json")


@pytest.mark.inv("PLAN-4")
@pytest.mark.parametrize(
    ("last", "code"), [(b"9007199254740993", "number_not_exact"), (b'{"b":1,"b":1}', "duplicate_key")]
)
def test_a_fault_below_long_keys_costs_no_more_than_another(last: bytes, code: str) -> None:
    """A path that was built for each of these values would take 74 gigabytes of copies."""
    data = (b'{"' + b"k" * 12_000 + b'":') * 62 + b"[" + b"1," * 90_000 + last + b"]" + b"}" * 62
    assert refused(data, "json").code == code


FIRST: list[tuple[str, str, TextFormat, str, str]] = [
    ("a syntax error after a duplicate key", '{"a": 1, "a": 2,}', "json", "not_json", ""),
    ("the same in yaml", "a: 1\na: 2\nb: [\n", "yaml", "not_yaml", ""),
    ("an anchor after a duplicate key", "a: 1\na: 2\nb: &x 1\n", "yaml", "not_yaml", ""),
    ("depth after a duplicate key", "a: 1\na: " + "[" * 70 + "]" * 70, "yaml", "too_deep", ""),
    ("a document after a duplicate key", "a: 1\na: 2\n---\n", "yaml", "not_yaml", ""),
    (
        "two keys twice, the first in order, not in depth",
        '{"a": 1, "a": {"b": 1, "b": 2}}',
        "json",
        "duplicate_key",
        "a",
    ),
    ("the same in yaml again", "{a: 1, a: {b: 1, b: 2}}", "yaml", "duplicate_key", "a"),
    ("a list as key after a duplicate key", "a: {b: 1, b: 2}\n? [c]\n: 1\n", "yaml", "duplicate_key", "a.b"),
    ("a duplicate key after a list as key", "a:\n  ? [c]\n  : {d: 1, d: 2}\n", "yaml", "not_yaml", "a"),
    ("a number in a list in yaml", "a: [{b: [1, 1e999]}]", "yaml", "number_not_exact", "a[0].b[1]"),
    ("half a key before a number too large", '{"a": {"\\ud800": 1e999}}', "json", "not_utf8", "a"),
]


@pytest.mark.inv("PLAN-4")
@pytest.mark.parametrize(("_what", "data", "form", "code", "path"), FIRST, ids=[case[0] for case in FIRST])
def test_of_several_faults_the_one_to_fix_first_is_reported(
    _what: str, data: str, form: TextFormat, code: str, path: str
) -> None:
    found = refused(data, form)
    assert (found.code, found.path) == (code, path)


def test_a_few_tag_directives_that_nothing_uses_do_no_harm() -> None:
    assert read("%TAG ! !x\n---\na: 1\n", "yaml") == {"a": 1}
    words = "a: |\n" + "  see %TAG\n" * 100
    assert read(words, "yaml") == {"a": "see %TAG\n" * 100}


def _canonical(value: object) -> bool:
    try:
        canonical_bytes(value)
    except NotCanonicalError:
        return False
    return True


_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(min_value=-(2**55), max_value=2**55),
    st.sampled_from([2**53 - 1, 2**53, 1 - 2**53, -(2**53), 2.0**53, 1e20, 1e21, 1e300, -0.0]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=4),
    st.sampled_from(["\ud800", "\U0001f600", "\udfff x"]),
)
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


@pytest.mark.inv("PLAN-4")
@given(value=_values)
def test_a_document_is_refused_exactly_if_it_has_no_canonical_bytes(value: object) -> None:
    found = parse_text(json.dumps({"a": value}).encode(), "json")
    assert isinstance(found, Diagnostic) == (not _canonical({"a": value}))
    if isinstance(found, Diagnostic):
        assert found.code == ("not_utf8" if "surrogate" in found.message else "number_not_exact")
    else:
        assert canonical_bytes(found) == canonical_bytes({"a": value})


@pytest.mark.parametrize(
    ("text", "form", "line", "column"),
    [
        ('{"a": "NaN",\n "b": NaN}', "json", 2, 7),
        ('{"a": 1,\n "b": -Infinity}', "json", 2, 7),
        ('{"a": 1,\n b}', "json", 2, 2),
        ('{"a": "[[[",\n "b": ' + "9" * 5000 + "}", "json", 2, 7),
        ('{"a": "[",\n' + '"b":' + "[" * 70 + "]" * 70 + "}", "json", 2, 4 + DOCUMENT_DEPTH_MAX),
        ('{"a": "[",\n' + '"b":' + "[" * 90_000 + "]" * 90_000 + "}", "json", 2, 4 + DOCUMENT_DEPTH_MAX),
        ("a: 1\nb: " + "9" * 5000, "yaml", 2, 4),
        ("a: 1\n? [b]\n: 2", "yaml", 2, 3),
        ("a: 1\nb: &x 2", "yaml", 2, 4),
        ("a: 1\nb: ]", "yaml", 2, 4),
    ],
)
def test_a_fault_without_a_path_is_reported_with_its_line_and_column(
    text: str, form: TextFormat, line: int, column: int
) -> None:
    found = refused(text, form)
    assert (found.line, found.column) == (line, column)
    assert found.to_json()["line"] == line


@pytest.mark.parametrize("text", ["id: a\nprompt: {{goal}} is it\n", "id: a\nprompt: {{goal}}\n", "- {{goal}} x\n"])
def test_the_fix_of_an_unquoted_placeholder_is_to_quote_it(text: str) -> None:
    found = refused(text, "yaml")
    assert found.code == "not_yaml"
    assert "in quotes" in found.fix
    before, _, rest = text.partition("{{goal}}")
    prompt = "{{goal}}" + rest.strip()
    assert not isinstance(parse_text(f'{before}"{prompt}"\n'.replace("- ", "k: ").encode(), "yaml"), Diagnostic)


def test_a_fault_of_brackets_does_not_mention_placeholders() -> None:
    assert "quotes" not in refused("a: [1, {b: 2]", "yaml").fix


@pytest.mark.parametrize(("text", "path"), [(r'{"a": {"b": "x\ud83d"}}', "a.b"), (r'{"\ud83d": 1}', "")])
def test_half_of_a_character_is_no_number(text: str, path: str) -> None:
    found = refused(text, "json")
    assert (found.code, found.path) == ("not_utf8", path)
    assert "both halves" in found.fix


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_file_over_the_limit_is_reported_without_its_size(form: TextFormat) -> None:
    found = refused(b"#" * (FORMAT_BYTES_MAX[form] + 1), form)
    assert found.message == f"The file has more than {FORMAT_BYTES_MAX[form]} bytes."


HEAD = "id: team.a\nname: A\nsteps:\n"


@pytest.mark.inv("PLAN-29")
@pytest.mark.parametrize(
    ("form", "text", "place", "named"),
    [
        ("yaml", "id: team.a\nname:\xa0A\nsteps: []\n", (2, 6), "U+00A0 (no-break space)"),
        ("yaml", HEAD + "  -\u200b id: a\n    prompt: Do.\n", (4, 4), "U+200B (zero width space)"),
        ("yaml", HEAD + "  -\u3000id: a\n    prompt: Do.\n", (4, 4), "U+3000 (ideographic space)"),
        ("json", '{"id": "team.a",\xa0"name": "A"}', (1, 17), "U+00A0 (no-break space)"),
        ("json", '{"id": "a",\n<<<<<<< HEAD\n"name": "A"\n=======\n"name": "B"\n>>>>>>> b\n}', (2, 1), "`<<<<<<<`"),
        ("yaml", "id: team.a\n<<<<<<< HEAD\nname: A\n=======\nname: B\n>>>>>>> b\nsteps: []\n", (2, 1), "`<<<<<<<`"),
        ("yaml", HEAD + "  - prompt: |\n<<<<<<< a\r\n      Do.\n>>>>>>> b\n", (5, 1), "`<<<<<<<`"),
        ("yaml", HEAD + "  - id: a\n>>>>>>> b\n", (5, 1), "`>>>>>>>`"),
    ],
)
def test_a_merge_and_what_only_looks_like_a_space_are_named_where_they_break_a_file(
    form: TextFormat, text: str, place: tuple[int, int], named: str
) -> None:
    found = parse_text(text.encode(), form)
    assert isinstance(found, Diagnostic)
    assert named in found.message
    assert (found.line, found.column) == place
    assert found.fix.startswith(("Replace it with a space", "Resolve the conflict"))


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("yaml", HEAD + "  - id: a\n    prompt: Attention\xa0: this is a colon: here\n"),
        ("json", '{"id": "team.a" "name": "A\xa0b"}'),
    ],
)
def test_a_space_in_the_text_of_a_person_is_not_to_blame(form: TextFormat, text: str) -> None:
    found = parse_text(text.encode(), form)
    assert isinstance(found, Diagnostic)
    assert "U+" not in found.message


def test_a_text_about_a_merge_is_read() -> None:
    found = parse_text((HEAD + "  - id: a\n    prompt: |\n      <<<<<<< HEAD\n      =======\n").encode(), "yaml")
    assert not isinstance(found, Diagnostic)


@pytest.mark.inv("PLAN-29")
@pytest.mark.parametrize("key", ["\xa0steps", "\u200bname", "prompt\u3000"])
def test_a_key_with_a_character_that_cannot_be_seen_is_named_with_it(key: str) -> None:
    found = parse_workflow({"id": "team.a", key: []})
    assert isinstance(found, tuple)
    (one,) = (one for one in found if one.code == "unknown_key")
    assert "it has the character U+" in one.message
    assert one.fix == "Replace the character with a space, or remove it."
