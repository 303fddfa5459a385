"""A run's status, from its preferred tip (locks 2.1, D8)."""

from typing import Literal

from interlock.record.snapshot import Complete, ExecutionSnapshot
from interlock.views.session import Node

RunStatus = Literal["in_progress", "blocked", "complete", "complete_with_gaps"]


def run_status(tip: Node, snapshot: ExecutionSnapshot) -> RunStatus:
    """Return the status that a preferred tip and its snapshot make."""
    if isinstance(snapshot.state, Complete):
        return "complete"
    if tip.kind == "blocked_attempt" and tip.preferences.autonomy != "full_auto_never_stop":
        return "blocked"
    return "in_progress"
