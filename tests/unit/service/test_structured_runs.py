"""Runs through decisions, loops and branches as agents meet them: what starts, what is kept, what is answered."""

from pathlib import Path

import pytest
from tests.support.flow import INPUTS, IS_FAST, Document, deciding, declared, document, loop, parallel, step
from tests.support.verify import unsound

from interlock.kernel.errors import ErrorCode
from interlock.record.events import ContextSetEvent, DecisionTraceAppendedEvent
from interlock.service.tools.recap import DONE_SO_FAR
from interlock.testing.harness import Harness, ToolResult

REVIEW: Document = {
    "kind": "wr.review_verdict",
    "verdict": "clean",
    "confidence": "high",
    "findings": [],
    "summary": "All of it.",
}
WANTING = step("a", outputContract={"contractRef": "wr.contracts.review_verdict"}, notes="required", produces=["cause"])


@pytest.fixture(params=["memory", "disk"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> "Maker":
    return Maker(tmp_path / "data" if request.param == "disk" else None)


class Maker:
    """Makes a harness over a store that serves one workflow, `test.flow`."""

    def __init__(self, root: Path | None) -> None:
        self._root = root

    def __call__(self, *steps: Document, **more: object) -> Harness:
        value = document(*steps, **more)
        return Harness.in_memory(value) if self._root is None else Harness.on_disk(self._root, value)


def blocker_codes(answer: ToolResult) -> list[str]:
    return [blocker["code"] for blocker in answer["blockers"]]


@pytest.mark.inv("BLK-3")
@pytest.mark.inv("EVID-2")
def test_a_retry_need_only_bring_what_was_missing_and_the_step_then_holds_both(make: Maker) -> None:
    harness = make(WANTING, step("b"))
    first = harness.start("test.flow")
    one = harness.advance(first, "Done with care.")
    assert blocker_codes(one) == ["MISSING_REQUIRED_OUTPUT", "MISSING_REQUIRED_OUTPUT"]
    two = harness.advance(one, None, output={"artifacts": [REVIEW]})
    assert blocker_codes(two) == ["MISSING_REQUIRED_OUTPUT"]
    three = harness.advance(two, None, context={"cause": "it"})
    assert (three["kind"], three["pending"]["stepId"]) == ("ok", "b")
    session = harness.store.load(harness.session_of(first))
    assert session is not None
    (reached,) = [node for node in session.nodes.values() if node.kind == "step" and node.parent is not None]
    assert [output.channel for output in reached.outputs] == ["recap", "artifact"]
    assert session.context(reached.node)["cause"] == "it"
    assert "Done with care." in harness.rehydrate(three)["recap"]


def test_what_is_sent_again_stands_for_what_was_sent_before(make: Maker) -> None:
    harness = make(WANTING, step("b"))
    one = harness.advance(harness.start("test.flow"), "First.", output={"artifacts": [REVIEW | {"verdict": "fine"}]})
    assert "INVALID_REQUIRED_OUTPUT" in blocker_codes(one)
    notes = {"notesMarkdown": "Second.", "artifacts": [REVIEW]}
    two = harness.advance(one, None, output=notes, context={"cause": "it"})
    assert two["kind"] == "ok"
    recap = harness.rehydrate(two)["recap"]
    assert "Second." in recap
    assert "First." not in recap


@pytest.mark.inv("EVID-2")
@pytest.mark.parametrize("first", [{"assessmentId": "quality"}, {}], ids=["named", "unnamed"])
@pytest.mark.parametrize("second", [{"assessmentId": "quality"}, {}], ids=["named", "unnamed"])
def test_a_rating_stands_for_the_earlier_one_whether_either_names_the_only_assessment(
    make: Maker, first: Document, second: Document
) -> None:
    low = {"when": {"anyEqualsLevel": "low"}, "effect": {"kind": "require_followup", "guidance": "Look again."}}
    rated = step("a", assessmentRefs=["quality"], assessmentConsequences=[low])
    dimensions = [{"id": "clear", "purpose": "How clear.", "levels": ["low", "high"]}]
    assessment = {"id": "quality", "purpose": "How good.", "dimensions": dimensions}
    harness = make(rated, step("b"), assessments=[assessment])
    rating = {"kind": "wr.assessment", "dimensions": {"clear": "low"}, "summary": "Why.", **first}
    refused = harness.advance(harness.start("test.flow"), output={"notesMarkdown": "Rated.", "artifacts": [rating]})
    assert refused["kind"] == "blocked"
    better = {"kind": "wr.assessment", "dimensions": {"clear": "high"}, "summary": "Why.", **second}
    assert harness.advance(refused, output={"artifacts": [better]})["pending"]["stepId"] == "b"


def test_the_call_after_a_refusal_asks_for_what_is_missing_and_for_nothing_else(make: Maker) -> None:
    harness = make(WANTING, step("b"))
    first = harness.start("test.flow")
    assert set(first["nextCall"]["arguments"]) == {"ackToken", "run"}
    paths = [blank["path"] for blank in first["nextCall"]["fill"]]
    fields = [f"output.artifacts[0].{name}" for name in ("kind", "confidence", "verdict", "findings", "summary")]
    assert paths == ["output.notesMarkdown", *fields, "context.cause"]
    only_key = harness.advance(first, "Done.", output={"notesMarkdown": "Done.", "artifacts": [REVIEW]})
    assert set(only_key["nextCall"]["arguments"]) == {"ackToken", "run"}
    assert [blank["path"] for blank in only_key["nextCall"]["fill"]] == ["context.cause"]
    only_notes = harness.advance(first.ack, None)
    assert only_notes.warnings == ["REPLAY_PAYLOAD_IGNORED"]


def test_a_null_that_was_not_replaced_leaves_its_key_missing(make: Maker) -> None:
    harness = make(WANTING, step("b"))
    first = harness.start("test.flow")
    answer = harness.advance(
        first, None, output={"notesMarkdown": "Done.", "artifacts": [REVIEW]}, context={"cause": None}
    )
    assert blocker_codes(answer) == ["MISSING_REQUIRED_OUTPUT"]
    assert answer["blockers"][0]["pointer"] == {"kind": "context_key", "key": "cause"}


@pytest.mark.inv("BLK-1")
@pytest.mark.inv("WALK-4")
def test_a_step_whose_successor_cannot_be_decided_is_not_done_and_says_which_key(make: Maker) -> None:
    harness = make(step("a"), step("b", when=IS_FAST), step("c"))
    first = harness.start("test.flow")
    refused = harness.advance(first, "Done.")
    (blocker,) = refused["blockers"]
    assert blocker["pointer"] == {"kind": "context_key", "key": "mode"}
    assert refused["pending"] == first["pending"]
    assert harness.advance(refused, None, context={"mode": "slow"})["pending"]["stepId"] == "c"


@pytest.mark.inv("ADV-1")
def test_a_run_whose_first_step_cannot_be_decided_does_not_begin(make: Maker) -> None:
    harness = make(step("a", when=IS_FAST), step("b"))
    refused = harness.start("test.flow")
    assert harness.data_dir is None or not harness.data_dir.exists()
    assert (refused.code, refused["details"]["path"]) == (ErrorCode.VALIDATION_ERROR, "context.mode")
    assert harness.start("test.flow", context={"mode": "fast"})["pending"]["stepId"] == "a"
    assert harness.start("test.flow", context={"mode": "slow"})["pending"]["stepId"] == "b"


@pytest.mark.inv("ADV-5")
def test_what_an_end_left_open_is_reported_the_same_on_replay_though_a_branch_made_up_for_it(make: Maker) -> None:
    harness = make(step("a"))
    first = harness.start("test.flow", preferences={"autonomy": "full_auto_never_stop"})
    ended = harness.advance(first, None)
    assert ended.warnings == ["GAP_RECORDED", "COMPLETE_WITH_GAPS"]
    redone = harness.advance(harness.rehydrate(first)["fork"]["ackToken"], "Did a.")
    assert redone.warnings == ["BRANCH_CREATED"]
    replayed = harness.advance(first, None)
    assert (replayed.structure, replayed.text) == (ended.structure, ended.text)


WANTED = [
    {"key": "mode", "description": "How fast.", "type": "string", "required": True, "choices": ["fast", "slow"]},
    {"key": "level", "description": "How deep.", "type": "number"},
]


@pytest.mark.parametrize(
    ("context", "path"),
    [
        ({}, "context.mode"),
        ({"mode": None}, "context.mode"),
        ({"mode": "quick"}, "context.mode"),
        ({"mode": 1}, "context.mode"),
        ({"mode": "fast", "level": "2"}, "context.level"),
        ({"mode": "fast", "level": True}, "context.level"),
    ],
)
def test_a_start_without_what_is_declared_is_refused_and_records_nothing(
    make: Maker, context: Document, path: str
) -> None:
    harness = make(step("a"), inputs=WANTED)
    refused = harness.start("test.flow", context=context)
    assert (refused.code, refused["details"]["path"]) == (ErrorCode.VALIDATION_ERROR, path)
    assert [one["key"] for one in refused["details"]["wanted"]] == ["level", "mode"]
    assert "How fast." in refused.text or "How deep." in refused.text


@pytest.mark.parametrize("context", [{"mode": "fast"}, {"mode": "slow", "level": 2}, {"mode": "slow", "more": [1]}])
def test_a_start_with_what_is_declared_and_anything_else_begins(make: Maker, context: Document) -> None:
    assert make(step("a"), inputs=WANTED).start("test.flow", context=context)["kind"] == "ok"


def test_what_a_step_sets_is_in_the_context_of_the_next_on_top_of_what_was_sent(make: Maker) -> None:
    sets = [{"key": "done", "value": True}, {"key": "copy", "from": "mode"}, {"key": "again", "from": "copy"}]
    inputs = [*INPUTS, declared("done", "boolean"), declared("copy"), declared("again")]
    harness = make(step("a", set=sets), step("b", prompt="{{done}} {{copy}} {{again}} {{sent}}"), inputs=inputs)
    first = harness.start("test.flow", context={"copy": "old"})
    second = harness.advance(first, "Done.", context={"mode": "fast", "sent": 1})
    assert second["pending"]["prompt"] == "true fast old 1", "no action sees what another one of the step sets"
    session = harness.session_of(harness.rehydrate(second))
    _, sent, effects = [event.data for event in harness.events(session) if isinstance(event, ContextSetEvent)]
    assert (sent.source, sent.context) == ("agent_delta", {"mode": "fast", "sent": 1})
    assert (effects.source, effects.context) == ("merge", {"done": True, "copy": "fast", "again": "old"})


def test_what_a_step_would_copy_and_is_not_there_is_asked_for(make: Maker) -> None:
    inputs = [*INPUTS, declared("copy", "number")]
    harness = make(step("a", set=[{"key": "copy", "from": "box.size"}]), step("b"), inputs=inputs)
    refused = harness.advance(harness.start("test.flow"), "Done.", context={"box": {}})
    assert refused["blockers"][0]["pointer"] == {"kind": "context_key", "key": "box.size"}
    assert harness.advance(refused, None, context={"box": {"size": 3}})["pending"]["stepId"] == "b"


def test_a_pass_is_reported_in_both_channels_and_its_variables_fill_the_prompt(make: Maker) -> None:
    body = step("b", title="Part {{iteration}}", prompt="Do {{item.name}} at {{index}}.")
    harness = make(loop("l", body, forEach={"items": "things"}), step("c"))
    first = harness.start("test.flow", context={"things": [{"name": "x"}, {"name": "y"}]})
    second = harness.advance(first, "Done x.")
    assert second["pending"]["loop"] == {"loopId": "l", "pass": 2, "maxIterations": 3}
    assert second["run"]["step"] == {"number": 1, "total": 2, "pass": 2}
    assert second["pending"]["prompt"] == "Do y at 1."
    assert "step 1 of 2, pass 2 of at most 3: `Part 2`" in second.text
    assert harness.rehydrate(second)["pending"] == second["pending"]
    third = harness.advance(second, "Done y.")
    assert "loop" not in third["pending"]
    assert harness.rehydrate(third)["recap"] == (
        f"{DONE_SO_FAR}`Part 2`:\n> Done y.\n\n`Part 1`:\n> Done x.\n\n**Context keys that are set**: `things`"
    )


@pytest.mark.inv("WALK-3")
def test_a_loop_that_is_used_up_is_reported_and_shown_again_on_replay(make: Maker) -> None:
    harness = make(loop("l", step("b"), maxIterations=1, **{"while": {"var": "level", "gt": 0}}), step("c"))
    first = harness.start("test.flow", context={"level": 1})
    second = harness.advance(first, "Done.")
    assert second.warnings == ["LOOP_LIMIT_REACHED"]
    assert harness.advance(first, "Done.") == second


def test_a_loop_under_loop_control_goes_on_and_ends_by_the_artifact_that_the_answer_shows(make: Maker) -> None:
    harness = make(loop("l", deciding("d"), **{"while": {"kind": "loop_control"}}), step("c"))
    first = harness.start("test.flow")
    blanks = {blank["path"].rpartition(".")[2]: blank for blank in first["nextCall"]["fill"]}
    shown = {name: blank["choices"][0] for name, blank in blanks.items() if len(blank.get("choices", ())) == 1}
    assert shown == {"kind": "wr.loop_control", "loopId": "l"}
    shown |= {"decision": "stop", "summary": "Done."}
    again = harness.advance(first, None, output={"artifacts": [shown | {"decision": "continue"}]})
    assert again["pending"]["loop"]["pass"] == 2
    assert harness.advance(again, None, output={"artifacts": [shown]})["pending"]["stepId"] == "c"


@pytest.mark.inv("ADV-7", "VERIFY-1")
def test_an_artifact_that_was_sent_twice_decides_as_one_and_is_decided_again_alike(make: Maker) -> None:
    """What is recorded verifies: each test ends with that."""
    harness = make(loop("l", deciding("d"), **{"while": {"kind": "loop_control"}}), step("c"))
    decision = {"kind": "wr.loop_control", "loopId": "l", "decision": "continue", "summary": "Again."}
    again = harness.advance(harness.start("test.flow"), None, output={"artifacts": [decision, decision]})
    assert again["pending"]["loop"]["pass"] == 2
    assert (
        harness.advance(again, None, output={"artifacts": [decision | {"decision": "stop"}] * 3})["pending"]["stepId"]
        == "c"
    )


@pytest.mark.inv("WALK-5")
def test_steps_of_other_branches_are_named_beside_a_step(make: Maker) -> None:
    harness = make(parallel("p", [step("a")], [step("b")]), step("c"))
    first = harness.start("test.flow")
    assert first["pending"]["parallelWith"] == ["b"]
    assert "This step and `b` do not depend on each other" in first["pending"]["prompt"]
    assert first["pending"]["prompt"] in first.text
    second = harness.advance(first)
    assert "parallelWith" not in second["pending"]
    assert second["pending"]["prompt"] == "Do b."
    third = harness.advance(second)
    assert "parallelWith" not in third["pending"]
    assert third["pending"]["prompt"] == "Do c."


@pytest.mark.inv("TRACE-2")
def test_the_trace_names_the_next_step_by_its_rendered_title(make: Maker) -> None:
    harness = make(step("a"), loop("l", step("b", title="Part {{iteration}}"), forEach={"items": "things"}))
    first = harness.start("test.flow", context={"things": [1, 2]})
    harness.advance(harness.advance(first))
    session = harness.store.load(harness.session_of(first))
    assert session is not None
    shown = [one.summary for node in session.nodes.values() for one in node.trace]
    assert {"Next: Part 1", "Next: Part 2"} <= set(shown)


@pytest.mark.inv("ADV-3")
def test_why_a_run_went_its_way_is_recorded_with_the_node_it_led_to(make: Maker) -> None:
    harness = make(step("a"), step("b", when=IS_FAST), step("c"))
    first = harness.start("test.flow", context={"mode": "slow"})
    second = harness.advance(first, "Done.")
    assert second["pending"]["stepId"] == "c"
    traces = [
        event for event in harness.events(harness.session_of(first)) if isinstance(event, DecisionTraceAppendedEvent)
    ]
    assert [entry.kind for trace in traces for entry in trace.data.entries] == [
        "evaluated_condition",
        "selected_next_step",
    ]
    session = harness.store.load(harness.session_of(first))
    assert session is not None
    (decided,) = [node for node in session.nodes.values() if node.trace]
    assert decided.parent == first_node(harness, first)


def first_node(harness: Harness, first: ToolResult) -> str | None:
    session = harness.store.load(harness.session_of(first))
    assert session is not None
    (run,) = session.runs.values()
    return run.root


@pytest.mark.inv("ADV-10")
def test_a_fork_before_a_decision_may_go_the_other_way(make: Maker) -> None:
    harness = make(step("a"), step("b", when=IS_FAST), step("c"))
    first = harness.start("test.flow")
    assert harness.advance(first, "Slowly.", context={"mode": "slow"})["pending"]["stepId"] == "c"
    fork = harness.rehydrate(first)["fork"]["ackToken"]
    assert harness.advance(fork, "Fast.", context={"mode": "fast"})["pending"]["stepId"] == "b"


@pytest.mark.parametrize(("mode", "confirms"), [("fast", True), ("slow", False), (None, True)])
def test_a_step_is_confirmed_where_its_condition_holds_or_cannot_be_known(
    make: Maker,
    mode: str | None,
    confirms: bool,  # noqa: FBT001 — a table
) -> None:
    harness = make(step("a", confirmWhen=IS_FAST))
    answer = harness.start("test.flow", context={"mode": mode} if mode else {})
    assert (answer["nextIntent"] == "await_user_confirmation") is confirms
    assert answer["pending"].get("requireConfirmation", False) is confirms


@pytest.mark.inv("PLAN-20")
def test_a_part_of_a_prompt_is_shown_where_its_condition_is_known_to_hold(make: Maker) -> None:
    fragment = {"id": "f", "text": "Hurry, {{mode}}.", "when": IS_FAST}
    harness = make(step("a", promptFragments=[fragment]))
    shown = harness.start("test.flow", context={"mode": "fast"})["pending"]["prompt"]
    assert shown == "Do a.\n\nHurry, fast."
    for context in ({}, {"mode": "slow"}):
        assert harness.start("test.flow", context=context)["pending"]["prompt"] == "Do a."


@pytest.mark.inv("EVID-4")
def test_a_deviation_that_was_refused_may_be_left_out_of_the_next_report() -> None:
    harness = Harness.in_memory(document(step("a"), step("b")))
    first = harness.start("test.flow")
    faulty = {"kind": "wr.workflow_divergence", "reason": "because"}
    refused = harness.advance(first, output={"notesMarkdown": "Did it all.", "artifacts": [faulty]})
    assert "Leave it out" in refused.text
    assert {"ackToken", "checkpointToken"}.isdisjoint(refused.structure)
    sent = refused["nextCall"]["arguments"]
    assert harness.call(refused["nextCall"]["tool"], sent)["pending"]["stepId"] == "b"
    assert unsound(harness.store) == []
