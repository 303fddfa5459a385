"""The errands that forgetful agents are sent on: small workflows of each kind, and two of them in one chat."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from mcp import Client, StdioServerParameters, types

from interlock.engine.gates import NOBODY_ASKED, Asking, Reply
from interlock.testing.effects import wrong_effects
from interlock.testing.forgetful import Errand, ForgetfulAgent, Worked
from interlock.testing.harness import Era, Harness, call_through, linear_workflow
from interlock.testing.load import Site
from interlock.testing.reading import Channel

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
_SLIPS = 0.2
"""How likely agents on errands slip on a call."""
DOCUMENTS: tuple[Document, ...] = (_LINEAR, _LOOPING, _GATED)
"""The workflows of all errands."""

_LAMP = Errand(workflow_id="errand.linear", goal="Mend the lamp of the lighthouse", word="lighthouse")
_BARN = Errand(workflow_id="errand.looping", goal="Paint the barn before winter", word="barn")
_BRIDGE = Errand(workflow_id="errand.gated", goal="Open the bridge to carts", word="bridge")
ERRANDS: Mapping[Kind, tuple[Errand, ...]] = {
    "linear": (_LAMP,),
    "looping": (_BARN,),
    "gated": (_BRIDGE,),
    "two runs": (_LAMP, replace(_LAMP, goal="Mend the pump of the windmill", word="windmill")),
}
"""What each kind of errand is. Two runs of one workflow are the hardest to tell apart."""

YES = Asking(client_can=True, reply=Reply(action="accept", client="a person", answers={}))
"""Somebody who is asked through their client, and says yes; where nobody can be asked, an agent claims it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of an errand: how it was worked on, the calls it takes without a slip, and what was done wrong."""

    worked: Worked
    calls_needed: int
    wrong: tuple[str, ...]

    @property
    def slips(self) -> int:
        """How often the agent slipped."""
        return self.worked.slips.total()

    @property
    def extra(self) -> int:
        """The calls beyond those that it takes without a slip."""
        return self.worked.calls - self.calls_needed


def agent_for(kind: Kind, seed: int, channel: Channel, slips: float) -> ForgetfulAgent:
    """Return the agent of a seed. Every other one begins its runs in one session."""
    return ForgetfulAgent(errands=ERRANDS[kind], seed=seed, channel=channel, slips=slips, is_joined=seed % 2 == 1)


def asking_for(kind: Kind, seed: int) -> Asking:
    """Return how the person of a seed is asked: every other client can ask."""
    return YES if kind == "gated" and seed % 2 == 1 else NOBODY_ASKED


def sent_on(harness: Harness, kind: Kind, seed: int, channel: Channel, slips: float = _SLIPS) -> Outcome:
    """Send an agent on an errand, over a harness that holds `DOCUMENTS` and nothing else.

    Raises:
        LostAgentError: The answers do not lead to the end.
    """
    asked = replace(harness, asking=asking_for(kind, seed))
    return _outcome(harness, kind, seed, agent_for(kind, seed, channel, slips).work(asked.call))


async def sent_over_stdio(root: Path, kind: Kind, seed: int, channel: Channel, era: Era = "auto") -> Outcome:
    """Send an agent on an errand through a client of a server process that keeps its data below `root`.

    Raises:
        LostAgentError: The answers do not lead to the end.
    """
    site = Site(root=root)
    for document in DOCUMENTS:
        site.add_workflow(document)
    program, *arguments = site.command()
    server = StdioServerParameters(command=program, args=arguments, env=site.environment(), cwd=str(root))
    callback = _confirmed if asking_for(kind, seed).client_can else None
    async with Client(server, mode=era, elicitation_callback=callback) as client:
        worked = await agent_for(kind, seed, channel, _SLIPS).work_async(partial(call_through, client))
    return _outcome(Harness.on_disk(site.data_dir, *DOCUMENTS), kind, seed, worked)


async def _confirmed(context: object, params: types.ElicitRequestParams) -> types.ElicitResult:  # noqa: ARG001 — a yes to all
    return types.ElicitResult(action="accept", content={"decision": "confirm"})


def _outcome(harness: Harness, kind: Kind, seed: int, worked: Worked) -> Outcome:
    sure = replace(Harness.in_memory(*DOCUMENTS), asking=asking_for(kind, seed))
    needed = agent_for(kind, seed, "structure", 0).work(sure.call)
    wrong = tuple(f"run {one.label} {one.found}" for one in wrong_effects(harness, ERRANDS[kind]))
    return Outcome(worked=worked, calls_needed=needed.calls, wrong=wrong)
