"""The lock file of the npm clients: every package with its hash, none with an address, and the pins of package.json."""

import json
import re
from pathlib import Path
from typing import Any

CLIENTS = Path(__file__).parents[2] / "clients"
PACKAGES: dict[str, Any] = json.loads((CLIENTS / "package.json").read_text(encoding="utf-8"))
LOCK: dict[str, Any] = json.loads((CLIENTS / "package-lock.json").read_text(encoding="utf-8"))
LOCKED: dict[str, dict[str, Any]] = {place: one for place, one in LOCK["packages"].items() if place}


def test_the_lock_is_of_the_pins_that_stand_in_package_json() -> None:
    root = LOCK["packages"][""]
    for kind in ("dependencies", "optionalDependencies"):
        assert root[kind] == PACKAGES[kind]
        for name, version in PACKAGES[kind].items():
            assert re.fullmatch(r"\d+\.\d+\.\d+(-[\w.]+)?", version), "an exact version"
            assert LOCKED[f"node_modules/{name}"]["version"] == version


def test_every_locked_package_has_its_hash_and_no_address() -> None:
    assert len(LOCKED) > len(PACKAGES["dependencies"])
    for place, one in LOCKED.items():
        assert re.fullmatch(r"sha512-[A-Za-z0-9+/]{86}==", one["integrity"]), place
        assert "resolved" not in one, place
