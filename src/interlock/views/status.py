"""A run's status, from its preferred tip (locks 2.1, D8)."""

from typing import Literal

from interlock.record.payloads import GapRecorded
from interlock.record.snapshot import Complete, ExecutionSnapshot
from interlock.views.session import Node, Session

RunStatus = Literal["in_progress", "blocked", "complete", "complete_with_gaps"]


def run_status(session: Session, tip: Node, snapshot: ExecutionSnapshot) -> RunStatus:
    """Return the status that a preferred tip, its snapshot and the open critical gaps make."""
    is_disclosing = session.runs[tip.run].critical > 0
    if isinstance(snapshot.state, Complete):
        return "complete_with_gaps" if is_disclosing else "complete"
    if tip.preferences.autonomy == "full_auto_never_stop":
        return "in_progress"
    if tip.kind == "blocked_attempt" or any(_is_blocking(session, gap) for gap in tip.gaps):
        return "blocked"
    return "in_progress"


def status_words(status: RunStatus) -> str:
    """Return a status as people read it."""
    return status.replace("_", " ")


def _is_blocking(session: Session, gap: GapRecorded) -> bool:
    """Say whether a gap of a tip keeps a run that may stop from going on (locks 2.1)."""
    return gap.severity == "critical" and gap.reason.category != "unexpected" and gap.gap_id in session.open_gaps
