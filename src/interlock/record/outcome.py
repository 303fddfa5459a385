"""The stored outcome of an attempt: the next node, or the blockers that refused it (BLK-6, MODE-1)."""

from typing import Annotated, Literal, TypeAlias

from interlock.kernel.budgets import (
    BLOCKER_FIX_BYTES_MAX,
    BLOCKER_MESSAGE_BYTES_MAX,
    BLOCKERS_MAX,
    CONTEXT_KEY_BYTES_MAX,
)
from interlock.kernel.canonical import JsonScalar
from interlock.kernel.shape import limits
from interlock.record.base import DelimiterSafe, NodeIdField, OfKind, Record

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


class ContextKeyPointer(OfKind, tag="context_key"):
    """A context key that a decision needs. Any string is allowed: it is never part of a step instance key (BLK-7)."""

    key: Annotated[str, *limits(min_length=1, max_length=CONTEXT_KEY_BYTES_MAX)]


class ContextBudgetPointer(OfKind, tag="context_budget"):
    """The whole context: it is too large, or not JSON."""


class OutputContractPointer(OfKind, tag="output_contract"):
    """The evidence contract that was not met."""

    contract_ref: str


class CapabilityPointer(OfKind, tag="capability"):
    """A capability that the workflow requires."""

    capability: Capability


class WorkflowStepPointer(OfKind, tag="workflow_step"):
    """The step itself."""

    step_id: DelimiterSafe


BlockerPointer: TypeAlias = (
    ContextKeyPointer | ContextBudgetPointer | OutputContractPointer | CapabilityPointer | WorkflowStepPointer
)


PROOF_DETAIL = "proof"
"""The detail of a blocker that only a receipt resolves; its value is the number of the proof."""


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

    blockers: Annotated[tuple[Blocker, ...], *limits(min_length=1, max_length=BLOCKERS_MAX)]


class Blocked(OfKind, tag="blocked"):
    """The attempt was refused."""

    blockers: BlockerReport


class AdvancedTo(OfKind, tag="advanced"):
    """The attempt created a node."""

    to_node_id: NodeIdField


AdvanceOutcome: TypeAlias = Blocked | AdvancedTo


def build_report(blockers: list[Blocker]) -> BlockerReport:
    """Build a report with its blockers in order. The caller has cut each blocker to its limits."""
    assert 0 < len(blockers) <= BLOCKERS_MAX, "the caller counts the blockers that are too many"
    for blocker in blockers:
        assert len(blocker.message.encode()) <= BLOCKER_MESSAGE_BYTES_MAX, "the caller cuts a blocker's message"
        assert len((blocker.suggested_fix or "").encode()) <= BLOCKER_FIX_BYTES_MAX, "the caller cuts a blocker's fix"
    return BlockerReport(blockers=tuple(sorted(blockers, key=Blocker.sort_key)))
