"""The report of a session for people: its runs, their current step, the finished steps, and what is open."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast, get_args

from interlock.engine.published import Published
from interlock.engine.request import TURN_CONTENT_TYPE, WHOLE_NOTES_CONTENT_TYPE
from interlock.kernel.ids import Digest, NodeId, RunId, SessionId, SourceKind, WorkflowHash
from interlock.record.base import Preferences
from interlock.record.events import NodeCreatedEvent
from interlock.record.outcome import Blocker
from interlock.record.payloads import ArtifactPayload, GapRecorded, ObservationKey, WorkRecorded
from interlock.service.run.context import RunContext, StepLabel, load_run_context
from interlock.service.run.history import History
from interlock.service.run.plans import Plans
from interlock.service.run.summaries import summary_of
from interlock.store.ports.errors import ContentDamagedError
from interlock.store.ports.reader import SessionReader
from interlock.views.node_position import PathStep, path_to, refusal_of
from interlock.views.recap import notes_of_attempt, notes_of_checkpoint
from interlock.views.run_graph import GraphNode, leaves, run_graph
from interlock.views.session import Node, RunEnd
from interlock.views.status import open_gaps, remedy
from interlock.views.summary import RunSummary


class Artifact(Published):
    """An artifact of an attempt. `kind` is the kind that its content states; None if it states none."""

    digest: Digest
    kind: str | None
    content_type: str
    bytes: int
    is_readable: bool


_NOT_EVIDENCE = frozenset({TURN_CONTENT_TYPE, WHOLE_NOTES_CONTENT_TYPE})


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """A step on the path to the current one. `at` is the time when it was done.

    `refused` holds the blockers of each refused attempt; `checkpoint` the notes of the step's last checkpoint.
    `artifacts` are those of the attempt that finished it, and what else it stored that cannot be read. `left` says how
    work on it was left before it was done (END-7).
    """

    node: NodeId
    place: StepLabel
    is_done: bool
    at: str | None
    notes: str | None
    checkpoint: str | None
    refused: tuple[tuple[Blocker, ...], ...]
    artifacts: tuple[Artifact, ...]
    left: tuple[WorkRecorded, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A leaf of the run's graph, with its pending step; `place` is None if the run is complete there."""

    node: NodeId
    place: StepLabel | None
    is_tip: bool
    at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GapReport:
    """An open gap: its step (None for the start), its time, and what would resolve it."""

    gap: GapRecorded
    node: NodeId
    step: StepLabel | None
    at: str | None
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """The report of a run. `steps` go from the first to the current one, without the `left_out` earliest steps.

    `blockers` say why it is blocked; `context_keys` are those at its preferred tip; `ended` says how it ended
    if its last step was not done (END-1); `observed` is the git position at which it began.
    """

    summary: RunSummary
    workflow_hash: WorkflowHash
    source_kind: SourceKind
    source_ref: str
    preferences: Preferences
    steps: tuple[StepReport, ...]
    left_out: int
    branches: tuple[Branch, ...]
    graph: GraphNode
    run_context: RunContext
    blockers: tuple[Blocker, ...]
    gaps: tuple[GapReport, ...]
    context_keys: tuple[str, ...]
    ended: RunEnd | None
    observed: Mapping[ObservationKey, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionReport:
    """The report of a session: its runs, in the order they began."""

    session: SessionId
    events: int
    runs: tuple[RunReport, ...]


class SessionReporter:
    """Makes reports of one session. Writes nothing."""

    def __init__(self, reader: SessionReader, plans: Plans, history: History) -> None:
        self._reader = reader
        self._plans = plans
        self._session = history.session
        self._times = _times(history)

    def session(self, runs: Sequence[RunId], *, steps_max: int | None = None) -> SessionReport:
        """Return the report of these runs, each with at most its last `steps_max` steps.

        Raises:
            ContentDamagedError: A pinned workflow or a snapshot is missing or damaged.
        """
        selected = {one.run: one for one in summary_of(self._session, self._plans).runs if one.run in runs}
        return SessionReport(
            session=self._session.session,
            events=self._session.next_index,
            runs=tuple(self._run(summary, steps_max) for summary in selected.values()),
        )

    def gaps(self, run: RunId) -> tuple[GapReport, ...]:
        """Return the open gaps of a run.

        Raises:
            ContentDamagedError: Its pinned workflow or a snapshot is missing or damaged.
        """
        found = open_gaps(self._session, run)
        return self._gaps(load_run_context(self._session, self._session.runs[run], self._plans)) if found else ()

    def _run(self, summary: RunSummary, steps_max: int | None) -> RunReport:
        run = self._session.runs[summary.run]
        run_context = load_run_context(self._session, run, self._plans)
        tip, graph = self._session.nodes[summary.tip], run_graph(self._session, run.run)
        path = path_to(self._session, tip)
        done = path[:-1] if summary.is_complete else path
        shown = done if steps_max is None else done[-steps_max:]
        refusal = refusal_of(self._session, tip)
        return RunReport(
            summary=summary,
            workflow_hash=run.workflow_hash,
            source_kind=run.source_kind,
            source_ref=run.source_ref,
            preferences=tip.preferences,
            steps=tuple(self._step(run_context, path_step) for path_step in shown),
            left_out=len(done) - len(shown),
            branches=tuple(self._branch(run_context, leaf) for leaf in leaves(graph)),
            graph=graph,
            run_context=run_context,
            blockers=refusal.blockers if refusal is not None else (),
            gaps=self._gaps(run_context),
            context_keys=tuple(sorted(self._session.context(tip.node))),
            ended=run.ended,
            observed=self._observed(run.run),
        )

    def _step(self, run_context: RunContext, path_step: PathStep) -> StepReport:
        place = run_context.place(path_step.at)
        assert place is not None, "only a pending step can be followed by another"
        successor = path_step.passed_to
        stored = self._artifacts(successor) if successor is not None else ()
        artifacts = (*stored, *self._lost(path_step, {one.digest for one in stored}))
        refusals = [refusal_of(run_context.session, node) for node in path_step.refused]
        held = [notes_of_checkpoint(node) for node in (path_step.at, *path_step.refused)]
        return StepReport(
            node=path_step.at.node,
            place=place,
            is_done=successor is not None,
            at=self._times.get(successor.node) if successor is not None else None,
            notes=self._notes(successor) if successor is not None else None,
            checkpoint=next((notes for notes in reversed(held) if notes is not None), None),
            refused=tuple(one.blockers for one in refusals if one is not None),
            artifacts=artifacts,
            left=tuple(one for node in (path_step.at, *path_step.refused) for one in node.left),
        )

    def _notes(self, node: Node) -> str | None:
        """Return the full notes of an attempt; long notes are stored whole in an artifact."""
        for digest, payload in _payloads(node):
            if payload.content_type == WHOLE_NOTES_CONTENT_TYPE:
                try:
                    return self._reader.artifact(digest).decode("utf-8", "replace")
                except ContentDamagedError:
                    break
        return notes_of_attempt(node)

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
        kind: object = None
        is_readable = True
        try:
            body: object = json.loads(self._reader.artifact(digest))
            kind = cast("dict[str, object]", body).get("kind") if isinstance(body, dict) else None
        except ContentDamagedError:
            is_readable = False
        except (ValueError, RecursionError):
            kind = None
        return Artifact(
            digest=digest,
            kind=kind if isinstance(kind, str) else None,
            content_type=payload.content_type,
            bytes=payload.byte_length,
            is_readable=is_readable,
        )

    def _branch(self, run_context: RunContext, leaf: GraphNode) -> Branch:
        node = leaf.node
        return Branch(node=node.node, place=run_context.place(node), is_tip=leaf.is_tip, at=self._times.get(node.node))

    def _gaps(self, run_context: RunContext) -> tuple[GapReport, ...]:
        return tuple(
            GapReport(
                gap=one.gap,
                node=one.node.node,
                step=run_context.place(one.step) if one.step is not None else None,
                at=self._times.get(one.node.node),
                remedy=remedy(one.gap.reason, is_of_start=one.step is None),
            )
            for one in open_gaps(run_context.session, run_context.run.run)
        )

    def _observed(self, run: RunId) -> Mapping[ObservationKey, str]:
        keys: tuple[ObservationKey, ...] = get_args(ObservationKey)
        observed: dict[ObservationKey, str] = {}
        for key in keys:
            value = self._session.observed(run, key)
            if value is not None:
                observed[key] = value
        return observed


def _payloads(node: Node) -> list[tuple[Digest, ArtifactPayload]]:
    """Return the artifacts that the attempt stored which made a node, with their digests."""
    own = [output.payload for output in node.outputs if not output.is_of_checkpoint]
    return [(one.sha256, one) for one in own if isinstance(one, ArtifactPayload)]


def _times(history: History) -> Mapping[NodeId, str]:
    """Return the time at which each node was made, if it is recorded."""
    made = (event for plan in history.appended for event in plan if isinstance(event, NodeCreatedEvent))
    return {event.scope.node_id: event.recorded_at for event in made if event.recorded_at is not None}
