"""Several agents on one run: by handoff, in parallel, or in a run of its own that is watched (DELEG-1).

All of it is tool calls of the server. What is delegated follows from the profile and the pending step, so a drive that
was killed is continued by the same rules.
"""

import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import anyio

from interlock.drive.account import Account
from interlock.drive.agent.profile import Delegation
from interlock.drive.client import (
    Draft,
    Evidence,
    PendingStep,
    Position,
    RefusedError,
    StartOptions,
    Tokens,
    WorkflowClient,
    evidence_of,
)
from interlock.drive.faults import Fault, TurnError, server_rule
from interlock.drive.instructions import TOO_LARGE_TO_WAIT
from interlock.drive.record import parse_turn, report_of
from interlock.drive.run.driver import Driver, Progress, Scope, Settled, any_step
from interlock.drive.run.result import DriveResult
from interlock.drive.run.waiting import asks_for_work, waits_for
from interlock.drive.tools.toolbox import Toolbox
from interlock.drive.turn import Equipment
from interlock.kernel.budgets.drive import DELEGATION_TRIES
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import replace

OpenMember = Callable[[str], Awaitable[Equipment]]
"""Returns what the drivers of another agent share, by the file of its profile. It is opened once."""
_RELEASE: dict[str, Json] = {"kind": "wr.work_record", "work": "released", "reason": "handoff"}


@dataclass(kw_only=True)
class Team:
    """The agent that leads a run, and how others are opened."""

    lead: Equipment
    client: WorkflowClient
    open_member: OpenMember
    on_progress: Callable[[Progress], None] | None = None
    _done: set[str] = field(default_factory=set[str])
    _drafts: dict[str, Draft] = field(default_factory=dict[str, Draft])
    """The work on parallel steps that are not pending yet. Other steps may come before them."""
    _began: float = field(init=False)
    _settled: Settled | None = field(default=None, init=False)
    """What a person says of lost calls; it is for one run, which may be that of a supervised agent."""

    def __post_init__(self) -> None:
        self._began = self.lead.effects.monotonic()

    async def start(self, options: StartOptions) -> DriveResult:
        """Begin a run and drive it with all agents.

        Raises:
            TurnError: The run cannot be started.
        """
        return await self._go_on(await self._driver(Scope(may_work=self._is_own)).start(options))

    async def resume(self, run: str, settled: Settled | None = None) -> DriveResult:
        """Continue a run. See `Driver.resume`.

        Raises:
            TurnError: The run cannot be found or read.
        """
        position = await self.client.find(run)
        self._settled = settled
        rule = self._rule(position)
        if rule is not None and settled is not None and rule.type == "handoff":
            return await self._go_on(await self._hand_over(rule, position, await self._member(rule), settled))
        return await self._go_on(await self._driver(Scope(may_work=self._is_own)).resume(run, settled))

    def _driver(self, scope: Scope) -> Driver:
        return Driver(self.lead, on_progress=self.on_progress, scope=replace(scope, began=self._began))

    async def _member(self, rule: Delegation) -> Equipment:
        """Return the equipment of another agent, to which the limits of the lead apply, too (DRIVE-8)."""
        member = await self.open_member(rule.target_agent)
        limited = member.profile.limited_by(self.lead.profile)
        return replace(member, profile=limited, account=self.lead.account)

    def _is_own(self, step_id: str) -> bool:
        """Say whether the lead works on a step itself. A step whose supervised run is over is its own again."""
        return self._rule_of(step_id) is None

    def _rule(self, position: Position) -> Delegation | None:
        return None if position.step is None else self._rule_of(position.step.step_id)

    def _rule_of(self, step_id: str) -> Delegation | None:
        """Return the first rule that delegates a step."""
        if step_id in self._done:
            return None
        return next((rule for rule in self.lead.profile.delegation if step_id in rule.steps), None)

    async def _go_on(self, result: DriveResult) -> DriveResult:
        """Delegate and lead in turn, until the run is over or somebody is needed."""
        while result.fault is None and result.position.step is not None:
            position, rule = result.position, self._rule(result.position)
            if rule is None:
                result = await self._driver(Scope(may_work=self._is_own)).resume(position.run)
                continue
            try:
                result = await self._delegate(rule, position)
            except TurnError as error:
                result = await self._failed(result, error.fault)
        return result

    async def _failed(self, result: DriveResult, fault: Fault) -> DriveResult:
        """Return a result with the reason why a delegation failed, and where the run is since then."""
        failed = replace(result, status="person_needed", fault=fault, usage=self.lead.account.total)
        try:
            position = await self.client.find(result.position.run)
            return replace(failed, position=position, turns=(await self.client.history(position)).number)
        except TurnError:
            return failed

    async def _delegate(self, rule: Delegation, position: Position) -> DriveResult:
        """Delegate by a rule, again or otherwise if that fails and the rule says so.

        Raises:
            TurnError: `DELEGATION_FAILED`, which needs a person.
        """
        # Its connection outlives the time limit, so it is opened outside of it.
        member = await self._member(rule)
        tries = DELEGATION_TRIES if rule.on_failure == "retry" else 1
        reason = ""
        for _ in range(tries):
            position = await self.client.find(position.run)
            try:
                with anyio.fail_after(None if rule.timeout_ms is None else rule.timeout_ms / 1000):
                    result = await self._by_type(rule, position, member)
            except TimeoutError:
                reason = f"it took longer than {rule.timeout_ms} ms"
                continue
            is_outside = result.status in ("waiting", "budget_used_up") or waits_for(result.position) == "approval"
            if result.fault is None or is_outside:
                return result
            reason = result.fault.message
        if rule.on_failure == "fallback":
            self._done.update(rule.steps)
            self._keep_drafts(self._drafts.keys() - set(rule.steps))
            return await self._driver(Scope(may_work=self._is_own)).resume(position.run)
        message = f"The delegation to {rule.target_agent!r} failed: {reason}"
        raise TurnError(Fault(code="DELEGATION_FAILED", message=message, details={"run": position.run}))

    async def _by_type(self, rule: Delegation, position: Position, member: Equipment) -> DriveResult:
        match rule.type:
            case "handoff":
                return await self._hand_over(rule, position, member)
            case "parallel":
                return await self._work_in_parallel(rule, position, member)
            case "supervisor":
                return await self._supervise(rule, position, member)

    async def _hand_over(
        self, rule: Delegation, position: Position, member: Equipment, settled: Settled | None = None
    ) -> DriveResult:
        """Release the step on a checkpoint; the other agent continues the run for the steps of the rule."""
        history = await self.client.history(position)
        if not any(turn.agent != self.lead.profile.identity.id for turn in history.of_step):
            await self.client.save(position, Evidence(artifacts=(_RELEASE,)))
        scope = await self._scope(rule, position, lambda step_id: self._rule_of(step_id) is rule)
        return await Driver(member, on_progress=self.on_progress, scope=scope).resume(position.run, settled)

    async def _scope(
        self, rule: Delegation, position: Position, may_work: Callable[[str], bool], *, is_apart: bool = False
    ) -> Scope:
        """Return what the other agent receives (DELEG-2). `is_apart`: its driver does not read the turns of the run."""
        passed, own = rule.context_propagation, self.lead.profile.identity.id
        history = await self.client.history(position)
        turns = [turn for turn in history.turns if turn.agent == own]
        delegated_by = turns[-1].artifact.get("trace") if turns else None
        passed_on: dict[str, Json] = {}
        if passed.include_session_id:
            passed_on["sessionId"] = position.run
        if passed.custom_context:
            passed_on["context"] = dict(passed.custom_context)
        return Scope(
            may_work=may_work,
            brief=f"Delegated to you: {json.dumps(passed_on, ensure_ascii=False)}" if passed_on else None,
            include_history=passed.include_history,
            include_state=passed.include_state,
            delegated_by=delegated_by if isinstance(delegated_by, dict) else None,
            began=self._began,
            turns_before=history.number if is_apart else 0,
        )

    async def _work_in_parallel(self, rule: Delegation, position: Position, member: Equipment) -> DriveResult:
        """Work on the pending step and its parallel steps at once, then report them in the order of the plan."""
        step = _step_of(position)
        ready = (step.step_id, *step.parallel_with)
        self._keep_drafts(ready)
        # A pending step that has turns is continued, as every step is.
        begun = {step.step_id} if (await self.client.history(position)).of_step else set[str]()
        steps = [one for one in ready if one not in {*begun, *self._drafts} and self._rule_of(one) is rule]
        await self._begin_drafts(steps, rule, position, member)
        drafts = self._drafts
        # One step is pending at a time: a draft is reported when its own step is.
        while position.step is not None and position.step.step_id in drafts:
            draft = drafts.pop(position.step.step_id)
            position = await self._commit(draft, position)
            if position.step is not None and (draft.reported is None or position.blockers or position.unchanged):
                break
        scope = await self._scope(
            rule, position, lambda step_id: self._rule_of(step_id) is rule and step_id not in drafts
        )
        return await Driver(member, on_progress=self.on_progress, scope=scope).resume(position.run)

    async def _begin_drafts(
        self, steps: Sequence[str], rule: Delegation, position: Position, member: Equipment
    ) -> None:
        """Work at once on steps. What was done until then is kept if that fails."""
        found = [await self._at_step(position, one) for one in steps]
        places = [at for at in found if asks_for_work(_step_of(at).prompt)]
        scope = await self._scope(rule, position, any_step, is_apart=True)
        parts = list[Account]()
        try:
            async with Toolbox(member.profile, only_repeatable=True) as toolbox:
                await toolbox.resolve()
                async with anyio.create_task_group() as tasks:
                    for at in places:
                        parts.append(self.lead.account.part())
                        draft = self._drafts[_step_of(at).step_id] = Draft()
                        worker = replace(member, client=draft, toolbox=toolbox, summaries={}, account=parts[-1])
                        tasks.start_soon(Driver(worker, scope=scope).continue_at, at)
        finally:
            for part in parts:
                self.lead.account.unrecorded += part.unrecorded

    def _keep_drafts(self, steps: Collection[str]) -> None:
        """Discard the drafts of other steps: the run moved on without them. What they used counts (DRIVE-8)."""
        for step_id in self._drafts.keys() - set(steps):
            self._discard(self._drafts.pop(step_id).kept())

    def _discard(self, kept: Iterable[Evidence]) -> None:
        for one in kept:
            if one.record is not None:
                self.lead.account.unrecorded += parse_turn(one.record, is_of_pending_step=False).usage

    async def _at_step(self, position: Position, step_id: str) -> Position:
        """Return the position of a draft: the step as it is read, and no token of the server."""
        pending = _step_of(position)
        tokens = Tokens(state="", ack=f"draft of {step_id}")
        if step_id == pending.step_id:
            return replace(position, tokens=tokens)
        text = await self.client.step_text(position, step_id)
        step = PendingStep(
            step_id=step_id,
            title=step_id,
            prompt=text,
            role=None,
            number=pending.number,
            total=pending.total,
            needs_person=False,
        )
        return replace(position, step=step, tokens=tokens, wanted=None)

    async def _commit(self, draft: Draft, position: Position) -> Position:
        """Send what a draft kept, with the numbers that its turns have in the run."""
        number, kept = (await self.client.history(position)).number, draft.kept()
        try:
            while kept:
                number += 1
                record = None if kept[0].record is None else {**kept[0].record, "turn": number}
                sent = replace(kept[0], record=record)
                is_report = kept[0] is draft.reported
                position = await (self._report if is_report else self.client.save)(position, sent)
                kept.pop(0)
        finally:
            self._discard(kept)
        return position

    async def _report(self, position: Position, evidence: Evidence) -> Position:
        """Report a step with the evidence of a draft. A report that is not recorded is kept as a turn of the step.

        Raises:
            TurnError: The server refused the call, and no other report would help.
        """
        record = evidence.record
        assert record is not None, "a turn reports"
        try:
            reported = await self.client.report(position, evidence)
        except RefusedError as refused:
            if server_rule(refused.refusal.code).correction != "model":
                raise
            return await self.client.save(position, Evidence(record=_refused(record, refused.fault)))
        if not reported.unchanged:
            return reported
        if reported.tokens.checkpoint is None:
            reported = replace(reported, tokens=replace(reported.tokens, checkpoint=position.tokens.checkpoint))
        if _holds_report(record, evidence):
            return await self.client.save(reported, Evidence(record={**record, "status": "waiting"}))
        fault = Fault(code="VALIDATION_ERROR", message=TOO_LARGE_TO_WAIT)
        return await self.client.save(reported, Evidence(record=_refused(record, fault)))

    async def _supervise(self, rule: Delegation, position: Position, member: Equipment) -> DriveResult:
        """Let another agent work a run of its own in the same session; its end is an input of the lead's step."""
        step, workflow = _step_of(position), rule.workflow
        if workflow is None:
            message = f"The delegation to {rule.target_agent!r} has no `workflow`."
            raise TurnError(Fault(code="DELEGATION_FAILED", message=message))
        goal = f"Delegated by the step {step.step_id} of run {position.label}."
        scope = await self._scope(rule, position, any_step, is_apart=True)
        driver = Driver(member, on_progress=self.on_progress, scope=scope)
        # A drive that was killed finds the run that it began.
        known = await self.client.run_named(position.session, workflow, goal)
        if known is not None:
            settled, self._settled = self._settled, None
            child = await driver.resume(known, settled)
        else:
            options = StartOptions(
                workflow_id=workflow, goal=goal, session=position.session, autonomy=member.profile.autonomy
            )
            child = await driver.start(options)
        if child.fault is not None:
            return await self._stopped(rule, position, child, child.fault)
        self._done.add(step.step_id)
        brief = f"The agent {rule.target_agent!r} ended run {child.position.label} of {workflow}: {child.status}."
        return await self._driver(Scope(may_work=self._is_own, brief=brief)).resume(position.run)

    async def _stopped(self, rule: Delegation, position: Position, child: DriveResult, fault: Fault) -> DriveResult:
        """Return the lead's run, which is the one to continue, with the reason why the other agent's stopped."""
        history = await self.client.history(position)
        run = f"run {child.position.label} of {rule.workflow}"
        message = f"The agent {rule.target_agent!r} stopped in {run}: {fault.message}"
        return replace(
            child,
            position=replace(position, waiting=child.position.waiting),
            turns=history.number,
            usage=self.lead.account.total,
            fault=replace(fault, message=message),
        )


def _step_of(position: Position) -> PendingStep:
    assert position.step is not None, "something is delegated"
    return position.step


def _holds_report(record: Mapping[str, Json], evidence: Evidence) -> bool:
    """Say whether the record of a turn holds its report whole: a waiting report is sent again from there."""
    turn = parse_turn(record, is_of_pending_step=True)
    if turn.report is None:
        return False
    kept, _ = evidence_of(report_of(turn))
    is_noted = (evidence.notes or "").endswith(kept.notes or "")
    return is_noted and (kept.artifacts, kept.context) == (evidence.artifacts, evidence.context)


def _refused(record: Mapping[str, Json], fault: Fault) -> dict[str, Json]:
    """Return the record of a turn whose report was refused with an error, which the model reads as its result."""
    turn = parse_turn(record, is_of_pending_step=True)
    call_id = None if turn.report is None else turn.report.call_id
    result: Json = {"status": "error", "error": fault.to_json()}
    tools: list[Json] = [
        {**one, "result": result} if isinstance(one, dict) and one.get("callId") == call_id else one
        for one in _list(record.get("tools"))
    ]
    return {**record, "tools": tools}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
