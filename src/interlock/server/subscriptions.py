"""Who wants to hear that a session's record changed, in both protocol eras; in the later one, that there is a new one.

Only what changes through this server is told: another process that appends to the same session is not watched.
"""

import logging
from typing import Any

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ResourceUpdated

from interlock.kernel.budgets import PATH_BYTES_MAX, SUBSCRIPTIONS_MAX
from interlock.kernel.ids import SessionId
from interlock.service.links import session_link

Context = ServerRequestContext[Any, Any]
_log = logging.getLogger(__name__)


class Subscriptions:
    """The subscriptions of one server's client. What never changes may be subscribed to, and is never told."""

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self._wanted: set[str] = set()
        self.listen = ListenHandler(self._bus)
        """Answers `subscriptions/listen`, the later era's way."""

    async def subscribe(self, _context: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """Answer `resources/subscribe`."""
        if len(self._wanted) < SUBSCRIPTIONS_MAX and len(uri := str(params.uri)) < PATH_BYTES_MAX:
            self._wanted.add(uri)
        return types.EmptyResult()

    async def unsubscribe(self, _context: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        """Answer `resources/unsubscribe`."""
        self._wanted.discard(str(params.uri))
        return types.EmptyResult()

    async def tell(self, context: Context, session: SessionId | None) -> None:
        """Tell whoever asked that a session's record changed, or that there is a new one. It never fails."""
        try:
            if session is None:
                await self._bus.publish(ResourcesListChanged())
                return
            uri = session_link(session)
            await self._bus.publish(ResourceUpdated(uri=uri))
            if uri in self._wanted:
                await context.session.send_resource_updated(uri)
        except Exception:  # noqa: BLE001 — what was recorded is recorded, whoever hears of it
            _log.exception("the client could not be notified of a change of %s", session)
