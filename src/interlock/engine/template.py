"""`{{key.path}}` in authored text: rendered with the node's context when a step is handed out (D35)."""

import json
import re
from collections.abc import Mapping
from typing import cast

from interlock.kernel.canonical import Json

_HOLE = re.compile(r"\{\{\s*([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)\s*\}\}")


def rendered(template: str, context: Mapping[str, Json]) -> str:
    """Return the text with each hole filled once; an unset key shows as a visible mark, an object as compact JSON."""
    return _HOLE.sub(lambda hole: _filled(hole.group(1), context), template) if "{{" in template else template


def _filled(path: str, context: Mapping[str, Json]) -> str:
    value: object = context
    for part in path.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return f"[unset: {path}]"
        value = cast("Mapping[str, object]", value)[part]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
