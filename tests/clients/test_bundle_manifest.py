"""The manifest of the one-click bundle is what its format's own validator accepts."""

import json
from pathlib import Path

import pytest
from tests.clients.installed import ROOT, Clients

MCPB = "@anthropic-ai/mcpb"
MANIFEST = ROOT / "packaging" / "mcpb" / "manifest.json"


def test_the_manifest_of_the_bundle_is_valid(clients: Clients) -> None:
    if not MANIFEST.is_file():
        pytest.skip("there is no packaging/mcpb/manifest.json yet; once there is, this test holds it")
    ended = clients.run(MCPB, "mcpb", "validate", str(MANIFEST))
    assert ended.code == 0, ended.output


def test_a_manifest_without_a_server_is_refused(clients: Clients, tmp_path: Path) -> None:
    """Else the test above would show nothing."""
    faulty = tmp_path / "manifest.json"
    author = {"name": "Somebody"}
    manifest = {"manifest_version": "0.4", "name": "x", "version": "1.0.0", "description": "X.", "author": author}
    faulty.write_text(json.dumps(manifest), encoding="utf-8")
    ended = clients.run(MCPB, "mcpb", "validate", str(faulty))
    assert ended.code == 1, ended.output
    assert "server" in ended.output
