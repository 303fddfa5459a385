"""Verify a session: make every recorded decision again from its recorded input, and compare (VERIFY-1, VERIFY-2).

This writes nothing. Facts are compared: the input, the decisions, what they read and set, and the resulting position.
A text about them that differs is no mismatch, because a later release may use other words. What a start and an event
were given has no second record: it is compared where a decision read it.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from typing import Literal, cast

from interlock.decide.catalogue import catalogue_digest
from interlock.engine.published import Published
from interlock.engine.walk.capture import CAPTURE_VERSIONS
from interlock.kernel.canonical import Json, canonical_bytes
from interlock.kernel.ids import Digest, NodeId, SessionId
from interlock.record.append_plan import AppendPlan
from interlock.record.content import REDACTED, collect_references
from interlock.record.errors import UnknownVersionError
from interlock.record.events import (
    AdvanceRecordedEvent,
    DecisionTraceAppendedEvent,
    Event,
    EventReceivedEvent,
    NodeScope,
    ObservationRecordedEvent,
    RunStartedEvent,
    WorkRecordedEvent,
)
from interlock.record.payloads import DecisionTraceAppended
from interlock.record.snapshot import parse_snapshot
from interlock.service.audit.compare import compared_captures, compared_events, compared_words, is_identical
from interlock.service.audit.replay import (
    derived_end,
    derived_plan,
    is_as_sent,
    was_declined,
)
from interlock.service.run.advice import ACCESS, NEWER, advise_by_health, advise_undecided
from interlock.service.run.evidence.sent import stored_object
from interlock.service.run.plans import Plans
from interlock.service.transfer.salvage import advise_damaged, health_words
from interlock.store.ports.errors import ContentDamagedError, ContentUnreadableError, Health, SessionUnhealthyError
from interlock.store.ports.reader import Appended, SessionReader, UnfinishedAppend
from interlock.views.appends import BrokenChainError, RecordedPlan, recorded_plan
from interlock.views.outside import false_signatures
from interlock.views.session import BrokenHistoryError, Session, new_session

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
"""The reasons why a record does not verify: a closed set."""


class Mismatch(Published):
    """A recorded fact that the replay does not confirm: the node, the place, both values, and what to do."""

    code: Code
    session: SessionId
    node: NodeId | None
    where: str
    found: str
    fix: str


class OtherWords(Published):
    """A text of the record that this build would write otherwise, about facts that are the same: the first of a node.

    It is no mismatch: another build may have used other words. If this build wrote the record, somebody changed it.
    """

    node: NodeId
    where: str
    found: str


@dataclass(frozen=True, kw_only=True)
class Verified:
    """What differs in a session, in log order, and how much was examined: None if the log cannot be read.

    `redacted` is a sentence about a redacted copy, None for any other session.
    """

    mismatches: tuple[Mismatch, ...]
    words: tuple[OtherWords, ...] = ()
    examined: "Examined | None" = None
    redacted: str | None = None


class Examined(Published):
    """How much of a session was examined. Decisions that cannot be compared are not counted."""

    appends: int
    events: int
    decisions: int
    contents: int
    signatures: int


def verify_session(
    reader: SessionReader, plans: Plans, session_id: SessionId, *, is_forced: bool = False
) -> tuple[Mismatch, ...]:
    """Return the mismatches that `verify_with_words` finds.

    Raises:
        StoreFailureError: The disk failed.
    """
    return verify_with_words(reader, plans, session_id, is_forced=is_forced).mismatches


def verify_with_words(
    reader: SessionReader, plans: Plans, session_id: SessionId, *, is_forced: bool = False
) -> Verified:
    """Return the mismatches of a session, at most one for each node, none if all verifies; and texts that differ.

    A decision of a build with other operators is reported but not compared; `is_forced` compares it.

    Raises:
        StoreFailureError: The disk failed.
    """
    check = _Check(reader=reader, plans=plans, session=session_id, is_forced=is_forced)
    try:
        appends = reader.appends(session_id)
        found, skipped = tuple(check.run(appends)), not_compared(reader, session_id, appends)
    except BrokenHistoryError as error:
        return Verified(mismatches=(check.mismatch("chain_broken", None, "events", str(error), _ASK),))
    except SessionUnhealthyError as error:
        return Verified(mismatches=(check.unhealthy(error),))
    return Verified(
        mismatches=found,
        words=tuple(check.words),
        examined=_examine(appends, skipped),
        redacted=_describe_redaction(appends, skipped),
    )


def _examine(appends: Sequence[Appended], skipped: Collection[int]) -> Examined:
    events = [event for append in appends for event in append.events]
    compared = (event for number, append in enumerate(appends) if number not in skipped for event in append.events)
    found = collect_references(events)
    return Examined(
        appends=len(appends),
        events=len(events),
        decisions=sum(isinstance(one, AdvanceRecordedEvent) for one in compared),
        contents=len(found.snapshots) + len(found.workflows) + len(found.artifacts),
        signatures=sum(isinstance(one, EventReceivedEvent) and one.data.signed is not None for one in events),
    )


def unfinished_note(reader: SessionReader, session: SessionId) -> str | None:
    """Return a sentence about an append of a session that does not count, or not yet; or None. It is no mismatch.

    Raises:
        StoreFailureError: The disk failed.
    """
    try:
        found = reader.unfinished(session)
    except SessionUnhealthyError:
        return None
    if found is UnfinishedAppend.UNDECIDED:
        return f"The last append is not verified: the settled mark cannot be read. {advise_undecided(session)}"
    return _UNFINISHED[found] if found is not None else None


def _describe_redaction(appends: Sequence[Appended], skipped: Collection[int]) -> str | None:
    origin = appends[-1].after.redacted_from if appends else None
    if origin is None:
        return None
    return (
        f"This is a redacted copy of {origin}. Appends that contain `{REDACTED}` are not derived again,"
        f" and those that read it may differ: {len(skipped)} in all. Each signature is checked."
    )


def not_compared(reader: SessionReader, session: SessionId, appends: Sequence[Appended]) -> frozenset[int]:
    """Return the numbers of the appends of a redacted copy whose decisions are not compared; else none.

    Raises:
        StoreFailureError: The disk failed.
    """
    found, before = set[int](), new_session(session)
    for number, append in enumerate(appends[: _copied_appends(appends)]):
        if _is_changed(reader, append.events) or _may_read_changed(before, append):
            found.add(number)
        before = append.after
    return frozenset(found)


def _is_changed(reader: SessionReader, events: Sequence[Event]) -> bool:
    """Say whether a redaction changed an append: then it cannot be derived again, because the value is gone."""
    digests = collect_references(events).artifacts
    with suppress(ContentDamagedError):
        held = (event.to_bytes() for event in events)
        return any(REDACTED.encode() in one for one in chain(held, map(reader.artifact, digests)))
    return False


def _may_read_changed(before: Session, append: Appended) -> bool:
    try:
        recorded = recorded_plan(before, append.after, append.events)
    except BrokenChainError:
        return False
    return recorded is not None and _reads_changed(recorded)


def _reads_changed(recorded: RecordedPlan) -> bool:
    """Say whether a redaction changed what a decision may have read before it: context, or events of its run."""
    if isinstance(recorded.key, RunStartedEvent):
        return False
    before = recorded.before
    run = before.runs[before.nodes[recorded.key.scope.node_id].run]
    contexts = (before.context(one) for one in (run.root, recorded.key.scope.node_id) if one is not None)
    events = (one.data.to_bytes() for one in before.outside.events.values() if one.run == run.run)
    return any(REDACTED.encode() in one for one in chain((canonical_bytes(dict(one)) for one in contexts), events))


def _copied_appends(appends: Sequence[Appended]) -> int:
    """Return how many appends were copied by the last redaction; 0 if the session is no redacted copy."""
    copied = 0
    for number, append in enumerate(appends):
        for event in append.events:
            if isinstance(event, ObservationRecordedEvent) and event.is_redaction:
                copied = number
    return copied


@dataclass(frozen=True, kw_only=True)
class _Check:
    reader: SessionReader
    plans: Plans
    session: SessionId
    is_forced: bool
    words: list[OtherWords] = field(default_factory=list[OtherWords])

    def run(self, appends: Sequence[Appended]) -> Iterator[Mismatch]:
        before, copied = new_session(self.session), _copied_appends(appends)
        for number, append in enumerate(appends):
            events = append.events
            is_changed = number < copied and _is_changed(self.reader, events)
            yield from self._checked_signatures(events)
            try:
                recorded = recorded_plan(before, append.after, events)
                if recorded is not None and not is_changed:
                    found = partial(self._find_mismatch, recorded)
                    mismatches = self._checked(recorded.node, _recorded_capture(recorded), found)
                    reads_changed, known = number < copied and _reads_changed(recorded), len(self.words)
                    yield from (one for one in mismatches if not (reads_changed and one.code in _DECIDED))
                    if reads_changed:
                        del self.words[known:]
                yield from self._checked_observations(before, events)
                ends = (one for one in events if isinstance(one, WorkRecordedEvent) and one.is_end)
                for end in ends if not is_changed else ():
                    yield from self._checked(None, None, partial(self._find_end_mismatch, before, end))
            except BrokenChainError as error:
                yield self.mismatch("chain_broken", error.node, f"event {before.next_index} and on", str(error), _ASK)
            before = append.after

    def mismatch(self, code: Code, node: NodeId | None, where: str, found: str, fix: str) -> Mismatch:
        return Mismatch(code=code, session=self.session, node=node, where=where, found=found, fix=fix)

    def unhealthy(self, error: SessionUnhealthyError) -> Mismatch:
        if error.health is Health.UNREADABLE:
            found = f"it cannot be read ({error.found}), so nothing is verified"
            fix = advise_by_health(self.session, error.health)
            return self.mismatch("hash_mismatch", None, error.where, found, fix)
        salvaged = self.reader.salvage(self.session)
        found = health_words(salvaged) if salvaged is not None else f"{error.health.value}: {error.found}"
        if error.health is Health.UNKNOWN_VERSION:
            return self.mismatch("unsupported_version", None, error.where, found, NEWER)
        code: Code = "chain_broken" if error.breaks_history else "hash_mismatch"
        return self.mismatch(code, None, error.where, found, self._restore)

    @cached_property
    def _restore(self) -> str:
        """What to do about bytes that do not verify; finding it reads the whole session."""
        return advise_damaged(self.reader, self.session)

    def _checked(
        self, node: NodeId | None, capture: Digest | None, find: Callable[[], Mismatch | None]
    ) -> Iterator[Mismatch]:
        """Yield what a check of a plan finds; content that is missing or damaged is a finding of its own."""
        try:
            found = find()
        except UnknownVersionError as error:
            found = self.mismatch("unsupported_version", node, error.what, error.found, NEWER)
        except ContentDamagedError as error:
            is_capture = error.digest == capture
            code: Code = "missing_capture" if is_capture and error.found == "missing" else "hash_mismatch"
            what = "capture" if is_capture else error.what
            fix = ACCESS if isinstance(error, ContentUnreadableError) else self._restore
            found = self.mismatch(code, node, f"{what} {error.digest}", error.found, fix)
        if found is not None:
            yield found

    def _checked_signatures(self, events: Sequence[Event]) -> Iterator[Mismatch]:
        """Yield each event whose signature is not one over what the log holds of it (WORLD-10)."""
        for event, found in false_signatures(events):
            yield self.mismatch("hash_mismatch", None, f"{event.kind} at {event.event_index}", found, _ASK)

    def _checked_observations(self, before: Session, events: Sequence[Event]) -> Iterator[Mismatch]:
        """Yield each observation of an attempt that does not follow: it repeats the last value, or its node was there.

        What git said cannot be asked again; that it was a change, and belongs to this attempt, can (OBS-6).
        """
        for event in events:
            if not isinstance(event, ObservationRecordedEvent) or not isinstance(event.scope, NodeScope):
                continue
            where, run, node = f"{event.kind} at {event.event_index}", event.scope.run_id, event.scope.node_id
            is_known = event.data.value.value == before.observed(run, event.data.key)
            if node in before.nodes:
                yield self.mismatch("effect_mismatch", node, where, "it is not at the node of its append", _ASK)
            elif is_known and REDACTED not in event.data.value.value:
                yield self.mismatch("effect_mismatch", node, where, "it repeats the last observation", _ASK)

    def _find_end_mismatch(self, before: Session, end: WorkRecordedEvent) -> Mismatch | None:
        """Return why a recorded end of a run does not follow again, or None if it does (END-8)."""
        tip, derived = before.runs[end.scope.run_id].tip, derived_end(self.reader, self.plans, before, end)
        if isinstance(derived, str):
            found = f"recorded: the end of a run; replayed: none, because: {derived}"
            return self.mismatch("decision_mismatch", tip, end.kind, found, _ASK)
        difference = compared_events((end,), derived)
        if difference is None:
            return None
        return self.mismatch(difference.code, tip, difference.where, difference.found, _ASK)

    def _find_mismatch(self, recorded: RecordedPlan) -> Mismatch | None:
        """Return the first mismatch of a plan, or None if it verifies."""
        node, reference = recorded.node, _recorded_capture(recorded)
        capture = stored_object(self.reader, reference) if reference is not None else None
        if capture is not None and capture.get("v") not in CAPTURE_VERSIONS:
            found = f"version {capture.get('v')}; this build knows {CAPTURE_VERSIONS}"
            return self.mismatch("unsupported_version", node, f"capture {reference}", found, NEWER)
        if capture is not None and not self.is_forced and capture.get("catalogue") != catalogue_digest():
            found = f"decided with the operators {capture.get('catalogue')}; this build has {catalogue_digest()}"
            return self.mismatch("provenance_mismatch", node, f"capture {reference}", found, _FORCE)
        derived = derived_plan(self.reader, self.plans, recorded)
        if isinstance(derived, AppendPlan) and is_identical(recorded.events, derived):
            # The digests of the request and of the captured record are the same, too.
            return self._check_snapshots(derived)
        if not is_as_sent(self.reader, self.plans, recorded):
            found = "the recorded input does not match the digest of the request"
            return self.mismatch("hash_mismatch", node, "advance_recorded.data.requestDigest", found, _ASK)
        if isinstance(derived, str):
            found = f"recorded: a decision; replayed: none, because: {derived}"
            return self.mismatch("decision_mismatch", node, recorded.key.kind, found, _ASK)
        return self._compare(recorded, derived, capture)

    def _compare(
        self, recorded: RecordedPlan, derived: AppendPlan, capture: Mapping[str, Json] | None
    ) -> Mismatch | None:
        made = _derived_capture(derived)
        if capture is None and made:
            found = "recorded: no capture; replayed: decisions that have one"
            return self.mismatch("missing_capture", recorded.node, "decision_trace_appended", found, _ASK)
        difference = compared_captures(capture or {}, made) or compared_events(recorded.events, derived)
        if difference is not None:
            return self.mismatch(difference.code, recorded.node, difference.where, difference.found, _ASK)
        self._check_snapshots(derived)
        # The log has no record of what a person who declined added, which the text of the refusal repeats.
        is_whole = not isinstance(recorded.key, AdvanceRecordedEvent) or not was_declined(recorded.key)
        words = compared_words(recorded.events, derived) if is_whole else None
        if words is not None:
            self.words.append(OtherWords(node=recorded.node, where=words.where, found=words.found))
        return None

    def _check_snapshots(self, derived: AppendPlan) -> None:
        """Check that what a replayed plan pins is stored; the next plan is replayed from it.

        Raises:
            ContentDamagedError: A snapshot is missing or damaged.
        """
        for ref, data in derived.snapshots:
            self.reader.check_snapshot(ref)
            self.plans.keep(ref, parse_snapshot(data))


def _recorded_capture(recorded: RecordedPlan) -> Digest | None:
    """Return the digest of the captured record that a plan refers to, if there is one."""
    traces = [event.data for event in recorded.events if isinstance(event, DecisionTraceAppendedEvent)]
    return next((trace.capture_ref for trace in traces if trace.capture_ref is not None), None)


def _derived_capture(derived: AppendPlan) -> dict[str, Json]:
    """Return the captured record of a replayed plan; empty if it has no decisions."""
    made = dict(derived.artifacts)
    for draft in derived.drafts:
        if isinstance(draft.data, DecisionTraceAppended) and draft.data.capture_ref is not None:
            return cast("dict[str, Json]", json.loads(made[draft.data.capture_ref]))
    return {}


_DECIDED: frozenset[Code] = frozenset({"decision_mismatch", "effect_mismatch", "snapshot_mismatch"})
"""The mismatches of a decision that is made from other input."""
_UNFINISHED = {
    UnfinishedAppend.SEGMENT: "An append was interrupted before it took effect. No caller got an answer from it."
    " `interlock gc` deletes its files.",
    UnfinishedAppend.GROUP: "An append was interrupted before the disk confirmed it. No caller got an answer from it."
    " It takes effect when the next call writes to the session.",
}
_ASK = "The record was changed, or another build of Interlock wrote it. Compare it with a backup."
_FORCE = "Verify it with the build that wrote it, or compare it anyway with `--force`."
