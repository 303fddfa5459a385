"""Puts a driver together: its connection to the server, its model, and what all turns share."""

import shlex
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import field
from pathlib import Path

from mcp import Client, StdioServerParameters, types
from mcp.client import advertise
from mcp.client.session import ElicitationFnT

from interlock.drive.agent.profile import Profile
from interlock.drive.client import NO_PERSON, Draft, ToolCaller, WorkflowClient
from interlock.drive.conversation.filtering import Filter
from interlock.drive.effects import Effects, SystemEffects
from interlock.drive.faults import Fault, TurnError
from interlock.drive.models.command import CommandModel
from interlock.drive.models.protocol import Model
from interlock.drive.models.script import ScriptModel
from interlock.drive.recovery.breaker import BreakerRule, Breakers
from interlock.drive.recovery.retry import Recovery
from interlock.drive.state import StateStore
from interlock.drive.telemetry.emission import Telemetry
from interlock.drive.tools.execute import Ask, Executor
from interlock.drive.tools.toolbox import FunctionTool, Toolbox
from interlock.drive.tools.workspace import Workspace
from interlock.drive.turn import Equipment
from interlock.kernel.budgets import ECHO_BYTES_MAX
from interlock.kernel.frozen import frozen
from interlock.kernel.text import one_line
from interlock.version import VERSION

CLIENT_NAME = "interlock-drive"


@frozen
class ServerCommand:
    """The command that starts the workflow server, and what it needs of the environment."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]


@frozen
class Surroundings:
    """What a driver receives in addition to its profile: the workspace, its own functions, and who can be asked."""

    workspace: Path
    functions: Mapping[str, FunctionTool] = field(default_factory=dict[str, FunctionTool])
    ask: Ask | None = None
    effects: Effects = field(default_factory=SystemEffects)
    telemetry: Telemetry = field(default_factory=Telemetry)


async def connect(
    command: ServerCommand, exits: AsyncExitStack, agent: str | None = None, answer_form: ElicitationFnT | None = None
) -> ToolCaller:
    """Start the server and return a client of it that speaks for no person (DRIVE-12).

    `answer_form` shows a question of the server to the person at the terminal, if there is one.

    Raises:
        TurnError: The server does not start.
    """
    program, *arguments = command.argv
    server = StdioServerParameters(command=program, args=arguments, env=dict(command.environment))
    name = CLIENT_NAME if agent is None else f"{CLIENT_NAME}:{agent}"
    client = Client(
        server,
        client_info=types.Implementation(name=name, version=VERSION),
        extensions=[advertise(NO_PERSON)],
        elicitation_callback=answer_form,
    )
    try:
        return await exits.enter_async_context(client)
    except Exception as error:  # a process that does not start fails in many ways
        message = f"The workflow server did not start: {type(error).__name__}. Try `interlock doctor`."
        raise TurnError(Fault(code="STATE_ERROR", message=message)) from error


def make_model(name: str, profile: Profile, read_script: Callable[[str], object]) -> Model:
    """Return the model of a name: `script:FILE`, `cmd:COMMAND`, or a model of a provider.

    Raises:
        TurnError: The name is empty, its command has an open quote, or what a provider's model needs is not installed.
    """
    kind, _, rest = name.partition(":")
    if kind == "script" and rest:
        return ScriptModel(read_script(rest), name)
    if kind == "cmd" and rest.strip():
        try:
            return CommandModel(shlex.split(rest))
        except ValueError as error:
            message = f"The command of the model {one_line(name, ECHO_BYTES_MAX)!r} cannot be read: {error}."
            raise TurnError(Fault(code="VALIDATION_ERROR", message=message)) from error
    if not name:
        message = "No model: name one with --model or as `llm.model` in the profile."
        raise TurnError(Fault(code="VALIDATION_ERROR", message=message))
    try:
        from interlock.drive.models.vendor import vendor_model  # noqa: PLC0415 — an extra, which only this kind needs
    except ImportError as error:
        message = f"The model {name!r} needs the extra: pip install '.[drive]' in the checkout of Interlock."
        raise TurnError(Fault(code="VALIDATION_ERROR", message=message)) from error
    return vendor_model(name, profile.llm)


def equip(profile: Profile, model: Model, caller: ToolCaller | None, around: Surroundings) -> Equipment:
    """Return what all turns of a driver share. The caller enters `toolbox` and leaves it.

    Without a client of a server, the work is a draft.

    Raises:
        TurnError: A filter of the profile is not valid.
    """
    stated = profile.reliability.circuit_breaker
    rule = BreakerRule(
        failure_threshold=stated.failure_threshold,
        open_seconds=stated.timeout_seconds,
        probes=stated.half_open_requests,
    )
    recovery, breakers = Recovery(reliability=profile.reliability), Breakers(rule)
    return Equipment(
        profile=profile,
        model=model,
        client=WorkflowClient(caller) if caller is not None else Draft(),
        toolbox=Toolbox(profile, around.functions),
        workspace=Workspace(around.workspace),
        store=StateStore(around.effects.unix_ms),
        effects=around.effects,
        telemetry=around.telemetry,
        executor=Executor(
            recovery=recovery,
            breakers=breakers,
            output_filter=Filter.of(profile.security.output_filtering, "security.output_filtering"),
            effects=around.effects,
            ask=around.ask,
        ),
        breakers=breakers,
        recovery=recovery,
        content_filter=Filter.of(profile.safety.content_filtering, "safety.content_filtering"),
        instance_id=around.effects.new_id(),
    )
