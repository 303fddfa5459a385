"""The argument `workspacePath`, which several tools have."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field

from interlock.kernel.budgets import ECHO_BYTES_MAX
from interlock.kernel.errors import Correction
from interlock.kernel.text import one_line
from interlock.server.tools.contract import Arguments, Caller, Fault

WorkspacePath = Annotated[
    str | None,
    Field(description="Absolute path of the project; its `.interlock/workflows` are read too. Default: the server's."),
]


def workspace_faults(arguments: Arguments, path: str | None) -> Iterator[Fault]:
    """Yield the fault of a `workspacePath` that is not absolute."""
    if path is not None and (not Path(path).is_absolute() or "\0" in path):
        yield Fault(
            "workspacePath",
            f"Found {one_line(path, ECHO_BYTES_MAX)!r}, which is not an absolute path.",
            "Send the project's absolute path, or leave it out to use the server's workspace.",
            correction=Correction(wrong=(("workspacePath",),), understood=arguments.sent()),
        )


def workspace_of(path: str | None, caller: Caller) -> Path | None:
    """Return the workspace that a call names, else the server's."""
    return caller.workspace if path is None else Path(path)
