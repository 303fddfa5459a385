"""Forgetful agents arrive, do nothing wrong on the way, and need few calls more; and the judge sees what is wrong."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from benchmarks.many_sessions import UnsyncedFiles
from tests.agents.agent import Agent, LostAgentError, notes_on
from tests.agents.faults import FAULTS, LOST_ANSWER, LOST_MEMORY, SLIPS
from tests.agents.judge import faults_in_log
from tests.agents.reading import Channel
from tests.agents.scenarios import DOCUMENTS, SCENARIOS, YES, Kind, Outcome, agent_for, play, play_over_stdio

from interlock.engine.gates import NO_APPROVAL
from interlock.kernel.errors import ErrorCode
from interlock.service.clock import SystemClock
from interlock.store.local.store import LocalStore
from interlock.testing.harness import ERAS, Era, Harness, ToolResult

CHANNELS: tuple[Channel, ...] = get_args(Channel)
EXTRA_MAX = 1.2


def sent(kind: Kind, seeds: range, channel: Channel, root: Path) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for seed in seeds:
        path = root / f"{seed}"
        harness = Harness.over(LocalStore(path, files=UnsyncedFiles(path)), *DOCUMENTS, clock=SystemClock())
        outcomes.append(play(harness, kind, seed, channel))
    return outcomes


def hold(outcomes: list[Outcome]) -> None:
    assert all(outcome.work.is_complete for outcome in outcomes)
    assert [outcome.wrong for outcome in outcomes if outcome.wrong] == []
    slips, extra = sum(outcome.slips for outcome in outcomes), sum(outcome.extra for outcome in outcomes)
    assert slips > len(outcomes) / 2
    assert extra <= EXTRA_MAX * slips


@pytest.mark.inv("ANS-14")
@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("kind", SCENARIOS)
def test_a_forgetful_agent_arrives_and_does_nothing_wrong(kind: Kind, channel: Channel, tmp_path: Path) -> None:
    hold(sent(kind, range(12), channel, tmp_path))


@pytest.mark.soak
@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("kind", SCENARIOS)
def test_a_thousand_forgetful_agents_arrive(kind: Kind, channel: Channel, tmp_path: Path) -> None:
    hold(sent(kind, range(1_000), channel, tmp_path))


@pytest.mark.asyncio
@pytest.mark.inv("ANS-14")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(("kind", "channel"), [("gated", "text"), ("gated", "structure"), ("two runs", "text")])
async def test_a_forgetful_agent_arrives_over_stdio(kind: Kind, channel: Channel, era: Era, tmp_path: Path) -> None:
    outcome = await play_over_stdio(tmp_path, kind, {"text": 7, "structure": 6}[channel], channel, era)
    assert outcome.work.is_complete
    assert outcome.wrong == ()
    assert outcome.slips > 0


def test_agents_slip_in_every_way(tmp_path: Path) -> None:
    slips, all_of_them = Counter[str](), {*SLIPS, LOST_ANSWER, LOST_MEMORY}
    for seed in range(40):
        if slips.keys() == all_of_them:
            break
        (outcome,) = sent("two runs", range(seed, seed + 1), "structure", tmp_path)
        slips += outcome.work.faults
    assert slips.keys() == all_of_them


@pytest.mark.parametrize("channel", CHANNELS)
def test_agents_that_also_send_garbage_arrive_and_err_in_every_way(channel: Channel) -> None:
    faults = Counter[str]()
    for seed in range(10):
        agent = Agent(SCENARIOS["two runs"], seed=seed, fault_rate=0.5, channel=channel)
        work = agent.work(Harness.in_memory(*DOCUMENTS).call)
        assert work.is_complete
        assert ErrorCode.INTERNAL_ERROR not in work.errors
        faults += work.faults
    assert faults.keys() == {*FAULTS, LOST_ANSWER, LOST_MEMORY}


def test_an_agent_that_never_slips_needs_the_fewest_calls() -> None:
    outcome = play(Harness.in_memory(*DOCUMENTS), "linear", 0, "text", fault_rate=0)
    assert (outcome.work.calls, outcome.extra, outcome.slips) == (6, 0, 0)


def test_an_agent_whose_answers_say_nothing_gets_lost() -> None:
    def mute(_tool: str, _arguments: object) -> ToolResult:
        return ToolResult(structure={"code": "INTERNAL_ERROR", "message": "", "suggestion": ""}, text="", is_error=True)

    with pytest.raises(LostAgentError, match="400 calls were not enough"):
        agent_for("linear", 0, "structure", 0).work(mute)


# What an agent could do wrong, done on purpose.

(LAMP,) = SCENARIOS["linear"]
Deed = Callable[[Harness], None]


def started(harness: Harness, goal: str = LAMP.goal) -> ToolResult:
    return harness.start(LAMP.workflow_id, goal=goal)


def reported(harness: Harness, answer: ToolResult, notes: str | None = None) -> ToolResult:
    return harness.follow(answer, notes or notes_on(LAMP, answer["pending"]["title"]))


def finished(harness: Harness, answer: ToolResult) -> None:
    while not answer["isComplete"]:
        answer = reported(harness, answer)


def test_the_judge_finds_nothing_wrong_with_an_errand_that_was_done() -> None:
    harness = Harness.in_memory(*DOCUMENTS)
    finished(harness, started(harness))
    assert faults_in_log(harness, [LAMP]) == []


def doubled(harness: Harness) -> None:
    finished(harness, started(harness))
    finished(harness, started(harness))


def left_open(harness: Harness) -> None:
    reported(harness, started(harness))


def never_begun(harness: Harness) -> None:
    assert harness.store.sessions() == ()


def of_another_run(harness: Harness) -> None:
    finished(harness, reported(harness, started(harness), "For the windmill: did Step survey."))


def of_another_step(harness: Harness) -> None:
    finished(harness, reported(harness, started(harness), notes_on(LAMP, "Step report")))


def redone(harness: Harness) -> None:
    first = started(harness)
    second = reported(harness, first)
    fork = harness.rehydrate(first)["fork"]["ackToken"]
    finished(harness, harness.advance(fork, notes_on(LAMP, "Step survey")))
    assert second is not None


def nobodys(harness: Harness) -> None:
    finished(harness, started(harness))
    finished(harness, started(harness, goal="Something else"))


@pytest.mark.parametrize(
    ("deed", "found"),
    [
        (doubled, "2 runs for the lighthouse"),
        (left_open, "is not complete"),
        (never_begun, "0 runs for the lighthouse"),
        (of_another_run, "has the notes"),
        (of_another_step, "lost the evidence of Step survey"),
        (redone, "was forked"),
        (nobodys, "is nobody's"),
    ],
)
def test_the_judge_finds_what_is_wrong(deed: Deed, found: str) -> None:
    harness = Harness.in_memory(*DOCUMENTS)
    deed(harness)
    assert any(found in wrong for wrong in faults_in_log(harness, [LAMP]))


@pytest.mark.parametrize("asking", [NO_APPROVAL, YES])
def test_a_gate_is_passed_by_a_person_or_by_a_claim(asking: object) -> None:
    harness = replace(Harness.in_memory(*DOCUMENTS), asking=asking)
    worked = agent_for("gated", 0, "text", 0).work(harness.call)
    assert worked.is_complete
    assert worked.calls == 4
