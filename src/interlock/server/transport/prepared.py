"""Recognises the requests whose answer needs no state, and returns prepared bytes for them.

It is strict on purpose: a message of any other form, a faulty one included, is left to the server. It imports json
alone, because a client waits for the first answer.
"""

import json
import os

from interlock.kernel.budgets import FRONT_ID_CHARACTERS_MAX, FRONT_ID_MAX, FRONT_LINE_BYTES_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias, TypeGuard

    Object: TypeAlias = dict[str, Any]  # a JSON object of a client, of which every part is checked before it is used

_FILE = os.path.join(os.path.dirname(__file__), os.pardir, "published", "front.json")  # noqa: PTH118, PTH120 — see above
_PREFIX = "io.modelcontextprotocol/"
_VERSION, _INFO, _CAPABILITIES = (
    f"{_PREFIX}{name}" for name in ("protocolVersion", "clientInfo", "clientCapabilities")
)
_PAGES = f"{_PREFIX}ui"
"""The extension by which a client declares that it shows pages."""
_SILENT = frozenset({"notifications/initialized", "notifications/cancelled"})
"""Notifications that alter no prepared answer."""


class Prepared:
    """The prepared results, and the protocol version that the client has chosen by its first request."""

    def __init__(self) -> None:
        with open(_FILE, encoding="utf-8") as file:  # noqa: PTH123 — pathlib is not imported yet
            published: Object = json.load(file)
        self._results: list[str] = published["results"]
        self._versions: dict[str, dict[str, int]] = published["versions"]
        self._version: str | None = None
        self._shows_pages = False

    def answer(self, line: bytes) -> "tuple[int | str, bytes] | None":
        """Return the id and the answer of a request; an empty answer for a message that gets none; else None.

        None means that only the server can answer. Then no later message may be passed to this method.
        """
        if not line or line.isspace():
            return "", b""
        message = _parse(line)
        if message is None or not message.keys() <= {"jsonrpc", "id", "method", "params"}:
            return None
        method, params = message.get("method"), message.get("params", {})
        if message.get("jsonrpc") != "2.0" or not isinstance(method, str) or not _is_object(params):
            return None
        if "id" not in message:
            return ("", b"") if method in _SILENT and self._version is not None else None
        version = self._version_of(method, params)
        results = self._versions.get(version or "", {})
        identity = message["id"]
        self._shows_pages = self._shows_pages or _declares_pages(params)
        if method not in results or not _is_plain_id(identity) or (self._shows_pages and method == "tools/list"):
            return None
        self._version = version
        text = f'{{"jsonrpc":"2.0","id":{json.dumps(identity)},"result":{self._results[results[method]]}}}\n'
        return identity, text.encode()

    def _version_of(self, method: str, params: "Object") -> str | None:
        """Return the version in which a request is to be answered, or None if its parameters are not the plain ones."""
        if method == "initialize":
            return params["protocolVersion"] if self._version is None and _is_hello(params) else None
        if params.keys() - {"_meta"}:
            return None
        meta = params.get("_meta", {})
        if not _is_object(meta):
            return None
        if _VERSION not in meta:
            # Without an envelope, the connection must have begun with a handshake.
            is_legacy = self._version is not None and "initialize" in self._versions[self._version]
            return self._version if is_legacy and _is_progress_token(meta) else None
        wanted = meta[_VERSION]
        if self._version not in (None, wanted) or not isinstance(wanted, str):
            return None
        is_plain = meta.keys() <= {_VERSION, _INFO, _CAPABILITIES, "progressToken"} and _is_progress_token(
            {name: value for name, value in meta.items() if not name.startswith(_PREFIX)}
        )
        is_known = _are_capabilities(meta.get(_CAPABILITIES)) and (_INFO not in meta or _is_info(meta[_INFO]))
        return wanted if is_plain and is_known and "initialize" not in self._versions.get(wanted, ()) else None


def _parse(line: bytes) -> "Object | None":
    """Return the object of a line that every strict parser accepts and that is small; else None."""
    if len(line) > FRONT_LINE_BYTES_MAX or b"\\u" in line:
        return None
    try:
        found: object = json.loads(line.decode("utf-8"), object_pairs_hook=_object_of, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return found if _is_object(found) else None


def _is_object(value: object) -> "TypeGuard[Object]":
    return isinstance(value, dict)


def _object_of(pairs: "list[tuple[str, object]]") -> "dict[str, object]":
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key occurs twice")
    return members


def _refuse(name: str) -> None:
    raise ValueError(name)


def _is_plain_id(identity: object) -> bool:
    """Say whether every JSON encoder writes an id in the same way."""
    if isinstance(identity, str):
        return (
            len(identity) <= FRONT_ID_CHARACTERS_MAX and identity.isascii() and json.dumps(identity) == f'"{identity}"'
        )
    return isinstance(identity, int) and not isinstance(identity, bool) and abs(identity) <= FRONT_ID_MAX


def _is_hello(params: "Object") -> bool:
    return (
        params.keys() == {"protocolVersion", "capabilities", "clientInfo"}
        and isinstance(params["protocolVersion"], str)
        and _are_capabilities(params["capabilities"])
        and _is_info(params["clientInfo"])
    )


def _declares_pages(params: "Object") -> bool:
    """Say whether the client shows pages: then its list of tools is another one."""
    found: object = params
    for name in ("capabilities", "extensions") if "capabilities" in params else ("_meta", _CAPABILITIES, "extensions"):
        found = found.get(name) if _is_object(found) else None
    return _is_object(found) and _PAGES in found


def _is_info(value: object) -> bool:
    if not _is_object(value):
        return False
    texts = {"name", "version", "title", "description", "websiteUrl"}
    return {"name", "version"} <= value.keys() <= texts and all(isinstance(text, str) for text in value.values())


def _are_capabilities(value: object) -> bool:
    if not _is_object(value):
        return False
    for name, one in value.items():
        if not _is_object(one):
            return False
        if name == "roots":
            is_known = one.keys() <= {"listChanged"} and all(isinstance(flag, bool) for flag in one.values())
        elif name in ("experimental", "extensions"):
            is_known = all(isinstance(settings, dict) for settings in one.values())
        else:
            is_known = _are_objects(one)
        if not is_known:
            return False
    return True


def _are_objects(value: object) -> bool:
    if not _is_object(value):
        return False
    return all(_are_objects(one) for one in value.values())


def _is_progress_token(meta: "Object") -> bool:
    return not meta or (meta.keys() == {"progressToken"} and _is_plain_id(meta["progressToken"]))
