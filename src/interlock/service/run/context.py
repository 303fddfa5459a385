"""A run with its session and its workflow: from these, answers name the run and its steps."""

from interlock.engine.answer.identity import LoopPass
from interlock.engine.answer.parts import RunView
from interlock.engine.template import has_placeholders, rendered_line, title_in_code, with_loop_variables
from interlock.engine.walk.items import ItemMissingError, load_lists
from interlock.kernel.frozen import frozen, replace
from interlock.plan.compiled import CompiledWorkflow
from interlock.record.snapshot import (
    ExecutionSnapshot,
    LoopFrame,
    LoopPosition,
    PendingStep,
    Running,
    build_snapshot,
)
from interlock.service.run.plans import Plans
from interlock.store.ports.errors import ContentDamagedError
from interlock.views.outside import SigningKeys
from interlock.views.session import Node, Run, Session


@frozen
class StepLabel:
    """A step as lists name it: its title, its number from 1, and the current pass of its innermost loop."""

    title: str
    number: int
    loop: LoopPass | None = None


@frozen
class RunContext:
    """A run, its session and its pinned workflow: the source of every answer about the run.

    `signing_keys` are those whose signatures count. None: they are not known, so a step takes a signature with each key
    that the log names. `now_ms` is unix time, for what a call shows of now; None: what it shows depends on the log
    alone.
    """

    session: Session
    run: Run
    workflow: CompiledWorkflow
    plans: Plans
    signing_keys: SigningKeys | None = None
    now_ms: int | None = None

    def at(self, session: Session) -> "RunContext":
        """Return the same run in another state of its session."""
        return replace(self, session=session, run=session.runs[self.run.run])

    def view(self, node: Node | None = None) -> RunView:
        """Return the run as answers show it, with the goal at the node; by default at the preferred tip."""
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

    def describe_position(self, node: Node) -> str:
        """Return the position of a node as text: its pending step, or the end of the run."""
        place = self.place(node)
        if place is None:
            return "its end, complete"
        return f"step {place.number} of {len(self.workflow.numbers)}: {title_in_code(place.title)}"

    def snapshot(self, node: Node) -> ExecutionSnapshot:
        """Return a node's snapshot.

        Raises:
            ContentDamagedError: It is missing or damaged.
        """
        try:
            return self.plans.snapshot(node.snapshot, self.run.workflow_hash)
        except ContentDamagedError as error:
            self._name_session(error)
            raise

    def _name_session(self, error: ContentDamagedError) -> None:
        """Name the session in an error about its content."""
        error.session = self.session.session

    def frames(self, node: Node) -> tuple[LoopFrame, ...]:
        """Return the loops that are running at a node, with the lists of loops over lists.

        Raises:
            ContentDamagedError: The node's snapshot is missing or damaged, or refers to a list that is not there.
        """
        state = self.snapshot(node).state
        if not isinstance(state, Running) or all(frame.items_at is None for frame in state.loop_stack):
            return state.loop_stack if isinstance(state, Running) else ()
        try:
            return load_lists(self.workflow.graphs, state.loop_stack, self.session.value)
        except ItemMissingError as error:
            damaged = ContentDamagedError(what="snapshot", digest=node.snapshot, found=str(error))
            self._name_session(damaged)
            raise damaged from error

    def loaded_snapshot(self, node: Node) -> ExecutionSnapshot:
        """Return a node's snapshot with the lists of its loops, as a walk continues from it.

        Raises:
            ContentDamagedError: It is missing or damaged, or refers to a list that is not there.
        """
        snapshot, frames = self.snapshot(node), self.frames(node)
        if not isinstance(snapshot.state, Running) or frames == snapshot.state.loop_stack:
            return snapshot
        return build_snapshot(snapshot.workflow_hash, snapshot.state.changed(loop_stack=frames))

    def pending(self, node: Node) -> PendingStep | None:
        """Return the step that is pending at a node; None if the run is complete there.

        Raises:
            ContentDamagedError: The node's snapshot is missing or damaged.
        """
        try:
            return self.plans.pending(node.snapshot, self.run.workflow_hash)
        except ContentDamagedError as error:
            self._name_session(error)
            raise

    def passing(self, path: tuple[LoopPosition | LoopFrame, ...]) -> LoopPass | None:
        """Return the current pass of the innermost loop around a step; None if it is in no loop."""
        if not path:
            return None
        loop = self.workflow.graphs.loops[path[-1].loop_id]
        return LoopPass(loop_id=loop.loop_id, pass_=path[-1].iteration + 1, max_iterations=loop.max_iterations)

    def title(self, node: Node) -> str:
        """Return the title of the step that is pending at a node, rendered with the node's context."""
        pending = self.pending(node)
        return self._title(node, pending) if pending is not None else "Complete"

    def has_fixed_title(self, node: Node) -> bool:
        """Say whether the title of the step that is pending at a node depends on its snapshot alone.

        Raises:
            ContentDamagedError: The node's snapshot is missing or damaged.
        """
        pending = self.pending(node)
        return pending is None or not has_placeholders(self.workflow.steps[pending.step_id].title)

    def _title(self, node: Node, pending: PendingStep) -> str:
        """Render a pending step's title. A recap renders hundreds, so plain ones skip the context."""
        title = self.workflow.steps[pending.step_id].title
        if not has_placeholders(title):
            return title
        context = self.session.context(node.node)
        return rendered_line(title, with_loop_variables(self.workflow.graphs, context, self.frames(node)))

    def place(self, node: Node) -> StepLabel | None:
        """Return the step that is pending at a node as lists name it; None if it is complete."""
        pending = self.pending(node)
        if pending is None:
            return None
        number = self.workflow.numbers[self.workflow.steps[pending.step_id].node_id]
        return StepLabel(title=self._title(node, pending), number=number, loop=self.passing(pending.loop_path))


def load_run_context(session: Session, run: Run, plans: Plans) -> RunContext:
    """Load a run with its pinned workflow.

    Raises:
        ContentDamagedError: Its pinned workflow is missing or damaged.
    """
    try:
        return RunContext(session=session, run=run, workflow=plans.workflow(run.workflow_hash), plans=plans)
    except ContentDamagedError as error:
        error.session = session.session
        raise
