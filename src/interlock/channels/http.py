"""The channel `http`: one POST with the message as JSON, no redirects (WORLD-6)."""

from interlock.channels.channel import ChannelConfig, Message, Outcome, Result
from interlock.channels.reply import parse_reply
from interlock.kernel.budgets import (
    CHANNEL_CONNECT_SHARE,
    CHANNEL_NOTE_BYTES_MAX,
    CHANNEL_REPLY_BYTES_MAX,
    CHILD_READ_BYTES,
)
from interlock.kernel.text import one_line

_SUCCESS, _REFUSED = 200, 400
_SERVER_FAULT = 500


class HttpChannel:
    """Posts each message to the configured URL, with the intent's id as `Idempotency-Key`."""

    def __init__(self, config: ChannelConfig) -> None:
        self._config = config

    def deliver(self, message: Message) -> Result:
        """See `Channel`. 2xx: delivered; 4xx: refused; not connected: failed; anything else: unknown."""
        import anyio  # noqa: PLC0415 — only a channel needs it in a thread
        import httpx2  # noqa: PLC0415 — it comes with the MCP SDK and is slow to import

        not_sent = (
            httpx2.ConnectError,
            httpx2.ConnectTimeout,
            httpx2.InvalidURL,
            httpx2.UnsupportedProtocol,
            UnicodeError,
        )
        try:
            return anyio.run(self._deliver, message)
        except not_sent as error:
            outcome: Outcome = "failed"
            words = f"{type(error).__name__}: {error}"
        except TimeoutError:
            outcome, words = "unknown", f"There was no whole answer within {self._config.timeout_s} s."
        except Exception as error:  # noqa: BLE001 — whatever the other side does must not reach the sender
            outcome, words = "unknown", f"{type(error).__name__}: {error}"
        return Result(outcome=outcome, note=one_line(words, CHANNEL_NOTE_BYTES_MAX))

    async def _deliver(self, message: Message) -> Result:
        import anyio  # noqa: PLC0415 — see above
        import httpx2  # noqa: PLC0415 — see above

        assert self._config.url is not None, "the configuration was checked"
        limit_s = self._config.timeout_s
        headers = {
            "content-type": "application/json",
            "idempotency-key": message.intent_id,
            "accept-encoding": "identity",
        }
        # A connection that is not there in time has failed; this is known only before the limit of the whole.
        timeout = httpx2.Timeout(limit_s, connect=limit_s * CHANNEL_CONNECT_SHARE)
        with anyio.fail_after(limit_s):
            async with (
                httpx2.AsyncClient(timeout=timeout, follow_redirects=False, trust_env=False) as client,
                client.stream("POST", self._config.url, content=message.body, headers=headers) as response,
            ):
                body = bytearray()
                # The bytes as they were sent: a compressed body could be of any size.
                async for chunk in response.aiter_raw(CHILD_READ_BYTES):
                    body += chunk
                    if len(body) > CHANNEL_REPLY_BYTES_MAX:
                        break
                return _result(response.status_code, bytes(body))


def _result(status: int, body: bytes) -> Result:
    if _SUCCESS <= status < _SUCCESS + 100:
        return Result(outcome="delivered", reply=parse_reply(body))
    words = body[:CHANNEL_NOTE_BYTES_MAX].decode("utf-8", "replace").strip()
    if not words:
        from http.client import responses  # noqa: PLC0415 — only an answer without a body needs it

        words = responses.get(status, "no reason given")
    note = one_line(f"HTTP {status}: {words}", CHANNEL_NOTE_BYTES_MAX)
    # A gateway answers 5xx after it passed the message on, and a receiver 3xx after it took it, as to a form.
    return Result(outcome="refused" if _REFUSED <= status < _SERVER_FAULT else "unknown", note=note)
