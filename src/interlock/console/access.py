"""Who may see the console: a one-time link is exchanged for a cookie of one browser (CON-2, CON-4).

A link carries its secret in the fragment, which no browser sends: a page of the console exchanges it by POST. A link of
`interlock console --link` is signed with a key that is derived from the key ring, so both processes need no file.
"""

import hmac
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from hashlib import sha256

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from interlock.kernel.console_budgets import CONSOLE_BROWSERS_MAX, CONSOLE_LINK_MS, CONSOLE_SECRET_BYTES
from interlock.record.tokens import SigningKey
from interlock.service.clock import Clock

_PURPOSE = b"interlock/console/link/v1"
"""Separates these keys from the keys that sign tokens, and this format from a later one."""


def make_secret(clock: Clock) -> str:
    """Return a fresh secret as text for an address."""
    drawn = b"".join(clock.entropy() for _ in range(CONSOLE_SECRET_BYTES))
    return _text(sha256(drawn).digest())


def make_link(key: SigningKey, port: int, clock: Clock) -> str:
    """Return the secret of a one-time link for the console on a port."""
    body = f"{clock.unix_ms()}.{make_secret(clock)}"
    return f"{body}.{_signature(key, port, body)}"


def address_of(port: int, secret: str) -> str:
    """Return the address that a person opens. The secret is in the fragment, which is not sent."""
    return f"http://127.0.0.1:{port}/#{secret}"


@dataclass(slots=True)
class Access:
    """The browsers that are admitted to one console. Kept in memory: after a restart each needs a new link."""

    port: int
    clock: Clock
    first_link: str | None = None
    began_ms: int = field(init=False)
    _browsers: dict[str, str] = field(default_factory=dict[str, str], init=False)
    _used: set[str] = field(default_factory=set[str], init=False)

    def __post_init__(self) -> None:
        self.began_ms = self.clock.unix_ms()

    @property
    def cookie(self) -> str:
        """The name of the cookie. Cookies ignore ports, so each console has a name of its own."""
        return f"interlock_console_{self.port}"

    def admit(self, secret: str, keys: tuple[SigningKey, ...]) -> str | None:
        """Exchange the secret of a link for the value of a cookie; None if it is not valid, expired or used."""
        if not self._is_valid(secret, keys):
            return None
        self._used.add(secret)
        browser = make_secret(self.clock)
        while len(self._browsers) >= CONSOLE_BROWSERS_MAX:
            del self._browsers[next(iter(self._browsers))]
        self._browsers[browser] = make_secret(self.clock)
        return browser

    def token_of(self, cookie: str | None) -> str | None:
        """Return the token that a page of this browser sends with each POST; None if the browser is not admitted."""
        return self._browsers.get(cookie) if cookie is not None else None

    def _is_valid(self, secret: str, keys: tuple[SigningKey, ...]) -> bool:
        if secret in self._used or not secret.isascii():
            return False
        if self.first_link is not None and hmac.compare_digest(secret, self.first_link):
            return True
        body, _, signature = secret.rpartition(".")
        made = body.partition(".")[0]
        is_number = made.isdecimal() and str(int(made)) == made if len(made) < CONSOLE_SECRET_BYTES else False
        # A link of before the start may have been used: what was used is not kept.
        is_recent = is_number and max(self.began_ms, self.clock.unix_ms() - CONSOLE_LINK_MS) <= int(made)
        return is_recent and any(hmac.compare_digest(_signature(key, self.port, body), signature) for key in keys)


def _signature(key: SigningKey, port: int, body: str) -> str:
    derived = HKDF(algorithm=SHA256(), length=CONSOLE_SECRET_BYTES, salt=None, info=_PURPOSE).derive(key)
    return _text(hmac.digest(derived, f"{port}.{body}".encode(), "sha256"))


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
