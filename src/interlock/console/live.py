"""Live updates: one reader looks whether sessions changed, however many pages are open (CON-7)."""

import time
from collections.abc import AsyncGenerator
from dataclasses import field
from threading import Event

import anyio
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from interlock.console.reading import Sources
from interlock.kernel.budgets.console import CONSOLE_BEAT_S, CONSOLE_POLL_S, CONSOLE_STREAMS_MAX
from interlock.kernel.frozen import mutable
from interlock.kernel.ids import SessionId
from interlock.store.ports.errors import StoreFailureError


@mutable
class Watcher:
    """Reads the versions of all logs for every stream; the first that finds them too old reads them again."""

    sources: Sources
    ending: Event = field(default_factory=Event)
    _reading: anyio.Lock = field(default_factory=anyio.Lock, init=False)
    streams: int = field(default=0, init=False)

    async def version(self, session: str) -> object:
        """Return a value that changes whenever the session, or for `*` any session, changes."""
        async with self._reading:
            try:
                await anyio.to_thread.run_sync(self.sources.versions.read, CONSOLE_POLL_S)
            except StoreFailureError as error:
                return str(error)
        return self.sources.versions.changes(None if session == "*" else SessionId(session))

    def expire(self) -> None:
        """Let the next look read the logs again, however recent the last one was."""
        self.sources.versions.expire()

    async def events(self, session: str) -> AsyncGenerator[str]:
        """Yield an event for each change, and a comment when nothing has changed for a while."""
        self.streams += 1
        try:
            known, beat = await self.version(session), time.monotonic()
            yield "retry: 2000\n\n"
            while not self.ending.is_set():
                await anyio.sleep(CONSOLE_POLL_S)
                found = await self.version(session)
                if found != known:
                    known, beat = found, time.monotonic()
                    yield "event: changed\ndata:\n\n"
                elif time.monotonic() - beat > CONSOLE_BEAT_S:
                    beat = time.monotonic()
                    yield ": no change\n\n"
        finally:
            self.streams -= 1

    async def stream(self, request: Request) -> Response:
        """Answer with a stream of server-sent events about the session that the query names."""
        if self.streams >= CONSOLE_STREAMS_MAX:
            return Response("Too many pages are live. Close some of them.", 503)
        session = request.query_params.get("session", "*")
        return StreamingResponse(self.events(session), media_type="text/event-stream")
