"""One set of facts in two channels: each channel stands alone, and says the same things in the order clients need."""

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import pytest
from tests.support.shown import shown_calls

from interlock.define.parts import Reference
from interlock.engine.answer.identity import LoopPass
from interlock.engine.answer.model import (
    CONTINUE_TOOL,
    Answer,
    AnswerModel,
    Occasion,
    PendingApproval,
    is_ordinary,
    render_answer,
)
from interlock.engine.answer.parts import PendingStepView, RunView
from interlock.engine.answer.structure import Fork, Warned
from interlock.engine.judge.reasons import missing_artifact, missing_key, missing_notes
from interlock.engine.judge.violations import Violation
from interlock.engine.request import notes_words
from interlock.kernel.blanks import Blank
from interlock.kernel.budgets import HEADER_GOAL_BYTES_MAX
from interlock.record.base import Preferences
from interlock.record.outcome import build_report
from interlock.testing.harness import assert_conforms

RUN = RunView(
    label="ab12",
    workflow_id="test.demo",
    workflow_name="Demo",
    session="sess_x",
    run="run_ab12",
    goal="Make it so",
)
STEP = PendingStepView(
    number=2,
    total=5,
    step_id="build",
    title="Build it",
    prompt="Build the thing.\n\n```sh\nmake\n```",
    needs_notes=True,
    needs_confirmation=False,
)
BLOCKERS = build_report([missing_notes("Build it").blocker()])
REFERENCE = Reference(id="spec", title="Spec", source="docs/spec.md", purpose="Binding.", authoritative=True)
FORK = Fork(ack_token="ack.fork", note="To redo it, ack with this token.")
ADVANCE = AnswerModel(occasion="advance", run=RUN, state_token="st.here", ack_token="ack.here", step=STEP)
FULL = replace(
    ADVANCE,
    occasion="rehydrate",
    preferences=Preferences(autonomy="guided", risk_policy="balanced"),
    recap="**Plan it**\nPlanned.",
    guidance=("Be kind.",),
    references=(REFERENCE,),
    warnings=(Warned(code="NOTES_TRUNCATED", message="They were long."),),
    blockers=BLOCKERS,
)
PASSED = replace(FULL, ack_token=None, blockers=None, fork=FORK, redirect="st.tip", where="already done")
COMPLETE = replace(ADVANCE, step=None, ack_token=None)


def every_kind_of_facts() -> Iterator[AnswerModel]:
    """Yield every combination of what an answer may or may not hold."""
    steps = [STEP, replace(STEP, agent_role="You build.", needs_confirmation=True, needs_notes=False)]
    occasions: list[Occasion] = ["start", "advance", "rehydrate"]
    for occasion, step, blocked, goal, more in itertools.product(occasions, steps, (0, 1), (0, 1), (0, 1)):
        facts = replace(
            FULL if more else ADVANCE,
            occasion=occasion,
            step=step,
            run=RUN if goal else replace(RUN, goal=None),
            blockers=BLOCKERS if blocked else None,
        )
        yield facts
        yield replace(facts, ack_token=None, fork=FORK)
        yield replace(facts, ack_token=None, fork=FORK, redirect="st.tip", where="already done")
        yield replace(facts, ack_token=None, step=None)


ALL = list(every_kind_of_facts())


def structure_of(facts: AnswerModel) -> dict[str, Any]:
    return cast("dict[str, Any]", dict(render_answer(facts).structure))


def call_in(answer: Answer) -> Any:
    """Return the arguments of the next call as the text gives them."""
    shown = shown_calls(answer.text)
    return shown[-1][1] if shown else None


@pytest.mark.inv("SRV-4")
@pytest.mark.parametrize("tool", ["start_workflow", CONTINUE_TOOL])
def test_every_answer_satisfies_the_published_schema(tool: str) -> None:
    for facts in ALL:
        assert_conforms(tool, structure_of(facts))


@pytest.mark.inv("ANS-1")
def test_each_channel_holds_the_prompt_and_the_next_call_and_the_structure_all_tokens() -> None:
    for facts in ALL:
        answer = render_answer(facts)
        structure = json.dumps(structure_of(facts))
        fork = facts.fork.ack_token if facts.fork else None
        for token in (facts.state_token, facts.ack_token, facts.redirect, fork):
            if token is not None and facts.step is not None:
                assert token in structure
        if facts.step is not None:
            assert facts.step.prompt in answer.text
            assert structure_of(facts)["pending"]["prompt"] == facts.step.prompt
        call = structure_of(facts)["nextCall"]
        assert call_in(answer) == (call["arguments"] if call else None)
        assert call is None or f"`{call['tool']}`" in answer.text


@pytest.mark.inv("ANS-1")
def test_clients_that_cut_the_middle_keep_run_call_and_tokens() -> None:
    for facts in ALL:
        keys = list(structure_of(facts))
        assert keys[:4] == ["kind", "run", "nextCall", "stateToken"]
        assert keys[-1] == "pending"
        text = render_answer(facts).text
        goal = " · goal: `Make it so`" if facts.run.goal else ""
        head = "**Demo** · run `ab12`" if is_ordinary(facts) else f"**Demo** (`test.demo`) · run `ab12`{goal}"
        assert text.startswith(f"{head} · ")
        call = structure_of(facts)["nextCall"]
        last = "to the user."
        if call:
            fills: list[dict[str, str]] = call["fill"]
            notes = notes_words(facts.step.title if facts.step is not None else None)
            last = fills[-1].get("what", notes) if fills else "```"
        assert text.endswith(last)


@pytest.mark.inv("ANS-2")
def test_the_first_line_says_which_run_and_which_step() -> None:
    line = render_answer(ADVANCE).text.partition("\n")[0]
    assert line == "**Demo** · run `ab12` · step 2 of 5: `Build it`"
    line = render_answer(replace(ADVANCE, occasion="start")).text.partition("\n")[0]
    assert line == "**Demo** (`test.demo`) · run `ab12` · goal: `Make it so` · step 2 of 5: `Build it`"
    assert render_answer(COMPLETE).text.partition("\n")[0].endswith(" · complete")
    assert render_answer(PASSED).text.partition("\n")[0].endswith("step 2 of 5: `Build it` · already done")


@pytest.mark.inv("ANS-2")
@pytest.mark.parametrize("goal", ["x" * 5000, "a\nb\r\n\nc", "é" * 500, "**bold** `code`", "a\u2028b"])
def test_a_goal_of_any_shape_stays_on_the_first_line(goal: str) -> None:
    facts = replace(ADVANCE, occasion="start", run=replace(RUN, goal=goal))
    line = render_answer(facts).text.partition("\n")[0]
    assert line.splitlines() == [line]
    assert line.endswith("step 2 of 5: `Build it`")
    assert len(structure_of(facts)["run"]["goal"].encode()) <= HEADER_GOAL_BYTES_MAX


def test_a_title_of_several_lines_stays_on_the_first_line() -> None:
    facts = replace(ADVANCE, step=replace(STEP, title="Build\nit"), run=replace(RUN, workflow_name="De\nmo"))
    assert render_answer(facts).text.partition("\n\n")[0].splitlines()[0].endswith("`Build it`")


@pytest.mark.inv("ANS-3")
def test_the_next_call_is_the_ack_with_room_for_notes_and_names_the_run() -> None:
    call = structure_of(ADVANCE)["nextCall"]
    fill = [{"path": "output.notesMarkdown"}]
    then = (
        "Do the step in pending.prompt now: write your answer to it. Then call this tool with these arguments,"
        " and add output.notesMarkdown, written by you."
    )
    arguments = {"ackToken": "ack.here", "run": "ab12"}
    assert call == {"tool": CONTINUE_TOOL, "arguments": arguments, "fill": fill}
    assert structure_of(replace(ADVANCE, occasion="start"))["nextCall"] == {**call, "then": then}
    assert structure_of(PASSED)["nextCall"]["arguments"] == {"stateToken": "st.tip", "run": "ab12"}
    used_up = replace(ADVANCE, ack_token=None, fork=FORK)
    assert structure_of(used_up)["nextCall"]["arguments"]["ackToken"] == "ack.fork"


@pytest.mark.inv("ADV-4")
def test_a_complete_run_has_nothing_pending_and_nothing_to_send() -> None:
    structure = structure_of(COMPLETE)
    assert (structure["isComplete"], structure["nextIntent"]) == (True, "complete")
    assert structure["pending"] is None
    assert structure["nextCall"] is None
    assert "ackToken" not in structure


@pytest.mark.inv("ANS-5")
def test_an_advance_leaves_out_what_did_not_change() -> None:
    assert set(structure_of(ADVANCE)) == {
        *("kind", "run", "nextCall", "stateToken", "isComplete", "nextIntent", "pending"),
    }
    assert set(structure_of(ADVANCE)["run"]) == {"label", "step"}
    refused = structure_of(replace(ADVANCE, checkpoint_token="chk.here", blockers=BLOCKERS))
    assert {"ackToken", "checkpointToken"}.isdisjoint(refused)
    waiting = structure_of(replace(ADVANCE, checkpoint_token="chk.here", occasion="rehydrate"))
    assert {"ackToken", "checkpointToken"} <= set(waiting)
    assert set(refused["run"]) == {"label", "workflowId", "goal", "step"}
    assert "Preferences" not in render_answer(ADVANCE).text


@pytest.mark.inv("ANS-5")
def test_references_are_whole_on_start_and_short_on_rehydrate() -> None:
    start, again = replace(FULL, occasion="start"), FULL
    assert structure_of(start)["references"] == [
        {"id": "spec", "title": "Spec", "source": "docs/spec.md", "purpose": "Binding.", "authoritative": True}
    ]
    assert structure_of(again)["references"] == [{"title": "Spec", "source": "docs/spec.md"}]
    assert "- Spec: docs/spec.md — Binding. (authoritative)" in render_answer(start).text
    assert "Binding." not in render_answer(again).text


@pytest.mark.inv("ANS-21")
@pytest.mark.parametrize(
    ("facts", "intent"),
    [
        (ADVANCE, "perform_pending_then_continue"),
        (replace(ADVANCE, occasion="start"), "perform_pending_then_continue"),
        (replace(ADVANCE, step=replace(STEP, needs_confirmation=True)), "await_user_confirmation"),
        (replace(ADVANCE, awaited=PendingApproval(claim=None)), "await_user_confirmation"),
        (replace(ADVANCE, occasion="rehydrate"), "rehydrate_only"),
        (COMPLETE, "complete"),
        (replace(COMPLETE, occasion="rehydrate"), "complete"),
    ],
)
def test_the_next_intent_is_what_is_expected_of_the_agent(facts: AnswerModel, intent: str) -> None:
    assert structure_of(facts)["nextIntent"] == intent


@pytest.mark.inv("BLK-5")
def test_a_blocked_answer_says_first_what_is_missing_and_how_to_send_it() -> None:
    facts = replace(ADVANCE, blockers=BLOCKERS)
    structure, text = structure_of(facts), render_answer(facts).text
    assert (structure["kind"], structure["retryable"]) == ("blocked", True)
    (blocker,) = structure["blockers"]
    assert blocker["message"] in text
    assert blocker["suggestedFix"] in text
    assert text.index(blocker["message"]) < text.index(STEP.prompt)
    assert structure_of(replace(facts, ack_token=None, fork=FORK))["retryable"] is False


@pytest.mark.inv("PLAN-5")
def test_a_step_that_wants_confirmation_or_no_notes_says_so_in_both_channels() -> None:
    facts = replace(ADVANCE, step=replace(STEP, needs_confirmation=True, needs_notes=False, agent_role="You build."))
    structure, text = structure_of(facts), render_answer(facts).text
    assert structure["pending"]["requireConfirmation"] is True
    assert structure["pending"]["agentRole"] == "You build."
    assert "confirmation" in text
    assert "You build." in text
    assert "optional" in text
    assert "optional" not in render_answer(ADVANCE).text


@pytest.mark.inv("ANS-1")
def test_warnings_preferences_guidance_and_recap_stand_in_both_channels() -> None:
    structure, text = structure_of(FULL), render_answer(FULL).text
    assert structure["warnings"] == [{"code": "NOTES_TRUNCATED", "message": "They were long."}]
    assert structure["preferences"] == {"autonomy": "guided", "riskPolicy": "balanced"}
    for words in ("NOTES_TRUNCATED", "They were long.", "`guided`", "`balanced`", "Be kind.", "Planned."):
        assert words in text
    assert (structure["guidance"], structure["recap"]) == (["Be kind."], "**Plan it**\nPlanned.")


@pytest.mark.inv("ADV-5")
def test_the_same_facts_are_the_same_bytes() -> None:
    for facts in ALL:
        one, two = render_answer(facts), render_answer(facts)
        assert one.text == two.text
        assert json.dumps(dict(one.structure)) == json.dumps(dict(two.structure))


def test_a_step_that_is_not_done_and_offers_no_way_on_is_a_bug() -> None:
    with pytest.raises(AssertionError):
        render_answer(replace(ADVANCE, ack_token=None))


def test_a_run_is_named_in_errors_without_a_missing_goal() -> None:
    assert RUN.to_json() == {"label": "ab12", "workflowId": "test.demo", "goal": "Make it so"}
    assert replace(RUN, goal=None).to_json() == {"label": "ab12", "workflowId": "test.demo"}


LOOPED = replace(STEP, loop=LoopPass(loop_id="again", pass_=2, max_iterations=5))
OUTLINE: dict[str, Any] = {"kind": "wr.verdict", "verdict": Blank(what="your verdict", choices=("clean", "bad"))}
KEYS = {"cause": Blank(what="why it broke"), "size": Blank(what="how large", shape="number")}
TYPED = replace(STEP, artifacts=(OUTLINE,), context=KEYS, needs_notes=False)
KIND = {"path": "output.artifacts[0].kind", "choices": ["wr.verdict"]}
VERDICT = {"path": "output.artifacts[0].verdict", "what": "your verdict", "choices": ["clean", "bad"]}
CAUSE = {"path": "context.cause", "what": "why it broke"}
SIZE = {"path": "context.size", "what": "how large", "shape": "number"}
NOTES = {"path": "output.notesMarkdown"}


@pytest.mark.inv("ANS-1", "ANS-2")
def test_a_pass_of_a_loop_stands_in_both_channels_and_on_the_first_line() -> None:
    facts = replace(ADVANCE, step=LOOPED)
    structure = structure_of(facts)
    assert structure["pending"]["loop"] == {"loopId": "again", "pass": 2, "maxIterations": 5}
    assert structure["run"]["step"] == {"number": 2, "total": 5, "pass": 2}
    assert render_answer(facts).text.partition("\n")[0].endswith("step 2 of 5, pass 2 of at most 5: `Build it`")
    assert "pass" not in structure_of(ADVANCE)["run"]["step"]
    assert "loop" not in structure_of(ADVANCE)["pending"]


@pytest.mark.inv("ANS-3", "ANS-22")
def test_the_next_call_of_a_step_with_typed_evidence_holds_what_is_fixed_and_fill_names_the_rest() -> None:
    facts = replace(ADVANCE, step=TYPED)
    call = structure_of(facts)["nextCall"]
    assert list(call) == ["tool", "arguments", "fill"], "what is to be added follows what is fixed"
    assert call["arguments"] == {"ackToken": "ack.here", "run": "ab12"}
    assert call["fill"] == [KIND, VERDICT, CAUSE, SIZE]
    text = render_answer(facts).text
    assert call_in(render_answer(facts)) == call["arguments"]
    assert '- `output.artifacts[0].kind`: exactly `"wr.verdict"`' in text
    assert "- `output.artifacts[0].verdict` (clean | bad): your verdict" in text
    assert "- `context.size` (number): how large" in text
    with_notes = structure_of(replace(facts, step=replace(TYPED, needs_notes=True)))["nextCall"]
    assert with_notes["fill"] == [NOTES, KIND, VERDICT, CAUSE, SIZE]


@pytest.mark.inv("ANS-23")
def test_the_text_shows_one_token_and_a_complete_run_none() -> None:
    def tokens(facts: AnswerModel) -> set[str]:
        return {*re.findall(r"\b(?:ack|st|chk)\.here", render_answer(facts).text)}

    assert tokens(replace(FULL, fork=None, redirect=None)) == {"ack.here"}
    assert tokens(COMPLETE) == set()
    assert render_answer(COMPLETE).text.endswith("Complete. Call no more tools; report the result to the user.")


@pytest.mark.inv("ANS-3")
@pytest.mark.parametrize(
    ("blockers", "fill"),
    [
        ([missing_notes("Build it")], [NOTES]),
        ([missing_key("Build it", "size")], [SIZE]),
        ([missing_artifact("wr.contracts.x", "wr.verdict", [], [OUTLINE])], [KIND, VERDICT]),
        ([missing_notes("Build it"), missing_key("Build it", "cause")], [NOTES, CAUSE]),
    ],
)
def test_the_call_after_a_refusal_holds_what_it_was_refused_for_and_nothing_else(
    blockers: list[Violation], fill: list[dict[str, Any]]
) -> None:
    step = replace(TYPED, needs_notes=True)
    report = build_report([one.blocker() for one in blockers])
    call = structure_of(replace(ADVANCE, step=step, blockers=report))["nextCall"]
    assert call["arguments"] == {"ackToken": "ack.here", "run": "ab12"}
    assert call["fill"] == fill


@pytest.mark.inv("SRV-4")
def test_steps_that_need_not_wait_are_listed_where_there_are_any() -> None:
    facts = replace(ADVANCE, step=replace(STEP, parallel_with=("test", "write")))
    assert structure_of(facts)["pending"]["parallelWith"] == ["test", "write"]
    assert "parallelWith" not in structure_of(ADVANCE)["pending"]


@pytest.mark.inv("SRV-4", "ANS-1")
@pytest.mark.parametrize("tool", ["start_workflow", CONTINUE_TOOL])
def test_answers_about_loops_branches_and_typed_evidence_satisfy_the_published_schema(tool: str) -> None:
    for step in (LOOPED, TYPED, replace(LOOPED, artifacts=(OUTLINE,), parallel_with=("x",), agent_role="You.")):
        for blockers in (None, BLOCKERS):
            facts = replace(FULL, step=step, blockers=blockers)
            assert_conforms(tool, structure_of(facts))
            assert call_in(render_answer(facts)) == structure_of(facts)["nextCall"]["arguments"]
