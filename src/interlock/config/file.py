"""Reads `config.toml`. Interlock never writes it.

The TOML parser and the form are imported only if the file exists, so a server without one starts faster.
"""

from pathlib import Path

from interlock.config.model import Config, ConfigFault, FaultyConfig
from interlock.kernel.budgets import CONFIG_BYTES_MAX
from interlock.store.regular_file import find_blocked, read_regular


def read_config(path: Path) -> Config | FaultyConfig:
    """Return the configuration of a file, the defaults if there is no file, or all faults of the file."""
    try:
        data = read_regular(path, CONFIG_BYTES_MAX)
    except (FileNotFoundError, NotADirectoryError) as error:
        if find_blocked(str(path.parent), path.name, error) is None:
            return Config()
        return _unreadable(path, "The file is a link that leads nowhere.", "Correct the link, or remove it.")
    except OSError as error:
        return _unreadable(path, f"The file cannot be read: {error.strerror}.", "Correct it, or remove the file.")
    if len(data) > CONFIG_BYTES_MAX:
        return _unreadable(path, f"The file has more than {CONFIG_BYTES_MAX} bytes.", "Use only the allowed keys.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return _unreadable(path, f"The file is not UTF-8: byte {error.start} is invalid.", "Save it as UTF-8.")
    from interlock.config.form import parse_config  # noqa: PLC0415 — needed only if there is a file

    found = parse_config(text)
    return found if isinstance(found, Config) else FaultyConfig(path=path, faults=found)


def _unreadable(path: Path, message: str, fix: str) -> FaultyConfig:
    return FaultyConfig(path=path, faults=(ConfigFault(key="", message=message, fix=fix),))
