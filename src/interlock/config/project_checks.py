"""A project's own checks for the person who may allow them: what they run, and whether they are allowed (CHECK-5)."""

from interlock.config.checks import PROJECT_CHECKS, ProjectChecks, project_above, project_checks
from interlock.config.settings import Settings
from interlock.service.trust.inbox import InboxItem
from interlock.store.opening import open_check_files

ALLOWED = "allowed"


def chosen_project(settings: Settings) -> ProjectChecks | None:
    """Return the project around the workspace that has checks of its own; None if none has."""
    directory = project_above(settings.workspace) if settings.workspace is not None else None
    return project_checks(directory) if directory is not None else None


def project_state(settings: Settings, project: ProjectChecks) -> str:
    """Return whether the checks of a project are allowed as they are and, if not, what allows them."""
    files = open_check_files(settings.data_dir)
    allowed = files.allowed().get(str(project.directory))
    if project.fault is not None:
        return f"faulty: {project.fault}"
    if (damage := files.obstacle()) is not None:
        return f"not allowed, because `{settings.data_dir / damage.name}` cannot be used: {damage.found}. {damage.fix}"
    if allowed is None:
        return "not allowed; `interlock checks allow` allows it"
    return ALLOWED if allowed == project.digest else "changed since it was allowed; `interlock checks allow` allows it"


def allow_project(settings: Settings, project: ProjectChecks, *, is_allowed: bool) -> None:
    """Allow the checks of a project as its file is now, or forget that they were allowed.

    Raises:
        StoreFailureError: It could not be written.
    """
    open_check_files(settings.data_dir).allow(str(project.directory), project.digest if is_allowed else None)


def checks_to_allow(settings: Settings) -> list[InboxItem]:
    """Return the project's file with checks of its own, if it is not allowed as it is."""
    project = chosen_project(settings)
    if project is None or project_state(settings, project) == ALLOWED:
        return []
    names = ", ".join(one.name for one in project.checks) or project.fault or "no check"
    return [
        InboxItem(
            kind="check_to_allow",
            title=f"The project's own checks ({PROJECT_CHECKS}) are not allowed as they are.",
            text=names,
            commands=(f"interlock checks allow --workspace {project.directory}",),
        )
    ]
