"""Secret scanning: what in a context or in notes looks like a secret, by the name before it or by its own form.

A warning and never a refusal, so it leans towards silence: names count only as whole words in the place where English
puts the thing itself (`githubToken`, not `tokenCount`), and a reference to a secret is what the warning asks for, so it
causes none. Linear in the size of what is scanned: no pattern reads a character more than a few times.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import IntEnum
from functools import cache, lru_cache
from itertools import islice
from typing import TypeAlias, cast

from interlock.engine.answer.structure import Warned
from interlock.kernel.budgets import (
    ECHO_BYTES_MAX,
    SECRET_KEY_CHARS_MAX,
    SECRET_NAMES_KEPT_MAX,
    SECRET_REFERENCE_CHARS_MAX,
    SECRETS_NAMED_MAX,
)
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen, positional
from interlock.kernel.text import in_code, one_line
from interlock.record.context import Context


class _Suspicion(IntEnum):
    """Which texts below a name count as secrets."""

    NONE = 0
    OPAQUE = 1
    """One that looks drawn at random."""
    ANY_WORD = 2
    """One without spaces that says something."""
    ANY_TEXT = 3


_PASSWORDS = frozenset({"password", "passwd", "passphrase", "passcode", "pwd"})
_SECRETS = frozenset(
    {"secret", "token", "credential", "apikey", "secretkey", "accesskey", "privatekey", "clientsecret"}
    | {f"{kind}token" for kind in ("access", "api", "auth", "bearer", "refresh", "session")}
)
_KINDS_OF_KEY = frozenset({"api", "access", "account", "encryption", "master", "private", "secret", "signing", "ssh"})
_SOMETIMES = frozenset({"auth", "authorization", "bearer", "cookie", "jwt", "pat", "tokens"})
_HARMLESS_TOKENS = frozenset({"cancellation", "continuation", "cursor", "design", "next", "page", "sync"})
_QUALIFIERS = frozenset(
    {"base64", "current", "dev", "live", "new", "old", "plain", "prod", "raw", "staging", "string", "text", "value"}
)
"""Words that may follow a name without changing what it names."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]++|[A-Z]")
_STEMS = ("pass", "pwd", "secret", "token", "key", "auth", "cred", "cookie", "bearer", "jwt", "pat")
"""One of these is in every name that is judged."""
_OWN_TOKEN = re.compile(r"(?:st|ack|chk)(?:\.v1\.[\w.-]++|_[\w-]{50,80})", re.ASCII)
"""Interlock's own tokens: they name a place in this very data directory and open nothing without it."""
_REFERENCE = re.compile(
    r"""
      \$\w+ | \$\{.*\} | \$\(.*\) | %\w+% | \{\{.*\}\}            # a variable, a template
    | [A-Z][A-Z0-9]*+(?:_[A-Z0-9]++)+                            # the bare name of an environment variable
    | (?:env|var|vault|ref|file|keychain|keyring|ssm|sops|secretsmanager|arn)[:.]\s?\S+
    | (?:process\.env|os\.environ|secrets)[.\[]\S+
    | [A-Za-z][A-Za-z0-9+.-]*+://\S+                             # an address; one with a password is found by its form
    | (?:~|\.{1,2})?/[\w.@%+-]++(?:/[\w.@%+-]++)*+/?             # a path
    """,
    re.VERBOSE | re.ASCII,
)
_PLACEHOLDER = re.compile(
    r"""
      [*.\u2022\u2026_-]+ | [xX]{3,} | \d+ | <.*> | \[.*\]
    | (?:none|null|nil|n/a|na|true|false|yes|no|on|off|unknown|unset|missing|absent|present|set|required|optional
        |redacted|hidden|masked|tbd|todo|placeholder|pending|valid|invalid|expired|approved|granted|denied)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SCHEME = re.compile(r"(?:bearer|basic|digest|token)\s+(\S+)", re.IGNORECASE)

_FORMS: Mapping[str, str] = {
    "github_pat_": r"github_pat_\w{20,}+",
    **{f"gh{kind}_": rf"gh{kind}_[A-Za-z0-9]{{20,}}+" for kind in "pousr"},
    "glpat-": r"glpat-[\w-]{20,}+",
    "sk-": r"sk-[\w-]{20,}+",
    "sk_": r"sk_(?:live|test)_[A-Za-z0-9]{16,}+",
    "rk_": r"rk_(?:live|test)_[A-Za-z0-9]{16,}+",
    "xox": r"xox[abeprs]-[A-Za-z0-9-]{10,}+",
    "xapp-": r"xapp-[A-Za-z0-9-]{20,}+",
    "AKIA": r"AKIA[A-Z0-9]{16}(?![A-Z0-9])",
    "ASIA": r"ASIA[A-Z0-9]{16}(?![A-Z0-9])",
    "AIza": r"AIza[\w-]{35}",
    "npm_": r"npm_[A-Za-z0-9]{30,}+",
    "pypi-": r"pypi-[\w-]{50,}+",
    "hf_": r"hf_[A-Za-z0-9]{30,}+",
    "SG.": r"SG\.[\w-]{16,}+\.[\w-]{16,}+",
    "eyJ": r"eyJ[\w-]{8,}+\.eyJ[\w-]{8,}+\.[\w-]*+",
    "earer ": r"[Bb]earer [\w.~+/=-]{16,}+",
    "Basic ": r"Basic [A-Za-z0-9+/=]{12,}+",
    "PRIVATE KEY": r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY",
    "://": r"://[^\s/:@]*+:[^\s/:@$%*{}<>\[\]]++@",
}
"""Patterns of forms that are known to be secrets, by a piece of text that is quickly searched for."""
_NEEDS_DIGIT = frozenset({"sk-", "earer ", "Basic ", "hf_", "npm_"})
"""Forms that words of a language can take, which have no digits."""
_ASSIGNMENT = re.compile(
    r"""
      (?<![\w$.-]) ( (?:[A-Za-z][\w-]{0,40}+\x20)? [A-Za-z][\w-]{0,60}+ )   # a name of one word or two
      ["'`*]{0,3} [\t\x20]{0,3} [:=] [\t\x20]{0,3} ["'`]?
      ( [^\s"'`,;()\[\]{}<>]{6,200}+ ) (?![(\[{<])                        # a word, and no beginning of an expression
    """,
    re.VERBOSE | re.ASCII,
)
"""A name in a running text, and the word that it is given."""
WITHHELD = "(withheld: it looks like a secret)"
"""What is shown in the place of a likely secret."""
_FORM_CHARS_MIN = 8
"""The shortest address with a password in it."""
_OPAQUE_CHARS_MIN = 20
_OPAQUE_BITS_MIN = 3.0
"""Per character: words and dates repeat their letters more than random text does."""


def secret_warnings(delta: Context | None, notes: str | None, work_note: str | None = None) -> Iterator[Warned]:
    """Yield the warnings about what a call recorded, by the place of each secret and never by its value (ANS-20).

    Args:
        delta: What it set in the context.
        notes: The complete notes that it sent.
        work_note: The note about how work ended.
    """
    paths = list(islice(secrets_in(delta), SECRETS_NAMED_MAX + 1)) if delta else []
    if paths:
        yield _warned([in_code(path) for path in paths], "in `context`")
    for text, where in ((notes, "of `output.notesMarkdown`"), (work_note, "of the `note` about how work ended")):
        lines = list(islice(lines_with_secrets(text), SECRETS_NAMED_MAX + 1)) if text else []
        if lines:
            yield _warned([f"line {line}" for line in lines], where)


def _warned(places: Sequence[str], where: str) -> Warned:
    named = ", ".join(places[:SECRETS_NAMED_MAX])
    more = " and more" if len(places) > SECRETS_NAMED_MAX else ""
    message = (
        f"{named}{more} {where} {'look like secrets' if len(places) > 1 else 'looks like a secret'}. What you sent"
        " is stored unencrypted in the data directory. Send a reference instead, such as the name of an environment"
        " variable or a path in a vault. If you sent a real secret, replace it with a new one."
    )
    return Warned(code="LOOKS_LIKE_SECRET", message=f"{message[0].upper()}{message[1:]}")


def lines_with_secrets(text: str) -> Iterator[int]:
    """Yield the numbers, from 1, of the lines of a text that look like they contain a secret."""
    scan = _Scan.of(text)
    if scan.forms or _has_stem(text):
        yield from (number for number, line in enumerate(text.split("\n"), start=1) if scan.has_secret(line))


def secrets_in(context: Context) -> Iterator[str]:
    """Yield the dotted path of everything that looks like a secret, in document order."""
    written = json.dumps(dict(context), ensure_ascii=False)
    scan = _Scan.of(written)
    if scan.forms or _has_stem(written):
        yield from map(scan.shown_path, scan.within(None, dict(context), _NAMELESS))


def without_secrets(context: Context) -> dict[str, Json]:
    """Return a copy of a context in which everything that looks like a secret is replaced, keys included (ANS-20)."""
    scan = _Scan.of(json.dumps(dict(context), ensure_ascii=False))
    suspects = {_keys_of(path) for path in scan.within(None, dict(context), _NAMELESS)}
    return {scan.shown_key(key): scan.cleared((key,), value, suspects) for key, value in context.items()}


def _keys_of(path: "_Path") -> tuple[str | int, ...]:
    keys: list[str | int] = []
    while path is not None:
        path, key = path
        keys.append(key)
    return tuple(reversed(keys))


@positional
class _Name:
    """What a name says about the value below it. The name of a collection also counts for the members of an object."""

    suspicion: _Suspicion = _Suspicion.NONE
    is_collection: bool = False


_Path: TypeAlias = "tuple[_Path, str | int] | None"
"""A place, as the place above it and a key: shared by everything below it, whatever the length of its keys."""
_NAMELESS = _Name()


def _judged(key: str, above: _Name) -> _Name:
    """Return what a key says of the value below it, itself below another name."""
    if len(key) > SECRET_KEY_CHARS_MAX:
        return _NAMELESS
    own = _judged_alone(key)
    if own.suspicion or not above.suspicion:
        return own
    return above if above.is_collection or key.lower() in _QUALIFIERS else own


def _has_stem(text: str) -> bool:
    lowered = text.lower()
    return any(stem in lowered for stem in _STEMS)


@lru_cache(maxsize=SECRET_NAMES_KEPT_MAX)
def _judged_alone(key: str) -> _Name:
    """Judge a name by its last words: the words before them say which one, and only qualifiers may follow."""
    words = [word.lower() for word in _WORD.findall(key)] if _has_stem(key) else []
    while len(words) > 1 and words[-1] in _QUALIFIERS:
        words.pop()
    if not words:
        return _NAMELESS
    last, previous = words[-1], "".join(words[-2:-1])
    one = last.removesuffix("s")
    # Credentials are one thing of many parts, a user's name among them.
    is_collection = one not in {last, "credential"}
    if one in _PASSWORDS:
        return _Name(_Suspicion.ANY_TEXT, is_collection)
    if {last, one} & _SOMETIMES:
        return _Name(_Suspicion.OPAQUE, is_collection)
    if one in _SECRETS or (one == "key" and previous in _KINDS_OF_KEY):
        is_harmless = one == "token" and previous in _HARMLESS_TOKENS
        return _NAMELESS if is_harmless else _Name(_Suspicion.ANY_WORD, is_collection)
    return _NAMELESS


@cache
def _form(literal: str) -> re.Pattern[str]:
    """Return the pattern of a form. Most are never used, so each is compiled when its text is first found."""
    return re.compile(rf"(?<![\w-]){_FORMS[literal]}" if literal[0].isalnum() else _FORMS[literal], re.ASCII)


@frozen
class _Scan:
    """One scan, with the forms of secrets that can occur in the scanned text."""

    forms: tuple[tuple[str, re.Pattern[str]], ...]

    @classmethod
    def of(cls, text: str) -> "_Scan":
        """Return a scan of the parts of a text: a form that is not in the whole is searched for in none of them."""
        return cls(forms=tuple((literal, _form(literal)) for literal in _FORMS if literal in text))

    def has_secret(self, text: str) -> bool:
        """Say whether a running text holds a secret: one of a known form, or one after its name."""
        if self._has_form(text):
            return True
        return _has_stem(text) and any(self._is_given(*found.groups()) for found in _ASSIGNMENT.finditer(text))

    def _is_given(self, name: str, word: str) -> bool:
        """Say whether a name is that of a secret and a word is one: in a running text it has letters and digits."""
        is_drawn = any(map(str.isdigit, word)) and any(map(str.isalpha, word))
        is_whole = not word.endswith(("…", "..."))
        return is_drawn and is_whole and self._is_suspect(word.rstrip(".:!?"), _judged_alone(name).suspicion)

    def within(self, path: _Path, value: object, name: _Name) -> Iterator[_Path]:
        """Yield the place of everything that looks like a secret in an object or a list below a name."""
        if isinstance(value, dict):
            for key, below in cast("dict[str, object]", value).items():
                if self._has_form(key):
                    yield path, key
                yield from self._below((path, key), below, _judged(key, name))
        elif isinstance(value, list):
            for number, below in enumerate(cast("list[object]", value)):
                yield from self._below((path, number), below, name)

    def _below(self, path: _Path, value: object, name: _Name) -> Iterable[_Path]:
        if isinstance(value, str):
            return (path,) if self._is_suspect(value, name.suspicion) else ()
        return self.within(path, cast("object", value), name) if isinstance(value, dict | list) else ()

    def shown_path(self, path: _Path) -> str:
        """Return a place in words; a key that is a secret itself is not shown."""
        parts: list[str] = []
        while path is not None:
            path, key = path
            if isinstance(key, int):
                parts.append(f"[{key}]")
            else:
                parts.append(f".{self.shown_key(key)[:ECHO_BYTES_MAX]}")
        return one_line("".join(reversed(parts)).removeprefix("."), ECHO_BYTES_MAX)

    def shown_key(self, key: str) -> str:
        """Return a key; one that is a secret itself is not shown."""
        return "…" if self._has_form(key) else key

    def cleared(self, path: tuple[str | int, ...], value: Json, suspects: AbstractSet[tuple[str | int, ...]]) -> Json:
        """Return a value with a note in the place of everything suspect in it."""
        if path in suspects:
            return WITHHELD
        if isinstance(value, dict):
            return {self.shown_key(key): self.cleared((*path, key), one, suspects) for key, one in value.items()}
        if isinstance(value, list):
            return [self.cleared((*path, at), one, suspects) for at, one in enumerate(value)]
        return value

    def _is_suspect(self, text: str, suspicion: _Suspicion) -> bool:
        if not suspicion:
            return self.has_secret(text)
        said = text.strip()
        if not said or _OWN_TOKEN.fullmatch(said):
            return False
        if self._has_form(said):
            return True
        if len(said) <= SECRET_REFERENCE_CHARS_MAX and (_REFERENCE.fullmatch(said) or _PLACEHOLDER.fullmatch(said)):
            return False
        scheme = _SCHEME.fullmatch(said)
        if scheme is not None:
            return self._is_suspect(scheme[1], max(suspicion, _Suspicion.ANY_WORD))
        if suspicion is _Suspicion.ANY_TEXT:
            return True
        if any(map(str.isspace, said)):
            return False
        return suspicion is _Suspicion.ANY_WORD or _is_opaque(said)

    def _has_form(self, text: str) -> bool:
        if not self.forms or len(text) < _FORM_CHARS_MIN:
            return False
        return any(
            literal not in _NEEDS_DIGIT or any(map(str.isdigit, found[0]))
            for literal, pattern in self.forms
            if literal in text
            for found in pattern.finditer(text)
        )


def _is_opaque(word: str) -> bool:
    """Say whether a word looks drawn at random: long, with letters and digits, and few of them repeated."""
    if len(word) < _OPAQUE_CHARS_MIN or not (any(map(str.isdigit, word)) and any(map(str.isalpha, word))):
        return False
    counts = Counter(word).values()
    return -sum(count / len(word) * math.log2(count / len(word)) for count in counts) >= _OPAQUE_BITS_MIN
