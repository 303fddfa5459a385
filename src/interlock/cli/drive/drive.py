"""`interlock drive`: work a run to its end with a model, as one more client of the server."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack
from functools import partial
from pathlib import Path

import anyio

from interlock.cli.commands import add_places
from interlock.cli.drive.asking import answer_form, ask_in_terminal
from interlock.cli.drive.continuing import lines_to_continue
from interlock.cli.drive.files import read_agent, read_object
from interlock.cli.drive.picture import shown_drive
from interlock.cli.options import add_json, checked_settings, chosen_data_dir, place_arguments
from interlock.cli.screen import StopError, say, say_json
from interlock.cli.session.chosen import chosen_run
from interlock.cli.session.lifecycle.delete import delete_session
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.cli.workflow.places import chosen_places
from interlock.config.model import Config
from interlock.config.settings import settings_from
from interlock.define.diagnostics import suggest_name
from interlock.define.document import WorkflowDocument
from interlock.define.parts import ProducedKey
from interlock.drive.agent.profile import Profile
from interlock.drive.client import StartOptions, WorkflowClient
from interlock.drive.faults import Fault, TurnError
from interlock.drive.models.protocol import Model
from interlock.drive.run.delegation import Team
from interlock.drive.run.driver import Settled
from interlock.drive.run.result import DriveResult
from interlock.drive.run.setup import ServerCommand, Surroundings, connect, equip, make_model
from interlock.drive.telemetry.opening import open_telemetry
from interlock.drive.turn import Equipment
from interlock.kernel.canonical import Json
from interlock.kernel.descent import own_program
from interlock.kernel.errors import ErrorCode
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import SessionId
from interlock.server.arguments.json_text import read_json
from interlock.service.run.plans import Plans
from interlock.service.workflows.catalog import Pinnable
from interlock.store.opening import announce_driver

_WRITING = {"write_file", "patch_file", "run_command"}


@frozen
class _Order:
    """What the command line asks for, read and checked."""

    profile: Profile
    model: Model
    server: ServerCommand
    workspace: Path
    start: StartOptions | None
    resume: str | None
    settled: Settled | None
    is_asking: bool
    members: Mapping[str, tuple[Profile, Model]]
    """The agents to which the profile delegates, by the files that it names."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_places(parser)
    parser.add_argument("workflow", metavar="WORKFLOW", nargs="?", help="the id of a workflow, to begin a run of it")
    parser.add_argument("--resume", metavar="RUN", help="continue this run: its label or id, or @last")
    parser.add_argument("--agent", metavar="FILE", required=True, help="the profile of the agent (YAML or JSON)")
    parser.add_argument("--goal", help="what the run is for, in a sentence")
    of_context = "a context key; its value is JSON if it is declared with a type other than string; can be repeated"
    parser.add_argument("--context", metavar="KEY=VALUE", action="append", default=[], help=of_context)
    parser.add_argument("--model", metavar="NAME|script:FILE|cmd:COMMAND", help="the model (default: of the profile)")
    parser.add_argument("--max-turns", type=int, metavar="N", help="turns of the run (default: of the profile)")
    parser.add_argument(
        "--ask", action="store_true", help="ask in this terminal: questions of steps, tools that need permission"
    )
    parser.add_argument(
        "--lost-calls",
        choices=("happened", "not-happened"),
        help="with --resume: what became of calls that a driver was making when it ended",
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Drive a run, print its result, and return the exit code.

    0 complete, 1 failed, 3 a person is needed, 4 complete with gaps, 5 a budget is used up, 6 waiting.

    Raises:
        StopError: The command line or a file is wrong, or the run cannot be started or found.
    """
    order = _order(options)
    announce_driver(chosen_data_dir(options))
    result = anyio.run(partial(_drive, order, is_json=options.as_json))
    if isinstance(result, TurnError):
        raise StopError(str(result), _fix_of(result.fault), exit_code=1) from result
    if order.start is not None and result.is_unanswered:
        result = replace(result, is_removed=_removed(options, SessionId(result.position.session)))
    if options.as_json:
        say_json(result.to_json())
    else:
        _say(result)
        for line in lines_to_continue(options, result):
            say(line)
    return result.exit_code


def _removed(options: argparse.Namespace, session: SessionId) -> bool:
    """Remove the session of a run whose model never answered; False if it stays, because it holds more or cannot be."""
    try:
        with answered_by_store():
            found = open_chosen_reader(options).load(session)
        if found is None or len(found.runs) > 1 or any(node.outputs for node in found.nodes.values()):
            return False
        delete_session(options, session)
    except StopError:
        return False
    return True


def _fix_of(fault: Fault) -> str:
    """Return what to do about an error that no run began with, in the words of the command line."""
    suggestion = str(fault.details.get("suggestion") or "Correct it and run the command again.")
    if fault.details.get("serverCode") != ErrorCode.WORKFLOW_NOT_FOUND:
        return suggestion
    guess, mark, _ = suggestion.rpartition("? ")
    return f"{guess}{mark}`interlock workflow list` lists all workflows."


def _order(options: argparse.Namespace) -> _Order:
    texts = {
        "WORKFLOW": options.workflow,
        "--resume": options.resume,
        "--agent": options.agent,
        "--goal": options.goal,
        "--model": options.model,
    }
    empty = [name for name, text in texts.items() if text is not None and not text.strip()]
    if empty:
        raise StopError(f"{empty[0]} is empty.", "State a value, or leave an optional argument out.", exit_code=2)
    if (options.workflow is None) == (options.resume is None):
        raise StopError(
            "Name a workflow or a run.", "Use WORKFLOW to begin a run or --resume RUN, not both.", exit_code=2
        )
    of_start = {"--goal": options.goal, "--context": options.context}
    useless = of_start if options.resume is not None else {"--lost-calls": options.lost_calls}
    stated = [name for name, value in useless.items() if value]
    if stated:
        message = f"{stated[0]} does not fit {'--resume' if options.resume is not None else 'the start of a run'}."
        raise StopError(message, f"Leave {stated[0]} out.", exit_code=2)
    if options.ask and not sys.stdin.isatty():
        raise StopError("--ask needs a terminal.", "Leave --ask out if no person can answer.", exit_code=2)
    profile = read_agent(options.agent).profile
    if options.max_turns is not None:
        if options.max_turns < 1:
            raise StopError("--max-turns must be at least 1.", "Leave it out for the profile's own.", exit_code=2)
        limits = profile.constraints.model_copy(update={"max_turns": options.max_turns})
        profile = profile.model_copy(update={"constraints": limits})
    with checked_settings():
        settings = settings_from(os.environ, place_arguments(options), Config())
    data_dir, workspace = chosen_data_dir(options), settings.workspace or Path.cwd()

    def opened(one: Profile) -> tuple[Profile, Model]:
        _check_apart(one, data_dir, workspace)
        try:
            return one, make_model(options.model or one.llm.model, one, read_object)
        except TurnError as error:
            raise StopError(error.fault.message, "Try --model script:FILE without a provider.", exit_code=2) from error

    _, model = opened(profile)
    beside, targets = Path(options.agent).parent, dict.fromkeys(rule.target_agent for rule in profile.delegation)
    return _Order(
        profile=profile,
        model=model,
        server=_server(options, data_dir, workspace),
        workspace=workspace,
        start=None if options.workflow is None else _start(options, profile),
        resume=None if options.resume is None else _named_run(options),
        settled=None if options.lost_calls is None else options.lost_calls.replace("-", "_"),
        is_asking=options.ask,
        members={target: opened(read_agent(str(beside / target)).profile) for target in targets},
    )


def _named_run(options: argparse.Namespace) -> str:
    """Return the id of the run that `--resume` names, as every command names one.

    Raises:
        StopError: No run has this name, several have, or the store cannot be read.
    """
    store = open_chosen_reader(options)
    with answered_by_store():
        _, run = chosen_run(store, Plans(store), options.resume)
    return run.run


def _check_apart(profile: Profile, data_dir: Path, workspace: Path) -> None:
    """Refuse tools that write where the log is: a model could change the record of its own work.

    Raises:
        StopError: The data directory is in the workspace.
    """
    writes = [tool.name for tool in profile.tools if tool.name in _WRITING and tool.permission != "deny"]
    if writes and Path(os.path.realpath(data_dir)).is_relative_to(os.path.realpath(workspace)):
        message = f"The data directory is in the workspace, where {', '.join(writes)} could change the log."
        raise StopError(message, "Choose another with --data-dir, or leave these tools out.", exit_code=2)


def _server(options: argparse.Namespace, data_dir: Path, workspace: Path) -> ServerCommand:
    argv = [*own_program(), "serve", "--data-dir", str(data_dir), "--workspace", str(workspace)]
    places = place_arguments(options)
    if places.workflows_dir is not None:
        argv += ["--workflows-dir", places.workflows_dir]
    passed = {name: value for name, value in os.environ.items() if name.startswith("INTERLOCK_")}
    passed |= {name: os.environ[name] for name in ("PYTHONPATH", "TRACEPARENT") if name in os.environ}
    return ServerCommand(argv=tuple(argv), environment=passed)


def _start(options: argparse.Namespace, profile: Profile) -> StartOptions:
    context: dict[str, Json] = {}
    declared = _declared(options) if options.context else None
    for pair in options.context:
        key, sign, value = str(pair).partition("=")
        if not sign or not key:
            raise StopError(f"--context {pair!r} is not KEY=VALUE.", "Write --context ticket=ABC-1.", exit_code=2)
        if key in context:
            raise StopError(f"--context states {key!r} more than once.", "State each key once.", exit_code=2)
        if declared is not None and key not in {*declared, "goal"}:
            raise _undeclared(options.workflow, key, list(declared))
        is_text = declared is None or key not in declared or declared[key].type == "string"
        context[key] = value if is_text else _value(value)
    return StartOptions(workflow_id=options.workflow, goal=options.goal, context=context, autonomy=profile.autonomy)


def _declared(options: argparse.Namespace) -> Mapping[str, ProducedKey] | None:
    """Return the context keys that the workflow declares; None if it takes every key or does not exist."""
    places = chosen_places(options)
    found = places.catalog.view(places.workspace).startable(options.workflow)
    if found is None or not isinstance(found.compiled, Pinnable):
        return None
    content = found.document.content
    if isinstance(content, WorkflowDocument) and not content.requires_declared_keys:
        return None
    return found.compiled.workflow.declared


def _undeclared(workflow: str, key: str, declared: Sequence[str]) -> StopError:
    near = suggest_name(key, declared)
    guess = f"Did you mean {near!r}? " if near is not None else ""
    fix = f"{guess}It declares: {', '.join(declared)}." if declared else "It declares none: leave --context out."
    return StopError(f"The workflow {workflow!r} declares no context key {key!r}.", fix, exit_code=2)


def _value(text: str) -> Json:
    """Return the JSON value that a text is, or the text: the server says what a key needs."""
    value = read_json(text).value
    return text if value is None else value


async def _drive(order: _Order, *, is_json: bool) -> DriveResult | TurnError:
    """Connect and drive. An error is returned, because the client would wrap a raised one."""
    try:
        return await _drive_connected(order, is_json=is_json)
    except* TurnError as group:
        found = group.exceptions[0]
        while isinstance(found, BaseExceptionGroup):
            found = found.exceptions[0]
        assert isinstance(found, TurnError), "as caught"
        failed = found
    return failed


async def _drive_connected(order: _Order, *, is_json: bool) -> DriveResult:
    async with AsyncExitStack() as exits:
        form = answer_form if order.is_asking else None
        ask = ask_in_terminal if order.is_asking else None
        show = exits.enter_context(shown_drive(is_json=is_json))
        opened: dict[str, Equipment] = {}

        async def open_agent(profile: Profile, model: Model, name: str | None) -> Equipment:
            caller = await connect(order.server, exits, name, form)
            telemetry = open_telemetry(profile, os.environ, exits.enter_context(ExitStack()))
            around = Surroundings(workspace=order.workspace, ask=ask, telemetry=telemetry)
            if isinstance(model, AbstractAsyncContextManager):
                await exits.enter_async_context(model)
            equipment = equip(profile, model, caller, around)
            await exits.enter_async_context(equipment.toolbox)
            return equipment

        async def open_member(target: str) -> Equipment:
            if target not in opened:
                profile, model = order.members[target]
                opened[target] = await open_agent(profile, model, profile.identity.id)
            return opened[target]

        lead = await open_agent(order.profile, order.model, None)
        assert isinstance(lead.client, WorkflowClient), "as equipped"
        team = Team(lead=lead, client=lead.client, open_member=open_member, on_progress=show)
        if order.start is not None:
            return await team.start(order.start)
        assert order.resume is not None, "the command line names one of them"
        return await team.resume(order.resume, order.settled)


def _say(result: DriveResult) -> None:
    place, usage = result.position, result.usage
    run = f"{place.workflow_id}" if result.is_removed else f"run {place.label} of {place.workflow_id}"
    head = f"{run}: {result.status.replace('_', ' ')}"
    at = f", at the step {place.step.title!r}" if place.step is not None else ""
    say(head + at)
    cost = f", cost {usage.cost:.4f}" if usage.cost else ""
    say(f"{result.turns} turns, {usage.input_tokens} tokens in, {usage.output_tokens} out{cost}")
    for warning in result.warnings:
        say(f"warning: {warning}")
    if result.fault is not None:
        say(f"turn.{result.fault.code}: {result.fault.message}")
