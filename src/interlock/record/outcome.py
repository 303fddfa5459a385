"""The stored outcome of an attempt: the next node, or the blockers that refused it (BLK-6, MODE-1)."""

from typing import Annotated, Literal

from pydantic import Field

from interlock.kernel.budgets import (
    BLOCKER_FIX_BYTES_MAX,
    BLOCKER_MESSAGE_BYTES_MAX,
    BLOCKERS_MAX,
    CONTEXT_KEY_BYTES_MAX,
)
from interlock.kernel.canonical import JsonScalar
from interlock.record.base import DelimiterSafe, NodeIdField, Record

Capability = Literal["delegation", "web_browsing"]

BlockerCode = Literal[
    "USER_ONLY_DEPENDENCY",
    "MISSING_REQUIRED_OUTPUT",
    "INVALID_REQUIRED_OUTPUT",
    "REQUIRED_CAPABILITY_UNKNOWN",
    "REQUIRED_CAPABILITY_UNAVAILABLE",
    "INVARIANT_VIOLATION",
    "STORAGE_CORRUPTION_DETECTED",
]


class ContextKeyPointer(Record):
    """A context key that a decision needs. Any string is allowed: it is never part of a step instance key (BLK-7)."""

    kind: Literal["context_key"]
    key: Annotated[str, Field(min_length=1, max_length=CONTEXT_KEY_BYTES_MAX)]


class ContextBudgetPointer(Record):
    """The whole context: it is too large, or not JSON."""

    kind: Literal["context_budget"]


class OutputContractPointer(Record):
    """The evidence contract that was not met."""

    kind: Literal["output_contract"]
    contract_ref: str


class CapabilityPointer(Record):
    """A capability that the workflow requires."""

    kind: Literal["capability"]
    capability: Capability


class WorkflowStepPointer(Record):
    """The step itself."""

    kind: Literal["workflow_step"]
    step_id: DelimiterSafe


BlockerPointer = Annotated[
    ContextKeyPointer | ContextBudgetPointer | OutputContractPointer | CapabilityPointer | WorkflowStepPointer,
    Field(discriminator="kind"),
]


class Blocker(Record):
    """One reason why a step cannot advance: what was found, and what to send instead."""

    code: BlockerCode
    pointer: BlockerPointer
    message: str
    suggested_fix: str | None = None
    details: dict[str, JsonScalar] | None = None

    def sort_key(self) -> tuple[str, ...]:
        """Return the key that orders blockers in a report: code, pointer kind, pointer fields (BLK-6)."""
        fields = self.pointer.to_json()
        return (
            self.code,
            self.pointer.kind,
            *(str(fields[name]) for name in sorted(fields) if name != "kind"),
        )


class BlockerReport(Record):
    """Why an attempt was refused: one or more blockers, sorted, each within its limits."""

    blockers: Annotated[tuple[Blocker, ...], Field(min_length=1, max_length=BLOCKERS_MAX, strict=False)]


class Blocked(Record):
    """The attempt was refused."""

    kind: Literal["blocked"]
    blockers: BlockerReport


class AdvancedTo(Record):
    """The attempt created a node."""

    kind: Literal["advanced"]
    to_node_id: NodeIdField


AdvanceOutcome = Annotated[Blocked | AdvancedTo, Field(discriminator="kind")]


def build_report(blockers: list[Blocker]) -> BlockerReport:
    """Build a report with its blockers in order. The caller has cut each blocker to its limits."""
    for blocker in blockers:
        assert len(blocker.message.encode()) <= BLOCKER_MESSAGE_BYTES_MAX, "the caller cuts a blocker's message"
        assert len((blocker.suggested_fix or "").encode()) <= BLOCKER_FIX_BYTES_MAX, "the caller cuts a blocker's fix"
    return BlockerReport(blockers=tuple(sorted(blockers, key=Blocker.sort_key)))
