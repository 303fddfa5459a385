"""What the use cases work with: one value that a surface puts together once."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.engine.gates import GateClaims
from interlock.kernel.budgets import ARTIFACT_BYTES_MAX
from interlock.record.base import SHORT, Preferences, TokenFormat
from interlock.service.clock import NoTrace, Shell, SystemShell, Trace
from interlock.service.run.plans import Plans
from interlock.service.run.summaries import Summaries
from interlock.service.unanswered import UnansweredStarts
from interlock.store.ports.keys import KeyRingPort
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
    """Enough to look: it holds no writer, so what is given only this cannot write (locks 1.2).

    `anchors` tells where a workspace stands in git; `summaries` tells of all sessions;
    `token_format` is the form that tokens are minted in.
    """

    reader: SessionReader
    key_ring: KeyRingPort
    plans: Plans
    trace: Trace = field(default_factory=NoTrace)
    anchors: Callable[[Path | None], GitAnchors] = nowhere
    token_format: TokenFormat = SHORT
    summaries: Summaries = field(init=False)

    def __post_init__(self) -> None:
        """Begin with nothing read."""
        object.__setattr__(self, "summaries", Summaries(self.reader, self.plans))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Enough to act, what the configuration says of it, and the starts whose answers were lost."""

    read: ReadPorts
    writer: SessionWriter
    catalog: "Catalog"
    shell: Shell = field(default_factory=SystemShell)
    baseline: Preferences = BASELINE
    gates_claims: GateClaims = "when_client_cannot_ask"
    artifact_bytes_max: int = ARTIFACT_BYTES_MAX
    keeps_repo_root: bool = False
    unanswered: UnansweredStarts = field(default_factory=UnansweredStarts)
