"""The configuration: the values of `config.toml` in the data directory, and the defaults (CFG-1)."""

from pathlib import Path
from typing import TYPE_CHECKING

from interlock.engine.gates import AppAnswers, GateClaims
from interlock.engine.outside import SourceKey
from interlock.engine.published import Published
from interlock.kernel.budgets import ARTIFACT_BYTES_MAX, RETENTION_DAYS
from interlock.kernel.frozen import frozen
from interlock.record.base import SHORT, Autonomy, Preferences, TokenFormat
from interlock.record.world import ProofMode
from interlock.views.session import BASELINE

if TYPE_CHECKING:
    from interlock.channels.channel import ChannelConfig
    from interlock.channels.check_config import CheckConfig


@frozen
class Config:
    """The values of a configuration file, or the defaults. `said` contains the keys that the file sets."""

    preset: Autonomy = "guided"
    baseline: Preferences = BASELINE
    gates_claims: GateClaims = "when_client_cannot_ask"
    gates_apps: AppAnswers = "as_claims"
    artifact_bytes_max: int = ARTIFACT_BYTES_MAX
    keeps_repo_root: bool = False
    proofs: ProofMode = "enforce"
    token_format: TokenFormat = SHORT
    user_dir: Path | None = None
    retention_days: int = RETENTION_DAYS
    channels: "tuple[ChannelConfig, ...]" = ()
    sources: tuple[SourceKey, ...] = ()
    checks: "tuple[CheckConfig, ...]" = ()
    said: frozenset[str] = frozenset()


class ConfigFault(Published):
    """One fault: the key (`gates.claims`, or empty if the fault is in no key), what was found, what to write."""

    key: str
    message: str
    fix: str
    line: int | None = None
    column: int | None = None


@frozen
class FaultyConfig:
    """A configuration file that cannot be used, with all its faults."""

    path: Path
    faults: tuple[ConfigFault, ...]

    def lines(self) -> list[str]:
        """Render one line for each fault, with the file and, if known, line and column."""
        return [_render_line(self.path, fault) for fault in self.faults]


def _render_line(path: Path, fault: ConfigFault) -> str:
    place = f":{fault.line}:{fault.column}" if fault.line is not None else ""
    key = f"{fault.key}: " if fault.key else ""
    return f"{path}{place}: {key}{fault.message} {fault.fix}"
