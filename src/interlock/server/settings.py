"""Where a server reads and writes: what arguments, the environment and the platform give, in this order."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from interlock.store.workflow_files import LocalWorkflowFiles

BUNDLED = Path(__file__).parent.parent / "workflows"
"""The workflows that ship with the package."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where a server reads and writes. All paths are absolute."""

    data_dir: Path
    workspace: Path | None
    user_workflows: Path | None
    core_source: Path | None = None
    is_traced: bool = False


def settings_from(
    environment: Mapping[str, str],
    *,
    data_dir: str | None = None,
    workspace: str | None = None,
    core_source: str | None = None,
) -> Settings:
    """Return the settings that arguments, the environment and the platform give, in this order of precedence.

    `core_source`, a directory that is mounted as core, comes from arguments alone: neither the environment nor a
    project may say what ships.
    """
    data = data_dir or environment.get("INTERLOCK_DATA_DIR")
    space = workspace or environment.get("INTERLOCK_WORKSPACE") or environment.get("CLAUDE_PROJECT_DIR") or os.getcwd()  # noqa: PTH109 — a text like its siblings
    user = environment.get("INTERLOCK_WORKFLOWS_DIR")
    return Settings(
        data_dir=Path(data).absolute() if data else _platform_data_dir(),
        workspace=Path(space).absolute(),
        user_workflows=Path(user).absolute() if user else _platform_config_dir() / "workflows",
        core_source=Path(core_source).absolute() if core_source else None,
        is_traced=environment.get("INTERLOCK_TRACE") == "1",
    )


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
