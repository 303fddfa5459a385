"""Workflows with checks, and checks that a test runs in its own process."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.support.flow import Document, declared, document, step

from interlock.channels.check import CheckFault, PlacedCheck
from interlock.channels.check_config import CheckConfig
from interlock.config.checks import LocalChecks
from interlock.kernel.errors import Refusal
from interlock.kernel.ids import NodeId
from interlock.record.world import PinnedCheck
from interlock.service.ports import HeldCheck, WaitingCheck
from interlock.service.run.context import load_run_context
from interlock.service.trust.run_check import CheckReport, run_check
from interlock.testing.harness import Harness, ToolResult

CHECK: Document = {"type": "check", "id": "tests", "title": "The tests pass", "run": "tests"}
GREEN = declared("green", "boolean", required=False)
READING: Document = {**CHECK, "set": [{"key": "green", "from": "event.passed"}]}
NEEDED = document(step("a"), CHECK, step("b"), inputs=[GREEN])
"""A workflow that continues only when the check passes."""
BRANCHING = document(step("a"), READING, step("b"), inputs=[GREEN])
"""A workflow that continues with any result."""


@dataclass(slots=True, kw_only=True)
class HeldChecks:
    """The checks of a configuration; what is begun is only noted, and a test runs it."""

    local: LocalChecks
    begun: list[WaitingCheck] = field(default_factory=list[WaitingCheck])

    def pin(self, name: str, workspace: Path | None) -> PinnedCheck | CheckFault:
        """See `Checks`."""
        return self.local.pin(name, workspace)

    def find(self, waiting: WaitingCheck) -> PlacedCheck | CheckFault:
        """See `Checks`."""
        return self.local.find(waiting)

    def begin(self, waiting: WaitingCheck) -> CheckFault | None:
        """See `Checks`."""
        found = self.local.find(waiting)
        if isinstance(found, CheckFault):
            return found
        self.begun.append(waiting)
        return None

    @contextmanager
    def hold(self, node: NodeId) -> Generator[HeldCheck | None]:
        """See `Checks`."""
        with self.local.hold(node) as found:
            yield found

    def is_unfinished(self, waiting: WaitingCheck) -> bool:
        """See `Checks`."""
        return self.local.is_unfinished(waiting)

    def exit_of(self, waiting: WaitingCheck) -> int | None:
        """See `Checks`."""
        return self.local.exit_of(waiting)


@dataclass(slots=True, kw_only=True)
class PromptChecks(HeldChecks):
    """Runs a check as soon as a call begins it. `changing` is called before each run."""

    changing: Callable[[int], None] = lambda _: None
    harness: Harness | None = None

    def begin(self, waiting: WaitingCheck) -> CheckFault | None:
        """See `Checks`."""
        fault = HeldChecks.begin(self, waiting)
        assert self.harness is not None, "it is given before the first call"
        session = self.harness.ports.read.load(waiting.session)
        if fault is None and session is not None:
            self.changing(len(self.begun))
            run_context = load_run_context(session, session.runs[waiting.run], self.harness.ports.read.plans)
            run_check(self.harness.ports, run_context)
        return fault


@dataclass(slots=True, kw_only=True)
class LosingChecks(HeldChecks):
    """Begins checks whose process is killed at once."""

    harness: Harness | None = None

    def begin(self, waiting: WaitingCheck) -> CheckFault | None:
        """See `Checks`."""
        fault = HeldChecks.begin(self, waiting)
        assert self.harness is not None, "it is given before the first call"
        lose(self.harness)
        return fault


def losing(harness: Harness) -> Harness:
    """Return a harness of `checking` whose checks never come to a result."""
    checks = LosingChecks(local=held(harness).local)
    checks.harness = replace(harness, ports=replace(harness.ports, checks=checks))
    return checks.harness


def running_at_once(harness: Harness, changing: Callable[[int], None] = lambda _: None) -> Harness:
    """Return a harness of `checking` whose calls run the check themselves."""
    checks = PromptChecks(local=held(harness).local, changing=changing)
    checks.harness = replace(harness, ports=replace(harness.ports, checks=checks))
    return checks.harness


def shell(directory: Path, script: str = "test -e passes", **more: object) -> CheckConfig:
    """Return the check `tests` of a directory."""
    fields: dict[str, object] = {"name": "tests", "command": ("/bin/sh", "-c", script), **more}
    return CheckConfig(workspaces=(str(directory),), **fields)  # pyright: ignore[reportArgumentType] — its fields


def checking(root: Path, *documents: Document, check: CheckConfig | None = None) -> Harness:
    """Return a harness whose data is in `root/data` and whose workspace is `root/project`, with one check."""
    project, data = root / "project", root / "data"
    project.mkdir(exist_ok=True)
    data.mkdir(exist_ok=True)
    harness = Harness.on_disk(data, *documents)
    local = LocalChecks(data_dir=data, configured=(check or shell(project),))
    ports = replace(harness.ports, checks=HeldChecks(local=local))
    return replace(harness, ports=ports, workspace=project)


def held(harness: Harness) -> HeldChecks:
    """Return the checks of such a harness."""
    assert isinstance(harness.ports.checks, HeldChecks)
    return harness.ports.checks


def lose(harness: Harness) -> Path:
    """Leave the lock file of a process that was killed while it ran the check which was begun last."""
    assert harness.data_dir is not None
    waiting = held(harness).begun[-1]
    path = harness.data_dir / "checks" / f"{waiting.node}.lock"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{waiting.results + 1}\n")
    return path


def run_now(harness: Harness, start: ToolResult, after: int | None = None) -> CheckReport | Refusal | None:
    """Run the check that a run waits for."""
    session = harness.ports.read.load(harness.session_of(start))
    assert session is not None
    run = session.runs[harness.reference_of(start).run]
    return run_check(harness.ports, load_run_context(session, run, harness.ports.read.plans), after)
