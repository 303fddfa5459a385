import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from interlock.kernel.budgets import LINE_BYTES_MAX, LINE_DEPTH_MAX, LINE_VALUES_MAX
from interlock.server.transport.line_edges import edge_members
from interlock.server.transport.lines import (
    LineSplitter,
    Message,
    Reject,
    Skip,
    judge_line,
)

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def line_of(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def nested(levels: int) -> bytes:
    """Return a request of so many levels; the message and its params are the first two."""
    inner = "[" * (levels - 2) + "]" * (levels - 2)
    return b'{"jsonrpc":"2.0","id":9,"method":"m","params":{"a":%s}}' % inner.encode()


@pytest.mark.inv("SRV-20")
@pytest.mark.parametrize(
    ("line", "usual"),
    [
        (b"\xef\xbb\xbf" + line_of(id=1, method="m"), line_of(id=1, method="m")),
        (line_of(id=1.0, method="m"), line_of(id=1, method="m")),
        (line_of(id=2, method="m", params=[]), line_of(id=2, method="m", params={})),
        (line_of(method="n", params=[]), line_of(method="n", params={})),
        (
            line_of(id=2, method="tools/call", params={"name": "t", "arguments": []}),
            line_of(id=2, method="tools/call", params={"name": "t", "arguments": {}}),
        ),
        (
            line_of(id=2, method="tools/call", params={"name": "t", "arguments": ""}),
            line_of(id=2, method="tools/call", params={"name": "t", "arguments": {}}),
        ),
        (
            line_of(id=2, method="m", params={"_meta": {"progressToken": None, "x": 1}}),
            line_of(id=2, method="m", params={"_meta": {"x": 1}}),
        ),
    ],
)
def test_another_spelling_of_the_same_message_is_read_as_the_usual_one(line: bytes, usual: bytes) -> None:
    read = judge_line(line)
    assert isinstance(read, Message)
    assert read == judge_line(usual)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (line_of(id=1, method="m"), JSONRPCRequest(jsonrpc="2.0", id=1, method="m")),
        (line_of(id="a", method="m", params={}), JSONRPCRequest(jsonrpc="2.0", id="a", method="m", params={})),
        (
            line_of(id=1, method="m", params=None),
            JSONRPCRequest(jsonrpc="2.0", id=1, method="m", params=None),
        ),
        (line_of(method="n"), JSONRPCNotification(jsonrpc="2.0", method="n")),
        (line_of(id=1, result={"a": 1}), JSONRPCResponse(jsonrpc="2.0", id=1, result={"a": 1})),
        (
            line_of(id=None, error={"code": -1, "message": "no"}),
            JSONRPCError.model_validate({"jsonrpc": "2.0", "id": None, "error": {"code": -1, "message": "no"}}),
        ),
        (line_of(id=1, method="m") + b"\r", JSONRPCRequest(jsonrpc="2.0", id=1, method="m")),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\\ud83d\\ude00 \\\\ud800"}}',
            JSONRPCRequest(jsonrpc="2.0", id=1, method="m", params={"a": "\N{GRINNING FACE} \\ud800"}),
        ),
    ],
)
def test_a_well_formed_line_is_the_message_it_spells(line: bytes, expected: object) -> None:
    assert judge_line(line) == Message(cast("JSONRPCRequest", expected))


@pytest.mark.parametrize("line", [b"", b" ", b"\r", b"\t \r"])
def test_a_blank_line_is_skipped(line: bytes) -> None:
    assert judge_line(line) == Skip()


@pytest.mark.inv("SRV-12")
@pytest.mark.parametrize(
    ("line", "found_id", "words"),
    [
        (b"{", None, "not valid JSON: the error is at character 2"),
        (b'{"jsonrpc":"2.0","id":1,"method":"m"} x', 1, "not valid JSON: the error is at character 39"),
        (b'{"jsonrpc":"2.0","id":1,"method":"a\tb"}', 1, "not valid JSON: the error is at character 36"),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":]}', 1, "not valid JSON"),
        (b'{"method":"m","params":{"a":]},"id":1}', None, "not valid JSON"),
        (b'{"method":"m","params":{"a":1,"id":5}', None, "not valid JSON"),
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":]}', None, "not valid JSON"),
        (b'{"a":1,"a":2,', None, "not valid JSON"),
        (b'\xff{"jsonrpc":"2.0"}', None, "not UTF-8: no character begins at byte 1"),
        (b'{"jsonrpc":"2.0","method":"\xed\xa0\x80","id":1}', 1, "not UTF-8: no character begins at byte 28"),
        (b'{"jsonrpc":"2.0","method":"m","id":"\xff"}', None, "not UTF-8: no character begins at byte 37"),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":NaN}}', 1, "NaN is not a JSON value"),
        (b'{"method":"m","params":{"a":[-Infinity]},"jsonrpc":"2.0","id":"x"}', "x", "-Infinity is not a JSON value"),
        (b'{"jsonrpc":"2.0","method":"m","id":NaN}', None, "NaN is not a JSON value"),
        (b'{"id":1,"method":"m","params":{"a":NaN,"a":1},"id":2}', None, "NaN is not a JSON value"),
        (b'{"id":1,"method":"m","params":{"a":NaN},', 1, "not valid JSON"),
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":NaN}}', None, "NaN is not a JSON value"),
        (b'"' + b"a" * (LINE_BYTES_MAX - 1) + b'"', None, f"longer than {LINE_BYTES_MAX} bytes"),
        (line_of(id=7, method="m", params={"a": "x" * LINE_BYTES_MAX}), 7, f"longer than {LINE_BYTES_MAX} bytes"),
    ],
)
def test_a_line_that_is_no_json_is_a_parse_error_under_its_id_if_that_can_be_read(
    line: bytes, found_id: str | int | None, words: str
) -> None:
    verdict = judge_line(line)
    assert isinstance(verdict, Reject)
    assert (verdict.code, verdict.id) == (PARSE_ERROR, found_id)
    assert words in verdict.message


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{"a":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"a":]}',
        b'{"result":{"a":1,"a":2},"id":1}',
    ],
)
def test_an_unreadable_response_ends_the_request_that_it_answers(line: bytes) -> None:
    verdict = judge_line(line)
    assert isinstance(verdict, Reject)
    assert (verdict.id, verdict.response_to) == (None, 1)


@pytest.mark.parametrize(
    ("line", "found_id", "words"),
    [
        (b"[]", None, "batches are not supported"),
        (b"[" + line_of(id=1, method="m") + b"]", None, "batches are not supported"),
        (b"7", None, "is a whole number, not an object"),
        (b"null", None, "is null, not an object"),
        (b'{"id":3,"method":"m"}', 3, '"jsonrpc" is missing'),
        (b'{"jsonrpc":2.0,"id":3,"method":"m"}', 3, 'not the string "2.0"'),
        (b'{"jsonrpc":"1.0","id":"a","method":"m"}', "a", 'not the string "2.0"'),
        (line_of(id=3), 3, '"method" is missing'),
        (line_of(id=3, method=None), 3, '"method" is null'),
        (line_of(id=3, method=["m"]), 3, '"method" is an array'),
        (line_of(id=None, method="m"), None, '"id" is null'),
        (line_of(id=1.5, method="m"), None, '"id" is a number that is not whole'),
        (line_of(id=True, method="m"), None, '"id" is true or false'),
        (line_of(id={}, method="m"), None, '"id" is an object'),
        (line_of(id=3, method="m", params=[1]), 3, '"params" is an array'),
        (line_of(id=3, method="m", params="x"), 3, '"params" is a string'),
        (line_of(id=3, method="m", error={"code": 1, "message": "x"}), 3, '"error" belongs to a response'),
        (line_of(method="m", params=0), None, '"params" is a whole number'),
        (line_of(id=3, method="m", params={"a": "\ud800"}), 3, "half of a surrogate pair"),
        (line_of(id=3, method="m", params={"\udfff": 1}), 3, "half of a surrogate pair"),
        (line_of(id="\ud800", method="m"), None, "half of a surrogate pair"),
        (b'{"jsonrpc":"2.0","id":3,"method":"m","params":{"k":1,"k":1}}', 3, 'key "k" occurs more than once'),
        (b'{"jsonrpc":"2.0","id":3,"id":3,"method":"m"}', None, 'key "id" occurs more than once'),
        (b'[{"k":1,"k":2}]', None, 'key "k" occurs more than once'),
        (b'{"jsonrpc":"2.0","id":3,"result":{"\\ud800":1,"\\ud800":1}}', None, 'key "\\ud800" occurs more'),
        (nested(LINE_DEPTH_MAX + 1), 9, f"deeper than {LINE_DEPTH_MAX} levels"),
        (nested(100_000), 9, f"deeper than {LINE_DEPTH_MAX} levels"),
        (line_of(id=3, method="m", params={"n": 9})[:-2] + b"9" * 500 + b"}}", 3, "more than 500 digits"),
    ],
)
def test_json_that_is_no_message_is_an_invalid_request_under_its_id(
    line: bytes, found_id: str | int | None, words: str
) -> None:
    verdict = judge_line(line)
    assert isinstance(verdict, Reject)
    assert (verdict.code, verdict.id) == (INVALID_REQUEST, found_id)
    assert words in verdict.message


@pytest.mark.inv("SRV-12")
@pytest.mark.parametrize(
    ("params", "words"),
    [
        (None, '"params.name" is missing'),
        ({"name": 7}, '"params.name" is a whole number'),
        ({"name": "t", "arguments": "{}"}, '"params.arguments" is a string. Send an object of named values'),
        ({"name": "t", "arguments": [1]}, '"params.arguments" is an array'),
    ],
)
def test_a_tool_call_of_the_wrong_form_is_reported_which_member_is_wrong(params: object, words: str) -> None:
    verdict = judge_line(line_of(id=3, method="tools/call", params=params))
    assert isinstance(verdict, Reject)
    assert (verdict.code, verdict.id) == (INVALID_PARAMS, 3)
    assert words in verdict.message


@pytest.mark.parametrize("params", [{"name": "t"}, {"name": "t", "arguments": None}, {"name": "t", "arguments": {}}])
def test_a_tool_call_needs_no_arguments(params: object) -> None:
    assert isinstance(judge_line(line_of(id=3, method="tools/call", params=params)), Message)


MANY = b"[" + b"[]," * LINE_VALUES_MAX + b"[]]"


@pytest.mark.inv("LIM-2")
@pytest.mark.parametrize(
    ("line", "found_id", "response_to"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":%s}}', 7, None),
        (b'{"method":"m","params":{"a":%s},"jsonrpc":"2.0","id":"x\\"y"}', 'x"y', None),
        (b' { "method" : "m" , "params" : {"a":%s} , "id" : -3 } ', -3, None),
        (b'{"method":"m","id":7,"params":{"a":%s},"id":8}', None, None),
        (b'{"jsonrpc":"2.0","method":"m","params":{"id":7,"a":%s}}', None, None),
        (b'{"jsonrpc":"2.0","id":7,"result":{"a":%s}}', None, 7),
        (b'{"error":{"data":%s},"jsonrpc":"2.0","id":7}', None, 7),
        (b'{"jsonrpc":"2.0","id":7,"more":{"a":%s}}', None, None),
        (b"[%s]", None, None),
        (b'{"method":"m","id":7,"params":%s', 7, None),
    ],
)
def test_a_line_of_too_many_values_is_refused_unparsed_under_its_id(
    line: bytes, found_id: str | int | None, response_to: int | None
) -> None:
    """Clients write the id first or last. What answers a request of ours ends that request."""
    verdict = judge_line(line.replace(b"%s", MANY))
    assert isinstance(verdict, Reject)
    assert (verdict.code, verdict.id, verdict.response_to) == (INVALID_REQUEST, found_id, response_to)
    assert f"more than {LINE_VALUES_MAX} values" in verdict.message


KEYS = st.sampled_from(["id", "method", "a,", ":", '"', '\\",', "}"]) | st.text(max_size=4)
NESTED = st.lists(JSON_VALUES, max_size=3) | st.dictionaries(KEYS, JSON_VALUES, max_size=3)


@pytest.mark.inv("LIM-2")
@given(st.dictionaries(KEYS, st.integers() | KEYS | st.booleans() | NESTED, max_size=8))
def test_what_is_read_from_the_ends_of_a_message_is_what_stands_there(members: dict[str, object]) -> None:
    nested = [at for at, value in enumerate(members.values()) if isinstance(value, dict | list)]
    ends = [*range(nested[0] + 1), *range(nested[-1] + 1, len(members))] if nested else range(len(members))
    shown = [(key, None if isinstance(value, dict | list) else value) for key, value in members.items()]
    assert edge_members(json.dumps(members).encode()) == dict(shown[at] for at in ends)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"id": 1, "result": {}, "error": {}}, "both"),
        ({"id": 1, "result": []}, '"result" is an array'),
        ({"result": {}}, 'no usable "id"'),
        ({"id": None, "result": {}}, 'no usable "id"'),
        ({"error": {"code": 1, "message": ""}}, 'no usable "id"'),
        ({"id": 1, "error": "no"}, '"error" is malformed'),
        ({"id": 1, "error": {"code": True, "message": ""}}, '"error" is malformed'),
        ({"id": 1, "error": {"code": 1}}, '"error" is malformed'),
    ],
)
def test_a_malformed_response_is_not_refused_under_its_id(members: dict[str, object], words: str) -> None:
    """The id counts our requests: an error under it would strike the client's request of that number."""
    verdict = judge_line(line_of(**members))
    assert isinstance(verdict, Reject)
    assert (verdict.code, verdict.id) == (INVALID_REQUEST, None)
    assert words in verdict.message


def test_nesting_up_to_the_limit_and_brackets_inside_text_are_no_fault() -> None:
    assert isinstance(judge_line(nested(LINE_DEPTH_MAX)), Message)
    assert isinstance(judge_line(line_of(method="m", params={"a": "[" * 10 * LINE_DEPTH_MAX})), Message)
    assert isinstance(judge_line(line_of(method="m", params={"a": [{"b": 1}] * 10 * LINE_DEPTH_MAX})), Message)


def test_the_longest_permitted_line_is_a_message() -> None:
    around = len(line_of(method="m", params={"a": ""}))
    longest = line_of(method="m", params={"a": "x" * (LINE_BYTES_MAX - around)})
    assert len(longest) == LINE_BYTES_MAX
    assert isinstance(judge_line(longest), Message)
    assert isinstance(judge_line(longest + b" "), Reject)


def test_an_answer_is_one_line_of_ascii_that_carries_code_words_and_id() -> None:
    line = Reject(code=INVALID_REQUEST, message="two\nlines, \N{GRINNING FACE}", id="ä").answer_line()
    assert line.isascii()
    assert line.endswith(b"}\n")
    assert line.count(b"\n") == 1
    error = {"code": INVALID_REQUEST, "message": "two\nlines, \N{GRINNING FACE}"}
    assert json.loads(line) == {"jsonrpc": "2.0", "id": "ä", "error": error}


def test_what_a_client_wrote_is_quoted_in_short() -> None:
    key = "k" * 10_000
    verdict = judge_line(f'{{"{key}":1,"{key}":2}}'.encode())
    assert isinstance(verdict, Reject)
    assert len(verdict.message) < 200


@given(
    params=st.none() | st.dictionaries(st.text(), JSON_VALUES),
    identity=st.integers() | st.text(),
    escapes=st.sampled_from([json.JSONEncoder(), json.JSONEncoder(ensure_ascii=False)]),
)
def test_a_request_is_read_as_the_sdk_reads_it(
    params: dict[str, Any] | None, identity: str | int, escapes: json.JSONEncoder
) -> None:
    members = {"jsonrpc": "2.0", "id": identity, "method": "tools/list", "params": params}
    line = escapes.encode(members).encode()
    assert judge_line(line) == Message(jsonrpc_message_adapter.validate_json(line, by_name=False))


@given(
    st.binary(max_size=64)
    | st.text(st.characters(codec="utf-8")).map(str.encode)
    | JSON_VALUES.map(lambda value: json.dumps(value).encode())
    | st.dictionaries(
        st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error"]),
        JSON_VALUES | st.just("2.0"),
    ).map(lambda members: json.dumps({"jsonrpc": "2.0"} | members).encode())
)
def test_every_line_gets_a_verdict_and_every_refusal_is_one_line(line: bytes) -> None:
    verdict = judge_line(line)
    if isinstance(verdict, Reject):
        answer = verdict.answer_line()
        assert answer.index(b"\n") == len(answer) - 1
        sent = jsonrpc_message_adapter.validate_json(answer, by_name=False)
        assert isinstance(sent, JSONRPCError)
        assert (sent.id, sent.error.code) == (verdict.id, verdict.code)


@given(st.lists(st.binary(max_size=8)))
def test_a_stream_falls_into_the_same_lines_however_it_is_cut(chunks: list[bytes]) -> None:
    chunks = [chunk.replace(b"\x00", b"\n") for chunk in chunks]
    splitter = LineSplitter()
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    assert [*lines, splitter.rest()] == b"".join(chunks).split(b"\n")
    assert splitter.rest() == b""


def test_an_endless_line_is_kept_only_as_far_as_its_refusal_needs() -> None:
    splitter = LineSplitter()
    for _ in range(3):
        assert splitter.feed(b"x" * LINE_BYTES_MAX) == []
    over_long, next_line = splitter.feed(b'x\n{"a":1}\n')
    assert len(over_long) == LINE_BYTES_MAX + 1
    assert next_line == b'{"a":1}'
