"""What the crash tests drive: a store over a disk that loses power, and plans as the engine makes them."""

from dataclasses import dataclass
from itertools import count
from pathlib import Path

from tests.support.words import many_words

from interlock.define.document import WorkflowDocument
from interlock.define.front import parse_workflow
from interlock.engine.advance import decide_advance
from interlock.engine.ends import Ended, RunEnding, decide_end
from interlock.engine.gates import Reply
from interlock.engine.judge.attempt import Advanced, Attempt, Refused
from interlock.engine.request import Request
from interlock.engine.start import Start, plan_start, root_node
from interlock.kernel.ids import EventId, NodeId, RunId, SessionId, ack_attempt, derived_id
from interlock.plan.compile.compiler import Compiled, compile_workflow
from interlock.plan.compiled import CompiledWorkflow, pinned_bytes
from interlock.record.append_plan import AppendPlan, Stamps
from interlock.record.payloads import ArtifactPayload, WorkRecorded
from interlock.store.local.store import LocalStore
from interlock.testing.power_cut import CrashDisk, ThreadLocks
from interlock.views.session import BASELINE, Session

STEPS = ("one", "two", "three")


def _compiled() -> CompiledWorkflow:
    document = parse_workflow(
        {
            "id": "crash.test",
            "name": "Crash test",
            "steps": [{"id": step, "title": step, "prompt": f"Do {step}."} for step in STEPS],
        }
    )
    assert isinstance(document, WorkflowDocument)
    compiled = compile_workflow(document)
    assert isinstance(compiled, Compiled)
    return compiled.workflow


WORKFLOW = _compiled()
WORKFLOW_HASH, WORKFLOW_BYTES = pinned_bytes(WORKFLOW)
_NUMBERS = count(1)


def session_id(name: str) -> SessionId:
    return SessionId(derived_id("sess", name))


def run_id(name: str) -> RunId:
    return RunId(derived_id("run", name))


def stamps() -> Stamps:
    return Stamps(
        mint_event_id=lambda: EventId(derived_id("evt", next(_NUMBERS))), recorded_at="2026-01-01T00:00:00.000Z"
    )


def opened(disk: CrashDisk) -> LocalStore:
    """Return a store that remembers nothing, as a new process does."""
    return LocalStore(Path("/nowhere"), files=disk, locks=ThreadLocks(), now_s=lambda: disk.now_s)


def start_plan(name: str = "a") -> AppendPlan:
    plan = plan_start(
        Start(
            session=session_id(name),
            is_new_session=True,
            run=run_id(name),
            workflow=WORKFLOW,
            workflow_hash=WORKFLOW_HASH,
            workflow_bytes=WORKFLOW_BYTES,
            source_kind="project",
            source_ref="crash.json",
            request=Request(context={"goal": f"Survive {name}"}),
            baseline=BASELINE,
        )
    )
    assert isinstance(plan, AppendPlan)
    return plan


def advance_plan(store: LocalStore, node: NodeId, request: Request, name: str = "a") -> AppendPlan:
    session = store.load(session_id(name))
    assert session is not None
    facts = session.nodes[node]
    decision = decide_advance(
        Attempt(
            session=session.session,
            run=facts.run,
            node=node,
            attempt=ack_attempt(node),
            is_fork=False,
            refusals=facts.refusals,
            snapshot=store.snapshot(facts.snapshot),
            preferences=facts.preferences,
            workflow=WORKFLOW,
            request=request,
            context=session.context(node),
        )
    )
    assert isinstance(decision, Advanced | Refused)
    return decision.plan


def end_plan(name: str = "a") -> AppendPlan:
    """Return the end of a run to which a person agreed in a chat: an event, and the answer that it refers to."""
    decision = decide_end(
        RunEnding(
            session=session_id(name),
            run=run_id(name),
            title="Crash test",
            is_complete=False,
            work=WorkRecorded(work="cancelled", reason="user_request"),
            actor=None,
            reply=Reply(action="accept", client="a client", answers={}),
        )
    )
    assert isinstance(decision, Ended)
    return decision.plan


def apply(store: LocalStore, plan: AppendPlan) -> Session:
    """Append a plan as a service does: under the session's lock. A plan that is recorded already changes nothing."""
    with store.hold(plan.session) as lock:
        return store.append(lock, plan, stamps())


@dataclass(frozen=True, kw_only=True)
class Case:
    """A disk before an append, the plan, and the session before and after it."""

    disk: CrashDisk
    plan: AppendPlan
    old: Session | None
    new: Session


def prepared(kind: str) -> Case:
    """Return the case of a kind: what is appended to what."""
    disk = CrashDisk()
    store = opened(disk)
    if kind == "start":
        plan = start_plan()
    elif kind == "start beside another":
        apply(store, start_plan("b"))
        plan = start_plan()
    elif kind == "end":
        apply(store, start_plan())
        plan = end_plan()
    else:
        apply(store, start_plan())
        evidence = {
            "advance": Request(notes="Done."),
            "advance with an artifact": Request(notes=many_words(90), artifacts=({"kind": "report", "rows": [1, 2]},)),
            "refusal": Request(context={"seen": 1}),
        }
        plan = advance_plan(store, root_node(run_id("a")), evidence[kind])
    old = store.load(session_id("a"))
    disk = disk.copy()
    new = apply(opened(disk.copy()), plan)
    return Case(disk=disk, plan=plan, old=old, new=new)


KINDS = ("start", "start beside another", "advance", "advance with an artifact", "refusal", "end")


def assert_readable(store: LocalStore, session: Session) -> None:
    """Read everything that a session refers to; each read is checked against its digest."""
    for run in session.runs.values():
        store.workflow_bytes(run.workflow_hash)
    for node in session.nodes.values():
        store.snapshot(node.snapshot)
        for output in node.outputs:
            if isinstance(output.payload, ArtifactPayload):
                store.artifact(output.payload.sha256)
    for run in session.runs.values():
        if run.ended is not None and run.ended.work.answer_ref is not None:
            store.artifact(run.ended.work.answer_ref)


def same(one: Session | None, other: Session | None) -> bool:
    return one == other
