"""Verify: make every recorded decision again from what the log says came in, and compare (seed 3, D33).

Nothing is written. Words are not compared, for a later release may say things better; facts are: what was decided, what
was read for it, what it set, and where the run stood afterwards.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from interlock.decide.catalogue import catalogue_digest
from interlock.kernel.canonical import Json
from interlock.kernel.ids import Digest, NodeId, SessionId
from interlock.kernel.text import one_line
from interlock.record.append_plan import AppendPlan
from interlock.record.base import Record
from interlock.record.events import Event
from interlock.service.plans import Plans
from interlock.service.rederive import Recorded, derived_plan, recorded_plan
from interlock.service.salvage import health_words
from interlock.store.ports import ContentDamagedError, Health, SessionReader, SessionUnhealthyError
from interlock.views.session import evolve, new_session

Code = Literal[
    "hash_mismatch",
    "unsupported_version",
    "provenance_mismatch",
    "decision_mismatch",
    "effect_mismatch",
    "snapshot_mismatch",
    "missing_capture",
    "chain_broken",
]
"""Why a record does not verify; a closed set."""

_WORDS = frozenset({"message", "suggestedFix", "summary"})
"""Members that tell people what other members say: a later release may word them better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """One thing that the log says and that does not follow: the node, what stands there, what follows, what to do."""

    code: Code
    session: SessionId
    node: NodeId | None
    where: str
    found: str
    fix: str

    def to_json(self) -> dict[str, Json]:
        """Return the mismatch as commands print it."""
        return {
            "code": self.code,
            "session": self.session,
            "node": self.node,
            "where": self.where,
            "found": self.found,
            "fix": self.fix,
        }


def verify_session(
    reader: SessionReader, plans: Plans, session_id: SessionId, *, is_forced: bool = False
) -> tuple[Mismatch, ...]:
    """Return everything of a session that does not verify, in the order of its log; empty where all of it does.

    Where another build decided with other operators, that is told; `is_forced` tells the decision that differs instead.

    Raises:
        StoreFailureError: The disk failed.
    """
    check = _Check(reader=reader, plans=plans, session=session_id, is_forced=is_forced)
    try:
        return tuple(check.run(reader.history(session_id)))
    except SessionUnhealthyError as error:
        return (check.unhealthy(error),)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Check:
    reader: SessionReader
    plans: Plans
    session: SessionId
    is_forced: bool

    def run(self, history: Sequence[tuple[Event, ...]]) -> Iterator[Mismatch]:
        before = new_session(self.session)
        for events in history:
            after = before
            for event in events:
                after = evolve(after, event)
            recorded = recorded_plan(before, after, events)
            if recorded is not None:
                yield from self._plan(recorded)
            before = after

    def mismatch(self, code: Code, node: NodeId | None, where: str, found: str, fix: str) -> Mismatch:
        return Mismatch(code=code, session=self.session, node=node, where=where, found=found, fix=fix)

    def unhealthy(self, error: SessionUnhealthyError) -> Mismatch:
        salvaged = self.reader.salvage(self.session)
        found = health_words(salvaged) if salvaged is not None else f"{error.health.value}: {error.found}"
        if error.health is Health.UNKNOWN_VERSION:
            return self.mismatch("unsupported_version", None, error.where, found, _NEWER)
        return self.mismatch("hash_mismatch", None, error.where, found, self._restore())

    def _restore(self) -> str:
        return f"{_RESTORE} `interlock session repair {self.session}`."

    def _plan(self, recorded: Recorded) -> Iterator[Mismatch]:
        node = recorded.node
        try:
            derived = derived_plan(self.reader, self.plans, recorded)
            if isinstance(derived, str):
                yield self.mismatch("decision_mismatch", node, "outcome", f"recorded as made; but {derived}", _ASK)
            elif derived is not None:
                yield from self._compared(recorded, derived)
        except ContentDamagedError as error:
            is_capture = error.digest in recorded.after.nodes[node].captures
            code: Code = "missing_capture" if is_capture and "missing" in error.found else "hash_mismatch"
            yield self.mismatch(code, node, f"{error.what} {error.digest}", error.found, self._restore())

    def _compared(self, recorded: Recorded, derived: AppendPlan) -> Iterator[Mismatch]:
        # What was sent again with a retry, and notes that say nothing, the log does not tell apart.
        is_unsure = recorded.has_earlier_evidence or not recorded.has_notes
        left_out = _WORDS | ({"requestDigest"} if is_unsure else set[str]())
        here = [_Fact.of(event.data, left_out) for event in recorded.events]
        there = [_Fact.of(draft.data, left_out) for draft in derived.drafts if isinstance(draft.data, Record)]
        here = [fact for fact in here if fact.kind != "EdgeCreated"]
        for one, other in zip_longest(here, there):
            if one != other:
                yield self._difference(recorded.node, one, other)
                return
        for digest, data in derived.artifacts:
            if self.reader.artifact(digest) != data:
                yield self.mismatch(
                    "hash_mismatch", recorded.node, f"artifact {digest}", "other bytes", self._restore()
                )

    def _difference(self, node: NodeId, here: "_Fact | None", there: "_Fact | None") -> Mismatch:
        kinds = {fact.kind for fact in (here, there) if fact is not None}
        code: Code = "effect_mismatch"
        if "NodeCreated" in kinds:
            code = "snapshot_mismatch"
        elif here is not None and not self.is_forced and self._is_of_other_operators(here):
            code = "provenance_mismatch"
        elif kinds & {"AdvanceRecorded", "DecisionTraceAppended", "RunStarted"}:
            code = "decision_mismatch"
        found = f"recorded: {here or 'nothing'}; what came in leads to: {there or 'nothing'}"
        return self.mismatch(code, node, " / ".join(sorted(kinds)), found, _ASK)

    def _is_of_other_operators(self, trace: "_Fact") -> bool:
        """Say whether a captured record names other operators than this build has."""
        reference = trace.value.get("captureRef")
        if not isinstance(reference, str):
            return False
        captured = json.loads(self.reader.artifact(Digest(reference)))
        return captured.get("catalogue") != catalogue_digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fact:
    """What one event says, the words aside that tell it to people."""

    kind: str
    value: dict[str, Json]

    @classmethod
    def of(cls, record: Record, left_out: set[str] | frozenset[str]) -> "_Fact":
        value = _without(record.to_json(), left_out)
        assert isinstance(value, dict), "a record is an object"
        return cls(kind=type(record).__name__, value=value)

    def __str__(self) -> str:
        return one_line(f"{self.kind} {json.dumps(self.value, ensure_ascii=False, sort_keys=True)}", _SHOWN_BYTES_MAX)


def _without(value: Json, left_out: set[str] | frozenset[str]) -> Json:
    if isinstance(value, dict):
        return {key: _without(member, left_out) for key, member in value.items() if key not in left_out}
    return [_without(item, left_out) for item in value] if isinstance(value, list) else value


_ASK = "Somebody changed the record, or another build of Interlock wrote it: compare with a backup."
_RESTORE = "Restore the session from a backup, or copy what is sound of it into a new one:"
_NEWER = "Nothing of it is damaged. Use the Interlock that wrote it."
_SHOWN_BYTES_MAX = 400
