"""The addresses of what clients can read as resources: the catalogue, plans, and records of sessions."""

CATALOG_LINK = "interlock://workflows"
"""What can be started, and what cannot and why."""


def plan_link(workflow_id: str) -> str:
    """Return the address of a workflow's whole plan."""
    return f"{CATALOG_LINK}/{workflow_id}/plan"


def session_link(session: str) -> str:
    """Return the address of a session's readable record."""
    return f"interlock://sessions/{session}"
