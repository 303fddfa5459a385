"""A violation is a blocker if the run stops for it, and a gap if it does not (MODE-1).

The table maps every reason to its category and its blocker code. The autonomy of a run decides whether it stops, never
what a violation means.
"""

from collections.abc import Iterable, Mapping

from interlock.kernel.budgets import (
    BLOCKER_FIX_BYTES_MAX,
    BLOCKER_MESSAGE_BYTES_MAX,
    BLOCKERS_MAX,
    FIRST_BLOCKER_BYTES_MAX,
    GAP_SUMMARY_BYTES_MAX,
    GAPS_MAX,
)
from interlock.kernel.canonical import JsonScalar
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import AttemptId, GapId, RunId, derived_id
from interlock.kernel.text import truncated
from interlock.record.outcome import Blocker, BlockerCode, BlockerPointer
from interlock.record.payloads import GapCategory, GapDetail, GapReason, GapRecorded, GapSeverity, Unresolved


@frozen
class ReasonNames:
    """The names of a reason in gaps and in blockers."""

    category: GapCategory
    code: BlockerCode


_USER_ONLY = ReasonNames(category="user_only_dependency", code="USER_ONLY_DEPENDENCY")

REASONS: Mapping[GapDetail, ReasonNames] = {
    "needs_user_secret_or_token": _USER_ONLY,
    "needs_user_account_access": _USER_ONLY,
    "needs_user_artifact": _USER_ONLY,
    "needs_user_choice": _USER_ONLY,
    "needs_user_approval": _USER_ONLY,
    "needs_user_environment_action": _USER_ONLY,
    "missing_required_output": ReasonNames(category="contract_violation", code="MISSING_REQUIRED_OUTPUT"),
    "invalid_required_output": ReasonNames(category="contract_violation", code="INVALID_REQUIRED_OUTPUT"),
    "required_capability_unknown": ReasonNames(category="capability_missing", code="REQUIRED_CAPABILITY_UNKNOWN"),
    "required_capability_unavailable": ReasonNames(
        category="capability_missing", code="REQUIRED_CAPABILITY_UNAVAILABLE"
    ),
    "invariant_violation": ReasonNames(category="unexpected", code="INVARIANT_VIOLATION"),
    "storage_corruption_detected": ReasonNames(category="unexpected", code="STORAGE_CORRUPTION_DETECTED"),
}
"""Every reason there is. `storage_corruption_detected` is answered and logged; nothing is appended to a damaged log."""


_OF_THE_VALUE = frozenset({"found", "wanted"})
"""Details that describe a value, and not the place where it belongs."""


@frozen
class Violation:
    """Something that is missing or wrong: the reason, the place, what was found, what to send instead."""

    detail: GapDetail
    pointer: BlockerPointer
    message: str
    fix: str
    details: Mapping[str, JsonScalar] | None = None

    def blocker(self) -> Blocker:
        """Return the violation as a blocker, within the budgets of one."""
        return Blocker(
            code=REASONS[self.detail].code,
            pointer=self.pointer,
            message=truncated(self.message, BLOCKER_MESSAGE_BYTES_MAX),
            suggested_fix=truncated(self.fix, BLOCKER_FIX_BYTES_MAX),
            details=None if self.details is None else dict(self.details),
        )

    def gap_id(self, origin: AttemptId | RunId) -> GapId:
        """Return the id of the gap that an attempt or a start leaves. Equal violations have equal ids (GAP-1).

        A missing key is one gap, whatever was found there and whatever each part of the plan wants there.
        """
        details = {name: value for name, value in (self.details or {}).items() if name not in _OF_THE_VALUE}
        place = {**self.pointer.to_json(), **details}
        parts = [f"{name}={place[name]}" for name in sorted(place)]
        return GapId(derived_id("gap", origin, self.detail, *parts))

    def gap(self, origin: AttemptId | RunId, severity: GapSeverity = "critical") -> GapRecorded:
        """Return the violation as a gap, for a run that does not stop for it."""
        return GapRecorded(
            gap_id=self.gap_id(origin),
            severity=severity,
            reason=GapReason(category=REASONS[self.detail].category, detail=self.detail),
            summary=truncated(self.message, GAP_SUMMARY_BYTES_MAX),
            resolution=Unresolved(),
            details=None if self.details is None else dict(self.details),
        )


def blockers_of(findings: Iterable[Violation]) -> tuple[Blocker, ...]:
    """Return the blockers of violations in the locked order: at most ten, of which the tenth counts the rest."""
    blockers = sorted((finding.blocker() for finding in findings), key=Blocker.sort_key)
    if len(blockers) <= BLOCKERS_MAX:
        return tuple(blockers)
    shown, rest = blockers[: BLOCKERS_MAX - 1], blockers[BLOCKERS_MAX - 1 :]
    first = truncated(rest[0].message, FIRST_BLOCKER_BYTES_MAX)
    counted = Blocker(
        code=rest[0].code,
        pointer=rest[0].pointer,
        message=f"{len(rest)} more things are missing or wrong; the first: {first}",
        suggested_fix="Correct the items above first; the rest is reported again.",
    )
    return (*shown, counted)


def gaps_of(findings: Iterable[Violation], origin: AttemptId | RunId) -> tuple[GapRecorded, ...]:
    """Return the gaps of violations, each once, ordered by id. If there are too many, the last one counts the rest.

    The summary of a gap has the messages of all its violations, as far as it has room: each decision that lacks a key.
    """
    alike: dict[GapId, list[Violation]] = {}
    for finding in findings:
        alike.setdefault(finding.gap_id(origin), []).append(finding)
    gaps = {gap_id: _joined(found).gap(origin) for gap_id, found in alike.items()}
    ordered = [gaps[gap_id] for gap_id in sorted(gaps)]
    if len(ordered) <= GAPS_MAX:
        return tuple(ordered)
    rest = len(ordered) - GAPS_MAX + 1
    last = ordered[GAPS_MAX - 1]
    words = truncated(f"{rest} gaps like this one: {last.summary}", GAP_SUMMARY_BYTES_MAX)
    return (*ordered[: GAPS_MAX - 1], last.changed(summary=words))


def _joined(alike: list[Violation]) -> Violation:
    return replace(alike[-1], message=" ".join(dict.fromkeys(one.message for one in alike)))
