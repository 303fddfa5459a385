"""Asking a person through the client, in both protocol eras (GATE-2).

With a handshake (until 2025-11-25) the server sends the client a request and waits for its response. From
2026-07-28 on it returns the question as the result of the call; the client sends the same call again, with the
reply and with a sealed state that says what was asked. While a person thinks, the server holds no lock and no
thread, and in the later era no call.
"""

import logging
from typing import Any, Literal

import anyio.to_thread
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from interlock.engine.gates import AppAnswers, GateClaims, Origin, Question, Reply
from interlock.kernel.budgets import CLIENT_NAME_BYTES_MAX, CLOCK_SKEW_MS_MAX, ECHO_BYTES_MAX, QUESTION_VALID_MS
from interlock.kernel.frozen import replace
from interlock.kernel.text import one_line
from interlock.server.elicitation.form import build_form, cancelled_reply, reply_of
from interlock.server.elicitation.seal import Asked, QuestionSealer
from interlock.service.clock import Clock
from interlock.store.ports.keys import KeyRingWriter

NO_PERSON = "interlock/noPerson"
"""The capability of a client that speaks for no person, such as a driver."""
SYSTEM = "interlock/system"
"""The capability of a client that is a program without a model, such as a script of CI. It speaks for no person."""
_KEY = "decision"
"""Names our one question among the inputs that a result asks for."""
_UNNAMED_CLIENT = "a client without a name"

Context = ServerRequestContext[Any, Any]

_log = logging.getLogger(__name__)


def can_ask(context: Context) -> bool:
    """Say whether this client can show a form to a person: it declared so, and the server can reach it.

    A client that names no mode supports the form, because early protocol versions had no other mode.
    """
    capabilities = context.session.client_capabilities
    declared = capabilities.elicitation if capabilities is not None else None
    if declared is None or (declared.form is None and declared.url is not None):
        return False
    return _is_modern(context) or context.session.can_send_request


def claims_of(context: Context, allowed: GateClaims) -> GateClaims:
    """Return whether a claim of this client may open a gate: never if it speaks for no person (DRIVE-12)."""
    return "never" if _declares(context, NO_PERSON) or _declares(context, SYSTEM) else allowed


def apps_of(context: Context, allowed: AppAnswers) -> AppAnswers:
    """Return whether a page of this client may open a gate: never if it speaks for no person (CHAT-2)."""
    return "never" if _declares(context, NO_PERSON) or _declares(context, SYSTEM) else allowed


def client_kind(context: Context) -> Literal["agent", "system"]:
    """Return what this client is by its own account: an agent, unless it declares that it runs no model."""
    return "system" if _declares(context, SYSTEM) else "agent"


def _declares(context: Context, name: str) -> bool:
    """Return whether a client declares something among its extensions, or among its experimental capabilities."""
    capabilities = context.session.client_capabilities
    return capabilities is not None and any(
        name in (one or {}) for one in (capabilities.extensions, capabilities.experimental)
    )


class Elicitation:
    """Asks people through the clients of one server."""

    def __init__(self, key_ring: KeyRingWriter, clock: Clock) -> None:
        self._sealer = QuestionSealer(key_ring)
        self._clock = clock

    async def ask(
        self, context: Context, params: types.CallToolRequestParams, question: Question, subject: str
    ) -> Reply | types.InputRequiredResult:
        """Return the reply to a question, or the result that makes the client ask and call again.

        `subject` is the attempt that waits for the reply: a reply is valid for this question of this attempt only. A
        failure of the client becomes a cancelled reply with its `fault`, never an exception. Call this only for a
        client that `can_ask`.

        Raises:
            KeyRingDamagedError: There is no key to seal with.
            StoreFailureError: The disk failed while the key ring was read.
        """
        if not _is_modern(context):
            return await _ask_by_request(context, question)
        found = await self._find_reply(context, params, question, subject)
        if isinstance(found, Reply):
            return found
        return await self._question_result(question, subject, found)

    async def _find_reply(
        self, context: Context, params: types.CallToolRequestParams, question: Question, subject: str
    ) -> Reply | str | None:
        """Return the reply in a repeated call, or the reason why it is ignored; None if the call has no reply yet."""
        response = (params.input_responses or {}).get(_KEY)
        if response is None:
            return None
        asked = None
        if params.request_state is not None:
            asked = await anyio.to_thread.run_sync(self._sealer.unseal, params.request_state)
        found = _find_stale_reason(asked, question, subject, self._clock.unix_ms())
        if found is not None:
            _log.info("a reply is ignored: %s", found)
            return found
        client = _client_name(context)
        if asked is None or not isinstance(response, types.ElicitResult):
            return cancelled_reply(client, "the client did not send a filled-in form")
        return replace(reply_of(question, response, client), origin=asked.origin)

    async def _question_result(self, question: Question, subject: str, stale: str | None) -> types.InputRequiredResult:
        origin = Origin(unix_ms=self._clock.unix_ms(), entropy=self._clock.entropy())
        asked = Asked(subject=subject, question=question.digest(), origin=origin)
        state = await anyio.to_thread.run_sync(self._sealer.seal, asked)
        notice = f"Please answer again: {stale}." if stale is not None else ""
        form = build_form(question, notice=notice)
        params = types.ElicitRequestFormParams(message=form.message, requested_schema=form.schema)
        return types.InputRequiredResult(input_requests={_KEY: types.ElicitRequest(params=params)}, request_state=state)


async def _ask_by_request(context: Context, question: Question) -> Reply:
    """Send the client a request, and wait for its response."""
    form = build_form(question)
    client = _client_name(context)
    try:
        result = await context.session.elicit_form(form.message, form.schema, related_request_id=context.request_id)
    except MCPError as error:
        _log.info("the client did not ask: %s", error)
        return cancelled_reply(client, f"the client did not ask the user: {one_line(str(error), ECHO_BYTES_MAX)}")
    except ValidationError as error:
        _log.info("the client's response is not a filled-in form: %s", error)
        return cancelled_reply(client, "the client's response is not a filled-in form")
    return reply_of(question, result, client)


def _find_stale_reason(asked: Asked | None, question: Question, subject: str, now_ms: int) -> str | None:
    """Return why a reply with this state is ignored, or None if it is valid."""
    if asked is None:
        return "the earlier reply belongs to no question of this server"
    if asked.subject != subject or asked.question != question.digest():
        return "the earlier reply answers another question"
    if not -CLOCK_SKEW_MS_MAX <= now_ms - asked.origin.unix_ms <= QUESTION_VALID_MS:
        return "the earlier question is more than a day old"
    return None


def _is_modern(context: Context) -> bool:
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def _client_name(context: Context) -> str:
    """Return the name that the client states (GATE-3). From 2026-07-28 on, a client may omit it."""
    params = context.session.client_params
    name = one_line(params.client_info.name, CLIENT_NAME_BYTES_MAX) if params is not None else ""
    return name or _UNNAMED_CLIENT
