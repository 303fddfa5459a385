"""Where the clients are, and an empty home for each test."""

from pathlib import Path

import pytest
from tests.clients.installed import Clients
from tests.support.clients import clients_directory
from tests.support.server import workspace_in

from interlock.testing.harness import linear_workflow

GATED = linear_workflow(
    "test.gated", {"id": "gate", "title": "Gate", "prompt": "Let it pass.", "requireConfirmation": True}, "after"
)
"""A person is asked at once, and then there is a plain step."""
PLAIN = linear_workflow("test.plain", "a", "b")


@pytest.fixture(scope="session")
def installed() -> Path:
    """Return the directory that `make clients` fills."""
    return clients_directory()


@pytest.fixture
def clients(installed: Path, tmp_path: Path) -> Clients:
    """Return the clients, with an empty home and a project that has a workflow of its own."""
    home = tmp_path / "home"
    home.mkdir()
    return Clients(home=home, project=workspace_in(tmp_path, gated=GATED, plain=PLAIN), installed=installed)
