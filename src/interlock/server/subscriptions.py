"""Notifies clients that a session's record changed, and in the later protocol era that there is a new session.

Only changes through this server are reported. Appends by another process are not watched.
"""

import logging
from typing import Any

import anyio
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ResourceUpdated

from interlock.engine.answer.links import session_link
from interlock.kernel.budgets import PATH_BYTES_MAX, SUBSCRIPTIONS_MAX
from interlock.kernel.ids import SessionId

Context = ServerRequestContext[Any, Any]
_log = logging.getLogger(__name__)


class Subscriptions:
    """The subscriptions of one server's client. A client may subscribe to a resource that never changes."""

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self._subscribed: set[str] = set()
        self.listen = ListenHandler(self._bus)
        """Answers `subscriptions/listen`, the later era's way."""

    async def subscribe(self, _context: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """Answer `resources/subscribe`."""
        if len(self._subscribed) < SUBSCRIPTIONS_MAX and len(uri := str(params.uri)) < PATH_BYTES_MAX:
            self._subscribed.add(uri)
        return types.EmptyResult()

    async def unsubscribe(self, _context: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        """Answer `resources/unsubscribe`."""
        self._subscribed.discard(str(params.uri))
        return types.EmptyResult()

    async def notify(self, context: Context, session: SessionId | None) -> None:
        """Notify subscribers that a session's record changed, or (None) that there is a new session.

        Never raises, also if the call was cancelled meanwhile: it has changed the record, and its result is answered.
        """
        with anyio.CancelScope(shield=True):
            try:
                await self._notify(context, session)
            except Exception:  # noqa: BLE001 — a failed notification must not fail the call
                _log.exception("the client could not be notified of a change of %s", session)

    async def _notify(self, context: Context, session: SessionId | None) -> None:
        if session is None:
            await self._bus.publish(ResourcesListChanged())
            return
        uri = session_link(session)
        await self._bus.publish(ResourceUpdated(uri=uri))
        if uri in self._subscribed:
            await context.session.send_resource_updated(uri)
