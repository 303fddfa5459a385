"""The directories that a command line names, and the data directory: all that most commands need of the settings."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from interlock.config.places import nearest_existing, platform_data_dir
from interlock.kernel.errors import InterlockError
from interlock.kernel.frozen import frozen

Origin = Literal["argument", "environment", "config file", "default"]
"""Where the value of a setting comes from."""


@frozen
class PlaceArguments:
    """The directories that a command line names.

    `core_source`, a directory that is mounted as core, can be set only here: the environment, a project or a file must
    not change the workflows that ship.
    """

    data_dir: str | None = None
    workspace: str | None = None
    workflows_dir: str | None = None
    core_source: str | None = None


class SettingsError(InterlockError):
    """A setting is invalid. Says what is wrong and what to do."""

    def __init__(self, message: str, fix: str) -> None:
        super().__init__(f"{message} {fix}")
        self.message, self.fix = message, fix


def data_dir_of(environment: Mapping[str, str], arguments: PlaceArguments) -> Path:
    """Return the data directory that arguments, the environment or the platform name, in this order."""
    data = arguments.data_dir or environment.get("INTERLOCK_DATA_DIR")
    return absolute(data) if data else Path(platform_data_dir())


def data_dir_origin(environment: Mapping[str, str], arguments: PlaceArguments) -> Origin:
    """Return the origin of the data directory that `data_dir_of` returns."""
    if arguments.data_dir:
        return "argument"
    return "environment" if environment.get("INTERLOCK_DATA_DIR") else "default"


def check_data_dir(data_dir: Path) -> None:
    """Check that the data directory is a directory or can be created.

    Raises:
        SettingsError: The path, or one of its parents, is not a directory.
    """
    nearest = Path(nearest_existing(str(data_dir)))
    if os.path.lexists(nearest) and not nearest.is_dir():
        intro = f"{data_dir} cannot be the data directory: " if nearest != data_dir else "The data directory: "
        fix = "Name a directory with --data-dir or INTERLOCK_DATA_DIR; it is created if it is missing."
        raise SettingsError(f"{intro}{nearest} is not a directory.", fix)


def is_there(path: Path) -> bool:
    """Return whether something exists under a path. From Python 3.14 on, `Path.exists` hides that the system refuses.

    Raises:
        OSError: The system does not say.
    """
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def absolute(path: str) -> Path:
    """Return a path of a command line or the environment as an absolute one.

    Raises:
        SettingsError: The path is relative, and the current directory was deleted.
    """
    try:
        return Path(path).absolute()
    except FileNotFoundError:
        message = "The current directory does not exist any more."
        raise SettingsError(
            message, "Change to one that exists, or give every directory as an absolute path."
        ) from None
