"""Reading `config.toml`. Nothing ever writes it.

What reads TOML and judges it is imported only where there is a file: a server that starts without one pays for one
look at the disk.
"""

from pathlib import Path

from interlock.config.model import Config, ConfigFault, FaultyConfig
from interlock.kernel.budgets import CONFIG_BYTES_MAX
from interlock.store.regular_file import read_regular

CONFIG_FILE = "config.toml"
"""The file's name in the data directory."""


def read_config(path: Path) -> Config | FaultyConfig:
    """Return what a configuration file comes to, the defaults where there is none, or all that is wrong with it."""
    try:
        data = read_regular(path, CONFIG_BYTES_MAX)
    except (FileNotFoundError, NotADirectoryError):
        return Config()
    except OSError as error:
        return _unreadable(path, f"The file cannot be read: {error.strerror}.", "Correct it, or remove the file.")
    if len(data) > CONFIG_BYTES_MAX:
        return _unreadable(path, f"The file has more than {CONFIG_BYTES_MAX} bytes.", "Use only the allowed keys.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return _unreadable(path, f"The file is not UTF-8: byte {error.start} is invalid.", "Save it as UTF-8.")
    from interlock.config.form import parse_config  # noqa: PLC0415 — only a file pays for it

    found = parse_config(text)
    return found if isinstance(found, Config) else FaultyConfig(path=path, faults=found)


def _unreadable(path: Path, message: str, fix: str) -> FaultyConfig:
    return FaultyConfig(path=path, faults=(ConfigFault(key="", message=message, fix=fix),))
