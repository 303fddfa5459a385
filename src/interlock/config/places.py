"""What a start needs to know of its directories before anything else is imported: it imports next to nothing."""

import os

CONFIG_FILE = "config.toml"
"""The name of the configuration file in the data directory."""
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
"""The values of INTERLOCK_LOG_LEVEL, in capital letters."""


def nearest_existing(path: str) -> str:
    """Return the path, or the nearest of its parents, under which something exists. The path is absolute."""
    while not os.path.lexists(path) and (parent := os.path.dirname(path)) != path:  # noqa: PTH120 — see above
        path = parent
    return path


def platform_data_dir() -> str:
    """Return the data directory that the platform prescribes."""
    from platformdirs import user_data_dir  # noqa: PLC0415 — needed only without a chosen directory

    return user_data_dir("interlock", appauthor=False)
