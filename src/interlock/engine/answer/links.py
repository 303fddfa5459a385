"""The URIs of the resources that clients can read: the catalogue, plans, and records of sessions."""

CATALOG_LINK = "interlock://workflows"
"""The catalogue: workflows that can be started, and refused files with the reason."""


def plan_link(workflow_id: str) -> str:
    """Return the URI of a workflow's whole plan."""
    return f"{CATALOG_LINK}/{workflow_id}/plan"


def session_link(session: str) -> str:
    """Return the URI of a session's readable record."""
    return f"interlock://sessions/{session}"


def artifact_link(session: str, digest: str) -> str:
    """Return the URI of an artifact that a session recorded."""
    return f"{session_link(session)}/artifacts/{digest}"


def context_link(session: str, label: str) -> str:
    """Return the URI of the current context of a run."""
    return f"{session_link(session)}/runs/{label}/context"


def lifecycle_link(session: str, label: str) -> str:
    """Return the URI of the events of a run's life."""
    return f"{session_link(session)}/runs/{label}/lifecycle"


def step_link(session: str, label: str, step_id: str) -> str:
    """Return the URI of a step as an agent would receive it."""
    return f"{session_link(session)}/runs/{label}/steps/{step_id}"


def turns_link(session: str, label: str) -> str:
    """Return the URI of the turns that drivers recorded in a run."""
    return f"{session_link(session)}/runs/{label}/turns"
