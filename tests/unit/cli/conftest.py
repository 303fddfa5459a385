"""A data directory for the commands that look at recorded sessions."""

from pathlib import Path

import pytest
from tests.support_history import MovingShell, Place


@pytest.fixture
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Place:
    return Place(root=tmp_path / "data", shell=MovingShell(), capsys=capsys)
