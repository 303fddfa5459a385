"""What a drive came to, with its exit code."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from interlock.drive.client import Position
from interlock.drive.faults import BUDGET_CODES, MODEL_UNAVAILABLE, Fault, RecoveryStrategy
from interlock.drive.models.protocol import Usage
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen

DriveStatus = Literal["complete", "complete_with_gaps", "person_needed", "budget_used_up", "waiting", "failed"]
EXIT_CODES: Mapping[DriveStatus, int] = MappingProxyType(
    {
        "complete": 0,
        "failed": 1,
        "person_needed": 3,
        "complete_with_gaps": 4,
        "budget_used_up": 5,
        "waiting": 6,
    }
)
"""The exit code of each status; 2 is a wrong command line."""


@frozen
class DriveResult:
    """Where the run is, what was used, and why the drive stopped. A run that is not complete can be resumed.

    `is_removed` says that the run was removed again, because the model of its first turn was not available.
    """

    status: DriveStatus
    position: Position
    turns: int
    usage: Usage
    fault: Fault | None = None
    warnings: tuple[str, ...] = ()
    is_removed: bool = False

    @property
    def is_unanswered(self) -> bool:
        """Whether the drive ended because its model was not available, before any turn."""
        return self.turns == 0 and self.fault is not None and self.fault.details == MODEL_UNAVAILABLE

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        return EXIT_CODES[self.status]

    def to_json(self) -> dict[str, Json]:
        """Return the result as `--json` prints it."""
        place = self.position
        value: dict[str, Json] = {
            "status": self.status,
            "exitCode": self.exit_code,
            "session": place.session,
            "run": place.run,
            "label": place.label,
            "workflow": place.workflow_id,
            "step": place.step.step_id if place.step is not None else None,
            "turns": self.turns,
            "usage": self.usage.to_json(),
            "warnings": list(self.warnings),
        }
        if self.is_removed:
            value |= dict.fromkeys(("session", "run", "label", "step"))
        if place.waiting is not None and self.status in ("waiting", "person_needed"):
            value["waiting"] = dict(place.waiting)
        if self.fault is not None:
            value["error"] = self.fault.to_json()
        return value


def status_of(fault: Fault, strategy: RecoveryStrategy) -> DriveStatus:
    """Return the status of a drive that an error stopped."""
    if fault.code in BUDGET_CODES:
        return "budget_used_up"
    return "person_needed" if strategy == "escalate" else "failed"
