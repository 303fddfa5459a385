"""`start_workflow`: begin a run, in a new session or in one that exists (ADV-2)."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import NamedTuple

from interlock.channels.channel import ChannelSource
from interlock.define.declared import TypeMismatch, declared_blank
from interlock.define.parts import ContextInput, ProducedKey
from interlock.engine.answer.model import (
    LIST_TOOL,
    Answer,
    AnswerModel,
    HumanInputRequired,
    refused_blank,
    render_answer,
)
from interlock.engine.answer.prompt import guidance_of
from interlock.engine.answer.secret_scanning import secret_warnings
from interlock.engine.answer.structure import Warned
from interlock.engine.gates import ApprovalContext, Question, QuestionItem
from interlock.engine.judge.confirmation import raises_autonomy
from interlock.engine.judge.declared_context import hold_context
from interlock.engine.judge.violations import Violation
from interlock.engine.request import Request
from interlock.engine.start import Start, plan_start
from interlock.kernel.blanks import Blank
from interlock.kernel.budgets import (
    ECHO_BYTES_MAX,
)
from interlock.kernel.budgets.workflow import (
    DIAGNOSTICS_MAX,
)
from interlock.kernel.canonical import Json, digest_of
from interlock.kernel.errors import Correction, ErrorCode, Refusal
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import RunId, SessionId, minted_id
from interlock.kernel.text import one_line
from interlock.plan.compiled import CompiledWorkflow
from interlock.record.base import Preferences
from interlock.record.context import Context
from interlock.record.events import Actor
from interlock.record.outcome import ContextKeyPointer
from interlock.service.clock import mint_run, mint_session
from interlock.service.outside.approvals import notifies
from interlock.service.outside.checks import pin_checks
from interlock.service.ports import Ports
from interlock.service.run.context import load_run_context
from interlock.service.run.context_limits import context_refusal
from interlock.service.run.observations import observed_of
from interlock.service.tokens.mint import minting
from interlock.service.tools import warnings
from interlock.service.tools.open_runs import find_open_run
from interlock.service.tools.pending_step import render_pending_step
from interlock.service.unanswered import StartIds, StartKey, after_append, named
from interlock.service.workflows.catalog import CatalogView, Entry, Pinnable, RefusedFile, describe_missing_workspace
from interlock.service.workflows.reading import Source
from interlock.store.ports.errors import UNUSABLE_SESSION, StoreFailureError
from interlock.store.ports.keys import KeyRing
from interlock.views.session import Run, Session


@frozen
class StartCommand:
    """A parsed call. `request` holds the initial context with the goal, and the preferences.

    `is_workspace_sent`: the caller named the workspace.
    """

    workflow_id: str
    workspace: Path | None
    is_workspace_sent: bool = False
    request: Request = field(default_factory=Request)
    session: SessionId | None = None
    actor: Actor | None = None


class _Chosen(NamedTuple):
    """The workflow of a start: its file, what it compiled to, and the file in whose place it is used."""

    entry: Entry
    pinned: Pinnable
    replaced: Source | None


@frozen
class _Prepared:
    """What the answer needs, read before the append.

    `open_run` names a run that the caller may have wanted, `replaced` the file in whose place the workflow is used.
    """

    ring: KeyRing
    asking: ApprovalContext
    replaced: Source | None = None
    open_run: Sequence[Warned] = ()


def start_workflow(ports: Ports, command: StartCommand) -> Answer | Refusal | HumanInputRequired:
    """Begin a run and return its first step. More autonomy than the baseline may need a person's approval.

    Repeating a call that got no answer and may be recorded does not begin a second run (FAIL-2), nor does sending a
    person's reply again: the run has its ids from the question, and the first answer is repeated (GATE-10).

    Raises:
        StoreFailureError, SessionBusyError, SessionUnhealthyError, ContentDamagedError, KeyRingDamagedError:
            See `service.failures`; nothing was recorded this time.
        UnansweredError: The run may be recorded.
    """
    view = ports.catalog.view(command.workspace)
    found = find_startable(view, command.workflow_id, command.workspace, is_workspace_sent=command.is_workspace_sent)
    if isinstance(found, Refusal):
        return found
    entry, pinned = found
    refusal = _context_refusal(command.request.context) or inputs_refusal(pinned.workflow, command.request.context)
    refusal = refusal or _coverage_refusal(ports, pinned.workflow, entry.source.kind)
    if refusal is not None:
        return refusal
    key = (command.workflow_id, command.workspace, command.session, command.request.digest())
    replaced = view.replaced_by(entry)
    earlier = _find_earlier_start(ports, key, command.request.asking, replaced)
    if isinstance(earlier, Answer):
        return earlier
    joined = _load_joined(ports, command.session, pinned.workflow)
    if isinstance(joined, Refusal):
        return joined
    ids = earlier or _new_ids(ports, key, command)
    try:
        with named(ids.session, ids.run):
            outcome = _begin(ports, command, _Chosen(entry, pinned, replaced), ids, joined)
    except StoreFailureError:
        ports.unanswered.forget(ids)
        raise
    except Exception:
        # Kept only after the failure: an equal start that arrives meanwhile begins its own run.
        ports.unanswered.keep(ids)
        raise
    if isinstance(outcome, Answer):
        ports.unanswered.forget(ids)
    return outcome


def _new_ids(ports: Ports, key: StartKey, command: StartCommand) -> StartIds:
    """Return the ids of a new run: random ones, or of the question whose sealed reply grants it."""
    reply = command.request.asking.reply
    origin = reply.origin if reply is not None else None
    if origin is None:
        return StartIds(key=key, session=command.session or mint_session(ports.clock), run=mint_run(ports.clock))
    # Reversed, so that the ids of the session and the run do not read the same.
    session = SessionId(minted_id("sess", unix_ms=origin.unix_ms, entropy=origin.entropy[::-1]))
    run = RunId(minted_id("run", unix_ms=origin.unix_ms, entropy=origin.entropy))
    return StartIds(key=key, session=command.session or session, run=run)


def _coverage_refusal(ports: Ports, workflow: CompiledWorkflow, source: ChannelSource) -> Refusal | None:
    """Refuse a workflow that sends something which no single channel of the user takes (WORLD-7)."""
    found = {sends: ports.outbox.uncovered(sends, source) for sends in workflow.sends}
    lacks = {sends: why for sends, why in found.items() if why is not None}
    if not lacks:
        return None
    return Refusal(
        code=ErrorCode.EFFECT_UNCOVERED,
        message=f"`{workflow.workflow_id}` cannot start: {'; '.join(lacks.values())}.",
        suggestion="Only the user can change this: exactly one channel in `config.toml` must accept each kind, with the"
        f" source `{source}` among its `sources`. `interlock config show` prints them. Tell the user.",
        details={"sends": list[Json](sorted(lacks)), "source": source},
    )


def _find_earlier_start(
    ports: Ports, key: StartKey, asking: ApprovalContext, replaced: Source | None
) -> Answer | StartIds | None:
    """Return the answer of an equal, unanswered start; if that is not recorded, only its ids.

    None if the call begins a new run: there was no such start, its run has advanced (so a caller found it in another
    way), or its run is damaged.

    Raises:
        UnansweredError: The disk failed, so it is unknown what is recorded.
    """
    ids = ports.unanswered.find(key)
    if ids is None:
        return None
    answer = None
    try:
        with named(ids.session, ids.run, is_repeat=True):
            ring = ports.key_ring.ensure_keys()
            # Only taking the lock decides whether an interrupted append takes effect (APP-6).
            with ports.hold(ids.session) as lock:
                session = lock.session
            if session is None or ids.run not in session.runs:
                return ids
            run = session.runs[ids.run]
            if run.tip == run.root:
                answer = _render_begun(ports, _Prepared(ring=ring, asking=asking, replaced=replaced), session, run)
    except UNUSABLE_SESSION:
        answer = None
    ports.unanswered.forget(ids)
    return answer


def _begin(
    ports: Ports, command: StartCommand, chosen: _Chosen, ids: StartIds, joined: Session | None
) -> Answer | Refusal | HumanInputRequired:
    """Record a run with these ids, in the session that it joins or in a new one, and return its first step."""
    entry, pinned = chosen.entry, chosen.pinned
    checks = pin_checks(ports, pinned.workflow, command.workspace)
    if isinstance(checks, Refusal):
        return checks
    baseline = (joined.baseline if joined is not None else None) or ports.baseline
    anchors = ports.read.anchors(command.workspace)
    start = Start(
        session=ids.session,
        is_new_session=command.session is None,
        run=ids.run,
        workflow=pinned.workflow,
        workflow_hash=pinned.workflow_hash,
        workflow_bytes=pinned.data,
        source_kind=entry.source.kind,
        source_ref=entry.source.ref,
        request=command.request,
        baseline=baseline,
        observed=observed_of(anchors, keeps_repo_root=ports.keeps_repo_root),
        config_hash=ports.config_hash,
        checks=checks,
        proofs=ports.proofs,
        notifies=notifies(ports, pinned.workflow, entry.source.kind),
    )
    plan = plan_start(start)
    if isinstance(plan, Violation):
        return _refuse_start(plan)
    approval_request = _ask_for_autonomy(command, baseline, pinned.workflow.name)
    if approval_request is not None:
        return approval_request
    # All that the answer needs is read before the append: after it, nothing may prevent the answer.
    ring = ports.key_ring.ensure_keys()
    goal = command.request.context.get("goal")
    same = (pinned.workflow.workflow_id, goal if isinstance(goal, str) else None)
    open_run = find_open_run(ports, ring, same, anchors.repo_root)
    prepared = _Prepared(ring=ring, asking=command.request.asking, replaced=chosen.replaced, open_run=open_run)
    ports.read.plans.keep_start(plan, lambda: pinned.workflow)
    with ports.hold(ids.session) as lock:
        if joined is not None and lock.session is None:
            return _no_session(ids.session)  # it was deleted after it was loaded
        session = lock.session
        if session is None or ids.run not in session.runs:
            session = ports.append(lock, plan, command.actor)
    return _render_begun(ports, prepared, session, session.runs[ids.run])


def _load_joined(ports: Ports, session: SessionId | None, workflow: CompiledWorkflow) -> Session | Refusal | None:
    """Load the session that a run joins; None for a new session. An imported one may reach fewer channels."""
    if session is None:
        return None
    joined = ports.read.load(session)
    if joined is None:
        return _no_session(session)
    refusal = _coverage_refusal(ports, workflow, "imported") if joined.is_imported else None
    return refusal or joined


@after_append()
def _render_begun(ports: Ports, prepared: _Prepared, session: Session, run: Run) -> Answer:
    """Render the first step of a new run."""
    assert run.root is not None, "a start makes a root"
    run_context, node = load_run_context(session, run, ports.read.plans), session.nodes[run.root]
    mint = minting(ports.read, prepared.ring, session, run)
    step = render_pending_step(run_context, node, prepared.asking)
    with ports.read.trace.span("render"):
        return render_answer(
            AnswerModel(
                occasion="start",
                run=run_context.view(node),
                state_token=mint.state(node.node),
                ack_token=mint.ack(node.node) if step is not None else None,
                checkpoint_token=mint.checkpoint(node.node, 0) if step is not None else None,
                step=step,
                warnings=(
                    *prepared.open_run,
                    *warnings.replaced(run, prepared.replaced),
                    *warnings.disclosed(node),
                    *warnings.beyond_advice(run_context.workflow, node.preferences),
                    *secret_warnings(session.deltas.get(node.node), notes=None),
                ),
                preferences=node.preferences,
                guidance=guidance_of(run_context.workflow, never_stops=node.preferences.never_stops),
                references=run_context.workflow.references,
            )
        )


def find_startable(
    view: CatalogView, workflow_id: str, workspace: Path | None, *, is_workspace_sent: bool = False
) -> tuple[Entry, Pinnable] | Refusal:
    """Find and compile the workflow with an id; else refuse, with its faults or with the most similar id."""
    entry = view.startable(workflow_id)
    if entry is not None:
        compiled = entry.compiled
        return (entry, compiled) if isinstance(compiled, Pinnable) else _invalid(compiled, workflow_id)
    shown = one_line(repr(workflow_id), ECHO_BYTES_MAX * 2)
    workflow_id = one_line(workflow_id, ECHO_BYTES_MAX * 2)
    refused = view.refused_of(workflow_id)
    if refused is not None:
        return _invalid(refused, workflow_id)
    guess = view.nearest(workflow_id)
    missing = describe_missing_workspace(workspace, is_sent=is_workspace_sent)
    hint = f"Did you mean `{guess}`? Otherwise call" if guess else "Call"
    return Refusal(
        code=ErrorCode.WORKFLOW_NOT_FOUND,
        message=f"There is no workflow {shown}." + (f" {missing}" if missing else ""),
        suggestion=f"{hint} `list_workflows` for the ids that exist.",
        details={"workflowId": workflow_id, **({"didYouMean": guess} if guess else {})},
        correction=Correction(instead={"workflowId": guess}) if guess else Correction(tool=LIST_TOOL),
    )


def _invalid(file: RefusedFile, workflow_id: str) -> Refusal:
    shown = file.faults[:DIAGNOSTICS_MAX]
    lines = "\n".join(f"- {diagnostic.render_line()}" for diagnostic in shown)
    more = len(file.faults) - len(shown)
    where = f"{file.source.ref} of the {file.source.kind} source"
    return Refusal(
        code=ErrorCode.WORKFLOW_INVALID,
        message=f"The workflow {workflow_id!r} ({where}) cannot run:\n{lines}"
        + (f"\n- and {more} more" if more else ""),
        suggestion="Correct the file as each line says, then repeat the call; no restart is needed.",
        details={
            "source": file.source.ref,
            "sourceKind": file.source.kind,
            "diagnostics": [diagnostic.to_json() for diagnostic in shown],
        },
    )


def _context_refusal(context: Context) -> Refusal | None:
    """Return why the initial context is refused. A goal that is too long is asked for again, wherever it was sent."""
    refusal = context_refusal({}, context)
    if refusal is None or refusal.details.get("path") != "goal":
        return refusal
    blank = Blank(what="the goal, in a sentence")
    return replace(refusal, correction=Correction(instead={"goal": blank}, wrong=(("context", "goal"),)))


def inputs_refusal(workflow: CompiledWorkflow, context: Context) -> Refusal | None:
    """Return why the initial context does not fit the declared inputs of a workflow, or None if it fits."""
    # A key that was not sent is held, too: it may be required.
    sent = dict.fromkeys(one.key for one in workflow.inputs) | dict(context)
    mismatches = hold_context(workflow, {}, sent).mismatches
    if not mismatches:
        return None
    lines = "\n".join(
        f"- {_describe_mismatch(one, mismatches[key])}" for key, one in workflow.declared.items() if key in mismatches
    )
    # Inputs that a step sets are not asked for, unless they are required or their value does not fit.
    asked = {one.key for one in workflow.inputs if one.required or one.key not in workflow.set_by}
    wanted = [one for key, one in workflow.declared.items() if key in asked or key in mismatches]
    # Whoever is asked for an optional input invents a value.
    needed = [one for one in wanted if one.key in mismatches or one.key in context]
    others = ", ".join(f"`{one.key}`" for one in wanted if one not in needed)
    return Refusal(
        code=ErrorCode.VALIDATION_ERROR,
        message=f"These inputs of the workflow are missing from `context`, or their values are invalid:\n{lines}",
        suggestion="Ask the user for what you do not know. Then call `start_workflow` again with valid values"
        " of these keys in `context`." + (f" Only if the user named a value for them: {others}." if others else ""),
        details={"path": f"context.{next(iter(mismatches))}", "wanted": [_describe_input(one) for one in wanted]},
        correction=_context_correction({one.key: declared_blank(one) for one in needed}),
    )


def _describe_mismatch(declared: ProducedKey, mismatch: TypeMismatch) -> str:
    what = f"`{declared.key}` ({declared.type}): {declared.description} Found {mismatch.found}"
    return f"{what}." if mismatch.is_kind else f"{what}; use {mismatch.wanted}."


def _describe_input(declared: ProducedKey) -> dict[str, Json]:
    wanted: dict[str, Json] = {
        "key": declared.key,
        "type": declared.type,
        "required": isinstance(declared, ContextInput) and declared.required,
        "description": declared.description,
    }
    if declared.choices:
        wanted["choices"] = list(declared.choices)
    return wanted


def _ask_for_autonomy(command: StartCommand, baseline: Preferences, name: str) -> HumanInputRequired | Refusal | None:
    """Ask a person before a run gets more autonomy than the baseline, if the client can ask (GATE-5)."""
    wanted = command.request.preferences.over(baseline)
    if not command.request.asking.client_can or not raises_autonomy(baseline, wanted):
        return None
    reply = command.request.asking.reply
    if reply is not None and reply.action == "accept":
        return None
    said = f"They said: {reply.comment}" if reply is not None and reply.comment else None
    reply_words = (reply.unheard() if reply is not None else None) or said
    refusal = Refusal(
        code=ErrorCode.VALIDATION_ERROR,
        message=f"The user did not agree to the autonomy {wanted.autonomy!r}; no run was started."
        + (f" {reply_words}" if reply_words else ""),
        suggestion="Call `start_workflow` again without `preferences.autonomy`, or talk with the user first.",
        details={"path": "preferences.autonomy", "baseline": baseline.autonomy},
    )
    if reply is not None and reply.action == "decline":
        return refusal
    ask = f"May this run work with the autonomy {wanted.autonomy!r} instead of {baseline.autonomy!r}?"
    question = Question(
        title=f"Start of {name}", asks=(QuestionItem(reason="needs_user_approval", ask=ask),), demands="claimed"
    )
    workspace = str(command.workspace) if command.workspace is not None else None
    call: dict[str, Json] = {"workflowId": command.workflow_id, "request": command.request.digest()}
    subject = digest_of(call | {"session": command.session, "workspace": workspace})
    return HumanInputRequired(question=question, subject=subject, answer=refusal)


def _refuse_start(finding: Violation) -> Refusal:
    """Refuse a start that cannot reach a first step: its conditions read keys of the initial context (WALK-4)."""
    key = finding.pointer.key if isinstance(finding.pointer, ContextKeyPointer) else None
    blanks = {key.partition(".")[0]: refused_blank(key, finding.details)} if key else {}
    return Refusal(
        code=ErrorCode.VALIDATION_ERROR,
        message=f"The run cannot start: {finding.message}",
        suggestion=f"Call `start_workflow` again with {key!r} in `context`." if key else "Correct the workflow.",
        details={"path": f"context.{key}" if key else "workflowId"},
        correction=_context_correction(blanks) if blanks else None,
    )


def _context_correction(blanks: Mapping[str, Blank]) -> Correction:
    """Return the correction that asks for keys of the context, and keeps the others."""
    places: dict[tuple[int | str, ...], Blank] = {("context", key): blank for key, blank in blanks.items()}
    return Correction(wrong=tuple(places), blanks=places)


def _no_session(session: SessionId) -> Refusal:
    return Refusal(
        code=ErrorCode.SESSION_NOT_FOUND,
        message=f"There is no session {session!r} in this data directory.",
        suggestion="Leave `sessionId` out to begin a new session, or copy it from an answer of that session.",
        details={"sessionId": session},
        correction=Correction(instead={"sessionId": None}),
    )
