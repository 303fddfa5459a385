"""What is judged of a bundle that proves itself: somebody may have written its integrity anew."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.bundles import DOCUMENT, a_bundle, changed, exported, imported, reattested, refused, value_of
from tests.support.flows import WORK

from interlock.define import patterns
from interlock.kernel.canonical import digest_of, digest_of_bytes
from interlock.kernel.errors import ErrorCode
from interlock.plan.builtins.packs import PACKS
from interlock.plan.check.pack_form import find_foreign
from interlock.plan.flows.tasks import generate_pack
from interlock.service.transfer.bundle_check import checked_bundle
from interlock.testing.harness import Harness, linear_workflow

Change = Callable[[dict[str, Any]], object]
REVIEW = {"title": "A", "prompt": "Do a.", "outputContract": {"contractRef": "wr.contracts.gate_verdict"}}


def shortened(session: dict[str, Any]) -> None:
    """Take the last event away, and from what the manifest says are its bounds."""
    session["events"].pop()
    closed = [record for record in session["manifest"] if record["kind"] == "segment_closed"]
    closed[-1]["lastEventIndex"] -= 1


EVENTS: dict[str, Change] = {
    "an event is gone": lambda session: session["events"].pop(4),
    "the first is gone": lambda session: session["events"].pop(0),
    "two change places": lambda session: session["events"].insert(4, session["events"].pop(5)),
    "one stands there twice": lambda session: session["events"].insert(4, session["events"][4]),
    "another index": lambda session: session["events"][4].update(eventIndex=9),
    "another session's": lambda session: session.update(sessionId="sess_" + "0" * 26),
}
MANIFEST: dict[str, Change] = {
    "a record is gone": lambda session: session["manifest"].pop(),
    "the first is gone": lambda session: session["manifest"].pop(0),
    "two change places": lambda session: session["manifest"].insert(0, session["manifest"].pop(1)),
    "one stands there twice": lambda session: session["manifest"].append(session["manifest"][-1]),
    "another index": lambda session: session["manifest"][2].update(manifestIndex=9),
    "another digest": lambda session: session["manifest"][0].update(sha256="sha256:" + "0" * 64),
    "another length": lambda session: session["manifest"][0].update(bytes=1),
    "another path": lambda session: session["manifest"][0].update(segmentRelPath="../../x"),
    "bounds beyond the events": lambda session: session["manifest"][0].update(lastEventIndex=10_000),
    "bounds that overlap": lambda session: session["manifest"][0].update(lastEventIndex=0),
    "an event that differs": lambda session: session["events"][4].update(recordedAt="2020-01-01T00:00:00.000Z"),
    "the last event gone from both": shortened,
    "the last group is gone": lambda session: session.update(
        manifest=session["manifest"][: max(at for at, one in enumerate(session["manifest"]) if "bytes" in one)]
    ),
}


def within(change: Change) -> bytes:
    return changed(lambda value: change(value["session"]))


def refusal(data: bytes) -> tuple[ErrorCode, str]:
    """Return why a bundle is refused, and hold that nothing of it was stored."""
    harness = Harness.in_memory(DOCUMENT)
    result = refused(harness, data)
    assert harness.store.sessions() == ()
    assert "Nothing was stored." in result.suggestion
    return result.code, result.message


def first(session: dict[str, Any], part: str) -> str:
    return min(session[part])


def renamed(part: str, data: bytes | None = None) -> bytes:
    """Return a bundle in which some content stands under a name that another content has."""

    def change(value: dict[str, Any]) -> None:
        contents = value["session"][part]
        one, other = sorted(contents)[:2]
        contents[one], contents[other] = contents[other], contents[one]

    return changed(change, data)


@pytest.mark.inv("BND-4")
@pytest.mark.produces("error:BUNDLE_EVENT_ORDER_INVALID")
@pytest.mark.parametrize("change", EVENTS.values(), ids=EVENTS)
def test_events_that_cannot_follow_each_other_are_refused(change: Change) -> None:
    code, message = refusal(within(change))
    assert code is ErrorCode.BUNDLE_EVENT_ORDER_INVALID
    assert "session.events[" in message


@pytest.mark.inv("BND-4")
@pytest.mark.produces("error:BUNDLE_MANIFEST_ORDER_INVALID")
@pytest.mark.parametrize("change", MANIFEST.values(), ids=MANIFEST)
def test_a_manifest_that_does_not_attest_exactly_these_events_is_refused(change: Change) -> None:
    code, message = refusal(within(change))
    assert code is ErrorCode.BUNDLE_MANIFEST_ORDER_INVALID
    assert "session.manifest" in message


@pytest.mark.inv("BND-5")
@pytest.mark.produces("error:BUNDLE_MISSING_SNAPSHOT", "error:BUNDLE_MISSING_PINNED_WORKFLOW")
@pytest.mark.parametrize(
    ("part", "code"),
    [
        ("snapshots", ErrorCode.BUNDLE_MISSING_SNAPSHOT),
        ("pinnedWorkflows", ErrorCode.BUNDLE_MISSING_PINNED_WORKFLOW),
        ("artifacts", ErrorCode.BUNDLE_INTEGRITY_FAILED),
    ],
)
def test_content_that_events_refer_to_and_that_is_not_there_is_refused_by_name(part: str, code: ErrorCode) -> None:
    for name in value_of(a_bundle())["session"][part]:
        found, message = refusal(within(lambda session, name=name: session[part].pop(name)))
        assert found is code
        assert f"session.{part}.{name}" in message


@pytest.mark.inv("BND-5")
@pytest.mark.parametrize("part", ["snapshots", "artifacts"])
def test_content_under_a_name_that_is_not_its_digest_is_refused(part: str) -> None:
    code, message = refusal(renamed(part))
    assert code is ErrorCode.BUNDLE_INTEGRITY_FAILED
    assert "does not match its digest" in message


@pytest.mark.inv("BND-5")
def test_another_plan_under_the_hash_that_a_run_pins_is_refused() -> None:
    def change(session: dict[str, Any]) -> None:
        session["pinnedWorkflows"][first(session, "pinnedWorkflows")]["name"] = "Another"

    assert refusal(within(change))[0] is ErrorCode.BUNDLE_INTEGRITY_FAILED


@pytest.mark.inv("BND-5")
@pytest.mark.parametrize("part", ["snapshots", "pinnedWorkflows", "artifacts"])
def test_content_that_no_event_refers_to_is_refused(part: str) -> None:
    def change(session: dict[str, Any]) -> None:
        if part == "artifacts":
            session[part][digest_of_bytes(b"more")] = {"encoding": "utf-8", "data": "more"}
            return
        more = {**session[part][first(session, part)], **({"name": "More"} if part == "pinnedWorkflows" else {})}
        if part == "snapshots":
            more["workflowHash"] = digest_of("another")
        session[part][digest_of(more)] = more

    code, message = refusal(within(change))
    assert code is ErrorCode.BUNDLE_INVALID_FORMAT
    assert "no event refers to it" in message


@pytest.mark.inv("BND-5")
def test_an_artifact_whose_text_is_none_of_its_encoding_is_refused() -> None:
    def change(session: dict[str, Any]) -> None:
        session["artifacts"][first(session, "artifacts")] = {"encoding": "base64", "data": "*"}

    assert refusal(within(change))[0] is ErrorCode.BUNDLE_INVALID_FORMAT


def with_plan(change: Change, data: bytes | None = None) -> bytes:
    """Return a bundle that pins a changed plan, with every hash, digest and record of it written anew."""

    value = value_of(a_bundle() if data is None else data)
    session = value["session"]
    ((old, plan),) = session["pinnedWorkflows"].items()
    change(plan)
    text = json.dumps(session).replace(old, digest_of(plan))
    for ref, snapshot in json.loads(text)["snapshots"].items():
        text = text.replace(ref, digest_of(snapshot))
    value["session"] = json.loads(text)
    return reattested(value)


@pytest.mark.inv("BND-5")
def test_a_plan_that_cannot_be_read_or_that_its_snapshots_do_not_fit_is_refused() -> None:
    assert checked_bundle(with_plan(lambda plan: plan.update(description="Another, and fit to run.")))
    code, message = refusal(with_plan(lambda plan: plan.update(schemaVersion=2)))
    assert (code, "session.pinnedWorkflows" in message) == (ErrorCode.BUNDLE_UNSUPPORTED_VERSION, True)
    code, message = refusal(with_plan(lambda plan: plan.pop("plan")))
    assert (code, "session.pinnedWorkflows" in message) == (ErrorCode.BUNDLE_INVALID_FORMAT, True)
    steps = {"a": "z", "b": "y"}

    def rename(plan: dict[str, Any]) -> None:
        text = json.dumps(plan)
        for old, new in steps.items():
            text = text.replace(f'"{old}"', f'"{new}"')
        plan.clear()
        plan.update(json.loads(text))

    code, message = refusal(with_plan(rename))
    assert (code, "session.snapshots" in message) == (ErrorCode.BUNDLE_INVALID_FORMAT, True)


def test_the_bundle_that_these_tests_change_is_fit_to_be_imported() -> None:
    assert imported(Harness.in_memory(DOCUMENT), a_bundle()).banner is None


@pytest.mark.inv("BND-5")
@pytest.mark.inv("LIM-3")
def test_a_plan_with_a_pattern_that_no_file_could_have_is_refused_by_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """The size that is allowed here is smaller than where the session was made."""
    rule = {"type": "regex", "pattern": r"^\p{Lu}\w+ is done$"}
    harness = Harness.in_memory(
        linear_workflow("test.rule", "a", {"id": "b", "title": "B", "prompt": "Do b.", "validationCriteria": rule})
    )
    data = exported(harness, harness.session_of(harness.start("test.rule"))).data
    assert checked_bundle(data).contents.workflows
    monkeypatch.setattr(patterns, "PATTERN_SIZE_MAX", 100)
    refusal = refused(Harness.in_memory(DOCUMENT), data)
    assert refusal.code is ErrorCode.BUNDLE_INVALID_FORMAT
    assert "step b: The pattern cannot be used: it compiles to" in refusal.message


def with_edge_back(plan: dict[str, Any]) -> None:
    edges = plan["plan"]["edges"]
    edges.append({**edges[0], "edgeId": "back", "source": edges[0]["target"], "target": edges[0]["source"]})


PLANS: dict[str, Change] = {
    "an unknown contract": lambda plan: task_of(plan).update(evidenceSchemaRef="wr.contracts.none"),
    "no contracts": lambda plan: plan.update(contracts=[]),
    "an edge to nowhere": lambda plan: plan["plan"]["edges"][0].update(target="nowhere"),
    "an edge back": with_edge_back,
    "a node twice": lambda plan: plan["plan"]["nodes"].append(plan["plan"]["nodes"][0]),
    "an unknown assessment": lambda plan: task_of(plan)["task"]["evidence"].update(assessments=["none"]),
}
"""Changes that make a plan one that no compiler makes."""


def task_of(plan: dict[str, Any]) -> dict[str, Any]:
    return next(one for one in plan["plan"]["nodes"] if "task" in one)


@pytest.mark.inv("BND-5", "IR-14")
@pytest.mark.parametrize("change", PLANS.values(), ids=PLANS)
def test_a_plan_that_no_compiler_makes_is_refused_with_its_place(change: Change) -> None:
    code, message = refusal(with_plan(change))
    assert code is ErrorCode.BUNDLE_INVALID_FORMAT
    assert "session.pinnedWorkflows.sha256:" in message
    assert ", step " in message or ", plan." in message


def test_every_contract_has_the_form_that_a_bundle_may_have() -> None:
    schemas = [*(pack.schema for pack in PACKS.values()), generate_pack(WORK).artifact_schema]
    assert {find_foreign(dict(one)) for one in schemas if one is not None} == {None}


SCHEMAS: list[tuple[dict[str, Any], str]] = [
    ({"type": 5}, "type"),
    ({"type": "text"}, "type"),
    ({"$ref": "http://127.0.0.1:9/x"}, "$ref"),
    ({"$ref": "#"}, "$ref"),
    ({"properties": {"summary": {"pattern": "(a+)+$"}}}, "properties.summary.pattern"),
    ({"patternProperties": {"(a+)+$": {}}}, "patternProperties"),
    ({"properties": 5}, "properties"),
    ({"properties": {"kind": True}}, "properties.kind"),
    ({"items": {"enum": 5}}, "items.enum"),
    ({"items": {"enum": [[]]}}, "items.enum"),
    ({"required": 7}, "required"),
    ({"required": [7]}, "required"),
    ({"allOf": [{}, 1]}, "allOf[1]"),
    ({"allOf": {}}, "allOf"),
    ({"minLength": -1}, "minLength"),
    ({"maximum": True}, "maximum"),
]
"""Schemas that no contract has, each with the place of the fault."""


@pytest.mark.inv("BND-5", "LIM-3")
@pytest.mark.parametrize(("schema", "place"), SCHEMAS)
def test_a_schema_that_no_contract_has_is_refused_before_anything_is_checked_with_it(
    schema: dict[str, Any], place: str
) -> None:
    harness = Harness.in_memory(linear_workflow("test.one", {**REVIEW, "id": "a"}))
    data = exported(harness, harness.session_of(harness.start("test.one"))).data

    def change(plan: dict[str, Any]) -> None:
        (pack,) = (one for one in plan["contracts"] if one["contractRef"] == "wr.contracts.gate_verdict")
        pack["artifactSchema"] = schema

    refusal = refused(Harness.in_memory(), with_plan(change, data))
    assert refusal.code is ErrorCode.BUNDLE_INVALID_FORMAT
    assert f".artifactSchema.{place}: no contract of Interlock has this" in refusal.message
