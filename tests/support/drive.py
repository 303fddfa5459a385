"""Drivers over the real server in memory: a scripted model, a clock that only pauses move, and what was called."""

import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp import Client, types
from mcp.client import advertise

from interlock.drive.agent.profile import Profile
from interlock.drive.client import NO_PERSON, StartOptions, WorkflowClient
from interlock.drive.conversation.messages import ToolCall
from interlock.drive.models.protocol import InferenceRequest, InferenceResponse, Usage
from interlock.drive.run.delegation import Team
from interlock.drive.run.driver import Driver, Settled
from interlock.drive.run.result import DriveResult
from interlock.drive.run.setup import Surroundings, equip
from interlock.drive.telemetry.emission import Telemetry
from interlock.drive.tools.execute import Ask
from interlock.drive.tools.tool import Invoke, ToolHints
from interlock.drive.tools.toolbox import FunctionTool
from interlock.drive.turn import Equipment
from interlock.server.app import build_server
from interlock.testing.harness import Harness

Answer = Callable[[InferenceRequest], InferenceResponse | Awaitable[InferenceResponse]]
READ_ONLY = ToolHints(is_read_only=True, is_destructive=False, is_idempotent=True)
EFFECTFUL = ToolHints(is_destructive=False)


@dataclass(kw_only=True)
class FakeEffects:
    """Time that stands still until somebody sleeps, and ids that count."""

    time_ms: int = 1_735_689_600_000
    slept: list[float] = field(default_factory=list[float])
    ids: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def unix_ms(self) -> int:
        return self.time_ms

    def monotonic(self) -> float:
        return self.time_ms / 1000

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time_ms += round(seconds * 1000)

    def new_id(self) -> str:
        return f"00000000-0000-4000-8000-{next(self.ids):012d}"


@dataclass(kw_only=True)
class FakeModel:
    """Answers by a function, and keeps the requests."""

    answer: Answer
    requests: list[InferenceRequest] = field(default_factory=list[InferenceRequest])
    name: str = "fake"

    async def infer(self, request: InferenceRequest) -> InferenceResponse:
        self.requests.append(request)
        answered = self.answer(request)
        return answered if isinstance(answered, InferenceResponse) else await answered


@dataclass(kw_only=True)
class RecordingCaller:
    """Passes calls on to a client and keeps them. `before` may fail or change the world first."""

    client: Client
    called: list[tuple[str, dict[str, Any]]] = field(default_factory=list[tuple[str, dict[str, Any]]])
    before: Callable[[str, dict[str, Any]], None] | None = None

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None) -> types.CallToolResult:
        self.called.append((name, arguments or {}))
        if self.before is not None:
            self.before(name, arguments or {})
        return await self.client.call_tool(name, arguments)

    async def read_resource(self, uri: str) -> types.ReadResourceResult:
        return await self.client.read_resource(uri)

    def records(self) -> list[dict[str, Any]]:
        """Return the records of turns that were sent, in order."""
        outputs = [arguments.get("output", {}) for _, arguments in self.called]
        return [one for output in outputs for one in output.get("artifacts", []) if one.get("kind") == "wr.turn"]


def said(*calls: tuple[str, Any], text: str | None = None, usage: tuple[int, int] = (10, 5)) -> InferenceResponse:
    """Return the answer of a model that calls tools."""
    return InferenceResponse(
        content=text,
        calls=tuple(ToolCall(call_id="", name=name, arguments=arguments) for name, arguments in calls),
        finish_reason="tool_use" if calls else "stop",
        usage=Usage(input_tokens=usage[0], output_tokens=usage[1]),
        model="fake-1",
    )


def report(request: InferenceRequest, **more: Any) -> InferenceResponse:
    """Return the report of a step, with notes that no other turn has."""
    place = request.place
    notes = f"Turn {place.turn}: the step {place.step_id} was worked on and finished, with result number {place.turn}."
    return said(("report_step", {"notes": notes, **more}))


def each(*answers: Answer) -> Answer:
    """Return a model that gives one answer after the other, and reports when they are over."""
    left = list(answers)

    def answer(request: InferenceRequest) -> InferenceResponse | Awaitable[InferenceResponse]:
        return left.pop(0)(request) if left else report(request)

    return answer


def calls(*wanted: tuple[str, Any], text: str | None = None) -> Answer:
    """Return an answer that calls tools."""
    return lambda _: said(*wanted, text=text)


def tool(invoke: Invoke, hints: ToolHints = READ_ONLY, schema: Mapping[str, Any] | None = None) -> FunctionTool:
    """Return a function as a tool."""
    stated = schema if schema is not None else {"type": "object"}
    return FunctionTool(description="A tool of a test.", input_schema=stated, invoke=invoke, hints=hints)


def profile(**members: Any) -> Profile:
    """Return a profile with a role and these members."""
    return Profile.model_validate({"role": "You are a test.", **members})


@dataclass(kw_only=True)
class Drive:
    """One driver and what it works with."""

    driver: Driver
    equipment: Equipment
    caller: RecordingCaller
    model: FakeModel
    effects: FakeEffects
    client: Client

    async def start(self, workflow: str = "test.abc", **options: Any) -> DriveResult:
        return await self.driver.start(StartOptions(workflow_id=workflow, **options))

    async def resume(self, run: str, settled: Settled | None = None) -> DriveResult:
        return await self.driver.resume(run, settled)


@asynccontextmanager
async def driving(
    harness: Harness,
    answer: Answer,
    stated: Profile | None = None,
    functions: Mapping[str, FunctionTool] | None = None,
    *,
    workspace: Path = Path("/nonexistent"),
    ask: Ask | None = None,
    effects: FakeEffects | None = None,
    telemetry: Telemetry | None = None,
) -> AsyncGenerator[Drive]:
    """Yield a driver over the server of a harness; each function is offered as a tool of its name."""
    used = stated or profile()
    if functions:
        named = [{"name": name, "type": "function"} for name in functions if name not in {t.name for t in used.tools}]
        entries = (*used.tools, *(Profile.model_validate({"role": "", "tools": named}).tools))
        used = used.model_copy(update={"tools": entries})
    own_effects = effects or FakeEffects()
    async with Client(build_server(harness.ports, harness.workspace), extensions=[advertise(NO_PERSON)]) as client:
        caller, model = RecordingCaller(client=client), FakeModel(answer=answer)
        around = Surroundings(
            workspace=workspace,
            functions=functions or {},
            ask=ask,
            effects=own_effects,
            telemetry=telemetry or Telemetry(),
        )
        equipment = equip(used, model, caller, around)
        async with equipment.toolbox:
            yield Drive(
                driver=Driver(equipment),
                equipment=equipment,
                caller=caller,
                model=model,
                effects=own_effects,
                client=client,
            )


def phases_of(record: Mapping[str, Any]) -> list[str]:
    """Return the names of a record's phases."""
    return [one["name"] for one in record["phases"]]


def texts(messages: Sequence[Any]) -> list[str]:
    """Return the texts of messages."""
    return [one.text() for one in messages]


@asynccontextmanager
async def team(
    harness: Harness,
    lead: tuple[Profile, Answer],
    members: Mapping[str, tuple[Profile, Answer]],
    telemetry: Telemetry | None = None,
    functions: Mapping[str, FunctionTool] | None = None,
    *,
    effects: FakeEffects | None = None,
) -> AsyncGenerator[tuple[Team, RecordingCaller, dict[str, FakeModel]]]:
    """Yield a team whose members have their own clients, all over one server; their calls are kept together."""
    called: list[tuple[str, dict[str, Any]]] = []
    models: dict[str, FakeModel] = {}
    shared_effects = effects or FakeEffects()
    server = build_server(harness.ports, None)
    async with AsyncExitStack() as exits:

        async def opened(name: str, stated: Profile, answer: Answer) -> tuple[Equipment, RecordingCaller]:
            info = types.Implementation(name=f"drive:{name}", version="1")
            client = await exits.enter_async_context(
                Client(server, client_info=info, extensions=[advertise(NO_PERSON)])
            )
            caller, models[name] = RecordingCaller(client=client, called=called), FakeModel(answer=answer)
            around = Surroundings(
                workspace=Path("/nonexistent"),
                functions=functions or {},
                effects=shared_effects,
                telemetry=telemetry or Telemetry(),
            )
            return equip(stated, models[name], caller, around), caller

        async def open_member(name: str) -> Equipment:
            return (await opened(name, *members[name]))[0]

        equipment, caller = await opened("lead", *lead)
        assert isinstance(equipment.client, WorkflowClient)
        yield Team(lead=equipment, client=equipment.client, open_member=open_member), caller, models
