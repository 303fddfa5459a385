"""One tool call, from arguments to result: parse, wait in the session's queue, run in a thread, answer.

Async stops here. Calls that may append to one session wait for each other before they take a thread, first come
first served; a call that is cancelled while it waits has not begun, one that is in a thread finishes (LOCK-5, SRV-7).
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext, suppress
from functools import partial
from operator import is_
from pathlib import Path
from typing import Any, TypeAlias, cast

import anyio
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from interlock.engine.answer.model import Answer, HumanInputRequired
from interlock.engine.answer.structure import ExecutionAnswer, FillOut, Fork, call_lines
from interlock.engine.gates import ApprovalContext
from interlock.kernel.budgets import (
    CHECK_OPEN_S,
    CHECK_POLL_S,
    CLIENT_NAME_BYTES_MAX,
    CLIENT_VERSION_BYTES_MAX,
    ECHO_BYTES_MAX,
)
from interlock.kernel.canonical import Json
from interlock.kernel.errors import ErrorCode, Refusal, RetryKind
from interlock.kernel.frozen import replace
from interlock.kernel.ids import SessionId
from interlock.kernel.text import one_line
from interlock.kernel.turns import TURNS
from interlock.record.events import OWN_ACTORS, Actor
from interlock.record.world import Assurance
from interlock.server.apps.extension import shows_pages
from interlock.server.arguments.corrected import with_corrected_call
from interlock.server.arguments.parse import parse_arguments
from interlock.server.elicitation.ask import Elicitation, apps_of, can_ask, claims_of, client_kind
from interlock.server.progress import STILL_WORKING, Activity, report_progress_while
from interlock.server.threads import Workers
from interlock.server.tools import tool_named
from interlock.server.tools.contract import Arguments, Call, Caller, Outcome, Tool
from interlock.service.failures import EXPECTED_ERRORS, refusal_of
from interlock.service.outside.demand import is_below
from interlock.service.ports import Ports
from interlock.service.tools.rehydrate import look_up_report
from interlock.service.trust.word import arrival_of

OnChanged: TypeAlias = Callable[[ServerRequestContext[Any, Any], SessionId | None], Awaitable[None]]
"""Called after a call with the session that it may have appended to; None if it created a session."""
_log = logging.getLogger(__name__)


class Calls:
    """Runs tool calls for one server."""

    def __init__(self, ports: Ports, workspace: Path | None, *, on_changed: OnChanged | None = None) -> None:
        self._ports = ports
        self._workspace = workspace
        self._on_changed = on_changed
        self._elicitation = Elicitation(ports.key_ring, ports.clock)
        self._workers = Workers()
        self._queues: dict[SessionId, tuple[asyncio.Lock, int]] = {}
        self._last_client: tuple[tuple[object, ...], Caller] | None = None

    async def call(
        self, context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Answer `tools/call`. From 2026-07-28 on, a question to a person is returned as the result.

        Raises:
            MCPError: There is no such tool.
        """
        tool = tool_named(params.name)
        if tool is None or (tool.is_for_pages and not shows_pages(context)):
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {one_line(params.name, ECHO_BYTES_MAX)}")
        try:
            async with report_progress_while(context) as activity:
                outcome = await self._outcome(tool, context, params, activity)
                if isinstance(outcome, Refusal):
                    with anyio.CancelScope(shield=True):  # a cancelled call too is answered with its correction
                        outcome = await self._corrected(outcome, tool, context, params, activity)
        except Exception:  # noqa: BLE001 — the outermost edge: no exception may reach the client
            _log.exception("%s failed", tool.name)
            outcome = _internal_error(tool)
        if isinstance(outcome, types.InputRequiredResult):
            return outcome
        return _result(outcome, takes_links=context.protocol_version >= _LINKS_SINCE)

    async def _outcome(
        self,
        tool: Tool,
        context: ServerRequestContext[Any, Any],
        params: types.CallToolRequestParams,
        activity: Activity,
    ) -> Answer | Refusal | types.InputRequiredResult:
        caller = self._caller(context)
        with self._ports.read.trace.span("parse"):
            arguments = parse_arguments(tool, params.arguments or {}, caller)
        if isinstance(arguments, Refusal):
            return arguments
        outcome = await self._run(context, arguments.call(caller), activity)
        if waits_for_check(outcome, arguments):
            return await self._follow_check(context, arguments.call(caller), activity, outcome)
        if not isinstance(outcome, HumanInputRequired) or not caller.asking.client_can:
            return outcome.answer if isinstance(outcome, HumanInputRequired) else outcome
        if is_below(await self._workers.run(self._form_level, activity.cancel), outcome.question.demands):
            return outcome.answer
        # While a person thinks, the call holds no place in a queue, no thread and no lock (GATE-7).
        activity.words = "waiting for the user's answer"
        try:
            reply = await self._elicitation.ask(context, params, outcome.question, outcome.subject)
        except EXPECTED_ERRORS as error:
            return refusal_of(error)
        if isinstance(reply, types.InputRequiredResult):
            return reply
        # The whole call is checked again, because the session may have changed in the meantime. A person is not asked
        # a second time: a question without an answer is reported in the answer.
        activity.words = STILL_WORKING
        # What an agent starts meanwhile counts, too: the level is that of the moment of the answer.
        reply = replace(reply, assurance=await self._workers.run(self._form_level, activity.cancel))
        asked = replace(caller, asking=replace(caller.asking, reply=reply))
        again = await self._run(context, arguments.call(asked), activity)
        return again.answer if isinstance(again, HumanInputRequired) else again

    def _form_level(self) -> Assurance:
        """Return how well an answer to a form of the client is known to be a person's."""
        is_of_agent = self._ports.is_client_of_agent()
        return arrival_of("elicitation", is_by_person=True, is_of_agent=is_of_agent).assurance

    def _caller(self, context: ServerRequestContext[Any, Any]) -> Caller:
        """Return who calls and how people can be asked there, which is worked out once for the calls of a client."""
        session, version = context.session, context.protocol_version
        client = (session.client_params, session.client_capabilities, version, session.can_send_request)
        if self._last_client is not None and all(map(is_, self._last_client[0], client)):
            return self._last_client[1]
        asking = ApprovalContext(
            client_can=can_ask(context),
            claims=claims_of(context, self._ports.gates_claims),
            apps=apps_of(context, self._ports.gates_apps),
        )
        actor, bytes_max = _actor(context), self._ports.artifact_bytes_max
        caller = Caller(workspace=self._workspace, actor=actor, asking=asking, artifact_bytes_max=bytes_max)
        self._last_client = (client, caller)
        return caller

    async def _corrected(
        self,
        refusal: Refusal,
        tool: Tool,
        context: ServerRequestContext[Any, Any],
        params: types.CallToolRequestParams,
        activity: Activity,
    ) -> Refusal:
        """Return a refusal with its corrected call, which is looked up in a thread."""
        look_up = partial(look_up_report, self._ports.read, asking=self._caller(context).asking)
        work = partial(with_corrected_call, refusal, tool, params.arguments or {}, look_up)
        return await self._workers.run(work, activity.cancel)

    async def _follow_check(
        self, context: ServerRequestContext[Any, Any], call: Call, activity: Activity, first: Outcome
    ) -> Answer | Refusal:
        """Keep the call of a step that waits for a check open until there is a result, at most for a while (CHECK-6).

        Between two looks, the call holds no place in a queue, no thread and no lock. If it is cancelled, it is answered
        with what it has (SRV-7).
        """
        activity.words = "running the check"
        outcome, until_s = first, time.monotonic() + CHECK_OPEN_S
        with suppress(anyio.get_cancelled_exc_class()):
            while outcome == first and call.session is not None and time.monotonic() < until_s:
                await anyio.sleep(CHECK_POLL_S)
                outcome = await self._run(context, call, activity, begins_check=False)
        return outcome.answer if isinstance(outcome, HumanInputRequired) else outcome

    async def _run(
        self, context: ServerRequestContext[Any, Any], call: Call, activity: Activity, *, begins_check: bool = True
    ) -> Outcome:
        """Run a call in a thread when the earlier calls of its session are done.

        The time limit for the lock starts here, before the queue: if another process holds the session, all queued
        calls are answered together with the first (LOCK-6).
        """
        ports = self._ports.for_call(time.monotonic(), activity.read, begins_checks=begins_check)
        run = partial(run_call, ports, call)
        async with _Turn(self._queues, call.session) if call.session is not None else nullcontext():
            outcome = await self._workers.run(run, activity.cancel)
        is_change = call.session is not None or call.begins_run
        if is_change and isinstance(outcome, Answer) and self._on_changed is not None:
            await self._on_changed(context, call.session)
        return outcome


def waits_for_check(outcome: Outcome, arguments: Arguments) -> bool:
    """Say whether a call was on a step that waits for a check: its answer has the token that was sent."""
    data = outcome.data if isinstance(outcome, Answer) else None
    if not isinstance(data, ExecutionAnswer) or data.waiting is None:
        return False
    return data.waiting.for_ == "check" and data.ack_token == arguments.sent().get("ackToken")


def run_call(ports: Ports, call: Call) -> Outcome:
    """Run a call. An expected failure becomes a refusal."""
    try:
        with TURNS.computing():
            return call.run(ports)
    except EXPECTED_ERRORS as error:
        _log.warning("%s", error)
        return refusal_of(error)


class _Turn:
    """A place in the queue of one session. An empty queue is removed."""

    def __init__(self, queues: dict[SessionId, tuple[asyncio.Lock, int]], session: SessionId) -> None:
        self._queues = queues
        self._session = session

    async def __aenter__(self) -> None:
        lock, waiting = self._queues.get(self._session) or (asyncio.Lock(), 0)
        self._queues[self._session] = (lock, waiting + 1)
        try:
            await lock.acquire()
        except BaseException:
            self._leave()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._queues[self._session][0].release()
        self._leave()

    def _leave(self) -> None:
        lock, waiting = self._queues[self._session]
        if waiting > 1:
            self._queues[self._session] = (lock, waiting - 1)
        else:
            del self._queues[self._session]


def _actor(context: ServerRequestContext[Any, Any]) -> Actor | None:
    """Return what the client is, its name and its version, as it states them: a claim, not a proof (SRV-13)."""
    params = context.session.client_params
    if params is None:
        return None
    info = params.client_info
    version = one_line(info.version, CLIENT_VERSION_BYTES_MAX)
    name = one_line(info.name, CLIENT_NAME_BYTES_MAX)
    name = f"client {name}" if name in OWN_ACTORS else name
    return Actor(type=client_kind(context), identifier=name, metadata={"version": version})


def _internal_error(tool: Tool) -> Refusal:
    return Refusal(
        code=ErrorCode.INTERNAL_ERROR,
        message=f"{tool.name} failed because of a bug in Interlock, not because of your call.",
        suggestion="Repeat the call once: all records are kept. If it fails again, tell the user that the server's log"
        " (stderr) has the details.",
    )


_LINKS_SINCE = "2025-06-18"
"""The first version of the protocol with links to resources in results. Versions are dates."""


def _result(outcome: Answer | Refusal, *, takes_links: bool) -> types.CallToolResult:
    """Return the result for the client. Text and structure state the same facts (ANS-1, ANS-7)."""
    if isinstance(outcome, Answer):
        blocks: list[types.ContentBlock] = [types.TextContent(text=outcome.text)]
        if outcome.link is not None and takes_links:
            uri, name = outcome.link
            blocks.append(types.ResourceLink(uri=uri, name=name, mime_type="text/markdown"))
        return types.CallToolResult(content=blocks, structured_content=dict(outcome.structure))
    return types.CallToolResult(
        content=[types.TextContent(text=refusal_text(outcome))],
        structured_content=outcome.envelope(),
        is_error=True,
    )


_RETRY_WORDS: Mapping[RetryKind, str] = {
    RetryKind.RETRYABLE_IMMEDIATE: " (retryable_immediate: you may repeat the call)",
    RetryKind.RETRYABLE_AFTER_MS: " (retryable_after_ms: you may repeat the call after {after} ms)",
}


def refusal_text(refusal: Refusal) -> str:
    """Render a refusal as Markdown: what is wrong, what to do, and the call to send if there is one.

    It says when the same call may be repeated, but not that it may not be: most refused calls can be sent corrected.
    """
    envelope = refusal.envelope()
    retry = envelope["retry"]
    assert isinstance(retry, dict), "the envelope has a retry rule"
    advice = _RETRY_WORDS.get(RetryKind(retry["kind"]), "").format(after=retry.get("afterMs"))
    lines = [f"**{refusal.code}**{advice}", refusal.message, f"**What to do:** {refusal.suggestion}"]
    call = refusal.details.get("correctedCall")
    if isinstance(call, dict):
        fill = [FillOut.of_json(one) for one in cast("list[Json]", call["fill"])]
        lines.append(f"Call `{call['tool']}` with:\n{call_lines(cast('dict[str, Json]', call['arguments']), fill)}")
    fork = refusal.details.get("fork")
    if isinstance(fork, dict):
        lines.append(Fork.of_json(fork).in_one_line())
    return "\n\n".join(lines)
