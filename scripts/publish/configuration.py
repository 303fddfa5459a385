"""The reference page of the configuration: every key with its values, its default and its mark."""

import json
from collections.abc import Mapping

from interlock.config.form import PRESETS, RESTART_MARK, key_schemas
from interlock.kernel.canonical import Json

_INTRO = """# Configuration

The keys of `config.toml` in the data directory. Any other key is an error. Values are applied when a server starts;
`retention` is applied when `interlock gc` runs. A *restart-required* key changes the workflows or tools that clients
receive when they connect; all other keys are *runtime-safe*."""
_DEFAULTS: Mapping[str, str] = {
    "preferences.autonomy": "the preset's",
    "preferences.risk_policy": "the preset's",
    "workflows.user_dir": "`workflows` in the platform's configuration directory",
}
"""Where a default is no single value."""


def config_page() -> str:
    """Return the reference page of the configuration."""
    keys = [_row(key, schema) for key, schema in key_schemas()]
    head = "| key | value | default | meaning | a change is |\n|---|---|---|---|---|\n"
    presets = [f"| `{preset}` | `{preset}` | `{risk_policy}` |" for preset, risk_policy in PRESETS.items()]
    preset_head = "| preset | autonomy | risk_policy |\n|---|---|---|\n"
    return f"{_INTRO}\n\n{head}{_lines(keys)}\n\n## Presets\n\n{preset_head}{_lines(presets)}\n"


def _lines(rows: list[str]) -> str:
    return "\n".join(rows)


def _row(key: str, schema: Mapping[str, Json]) -> str:
    default = _DEFAULTS.get(key) or f"`{json.dumps(schema['default'])}`"
    mark = "restart-required" if schema[RESTART_MARK] is True else "runtime-safe"
    return f"| `{key}` | {_values(schema)} | {default} | {schema['description']} | {mark} |"


def _values(schema: Mapping[str, Json]) -> str:
    choices = schema.get("enum")
    if isinstance(choices, list):
        return " \\| ".join(f'`"{choice}"`' for choice in choices)
    if schema["type"] == "integer":
        return f"whole number ({schema['minimum']} to {schema['maximum']})"
    return "text"
