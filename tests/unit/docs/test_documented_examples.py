"""Every example of the language reference does what the page says of it.

A fenced block says by its info string what it is. `yaml workflow` is a whole file, `yaml part` one without its id and
name, `yaml step` one step; each compiles without a word and is played to its end by an agent.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter
from tests.agents.agent import Agent, Task

from interlock.decide.criteria import find_unmet
from interlock.decide.evaluate import ConditionInputs, Undecided, evaluate
from interlock.decide.value import CalculationError, calculate
from interlock.define.diagnostics import Diagnostic
from interlock.define.native.condition_forms import ComputeForm, ConditionForm, CriteriaForm
from interlock.define.native.conditions import ConditionLowering
from interlock.define.source.text_form import TextFormat, parse_text
from interlock.engine.judge.evidence import schema_fault
from interlock.kernel.canonical import Json
from interlock.plan.builtins.packs import PACKS
from interlock.service.workflows.catalog import Catalog, Pinnable, RefusedFile
from interlock.testing.harness import Arguments, Harness, InlineWorkflows, ToolResult

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "language.md"
PLAYED = {"workflow", "part", "step", "workrail"}
SEEN_BY_A_RUNNER = "Ran make test: 214 passed, 0 failed."
KNOWN: dict[str, tuple[object, ...]] = {
    "breaks": (True, False),
    "kind": ("bug", "feature", "question"),
    "size": ("small", "large"),
    "package": ("attrs",),
    "modules": ([{"name": "store"}, {"name": "engine"}],),
}
"""What the agent may say for the keys of the examples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A fenced block: its place, its info string and its text."""

    place: str
    info: str
    text: str

    @property
    def kind(self) -> str:
        return self.info.split()[1] if " " in self.info else ""

    @property
    def form(self) -> TextFormat:
        return "yaml" if self.info.startswith("yaml") else "json"

    @property
    def rest(self) -> str:
        return self.info.split()[2]

    def value(self, under: str | None = None) -> dict[str, Json]:
        """Return what the block holds, read as Interlock reads files; a list needs the key `under`."""
        text = self.text if under is None else f"{under}:\n{self.text}"
        found = parse_text(text.encode(), self.form)
        assert not isinstance(found, Diagnostic), found
        return found


def examples() -> list[Example]:
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.finditer(r"^```([^\n]+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [
        Example(place=f"{PAGE.name}:{text.count(chr(10), 0, block.start()) + 1}", info=block[1], text=block[2])
        for block in blocks
    ]


def in_the_readme() -> Example:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert len(shown) == 1
    return Example(place="README.md", info="yaml workflow", text=shown[0])


ALL = [*examples(), in_the_readme()]


def of_kind(*kinds: str) -> pytest.MarkDecorator:
    chosen = [example for example in ALL if example.kind in kinds]
    assert chosen, kinds
    return pytest.mark.parametrize("example", chosen, ids=[example.place for example in chosen])


def document(example: Example) -> dict[str, Json]:
    match example.kind:
        case "workflow" | "workrail":
            return example.value()
        case "step":
            return {"id": "docs.example", "name": "Example", "steps": [example.value()]}
        case _:
            return {"id": "docs.example", "name": "Example", **example.value()}


def compiled(value: Mapping[str, Json]) -> Pinnable | RefusedFile:
    view = Catalog(InlineWorkflows(value)).view(None)
    return next(iter(view.entries.values())).compiled if view.entries else view.refused[0]


def test_every_block_says_what_it_is() -> None:
    known = PLAYED | {"conditions", "values", "pattern", "criteria", "refused", "artifact", "bindings"}
    assert [one.place for one in ALL if one.kind not in known] == []


@of_kind(*PLAYED)
def test_an_example_compiles_without_a_word(example: Example) -> None:
    found = compiled(document(example))
    assert isinstance(found, Pinnable), found
    expected = ["legacy_id"] if example.kind == "workrail" else []
    assert [one.code for one in found.warnings] == expected


@of_kind("workflow", "part", "step", "values", "pattern")
def test_the_published_schema_accepts_each_example(example: Example) -> None:
    published = json.loads((ROOT / "tool-schemas" / "workflow-document.json").read_text(encoding="utf-8"))
    schema = Draft202012Validator(published)
    assert [one.message for one in schema.iter_errors(native_document(example))] == []


def native_document(example: Example) -> dict[str, Json]:
    """Return the file of an example; of computed values and patterns, one whose step sets them."""
    if example.kind in PLAYED:
        return document(example)
    if example.kind == "pattern":
        sets = example.value()["set"]
    else:
        cases = cast("list[dict[str, Json]]", example.value(under="cases")["cases"])
        sets = cast("Json", [{"key": "k", "compute": case["compute"]} for case in cases])
    step: dict[str, Json] = {"id": "a", "title": "A", "prompt": "Look.", "set": sets}
    return {"id": "docs.example", "name": "Example", "steps": [step]}


@pytest.mark.parametrize("seed", range(8))
@of_kind(*PLAYED)
def test_an_example_runs_to_its_end(example: Example, seed: int) -> None:
    value = document(example)
    harness = Harness.in_memory(value)
    agent = Agent((Task(str(value["id"])),), seed=seed, known=KNOWN)
    assert agent.work(showing_tests(harness.call)).is_complete


def showing_tests(call: Callable[[str, Arguments], ToolResult]) -> Callable[[str, Arguments], ToolResult]:
    """Let every report hold what a test runner prints: the agent cannot make up a text for a pattern."""

    def called(tool: str, arguments: Arguments) -> ToolResult:
        sent = cast("dict[str, Any]", json.loads(json.dumps(dict(arguments))))
        if "notesMarkdown" in sent.get("output", {}):
            sent["output"]["notesMarkdown"] += SEEN_BY_A_RUNNER
        return call(tool, sent)

    return called


@of_kind("refused")
def test_a_faulty_example_is_refused_with_the_code_it_names_and_no_other(example: Example) -> None:
    found = compiled(document(example))
    assert isinstance(found, RefusedFile)
    assert [one.code for one in found.diagnostics] == [example.rest]


@of_kind("conditions")
def test_each_case_of_a_condition_holds_or_not_as_the_page_says(example: Example) -> None:
    for case in cast("list[dict[str, Json]]", example.value(under="cases")["cases"]):
        lowering = ConditionLowering(named={})
        condition = lowering.lower_condition(ConditionForm.of_json(case["condition"]), "condition")
        assert lowering.faults == []
        verdict = evaluate(condition, ConditionInputs(context=cast("dict[str, Json]", case["given"])))
        assert ("undecided" if isinstance(verdict, Undecided) else verdict) == case["holds"], case


def test_the_cases_show_every_operator() -> None:
    shown = " ".join(example.text for example in ALL if example.kind == "conditions")
    operators = {one.encode_name for one in msgspec.structs.fields(ConditionForm)}
    assert [name for name in operators - {"kind", "conditionId"} if f"{name}:" not in shown] == []


@pytest.mark.inv("DEC-14")
@of_kind("values")
def test_each_case_of_a_computed_value_gives_what_the_page_says(example: Example) -> None:
    for case in cast("list[dict[str, Json]]", example.value(under="cases")["cases"]):
        lowering = ConditionLowering(named={})
        value = lowering.lower_value(ComputeForm.of_json(case["compute"]), "compute")
        assert lowering.faults == []
        inputs = ConditionInputs(context=cast("dict[str, Json]", case["given"]))
        if "fails" in case:
            with pytest.raises(CalculationError) as caught:
                calculate(value, inputs)
            assert caught.value.found == case["fails"]
            continue
        found = calculate(value, inputs)
        assert isinstance(found, Undecided) == ("missing" in case), case
        assert (found.path if isinstance(found, Undecided) else found) == case.get("missing", case.get("gives")), case


def test_the_cases_show_every_operation() -> None:
    shown = " ".join(example.text for example in ALL if example.kind == "values")
    operations = {one.encode_name for one in msgspec.structs.fields(ComputeForm)}
    assert [name for name in operations if f"{name}:" not in shown] == []


@pytest.mark.inv("DEC-8")
@of_kind("pattern")
def test_each_pattern_over_time_runs_as_the_page_says(example: Example) -> None:
    held = cast("dict[str, Any]", example.value())
    start, passes = held["start"], held["passes"]
    kinds = {True: "boolean", False: "number"}
    inputs = [{"key": "level", "type": "number", "description": "Now."}]
    inputs += [
        {"key": key, "type": kinds[isinstance(value, bool)], "required": True, "description": key}
        for key, value in start.items()
    ]
    shown = " ".join(f"{key}={{{{{key}}}}}" for key in start)
    body = {"id": "look", "title": "Look", "prompt": shown, "set": held["set"], "produces": ["level"]}
    again = {"loopId": "l", "title": "L", "maxIterations": 9, "for": {"count": len(passes)}, "body": [body]}
    last = {"id": "end", "title": "End", "prompt": shown}
    harness = Harness.in_memory({"id": "docs.pattern", "name": "P", "inputs": inputs, "steps": [again, last]})
    answer = harness.start("docs.pattern", context=start)
    for one in passes:
        answer = harness.advance(answer, context={"level": one["level"]})
        found = dict(part.split("=") for part in answer["pending"]["prompt"].splitlines()[0].split())
        assert {key: found[key] for key in one["then"]} == {
            key: json.dumps(value) for key, value in one["then"].items()
        }, one


@of_kind("criteria")
def test_each_case_of_criteria_is_met_or_not_as_the_page_says(example: Example) -> None:
    for case in cast("list[dict[str, Json]]", example.value(under="cases")["cases"]):
        lowering = ConditionLowering(named={})
        criteria = lowering.lower_criteria(TypeAdapter(CriteriaForm).validate_python(case["criteria"]), "criteria")
        assert lowering.faults == []
        assert (find_unmet(criteria, str(case["notes"]), {}) == []) == case["met"], case


@of_kind("artifact")
def test_an_artifact_meets_the_contract_that_it_is_shown_for(example: Example) -> None:
    pack, artifact = PACKS[example.rest], example.value()
    assert artifact["kind"] == pack.kind
    assert schema_fault(artifact, pack.schema or {}) is None


@of_kind("bindings")
def test_bindings_bind_a_slot_for_every_workflow_and_otherwise_for_one(example: Example) -> None:
    slots: dict[str, Json] = {
        "extensionPoints": [
            {"slotId": "final_check", "purpose": "P.", "default": "wr.templates.routine.design-review"}
        ],
        "steps": [{"id": "check", "templateCall": {"slotId": "final_check"}}],
    }
    bound = example.value()
    own = next(name for name, value in bound.items() if isinstance(value, dict))
    workflows = InlineWorkflows({"id": "team.any", "name": "Any", **slots}, {"id": own, "name": "Own", **slots})
    workflows.bound = bound
    entries = Catalog(workflows).view(None).entries
    origins = [origin_of(entries[name].compiled) for name in ("team.any", own)]
    assert origins == [bound["final_check"], cast("dict[str, Json]", bound[own])["final_check"]]


def origin_of(found: Pinnable | RefusedFile) -> str | None:
    assert isinstance(found, Pinnable), found
    return next(iter(found.workflow.steps.values())).provenance.origin_id
