"""Who may see the console: a one-time link is exchanged for a cookie of one browser (CON-2, CON-4).

A link carries its secret in the fragment, which no browser sends: a page of the console exchanges it by POST. A link of
`interlock console --link` is signed with a key that is derived from the key ring, so both processes need no file. It
says whether a person made it in a terminal of their own: answers of a browser that others admitted are claims (CON-8).
"""

import hmac
from collections.abc import Callable
from dataclasses import field
from hashlib import sha256

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from interlock.kernel.budgets.console import CONSOLE_BROWSERS_MAX, CONSOLE_LINK_MS, CONSOLE_SECRET_BYTES
from interlock.kernel.frozen import frozen, mutable
from interlock.kernel.ids import SigningKey
from interlock.record.tokens import encode_base64url
from interlock.service.clock import Clock

_PURPOSE = b"interlock/console/link/v1"
"""Separates these keys from the keys that sign tokens, and this format from a later one."""
_BY_PERSON = {True: "person", False: "anybody"}


@frozen
class AdmittedBrowser:
    """A browser that may see the console. Its pages send `token` with each POST."""

    token: str
    is_person: bool


def make_secret(clock: Clock) -> str:
    """Return a fresh secret as text for an address."""
    drawn = b"".join(clock.entropy() for _ in range(CONSOLE_SECRET_BYTES))
    return encode_base64url(sha256(drawn).digest())


def make_link(key: SigningKey, port: int, clock: Clock, *, is_person: bool) -> str:
    """Return the secret of a one-time link for the console on a port; `is_person`: a person made it."""
    body = f"{clock.unix_ms()}.{_BY_PERSON[is_person]}.{make_secret(clock)}"
    return f"{body}.{signature_of(key, _PURPOSE, f'{port}.{body}')}"


def address_of(port: int, secret: str) -> str:
    """Return the address that a person opens. The secret is in the fragment, which is not sent."""
    return f"http://127.0.0.1:{port}/#{secret}"


@mutable
class Access:
    """The browsers that are admitted to one console. Kept in memory: after a restart each needs a new link."""

    port: int
    clock: Clock
    first_link: str | None = None
    when_entered: Callable[[], None] = lambda: None
    """Called when the first link was used."""
    began_ms: int = field(init=False)
    _browsers: dict[str, AdmittedBrowser] = field(default_factory=dict[str, AdmittedBrowser], init=False)
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
        if secret == self.first_link:
            self.when_entered()
        browser = make_secret(self.clock)
        while len(self._browsers) >= CONSOLE_BROWSERS_MAX:
            del self._browsers[next(iter(self._browsers))]
        is_person = secret == self.first_link or secret.split(".")[1] == _BY_PERSON[True]
        self._browsers[browser] = AdmittedBrowser(token=make_secret(self.clock), is_person=is_person)
        return browser

    def browser_of(self, cookie: str | None) -> AdmittedBrowser | None:
        """Return the browser with a cookie; None if it is not admitted."""
        return self._browsers.get(cookie) if cookie is not None else None

    def _is_valid(self, secret: str, keys: tuple[SigningKey, ...]) -> bool:
        if secret in self._used or not secret.isascii():
            return False
        if self.first_link is not None and hmac.compare_digest(secret, self.first_link):
            return True
        body, _, signature = secret.rpartition(".")
        made_ms = moment_in(body.partition(".")[0])
        # A link of before the start may have been used: what was used is not kept.
        if made_ms is None or made_ms < max(self.began_ms, self.clock.unix_ms() - CONSOLE_LINK_MS):
            return False
        return is_signed(keys, _PURPOSE, f"{self.port}.{body}", signature)


def moment_in(text: str) -> int | None:
    """Return the time that a link names, in unix milliseconds; None if it is no number in its shortest form."""
    is_number = text.isascii() and text.isdecimal() and len(text) < CONSOLE_SECRET_BYTES
    return int(text) if is_number and str(int(text)) == text else None


def is_signed(keys: tuple[SigningKey, ...], purpose: bytes, body: str, signature: str) -> bool:
    """Say whether one of the keys signed a body for a purpose."""
    return signature.isascii() and any(hmac.compare_digest(signature_of(key, purpose, body), signature) for key in keys)


def signature_of(key: SigningKey, purpose: bytes, body: str) -> str:
    """Return the signature of a body as text for an address. Each purpose has keys of its own."""
    derived = HKDF(algorithm=SHA256(), length=CONSOLE_SECRET_BYTES, salt=None, info=purpose).derive(key)
    return encode_base64url(hmac.digest(derived, body.encode(), "sha256"))
