"""The output of a command that runs: a digest of all of it, and its end as text (CHECK-1, PROOF-1)."""

import hashlib
import re

from interlock.kernel.budgets.workflow import (
    KEPT_OUTPUT_AS_JSON,
)
from interlock.kernel.ids import Digest

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
"""Sequences that colour text and move the cursor in a terminal."""
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
"""Control characters: as JSON, each would take six bytes."""


class KeptOutput:
    """The output of a command: a digest of all of it, and its end. It keeps no more than is asked for."""

    def __init__(self, kept_max: int) -> None:
        self._kept_max = kept_max
        self._kept = b""
        self._sum = hashlib.sha256()

    def add(self, data: bytes) -> None:
        """Add the next part of the output."""
        self._sum.update(data)
        self._kept = (self._kept + data)[-self._kept_max :]

    def text(self) -> str:
        """Return the end of the output as text without control characters, from the start of a line if it can be."""
        from interlock.kernel.canonical import canonical_bytes  # noqa: PLC0415 — a command starts before its import

        text = self._kept.decode("utf-8", "replace").replace("\r\n", "\n")
        if len(self._kept) == self._kept_max and "\n" in text[:-1]:
            text = text.partition("\n")[2]
        text = _CONTROLS.sub("\ufffd", _ESCAPES.sub("", text)).strip("\n")
        # As JSON a quote takes two bytes, and a byte that is no UTF-8 three.
        while len(canonical_bytes(text)) > self._kept_max * KEPT_OUTPUT_AS_JSON:
            text = text[len(text) // 8 + 1 :]
        return text

    def digest(self) -> Digest:
        """Return the digest of the whole output."""
        return Digest(f"sha256:{self._sum.hexdigest()}")
