"""The channel `http`: one POST with the message as JSON, no redirects (WORLD-6)."""

from interlock.channels.channel import ChannelConfig, Message, Result
from interlock.channels.reply import parse_reply
from interlock.kernel.budgets import CHANNEL_NOTE_BYTES_MAX, CHANNEL_REPLY_BYTES_MAX
from interlock.kernel.text import one_line

_SUCCESS, _REFUSED = 200, 400
_SERVER_FAULT = 500


class HttpChannel:
    """Posts each message to the configured URL, with the intent's id as `Idempotency-Key`."""

    def __init__(self, config: ChannelConfig) -> None:
        self._config = config

    def deliver(self, message: Message) -> Result:
        """See `Channel`. 2xx: delivered; 4xx: refused; other answers: failed; no answer after sending: unknown."""
        import httpx2  # noqa: PLC0415 — it comes with the MCP SDK and is slow to import

        assert self._config.url is not None, "the configuration was checked"
        headers = {"content-type": "application/json", "idempotency-key": message.intent_id}
        try:
            with (
                httpx2.Client(timeout=self._config.timeout_s, follow_redirects=False, trust_env=False) as client,
                client.stream("POST", self._config.url, content=message.body, headers=headers) as response,
            ):
                body = b""
                for chunk in response.iter_bytes():
                    body += chunk
                    if len(body) > CHANNEL_REPLY_BYTES_MAX:
                        break
                return _result(response.status_code, body)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
            return Result(outcome="failed", note=one_line(f"{type(error).__name__}: {error}", CHANNEL_NOTE_BYTES_MAX))
        except httpx2.HTTPError as error:
            return Result(outcome="unknown", note=one_line(f"{type(error).__name__}: {error}", CHANNEL_NOTE_BYTES_MAX))


def _result(status: int, body: bytes) -> Result:
    if _SUCCESS <= status < _SUCCESS + 100:
        return Result(outcome="delivered", reply=parse_reply(body))
    words = body[:CHANNEL_NOTE_BYTES_MAX].decode("utf-8", "replace")
    note = one_line(f"HTTP {status}: {words}", CHANNEL_NOTE_BYTES_MAX)
    return Result(outcome="refused" if _REFUSED <= status < _SERVER_FAULT else "failed", note=note)
