"""What the configuration says of a check."""

from interlock.kernel.budgets import CHECK_OUTPUT_KIB, CHECK_TIMEOUT_S
from interlock.kernel.frozen import frozen


@frozen
class CheckConfig:
    """A check as the user configured it: an argv without a shell, and the directories that it may run in.

    `sandbox` is an argv before that of the command. `protect` are patterns of files that a run must not change.
    """

    name: str
    command: tuple[str, ...]
    workspaces: tuple[str, ...]
    timeout_s: int = CHECK_TIMEOUT_S
    output_kb: int = CHECK_OUTPUT_KIB
    sandbox: tuple[str, ...] = ()
    protect: tuple[str, ...] = ()

    @property
    def argv(self) -> tuple[str, ...]:
        """The whole command line."""
        return (*self.sandbox, *self.command)
