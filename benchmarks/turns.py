"""What a turn of a driver costs beside its model and its tools: the server over stdio, a model that answers at once."""

import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
from mcp import types

from benchmarks.table import Figure, at_most, ms, noted
from interlock.drive.agent.profile import Profile
from interlock.drive.client import StartOptions, ToolCaller
from interlock.drive.conversation.messages import ToolCall
from interlock.drive.models.protocol import InferenceRequest, InferenceResponse
from interlock.drive.run.driver import Driver, Progress
from interlock.drive.run.setup import ServerCommand, Surroundings, connect, equip

TURN_MS_MAX = 15


class InstantModel:
    """Notes progress at once, and reports at the end."""

    name = "instant"

    def __init__(self, turns: int) -> None:
        self._turns = turns

    async def infer(self, request: InferenceRequest) -> InferenceResponse:
        """See `Model.infer`."""
        name = "report_step" if request.place.turn == self._turns else "note_progress"
        notes = f"Turn {request.place.turn}: one more part of the work was done, with a result of its own."
        call = ToolCall(call_id="", name=name, arguments={"notes": notes})
        return InferenceResponse(content=None, calls=(call,), finish_reason="tool_use", model="instant")


class TimedCaller:
    """Passes calls on to the server, and adds up how long its answers took."""

    def __init__(self, caller: ToolCaller) -> None:
        self._caller, self.seconds = caller, 0.0

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None) -> types.CallToolResult:
        """See `ToolCaller.call_tool`."""
        began = time.perf_counter()
        try:
            return await self._caller.call_tool(name, arguments)
        finally:
            self.seconds += time.perf_counter() - began

    async def read_resource(self, uri: str) -> types.ReadResourceResult:
        """See `ToolCaller.read_resource`."""
        return await self._caller.read_resource(uri)


def figures(*, is_quick: bool) -> list[Figure]:
    """Return the median time of one turn: the driver's own, and the server's with the append to the disk."""
    turns = 20 if is_quick else 120
    with tempfile.TemporaryDirectory() as root:
        own, server = anyio.run(_times, Path(root), turns)
    return [
        at_most("a turn of a driver, beside its model, tools and server", ms(own), TURN_MS_MAX, " ms"),
        noted("the server's part of a turn, with its append", f"{ms(server):.2f} ms"),
    ]


async def _times(root: Path, turns: int) -> tuple[list[float], list[float]]:
    argv = (sys.executable, "-m", "interlock", "serve", "--data-dir", str(root / "data"), "--workspace", str(root))
    chain = {"max_tool_turns": turns + 1}
    profile = Profile.model_validate({"role": "x", "turn_chain": chain, "constraints": {"max_turns": turns}})
    marks: list[tuple[float, float]] = []
    async with AsyncExitStack() as exits:
        caller = TimedCaller(await connect(ServerCommand(argv=argv, environment={}), exits))

        def mark(_: Progress) -> None:
            marks.append((time.perf_counter(), caller.seconds))

        equipment = equip(profile, InstantModel(turns), caller, Surroundings(workspace=root))
        await exits.enter_async_context(equipment.toolbox)
        await Driver(equipment, on_progress=mark).start(StartOptions(workflow_id="wr.documentation"))
    pairs = list(zip(marks[::2], marks[1::2], strict=False))
    served = [after[1] - before[1] for before, after in pairs]
    return [after[0] - before[0] - one for (before, after), one in zip(pairs, served, strict=True)], served
