"""A contract runs in one session: its work, its parts and its goals are read from one log."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.flows import outputs
from tests.support.q3_launch import BAU, INFRASTRUCTURE, LAUNCH, QA, SPRINT, all_definitions

from interlock.define.operations.blocks import WorkBlock
from interlock.define.operations.builders import FlowBuilder
from interlock.define.operations.contracts import Contract, FlowReference
from interlock.define.operations.definitions import Definitions, next_version
from interlock.define.operations.flows import Flow
from interlock.kernel.canonical import Json
from interlock.kernel.errors import Refusal
from interlock.kernel.ids import RunId, SessionId
from interlock.plan.compile.compiler import Compiled
from interlock.plan.compiled import CompiledWorkflow, pinned_bytes
from interlock.plan.flows.lowering import compile_flow
from interlock.record.append_plan import AppendPlan, Stamps
from interlock.record.base import Preferences
from interlock.record.events import Actor
from interlock.service.audit.verify import verify_session
from interlock.service.contracts.assess import Assessed, assess_contract
from interlock.service.contracts.claim import claim_run
from interlock.service.contracts.start import (
    ContractCommand,
    ContractStarted,
    RunOrigin,
    observe_workspace,
    resume_contract,
    start_contract,
)
from interlock.service.contracts.status import ContractStatus, read_status
from interlock.service.ports import Ports
from interlock.service.retention.collect import CollectCommand, collect
from interlock.service.run.context import load_run_context
from interlock.service.run.plans import Plans
from interlock.store.ports.errors import FailureKind, StoreFailureError, UpkeepBusyError
from interlock.store.ports.maintenance import GcSnapshot, Retention, Swept, Upkeep
from interlock.store.ports.store import Store
from interlock.store.ports.workspace import NOWHERE, GitAnchors
from interlock.store.ports.writer import SessionLock
from interlock.store.retention import due
from interlock.testing.harness import Harness, ToolResult
from interlock.views.session import Session

PERSON = Actor(type="human", identifier="tester")
ORIGIN = RunOrigin(actor=PERSON)
OPERATE = next(one for one in all_definitions() if isinstance(one, WorkBlock) and one.name == "Operate Infrastructure")
GIT_KEYS = ("git_branch", "git_head_sha")
APPROVED: Json = {
    "kind": "wr.gate_verdict",
    "version": 1,
    "verdict": "approved",
    "confidence": "high",
    "rationale": "x" * 20,
}
NO: Json = {"kind": "wr.decision", "conditionId": "met", "result": False}
VALUES: Mapping[str, dict[str, Json]] = {
    "triage": {"route": "approved"},
    "implement": {"pull_request_url": "https://test/1"},
    "fast-track": {"pull_request_url": "https://test/2"},
    "review": {"verdict": "approved"},
}


class Office:
    """A harness with the example, and an agent that does every run."""

    def __init__(self, definitions: Definitions | None = None, harness: Harness | None = None) -> None:
        self.harness = harness or Harness.in_memory()
        self.definitions = Definitions(all_definitions()) if definitions is None else definitions

    @property
    def ports(self) -> Ports:
        return self.harness.ports

    @property
    def upkeep(self) -> Upkeep:
        return self.harness.store.upkeep

    def start(self, contract: Contract = LAUNCH, version: int | None = None) -> ContractStarted | Refusal:
        command = ContractCommand(
            contract_id=contract.id, version=version, definitions=self.definitions, goal=None, actor=PERSON
        )
        return start_contract(self.ports, self.harness.store, command)

    def started(self, contract: Contract = LAUNCH) -> SessionId:
        found = self.start(contract)
        assert isinstance(found, ContractStarted), found
        return found.session

    def status(self, session: SessionId) -> ContractStatus:
        found = read_status(self.ports.read, session)
        assert found is not None
        return found

    def assess(self, session: SessionId, outcome: str | None = None) -> Assessed:
        found = assess_contract(self.ports, session, outcome, ORIGIN)
        assert isinstance(found, Assessed), found
        return found

    def open_runs(self, session: SessionId) -> list[RunId]:
        folded = self.harness.store.load(session)
        assert folded is not None
        runs = sorted(folded.runs.values(), key=lambda run: run.index)
        return [run.run for run in runs if self._pending(session, run.run)]

    def do(self, session: SessionId, run: RunId, values: Callable[[str], Mapping[str, Json]] | None = None) -> None:
        """Do every step of a run."""
        answer = self._resumed(session, run)
        while not answer["isComplete"]:
            step = str(answer["pending"]["stepId"])
            answer = self.harness.advance(answer, None, output=self._output(session, run, step, values))
            assert not answer.is_error, answer.text
            assert answer["kind"] == "ok", answer.text

    def do_all(self, session: SessionId, values: Callable[[str], Mapping[str, Json]] | None = None) -> None:
        for run in self.open_runs(session):
            self.do(session, run, values)

    def _output(
        self, session: SessionId, run: RunId, step: str, values: Callable[[str], Mapping[str, Json]] | None
    ) -> dict[str, Json]:
        if values is not None:
            return dict(values(self.name(session, run)))
        if step in VALUES:
            return outputs(**VALUES[step])
        folded = self.harness.store.load(session)
        assert folded is not None
        workflow = load_run_context(folded, folded.runs[run], self.ports.read.plans).workflow
        schema: Any = workflow.packs[workflow.steps[step].evidence_schema_ref or ""].artifact_schema
        return outputs(**dict.fromkeys(schema["properties"]["outputs"]["required"], True))

    def name(self, session: SessionId, run: RunId) -> str:
        return self.plan(session, run).name

    def plan(self, session: SessionId, run: RunId) -> CompiledWorkflow:
        """Return the plan that is pinned for a run."""
        folded = self.harness.store.load(session)
        assert folded is not None
        return load_run_context(folded, folded.runs[run], self.ports.read.plans).workflow

    def fresh_ports(self) -> Ports:
        """Return ports that have read nothing yet."""
        return replace(self.ports, read=replace(self.ports.read, plans=Plans(self.harness.store)))

    def _pending(self, session: SessionId, run: RunId) -> bool:
        return not self._resumed(session, run)["isComplete"]

    def _resumed(self, session: SessionId, run: RunId) -> ToolResult:
        from interlock.service.tokens.mint import minting  # noqa: PLC0415 — only this helper mints

        folded = self.harness.store.load(session)
        assert folded is not None
        one = folded.runs[run]
        assert one.tip is not None
        mint = minting(self.ports.read, self.harness.ports.key_ring.ensure_keys(), folded, one)
        return self.harness.rehydrate(str(mint.state(one.tip)))


def judged(verdict: Json) -> Callable[[str], Mapping[str, Json]]:
    """Return what a step of an assessment sends: any outputs, with a verdict beside them."""
    return lambda _: {
        "artifacts": [
            {"kind": "wr.block_outputs", "outputs": {"result": "see the verdict", "deployed": 1, "passed": 1}},
            verdict,
        ]
    }


@pytest.mark.inv("GOAL-8")
@pytest.mark.produces("event:contract_bound")
def test_a_contract_and_its_parts_are_bound_in_one_session_with_a_run_for_each_work_flow() -> None:
    office = Office()
    session = office.started()
    folded = office.harness.store.load(session)
    assert folded is not None
    assert [one.contract_id for one in folded.contracts] == [LAUNCH.id, INFRASTRUCTURE.id]
    assert [office.name(session, run) for run in office.open_runs(session)] == [
        *("Engineering Sprint Cycle", "QA Validation Pipeline", "Infra BAU")
    ]
    status = office.status(session)
    assert (status.execution.state, status.parts[0].execution.state) == ("pending", "pending")
    assert [goal.state for goal in status.goals] == ["not_assessed", "not_assessed"]
    assert office.started() != session


@pytest.mark.inv("GOAL-6", "GOAL-7", "GOAL-3", "OPS-9")
def test_work_is_complete_and_one_goal_is_met_and_one_is_not() -> None:
    office = Office()
    session = office.started()
    office.do_all(session)
    status = office.status(session)
    assert (status.execution.state, [one[1] for one in status.flows]) == ("completed", ["completed", "completed"])
    assert [goal.state for goal in status.goals] == ["not_assessed", "not_assessed"]
    first = office.assess(session)
    assert len(first.waiting) == 2
    assert office.assess(session).begun == ()
    office.do_all(session)
    assert office.assess(session, "Feature X shipped to production").waiting == ()
    office.do_all(session, judged(APPROVED))
    office.assess(session)
    office.do_all(session, judged(NO))
    after = office.status(session)
    assert [goal.state for goal in after.goals] == ["met", "not_met"]
    assert after.execution.state == "completed"
    assert len(after.execution.assessment_executions) == 2
    assert office.assess(session) == Assessed(begun=(), waiting=())
    assert verify_session(office.harness.store, office.ports.read.plans, session) == ()


@pytest.mark.inv("GOAL-3")
def test_the_outputs_of_test_and_work_flows_are_the_inputs_of_an_assessment() -> None:
    office = Office()
    session = office.started()
    office.do_all(session)
    office.assess(session, "Feature X shipped to production")
    office.do_all(session)
    (run,) = office.assess(session, "Feature X shipped to production").begun
    folded = office.harness.store.load(session)
    assert folded is not None
    root = folded.runs[run].root
    assert root is not None
    context = folded.context(root)
    assert (context["passed"], context["verdict"], context["report"]) == (True, "approved", True)
    assert context["tests"] == {"Smoke Test Suite": {"passed": True}}
    work: Any = context["work"]
    assert work["Engineering Sprint Cycle"] == {"verdict": "approved"}
    assert context["sub_contracts"] == {"Infrastructure SLA": {"99.9% uptime": "not_assessed"}}


@pytest.mark.inv("GOAL-6")
def test_a_verdict_of_another_kind_is_shown_as_it_is() -> None:
    office = Office()
    session = office.started(INFRASTRUCTURE)
    office.do_all(session)
    office.assess(session)
    office.do_all(session, lambda _: outputs(result={"percent": 99.95}))
    (goal,) = office.status(session).goals
    assert (goal.state, goal.verdicts) == ("verdict", ({"result": {"percent": 99.95}},))


@pytest.mark.inv("OPS-3")
def test_a_running_contract_keeps_its_version_when_the_next_one_is_published() -> None:
    office = Office()
    session = office.started(INFRASTRUCTURE)
    (run,) = office.open_runs(session)
    pinned = office.plan(session, run)
    two_steps = FlowBuilder("Infra BAU, twice").add_block(OPERATE, alias="one").add_block(OPERATE, alias="two")
    flow = two_steps.entry("one").edge("one", "two").build()
    changed = next_version(BAU, name=flow.name, nodes=flow.nodes, edges=flow.edges)
    office.definitions.add(changed)
    work = (FlowReference(flow_id=changed.id, flow_version=2),)
    office.definitions.add(next_version(INFRASTRUCTURE, description="changed", work_flows=work))
    newer = office.start(INFRASTRUCTURE)
    assert isinstance(newer, ContractStarted)
    assert [office.status(one).contract.version for one in (session, newer.session)] == [1, 2]
    assert [*office.plan(newer.session, newer.runs[0]).steps] == ["one", "two"]
    # The older run has the plan that its own version compiles to, also for a reader that kept nothing.
    again = Office(office.definitions, replace(office.harness, ports=office.fresh_ports()))
    compiled = compile_flow(BAU, office.definitions)
    assert isinstance(compiled, Compiled)
    assert pinned_bytes(again.plan(session, run)) == pinned_bytes(pinned) == pinned_bytes(compiled.workflow)
    office.do(session, run)
    assert [name for name, _, _ in office.status(session).flows] == ["Infra BAU"]
    assert office.status(session).execution.state == "completed"
    assert office.status(newer.session).execution.state == "pending"


@pytest.mark.inv("OPS-3")
def test_another_content_under_a_published_version_is_refused_and_begins_nothing() -> None:
    office = Office()
    office.started(INFRASTRUCTURE)
    sessions = office.harness.store.sessions()
    changed = INFRASTRUCTURE.model_copy(update={"description": "changed"})
    other = [changed if one.id == INFRASTRUCTURE.id else one for one in all_definitions() if one.id != LAUNCH.id]
    office.definitions = Definitions(other)
    refused = office.start(INFRASTRUCTURE)
    assert isinstance(refused, Refusal)
    assert "published with other content" in refused.message
    assert "version 2" in refused.suggestion
    assert office.harness.store.sessions() == sessions


def test_a_contract_with_faults_is_refused_with_all_of_them() -> None:
    office = Office(Definitions([LAUNCH]))
    refused = office.start()
    assert isinstance(refused, Refusal)
    assert refused.message.count("Q3 Product Launch: ") == 7
    assert office.harness.store.sessions() == ()
    unknown = Office(Definitions()).start()
    assert isinstance(unknown, Refusal)
    assert "no contract" in unknown.message


@pytest.mark.inv("GOAL-5")
def test_a_failed_part_fails_the_contract_until_a_later_execution_replaces_it() -> None:
    from interlock.record.payloads import WorkRecorded  # noqa: PLC0415 — only this test ends a run
    from interlock.service.tools.end_run import end_run  # noqa: PLC0415

    office = Office()
    session = office.started()
    (_, _, infra) = office.open_runs(session)
    end_run(office.ports, (session, infra), WorkRecorded(work="failed", reason="gave_up"), PERSON)
    status = office.status(session)
    assert (status.parts[0].execution.state, status.execution.state) == ("failed", "failed")


@pytest.mark.inv("GOAL-9", "EXE-9")
@pytest.mark.produces("event:execution_claimed")
def test_a_run_of_another_session_counts_for_a_contract_and_is_not_changed() -> None:
    office = Office()
    other, session = office.started(), office.started()
    office.do_all(other)
    source = office.harness.store.load(other)
    assert source is not None
    qa = next(run for run in source.runs if office.name(other, run) == QA.name)
    before = office.harness.store.history(other)
    claim = claim_run(office.ports, office.upkeep, (other, qa), session, PERSON)
    assert not isinstance(claim, Refusal)
    assert (claim.state, claim.flow_id, claim.binding.position) == ("completed", QA.id, 1)
    status = office.status(session)
    assert [state for _, state, _ in status.flows] == ["pending", "completed"]
    assert claim.flow_execution_id in status.execution.flow_executions
    assert claim.flow_execution_id in office.status(other).execution.flow_executions
    assert office.harness.store.history(other) == before
    again = claim_run(office.ports, office.upkeep, (other, qa), session, PERSON)
    assert isinstance(again, Refusal)


@pytest.mark.inv("GOAL-9")
@pytest.mark.parametrize("is_on_disk", [True, False])
def test_a_claimed_run_is_not_collected_while_a_session_that_claims_it_stays(
    tmp_path: Path,
    is_on_disk: bool,  # noqa: FBT001 — a table
) -> None:
    office = Office(harness=Harness.on_disk(tmp_path) if is_on_disk else None)
    other, session, third = office.started(), office.started(INFRASTRUCTURE), office.started(INFRASTRUCTURE)
    for run in office.open_runs(third):
        office.do(third, run)
    source = office.harness.store.load(third)
    assert source is not None
    claim = claim_run(office.ports, office.upkeep, (third, next(iter(source.runs))), session, PERSON)
    assert not isinstance(claim, Refusal)
    upkeep = office.harness.store.upkeep
    upkeep.retention_pins.keep([session])
    marked = upkeep.mark()
    newest = max(one.last_activity_s for one in marked.sessions)
    kept = Retention(now_s=newest + 1_000, ttl_s=10, kept=upkeep.retention_pins.kept())
    assert {one.session for one in due(marked, kept).sessions} == {other}


class ClaimingCollector:
    """A collector during which another process claims a run, after the mark and before the sweep."""

    def __init__(self, upkeep: Upkeep, claim: Callable[[], object]) -> None:
        self._upkeep, self._claim = upkeep, claim

    def __getattr__(self, name: str) -> Any:
        return getattr(self._upkeep, name)

    def sweep(self, marked: GcSnapshot, retention: Retention) -> Swept:
        self._claim()
        return self._upkeep.sweep(marked, retention)


@pytest.mark.inv("GOAL-9")
@pytest.mark.parametrize("is_on_disk", [True, False])
def test_a_claim_between_the_mark_and_the_sweep_of_a_collection_is_refused_and_records_nothing(
    tmp_path: Path,
    is_on_disk: bool,  # noqa: FBT001 — a table
) -> None:
    office = Office(harness=Harness.on_disk(tmp_path) if is_on_disk else None)
    source, session = office.started(INFRASTRUCTURE), office.started(INFRASTRUCTURE)
    office.do_all(source)
    folded = office.harness.store.load(source)
    assert folded is not None
    run = next(iter(folded.runs))
    before = office.harness.store.history(session)

    def claim() -> object:
        return claim_run(office.ports, office.upkeep, (source, run), session, PERSON)

    def claim_too_early() -> None:
        with pytest.raises(UpkeepBusyError):
            claim()

    newest = max(one.last_activity_s for one in office.upkeep.mark().sessions)
    command = CollectCommand(days=0, now_s=newest, chosen=frozenset({source}))
    office.upkeep.retention_pins.keep([session])
    collector: Any = ClaimingCollector(office.upkeep, claim_too_early)
    swept = collect(collector, office.upkeep.retention_pins, command)
    assert [one.session for one in swept.taken.sessions] == [source]
    assert office.harness.store.history(session) == before
    refused = claim()
    assert isinstance(refused, Refusal)
    assert "has been deleted" in refused.message
    assert office.harness.store.history(session) == before


@pytest.mark.inv("GOAL-9")
def test_a_claim_after_a_collection_that_was_cut_off_keeps_its_source_from_the_next_one() -> None:
    office = Office()
    source, session = office.started(INFRASTRUCTURE), office.started(INFRASTRUCTURE)
    office.do_all(source)
    folded = office.harness.store.load(source)
    assert folded is not None
    with office.upkeep.upkeep_lock():
        office.upkeep.mark()
    run = next(iter(folded.runs))
    assert not isinstance(claim_run(office.ports, office.upkeep, (source, run), session, PERSON), Refusal)
    command = CollectCommand(days=0, now_s=10**10, chosen=frozenset({source}))
    assert collect(office.upkeep, office.upkeep.retention_pins, command).taken.sessions == ()
    assert office.status(session).execution.state == "completed"


def test_a_run_that_goes_on_cannot_be_claimed_and_no_other_session_has_a_contract() -> None:
    office = Office()
    session = office.started()
    folded = office.harness.store.load(session)
    assert folded is not None
    refused = claim_run(office.ports, office.upkeep, (session, office.open_runs(session)[0]), session, PERSON)
    assert isinstance(refused, Refusal)
    assert "has not ended" in refused.message
    assert isinstance(assess_contract(office.ports, SessionId("sess_" + "0" * 26), None, ORIGIN), Refusal)
    unknown = assess_contract(office.ports, session, "world peace", ORIGIN)
    assert isinstance(unknown, Refusal)
    assert "Feature X" in unknown.suggestion


class FullDisk:
    """A store whose disk is full after some appends."""

    def __init__(self, store: Store, appends: int) -> None:
        self._store, self.left = store, appends

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def append(self, lock: SessionLock, plan: AppendPlan, stamps: Stamps) -> Session:
        if self.left == 0:
            raise StoreFailureError(FailureKind.FULL, "disk full")
        self.left -= 1
        return self._store.append(lock, plan, stamps)


@pytest.mark.inv("GOAL-8")
@pytest.mark.parametrize("appends", [1, 2, 3])
def test_a_start_that_was_interrupted_is_resumed_and_begins_no_run_twice(appends: int) -> None:
    """The first append binds the contract, and each of the next three begins a run."""
    office = Office()
    full = FullDisk(office.harness.store, appends)
    command = ContractCommand(contract_id=LAUNCH.id, version=1, definitions=office.definitions, goal=None, actor=PERSON)
    refused = start_contract(replace(office.ports, writer=full), office.harness.store, command)
    (session,) = office.harness.store.sessions()
    assert isinstance(refused, Refusal)
    assert f"in the session {session}, which may be recorded" in refused.message
    assert refused.suggestion.startswith(f"`interlock contract resume {session}` begins the runs that are missing.")
    assert refused.envelope()["retry"] == {"kind": "not_retryable"}
    assert len(office.open_runs(session)) == appends - 1
    found = resume_contract(office.ports, session, None, ORIGIN)
    assert isinstance(found, ContractStarted)
    assert len(found.runs) == 4 - appends
    again = resume_contract(office.ports, session, None, ORIGIN)
    assert isinstance(again, ContractStarted)
    assert again.runs == ()
    assert len(office.open_runs(session)) == 3
    assert isinstance(resume_contract(office.ports, SessionId("sess_" + "0" * 26), None, ORIGIN), Refusal)


@pytest.mark.inv("GOAL-8")
def test_a_contract_is_started_in_a_workspace_and_with_the_preferences_of_the_user(tmp_path: Path) -> None:
    """As `start_workflow` does it: the state of the workspace is recorded once, for the session."""
    office = Office()
    baseline = Preferences(autonomy="full_auto_never_stop", risk_policy="conservative")

    def anchors(workspace: Path | None) -> GitAnchors:
        return GitAnchors(branch="main", head_sha="a" * 40) if workspace == tmp_path else NOWHERE

    ports = replace(office.ports, read=replace(office.ports.read, anchors=anchors), baseline=baseline)
    command = ContractCommand(
        contract_id=INFRASTRUCTURE.id,
        version=1,
        definitions=office.definitions,
        goal=None,
        actor=PERSON,
        workspace=tmp_path,
    )
    started = start_contract(ports, office.harness.store, command)
    assert isinstance(started, ContractStarted)
    (run,) = started.runs
    events: list[Any] = [one.to_json() for one in office.harness.events(started.session)]
    observed = [one for one in events if one["kind"] == "observation_recorded"]
    assert [(one["data"]["key"], one.get("scope")) for one in observed] == [(key, None) for key in GIT_KEYS]
    (changed,) = [one for one in events if one["kind"] == "preferences_changed"]
    assert changed["data"]["effective"] == baseline.to_json()
    office.do(started.session, run)
    origin = RunOrigin(actor=PERSON, observed=observe_workspace(ports, tmp_path))
    begun = assess_contract(ports, started.session, None, origin)
    assert isinstance(begun, Assessed)
    all_events: list[Any] = [one.to_json() for one in office.harness.events(started.session)]
    observed = [one for one in all_events[len(events) :] if one["kind"] == "observation_recorded"]
    assert [(one["data"]["key"], one["scope"]["runId"]) for one in observed] == [
        (key, *begun.begun) for key in GIT_KEYS
    ]


def test_the_example_has_the_shape_of_its_text() -> None:
    assert len({slot.target_id for slot in SPRINT.nodes}) == 3
    assert [type(one) for one in all_definitions()].count(Flow) == 8
