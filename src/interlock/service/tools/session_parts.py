"""Parts of a session that can be read: an artifact, the context of a run, a step. Reading writes nothing (SRV-17)."""

import json
from collections.abc import Callable, Mapping
from typing import Literal

from interlock.engine.answer.model import render_step
from interlock.engine.answer.secret_scanning import without_secrets
from interlock.engine.request import ARTIFACT_CONTENT_TYPE, TURN_CONTENT_TYPE
from interlock.engine.template import title_in_code
from interlock.kernel.budgets import ECHO_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import SessionId
from interlock.kernel.text import one_line
from interlock.record.payloads import ArtifactPayload
from interlock.record.snapshot import LoopFrame
from interlock.service.ports import ReadPorts
from interlock.service.run.context import RunContext, load_run_context
from interlock.service.run.lifecycle import read_lifecycle
from interlock.service.run.turns import turns_of
from interlock.service.tools.pending_step import render_step_at
from interlock.views.session import Node, Session


@frozen
class SessionPart:
    """A part of a session as text, with its media type."""

    text: str
    mime_type: Literal["application/json", "text/markdown"] = "text/markdown"


def read_artifact(ports: ReadPorts, session: SessionId, digest: str) -> SessionPart | Refusal:
    """Return an artifact that this session recorded; those of other sessions are not found here.

    Raises:
        SessionUnhealthyError, ContentDamagedError, UnknownVersionError, StoreFailureError: See `service.failures`.
    """
    loaded = ports.load(session)
    for node in loaded.nodes.values() if loaded is not None else ():
        for output in node.outputs:
            payload = output.payload
            if isinstance(payload, ArtifactPayload) and payload.sha256 == digest:
                text = ports.reader.artifact(payload.sha256).decode("utf-8", "replace")
                is_json = payload.content_type in (ARTIFACT_CONTENT_TYPE, TURN_CONTENT_TYPE)
                return SessionPart(text=text, mime_type="application/json" if is_json else "text/markdown")
    return _missing(f"The session {session} has no artifact {one_line(digest, ECHO_BYTES_MAX)!r}.")


def read_context(ports: ReadPorts, session: SessionId, label: str) -> SessionPart | Refusal:
    """Return the context of a run at its preferred tip, without what looks like a secret (ANS-20).

    Raises:
        SessionUnhealthyError, ContentDamagedError, UnknownVersionError, StoreFailureError: See `service.failures`.
    """

    def render(run_context: RunContext, node: Node) -> SessionPart:
        return _as_json(without_secrets(run_context.session.context(node.node)))

    return _render_at_tip(ports, session, label, render)


def read_run_lifecycle(ports: ReadPorts, session: SessionId, label: str) -> SessionPart | Refusal:
    """Return the lifecycle of a run to its preferred tip (LIFE-8).

    Raises:
        SessionUnhealthyError, ContentDamagedError, UnknownVersionError, StoreFailureError: See `service.failures`.
    """

    def render(run_context: RunContext, node: Node) -> SessionPart:
        return _as_json(read_lifecycle(ports.reader, run_context, node).to_json())

    return _render_at_tip(ports, session, label, render)


def read_turns(ports: ReadPorts, session: SessionId, label: str) -> SessionPart | Refusal:
    """Return the turns that drivers recorded in a run, the oldest first (TURN-8).

    Raises:
        SessionUnhealthyError, ContentDamagedError, UnknownVersionError, StoreFailureError: See `service.failures`.
    """
    loaded = ports.load(session)
    labels = {loaded.label(run): run for run in loaded.runs} if loaded is not None else {}
    if loaded is None or label not in labels:
        return _missing(f"There is no run {one_line(label, ECHO_BYTES_MAX)!r} in the session {session}.")
    turns = turns_of(ports.reader, loaded, labels[label]).to_json()
    return SessionPart(text=json.dumps(turns, ensure_ascii=False), mime_type="application/json")


def read_step(ports: ReadPorts, session: SessionId, label: str, step_id: str) -> SessionPart | Refusal:
    """Return a step as an agent would receive it at the preferred tip of a run, whether it is pending there or not.

    In a loop that is not active, the variables of the loop are unset.

    Raises:
        SessionUnhealthyError, ContentDamagedError, UnknownVersionError, StoreFailureError: See `service.failures`.
    """

    def render(run_context: RunContext, node: Node) -> SessionPart | Refusal:
        if step_id not in run_context.workflow.steps:
            unknown, known = one_line(step_id, ECHO_BYTES_MAX), ", ".join(run_context.workflow.steps)
            return _missing(f"The run {label} has no step {unknown!r}; its steps are {known}.")
        step = render_step_at(run_context, node, step_id, _passes(run_context, node, step_id))
        head = f"{run_context.view(node).header()} · step {step.number} of {step.total}: {title_in_code(step.title)}"
        note = "To read a step advances nothing. Only the ackToken of the pending step reports work."
        return SessionPart(text=f"{head}\n\n{render_step(step)}\n\n---\n{note}\n")

    return _render_at_tip(ports, session, label, render)


def _passes(run_context: RunContext, node: Node, step_id: str) -> tuple[LoopFrame, ...]:
    """Return the passes of the loops around a step, as far as these loops are active at a node."""
    around = run_context.workflow.graphs.loops_around(step_id)
    frames = run_context.frames(node)
    return tuple(frame for frame, loop_id in zip(frames, around, strict=False) if frame.loop_id == loop_id)


def _render_at_tip(
    ports: ReadPorts, session: SessionId, label: str, render: Callable[[RunContext, Node], SessionPart | Refusal]
) -> SessionPart | Refusal:
    """Find the run of a label, and render a part of it at its preferred tip."""
    loaded = ports.load(session)
    if loaded is None:
        return _missing(f"There is no session {session!r} in this data directory.")
    run = next((one for one in loaded.runs.values() if label in (loaded.label(one.run), one.run)), None)
    if run is None or run.tip is None:
        return _missing(f"The session has no run {one_line(label, ECHO_BYTES_MAX)!r}; {_runs_of(loaded)}")
    return render(load_run_context(loaded, run, ports.plans), loaded.nodes[run.tip])


def _as_json(value: Mapping[str, Json]) -> SessionPart:
    return SessionPart(text=json.dumps(value, ensure_ascii=False, indent=2), mime_type="application/json")


def _runs_of(session: Session) -> str:
    return "its runs are " + ", ".join(session.label(run) for run in session.runs) + "."


def _missing(message: str) -> Refusal:
    return Refusal(
        code=ErrorCode.SESSION_NOT_FOUND,
        message=message,
        suggestion="`resume_session` finds sessions and runs by words of their goal or notes.",
    )
