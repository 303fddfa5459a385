"""The checks of the user's configuration, and a project's own ones that a person has allowed (CHECK-1, CHECK-5)."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import field
from pathlib import Path

from interlock.channels.check import CheckFault, PlacedCheck
from interlock.channels.check_config import CheckConfig
from interlock.channels.check_place import (
    changed_fault,
    definition_digest,
    pin_check,
    place_check,
    place_fault,
    protected_state,
)
from interlock.kernel.budgets import CHECK_ENDED_PROCESSES_MAX, CHECKS_FILE_BYTES_MAX
from interlock.kernel.canonical import digest_of_bytes
from interlock.kernel.descent import own_program
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import Digest, NodeId
from interlock.record.world import PinnedCheck
from interlock.service.ports import HeldCheck, WaitingCheck, undefined_check
from interlock.store.opening import open_check_files
from interlock.store.regular_file import read_regular

TAKEN = 75
"""The exit code of a process that was to run a check which another one runs, or has just run."""
PROJECT_CHECKS = ".interlock/checks.toml"
"""The file of a project with its own checks, below its directory."""


@frozen
class ProjectChecks:
    """A project's own checks as its file has them now, with the digest of the file. `fault` says why it has none."""

    directory: Path
    digest: Digest | None = None
    checks: tuple[CheckConfig, ...] = ()
    fault: str | None = None


@frozen
class LocalChecks:
    """The checks over a data directory (`Checks`). It reads nothing until a run has one."""

    data_dir: Path
    configured: tuple[CheckConfig, ...] = ()
    _runners: "dict[tuple[NodeId, int], subprocess.Popen[bytes]]" = field(default_factory=dict)
    """The processes that were begun here, by the node and the number of results that it had."""

    def pin(self, name: str, workspace: Path | None) -> PinnedCheck | CheckFault:
        """See `Checks`."""
        config = next((one for one in self.configured if one.name == name), None)
        found = place_check(config, workspace) if config is not None else self._of_project(name, workspace)
        return found if isinstance(found, CheckFault) else pin_check(found, self.data_dir)

    def find(self, waiting: WaitingCheck) -> PlacedCheck | CheckFault:
        """See `Checks`."""
        pinned = waiting.pinned
        placed = None if pinned is None else self._pinned(pinned)
        if pinned is None or placed is None:
            return _list_fault(self.data_dir) or CheckFault(
                why=f"the definition of the check `{waiting.name}` has changed since the run began, or is gone",
                fix="Tell the user: they restore its definition, or allow the project's checks again with `interlock"
                " checks allow`. With a changed definition, a new run is needed.",
            )
        fault = place_fault(placed, self.data_dir) or changed_fault(placed, pinned)
        return fault or replace(placed, protected_state=protected_state(placed))

    def begin(self, waiting: WaitingCheck) -> CheckFault | None:
        """See `Checks`. The other process continues when this one ends."""
        found = self.find(waiting)
        if isinstance(found, CheckFault):
            return found
        key = (waiting.node, waiting.results)
        running = self._drop_ended(key)
        if running or open_check_files(self.data_dir).is_held(waiting.node):
            return None
        arguments = ["--data-dir", str(self.data_dir), "checks", "run", waiting.node, "--after", str(waiting.results)]
        try:
            self._runners[key] = subprocess.Popen(  # noqa: S603 — this program
                [*own_program(), *arguments],
                cwd=self.data_dir,
                env=_runner_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            why = f"no process can be started for the check `{waiting.name}`: {error.strerror or error}"
            return CheckFault(why=why, fix="End other programs, then make the call again.")
        return None

    def hold(self, node: NodeId) -> AbstractContextManager[HeldCheck | None]:
        """See `Checks`."""
        return open_check_files(self.data_dir).hold(node)

    def is_unfinished(self, waiting: WaitingCheck) -> bool:
        """See `Checks`."""
        return self.exit_of(waiting) is not None or open_check_files(self.data_dir).is_unfinished(waiting.node)

    def exit_of(self, waiting: WaitingCheck) -> int | None:
        """See `Checks`."""
        runner = self._runners.get((waiting.node, waiting.results))
        code = runner.poll() if runner is not None else None
        return None if code == TAKEN else code

    def _drop_ended(self, key: tuple[NodeId, int]) -> bool:
        """Forget processes that ended long ago; return whether the one of a key still runs."""
        ended = [one for one, runner in list(self._runners.items()) if runner.poll() is not None]
        for one in ended[:-CHECK_ENDED_PROCESSES_MAX]:
            self._runners.pop(one, None)
        return key in self._runners and key not in ended

    def _pinned(self, pinned: PinnedCheck) -> PlacedCheck | None:
        """Return the check that was pinned, from the configuration or from an allowed project as they are now."""
        return next((one for one in self._placed(pinned.name) if definition_digest(one) == pinned.definition), None)

    def _placed(self, name: str) -> Iterator[PlacedCheck]:
        for config in (one for one in self.configured if one.name == name):
            yield from (PlacedCheck(config=config, directory=Path(one)) for one in config.workspaces)
        for directory, digest in sorted(open_check_files(self.data_dir).allowed().items()):
            project = project_checks(Path(directory))
            if project.digest == digest:
                named = (one for one in project.checks if one.name == name)
                yield from (PlacedCheck(config=one, directory=Path(directory)) for one in named)

    def _of_project(self, name: str, workspace: Path | None) -> PlacedCheck | CheckFault:
        """Return a check of the project around a workspace, if a person has allowed its file as it is now."""
        directory = project_above(workspace) if workspace is not None else None
        project = project_checks(directory) if directory is not None else None
        config = next((one for one in project.checks if one.name == name), None) if project is not None else None
        if project is None or config is None:
            return undefined_check(name)
        allowed = open_check_files(self.data_dir).allowed().get(str(project.directory))
        if allowed == project.digest:
            return PlacedCheck(config=config, directory=project.directory)
        if (fault := _list_fault(self.data_dir)) is not None:
            return fault
        state = "has changed since it was allowed" if allowed is not None else "is not allowed yet"
        return CheckFault(
            why=f"the check `{name}` is one of the project, and its file `{PROJECT_CHECKS}` {state}",
            fix="Ask the user to review the file and to run `interlock checks allow` in a terminal of their own, in"
            " the directory of the project.",
        )


def _runner_environment() -> dict[str, str]:
    """Return the environment of a process that runs a check: its current directory is no place of modules."""
    places = [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(one)]  # noqa: PTH117
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return environment | ({"PYTHONPATH": os.pathsep.join(places)} if places else {})


def _list_fault(data_dir: Path) -> CheckFault | None:
    """Return why it is unknown which projects' checks a person has allowed; None if it is known."""
    found = open_check_files(data_dir).obstacle()
    if found is None:
        return None
    why = f"`{found.name}` of the data directory, the list of allowed projects, cannot be used: {found.found}"
    return CheckFault(why=why, fix=f"Tell the user: {found.fix}")


def project_above(workspace: Path) -> Path | None:
    """Return the nearest directory, from a workspace upwards, that has checks of its own."""
    here = Path(os.path.realpath(workspace))
    return next((one for one in (here, *here.parents) if (one / PROJECT_CHECKS).is_file()), None)


def project_checks(directory: Path) -> ProjectChecks:
    """Read a project's own checks. They may run in its directory alone."""
    import tomllib  # noqa: PLC0415 — only projects with checks need it

    from interlock.config.form import parse_project_checks  # noqa: PLC0415 — as above

    try:
        data = read_regular(directory / PROJECT_CHECKS, CHECKS_FILE_BYTES_MAX)
        found = parse_project_checks(data.decode("utf-8"), str(directory))
    except OSError as error:
        return ProjectChecks(directory=directory, fault=f"it cannot be read: {error.strerror}")
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return ProjectChecks(directory=directory, fault=f"it is not TOML: {error}")
    if isinstance(found, str):
        return ProjectChecks(directory=directory, fault=found)
    return ProjectChecks(directory=directory, digest=digest_of_bytes(data), checks=found)
