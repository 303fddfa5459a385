"""The URIs of the resources that clients can read: the catalogue, plans, and records of sessions."""

CATALOG_LINK = "interlock://workflows"
"""The catalogue: workflows that can be started, and refused files with the reason."""


def plan_link(workflow_id: str) -> str:
    """Return the URI of a workflow's whole plan."""
    return f"{CATALOG_LINK}/{workflow_id}/plan"


def session_link(session: str) -> str:
    """Return the URI of a session's readable record."""
    return f"interlock://sessions/{session}"
