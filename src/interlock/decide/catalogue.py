"""What decisions are made of: each primitive with the version of its meaning."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import get_args

from interlock.decide.condition import LenientOperator, StrictOperator
from interlock.kernel.canonical import digest_of
from interlock.kernel.ids import Digest

CATALOGUE: Mapping[str, int] = MappingProxyType(
    {f"source.{kind}": 1 for kind in ("path", "key", "loop_control", "constant")}
    | {f"compute.{op}": 1 for op in (*get_args(StrictOperator), *get_args(LenientOperator))}
    | {f"compute.{op}": 1 for op in ("and", "or", "not", "loop_control")}
    | {"trigger": 1, "action.set": 1}
)
"""The version of each primitive. It goes up when the same inputs come to mean something else."""


@cache
def catalogue_digest() -> Digest:
    """Return the digest of the catalogue: two builds that share it decide alike."""
    return digest_of(dict(CATALOGUE))
