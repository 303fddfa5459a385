"""From the facts of a session to the facts of an answer: what a node's step is, and how a run is named."""

from collections.abc import Callable
from dataclasses import dataclass

from interlock.engine.answer import RunWords, StepWords
from interlock.engine.template import rendered
from interlock.plan.compiled import CompiledWorkflow
from interlock.record.snapshot import ExecutionSnapshot, Running
from interlock.service.plans import Plans
from interlock.views.session import Node, Run, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A run of a session with the workflow it pins: what every answer about it is told from."""

    session: Session
    run: Run
    workflow: CompiledWorkflow
    plans: Plans

    def words(self, node: Node | None = None) -> RunWords:
        """Return the run as it is named; the goal is that of the node's own branch."""
        at = node.node if node is not None else self.run.tip
        goal = self.session.context(at).get("goal") if at is not None else None
        return RunWords(
            label=self.session.label(self.run.run),
            workflow_id=self.run.workflow_id,
            workflow_name=self.workflow.name,
            session=self.session.session,
            run=self.run.run,
            goal=goal if isinstance(goal, str) else None,
        )

    def snapshot(self, node: Node) -> ExecutionSnapshot:
        """Return a node's snapshot.

        Raises:
            ContentDamagedError: It is missing or damaged.
        """
        return self.plans.snapshot(node.snapshot, self.run.workflow_hash)

    def step(self, node: Node) -> StepWords | None:
        """Return the step that is pending at a node, rendered with the node's context; None if it is complete."""
        state = self.snapshot(node).state
        if not isinstance(state, Running):
            return None
        step = self.workflow.steps[state.pending.step.step_id]
        context = self.session.context(node.node)
        return StepWords(
            number=self.workflow.numbers[step.step_id],
            total=len(self.workflow.numbers),
            step_id=step.step_id,
            title=rendered(step.title, context),
            prompt=rendered(step.prompt, context),
            needs_notes=step.evidence.required,
            needs_confirmation=step.require_confirmation,
            agent_role=step.agent_role,
        )

    def title_of(self) -> Callable[[Node], str]:
        """Return a function from a node to the title of its pending step."""
        return lambda node: step.title if (step := self.step(node)) else "Complete"


def scene_of(session: Session, run: Run, plans: Plans) -> Scene:
    """Return the scene of a run.

    Raises:
        ContentDamagedError: Its pinned workflow is missing or damaged.
    """
    return Scene(session=session, run=run, workflow=plans.workflow(run.workflow_hash), plans=plans)
