"""However a file is damaged, parsing it gives a document, or faults with a place that exists."""

import copy
import re
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.define import document as doc
from interlock.define.diagnostics import Diagnostics
from interlock.define.front import parse_workflow
from interlock.kernel.budgets import PATH_BYTES_MAX
from interlock.kernel.canonical import Json

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A loaded machine is no fault of ours."""

CONDITION = {"or": [{"var": "x", "equals": 1}, {"not": {"and": [{"var": "y", "in": [1, "a"]}, {"var": "z"}]}}]}
RULE = {"type": "regex", "pattern": "a|b", "flags": "gi", "message": "M", "condition": CONDITION}
WHOLE: dict[str, Any] = {
    "id": "team.whole",
    "name": "Whole",
    "description": "Everything once.",
    "version": "3.0.0",
    "modelTier": "mid",
    "metaGuidance": ["Be kind."],
    "preconditions": ["P"],
    "clarificationPrompts": ["C?"],
    "functionDefinitions": [
        {"name": "f", "definition": "How.", "parameters": [{"name": "p", "type": "string", "enum": ["a"]}]}
    ],
    "recommendedPreferences": {"recommendedAutonomy": "guided"},
    "features": ["wr.features.capabilities"],
    "assessments": [{"id": "r", "purpose": "P", "dimensions": [{"id": "d", "purpose": "P", "levels": ["a", "b"]}]}],
    "extensionPoints": [{"slotId": "slot", "purpose": "P", "default": "d"}],
    "references": [{"id": "s", "title": "S", "source": "s.md", "purpose": "P", "authoritative": True}],
    "examples": ["One."],
    "steps": [
        {
            "id": "a",
            "title": "A",
            "prompt": "Use {{wr.bindings.slot}}.",
            "agentRole": "You.",
            "guidance": ["Slowly."],
            "runCondition": CONDITION,
            "requireConfirmation": {"kind": "human_approval", "condition": CONDITION},
            "promptFragments": [{"id": "p", "text": "T", "when": CONDITION}],
            "validationCriteria": [RULE, {"or": [RULE, {"not": RULE}]}],
            "functionReferences": ["f()"],
            "functionCalls": [{"name": "f", "args": {"p": "a"}}],
            "verification": {"command": "c", "prompt": "p"},
            "audit": {"prompt": "p", "rubric": ["r"]},
        },
        {
            "id": "b",
            "title": "B",
            "promptBlocks": {
                "goal": [{"kind": "text", "text": "G"}, {"kind": "ref", "refId": "wr.refs.x"}],
                "constraints": ["C"],
                "outputRequired": {"k": "v"},
            },
            "assessmentRefs": ["r"],
            "assessmentConsequences": [
                {"when": {"anyEqualsLevel": "a"}, "effect": {"kind": "require_followup", "guidance": "G"}}
            ],
        },
        {"id": "t", "title": "T", "templateCall": {"templateId": "wr.templates.routine.x", "args": {"a": 1}}},
        {
            "id": "l",
            "type": "loop",
            "title": "L",
            "loop": {
                "type": "while",
                "maxIterations": 3,
                "conditionSource": {"kind": "context_variable", "condition": CONDITION},
            },
            "body": [
                {
                    "id": "c",
                    "title": "C",
                    "prompt": "C",
                    "outputContract": {"contractRef": "wr.contracts.loop_control"},
                },
                {
                    "id": "p",
                    "type": "parallel",
                    "title": "P",
                    "parallelDelegations": [
                        {"workflowId": "w", "contextMapping": {"a": "b"}, "args": {"c": "d"}, "allowedTools": ["t"]}
                    ],
                    "synthesis": {
                        "prompt": "S",
                        "outputContract": {"contractRef": "wr.contracts.x", "required": False},
                    },
                },
            ],
        },
        {
            "id": "n",
            "type": "loop",
            "title": "N",
            "loop": {"type": "forEach", "maxIterations": 3, "items": "i"},
            "body": "m",
        },
        {"id": "m", "title": "M", "prompt": "M"},
    ],
}


def members(value: Json) -> list[Json]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def keys_of(value: Json) -> set[str]:
    own = set(value) if isinstance(value, dict) else set[str]()
    return own.union(*(keys_of(member) for member in members(value)))


KEYS = st.sampled_from(sorted(keys_of(WHOLE))) | st.sampled_from(["titel", "", "<one>", "[key]", "a.b", "steps[0]"])
VALUES = (
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4) | KEYS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
        max_leaves=6,
    )
    | st.sampled_from(["m", "l", "a", "while", "for", "contains", "schema", "{{wr.x}}", "(", CONDITION, RULE])
    | st.sampled_from(WHOLE["steps"])
)


def holders(value: Json) -> list[Any]:
    own: list[Any] = [value] if isinstance(value, dict | list) else []
    return own + [one for member in members(value) for one in holders(member)]


@st.composite
def damaged(draw: st.DrawFn) -> dict[str, Any]:
    document: dict[str, Any] = copy.deepcopy(WHOLE)
    for _ in range(draw(st.integers(1, 4))):
        holder: dict[str, Any] | list[Any] = draw(st.sampled_from(holders(document)))
        value = copy.deepcopy(draw(VALUES))
        if isinstance(holder, list):
            at = draw(st.integers(0, len(holder)))
            holder[at : at + draw(st.integers(0, 1))] = draw(st.sampled_from([[], [value]]))
        elif holder and draw(st.booleans()):
            del holder[draw(st.sampled_from(sorted(holder)))]
        else:
            holder[draw(KEYS if not holder else KEYS | st.sampled_from(sorted(holder)))] = value
    return document


def leads_somewhere(document: Json, path: str) -> bool:
    """Return whether a path, or a container of it, is in a document. Keys may contain dots and brackets."""
    if isinstance(document, list):
        found = re.match(r"\[(\d+)\](?:\.|(?=\[)|$)", path)
        return not path or (
            found is not None
            and int(found[1]) < len(document)
            and leads_somewhere(document[int(found[1])], path[found.end() :])
        )
    if not isinstance(document, dict):
        return not path
    if "." not in path and "[" not in path:
        return True
    for key, member in document.items():
        if path.startswith(key) and leads_somewhere(member, path[len(key) :].removeprefix(".")):
            return True
    return any(path == key for key in document)


def check(found: doc.WorkflowDocument | Diagnostics, document: dict[str, Any]) -> None:
    if isinstance(found, doc.WorkflowDocument):
        return
    assert found
    for one in found:
        assert one.message
        assert one.fix
        assert leads_somewhere(document, one.path) or len(one.path.encode()) >= PATH_BYTES_MAX - 3, one


def test_the_whole_file_is_read() -> None:
    found = parse_workflow(WHOLE)
    assert isinstance(found, doc.WorkflowDocument), [one.render_line() for one in found]


@unhurried
@given(damaged())
def test_a_damaged_file_is_read_or_its_faults_are_reported(document: dict[str, Any]) -> None:
    check(parse_workflow(document), document)


@unhurried
@given(st.dictionaries(KEYS, VALUES, max_size=8))
def test_any_object_is_read_or_its_faults_are_reported(document: dict[str, Any]) -> None:
    check(parse_workflow(document), document)


def test_the_deepest_document_is_read_or_its_faults_are_reported() -> None:
    condition: dict[str, Any] = {"var": "x"}
    body: dict[str, Any] = {"id": "a", "title": "A", "prompt": "P"}
    rule: dict[str, Any] = {"type": "length", "message": "M"}
    for _ in range(30):
        condition, rule = {"and": [condition]}, {"or": [rule]}
        body = {"id": "l", "type": "loop", "title": "L", "loop": {"type": "for", "maxIterations": 1}, "body": [body]}
    for step in ({**WHOLE["steps"][0], "runCondition": condition, "validationCriteria": rule}, body):
        document: dict[str, Any] = {**WHOLE, "steps": [step]}
        check(parse_workflow(document), document)
