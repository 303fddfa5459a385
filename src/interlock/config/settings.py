"""The settings of a server: from arguments, the environment, `config.toml` and the platform, in this order."""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from interlock.config.data_dir import Origin, PlaceArguments, SettingsError, absolute, data_dir_of
from interlock.config.file import read_config
from interlock.config.model import Config, FaultyConfig
from interlock.config.places import CONFIG_FILE
from interlock.kernel.frozen import frozen
from interlock.store.workflow_files import PROJECT_DIR, LocalWorkflowFiles

BUNDLED = Path(__file__).parent.parent / "workflows"
"""The workflows that ship with the package."""


@frozen
class Settings:
    """The settings of a server. All paths are absolute."""

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
    """Return the settings that arguments, the environment, a configuration and the platform give.

    A directory that an argument names must exist. A directory that the environment names may be created later.

    Raises:
        SettingsError: An argument names no directory, or the current directory is needed but was deleted.
    """
    for option, given in (("--workspace", arguments.workspace), ("--core-source", arguments.core_source)):
        if given and not Path(given).is_dir():
            raise SettingsError(f"{option}: there is no directory {given}.", "Name one that exists.")
    space = arguments.workspace or environment.get("INTERLOCK_WORKSPACE") or environment.get("CLAUDE_PROJECT_DIR")
    user, origin = _user_workflows(environment, arguments, config)
    return Settings(
        data_dir=data_dir_of(environment, arguments),
        workspace=absolute(space) if space else _project_above(absolute(".")),
        user_workflows=user,
        user_workflows_origin=origin,
        core_source=absolute(arguments.core_source) if arguments.core_source else None,
        is_traced=environment.get("INTERLOCK_TRACE") == "1",
        config=config,
    )


def _user_workflows(environment: Mapping[str, str], arguments: PlaceArguments, config: Config) -> tuple[Path, Origin]:
    if arguments.workflows_dir:
        return absolute(arguments.workflows_dir), "argument"
    user = environment.get("INTERLOCK_WORKFLOWS_DIR")
    if user:
        return absolute(user), "environment"
    if config.user_dir is not None:
        return config.user_dir, "config file"
    return _platform_config_dir() / "workflows", "default"


def _project_above(here: Path) -> Path:
    """Return the nearest directory with `.interlock` up to the root of the repository; else the directory itself."""
    above = [here, *here.parents]
    root = next((at for at, one in enumerate(above) if (one / ".git").exists()), -1)
    return next((one for one in above[: root + 1] if (one / PROJECT_DIR).parent.is_dir()), here)


def _platform_config_dir() -> Path:
    from platformdirs import user_config_path  # noqa: PLC0415 — needed only without a chosen directory

    return user_config_path("interlock", appauthor=False)


def workflow_sources(settings: Settings) -> LocalWorkflowFiles:
    """Return the sources of workflow files: the bundled ones, then those mounted as core, then the user's."""
    mounted = (settings.core_source,) if settings.core_source is not None else ()
    return LocalWorkflowFiles(package_dir=BUNDLED, core_dirs=mounted, user_dir=settings.user_workflows)
