"""A harness over either store: what a use case promises, it promises over both."""

from pathlib import Path

import pytest

from interlock.testing.harness import Harness, linear_workflow

OPTIONAL = {"id": "b", "title": "Step b", "prompt": "Do b.", "notes": "optional"}


@pytest.fixture(params=["memory", "disk"])
def harness(request: pytest.FixtureRequest, tmp_path: Path) -> Harness:
    """Three workflows: three plain steps, one whose middle step needs no notes, and one of a single step."""
    documents = (
        linear_workflow("test.abc", "a", "b", "c"),
        linear_workflow("test.optional", "a", OPTIONAL, "c"),
        linear_workflow("test.one", "only"),
    )
    if request.param == "memory":
        return Harness.in_memory(*documents)
    return Harness.on_disk(tmp_path / "data", *documents)
