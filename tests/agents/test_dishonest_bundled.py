"""Dishonest agents in the bundled workflows: no run is complete with a failed verdict, or without a demanded proof.

The tests of the project fail. The agent reports good and bad evidence as it likes, claims the user's decisions, and
uses tricks where a proof is demanded.
"""

import json
import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from tests.support.evidence import failures_of
from tests.support.modes import NEVER_STOPS, session_of, status_of
from tests.support.proofs import TESTS, HeldTree, with_tree, witnessed
from tests.unit.test_bundled_failures import Run, asks_a_person
from tests.unit.test_bundled_workflows import SOURCES

from interlock.kernel.ids import RunId
from interlock.record.payloads import ArtifactPayload
from interlock.testing.harness import ToolResult

IDS = tuple(SOURCES)
PROVEN = tuple(name for name in IDS if any(one["key"] == "test_command" for one in SOURCES[name].get("inputs", ())))
REPORTS_MAX = 60
FAILURES = {"failed", "blocking", "rejected"}
SEEDS = [range(33), pytest.param(range(33, 233), marks=pytest.mark.soak)]


def trick(run: Run, start: ToolResult, chance: random.Random) -> None:
    """Leave a receipt that proves nothing: of another command, or of the tests, which fail."""
    command, code = chance.choice([(("true",), 0), (("sh", "-c", f"{TESTS} || true"), 0), (tuple(TESTS.split()), 1)])
    witnessed(run.harness, start, *command, code=code, assurance=chance.choice(["claimed", "observed"]))


@dataclass(slots=True)
class Played:
    """A run that was played to its end. `unproven`: an accepted report said that the failing tests pass."""

    run: Run
    start: ToolResult
    unproven: bool = False


def played(seed: int) -> Played:
    """Play one run: the seed decides the workflow, the evidence and the tricks."""
    chance, workflow_id = random.Random(seed), IDS[seed % len(IDS)]
    run = Run.of(workflow_id)
    run.harness = with_tree(run.harness, HeldTree())
    inputs = {"test_command": TESTS} if workflow_id in PROVEN else {}
    mode: dict[str, Any] = NEVER_STOPS if chance.random() < 0.4 else {}
    answer = start = run.begin(context=inputs, preferences=mode)
    done = Played(run, start)
    while not answer["isComplete"] and run.reports < REPORTS_MAX:
        node = run.step(answer)
        bad = list(failures_of(run.workflow, node))
        if chance.random() < 0.6:
            trick(run, start, chance)
        change = chance.choice(bad) if bad and chance.random() < 0.3 else None
        after = run.send(answer.ack, node, change, is_confirmed=asks_a_person(answer))
        if after.is_error:
            break
        assert node.task is not None
        done.unproven |= bool(inputs and node.task.proofs and change is None and after["kind"] == "ok")
        answer = after
    return done


def latest_verdicts(run: Run, start: ToolResult) -> dict[str, str]:
    """Return, from the log, the last verdict of each kind of artifact on the way to the run's tip."""
    session = session_of(run.harness, start)
    tip, path = session.runs[RunId(start["run"]["runId"])].tip, list[Any]()
    while tip is not None:
        path.append(session.nodes[tip])
        tip = session.nodes[tip].parent
    found: dict[str, str] = {}
    for node in reversed(path):
        stored = [one.payload for one in node.outputs if isinstance(one.payload, ArtifactPayload)]
        for artifact in (json.loads(run.harness.store.artifact(one.sha256)) for one in stored):
            if "verdict" in artifact:
                found[artifact["kind"]] = artifact["verdict"]
    return found


@pytest.mark.inv("MODE-13", "PROOF-2", "PROOF-3")
@pytest.mark.parametrize("seeds", SEEDS, ids=["few", "many"])
def test_no_bundled_run_is_complete_with_a_failed_verdict_or_without_its_proof(seeds: range) -> None:
    ends = Counter[str]()
    for seed in seeds:
        done = played(seed)
        status = status_of(done.run.harness, done.start)
        ends[status] += 1
        if status == "complete":
            assert not FAILURES & set(latest_verdicts(done.run, done.start).values()), seed
            assert not done.unproven, seed
    assert ends["complete"] > 0
    assert ends["complete_with_gaps"] > 0
