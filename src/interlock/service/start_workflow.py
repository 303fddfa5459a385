"""`start_workflow`: begin a run, in a new session or in one that exists (D27)."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from interlock.decide.evaluate import is_number, kind_of, same
from interlock.define.parts import ContextInput
from interlock.engine.answer import Answer, Facts, render_answer
from interlock.engine.attempt import NOBODY_ASKED, Asking
from interlock.engine.confirmation import raises_autonomy
from interlock.engine.findings import Finding
from interlock.engine.gates import Ask, Question
from interlock.engine.prompt import guidance_of
from interlock.engine.request import Request
from interlock.engine.start import Start, plan_start
from interlock.kernel.budgets import DIAGNOSTICS_MAX, ECHO_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.ids import SessionId, ack_attempt
from interlock.kernel.text import one_line
from interlock.record.append_plan import Stamps
from interlock.record.context import Context
from interlock.record.events import Actor
from interlock.record.outcome import ContextKeyPointer
from interlock.service import warnings
from interlock.service.catalog import CatalogView, Entry, Pinnable, RefusedFile
from interlock.service.context import context_refusal
from interlock.service.person import NeedsPerson
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
    asking: Asking = NOBODY_ASKED


def start_workflow(ports: Ports, command: StartCommand) -> Answer | Refusal | NeedsPerson:
    """Begin a run and return its first step; one that is to do more alone than the baseline may wait for a person.

    Raises:
        StoreFailureError, SessionBusyError, SessionUnhealthyError, ContentDamagedError, KeyRingDamagedError:
            See `service.failures`; nothing was recorded.
    """
    entry = found_entry(ports.catalog.view(command.workspace), command.workflow_id)
    pinned = entry if isinstance(entry, Refusal) else compiled_of(entry)
    if isinstance(pinned, Refusal):
        return pinned
    assert isinstance(entry, Entry), "what compiled is an entry"
    refusal = context_refusal({}, command.request.context) or inputs_refusal(
        pinned.workflow.inputs, command.request.context
    )
    if refusal is not None:
        return refusal
    if command.session is not None and ports.read.reader.load(command.session) is None:
        return _no_session(command.session)
    waits = _autonomy_asked(ports, command, pinned.workflow.name)
    if waits is not None:
        return waits
    start = Start(
        session=command.session or mint_session(ports.shell),
        is_new_session=command.session is None,
        run=mint_run(ports.shell),
        workflow=pinned.workflow,
        workflow_hash=pinned.workflow_hash,
        workflow_bytes=pinned.data,
        source_kind=entry.source.kind,
        source_ref=entry.source.ref,
        request=command.request,
        baseline=ports.baseline,
    )
    plan = plan_start(start)
    if isinstance(plan, Finding):
        return _cannot_begin(plan)
    ring = ports.read.key_ring.ensured()
    stamps = Stamps(
        mint_event_id=lambda: mint_event(ports.shell), recorded_at=recorded_at(ports.shell), actor=command.actor
    )
    with ports.writer.hold(start.session) as witness, ports.read.trace.span("append"):
        session = ports.writer.append(witness, plan, stamps)
    run = session.runs[start.run]
    assert run.root is not None, "a start makes a root"
    scene, node = scene_of(session, run, ports.read.plans), session.nodes[run.root]
    mint = Mint(ring=ring, session=session, run=run)
    step = scene.step(node)
    with ports.read.trace.span("render"):
        return render_answer(
            Facts(
                occasion="start",
                run=scene.words(node),
                state_token=mint.state(node.node),
                ack_token=mint.attempt(node.node, ack_attempt(node.node)) if step is not None else None,
                step=step,
                warnings=(
                    *warnings.disclosed(node),
                    *warnings.beyond_advice(scene.workflow, node.preferences),
                ),
                preferences=node.preferences,
                guidance=guidance_of(scene.workflow),
                references=scene.workflow.references,
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


def compiled_of(entry: Entry) -> Pinnable | Refusal:
    """Return what a workflow compiles to, or a refusal that names every fault."""
    compiled = entry.compiled
    return _invalid(compiled, entry.workflow_id) if isinstance(compiled, RefusedFile) else compiled


def _invalid(file: RefusedFile, workflow_id: str) -> Refusal:
    shown = file.diagnostics[:DIAGNOSTICS_MAX]
    lines = "\n".join(f"- {diagnostic.in_one_line()}" for diagnostic in shown)
    more = len(file.diagnostics) - len(shown)
    where = f"{file.source.ref} of the {file.source.kind} source"
    return Refusal(
        code=ErrorCode.WORKFLOW_INVALID,
        message=f"The workflow {workflow_id!r} ({where}) cannot run:\n{lines}"
        + (f"\n- and {more} more" if more else ""),
        suggestion="Correct the file as each line says, then send the same call again; no restart is needed.",
        details={
            "source": file.source.ref,
            "sourceKind": file.source.kind,
            "diagnostics": [diagnostic.to_json() for diagnostic in shown],
        },
    )


def inputs_refusal(inputs: tuple[ContextInput, ...], context: Context) -> Refusal | None:
    """Return why the initial context does not hold what a workflow declares, or None where it does."""
    faults = [words for declared in inputs if (words := _input_fault(declared, context)) is not None]
    if not faults:
        return None
    missing = {one.key: None for one in inputs if _input_fault(one, context) is not None}
    lines = "\n".join(f"- {words}" for words in faults)
    return Refusal(
        code=ErrorCode.VALIDATION_ERROR,
        message=f"The workflow declares what it must be started with; `context` does not hold it:\n{lines}",
        suggestion="Ask the user for what you do not know, then send the same call with these keys in `context`.",
        details={"path": f"context.{next(iter(missing))}", "wanted": [_wanted(one) for one in inputs]},
    )


def _input_fault(declared: ContextInput, context: Context) -> str | None:
    what = f"`{declared.key}` ({declared.type}): {declared.description}"
    value = context.get(declared.key)
    if value is None:
        return f"{what} Found nothing." if declared.required else None
    if not _KINDS[declared.type](value):
        return f"{what} Found {kind_of(value)}."
    if declared.choices and not any(same(value, choice) for choice in declared.choices):
        shown = one_line(json.dumps(value, ensure_ascii=False), ECHO_BYTES_MAX)
        return f"{what} Found {shown}; use one of {json.dumps(list(declared.choices), ensure_ascii=False)}."
    return None


_KINDS: Mapping[str, Callable[[object], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": is_number,
    "boolean": lambda value: isinstance(value, bool),
    "list": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, Mapping),
}


def _wanted(declared: ContextInput) -> dict[str, Json]:
    wanted: dict[str, Json] = {
        "key": declared.key,
        "type": declared.type,
        "required": declared.required,
        "description": declared.description,
    }
    if declared.choices:
        wanted["choices"] = list(declared.choices)
    return wanted


def _autonomy_asked(ports: Ports, command: StartCommand, name: str) -> NeedsPerson | Refusal | None:
    """Ask a person before a run may do more alone than the baseline says, where the client can ask (D25)."""
    wanted = command.request.preferences.over(ports.baseline)
    if not command.asking.client_can or not raises_autonomy(ports.baseline, wanted):
        return None
    reply = command.asking.reply
    if reply is not None and reply.action == "accept":
        return None
    told = f" They said: {reply.comment}" if reply is not None and reply.comment else ""
    refusal = Refusal(
        code=ErrorCode.VALIDATION_ERROR,
        message=f"The user did not agree to the autonomy {wanted.autonomy!r}; no run was begun.{told}",
        suggestion="Send the same call without `preferences.autonomy`, or talk with the user first.",
        details={"path": "preferences.autonomy", "baseline": ports.baseline.autonomy},
    )
    if reply is not None and reply.action == "decline":
        return refusal
    ask = f"May this run work with the autonomy {wanted.autonomy!r} instead of {ports.baseline.autonomy!r}?"
    question = Question(title=f"Start of {name}", asks=(Ask(reason="needs_user_approval", ask=ask),))
    return NeedsPerson(question=question, subject=command.request.digest(), answer=refusal)


def _cannot_begin(finding: Finding) -> Refusal:
    """Return why a run cannot reach its first step: what it turns on must be in the initial context (D22)."""
    key = finding.pointer.key if isinstance(finding.pointer, ContextKeyPointer) else None
    return Refusal(
        code=ErrorCode.VALIDATION_ERROR,
        message=f"The run cannot begin: {finding.message}",
        suggestion=f"Send the same call with {key!r} in `context`." if key else "Correct the workflow.",
        details={"path": f"context.{key}" if key else "workflowId"},
    )


def _no_session(session: SessionId) -> Refusal:
    return Refusal(
        code=ErrorCode.SESSION_NOT_FOUND,
        message=f"There is no session {session!r} in this data directory.",
        suggestion="Leave `sessionId` out to begin a new session, or copy it from an answer of that session.",
        details={"sessionId": session},
    )
