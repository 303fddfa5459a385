"""The two readers of a stored value give the same verdict for any bytes, and its two writers the same bytes."""

import json
import math
import random
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.support.bundles import a_bundle
from tests.support.flow import compiled, declared, loop, step
from tests.support.record import KINDS, WORKFLOW_HASH, complete, running, sample
from tests.support.shares import examples

import interlock
from interlock.define.diagnostics import Diagnostic
from interlock.define.native.forms import WorkflowForm
from interlock.define.source.text_form import parse_text
from interlock.kernel.canonical import Json, NotCanonicalError, canonical_bytes
from interlock.kernel.shape import Reader, RefusedError, ShapeError, mirror
from interlock.kernel.shape.mirror import adapter_of
from interlock.plan.compiled import CompiledWorkflow
from interlock.record.base import Record
from interlock.record.bundle import Bundle
from interlock.record.events import EVENT
from interlock.record.keep import KeepMarks, build_keep_marks
from interlock.record.manifest import ManifestRecord
from interlock.record.snapshot import ExecutionSnapshot, build_snapshot
from interlock.views.lifecycle.events import LifecycleEvent

pytestmark = pytest.mark.exhaustive
WORKFLOWS = Path(interlock.__file__).parent / "workflows"

DEEP = {f"deep {depth}": "[" * depth + "]" * depth for depth in (150, 190, 250, 1500, 200_000)}
ODD: dict[str, str] = {
    "null": "null",
    "true": "true",
    "zero": "0",
    "one": "1",
    "minus one": "-1",
    "minus zero": "-0",
    "whole float": "1.0",
    "float": "1.5",
    "exponent": "1e2",
    "minus zero float": "-0.0",
    "large": str(2**53),
    "64 bits": str(2**64),
    "more than 64 bits": str(2**80),
    "5000 digits": "9" * 5000,
    "infinite": "1e400",
    "NaN": "NaN",
    "Infinity": "-Infinity",
    "empty": '""',
    "newline": '"\\n"',
    "one character": '"a"',
    "bytes": '"\\u0000"',
    "long": json.dumps("x" * 5000),
    "emoji": '"😀"',
    "half a pair": '"\\ud800"',
    "both halves": '"\\ud83d\\ude00"',
    "wrong escape": '"\\x"',
    "list": "[]",
    "list of null": "[null]",
    "object": "{}",
    "object of null": '{"a":null}',
    "nothing": "",
    "word": "nil",
    "comment": "/**/1",
    "leading zero": "01",
    **DEEP,
}
"""Texts in place of a value."""


def a_plan() -> Json:
    when = {"or": [{"var": "mode", "equals": "x"}, {"not": {"var": "n", "gt": 1.5}}]}
    criteria = {"and": [{"type": "contains", "value": "x"}, {"type": "length", "min": 1}]}
    body = step("b", when=when, set=[{"key": "n", "compute": {"add": [{"var": "n"}, 1]}}])
    sent = {"kind": "x.y", "fields": {"a": {"value": 1}}, "mirror": {"sent": "a"}}
    return compiled(
        step("a", emit=[sent], validationCriteria=criteria),
        loop("l", body, maxIterations=4, **{"while": {"var": "n", "lt": 3}}),
        inputs=[declared("n", "number"), declared("sent", "number"), declared("mode", choices=["x", "y"])],
    ).to_json()


@cache
def samples() -> list[tuple[Reader[Any], Json]]:
    found: list[tuple[Reader[Any], Json]] = [(EVENT, sample(kind)) for kind in KINDS]
    states = (running("b", "a", skipped=("c",)), complete("a"))
    found += [(Reader(ExecutionSnapshot), build_snapshot(WORKFLOW_HASH, state).to_json()) for state in states]
    bundle = json.loads(a_bundle())
    found.append((Reader(Bundle), bundle))
    found += [(Reader(ManifestRecord), line) for line in bundle["session"]["manifest"]]
    found.append((Reader(KeepMarks), build_keep_marks(frozenset([bundle["session"]["sessionId"]])).to_json()))
    found.append((Reader(CompiledWorkflow), a_plan()))
    event: dict[str, Json] = {
        "v": 1,
        "seq": 0,
        "kind": "workflow.run.created",
        "session": bundle["session"]["sessionId"],
    }
    run = sample("run_started")["scope"]
    assert isinstance(run, dict)
    found.append((Reader(LifecycleEvent), {**event, "run": run["runId"], "refs": [{"kind": "event", "ref": "0"}]}))
    return found


def places(value: Json) -> Iterator[tuple[Any, Any]]:
    """Yield every container of a value with each key or index in it."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield value, key
        yield from places(member)


MARK = json.dumps("<mark>")


def mutated(value: Json, chance: random.Random) -> bytes:
    """Return the bytes of a value with a change at one place, and maybe another one in the bytes."""
    copy = json.loads(json.dumps(value))
    container, key = chance.choice([*places(copy)])
    written = chance.choice(_CHANGES)(container, key, chance)
    if written is not None:
        container[key] = json.loads(MARK)
    text = json.dumps(copy, ensure_ascii=chance.random() < 0.2)
    data = text.replace(MARK, written or "").encode("utf-8", "surrogatepass")
    return data if chance.randrange(10) else chance.choice(_DAMAGES)(data, chance)


def _odd(_container: Any, _key: Any, chance: random.Random) -> str:
    return ODD[chance.choice([*ODD])]


def _other_text(container: Any, key: Any, chance: random.Random) -> str:
    text = str(container[key])
    return json.dumps(chance.choice([f"{text}\n", f"{text}a", text[:-1], text.upper()]))


def _twice(container: Any, key: Any, chance: random.Random) -> str:
    old = json.dumps(container[key])
    first, second = (chance.choice([old, ODD[chance.choice([*ODD])]]) for _ in range(2))
    return f"{first},{json.dumps(key)}:{second}" if isinstance(key, str) else f"{first},{second}"


def _dropped(container: Any, key: Any, _chance: random.Random) -> None:
    container.pop(key)


def _renamed(container: Any, key: Any, chance: random.Random) -> None:
    value, snake = container.pop(key), "".join(f"_{one.lower()}" if one.isupper() else one for one in str(key))
    if isinstance(container, dict):
        container[chance.choice([snake, str(key).upper(), "", "kind", "op", "payloadKind", "more"])] = value


def _many(container: Any, key: Any, chance: random.Random) -> str:
    old = json.dumps(container[key])
    return ",".join([old] * chance.choice([2, 12, 30])) if isinstance(container, list) else f"[{old}]"


def _cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data))]


def _damaged(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]


def _preceded(data: bytes, chance: random.Random) -> bytes:
    return chance.choice([b"\xef\xbb\xbf", b" ", b"\n", b"\x00"]) + data


def _followed(data: bytes, chance: random.Random) -> bytes:
    return data + chance.choice([b"\n", b" ", b"\x00", b"x", b"{}", data])


_Change: TypeAlias = Callable[[Any, Any, random.Random], str | None]
_CHANGES: tuple[_Change, ...] = (_odd, _odd, _other_text, _twice, _dropped, _renamed, _many)
_DAMAGES = (_cut, _damaged, _preceded, _followed)


def verdict(reader: Reader[Any], data: bytes) -> object:
    try:
        return reader.read(data)
    except RefusedError:
        return None


def explained(reader: Reader[Any], data: bytes) -> object:
    try:
        return adapter_of(reader.kind).validate_json(data)
    except ValidationError:
        return None


@settings(deadline=None, max_examples=examples(3000))
@given(st.randoms(use_true_random=False))
@pytest.mark.inv("EVT-2")
def test_both_readers_give_the_same_verdict_and_the_same_value(chance: random.Random) -> None:
    reader, value = chance.choice(samples())
    data = mutated(value, chance)
    found, other = verdict(reader, data), explained(reader, data)
    if found is None and other is not None:
        # The fast reader alone refuses what Interlock never writes. That counts as malformed.
        assert reader.faults(data) == ()
        assert is_never_written(data)
    else:
        assert found == other, data[:3000]
    if isinstance(found, Record):
        assert written(found.to_bytes) == written(lambda: canonical_bytes(found.to_json()))


@cache
def documents() -> list[Json]:
    """Return the workflow files of the package, and one that has every kind of step."""
    files = [json.loads(one.read_text("utf-8")) for one in WORKFLOWS.glob("*.json")]
    when = {"or": [{"var": "mode", "in": ["x", 1, None, True]}, {"not": {"var": "n", "gt": 1.5}}]}
    compute = {"if": [when, {"add": [{"var": "n"}, 1]}, {"append": [{"var": "l"}, [1, {"a": 2}]]}]}
    sets = [
        {"key": "n", "compute": compute, "when": when},
        {"key": "m", "from": "a.b"},
        {"key": "o", "value": {"a": 1}},
    ]
    emit = [{"kind": "x.y", "fields": {"a": {"value": 1}, "b": {"compute": compute}}, "mirror": {"sent": "a"}}]
    prose = ["one", [{"kind": "text", "text": "two"}, {"kind": "ref", "refId": "wr.refs.a"}]]
    blocks = {"goal": "x", "procedure": prose, "outputRequired": {"a": prose[1], "b": "c"}}
    criteria = {"and": [{"type": "contains", "value": "x"}, {"not": {"type": "length", "min": 1}}], "when": when}
    fragment = {"id": "f", "text": "t", "when": when}
    call = {"templateId": "wr.t", "args": {"a": 1, "b": 1.5, "c": True}}
    agent = step("a", set=sets, emit=emit, when=when, validationCriteria=[criteria], produces=["n", declared("m")])
    files.append(
        {
            "id": "test.every", "name": "Every kind", "conditions": {"c": when}, "features": ["wr.features.a"],
            "inputs": [declared("n", "number")], "capabilities": {"delegation": "preferred"},
            "steps": [
                agent,
                {"id": "p", "title": "P", "promptBlocks": blocks, "promptFragments": [fragment]},
                loop("l", step("b", outputContract={"contractRef": "wr.x"}), **{"for": {"count": 3}}, maxIterations=4),
                {"id": "q", "title": "Q", "branches": [{"steps": [step("c")]}, {"steps": [step("d")]}]},
                {"id": "r", "title": "R", "choose": [{"when": when, "steps": [step("e")]}], "otherwise": []},
                {"id": "s", "title": "S", "templateCall": call},
                {"id": "t", "type": "await", "title": "T", "event": "x.y", "fields": {"a": "string"}, "timeout": "3m"},
                {"id": "u", "type": "check", "title": "U", "run": "tests", "set": sets, "emit": emit},
                {"id": "v", "type": "approve", "title": "V", "question": "Well?", "choices": ["yes", "no", "later"]},
            ],
        }
    )  # fmt: skip
    return files


def form_verdict(value: object) -> object:
    try:
        return Reader[WorkflowForm](WorkflowForm).of_json(value)
    except ShapeError as error:
        return [(one["type"], one["loc"]) for one in error.faults]


def explained_form(value: object) -> object:
    try:
        return adapter_of(WorkflowForm).validate_python(value)
    except ValidationError as error:
        return [(one["type"], one["loc"]) for one in error.errors()]


@pytest.mark.inv("EVT-2")
def test_both_readers_take_every_workflow_file(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [explained_form(value) for value in documents()]
    monkeypatch.delattr(mirror, "validated")
    found = [form_verdict(value) for value in documents()]
    assert all(isinstance(one, WorkflowForm) for one in found)
    assert found == expected


@settings(deadline=None, max_examples=examples(3000))
@given(st.randoms(use_true_random=False))
@pytest.mark.inv("EVT-2")
def test_both_readers_give_the_same_verdict_of_a_workflow_file(chance: random.Random) -> None:
    data = mutated(chance.choice(documents()), chance)
    value = parse_text(data, "json")
    if not isinstance(value, Diagnostic):
        assert form_verdict(value) == explained_form(value), data[:3000]


def written(write: Callable[[], bytes]) -> bytes | None:
    try:
        return write()
    except NotCanonicalError:
        return None


LITERALS: dict[str, type] = {"v": int, "schemaVersion": int, "bundleSchemaVersion": int, "notifies": bool}
"""The members with one literal value. pydantic also takes a value of another type that is equal to it."""


def is_never_written(data: bytes) -> bool:
    """Say whether a member is there twice, a number is not finite, or a literal is of another type."""
    found: list[object] = []

    def members(pairs: list[tuple[str, object]]) -> dict[str, object]:
        read = dict(pairs)
        found.extend([pairs] if len(read) < len(pairs) else [])
        found.extend(name for name, kind in LITERALS.items() if name in read and type(read[name]) is not kind)
        return read

    def number(text: str) -> float:
        found.extend([] if math.isfinite(float(text)) else [text])
        return float(text)

    json.loads(data, object_pairs_hook=members, parse_constant=found.append, parse_float=number)
    return bool(found)


@pytest.mark.inv("EVT-2")
def test_both_readers_take_every_sample() -> None:
    for reader, value in samples():
        data = canonical_bytes(value)
        found = verdict(reader, data)
        assert found is not None, reader.faults(data)
        assert found == explained(reader, data)
        assert cast("Any", found).to_json() == value
