"""What real clients take: argument schemas that are flat and say what they hold (SRV-2), texts that are short (SRV-2).

The walk knows schemas from members that are merely called like a keyword, and is itself tried on planted faults.
"""

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any, cast

import pytest

from interlock.kernel.errors import ENVELOPE_SCHEMA
from interlock.server.prompts import PROMPTS
from interlock.server.tools import INSTRUCTIONS, TOOLS, Tool

TEXT_CHARS_MAX = 2_000
NAME_CHARS_MAX = 64
FORBIDDEN = {
    *("anyOf", "oneOf", "allOf", "not", "if", "then", "else", "$ref", "$defs", "definitions", "$dynamicRef"),
    *("const", "patternProperties", "propertyNames", "dependentSchemas", "unevaluatedProperties", "prefixItems"),
}
TYPES = {"object", "array", "string", "integer", "number", "boolean"}
Json = Any


def faults(schema: Json, at: str = "") -> Iterator[str]:
    """Yield what some client would reject or misread of an argument schema, with its place."""
    if not isinstance(schema, dict):
        yield f"{at}: {schema!r} is no object"
        return
    known = cast("dict[str, Json]", schema)
    if not known:
        yield f"{at}: is empty"
        return
    yield from (f"{at}: {word}" for word in sorted(FORBIDDEN & known.keys()))
    if known.get("type") not in list(TYPES):
        yield f"{at}: type {known.get('type')!r}"
    if "default" in known and known["default"] is None:
        yield f"{at}: default null"
    if not all(isinstance(value, str) for value in known.get("enum", ())):
        yield f"{at}: an enum of something else than texts"
    if known.get("type") == "object":
        yield from _faults_of_object(known, at)
    if known.get("type") == "array":
        yield from faults(known.get("items", {}), f"{at}[]")


def _faults_of_object(known: dict[str, Json], at: str) -> Iterator[str]:
    if not isinstance(known.get("properties"), dict):
        yield f"{at}: properties {known.get('properties')!r}"
    members = cast("dict[str, Json]", known.get("properties") or {})
    required = cast("list[str] | None", known.get("required"))
    if required is None or not set(required) <= members.keys():
        yield f"{at}: required {required!r}"
    if known.get("additionalProperties") not in (True, False):
        yield f"{at}: additionalProperties {known.get('additionalProperties')!r}"
    for name, member in members.items():
        yield from faults(member, f"{at}.{name}")


@pytest.mark.inv("SRV-2")
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_client_takes_the_arguments_of_every_tool(tool: Tool) -> None:
    schema = tool.to_json()["inputSchema"]
    assert list(faults(schema)) == []
    assert isinstance(schema, dict)
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False


def text(**more: Json) -> dict[str, Json]:
    return {"type": "object", "properties": {"a": {"type": "string"} | more}, "required": [], **_CLOSED}


_CLOSED = {"additionalProperties": False}
PLANTED: dict[str, Json] = {
    **{f"{word} at the root": text() | {word: [{"type": "string"}]} for word in sorted(FORBIDDEN)},
    **{f"{word} in a member": text(**{word: {"type": "string"}}) for word in sorted(FORBIDDEN)},
    "several types": text(type=["string", "null"]),
    "the type null": text(type="null"),
    "no type": text() | {"properties": {"a": {"description": "Anything."}}},
    "a member that is true": text() | {"properties": {"a": True}},
    "an empty member": text() | {"properties": {"a": {}}},
    "an empty schema of other members": text() | {"additionalProperties": {}},
    "silence on other members": {key: value for key, value in text().items() if key not in _CLOSED},
    "default null": text(default=None),
    "an enum with null": text(enum=["a", None]),
    "no list of what is required": {key: value for key, value in text().items() if key != "required"},
    "required null": text() | {"required": None},
    "required that is no member": text() | {"required": ["b"]},
    "no members": {key: value for key, value in text().items() if key != "properties"},
    "items that say nothing": text(type="array"),
    "a union in items": text(type="array", items={"type": "string", "anyOf": []}),
    "a union two objects down": text() | {"properties": {"a": text(oneOf=[])}},
}


@pytest.mark.parametrize("schema", PLANTED.values(), ids=PLANTED)
def test_the_walk_finds_each_planted_fault(schema: Json) -> None:
    assert list(faults(text())) == []
    assert list(faults(schema)) != []


def test_a_member_that_is_called_like_a_keyword_is_no_fault() -> None:
    members = {name: {"type": "string"} for name in ("not", "if", "const", "properties", "required", "default")}
    assert list(faults(text() | {"properties": members})) == []


@pytest.mark.inv("SRV-2")
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_answer_schema_is_an_object_for_clients_that_know_no_other(tool: Tool) -> None:
    schema = tool.to_json()["outputSchema"]
    assert isinstance(schema, dict)
    assert schema["type"] == "object"
    assert schema["anyOf"] == [tool.answer_schema(), dict(ENVELOPE_SCHEMA)]
    for one in cast("list[dict[str, Json]]", schema["anyOf"]):
        assert (one["type"], one["additionalProperties"]) == ("object", False)
        assert not {"anyOf", "oneOf", "allOf"} & one.keys()
    assert "$ref" not in json.dumps(schema)


def descriptions(schema: Json) -> Iterator[str]:
    """Yield every description within a schema."""
    if isinstance(schema, dict):
        for name, value in cast("dict[str, Json]", schema).items():
            if name == "description" and isinstance(value, str):
                yield value
            else:
                yield from descriptions(value)


@pytest.mark.inv("SRV-2")
def test_every_text_that_clients_cut_is_short() -> None:
    for tool in TOOLS:
        assert len(tool.name) <= NAME_CHARS_MAX
        result = tool.to_json()
        assert all(0 < len(one) < TEXT_CHARS_MAX for one in (tool.description, *descriptions(result["inputSchema"])))
    assert len(INSTRUCTIONS.encode()) < TEXT_CHARS_MAX
    for prompt in PROMPTS:
        assert prompt.description is not None
        assert len(prompt.description) < TEXT_CHARS_MAX


@pytest.mark.inv("SRV-14")
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_tool_says_first_when_to_call_it_and_then_when_not(tool: Tool) -> None:
    first, second, *_ = re.split(r"(?<=[.])[ ]", tool.description)
    assert re.match(r"(When|If|Only if|Once, to|To) ", first)
    assert re.match(r"(Never|Not) ", second)


@pytest.mark.inv("SRV-14")
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_no_text_of_a_tool_holds_a_value_that_could_be_sent(tool: Tool) -> None:
    """Small models send back what a description shows: a token, a query, a workflow id."""
    for one in (tool.description, *descriptions(tool.to_json()["inputSchema"])):
        assert re.search(r"\b(st|ack|chk)_\w|[{}…]|[Ee]xample|e\.g\.", one) is None
        assert [entry for entry in bundled_ids() if entry in one] == []


def bundled_ids() -> list[str]:
    """Return the ids of the bundled workflows."""
    root = files("interlock") / "workflows"
    return [f"wr.{entry.name.partition('.')[0]}" for entry in root.iterdir() if entry.name.endswith(".json")]


@pytest.mark.inv("SRV-2")
@pytest.mark.parametrize("name", ["continue_workflow", "checkpoint_workflow"])
def test_notes_are_described_as_the_notes_of_this_step_only(name: str) -> None:
    (tool,) = (tool for tool in TOOLS if tool.name == name)
    schema = cast("Any", tool.to_json()["inputSchema"])
    described = schema["properties"]["output"]["properties"]["notesMarkdown"]["description"]
    assert "this step only" in described
    assert "Never repeat earlier steps" in described


@pytest.mark.inv("SRV-1")
def test_every_tool_has_a_title_and_says_whether_it_reads_destroys_repeats_or_reaches_out() -> None:
    """Directories reject a tool without a title or without hints."""
    hints: dict[str, tuple[bool, bool]] = {}
    for tool in TOOLS:
        result = tool.to_json()
        annotations = result["annotations"]
        assert isinstance(annotations, dict)
        assert result["title"] == annotations["title"] != ""
        assert (annotations["destructiveHint"], annotations["openWorldHint"]) == (False, False)
        hints[tool.name] = (annotations["readOnlyHint"] is True, annotations["idempotentHint"] is True)
    assert hints == {
        "list_workflows": (True, True),
        "inspect_workflow": (True, True),
        "start_workflow": (False, False),
        "continue_workflow": (False, True),
        "checkpoint_workflow": (False, True),
        "resume_session": (True, True),
    }


def test_only_the_two_tools_that_work_begins_with_are_always_loaded() -> None:
    loaded = [(tool.name, result["_meta"]) for tool in TOOLS if "_meta" in (result := tool.to_json())]
    assert loaded == [(name, {"anthropic/alwaysLoad": True}) for name in ("list_workflows", "resume_session")]
