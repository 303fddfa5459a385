"""No contract takes a call that was not filled in: each field unfilled, with sample text, and beside its choices."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.flow import compiled, step

from interlock.engine.judge.evidence import artifact_outlines, judge
from interlock.engine.request import Request
from interlock.kernel.blanks import Blank
from interlock.kernel.canonical import Json
from interlock.plan.builtins.packs import PACKS
from interlock.plan.compiled import CompiledWorkflow
from interlock.testing.harness import Harness, good_artifact

CONTRACTS = sorted(ref for ref, pack in PACKS.items() if pack.kind is not None and ref != "wr.contracts.assessment")
RATING = {
    "id": "quality",
    "purpose": "How good it is.",
    "dimensions": [{"id": "clear", "purpose": "Is it clear?", "levels": ["low", "high"]}],
}


def workflow_of(ref: str) -> CompiledWorkflow:
    more: dict[str, Any] = {"capabilities": ["web_browsing"]} if "capability" in ref else {}
    return compiled(step("a", outputContract={"contractRef": ref}, **more), capabilities={}, inputs=[])


def faults(workflow: CompiledWorkflow, artifact: dict[str, Json]) -> list[str]:
    request = Request(artifacts=(artifact,))
    found = judge(workflow, workflow.steps["a"], request, {}).findings
    return [f"{one.message} {one.fix}" for one in found]


def spoilt(outline: dict[str, Any], good: dict[str, Json]) -> Iterator[tuple[str, dict[str, Json]]]:
    """Yield each field with the artifacts in which it is unfilled, sample text, or beside its choices."""
    for name, blank in outline.items():
        if not isinstance(blank, Blank):
            continue
        assert blank.what is not None
        yield name, {key: value for key, value in good.items() if key != name}
        for sample in (blank.what, blank.what.upper(), f"<{blank.what}>", "<...>"):
            yield name, good | {name: sample}
        if blank.choices:
            yield name, good | {name: "neither of them"}
            yield name, good | {name: " | ".join(map(str, blank.choices))}


@pytest.mark.inv("EVID-7")
@pytest.mark.parametrize("ref", CONTRACTS)
def test_each_field_that_is_not_filled_in_is_refused_by_its_name(ref: str) -> None:
    workflow = workflow_of(ref)
    (outline,) = artifact_outlines(workflow, workflow.steps["a"])
    pack = workflow.packs[ref]
    assert pack.artifact_schema is not None
    good = good_artifact(pack.artifact_schema) | {name: one for name, one in outline.items() if isinstance(one, str)}
    assert faults(workflow, good) == []
    cases = list(spoilt(outline, good))
    assert cases, "each pack asks for something"
    for name, artifact in cases:
        (found,) = faults(workflow, artifact)
        assert f"`{name}`" in found, artifact


@pytest.mark.inv("EVID-7")
@pytest.mark.parametrize("ref", [*CONTRACTS, "wr.contracts.assessment", "wr.contracts.notes"])
def test_a_shown_call_that_is_sent_back_unchanged_is_refused(ref: str) -> None:
    more: dict[str, Any] = {"outputContract": {"contractRef": ref}} if ref in CONTRACTS else {}
    if ref == "wr.contracts.assessment":
        more = {"assessmentRefs": ["quality"]}
    document = {"id": "test.flow", "name": "Flow", "steps": [step("a", **more)], "assessments": [RATING]}
    if ref != "wr.contracts.assessment":
        del document["assessments"]
    harness = Harness.in_memory(document)
    first = harness.start("test.flow")
    refused = harness.call(first["nextCall"]["tool"], first["nextCall"]["arguments"])
    assert refused["kind"] == "blocked"
    again = harness.call(refused["nextCall"]["tool"], refused["nextCall"]["arguments"])
    assert again["kind"] == "blocked"
