"""What a server works with: what arguments, the environment, `config.toml` and the platform give, in this order."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from interlock.server.config import Config, FaultyConfig
from interlock.server.config_file import CONFIG_FILE, read_config
from interlock.store.workflow_files import LocalWorkflowFiles

BUNDLED = Path(__file__).parent.parent / "workflows"
"""The workflows that ship with the package."""

Origin = Literal["argument", "environment", "config file", "default"]
"""Where the value of a setting comes from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceArguments:
    """The places that a command line names.

    `core_source`, a directory that is mounted as core, comes from here alone: neither the environment nor a
    project nor a file may say what ships.
    """

    data_dir: str | None = None
    workspace: str | None = None
    workflows_dir: str | None = None
    core_source: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a server works with. All paths are absolute."""

    data_dir: Path
    workspace: Path | None
    user_workflows: Path | None
    user_workflows_origin: Origin = "default"
    core_source: Path | None = None
    is_traced: bool = False
    config: Config = field(default_factory=Config)


def read_settings(environment: Mapping[str, str], arguments: PlaceArguments) -> Settings | FaultyConfig:
    """Return the settings of the data directory that arguments, the environment or the platform name."""
    config = read_config(data_dir_of(environment, arguments) / CONFIG_FILE)
    return config if isinstance(config, FaultyConfig) else settings_from(environment, arguments, config)


def settings_from(environment: Mapping[str, str], arguments: PlaceArguments, config: Config) -> Settings:
    """Return the settings that arguments, the environment, a configuration and the platform give."""
    space = (
        arguments.workspace
        or environment.get("INTERLOCK_WORKSPACE")
        or environment.get("CLAUDE_PROJECT_DIR")
        or os.getcwd()  # noqa: PTH109 — a text like its siblings
    )
    user, origin = _user_workflows(environment, arguments, config)
    return Settings(
        data_dir=data_dir_of(environment, arguments),
        workspace=Path(space).absolute(),
        user_workflows=user,
        user_workflows_origin=origin,
        core_source=Path(arguments.core_source).absolute() if arguments.core_source else None,
        is_traced=environment.get("INTERLOCK_TRACE") == "1",
        config=config,
    )


def data_dir_of(environment: Mapping[str, str], arguments: PlaceArguments) -> Path:
    """Return the data directory that arguments, the environment or the platform name, in this order."""
    data = arguments.data_dir or environment.get("INTERLOCK_DATA_DIR")
    return Path(data).absolute() if data else _platform_data_dir()


def _user_workflows(environment: Mapping[str, str], arguments: PlaceArguments, config: Config) -> tuple[Path, Origin]:
    if arguments.workflows_dir:
        return Path(arguments.workflows_dir).absolute(), "argument"
    user = environment.get("INTERLOCK_WORKFLOWS_DIR")
    if user:
        return Path(user).absolute(), "environment"
    if config.user_dir is not None:
        return config.user_dir, "config file"
    return _platform_config_dir() / "workflows", "default"


def _platform_data_dir() -> Path:
    from platformdirs import user_data_path  # noqa: PLC0415 — needed only without a chosen directory

    return user_data_path("interlock", appauthor=False)


def _platform_config_dir() -> Path:
    from platformdirs import user_config_path  # noqa: PLC0415 — see above

    return user_config_path("interlock", appauthor=False)


def workflow_sources(settings: Settings) -> LocalWorkflowFiles:
    """Return the sources of workflow files: what ships first, then what is mounted as core, then the user's."""
    mounted = (settings.core_source,) if settings.core_source is not None else ()
    return LocalWorkflowFiles(core_dirs=(BUNDLED, *mounted), user_dir=settings.user_workflows)
