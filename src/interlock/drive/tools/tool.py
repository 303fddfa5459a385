"""A tool that a driver can call: what a model sees of it, and how it is called."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from interlock.drive.agent.profile import Permission, Retry
from interlock.drive.models.protocol import ToolSpec
from interlock.drive.state import StateOperations
from interlock.drive.tools.workspace import Workspace
from interlock.kernel.budgets.drive import DRIVE_TOOL_MS
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen

Transport = Literal["function", "http", "mcp"]


@frozen
class ToolHints:
    """What a tool says of itself. Without a hint, the worst is assumed, as the protocol does."""

    is_read_only: bool = False
    is_destructive: bool = True
    is_idempotent: bool = False

    @property
    def may_repeat(self) -> bool:
        """Whether a second call does no more than the first."""
        return self.is_read_only or self.is_idempotent

    def permission(self) -> Permission:
        """Return the permission of a tool for which the profile states none."""
        return "ask" if self.is_destructive and not self.is_read_only else "allow"


READS = ToolHints(is_read_only=True, is_destructive=False, is_idempotent=True)


@frozen
class ToolContext:
    """What a call may use: the state of its turn, the workspace, and the trace to pass on, as a W3C header."""

    state: StateOperations
    workspace: Workspace
    trace: str | None = None


Invoke: TypeAlias = Callable[[Mapping[str, Json], ToolContext], Awaitable[object]]


@frozen
class ResolvedTool:
    """A tool of this turn (TOOL-1). `source` says where it comes from; `fallback` is its output while it is failing."""

    name: str
    description: str
    input_schema: Mapping[str, Json]
    source: Mapping[str, Json]
    transport: Transport
    invoke: Invoke
    timeout_ms: int = DRIVE_TOOL_MS
    retry: Retry | None = None
    is_parallel: bool = False
    permission: Permission = "allow"
    hints: ToolHints = field(default_factory=ToolHints)
    fallback: Json = None

    def spec(self) -> ToolSpec:
        """Return what a model sees."""
        return ToolSpec(name=self.name, description=self.description, input_schema=self.input_schema)
