"""The report of one step: its task, the evidence of its attempts, and what the run recorded about it (EVD-1)."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from interlock.engine.answer.prompt import prompt_of
from interlock.engine.gates import Answered
from interlock.engine.published import Published
from interlock.engine.request import TURN_CONTENT_TYPE
from interlock.engine.template import with_loop_variables
from interlock.kernel.canonical import Json, canonical_bytes
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import Digest, EventId, NodeId, RunId
from interlock.record.content import WHOLE_NOTES_CONTENT_TYPE
from interlock.record.events import Actor, DivergenceRecordedEvent, Event, NodeCreatedEvent
from interlock.record.outcome import Blocker
from interlock.record.payloads import (
    ArtifactPayload,
    CapabilityObserved,
    DivergenceRecorded,
    GapRecorded,
    WorkRecorded,
)
from interlock.record.snapshot import Running
from interlock.record.world import TREE
from interlock.service.clock import moment_of
from interlock.service.run.context import RunContext, StepLabel
from interlock.service.run.evidence.sent import answered_at, whole_notes
from interlock.service.run.history import History
from interlock.store.ports.errors import ContentDamagedError
from interlock.store.ports.reader import SessionReader
from interlock.views.node_position import PathStep, advance_to, refusal_of
from interlock.views.outside import Intent, Received, SigningKeys, has_unknown_key
from interlock.views.recap import notes_of_attempt, notes_of_checkpoint
from interlock.views.session import Node, Session

if TYPE_CHECKING:
    from interlock.views.picture.time_bar import TimeBar

_USER_ONLY = "USER_ONLY_DEPENDENCY"

_NOT_EVIDENCE = frozenset({TURN_CONTENT_TYPE, WHOLE_NOTES_CONTENT_TYPE})
"""Contents that a report does not list: turns have a view of their own, and whole notes are shown as notes."""


class Artifact(Published):
    """An artifact of an attempt. `kind` is the kind that its content states; None if it states none.

    `content` is None if it cannot be read or is not JSON.
    """

    digest: Digest
    kind: str | None
    content_type: str
    bytes: int
    is_readable: bool
    content: Json = None


@frozen
class ContextChange:
    """What a step changed about a context key. `is_computed`: the plan set it from the evidence or the context."""

    key: str
    change: Literal["added", "changed", "removed"]
    before: Json
    after: Json
    is_computed: bool


@frozen
class RefusedAttempt:
    """A refused attempt: what was sent, by which client, and why it was not accepted."""

    node: NodeId
    at: str | None
    by: str | None
    notes: str | None
    artifacts: tuple[Artifact, ...]
    blockers: tuple[Blocker, ...]

    @property
    def needs_person(self) -> bool:
        """Whether only a person could give what was missing."""
        return any(one.code == _USER_ONLY for one in self.blockers)


@frozen
class StepReport:
    """A step on the path to the current one. `since` is the time from which it was pending, `at` when it was done.

    `reporter` is the client that reported it, or Interlock itself; `prompt` its task as the agent received it.
    `artifacts` are those of the attempt that finished it, and what else it stored that cannot be read; `checkpoint` the
    notes of its last checkpoint. `answered` is a person's recorded answer, `context` what the step changed, `gaps` what
    it left open at that time. `decisions` say in words how the plan went on after it; `verifies` are the steps that it
    checks, which another client must have reported if `is_by_another`. `left` says how work on it was left before it
    was done (END-7). `waited_ms` is how long it waited for a person after a refusal. `received` are the events that are
    about it or that it `took`, `levels` how well each of them is known, `imported` those of them that came with a
    bundle, `unknown_keys` those whose signature is of a key that is not configured here, and `sent` the intents that
    its report recorded.
    """

    node: NodeId
    step_id: str
    place: StepLabel
    is_done: bool
    since: str | None
    at: str | None
    reporter: Actor | None
    prompt: str
    notes: str | None
    checkpoint: str | None
    refused: tuple[RefusedAttempt, ...]
    artifacts: tuple[Artifact, ...]
    answered: Answered | None
    context: tuple[ContextChange, ...]
    gaps: tuple[GapRecorded, ...]
    capabilities: tuple[CapabilityObserved, ...]
    divergences: tuple[DivergenceRecorded, ...]
    decisions: tuple[str, ...]
    verifies: tuple[str, ...]
    is_by_another: bool
    left: tuple[WorkRecorded, ...]
    waited_ms: int
    received: tuple[Received, ...]
    took: frozenset[EventId]
    levels: Mapping[EventId, str]
    imported: frozenset[EventId]
    unknown_keys: frozenset[EventId]
    sent: tuple[Intent, ...]

    @property
    def by(self) -> str | None:
        """The name of its reporter, if it has one."""
        return self.reporter.identifier if self.reporter is not None else None

    @property
    def took_ms(self) -> int | None:
        """How long the step was pending before it was done; None if it is not done or a time is unknown."""
        return span_ms(self.since, self.at)


class StepReader:
    """Makes the reports of the steps of one session. Writes nothing."""

    def __init__(self, reader: SessionReader, history: History, keys: SigningKeys | None = None) -> None:
        self._reader = reader
        self._keys = keys
        self._session = history.session
        events = [event for plan in history.appended for event in plan]
        self._times = _times(events)
        self._divergences = _divergences(events)
        self._about = _about(history.session)

    def divergences_of(self, node: NodeId) -> tuple[DivergenceRecorded, ...]:
        """Return how the agent deviated in the attempt that made a node."""
        return self._divergences.get(node, ())

    def nodes_with_events(self, run: RunId) -> list[NodeId]:
        """Return the nodes of a run about which there are events, in the order of their first events."""
        return [node for node, found in self._about.items() if found[0].run == run]

    def time_of(self, node: NodeId) -> str | None:
        """Return the time at which a node was made, if it is recorded."""
        return self._times.get(node)

    def step(self, run_context: RunContext, path_step: PathStep) -> StepReport:
        """Return the report of a step of a path.

        Raises:
            ContentDamagedError: A snapshot is missing or damaged.
        """
        place, state = run_context.place(path_step.at), run_context.snapshot(path_step.at).state
        assert place is not None, "only a pending step can be followed by another"
        assert isinstance(state, Running), "only a pending step can be followed by another"
        successor, step_id = path_step.passed_to, state.pending.step.step_id
        task = run_context.workflow.steps[step_id].task
        stored = self._artifacts(successor) if successor is not None else ()
        held = [notes_of_checkpoint(node) for node in (path_step.at, *path_step.refused)]
        refused = tuple(self._refused(node) for node in path_step.refused)
        done_at = self._times.get(successor.node) if successor is not None else None
        took = advance_to(self._session, successor).took if successor is not None else ()
        received = self._received(path_step.at.node, took)
        return StepReport(
            node=path_step.at.node,
            step_id=step_id,
            place=place,
            is_done=successor is not None,
            since=self._times.get(path_step.at.node),
            at=done_at,
            reporter=successor.actor if successor is not None else None,
            prompt=_prompt(run_context, path_step.at, state),
            notes=self._notes(successor) if successor is not None else None,
            checkpoint=next((notes for notes in reversed(held) if notes is not None), None),
            refused=refused,
            artifacts=(*stored, *self._lost(path_step, {one.digest for one in stored})),
            answered=self._answered(successor) if successor is not None else None,
            context=tuple(context_changes(run_context, path_step)) if successor is not None else (),
            gaps=successor.gaps if successor is not None else (),
            capabilities=successor.observed if successor is not None else (),
            divergences=self.divergences_of(successor.node) if successor is not None else (),
            decisions=_decisions(successor) if successor is not None else (),
            verifies=task.verifies if task is not None else (),
            is_by_another=task is not None and task.by == "another",
            left=tuple(one for node in (path_step.at, *path_step.refused) for one in node.left),
            waited_ms=_waited(refused, done_at),
            received=received,
            took=frozenset(took),
            levels={one.event_id: self._session.describe_level(one.index, one.data, self._keys) for one in received},
            imported=frozenset(one.event_id for one in received if one.index < self._session.imported),
            unknown_keys=frozenset(one.event_id for one in received if has_unknown_key(one.data, self._keys)),
            sent=self._session.outside.of_node(successor.node) if successor is not None else (),
        )

    def _received(self, node: NodeId, took: Iterable[EventId]) -> tuple[Received, ...]:
        """Return the events about a node and those that its step took, in log order."""
        events = {one.event_id: one for one in self._about.get(node, ())}
        events |= {one: self._session.outside.events[one] for one in took}
        return tuple(sorted(events.values(), key=lambda one: one.index))

    def _refused(self, node: Node) -> RefusedAttempt:
        refusal = refusal_of(self._session, node)
        return RefusedAttempt(
            node=node.node,
            at=self._times.get(node.node),
            by=_client(node),
            notes=self._notes(node),
            artifacts=self._artifacts(node),
            blockers=refusal.blockers if refusal is not None else (),
        )

    def _notes(self, node: Node) -> str | None:
        """Return the full notes of an attempt; long notes are stored whole in an artifact."""
        return whole_notes(self._reader, node, advance_to(self._session, node).attempt) or notes_of_attempt(node)

    def _answered(self, node: Node) -> Answered | None:
        """Return a person's answer; None if no person was asked, or the record is reported as damaged."""
        try:
            return answered_at(self._reader, node)
        except ContentDamagedError:
            return None

    def _artifacts(self, node: Node) -> tuple[Artifact, ...]:
        found = [one for one in _payloads(node) if one[1].content_type not in _NOT_EVIDENCE]
        return tuple(self._artifact(digest, payload) for digest, payload in found)

    def _lost(self, path_step: PathStep, shown: Collection[Digest]) -> Iterator[Artifact]:
        """Yield what cannot be read of the other artifacts of a step: of refused attempts, checkpoints, whole notes."""
        later = [*path_step.refused, *([path_step.passed_to] if path_step.passed_to is not None else [])]
        outputs = [output for output in path_step.at.outputs if output.is_of_checkpoint]
        outputs += [output for node in later for output in node.outputs]
        payloads = {one.payload.sha256: one.payload for one in outputs if isinstance(one.payload, ArtifactPayload)}
        for digest, payload in payloads.items():
            artifact = self._artifact(digest, payload)
            if digest not in shown and not artifact.is_readable:
                yield artifact

    def _artifact(self, digest: Digest, payload: ArtifactPayload) -> Artifact:
        content: Json = None
        is_readable = True
        try:
            content = json.loads(self._reader.artifact(digest))
        except ContentDamagedError:
            is_readable = False
        except (ValueError, RecursionError):
            content = None
        kind = content.get("kind") if isinstance(content, dict) else None
        return Artifact(
            digest=digest,
            kind=kind if isinstance(kind, str) else None,
            content_type=payload.content_type,
            bytes=payload.byte_length,
            is_readable=is_readable,
            content=content,
        )


def span_ms(since: str | None, until: str | None) -> int | None:
    """Return the time between two recorded times in milliseconds, at least 0; None if one is unknown."""
    first, last = moment_of(since), moment_of(until)
    return max(0, last - first) if first is not None and last is not None else None


def time_bars(steps: Sequence[StepReport]) -> "list[TimeBar]":
    """Return the steps whose times are recorded as bars over time."""
    from interlock.views.picture.time_bar import TimeBar  # noqa: PLC0415 — most reports have no picture

    bars = list[TimeBar]()
    for step in steps:
        since, until = moment_of(step.since), moment_of(step.at)
        if since is not None:
            refused = [at for at in (moment_of(one.at) for one in step.refused) if at is not None]
            bars.append(
                TimeBar(
                    title=f"{step.place.number}. {step.place.title}",
                    node=step.node,
                    since=since,
                    until=max(since, until) if until is not None else None,
                    refused=tuple(refused),
                )
            )
    return bars


def _prompt(run_context: RunContext, node: Node, state: Running) -> str:
    workflow, pending = run_context.workflow, state.pending.step
    seen = with_loop_variables(workflow.graphs, run_context.session.context(node.node), run_context.frames(node))
    return prompt_of(workflow, workflow.steps[pending.step_id], seen, never_stops=node.preferences.never_stops)


def context_changes(run_context: RunContext, path_step: PathStep) -> Iterator[ContextChange]:
    """Yield what a finished step changed in the context, by key."""
    assert path_step.passed_to is not None, "the step is done"
    pending = run_context.pending(path_step.at)
    assert pending is not None, "the step was pending"
    return changes_between(run_context, (path_step.at.node, path_step.passed_to.node), pending.step_id)


def changes_between(run_context: RunContext, nodes: tuple[NodeId, NodeId], step_id: str) -> Iterator[ContextChange]:
    """Yield what a step changed in the context, by key: it was pending at the first node, and led to the second."""
    session = run_context.session
    if session.nodes[nodes[0]].context_at == session.nodes[nodes[1]].context_at:
        return
    task = run_context.workflow.steps[step_id].task
    computed = {action.key for action in task.sets} if task is not None else set[str]()
    before, after = (session.context(one) for one in nodes)
    for key in sorted(before.keys() | after.keys()):
        if key in before and key in after and _is_same(before[key], after[key]):
            continue
        change: Literal["added", "changed", "removed"] = "changed"
        if key not in before or key not in after:
            change = "added" if key in after else "removed"
        was, now = before.get(key), after.get(key)
        yield ContextChange(key=key, change=change, before=was, after=now, is_computed=key in computed)


def _is_same(one: Json, other: Json) -> bool:
    # Most values are those of the step before, unchanged in memory: to encode them takes longer than all else.
    return one is other or canonical_bytes(one) == canonical_bytes(other)


def _decisions(node: Node) -> tuple[str, ...]:
    """Return how the plan came to a node, without the choice of the next step, which the path shows."""
    return tuple(one.summary for one in node.trace if one.kind != "selected_next_step")


def _waited(refused: tuple[RefusedAttempt, ...], done_at: str | None) -> int:
    """Return how long a step waited for a person: from each refusal for lack of one to the next attempt."""
    ends = [*(one.at for one in refused[1:]), done_at]
    spans = [span_ms(one.at, end) for one, end in zip(refused, ends, strict=False) if one.needs_person]
    return sum(span for span in spans if span is not None)


def _client(node: Node) -> str | None:
    return node.actor.identifier if node.actor is not None else None


def _payloads(node: Node) -> list[tuple[Digest, ArtifactPayload]]:
    """Return the artifacts that the attempt stored which made a node, with their digests."""
    own = [output.payload for output in node.outputs if not output.is_of_checkpoint]
    return [(one.sha256, one) for one in own if isinstance(one, ArtifactPayload)]


def _times(events: Collection[Event]) -> Mapping[NodeId, str]:
    made = (event for event in events if isinstance(event, NodeCreatedEvent))
    return {event.scope.node_id: event.recorded_at for event in made if event.recorded_at is not None}


def _about(session: Session) -> Mapping[NodeId, list[Received]]:
    """Return the events about each node in log order, without the trees that Interlock read for proofs."""
    found: dict[NodeId, list[Received]] = {}
    for event in sorted(session.outside.events.values(), key=lambda one: one.index):
        if event.node is not None and event.data.event != TREE:
            found.setdefault(event.node, []).append(event)
    return found


def _divergences(events: Collection[Event]) -> Mapping[NodeId, tuple[DivergenceRecorded, ...]]:
    found: dict[NodeId, tuple[DivergenceRecorded, ...]] = {}
    for event in events:
        if isinstance(event, DivergenceRecordedEvent):
            found[event.scope.node_id] = (*found.get(event.scope.node_id, ()), event.data)
    return found
