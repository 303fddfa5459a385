"""How a context delta is applied (CTX-3): key by key, not nested; null deletes a key."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

from interlock.kernel.canonical import Json

Context: TypeAlias = Mapping[str, Json]

RESERVED_KEYS = frozenset({"__proto__", "constructor", "prototype"})
"""Keys that a context must not contain at any depth: in JavaScript every object already has members of these names."""


def merge_context(base: Context, delta: Context) -> Context:
    """Return a new context: `base` with `delta` applied."""
    merged = {key: value for key, value in base.items() if key not in delta}
    merged.update((key, value) for key, value in delta.items() if value is not None)
    return MappingProxyType(merged)
