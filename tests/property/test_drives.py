"""Random drives of random plans by several agents whose models fail: what is worked, done and counted agrees."""

import random
from typing import Any, cast

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.drive import Answer, FakeEffects, profile, report, said, team
from tests.support.flow import Document, declared, loop, parallel, step
from tests.support.shares import examples
from tests.support.valid_schemas import schemas_are_checked_once as schemas_are_checked_once  # noqa: PLC0414 — a fixture

from interlock.drive.agent.profile import Profile
from interlock.drive.client import StartOptions
from interlock.drive.faults import Fault, TurnError
from interlock.drive.models.protocol import InferenceRequest, InferenceResponse, Usage
from interlock.drive.run.result import DriveResult
from interlock.record.outcome import Blocked
from interlock.service.run.context import load_run_context
from interlock.service.run.plans import Plans
from interlock.service.run.turns import turns_of
from interlock.testing.harness import Harness

pytestmark = pytest.mark.exhaustive

FLAGS = ("red", "green")
KINDS = ("parallel", "parallel", "handoff")
FAILURES = ("fallback", "retry", "escalate")


class Counting:
    """A model that fails in every way at random, and counts what it used and where it was asked."""

    def __init__(self, seed: int, *, is_sound: bool) -> None:
        self._random, self._is_sound = random.Random(seed), is_sound
        self.used = Usage()
        self.worked: set[str] = set()

    def __call__(self, request: InferenceRequest) -> InferenceResponse:
        self.worked.add(request.place.step_id)
        answered = self._answer(request)
        self.used += answered.usage
        return answered

    def _answer(self, request: InferenceRequest) -> InferenceResponse:
        chance = 1.0 if self._is_sound else self._random.random()
        if chance < 0.05:
            raise TurnError(Fault(code="LLM_ERROR", message="The model is down."))
        if chance < 0.2:
            return InferenceResponse(content=None, calls=(), finish_reason="error", usage=Usage(input_tokens=7))
        if chance < 0.3:
            return said(text="I think.", usage=(3, 2))
        if chance < 0.4:
            return said(("no_such_tool", {}), usage=(4, 1))
        if chance < 0.5:
            return said(("report_step", {"context": {"undeclared": 1}}), usage=(5, 1))
        return report(request)


def condition_of(flag: str, value: bool) -> Document:  # noqa: FBT001 — the value of a field
    return {"var": flag, "equals": value}


@st.composite
def plans(draw: st.DrawFn) -> Document:
    """Return a workflow of parallel branches, loops and steps whose conditions other steps decide."""
    count = iter(range(1000))
    condition = st.builds(condition_of, st.sampled_from(FLAGS), st.booleans())

    def a_step() -> Document:
        more: Document = {}
        if draw(st.integers(0, 2)) == 0:
            more["when"] = draw(condition)
        if draw(st.integers(0, 2)) == 0:
            more["set"] = [{"key": draw(st.sampled_from(FLAGS)), "value": draw(st.booleans())}]
        return step(f"s{next(count)}", **more)

    def some(depth: int) -> list[Document]:
        return [part(depth) for _ in range(draw(st.integers(1, 2)))]

    def part(depth: int) -> Document:
        kind = draw(st.integers(0, 5)) if depth else 5
        if kind < 2:
            return parallel(f"p{next(count)}", some(depth - 1), some(depth - 1))
        if kind == 2:
            return loop(f"l{next(count)}", *some(depth - 1), until=draw(condition), maxIterations=2)
        return a_step()

    inputs = [declared(flag, "boolean", required=False) for flag in FLAGS]
    steps = [parallel("both", some(1), some(1)), part(2), step("end")]
    return {"id": "test.random", "name": "Random", "inputs": inputs, "steps": steps}


def steps_of(part: object) -> list[str]:
    """Return the ids of all steps in a part of a document."""
    if isinstance(part, list):
        return [name for one in cast("list[object]", part) for name in steps_of(one)]
    if not isinstance(part, dict):
        return []
    members = cast("Document", part)
    own = [str(members["id"])] if "prompt" in members else []
    return own + [name for value in members.values() for name in steps_of(value)]


def leading(seed: int, document: Document) -> Profile:
    """Return a profile that delegates random steps to two others."""
    chosen, steps = random.Random(seed), steps_of(document["steps"])
    rules = [
        {
            "target_agent": name,
            "type": chosen.choice(KINDS),
            "steps": [one for one in steps if chosen.random() < 0.7],
            "on_failure": chosen.choice(FAILURES),
        }
        for name in ("one", "two")
    ]
    return profile(identity={"id": "lead"}, delegation=rules)


async def driven(
    harness: Harness, led: Profile, model: Counting, effects: FakeEffects, run: str | None = None
) -> DriveResult:
    """Return the result of a drive that begins a run or continues one."""
    members: dict[str, tuple[Profile, Answer]] = {
        name: (profile(identity={"id": name}), model) for name in ("one", "two")
    }
    async with team(harness, (led, model), members, effects=effects) as (crew, _, _models):
        if run is not None:
            return await crew.resume(run)
        return await crew.start(StartOptions(workflow_id="test.random", context=dict.fromkeys(FLAGS, False)))


def recorded(harness: Harness) -> tuple[set[str], Usage]:
    """Return the steps that the log reports as done, and what its turns add up to."""
    reader = harness.ports.read.reader
    (name,) = reader.sessions()
    session = reader.load(name)
    assert session is not None
    (run,) = session.runs.values()
    run_context = load_run_context(session, run, Plans(reader))
    done = set[str]()
    for advance in session.advances.values():
        pending = run_context.pending(session.nodes[advance.node])
        if not isinstance(advance.outcome, Blocked) and pending is not None:
            done.add(pending.step_id)
    totals: Any = turns_of(reader, session, run.run).to_json()["totals"]
    return done, Usage(input_tokens=totals["inputTokens"], output_tokens=totals["outputTokens"])


@pytest.mark.inv("DELEG-3", "DRIVE-8")
@settings(max_examples=examples(500, every=100), deadline=None)
@given(document=plans(), seed=st.integers(0, 2**32))
def test_the_steps_worked_are_those_done_in_the_log_and_the_sums_are_what_the_models_used(
    document: Document, seed: int
) -> None:
    harness, led, effects = Harness.in_memory(document), leading(seed, document), FakeEffects()
    failing, sound = Counting(seed, is_sound=False), Counting(seed, is_sound=True)
    result = anyio.run(driven, harness, led, failing, effects)
    assert result.usage == failing.used
    before = recorded(harness)[1]
    if result.status != "complete":
        result = anyio.run(driven, harness, led, sound, effects, result.position.run)
        assert result.usage == before + sound.used
        before += sound.used
    assert result.status == "complete", result.fault
    done, total = recorded(harness)
    assert failing.worked | sound.worked == done
    assert total == before
