"""What the use cases work with: one value that a surface puts together once."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from interlock.engine.gates import GateClaims
from interlock.kernel.budgets import ARTIFACT_BYTES_MAX
from interlock.record.base import SHORT, Preferences, TokenFormat
from interlock.service.clock import NoTrace, Shell, SystemShell, Trace
from interlock.service.run.plans import Plans
from interlock.service.run.summaries import Summaries
from interlock.service.unanswered import UnansweredStarts
from interlock.store.ports.keys import KeyRingReader, KeyRingWriter
from interlock.store.ports.reader import SessionReader
from interlock.store.ports.workspace import NOWHERE, GitAnchors
from interlock.store.ports.writer import SessionWriter
from interlock.views.session import BASELINE

if TYPE_CHECKING:
    # It brings the compiler along, which whoever only looks does not need.
    from interlock.service.catalog import Catalog


def nowhere(_workspace: Path | None) -> GitAnchors:
    """Return that a workspace stands nowhere in git: what holds where nobody asks."""
    return NOWHERE


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPorts:
    """Enough to read: no port in it appends to a session or makes a key (READ-1).

    `anchors` finds a workspace's place in git; `summaries` describes all sessions; `token_format` is the form that
    tokens are minted in.
    """

    reader: SessionReader
    key_ring: KeyRingReader
    plans: Plans
    summaries: Summaries
    trace: Trace = field(default_factory=NoTrace)
    anchors: Callable[[Path | None], GitAnchors] = nowhere
    token_format: TokenFormat = SHORT

    @classmethod
    def over(cls, reader: SessionReader, key_ring: KeyRingReader) -> Self:
        """Return the ports over a store. Nothing of it is read yet."""
        plans = Plans(reader)
        return cls(reader=reader, key_ring=key_ring, plans=plans, summaries=Summaries(reader, plans))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Enough to act: the ports that write, what the configuration says, and the starts whose answers were lost."""

    read: ReadPorts
    writer: SessionWriter
    key_ring: KeyRingWriter
    catalog: "Catalog"
    shell: Shell = field(default_factory=SystemShell)
    baseline: Preferences = BASELINE
    gates_claims: GateClaims = "when_client_cannot_ask"
    artifact_bytes_max: int = ARTIFACT_BYTES_MAX
    keeps_repo_root: bool = False
    unanswered: UnansweredStarts = field(default_factory=UnansweredStarts)
