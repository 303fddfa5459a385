"""What a step waits for, as the server's answer says it, and what a model or a person reads about it."""

import re
from collections.abc import Mapping

from interlock.drive.client import Position
from interlock.drive.faults import Fault, TurnError
from interlock.drive.record import REPORT_TOOL
from interlock.kernel.budgets.drive import REPAIR_TURNS_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import mutable

_FAILED_RUN = re.compile(r"Run (\d+) (of the check `[^`]*` did not pass.*)", re.DOTALL)
_COMMAND = re.compile(r"`(interlock (?:approve|reject) [^`]*)`")
_SO_FAR = re.compile(r" (So far the answer is [^\n]*? \([^)\n]*\)\.)")
_ADVICE = "Correct the cause."
"""Begins what the server advises after the result of a failed check."""
_NO_WORK = "This step asks for no work."
"""Begins the prompt of a step that a check, an event or a person ends."""
NOT_PASSED = "The step is not done: its check did not pass."


@mutable
class Repair:
    """The failed check of the pending step, whose cause the model corrects.

    `seen` is the latest failed run that was there when the drive began or that the model was shown. `is_open` says that
    the model has not reported since. `message` is the next input about it. `failure` is the latest result, which came
    again after `repeated` reports in a row.
    """

    seen: int = 0
    is_open: bool = False
    message: str | None = None
    failure: str = ""
    repeated: int = 0

    def begin(self, position: Position) -> None:
        """Begin to correct the cause of the latest failure.

        Raises:
            TurnError: The check failed in the same way after each of the latest reports.
        """
        found = _failure(position)
        assert found is not None, "a check failed"
        result = failed_result(position)
        # Equal failures differ in the number of their run alone.
        self.repeated = self.repeated + 1 if found[2] == self.failure else 0
        self.seen, self.failure = int(found[1]), found[2]
        if self.repeated >= REPAIR_TURNS_MAX:
            message = f"The check failed in the same way after {self.repeated} reports in a row. {result}"
            raise TurnError(Fault(code="VALIDATION_ERROR", message=message))
        how = f"Correct the cause with your tools, then call `{REPORT_TOOL}`: this call runs the check again."
        self.is_open, self.message = True, f"{result}\n\n{how}"


def asks_for_work(text: str) -> bool:
    """Say whether a step, as an agent reads it, asks a model for work."""
    return not any(line.startswith(_NO_WORK) for line in text.splitlines())


def waits_for(position: Position) -> str | None:
    """Return `event`, `check` or `approval`; None if the step waits for nothing."""
    return None if position.waiting is None else str(position.waiting.get("for"))


def failed_run(position: Position) -> int:
    """Return the number of the latest run of the check of the step, if it failed and is the latest; 0 otherwise."""
    found = _failure(position)
    return 0 if found is None else int(found[1])


def failed_result(position: Position) -> str:
    """Return the result of the failed check: its number, how it ended, and the end of its output."""
    found = _failure(position)
    if found is None:
        return ""
    result, advice, _ = found[0].rpartition(_ADVICE)
    return (result if advice else found[0]).strip()


def not_come(position: Position, seconds: float) -> str:
    """Say what did not come in time."""
    waiting = position.waiting or {}
    wanted = waiting.get("event") or waiting.get("for") or "something"
    if waits_for(position) == "check":
        return f"The check `{wanted}` runs, and gave no result within {seconds:g} seconds."
    return f"The step waits for {wanted}, which did not come."


def _failure(position: Position) -> re.Match[str] | None:
    if position.waiting is None or waits_for(position) != "check":
        return None
    return _FAILED_RUN.match(str(position.waiting.get("how", "")))


def fixes(position: Position) -> str:
    """Return what is missing, and what the server suggests."""
    parts = [f"{one.get('message')} {one.get('suggestedFix') or ''}".strip() for one in position.blockers]
    return " ".join(parts)


def needs_person(position: Position) -> str:
    """Say which answer of a person is missing, and where to give it."""
    title = position.step.title if position.step is not None else "the end"
    if position.waiting is not None:
        return _needs_answer(title, position.waiting)
    missing = fixes(position) or f"The step {title!r} needs a person's answer."
    return (
        f"{missing} Continue run {position.label} in a client that can ask one"
        f" (`resume_session`), or with `interlock drive --resume {position.run} --agent FILE --ask` in a terminal."
    )


def _needs_answer(title: str, waiting: Mapping[str, Json]) -> str:
    """Say what a step asks a person, and the commands that answer."""
    question, how = str(waiting.get("event")), str(waiting.get("how"))
    # The commands follow the question and a note, which can be any text.
    commands = _COMMAND.findall(how)[-2:]
    if not commands:
        return f"The step {title!r} waits for a person. {how}"
    answers = " or ".join(f"`{one}`" for one in commands)
    so_far = _SO_FAR.match(how.partition(question)[2])
    return (
        f"The step {title!r} asks a person: {question} {f'{so_far[1]} ' if so_far is not None else ''}`interlock inbox`"
        f" shows the question. Answer with {answers} in a terminal of your own, then continue"
        " the run."
    )
