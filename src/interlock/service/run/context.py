"""From the facts of a session to the facts of an answer: what a node's step is, and how a run is named."""

from dataclasses import dataclass

from interlock.engine.answer.parts import RunView, title_in_code
from interlock.engine.answer.structure import LoopPass
from interlock.engine.template import rendered_line, with_loop_variables
from interlock.plan.compiled import CompiledWorkflow
from interlock.record.snapshot import ExecutionSnapshot, LoopFrame, PendingStep, Running
from interlock.service.run.plans import Plans
from interlock.views.session import Node, Run, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLabel:
    """A step as lists name it: its title, its number, counted from 1, and the pass of the loop it is in."""

    title: str
    number: int
    loop: LoopPass | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """A run of a session with the workflow it pins: what every answer about it is told from."""

    session: Session
    run: Run
    workflow: CompiledWorkflow
    plans: Plans

    def words(self, node: Node | None = None) -> RunView:
        """Return the run as it is named; the goal is that of the node's own branch."""
        at = node.node if node is not None else self.run.tip
        goal = self.session.context(at).get("goal") if at is not None else None
        return RunView(
            label=self.session.label(self.run.run),
            workflow_id=self.run.workflow_id,
            workflow_name=self.workflow.name,
            session=self.session.session,
            run=self.run.run,
            goal=goal if isinstance(goal, str) else None,
        )

    def stands_at(self, node: Node) -> str:
        """Return in words where a run stands that stands at a node."""
        place = self.place(node)
        if place is None:
            return "its end, complete"
        return f"step {place.number} of {len(self.workflow.numbers)}: {title_in_code(place.title)}"

    def snapshot(self, node: Node) -> ExecutionSnapshot:
        """Return a node's snapshot.

        Raises:
            ContentDamagedError: It is missing or damaged.
        """
        return self.plans.snapshot(node.snapshot, self.run.workflow_hash)

    def passing(self, path: tuple[LoopFrame, ...]) -> LoopPass | None:
        """Return the pass of the innermost of the loops around a step; None where there is none."""
        if not path:
            return None
        loop = self.workflow.graphs.loops[path[-1].loop_id]
        return LoopPass(loop_id=loop.loop_id, pass_=path[-1].iteration + 1, max_iterations=loop.max_iterations)

    def title(self, node: Node) -> str:
        """Return the title of the step that is pending at a node, rendered with the node's context."""
        state = self.snapshot(node).state
        return self._title(node, state.pending.step) if isinstance(state, Running) else "Complete"

    def _title(self, node: Node, pending: PendingStep) -> str:
        """Render a pending step's title; a recap asks for hundreds, of which few are templates."""
        title = self.workflow.steps[pending.step_id].title
        if "{{" not in title:
            return rendered_line(title, {})
        context = self.session.context(node.node)
        return rendered_line(title, with_loop_variables(self.workflow.graphs, context, pending.loop_path))

    def place(self, node: Node) -> StepLabel | None:
        """Return the step that is pending at a node as lists name it; None if it is complete."""
        state = self.snapshot(node).state
        if not isinstance(state, Running):
            return None
        pending = state.pending.step
        number = self.workflow.numbers[self.workflow.steps[pending.step_id].node_id]
        return StepLabel(title=self._title(node, pending), number=number, loop=self.passing(pending.loop_path))


def load_run_context(session: Session, run: Run, plans: Plans) -> RunContext:
    """Return the scene of a run.

    Raises:
        ContentDamagedError: Its pinned workflow is missing or damaged.
    """
    return RunContext(session=session, run=run, workflow=plans.workflow(run.workflow_hash), plans=plans)
