"""An adapter for scripts, such as those of CI: it runs one command for each block (ADPT-4)."""

import json
import subprocess
from collections.abc import Mapping, Sequence

from interlock.define.operations.blocks import WorkBlock
from interlock.define.operations.flows import Condition
from interlock.kernel.canonical import Json
from interlock.operations.adapter import Assignment, BaseAdapter, BlockFailedError
from interlock.views.executions.events import ExecutorInfo


class CommandAdapter(BaseAdapter):
    """Runs the command of the first hint of a block that it has a command for.

    The command receives the inputs as JSON on its standard input. Its standard output is the outcome: JSON, or else
    text. An exit code other than 0, or no end in time, fails the block. No shell is involved.
    """

    def __init__(self, commands: Mapping[str, Sequence[str]], *, name: str, seconds_max: float) -> None:
        super().__init__()
        self._commands = dict(commands)
        self._executor = ExecutorInfo(type="system", identifier=name)
        self._seconds_max = seconds_max

    def choose_executor(self, block: WorkBlock) -> ExecutorInfo:
        """Return this script as the executor; whether it can do the work shows when it is done."""
        del block
        return self._executor

    def do_work(self, assignment: Assignment) -> Json:
        """Run the command and return what it printed.

        Raises:
            BlockFailedError: No hint has a command, or the command failed.
        """
        hints = assignment.block.execution_hints
        argv = next((self._commands[hint] for hint in hints if hint in self._commands), None)
        if argv is None:
            raise BlockFailedError(f"no command for the hints {', '.join(hints) or '(none)'}")
        try:
            done = subprocess.run(  # noqa: S603 — the commands are those of the caller, and no shell reads them
                list(argv),
                input=json.dumps(assignment.inputs),
                capture_output=True,
                text=True,
                timeout=self._seconds_max,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise BlockFailedError(str(error)) from error
        if done.returncode != 0:
            raise BlockFailedError(f"{argv[0]} exited with {done.returncode}: {done.stderr.strip()}")
        try:
            return json.loads(done.stdout)
        except ValueError:
            return done.stdout.rstrip("\n")

    def evaluate_condition(self, condition: Condition, context: Json) -> bool:
        """Refuse: a script cannot judge a description. A subclass may.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(f"a script cannot judge: {condition.description}")
