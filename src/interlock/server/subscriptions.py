"""Notifies clients that a session's resources changed, and in the later protocol era that there is a new session.

Only changes through this server are reported. Appends by another process are not watched.
"""

import logging
from collections import Counter
from collections.abc import Iterable
from typing import Any

import anyio
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPError

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
        self.listen = _Listen(self._bus)
        """Answers `subscriptions/listen`, the later era's way."""

    async def subscribe(self, _context: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """Answer `resources/subscribe`.

        Raises:
            MCPError: The client has too many subscriptions, or no resource can have such an address.
        """
        uri = str(params.uri)
        if not _takes(uri):
            from interlock.server.resources import no_resource  # noqa: PLC0415 — a start reads no resources

            raise no_resource(uri)
        if uri not in self._subscribed and len(self._subscribed) >= SUBSCRIPTIONS_MAX:
            fault = f"{SUBSCRIPTIONS_MAX} resources are subscribed to, which is the limit. Unsubscribe from one first."
            raise MCPError(types.INVALID_PARAMS, fault, data={"uri": uri})
        self._subscribed.add(uri)
        return types.EmptyResult()

    async def unsubscribe(self, _context: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        """Answer `resources/unsubscribe`."""
        self._subscribed.discard(str(params.uri))
        return types.EmptyResult()

    async def notify(self, context: Context, session: SessionId | None) -> None:
        """Notify subscribers that a session may have changed, or (None) that there is a new one.

        Never raises, also if the call was cancelled meanwhile: it has changed the record, and its result is answered.
        """
        if session is not None and not (self._subscribed or self.listen.addresses):
            return
        with anyio.CancelScope(shield=True):
            try:
                await self._notify(context, session)
            except Exception:  # noqa: BLE001 — a failed notification must not fail the call
                _log.exception("the client could not be notified of a change of %s", session)

    async def _notify(self, context: Context, session: SessionId | None) -> None:
        if session is None:
            await self._bus.publish(ResourcesListChanged())
            return
        for uri in _below(session, self.listen.addresses):
            await self._bus.publish(ResourceUpdated(uri=uri))
        for uri in _below(session, self._subscribed):
            await context.session.send_resource_updated(uri)


class _Listen(ListenHandler):
    """Answers `subscriptions/listen`. `addresses` counts how many open streams name a resource."""

    def __init__(self, bus: InMemorySubscriptionBus) -> None:
        super().__init__(bus)
        self.addresses = Counter[str]()

    async def __call__(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Serve one stream. The acknowledgement names only addresses that a resource can have."""
        wanted = params.notifications
        served = [uri for uri in wanted.resource_subscriptions or () if _takes(uri)]
        wanted = wanted.model_copy(update={"resource_subscriptions": served})
        params = params.model_copy(update={"notifications": wanted})
        named = set(served)
        self.addresses.update(named)
        try:
            return await super().__call__(ctx, params)
        finally:
            self.addresses.subtract(named)
            self.addresses = +self.addresses


def _takes(uri: str) -> bool:
    """Say whether a client may subscribe to an address: whether a resource can have it, even one that never changes."""
    from interlock.server.resources import is_served  # noqa: PLC0415 — a start reads no resources

    return len(uri) < PATH_BYTES_MAX and is_served(uri)


def _below(session: SessionId, addresses: Iterable[str]) -> list[str]:
    """Return the addresses of a session's record and of its parts."""
    record = session_link(session)
    return sorted(uri for uri in addresses if uri == record or uri.startswith(f"{record}/"))
