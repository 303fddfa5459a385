"""The summary of a session for lists and searches, which need not read its log (RES-4).

A summary is derived from the log and can be deleted at any time. It is cached next to the session, so it has a stored
form with its own version.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal, cast

from interlock.kernel.canonical import Json, digest_of_bytes
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import Digest, NodeId, RunId, SessionId, SourceKind, WorkflowHash
from interlock.views.verdicts import Standing

if TYPE_CHECKING:
    from interlock.record.payloads import WorkReason

RunStatus = Literal["in_progress", "blocked", "complete", "complete_with_gaps", "failed", "cancelled"]
Drift = Literal["changed", "moved", "removed"]
"""How the source of a run's workflow differs from what the run pinned: a run keeps its version."""
SUMMARY_VERSION = 6
"""A cached summary of another version is ignored."""


@frozen
class RunSummary:
    """A run in short, as of its preferred tip. `step` is the title of the pending step; None if the run is complete.

    `verdict` is the worst verdict that its evidence states and no later one replaces (EVD-2). A run that failed or was
    cancelled keeps the step at which it ended; `end_reason` says why it ended. `notes` are the
    tip's latest notes; `last_at` is the time of the last event. `branch`, `head_sha`, `repo` (the digest of the
    repository root) and `repo_root` (if it was recorded) are the git position at which the run began. `waiting` is the
    event that the pending step waits for; `intents` counts what the run has to send outside.
    """

    run: RunId
    label: str
    workflow_id: str
    workflow_name: str
    goal: str | None
    status: RunStatus
    verdict: Standing | None
    end_reason: "WorkReason | None"
    tip: NodeId
    step: str | None
    number: int | None
    total: int
    nodes: int
    notes: str | None
    client: str | None
    started_at: str | None
    last_at: str | None
    last_index: int
    branch: str | None
    head_sha: str | None
    repo: str | None
    repo_root: str | None
    workflow_hash: WorkflowHash
    source_kind: SourceKind
    source_ref: str
    waiting: str | None = None
    intents: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether the run has reached its end."""
        return self.status in ("complete", "complete_with_gaps")

    @property
    def status_text(self) -> str:
        """The status as people read it, with a failed verdict: a run may be complete although its check failed."""
        words = status_words(self.status, self.waiting)
        return f"{words}, verdict failed" if self.verdict == "failed" else words

    @property
    def is_ended(self) -> bool:
        """Whether the run failed or was cancelled."""
        return self.status in ("failed", "cancelled")


@frozen
class SessionSummary:
    """A session in short: its runs, in the order they began, and whether one of them has an open gap."""

    session: SessionId
    events: int
    runs: tuple[RunSummary, ...]
    has_open_gaps: bool

    @property
    def last_at(self) -> str | None:
        """The time of its last event; None if it is not known."""
        return max((run.last_at for run in self.runs if run.last_at is not None), default=None)

    def to_bytes(self) -> bytes:
        """Return the stored form."""
        stored = {
            "v": SUMMARY_VERSION,
            "events": self.events,
            "hasOpenGaps": self.has_open_gaps,
            "runs": [asdict(run) for run in self.runs],
        }
        return json.dumps(stored, separators=(",", ":"), ensure_ascii=True).encode("ascii")


def path_digest(path: str) -> Digest:
    """Return the digest that identifies a repository or a workspace without storing its path."""
    return digest_of_bytes(path.encode("utf-8", "surrogatepass"))


def status_words(status: RunStatus, waiting: str | None = None) -> str:
    """Return a status as people read it, with the event that the run waits for, if it waits for one."""
    words = status.replace("_", " ")
    return f"{words}, waits for {waiting}" if waiting is not None else words


def parse_summary(session: SessionId, data: bytes) -> SessionSummary | None:
    """Parse a stored summary; None if it is damaged or of another version."""
    try:
        value = cast("Mapping[str, Any]", json.loads(data))
        if value["v"] != SUMMARY_VERSION:
            return None
        runs = tuple(RunSummary(**run) for run in value["runs"])
        return SessionSummary(session=session, events=value["events"], runs=runs, has_open_gaps=value["hasOpenGaps"])
    except (ValueError, KeyError, TypeError):
        return None


def run_json(run: RunSummary) -> dict[str, Json]:
    """Return a run as JSON, as commands print it."""
    values: dict[str, Json] = {
        "run": run.run,
        "label": run.label,
        "workflowId": run.workflow_id,
        "workflowName": run.workflow_name,
        "goal": run.goal,
        "status": run.status,
        "verdict": run.verdict,
        "endReason": run.end_reason,
        "step": run.step,
        "number": run.number,
        "total": run.total,
        "nodes": run.nodes,
        "client": run.client,
        "startedAt": run.started_at,
        "lastAt": run.last_at,
        "branch": run.branch,
        "commit": run.head_sha,
        "repo": run.repo,
        "repoRoot": run.repo_root,
        "workflowHash": run.workflow_hash,
        "waiting": run.waiting,
    }
    return values
