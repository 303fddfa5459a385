"""The configuration as it is written and as it applies, keys, clients, and what a collection would delete (CON-12)."""

import json
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from interlock.config.applied import applied_config_hash, applied_keys, server_states
from interlock.config.form import restart_marks
from interlock.config.places import CONFIG_FILE
from interlock.config.settings import Settings
from interlock.console.decisions import Decisions
from interlock.console.maintenance import Maintenance
from interlock.console.rendering.templates import Templates
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen


@frozen
class SettingRow:
    """One key: its value in the file as it is now, and the value with which this console was started."""

    key: str
    desired: str
    applied: str
    origin: str
    is_restart: bool

    @property
    def is_pending(self) -> bool:
        """Whether the value was changed since the start."""
        return self.desired != self.applied


@dataclass(frozen=True, kw_only=True)
class SettingsPage:
    """The handler of the page."""

    decisions: Decisions
    maintenance: Maintenance
    templates: Templates

    def shown(self, request: Request) -> Response:
        """Show the settings; with `collection`, what a collection would delete now."""
        applied, desired = self.decisions.settings, self.maintenance.read_settings()
        is_collecting = "collection" in request.query_params
        values = {
            "title": "Settings",
            "file": applied.data_dir / CONFIG_FILE,
            "data_dir": applied.data_dir,
            "faults": desired.splitlines() if isinstance(desired, str) else [],
            "rows": setting_rows(applied, applied if isinstance(desired, str) else desired),
            "applied_hash": applied_config_hash(applied),
            "desired_hash": None if isinstance(desired, str) else applied_config_hash(desired),
            "servers": server_states(applied.data_dir, None if isinstance(desired, str) else desired.config),
            "keys": self.maintenance.keys(),
            "clients": self.maintenance.clients(),
            "collection": self.maintenance.collection() if is_collecting else None,
        }
        return self.templates.page(request, "settings.html", values)


def setting_rows(applied: Settings, desired: Settings) -> list[SettingRow]:
    """Return every key with its value in the file and its value in effect."""
    marks, in_effect = restart_marks(), {one.key: one.value for one in applied_keys(applied)}
    return [
        SettingRow(
            key=one.key,
            desired=_text(one.value),
            applied=_text(in_effect[one.key]),
            origin=one.origin,
            is_restart=marks[one.key],
        )
        for one in applied_keys(desired)
    ]


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
