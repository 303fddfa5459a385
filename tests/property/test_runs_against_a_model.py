"""Random runs of random workflows against a model: what is answered, what is recorded and what should be agree.

Evidence is sound, careless or missing; calls are repeated, steps redone, places looked at again, and the process that
serves them ends and another one takes over, at any moment.
"""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from hypothesis.vendor.pretty import RepresentationPrinter
from tests.support.flow import INPUTS, choose, deciding, loop, parallel, step
from tests.support.lifecycle import hold_lifecycle
from tests.support.model import (
    AUTONOMIES,
    NEVER_STOPS,
    Model,
    Node,
    Outcome,
    Report,
)
from tests.support.model_language import Document, Owed, rendered
from tests.support.plans import KNOWN, workflows
from tests.support.reports import RISKS, Draw, Reports
from tests.support.shares import examples

from interlock.engine.gates import NO_APPROVAL, ApprovalContext, Reply
from interlock.kernel.errors import ErrorCode
from interlock.kernel.ids import NodeId, RunId, SessionId
from interlock.record.events import AdvanceRecordedEvent
from interlock.record.tokens import StateRef
from interlock.store.memory.store import MemoryStore
from interlock.testing.harness import FixedKeyRing, Harness, ToolResult
from interlock.views.session import Session
from interlock.views.status import run_status

pytestmark = pytest.mark.exhaustive

NODES_MAX = 60
RUNS_MAX = 3
LEVELS = ["low", "middle", "high"]
DIMENSIONS = [
    {"id": "clear", "purpose": "How clear.", "levels": LEVELS},
    {"id": "sound", "purpose": "How sound.", "levels": LEVELS, "required": False},
]
LOW = {"when": {"anyEqualsLevel": "low"}, "effect": {"kind": "require_followup", "guidance": "Look again."}}
RATED: Document = {
    "assessmentRefs": ["quality"],
    "assessmentConsequences": [LOW],
    "set": [{"key": "found", "from": "assessments.quality.clear"}],
}
CONTROLLED: Document = {"while": {"kind": "loop_control"}, "maxIterations": 2}
IN_A_HURRY: Document = {"var": "is_urgent", "equals": True}
UNTIL_FAST: Document = {"and": [{"var": "seen", "exists": True}, {"var": "seen", "equals": "fast"}]}
DENSE: Document = {
    "id": "test.random",
    "name": "Dense",
    "inputs": [*INPUTS, *({"key": key, "description": "Set.", "type": "string"} for key in ("found", "seen", "echo"))],
    "conditions": {"in-a-hurry": IN_A_HURRY},
    "assessments": [{"id": "quality", "purpose": "How good.", "dimensions": DIMENSIONS}],
    "steps": [
        step("rate", **RATED),
        step(
            "gate",
            requireConfirmation=True,
            needsUser=[{"reason": "needs_user_choice", "choiceKind": "scope_boundary", "ask": "Which one?"}],
        ),
        loop(
            "turn",
            step("work", set=[{"key": "seen", "from": "mode"}, {"key": "echo", "from": "seen"}]),
            until=UNTIL_FAST,
        ),
        parallel(
            "both",
            [
                step("left", when={"kind": "condition_ref", "conditionId": "in-a-hurry"}),
                step("more", produces=["verdict"]),
            ],
            [choose("way", ({"var": "verdict", "equals": "ok"}, [step("fine")]), otherwise=[step("otherwise")])],
        ),
        loop("outer", loop("inner", deciding("again"), **CONTROLLED), deciding("once-more"), **CONTROLLED),
        loop(
            "each", step("read", prompt="Read {{item}}, {{iteration}}."), forEach={"items": "things"}, maxIterations=2
        ),
        step("end", notes="optional", needs=["box.size"]),
    ],
}
"""A bit of everything, close together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A call that was recorded, with its answer and the node it made."""

    arguments: Mapping[str, Any]
    asking: ApprovalContext
    answer: ToolResult
    node: Node

    def __repr__(self) -> str:
        """Say which call this is, for whoever reads a failure."""
        return f"<a call about {self.node!r}>"

    def _repr_pretty_(self, printer: RepresentationPrinter, _is_cycle: bool) -> None:  # noqa: FBT001
        printer.text(repr(self))


def set_keys(part: object) -> set[str]:
    """Return every key that a step somewhere in a document sets."""
    if isinstance(part, list):
        return {key for one in cast("list[object]", part) for key in set_keys(one)}
    if not isinstance(part, dict):
        return set()
    members = cast("dict[str, Any]", part)
    return {action["key"] for action in members.get("set", ())} | set_keys(list(members.values()))


def asking_of(report: Report) -> ApprovalContext:
    if report.answer is None:
        return NO_APPROVAL
    reply = Reply(action=report.answer, client="somebody's client", answers={}) if report.answer != "nobody" else None
    return ApprovalContext(client_can=True, reply=reply)


def arguments_of(report: Report) -> Document:
    output: Document = {"notesMarkdown": report.notes} if report.notes is not None else {}
    output |= {"artifacts": list(report.artifacts)} if report.artifacts else {}
    preferences = {"autonomy": report.autonomy, "riskPolicy": report.risk}
    parts = {
        "output": output,
        "context": dict(report.context),
        "preferences": {key: value for key, value in preferences.items() if value is not None},
    }
    return {key: part for key, part in parts.items() if part}


class RunsAgainstAModel(RuleBasedStateMachine):
    """Runs of one workflow in one data directory."""

    on_disk = True

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.store = MemoryStore()
        self.nodes: dict[Node, NodeId] = {}
        self.states: dict[Node, str] = {}
        self.acks: dict[Node, str] = {}
        self.sessions: list[SessionId] = []
        self.runs: list[tuple[SessionId, RunId]] = []
        self.recorded: list[Recorded] = []
        self.pendings: dict[Node, str] = {}
        self.has_insisted = False

    def teardown(self) -> None:
        """Hold what was said earlier against what is said now that all is done."""
        for node in self.pendings:
            self.look_at(node)
        for earlier in self.recorded:
            assert written(self.sent(earlier.arguments, earlier.asking)) == written(earlier.answer)
        for session, run in self.runs:
            folded = self.harness.store.load(session)
            assert folded is not None
            hold_lifecycle(self.harness.store, folded, run)
        self.directory.cleanup()

    # -- what is done -------------------------------------------------------------------------------------------

    @initialize(document=st.one_of(st.just(DENSE), workflows(templates=False)), data=st.data())
    def write(self, document: Document, data: st.DataObject) -> None:
        self.document = document
        self.model = Model(document)
        self.serve()
        self.begin(data.draw)

    def serve(self) -> None:
        """Serve from what is stored, with nothing remembered."""
        if self.on_disk:
            self.harness = Harness.on_disk(Path(self.directory.name), self.document)
        else:
            clock = self.harness.ports.clock if self.sessions else None
            self.harness = Harness.over(self.store, self.document, keys=FixedKeyRing(), clock=clock)

    @rule()
    def restart(self) -> None:
        self.serve()

    @precondition(lambda self: len(self.runs) < RUNS_MAX)
    @rule(data=st.data())
    def start(self, data: st.DataObject) -> None:
        self.begin(data.draw)

    def begin(self, draw: Draw) -> None:
        keys = [key for key in KNOWN if draw(st.integers(0, 9)) < 8]
        context = {key: draw(st.sampled_from(KNOWN[key])) for key in keys}
        autonomy = draw(st.sampled_from(AUTONOMIES))
        risk = draw(st.sampled_from(RISKS))
        sent: Document = {"context": context, "preferences": {"autonomy": autonomy, "riskPolicy": risk}}
        sent |= draw(st.sampled_from([{}, {"goal": "See it through"}]))
        sent |= {"sessionId": draw(st.sampled_from(self.sessions))} if self.sessions and draw(st.booleans()) else {}
        known = context | ({"goal": sent["goal"]} if "goal" in sent else {})
        before = self.truth()
        root = self.model.start(known, autonomy, risk)
        answer = self.harness.start("test.random", **sent)
        if root is None:
            assert answer.code is ErrorCode.VALIDATION_ERROR, answer.text
            assert self.truth() == before
            return
        assert not answer.is_error, answer.text
        session = self.harness.session_of(answer)
        self.sessions += [session] * (session not in self.sessions)
        self.runs.append((session, RunId(answer["run"]["runId"])))
        self.note(answer, root)

    @precondition(lambda self: bool(self.open_nodes()))
    @rule(data=st.data())
    def report(self, data: st.DataObject) -> None:
        self.report_on(data.draw, self.tip_first(data.draw, self.open_nodes()))

    @precondition(lambda self: bool(self.open_nodes()))
    @rule(data=st.data(), times=st.integers(3, 8))
    def go_on(self, data: st.DataObject, times: int) -> None:
        for _ in range(times):
            if self.open_nodes():
                node = self.tip_first(data.draw, self.open_nodes())
                self.send(node, Reports(data.draw, node).earnest())

    @precondition(lambda self: bool(self.open_nodes()) and not self.has_insisted)
    @rule(data=st.data())
    def insist_on_nothing(self, data: st.DataObject) -> None:
        self.has_insisted = True
        node = self.tip_first(data.draw, self.open_nodes())
        while node is not None:
            node = self.send(node, Report())

    @precondition(lambda self: bool(self.forkable()))
    @rule(data=st.data())
    def redo(self, data: st.DataObject) -> None:
        node = data.draw(st.sampled_from(self.forkable()))
        reports = Reports(data.draw, node.head)
        report = reports.earnest() if data.draw(st.booleans()) else reports.report()
        self.send(node.head, report, fork=self.look_at(node)["fork"]["ackToken"])

    @precondition(lambda self: bool(self.nodes))
    @rule(data=st.data())
    def look(self, data: st.DataObject) -> None:
        node = data.draw(st.sampled_from(list(self.nodes)))
        before = self.truth()
        first, second = self.look_at(node), self.look_at(node)
        assert written(first) == written(second)
        assert self.truth() == before

    @precondition(lambda self: bool(self.recorded))
    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        earlier = data.draw(st.sampled_from(self.recorded))
        before = self.truth()
        assert written(self.sent(earlier.arguments, earlier.asking)) == written(earlier.answer)
        assert self.truth() == before

    @precondition(lambda self: bool(self.recorded))
    @rule(data=st.data())
    def repeat_with_other_content(self, data: st.DataObject) -> None:
        earlier = data.draw(st.sampled_from(self.recorded))
        other = data.draw(st.sampled_from([{"output": {"notesMarkdown": "Other notes."}}, {"context": {"other": 1}}]))
        before = self.truth()
        answer = self.sent({**earlier.arguments, **other}, earlier.asking)
        assert set(answer.warnings) == {*earlier.answer.warnings, "REPLAY_PAYLOAD_IGNORED"}
        call, calls_before = answer.structure["nextCall"], earlier.answer.structure["nextCall"]
        assert apart_from_the_way_on(answer) == apart_from_the_way_on(earlier.answer)
        if earlier.node.is_passed:
            tip = earlier.node.run.tip_below(earlier.node)
            assert call["arguments"] == {"stateToken": self.states[tip], "run": answer["run"]["label"]}
        else:
            assert call == calls_before
        assert self.truth() == before

    # -- calls --------------------------------------------------------------------------------------------------

    def report_on(self, draw: Draw, node: Node) -> None:
        self.send(node, Reports(draw, node).report())

    def send(self, node: Node, report: Report, *, fork: str | None = None) -> Node | None:
        """Report on a node; return the node where it was refused, if that was recorded."""
        token, before = fork or self.acks[node], self.truth()
        kept = {key: value for key, value in report.context.items() if key not in self.keys_not_to_send(node, report)}
        if len(kept) < len(report.context):
            refused = self.sent({"ackToken": token, **arguments_of(report)}, asking_of(report))
            assert refused.code is ErrorCode.VALIDATION_ERROR
            assert self.truth() == before
            report = replace(report, context=kept)
        arguments = {"ackToken": token, **arguments_of(report)}
        outcome = self.model.report(node, report, is_fork=fork is not None)
        answer = self.sent(arguments, asking_of(report))
        if outcome.node is None:
            self.hold_unrecorded(node, outcome, answer)
            assert self.truth() == before
            return None
        self.note(answer, outcome.node)
        hold_blockers(answer, outcome.owed)
        self.recorded.append(Recorded(arguments=arguments, asking=asking_of(report), answer=answer, node=outcome.node))
        return outcome.node if outcome.kind == "blocked" else None

    def keys_not_to_send(self, node: Node, report: Report) -> set[str]:
        """Return the keys that steps set and a report on this node must not change (CTX-11)."""
        assert node.step is not None
        free: set[str] = set(cast("list[str]", node.step.get("produces", [])))
        if node.kind == "blocked_attempt":
            free |= {owed.subject.partition(".")[0] for owed in node.owed}
        changed = {key for key, value in report.context.items() if value != node.context.get(key)}
        return (changed & set_keys(self.document)) - free

    def sent(self, arguments: Mapping[str, Any], asking: ApprovalContext) -> ToolResult:
        answer = replace(self.harness, asking=asking).call("continue_workflow", arguments)
        assert answer.code is not ErrorCode.INTERNAL_ERROR
        return answer

    def hold_unrecorded(self, node: Node, outcome: Outcome, answer: ToolResult) -> None:
        if outcome.kind == "limit":
            assert answer.code is ErrorCode.ATTEMPT_LIMIT_REACHED, answer.text
            return
        assert not answer.is_error, answer.text
        assert answer["nextIntent"] == "await_user_confirmation"
        assert answer.state == self.states[node]
        hold_blockers(answer, outcome.owed)
        hold_pending(answer, node)

    def note(self, answer: ToolResult, node: Node) -> None:
        """Hold the first answer about a node against it, and remember its tokens."""
        assert not answer.is_error, answer.text
        hold_pending(answer, node)
        assert set(answer.warnings) == node.warnings, answer.text
        assert (answer["nextCall"] is not None) == (node.step is not None)
        ref = self.harness.reference_of(answer)
        assert isinstance(ref, StateRef)
        assert ref.node not in self.nodes.values()
        self.nodes[node], self.states[node] = ref.node, answer.state
        if node.step is not None:
            self.acks[node] = answer.ack

    def look_at(self, node: Node) -> ToolResult:
        answer = self.harness.rehydrate(self.states[node])
        assert not answer.is_error, answer.text
        hold_pending(answer, node)
        pending = json.dumps(answer["pending"])
        assert self.pendings.setdefault(node, pending) == pending, "a place reads the same for ever"
        if node.step is None:
            assert answer["nextCall"] is None
            return answer
        stands, run = node.last, node.run
        assert answer.state == self.states[node.head if node.is_passed else stands]
        assert ("ackToken" in answer.structure) == (not node.is_passed and not node.is_used_up)
        assert ("fork" in answer.structure) == (node.is_passed or node.is_used_up)
        assert set(answer.warnings) == (
            ({"STEP_ALREADY_DONE"} if node.is_passed else {"ATTEMPT_LIMIT_REACHED"} if node.is_used_up else set())
            | ({"GAP_RECORDED"} if run.has_open_gap_above(stands) else set())
        )
        goes_on = node.is_passed or (stands.autonomy == NEVER_STOPS and not node.is_used_up)
        hold_blockers(answer, frozenset() if goes_on else stands.owed)
        call = answer["nextCall"]["arguments"]
        tip = run.tip_below(node.head)
        if node.is_passed or (node.is_used_up and node.head.forks and tip is not stands):
            assert call["stateToken"] == self.states[tip]
        elif node.is_used_up:
            assert call["ackToken"] == answer["fork"]["ackToken"]
        else:
            assert call["ackToken"] == answer.ack == self.acks[stands]
        return answer

    # -- what there is to choose from ---------------------------------------------------------------------------

    def open_nodes(self) -> list[Node]:
        """Return the nodes that an attempt may be made on, the tips of runs last."""
        if len(self.nodes) >= NODES_MAX:
            return []
        found = [node for node in self.acks if node.ack is None]
        return sorted(found, key=lambda node: node is node.run.tip)

    def tip_first(self, draw: Draw, nodes: list[Node]) -> Node:
        tips = [node for node in nodes if node is node.run.tip]
        return draw(st.sampled_from(tips if tips and draw(st.integers(0, 9)) else nodes))

    def forkable(self) -> list[Node]:
        return [node for node in self.acks if node.is_passed or node.is_used_up]

    # -- what holds ---------------------------------------------------------------------------------------------

    def truth(self) -> object:
        """Return what is stored, to be compared."""
        if not self.on_disk:
            return {session: self.store.stored_log(session).segments for session in self.sessions}
        stats = ((path, path.stat()) for path in Path(self.directory.name).rglob("*"))
        return {path: (stat.st_size, stat.st_mtime_ns, stat.st_ino) for path, stat in stats}

    @invariant()
    def the_record_agrees_with_the_model(self) -> None:
        sessions = {session: self.loaded(session) for session in self.sessions}
        for session, fold in sessions.items():
            self.hold_log(session, fold)
        for (session, run_id), run in zip(self.runs, self.model.runs, strict=True):
            fold = sessions[session]
            tip = fold.nodes[self.nodes[run.tip]]
            assert fold.runs[run_id].tip == tip.node
            assert fold.runs[run_id].critical == run.critical
            workflow = fold.runs[run_id].workflow_hash
            status = run_status(fold, tip, self.harness.ports.read.plans.snapshot(tip.snapshot, workflow))
            assert status == run.status
            for node in run.nodes:
                self.hold_node(fold, node)

    def loaded(self, session: SessionId) -> Session:
        fold = self.harness.ports.read.reader.load(session)
        assert fold is not None
        return fold

    def hold_log(self, session: SessionId, fold: Session) -> None:
        events = self.harness.events(session)
        assert [event.event_index for event in events] == list(range(fold.next_index))
        assert len({event.dedupe_key for event in events}) == len(events)
        runs = [run for (at, _), run in zip(self.runs, self.model.runs, strict=True) if at == session]
        nodes = {self.nodes[node] for run in runs for node in run.nodes}
        assert {*fold.nodes} == nodes
        attempts = [event.data.attempt_id for event in events if isinstance(event, AdvanceRecordedEvent)]
        assert len(attempts) == len({*attempts}) == len(nodes) - len(runs), "each attempt once"

    def hold_node(self, fold: Session, node: Node) -> None:
        found = fold.nodes[self.nodes[node]]
        assert found.parent == (self.nodes[node.parent] if node.parent is not None else None)
        assert found.kind == node.kind
        assert found.refusals == node.refusals
        assert found.forks == len(node.forks)
        assert (found.preferences.autonomy, found.preferences.risk_policy) == (node.autonomy, node.risk)
        assert dict(fold.context(found.node)) == dict(node.context)
        assert list(found.children) == [self.nodes[child] for child in node.run.nodes if child.parent is node]
        opened = [gap.severity for gap in found.gaps if gap.gap_id in fold.open_gaps]
        assert sorted(opened) == sorted(node.gaps.values())


UNCHANGED = "The prompt of this step is the same as in the answer"
"""How a refusal says that it does not repeat a long prompt (ANS-27)."""


def hold_pending(answer: ToolResult, node: Node) -> None:
    assert answer["isComplete"] == (node.step is None)
    pending = answer["pending"]
    if node.step is None:
        assert pending is None
        return
    assert pending["stepId"] == node.step["id"]
    loop = node.loop
    place = (pending["loop"]["loopId"], pending["loop"]["pass"]) if "loop" in pending else None
    assert place == ((loop.loop["loopId"], loop.number + 1) if loop is not None else None)
    if "prompt" in node.step and not (node.kind == "blocked_attempt" and pending["prompt"].startswith(UNCHANGED)):
        assert rendered(node.step["prompt"], node.seen) in pending["prompt"]


def hold_blockers(answer: ToolResult, owed: frozenset[Owed]) -> None:
    names = {"output_contract": "contractRef", "context_key": "key", "workflow_step": "stepId"}
    found = [(one["code"], one["pointer"]) for one in answer.structure.get("blockers", ())]
    result = {(code, pointer[names.get(pointer["kind"], "capability")]) for code, pointer in found}
    assert result == {one.blocker for one in owed}, answer.text
    assert answer["kind"] == ("blocked" if owed else "ok")


def written(answer: ToolResult) -> tuple[str, str, bool]:
    return json.dumps(dict(answer.structure)), answer.text, answer.is_error


def apart_from_the_way_on(answer: ToolResult) -> Document:
    """Return an answer without what the way on decides: one that leads to the run's tip says more of run and tokens."""
    way_on = {"warnings", "nextCall", "ackToken", "checkpointToken"}
    run = {key: answer["run"][key] for key in ("label", "step") if key in answer["run"]}
    return {key: part for key, part in answer.structure.items() if key not in way_on} | {"run": run}


class InMemory(RunsAgainstAModel):
    on_disk = False


unhurried = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
)


@pytest.mark.inv("ADV-5", "ADV-7", "ADV-8", "ADV-9", "ADV-10", "CTX-2", "BLK-5", "EXE-13")
def test_runs_in_memory_agree_with_the_model() -> None:
    run_state_machine_as_test(InMemory, settings=settings(unhurried, max_examples=examples(80), stateful_step_count=20))


@pytest.mark.inv("ADV-5")
def test_runs_on_disk_agree_with_the_model_whoever_serves_them() -> None:
    run_state_machine_as_test(
        RunsAgainstAModel, settings=settings(unhurried, max_examples=examples(24), stateful_step_count=15)
    )


@pytest.mark.soak
def test_many_long_runs_agree_with_the_model() -> None:
    run_state_machine_as_test(InMemory, settings=settings(unhurried, max_examples=1_000, stateful_step_count=50))
