"""The configuration in effect: the value and origin of each key, and one hash of all values (CFG-2)."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import cast

from interlock.channels.channel import ChannelConfig
from interlock.channels.check_config import CheckConfig
from interlock.config.data_dir import Origin
from interlock.config.model import Config
from interlock.config.settings import Settings
from interlock.engine.outside import SourceKey
from interlock.kernel.canonical import Json, digest_of
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import Digest
from interlock.store.opening import running_servers
from interlock.store.ports.servers import RunningServer

_PRESET = "preferences.preset"
_PRESET_SETS = frozenset({"preferences.autonomy", "preferences.risk_policy"})


@frozen
class AppliedKey:
    """One key of the configuration with its value in effect."""

    key: str
    value: Json
    origin: Origin


def applied_keys(settings: Settings) -> tuple[AppliedKey, ...]:
    """Return every key with its value and origin, in the order of the form."""
    config = settings.config
    values: dict[str, Json] = {
        _PRESET: config.preset,
        "preferences.autonomy": config.baseline.autonomy,
        "preferences.risk_policy": config.baseline.risk_policy,
        "gates.claims": config.gates_claims,
        "gates.apps": config.gates_apps,
        "evidence.artifact_bytes_max": config.artifact_bytes_max,
        "observations.repo_root": config.keeps_repo_root,
        "proofs.mode": config.proofs,
        "tokens.format": config.token_format,
        "workflows.user_dir": _text(settings),
        "retention.days": config.retention_days,
        "channels": {one.name: _plain(one) for one in config.channels},
        "sources": {one.name: _plain(one) for one in config.sources},
        "checks": {one.name: _plain(one) for one in config.checks},
    }
    return tuple(AppliedKey(key=key, value=value, origin=_origin(settings, key)) for key, value in values.items())


def _plain(one: ChannelConfig | SourceKey | CheckConfig) -> Json:
    """Return a channel, a source or a check as JSON."""
    return cast("Json", json.loads(json.dumps(asdict(one))))


def applied_config_hash(settings: Settings) -> Digest:
    """Return `appliedConfigHash`: the digest of the values in effect, whatever their origin.

    The preset is not included, because the values that it sets are.
    """
    return digest_of({one.key: one.value for one in applied_keys(settings) if one.key != _PRESET})


def config_file_hash(config: Config) -> Digest:
    """Return the digest of the values that a configuration alone gives, without arguments and environment."""
    return applied_config_hash(Settings(data_dir=Path(), workspace=None, user_workflows=config.user_dir, config=config))


@frozen
class ServerState:
    """A running server, and whether the file has other values than when it started; None if that is not known."""

    server: RunningServer
    has_older_values: bool | None

    def to_json(self) -> dict[str, Json]:
        """Return it as `config show --json` prints it."""
        applied = self.server.applied
        return {
            "pid": self.server.pid,
            "client": self.server.client,
            "appliedConfigHash": applied.values if applied is not None else None,
            "restartRequired": self.has_older_values,
        }

    def words(self) -> str:
        """Return what to do about it."""
        if self.has_older_values is None:
            return "not known"
        return "has older values: restart it" if self.has_older_values else "has the values of the file"


def server_states(data_dir: Path, config: Config | None) -> tuple[ServerState, ...] | None:
    """Return each server that runs on a data directory with its state; None if the platform does not say which run.

    `config` is the configuration as the file is now, None if it has faults.
    """
    servers, now = running_servers(data_dir), config_file_hash(config) if config is not None else None
    if servers is None:
        return None
    return tuple(
        ServerState(server=one, has_older_values=one.applied.file != now if one.applied is not None and now else None)
        for one in servers
    )


def _origin(settings: Settings, key: str) -> Origin:
    said = settings.config.said
    if key == "workflows.user_dir":
        return settings.user_workflows_origin
    return "config file" if key in said or (key in _PRESET_SETS and _PRESET in said) else "default"


def _text(settings: Settings) -> str | None:
    if settings.user_workflows is None:
        return None
    # A file name need not be valid Unicode, but the digest needs text.
    return os.fsencode(settings.user_workflows).decode("utf-8", "backslashreplace")
