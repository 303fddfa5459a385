"""Where the corpus of WorkRail files stands. It is no part of the repository; tests that need it say so and skip."""

import os
from pathlib import Path

import pytest

CORPUS = Path(os.environ.get("INTERLOCK_CORPUS", Path(__file__).parents[3] / "shared" / "corpus" / "workrail"))


def workrail_files() -> list[Path]:
    """Return the files of the corpus in the order of their names, or skip the test that asks."""
    files = sorted(CORPUS.rglob("*.json"))
    if not files:
        pytest.skip(f"no corpus at {CORPUS}: set INTERLOCK_CORPUS to a directory of WorkRail files")
    return files
