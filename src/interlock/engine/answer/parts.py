"""The names of runs and steps in answers."""

from collections.abc import Mapping
from dataclasses import field

from interlock.engine.answer.identity import LoopPass, RunIdentity, StepPosition, WaitingOut
from interlock.kernel.blanks import Blank, Outline
from interlock.kernel.budgets import HEADER_GOAL_BYTES_MAX, HEADER_TITLE_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen
from interlock.kernel.text import in_code, one_line


@frozen
class RunView:
    """The names of a run in answers: its label, workflow, goal and ids."""

    label: str
    workflow_id: str
    workflow_name: str
    session: str
    run: str
    goal: str | None = None

    def header(self, *, is_short: bool = False) -> str:
        """Return the run in one line of Markdown, in short without its goal and the id of its workflow."""
        goal = f" · goal: {in_code(one_line(self.goal, HEADER_GOAL_BYTES_MAX))}" if self.goal else ""
        name = one_line(self.workflow_name, HEADER_TITLE_BYTES_MAX)
        if is_short:
            return f"**{name}** · run `{self.label}`"
        return f"**{name}** (`{self.workflow_id}`) · run `{self.label}`{goal}"

    def identity(self, step: StepPosition | None = None, *, is_full: bool = False) -> RunIdentity:
        """Return the run as answers name it, in full with its ids and the workflow's name."""
        return RunIdentity(
            label=self.label,
            workflow_id=self.workflow_id,
            goal=one_line(self.goal, HEADER_GOAL_BYTES_MAX) if self.goal else None,
            step=step,
            session_id=self.session if is_full else None,
            run_id=self.run if is_full else None,
            workflow_name=self.workflow_name if is_full else None,
        )

    def to_json(self) -> dict[str, Json]:
        """Return the run as errors name it."""
        return self.identity().to_json()


@frozen
class PendingStepView:
    """The step that an answer is about, counted from 1, and what the call that reports it must contain.

    `artifacts` are outlines of the smallest valid artifacts, `context` has the keys that the step must set; a blank
    replaces each value that the caller supplies. `parallel_with` are the unfinished steps that do not depend on it.
    `claim` is the artifact with which the agent claims that a person approved, if no one can be asked. `waiting` says
    what the step waits for, if no agent works on it.
    """

    number: int
    total: int
    step_id: str
    title: str
    prompt: str
    needs_notes: bool
    needs_confirmation: bool
    agent_role: str | None = None
    loop: LoopPass | None = None
    artifacts: tuple[Mapping[str, Outline], ...] = ()
    context: Mapping[str, Blank] = field(default_factory=dict[str, Blank])
    parallel_with: tuple[str, ...] = ()
    claim: Mapping[str, Outline] | None = None
    waiting: WaitingOut | None = None
