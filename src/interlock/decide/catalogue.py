"""The primitives of decisions, each with a version of its semantics."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import get_args

from interlock.decide.condition import LenientOperator, StrictOperator
from interlock.decide.value import OPERANDS
from interlock.kernel.canonical import digest_of
from interlock.kernel.ids import Digest

CATALOGUE: Mapping[str, int] = MappingProxyType(
    {f"source.{kind}": 1 for kind in ("path", "key", "evidence", "loop_control", "constant")}
    | {f"compute.{op}": 1 for op in (*get_args(StrictOperator), *get_args(LenientOperator))}
    | {f"compute.{op}": 1 for op in ("and", "or", "not", "loop_control")}
    | {f"compute.{op}": 1 for op in (*OPERANDS, "read", "constant", "if")}
    | {"trigger": 1, "action.set": 1, "action.emit": 1}
)
"""The version of each primitive. It is increased when the same inputs give another result."""


@cache
def catalogue_digest() -> Digest:
    """Return the digest of the catalogue. Two builds with the same digest make the same decisions."""
    return digest_of(dict(CATALOGUE))
