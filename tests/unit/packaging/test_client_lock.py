"""The lock files of what tests take from npm: every package with its hash, none with an address, and the exact pins."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[2]
both_directories = pytest.mark.parametrize("directory", ["browser", "clients"])


def read_json(directory: str, name: str) -> dict[str, Any]:
    return json.loads((TESTS / directory / name).read_text(encoding="utf-8"))


def locked(directory: str) -> dict[str, dict[str, Any]]:
    return {place: one for place, one in read_json(directory, "package-lock.json")["packages"].items() if place}


@both_directories
def test_the_lock_is_of_the_pins_that_package_json_has(directory: str) -> None:
    packages, root = read_json(directory, "package.json"), read_json(directory, "package-lock.json")["packages"][""]
    for kind in ("dependencies", "optionalDependencies"):
        assert root.get(kind) == packages.get(kind)
        for name, version in packages.get(kind, {}).items():
            assert re.fullmatch(r"\d+\.\d+\.\d+(-[\w.]+)?", version), "an exact version"
            assert locked(directory)[f"node_modules/{name}"]["version"] == version


@both_directories
def test_every_locked_package_has_its_hash_and_no_address(directory: str) -> None:
    found = locked(directory)
    assert len(found) >= len(read_json(directory, "package.json")["dependencies"])
    for place, one in found.items():
        assert re.fullmatch(r"sha512-[A-Za-z0-9+/]{86}==", one["integrity"]), place
        assert "resolved" not in one, place
