"""An attempt to advance, with everything that its decision depends on, and the possible decisions (BLK-2, GATE-1)."""

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from typing import TypeAlias

from interlock.engine.gates import Question
from interlock.engine.judge.amended import completed_artifact
from interlock.engine.judge.observed import without_faulty_divergence
from interlock.engine.judge.proof import ProofContext
from interlock.engine.request import CONFIRMATION_KIND, Request
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import AttemptId, EventId, NodeId, RunId, SessionId
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.records import PlanNode
from interlock.record.append_plan import AppendPlan
from interlock.record.base import Preferences
from interlock.record.context import Context
from interlock.record.events import Actor
from interlock.record.outcome import Blocker
from interlock.record.payloads import GapRecorded
from interlock.record.snapshot import ExecutionSnapshot, Running


@frozen
class AwaitedEvent:
    """The event that a waiting step takes: its fields, or that the time for it has passed (WORLD-4).

    `is_met` is False if the event is there, but not as the step needs it: a check that failed.
    """

    event_id: EventId
    fields: Mapping[str, Json]
    is_expired: bool = False
    is_met: bool = True

    def values(self) -> dict[str, Json]:
        """Return what `set` and `emit` of the step read below `event`."""
        return {**self.fields, "expired": self.is_expired}


Artifacts: TypeAlias = tuple[Mapping[str, Json], ...]

NO_PROOF = ProofContext()
"""The context of a step that demands no proof."""


@frozen
class FailedVerdict:
    """A failed verdict that no later one replaces. `is_overruled`: since then, a claim opened a gate."""

    kind: str
    word: str
    is_overruled: bool


@frozen
class Attempt:
    """One attempt to advance a node.

    `context` is that of the node; `earlier` is the request of the refused attempt that made the node, if there is one;
    `open_gaps` are the gaps that earlier attempts on the same step left; `earlier_notes` are
    those of the step before; `event` is the event that a waiting step takes, and `emitted` are the numbers of the
    step's intents that its run has recorded before. `actor` makes the attempt; None if it is
    not known. `reporters` are those of the steps that this one verifies, if another actor must have reported them.
    `proof` is what the proofs of the step are judged by. `notifies` says that a channel tells people when the run waits
    for them. `failed_verdict` reads which failed verdict is in effect after artifacts of this step; only an attempt
    that completes the run needs it.
    """

    session: SessionId
    run: RunId
    node: NodeId
    attempt: AttemptId
    is_fork: bool
    refusals: int
    snapshot: ExecutionSnapshot
    preferences: Preferences
    workflow: CompiledWorkflow
    request: Request
    context: Context
    actor: Actor | None = None
    earlier: Request | None = None
    open_gaps: tuple[tuple[AttemptId, GapRecorded], ...] = ()
    reporters: Mapping[str, Actor | None] = field(default_factory=dict[str, "Actor | None"])
    earlier_notes: str | None = None
    event: AwaitedEvent | None = None
    emitted: frozenset[int] = frozenset()
    proof: ProofContext = NO_PROOF
    notifies: bool = False
    failed_verdict: Callable[[Artifacts], FailedVerdict | None] = lambda _: None
    evidence: Request = field(init=False)
    """The evidence to check: this request, completed by that of the refused attempt before it."""

    def __post_init__(self) -> None:
        request = self.request
        if self.earlier is not None:
            pending = self._pending()
            earlier = without_faulty_divergence(self.workflow, pending, self.earlier, self.attempt)
            completed = partial(completed_artifact, self.workflow, pending)
            request = request.over(earlier, completed, unnamed=self._sole_assessment())
            if self._changes_what_was_confirmed(earlier, request):
                own = self.request.artifacts
                kept = (one for one in request.artifacts if one.get("kind") != CONFIRMATION_KIND or one in own)
                request = replace(request, artifacts=tuple(kept))
        object.__setattr__(self, "evidence", request.in_stored_order())

    def _changes_what_was_confirmed(self, earlier: Request, corrected: Request) -> bool:
        """Say whether the correction of a refused attempt gives a context key or an artifact another value (GATE-6).

        What was only missing may be added: the person who is named by an earlier claim did not see something else.
        """
        if any(key in self.context and self.context[key] != value for key, value in self.request.context.items()):
            return True
        shown = (one for one in earlier.evidence if one.get("kind") != CONFIRMATION_KIND)
        return any(not any(one.items() <= other.items() for other in corrected.artifacts) for one in shown)

    def _pending(self) -> PlanNode:
        state = self.snapshot.state
        assert isinstance(state, Running), "a complete node has no attempts"
        return self.workflow.steps[state.pending.step.step_id]

    def _sole_assessment(self) -> str | None:
        """Return the assessment that a rating need not name: the only one that the step asks for."""
        task = self._pending().task
        assert task is not None, "a pending step is a task"
        assessments = task.evidence.assessments
        return assessments[0] if len(assessments) == 1 else None

    @property
    def never_stops(self) -> bool:
        """Say whether what is missing is disclosed instead of stopping the run (MODE-2).

        A change of preferences counts from the node that this attempt makes, never for the attempt itself (GATE-5).
        """
        return self.preferences.never_stops


@frozen
class Advanced:
    """The plan makes the next node, with this snapshot."""

    plan: AppendPlan
    snapshot: ExecutionSnapshot


@frozen
class Refused:
    """The evidence is not accepted; the plan makes a node for the refused attempt (BLK-2)."""

    plan: AppendPlan


@frozen
class AttemptLimitReached:
    """The tenth refusal in a row: nothing more is recorded (BLK-4)."""

    blockers: tuple[Blocker, ...]


@frozen
class ApprovalMissing:
    """Only a person's approval is missing. Until it is given, the attempt records nothing (GATE-1)."""

    question: Question
    blockers: tuple[Blocker, ...]
    takes_claims: bool


@frozen
class Waiting:
    """The event that the step waits for is not there. The attempt records nothing and is not used up (WORLD-3)."""


Decision: TypeAlias = Advanced | Refused | AttemptLimitReached | ApprovalMissing | Waiting
