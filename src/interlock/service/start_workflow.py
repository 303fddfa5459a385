"""`start_workflow`: begin a run, in a new session or in one that exists (D27)."""

from dataclasses import dataclass, field
from pathlib import Path

from interlock.engine.advance import Start, plan_start
from interlock.engine.answer import Answer, Facts, render_answer
from interlock.engine.request import Request
from interlock.kernel.budgets import DIAGNOSTICS_MAX, ECHO_BYTES_MAX
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.ids import SessionId, ack_attempt
from interlock.kernel.text import one_line
from interlock.record.append_plan import Stamps
from interlock.record.events import Actor
from interlock.service.catalog import CatalogView, Entry, RefusedFile
from interlock.service.context import context_refusal
from interlock.service.ports import Ports
from interlock.service.shell import mint_event, mint_run, mint_session, recorded_at
from interlock.service.tokens import Mint
from interlock.service.words import scene_of


@dataclass(frozen=True, slots=True, kw_only=True)
class StartCommand:
    """A parsed call. `request` holds the initial context, the goal in it, and the preferences."""

    workflow_id: str
    workspace: Path | None
    request: Request = field(default_factory=Request)
    session: SessionId | None = None
    actor: Actor | None = None


def start_workflow(ports: Ports, command: StartCommand) -> Answer | Refusal:
    """Begin a run and return its first step.

    Raises:
        StoreFailureError, SessionBusyError, SessionUnhealthyError, ContentDamagedError, KeyRingDamagedError:
            See `service.failures`; nothing was recorded.
    """
    entry = found_entry(ports.catalog.view(command.workspace), command.workflow_id)
    if isinstance(entry, Refusal):
        return entry
    refusal = context_refusal({}, command.request.context)
    if refusal is not None:
        return refusal
    if command.session is not None and ports.read.reader.load(command.session) is None:
        return _no_session(command.session)
    ring = ports.read.key_ring.ensured()
    start = Start(
        session=command.session or mint_session(ports.shell),
        is_new_session=command.session is None,
        run=mint_run(ports.shell),
        workflow=entry.compiled,
        workflow_hash=entry.workflow_hash,
        workflow_bytes=entry.compiled_bytes,
        source_kind=entry.source_kind,
        source_ref=entry.source_ref,
        request=command.request,
        baseline=ports.baseline,
    )
    stamps = Stamps(
        mint_event_id=lambda: mint_event(ports.shell), recorded_at=recorded_at(ports.shell), actor=command.actor
    )
    with ports.writer.hold(start.session) as witness, ports.read.trace.span("append"):
        session = ports.writer.append(witness, plan_start(start), stamps)
    run = session.runs[start.run]
    assert run.root is not None, "a start makes a root"
    scene, node = scene_of(session, run, ports.read.plans), session.nodes[run.root]
    mint = Mint(ring=ring, session=session, run=run)
    with ports.read.trace.span("render"):
        return render_answer(
            Facts(
                occasion="start",
                run=scene.words(node),
                state_token=mint.state(node.node),
                ack_token=mint.attempt(node.node, ack_attempt(node.node)),
                step=scene.step(node),
                preferences=node.preferences,
                guidance=entry.compiled.guidance,
                references=entry.compiled.references,
            )
        )


def found_entry(view: CatalogView, workflow_id: str) -> Entry | Refusal:
    """Return the workflow of an id, or a refusal that names its faults, or the id that was meant."""
    entry = view.entries.get(workflow_id)
    if entry is not None:
        return entry
    workflow_id = one_line(workflow_id, ECHO_BYTES_MAX * 2)
    refused = view.refused_of(workflow_id)
    if refused is not None:
        return _invalid(refused, workflow_id)
    guess = view.nearest(workflow_id)
    meant = f"Did you mean `{guess}`? Otherwise call" if guess else "Call"
    return Refusal(
        code=ErrorCode.WORKFLOW_NOT_FOUND,
        message=f"There is no workflow {workflow_id!r}.",
        suggestion=f"{meant} `list_workflows` for the ids that exist.",
        details={"workflowId": workflow_id, **({"didYouMean": guess} if guess else {})},
    )


def _invalid(file: RefusedFile, workflow_id: str) -> Refusal:
    shown = file.diagnostics[:DIAGNOSTICS_MAX]
    lines = "\n".join(f"- {diagnostic.line()}" for diagnostic in shown)
    more = len(file.diagnostics) - len(shown)
    where = f"{file.source_ref} of the {file.source_kind} source"
    return Refusal(
        code=ErrorCode.WORKFLOW_INVALID,
        message=f"The workflow {workflow_id!r} ({where}) cannot run:\n{lines}"
        + (f"\n- and {more} more" if more else ""),
        suggestion="Correct the file as each line says, then send the same call again; no restart is needed.",
        details={
            "source": file.source_ref,
            "sourceKind": file.source_kind,
            "diagnostics": [diagnostic.to_json() for diagnostic in shown],
        },
    )


def _no_session(session: SessionId) -> Refusal:
    return Refusal(
        code=ErrorCode.SESSION_NOT_FOUND,
        message=f"There is no session {session!r} in this data directory.",
        suggestion="Leave `sessionId` out to begin a new session, or copy it from an answer of that session.",
        details={"sessionId": session},
    )
