"""`interlock config check`: report every fault of a configuration file."""

import argparse
from pathlib import Path

from interlock.cli.options import add_store_options, chosen_data_dir
from interlock.cli.screen import StopError, counted, printable_line, say, say_json
from interlock.config.data_dir import is_there
from interlock.config.file import read_config
from interlock.config.model import Config, FaultyConfig
from interlock.config.places import CONFIG_FILE
from interlock.kernel.canonical import Json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    parser.add_argument(
        "file", metavar="FILE", nargs="?", help="the file to check (default: config.toml of the data directory)"
    )


def run(options: argparse.Namespace) -> int:
    """Check a file, or that of the data directory; print every fault or a summary, and return the exit code.

    Raises:
        StopError: The named file does not exist.
    """
    file: str | None = options.file
    path = Path(file) if file is not None else chosen_data_dir(options) / CONFIG_FILE
    exists = is_there(path)
    if file is not None and not exists:
        raise StopError(f"There is no file {printable_line(file)}.", "Name a file that exists.", exit_code=2)
    config = read_config(path)
    faulty = config if isinstance(config, FaultyConfig) else None
    if options.as_json:
        faults: list[Json] = [] if faulty is None else [one.to_json() for one in faulty.faults]
        say_json({"file": str(path), "exists": exists, "faults": faults})
    elif isinstance(config, FaultyConfig):
        say("\n".join(config.lines()))
        faults_found = counted(len(config.faults), "fault")
        say(f"{printable_line(str(path))}: {faults_found}. Until they are corrected, `interlock serve` does not start.")
    elif exists:
        say(f"{printable_line(str(path))}: no faults; it sets {_described(config)}.")
    else:
        say(f"There is no {printable_line(str(path))}: every key has its default.")
    return 0 if faulty is None else 1


def _described(config: Config) -> str:
    """Return how many keys a file sets, and how many channels, sources and checks it defines."""
    named = {"channel": config.channels, "source": config.sources, "check": config.checks}
    keys = len(config.said - {f"{noun}s" for noun in named})
    found = [counted(len(defined), noun) for noun, defined in named.items() if defined]
    return ", ".join([counted(keys, "key")] * bool(keys or not found) + found)
