"""Finds the open run that a start begins a second time: the same workflow and goal, in the same repository (ADV-14)."""

import json
from collections.abc import Iterator

from interlock.engine.answer.model import look_call
from interlock.engine.answer.structure import Warned
from interlock.kernel.budgets import OPEN_RUN_SESSIONS_MAX
from interlock.kernel.ids import SessionId
from interlock.service.ports import Ports
from interlock.service.run.summarize import summary_of
from interlock.service.tokens.mint import minting
from interlock.store.ports.errors import UNUSABLE_SESSION, StoreFailureError
from interlock.store.ports.keys import KeyRing
from interlock.store.ports.reader import LogVersion
from interlock.views.summary import RunSummary, SessionSummary, path_digest


def find_open_run(ports: Ports, ring: KeyRing, wanted: tuple[str, str | None], repo_root: str | None) -> list[Warned]:
    """Return the warning that names the open run of this workflow and goal, with the call that continues it.

    Only the newest sessions are looked at, by their cached summaries, so that a start does not become slower with the
    number of sessions. A run without a goal, or outside of a repository, is not compared: nothing says that it is the
    same work. A session that cannot be read is left out: the warning must not prevent a start.
    """
    workflow_id, goal = wanted
    if goal is None or repo_root is None:
        return []
    repo = path_digest(repo_root)
    try:
        newest = ports.read.reader.log_versions(newest=OPEN_RUN_SESSIONS_MAX)
        for session, version in sorted(newest.items(), reverse=True):
            summary = _summary(ports, session, version)
            for run in reversed(summary.runs if summary is not None else ()):
                is_same = (run.workflow_id, run.goal, run.repo) == (workflow_id, goal, repo)
                if is_same and not (run.is_complete or run.is_ended):
                    return list(_warn(ports, ring, session, run))
    except StoreFailureError:
        return []
    return []


def _summary(ports: Ports, session: SessionId, version: LogVersion) -> SessionSummary | None:
    """Return the cached summary of a session, or that of its log if this process has yet to cache it."""
    known = ports.read.summaries.known(ports.read.reader, session, version)
    if known is not None:
        return known
    if ports.late_summaries is None or not ports.late_summaries.is_due(session):
        return None
    try:
        loaded = ports.read.load(session)
        return summary_of(loaded, ports.read.plans) if loaded is not None else None
    except UNUSABLE_SESSION:
        return None


def _warn(ports: Ports, ring: KeyRing, session: SessionId, run: RunSummary) -> Iterator[Warned]:
    try:
        loaded = ports.read.load(session)
        if loaded is None or run.run not in loaded.runs:
            return
        state = minting(ports.read, ring, loaded, loaded.runs[run.run]).state(run.tip)
    except UNUSABLE_SESSION:
        return
    call = look_call(state, run.label)
    where = f" at step {run.number} of {run.total}" if run.number is not None else ""
    message = (
        f"Run `{run.label}` of this workflow with the same goal is open in this repository{where}. This call began"
        f" another run. To continue the open run instead, call `{call.tool}` with"
        f" `{json.dumps(call.arguments)}`, and leave this run."
    )
    yield Warned(code="SAME_RUN_OPEN", message=message)
