"""Runs in every mode for tests: a harness over one workflow, people who answer, and what the log holds of it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.support.flow import Document, document

from interlock.engine.gates import ApprovalContext, Reply
from interlock.kernel.ids import RunId
from interlock.record.events import Event, GapRecordedEvent
from interlock.record.payloads import GapRecorded
from interlock.service.run.context import load_run_context
from interlock.testing.harness import Harness, ToolResult
from interlock.views.session import Session
from interlock.views.status import run_status
from interlock.views.summary import RunStatus

NEVER_STOPS = {"autonomy": "full_auto_never_stop"}
STOPS = {"autonomy": "full_auto_stop_on_user_deps"}
CAN_ASK = ApprovalContext(client_can=True)


def serving(*steps: Document, **more: object) -> Harness:
    """Return a harness that serves one workflow, `test.flow`, from memory."""
    return Harness.in_memory(document(*steps, **more))


def asking(harness: Harness, **changes: Any) -> Harness:
    """Return the same server for a client whose user can be asked, or as the changes say."""
    return replace(harness, asking=replace(CAN_ASK, **changes))


def answering(harness: Harness, action: Any = "accept", comment: str | None = None, **answers: str) -> Harness:
    """Return the same server for a client whose user has answered; answers by number, as `n1="…"`."""
    said = {name.removeprefix("n"): text for name, text in answers.items()}
    return asking(harness, reply=Reply(action=action, client="a client", answers=said, comment=comment))


def claim(who: str = "Ada", what: str = "She read it and said yes") -> Document:
    return {"kind": "wr.confirmation", "confirmedBy": who, "statement": what}


def with_artifacts(*artifacts: Document, notes: str | None = "Done.") -> Document:
    """Return the `output` argument that holds these artifacts."""
    return {"artifacts": list(artifacts)} | ({"notesMarkdown": notes} if notes is not None else {})


def session_of(harness: Harness, start: ToolResult) -> Session:
    session = harness.store.load(harness.session_of(start))
    assert session is not None
    return session


def events_of(harness: Harness, start: ToolResult, kind: str) -> list[Event]:
    return [event for event in harness.events(harness.session_of(start)) if event.kind == kind]


def gaps_in(harness: Harness, start: ToolResult) -> list[GapRecorded]:
    """Return every gap of a session as it was recorded, resolutions included."""
    return [one.data for one in harness.events(harness.session_of(start)) if isinstance(one, GapRecordedEvent)]


def details_of(gaps: list[GapRecorded]) -> list[str]:
    return [gap.reason.detail for gap in gaps]


def codes(answer: ToolResult) -> list[str]:
    return [blocker["code"] for blocker in answer["blockers"]]


def status_of(harness: Harness, start: ToolResult) -> RunStatus:
    """Return the status of the run that a start began."""
    session = session_of(harness, start)
    run = session.runs[RunId(start["run"]["runId"])]
    assert run.tip is not None
    tip = session.nodes[run.tip]
    return run_status(session, tip, load_run_context(session, run, harness.ports.read.plans).snapshot(tip))


def files_below(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
