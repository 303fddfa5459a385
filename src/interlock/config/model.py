"""The configuration: what `config.toml` of the data directory sets, and what holds where it sets nothing (CFG-1)."""

from dataclasses import dataclass
from pathlib import Path

from interlock.engine.gates import GateClaims
from interlock.engine.published import Published
from interlock.kernel.budgets import ARTIFACT_BYTES_MAX, RETENTION_DAYS
from interlock.record.base import SHORT, Autonomy, Preferences, TokenFormat
from interlock.views.session import BASELINE


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What a configuration file comes to; without one, the defaults. `said` holds the keys that the file sets."""

    preset: Autonomy = "guided"
    baseline: Preferences = BASELINE
    gates_claims: GateClaims = "when_client_cannot_ask"
    artifact_bytes_max: int = ARTIFACT_BYTES_MAX
    keeps_repo_root: bool = False
    token_format: TokenFormat = SHORT
    user_dir: Path | None = None
    retention_days: int = RETENTION_DAYS
    said: frozenset[str] = frozenset()


class ConfigFault(Published):
    """One fault: the key (`gates.claims`, or nothing where no key is to blame), what was found, what to write."""

    key: str
    message: str
    fix: str
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultyConfig:
    """A configuration file that cannot be used, with every reason."""

    path: Path
    faults: tuple[ConfigFault, ...]

    def lines(self) -> list[str]:
        """Return each fault on a line of its own, with the file and, where it is known, the place in it."""
        return [_line(self.path, fault) for fault in self.faults]


def _line(path: Path, fault: ConfigFault) -> str:
    place = f":{fault.line}:{fault.column}" if fault.line is not None else ""
    key = f"{fault.key}: " if fault.key else ""
    return f"{path}{place}: {key}{fault.message} {fault.fix}"
