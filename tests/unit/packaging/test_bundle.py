"""`packaging/mcpb`: a manifest that hosts take, of this release, and a bundle with all that it is built from."""

import json
import os
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from interlock.config.data_dir import PlaceArguments, data_dir_of
from interlock.server.tools import TOOLS
from interlock.version import VERSION

ROOT = Path(__file__).parents[3]
MANIFEST: dict[str, Any] = json.loads((ROOT / "packaging" / "mcpb" / "manifest.json").read_text(encoding="utf-8"))
PROJECT_FILE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PROJECT_FILE["project"]

WORD = {"type": "string", "minLength": 1}
WORDS = {"type": "array", "items": WORD}


def closed(required: list[str], /, **properties: object) -> dict[str, Any]:
    """Return the schema of an object that has no other properties."""
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


SETTING = closed(
    ["type", "title", "description"],
    type={"enum": ["string", "number", "boolean", "directory", "file"]},
    title=WORD,
    description=WORD,
    required={"type": "boolean"},
)
LIMITS = closed(
    ["manifest_version", "name", "version", "description", "author", "server"],
    manifest_version={"const": "0.4"},
    name={"type": "string", "pattern": "^[a-z0-9-]+$"},
    display_name=WORD,
    version={"type": "string", "pattern": r"^[0-9]+\.[0-9]+\.[0-9]+"},
    description=WORD,
    long_description=WORD,
    author=closed(["name"], name=WORD),
    license=WORD,
    keywords=WORDS,
    server=closed(
        ["type", "entry_point"],
        type={"enum": ["python", "uv"]},
        entry_point=WORD,
        mcp_config=closed(["command"], command=WORD, args=WORDS, env={"type": "object", "additionalProperties": WORD}),
    ),
    tools={"type": "array", "items": closed(["name"], name=WORD, description=WORD)},
    prompts_generated={"type": "boolean"},
    user_config={"type": "object", "additionalProperties": SETTING},
    compatibility=closed(
        [],
        platforms={"type": "array", "items": {"enum": ["darwin", "linux", "win32"]}},
        runtimes=closed([], python=WORD),
    ),
)
"""The fields of the manifest as version 0.4 has them, and no field that it does not know."""


def configured(value: str, **answers: str) -> str:
    """Return a value with what a host puts in its place."""
    for name, answer in answers.items():
        value = value.replace(f"${{user_config.{name}}}", answer).replace(f"${{{name}}}", answer)
    return value


def test_the_manifest_is_one_of_its_version() -> None:
    Draft202012Validator.check_schema(LIMITS)
    assert [f"{fault.json_path}: {fault.message}" for fault in Draft202012Validator(LIMITS).iter_errors(MANIFEST)] == []


@pytest.mark.parametrize("wrong", [{"manifest_version": "0.3"}, {"author": {}}, {"server": {"type": "uv"}}, {"a": 1}])
def test_what_a_host_refuses_is_noticed(wrong: dict[str, Any]) -> None:
    assert not Draft202012Validator(LIMITS).is_valid(MANIFEST | wrong)


def test_the_manifest_is_of_this_release_and_names_the_published_tools() -> None:
    assert MANIFEST["version"] == VERSION
    assert (MANIFEST["name"], MANIFEST["license"]) == (PROJECT["name"], PROJECT["license"])
    assert MANIFEST["compatibility"]["runtimes"]["python"] == PROJECT["requires-python"]
    assert [tool["name"] for tool in MANIFEST["tools"]] == [tool.name for tool in TOOLS]


def test_the_directory_that_the_host_asks_for_becomes_the_data_directory(tmp_path: Path) -> None:
    (name,) = MANIFEST["user_config"]
    setting = MANIFEST["user_config"][name]
    assert (setting["type"], setting["required"]) == ("directory", True)
    assert "default" not in setting, "hosts differ in what they replace inside one"
    result = MANIFEST["server"]["mcp_config"]["env"]
    environment = {key: configured(value, **{name: str(tmp_path)}) for key, value in result.items()}
    assert data_dir_of(environment, PlaceArguments()) == tmp_path


def test_the_command_of_the_bundle_is_the_projects_own() -> None:
    server = MANIFEST["server"]
    words = [configured(word, __dirname="/bundle") for word in server["mcp_config"]["args"]]
    assert words == ["run", "--project", "/bundle", *PROJECT["scripts"], "serve"]
    assert (ROOT / server["entry_point"]).is_file()


def test_the_bundle_holds_what_the_package_is_built_from_and_nothing_stale(tmp_path: Path) -> None:
    """The packer itself comes over the network; here something takes its place that only says what it was given."""
    place, programs = tmp_path / "checkout", tmp_path / "programs"
    for name in ("packaging", "src"):
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, place)
    stale = [place / "src" / "interlock" / "__pycache__" / "a.pyc", place / "build" / "mcpb" / "old"]
    for path in stale:
        path.parent.mkdir(parents=True)
        path.touch()
    programs.mkdir()
    (programs / "npx").write_text('#!/bin/sh\necho "$@"\n', encoding="utf-8")
    (programs / "npx").chmod(0o755)
    environment = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    script = place / "packaging" / "mcpb" / "pack.sh"
    done = subprocess.run([str(script)], cwd="/", env=environment, capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.split() == ["--yes", "@anthropic-ai/mcpb", "pack", "build/mcpb", "build/interlock.mcpb"]
    staged = {path.relative_to(place / "build" / "mcpb").as_posix() for path in (place / "build").rglob("*.*")}
    wheel = PROJECT_FILE["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert {"manifest.json", "pyproject.toml", PROJECT["readme"], MANIFEST["server"]["entry_point"]} <= staged
    assert [
        name for name in [*PROJECT["license-files"], *wheel["packages"]] if not (place / "build/mcpb" / name).exists()
    ] == []
    assert [name for name in staged if name.endswith(".pyc")] == []
    assert not stale[1].exists()
