"""Scenarios for agents that slip: a small workflow of each kind, and two runs in one chat."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from mcp import Client, StdioServerParameters, types
from tests.agents.agent import Agent, Task, Work
from tests.agents.faults import SLIPS
from tests.agents.judge import faults_in_log
from tests.agents.reading import Channel
from tests.support.forkserver import forking_python
from tests.support.load import Site

from interlock.engine.gates import NO_APPROVAL, ApprovalContext, Reply
from interlock.testing.harness import Era, Harness, call_through, linear_workflow

Kind: TypeAlias = Literal["linear", "looping", "gated", "two runs"]
Document: TypeAlias = Mapping[str, Any]

_LINEAR = linear_workflow(
    "errand.linear",
    "survey",
    "plan",
    {
        "id": "verdict",
        "title": "Give a verdict",
        "prompt": "Say whether it is ready.",
        "outputContract": {"contractRef": "wr.contracts.gate_verdict"},
    },
    "repair",
    "report",
)
_LOOPING = linear_workflow(
    "errand.looping",
    "survey",
    {
        "loopId": "refine",
        "type": "loop",
        "title": "Refine",
        "maxIterations": 5,
        "while": {"kind": "loop_control"},
        "body": [
            {"id": "improve", "title": "Improve it", "prompt": "Improve one thing."},
            {
                "id": "judge",
                "title": "Judge it",
                "prompt": "Is another pass worth it?",
                "outputContract": {"contractRef": "wr.contracts.loop_control"},
            },
        ],
    },
    "report",
)
_GATED = linear_workflow(
    "errand.gated",
    "survey",
    {"id": "release", "title": "Release it", "prompt": "Get it out.", "requireConfirmation": True},
    "report",
)
_FAULT_RATE = 0.2
DOCUMENTS: tuple[Document, ...] = (_LINEAR, _LOOPING, _GATED)
"""The workflows of all scenarios."""

_LAMP = Task("errand.linear", "Mend the lamp of the lighthouse", "lighthouse")
_BARN = Task("errand.looping", "Paint the barn before winter", "barn")
_BRIDGE = Task("errand.gated", "Open the bridge to carts", "bridge")
SCENARIOS: Mapping[Kind, tuple[Task, ...]] = {
    "linear": (_LAMP,),
    "looping": (_BARN,),
    "gated": (_BRIDGE,),
    "two runs": (_LAMP, replace(_LAMP, goal="Mend the pump of the windmill", word="windmill")),
}
"""Two runs of one workflow are the hardest to tell apart."""

YES = ApprovalContext(client_can=True, reply=Reply(action="accept", client="a person", answers={}))
"""A person who is asked through the client and says yes; otherwise the agent claims a confirmation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a scenario: the agent's work, the calls it takes without a slip, and what the judge finds wrong."""

    work: Work
    calls_needed: int
    wrong: tuple[str, ...]

    @property
    def slips(self) -> int:
        """How often the agent slipped."""
        return self.work.faults.total()

    @property
    def extra(self) -> int:
        """The calls beyond those that it takes without a slip."""
        return self.work.calls - self.calls_needed


def agent_for(kind: Kind, seed: int, channel: Channel, fault_rate: float) -> Agent:
    """Return the agent of a seed. Every other one begins its runs in one session."""
    return Agent(
        SCENARIOS[kind],
        seed=seed,
        fault_rate=fault_rate,
        faults=tuple(SLIPS),
        channel=channel,
        is_joined=seed % 2 == 1,
        calls_max=400,
    )


def asking_for(kind: Kind, seed: int) -> ApprovalContext:
    """Return how the person of a seed is asked: every other client can ask."""
    return YES if kind == "gated" and seed % 2 == 1 else NO_APPROVAL


def play(harness: Harness, kind: Kind, seed: int, channel: Channel, fault_rate: float = _FAULT_RATE) -> Outcome:
    """Play a scenario over a harness that holds `DOCUMENTS` and nothing else.

    Raises:
        LostAgentError: The answers do not lead to the end.
    """
    asked = replace(harness, asking=asking_for(kind, seed))
    return _outcome(harness, kind, seed, agent_for(kind, seed, channel, fault_rate).work(asked.call))


async def play_over_stdio(root: Path, kind: Kind, seed: int, channel: Channel, era: Era = "auto") -> Outcome:
    """Play a scenario through a client of a server process that keeps its data below `root`.

    Raises:
        LostAgentError: The answers do not lead to the end.
    """
    site = Site(root=root)
    for document in DOCUMENTS:
        site.add_workflow(document)
    _, *arguments = site.command()
    server = StdioServerParameters(command=forking_python(), args=arguments, env=site.environment(), cwd=str(root))
    callback = _confirmed if asking_for(kind, seed).client_can else None
    async with Client(server, mode=era, elicitation_callback=callback) as client:
        work = await agent_for(kind, seed, channel, _FAULT_RATE).work_async(partial(call_through, client))
    return _outcome(Harness.on_disk(site.data_dir, *DOCUMENTS), kind, seed, work)


async def _confirmed(context: object, params: types.ElicitRequestParams) -> types.ElicitResult:  # noqa: ARG001 — a yes to all
    return types.ElicitResult(action="accept", content={"decision": "confirm"})


def _outcome(harness: Harness, kind: Kind, seed: int, work: Work) -> Outcome:
    sure = replace(Harness.in_memory(*DOCUMENTS), asking=asking_for(kind, seed))
    needed = agent_for(kind, seed, "structure", 0).work(sure.call)
    return Outcome(work=work, calls_needed=needed.calls, wrong=tuple(faults_in_log(harness, SCENARIOS[kind])))
