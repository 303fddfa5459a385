"""Where `make clients` installs the clients, and the SDK of a benchmark."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def clients_directory() -> Path:
    """Return the directory that `make clients` fills, whether it did or not."""
    return Path(os.environ.get("INTERLOCK_CLIENTS") or ROOT / ".clients").absolute()
