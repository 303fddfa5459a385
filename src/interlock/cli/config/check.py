"""`interlock config check` and `interlock config schema`: every fault of a file, and what a file may hold."""

from collections.abc import Mapping
from pathlib import Path

from interlock.cli.screen import StopError, printable_line, say, say_json
from interlock.config.file import CONFIG_FILE, read_config
from interlock.config.form import config_schema
from interlock.config.model import FaultyConfig
from interlock.config.settings import PlaceArguments, data_dir_of
from interlock.kernel.canonical import Json


def run_check(environment: Mapping[str, str], arguments: PlaceArguments, file: str | None, *, as_json: bool) -> int:
    """Check a file, or that of the data directory; print every fault or a summary, and return the exit code.

    Raises:
        StopError: There is no file of the name that was given.
    """
    path = Path(file) if file is not None else data_dir_of(environment, arguments) / CONFIG_FILE
    exists = path.exists()
    if file is not None and not exists:
        raise StopError(f"There is no file {printable_line(file)}.", "Name one that exists.", exit_code=2)
    config = read_config(path)
    faulty = config if isinstance(config, FaultyConfig) else None
    if as_json:
        faults: list[Json] = [] if faulty is None else [one.to_json() for one in faulty.faults]
        say_json({"file": str(path), "exists": exists, "faults": faults})
    elif isinstance(config, FaultyConfig):
        say("\n".join(config.lines()))
        say(f"{printable_line(str(path))}: {_counted(len(config.faults), 'fault')}; no server starts with this file.")
    elif exists:
        say(f"{printable_line(str(path))}: fine, sets {_counted(len(config.said), 'key')}.")
    else:
        say(f"There is no {printable_line(str(path))}: every key has its default.")
    return 0 if faulty is None else 1


def run_schema() -> int:
    """Print the JSON Schema of `config.toml`, and return the exit code."""
    say_json(config_schema())
    return 0


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
