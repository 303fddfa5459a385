"""What an answer is about, as data: the run, the step, what the step waits for, and what the run rests on."""

from typing import Annotated

import msgspec

from interlock.engine.published import Published
from interlock.kernel.shape import described


class StepPosition(Published):
    """Position of the step in the workflow, counted from 1."""

    number: int
    total: int | None = None
    pass_: Annotated[int | None, described("Pass of the innermost loop, from 1.")] = msgspec.field(
        default=None, name="pass"
    )


class RunIdentity(Published):
    """Which run the answer is about."""

    label: Annotated[str, described("Short name of the run; send it as `run`.")]
    workflow_id: str | None = None
    goal: str | None = None
    step: StepPosition | None = None
    session_id: str | None = None
    run_id: str | None = None
    workflow_name: str | None = None


class LoopPass(Published):
    """The pass of the innermost loop around the step, counted from 1."""

    loop_id: str
    pass_: int = msgspec.field(name="pass")
    max_iterations: int


class WaitingOut(Published):
    """What the step waits for. Until it is there, the same call gives the same answer and records nothing."""

    for_: Annotated[str, described("`event`, `check` or `approval`")] = msgspec.field(name="for")
    event: str
    since: str | None = None
    how: str


class RestsOn(Published):
    """How well the steps of a branch are known: how many by each level, and which demanded proof was not given.

    A step that nobody but its agent reported is claimed. `notProven` are ids of steps. `imported`: the run came with a
    bundle, which can give its events any level.
    """

    claimed: int
    observed: int
    signed: int
    executed: int
    imported: bool | None = None
    not_proven: tuple[str, ...] | None = None

    def in_one_line(self) -> str:
        """Return it as texts show it."""
        levels = {name: getattr(self, name) for name in ("claimed", "observed", "signed", "executed")}
        counts = ", ".join(f"{count} {name}" for name, count in levels.items() if count) or "none"
        missing = ", ".join(f"`{one}`" for one in self.not_proven or ())
        parts = [f"What the steps rest on: {counts}."]
        if self.imported:
            parts.append("The run was imported: the levels of its steps before the import are those of the bundle.")
        if missing:
            parts.append(f"Done without the proof that the workflow can demand: {missing}.")
        return " ".join(parts)
