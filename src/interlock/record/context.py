"""What a context delta means (CTX-3): shallow, and null deletes a key."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

from interlock.kernel.canonical import Json

Context: TypeAlias = Mapping[str, Json]

RESERVED_KEYS = frozenset({"__proto__", "constructor", "prototype"})
"""Keys that no context holds, at any depth: in many languages an object has members of these names already."""


def merge_context(base: Context, delta: Context) -> Context:
    """Return base with delta on top."""
    merged = {key: value for key, value in base.items() if key not in delta}
    merged.update((key, value) for key, value in delta.items() if value is not None)
    return MappingProxyType(merged)
