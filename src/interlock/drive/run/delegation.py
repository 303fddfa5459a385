"""Several agents on one run: by handoff, in parallel, or in a run of its own that is watched (DELEG-1).

All of it is tool calls of the server. What is delegated follows from the profile and the pending step, so a drive that
was killed is continued by the same rules.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio

from interlock.drive.agent.profile import Delegation
from interlock.drive.client import Draft, Evidence, PendingStep, Position, StartOptions, Tokens, WorkflowClient
from interlock.drive.faults import Fault, TurnError
from interlock.drive.models.protocol import Usage
from interlock.drive.run.driver import Driver, Progress, Scope, Settled, any_step
from interlock.drive.run.result import DriveResult
from interlock.drive.run.waiting import waits_for
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
        return replace(member, profile=member.profile.limited_by(self.lead.profile))

    def _is_own(self, step_id: str) -> bool:
        """Say whether the lead works on a step itself. A step whose supervised run is over is its own again."""
        return step_id in self._done or not any(step_id in rule.steps for rule in self.lead.profile.delegation)

    def _rule(self, position: Position) -> Delegation | None:
        step = position.step
        if step is None or step.step_id in self._done:
            return None
        return next((rule for rule in self.lead.profile.delegation if step.step_id in rule.steps), None)

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
                result = replace(result, status="person_needed", fault=error.fault)
        return result

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
        scope = await self._scope(rule, position, lambda step_id: step_id in rule.steps)
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
            used_before=history.usage if is_apart else Usage(),
        )

    async def _work_in_parallel(self, rule: Delegation, position: Position, member: Equipment) -> DriveResult:
        """Work on the pending step and its parallel steps at once, then report them in the order of the plan."""
        step = position.step
        assert step is not None, "something is delegated"
        parallel = [one for one in step.parallel_with if one in rule.steps]
        drafts = self._drafts
        begun = {one: Draft() for one in (step.step_id, *parallel) if one not in drafts}
        async with Toolbox(member.profile, only_repeatable=True) as toolbox:
            await toolbox.resolve()
            async with anyio.create_task_group() as tasks:
                for step_id, draft in begun.items():
                    at = await self._at_step(position, step_id)
                    worker = replace(member, client=draft, toolbox=toolbox, summaries={})
                    driver = Driver(worker, scope=await self._scope(rule, position, any_step, is_apart=True))
                    tasks.start_soon(driver.continue_at, at)
        drafts |= begun
        # One step is pending at a time: a draft is reported when its own step is.
        while position.step is not None and position.step.step_id in drafts:
            draft = drafts.pop(position.step.step_id)
            position = await self._commit(draft, position)
            if position.step is not None and (draft.reported is None or position.blockers or position.unchanged):
                break
        scope = await self._scope(rule, position, lambda step_id: step_id in rule.steps and step_id not in drafts)
        return await Driver(member, on_progress=self.on_progress, scope=scope).resume(position.run)

    async def _at_step(self, position: Position, step_id: str) -> Position:
        """Return the position of a draft: the step as it is read, and no token of the server."""
        pending = position.step
        assert pending is not None, "something is delegated"
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
        number = (await self.client.history(position)).number
        for evidence in (*draft.saved, *([draft.reported] if draft.reported is not None else [])):
            number += 1
            record = None if evidence.record is None else {**evidence.record, "turn": number}
            sent = replace(evidence, record=record)
            send = self.client.report if evidence is draft.reported else self.client.save
            position = await send(position, sent)
        return position

    async def _supervise(self, rule: Delegation, position: Position, member: Equipment) -> DriveResult:
        """Let another agent work a run of its own in the same session; its end is an input of the lead's step."""
        step, workflow = position.step, rule.workflow
        assert step is not None, "something is delegated"
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
            usage=history.usage,
            fault=replace(fault, message=message),
        )
