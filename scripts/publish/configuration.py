"""The reference page of the configuration: every key with its values, its default and its mark."""

import json
from collections.abc import Mapping
from typing import cast

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
    known = dict(key_schemas())
    named = {key: schema for key, schema in known.items() if "patternProperties" in schema}
    keys = [_row(key, schema) for key, schema in known.items() if key not in named]
    head = "| key | value | default | meaning | a change is |\n|---|---|---|---|---|\n"
    presets = [f"| `{preset}` | `{preset}` | `{risk_policy}` |" for preset, risk_policy in PRESETS.items()]
    preset_head = "| preset | autonomy | risk_policy |\n|---|---|---|\n"
    tables = "\n\n".join(_named_table(key, schema) for key, schema in named.items())
    return f"{_INTRO}\n\n{head}{_lines(keys)}\n\n{tables}\n\n## Presets\n\n{preset_head}{_lines(presets)}\n"


def _named_table(key: str, schema: Mapping[str, Json]) -> str:
    """Return the section of tables whose names the user chooses, such as `[channels.NAME]`."""
    patterns = cast("Mapping[str, Mapping[str, Json]]", schema["patternProperties"])
    [form] = patterns.values()
    required = cast("list[str]", form.get("required", []))
    members = cast("Mapping[str, Mapping[str, Json]]", form["properties"])
    rows = [
        f"| `{name}` | {_values(member)} | {_default(name, member, required)} | {member['description']} |"
        for name, member in members.items()
    ]
    head = "| key | value | default | meaning |\n|---|---|---|---|\n"
    return f"## `[{key}.NAME]`\n\n{form['description']} A change is runtime-safe.\n\n{head}{_lines(rows)}"


def _default(name: str, member: Mapping[str, Json], required: list[str]) -> str:
    if name in required:
        return "required"
    return f"`{json.dumps(member['default'])}`" if member.get("default") is not None else ""


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
    if schema["type"] == "array":
        return "list of texts"
    if schema["type"] == "integer":
        return f"whole number ({schema['minimum']} to {schema['maximum']})"
    return "text"
