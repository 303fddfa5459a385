"""`packaging/server.json` is an entry that the MCP registry takes, of this release, and says what is so."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from interlock.cli.main import main
from interlock.version import VERSION

ROOT = Path(__file__).parents[3]
ENTRY: dict[str, Any] = json.loads((ROOT / "packaging" / "server.json").read_text(encoding="utf-8"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
(PACKAGE,) = ENTRY["packages"]

WORD = {"type": "string", "minLength": 1}
EXACT = {"type": "string", "pattern": r"^[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.+-]*$", "maxLength": 255}
VARIABLE = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[A-Z][A-Z0-9_]*$"},
        "description": WORD,
        "format": {"enum": ["string", "number", "boolean", "filepath"]},
        "default": WORD,
        "choices": {"type": "array", "items": WORD},
    },
    "required": ["name", "description"],
    "additionalProperties": False,
}
LIMITS = {
    "type": "object",
    "properties": {
        "$schema": {"const": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"},
        "name": {"type": "string", "pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$", "minLength": 3, "maxLength": 200},
        "title": {"type": "string", "minLength": 1, "maxLength": 100},
        "description": {"type": "string", "minLength": 1, "maxLength": 100},
        "version": EXACT,
        "packages": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "registryType": {"enum": ["npm", "pypi", "oci", "nuget", "mcpb"]},
                    "identifier": WORD,
                    "version": EXACT,
                    "runtimeHint": WORD,
                    "transport": {
                        "type": "object",
                        "properties": {"type": {"const": "stdio"}},
                        "required": ["type"],
                        "additionalProperties": False,
                    },
                    "packageArguments": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {"type": {"const": "positional"}, "value": WORD},
                            "required": ["type", "value"],
                            "additionalProperties": False,
                        },
                    },
                    "environmentVariables": {"type": "array", "items": VARIABLE},
                },
                "required": ["registryType", "identifier", "version", "transport"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["$schema", "name", "description", "version", "packages"],
    "additionalProperties": False,
}
"""The fields of the entry, with the limits of the registry's schema of 2025-12-11, and no others."""


def test_the_entry_keeps_the_limits_of_the_registry() -> None:
    Draft202012Validator.check_schema(LIMITS)
    assert [f"{fault.json_path}: {fault.message}" for fault in Draft202012Validator(LIMITS).iter_errors(ENTRY)] == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "interlock"},
        {"name": "a/b/c"},
        {"description": "x" * 101},
        {"version": "^1.0.0"},
        {"version": "latest"},
    ],
    ids=str,
)
def test_what_the_registry_refuses_is_noticed(wrong: dict[str, str]) -> None:
    assert not Draft202012Validator(LIMITS).is_valid(ENTRY | wrong)


def test_the_entry_is_of_this_release() -> None:
    assert ENTRY["version"] == PACKAGE["version"] == PROJECT["version"] == VERSION
    assert PACKAGE["identifier"] == PROJECT["name"]
    assert PACKAGE["identifier"] in PROJECT["scripts"], "a runner starts the command that is named like the package"


def test_the_arguments_of_the_entry_are_those_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    words = [one["value"] for one in PACKAGE["packageArguments"]]
    with pytest.raises(SystemExit, match="0"):
        main([*words, "--help"])
    assert "serve" in capsys.readouterr().out


def test_the_variables_of_the_entry_are_read_by_the_program() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src" / "interlock").rglob("*.py"))
    named = [one["name"] for one in PACKAGE["environmentVariables"]]
    assert named
    assert [name for name in named if f'"{name}"' not in source] == []


def test_whoever_publishes_is_named_alike_everywhere() -> None:
    name = ENTRY["name"]
    assert f"<!-- mcp-name: {name} -->" in (ROOT / PROJECT["readme"]).read_text(encoding="utf-8")
    dockerfile = (ROOT / "packaging" / "Dockerfile").read_text(encoding="utf-8")
    assert f'LABEL io.modelcontextprotocol.server.name="{name}"' in dockerfile
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert set(re.findall(r"io\.github\.[\w-]+/\w+", page)) == {name}
