"""The account of a run for people: what it is, where it stands, what was done on the way, what is still open."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast, get_args

from interlock.engine.published import Published
from interlock.engine.request import WHOLE_NOTES_CONTENT_TYPE
from interlock.kernel.ids import Digest, NodeId, RunId, SessionId, SourceKind, WorkflowHash
from interlock.record.base import Preferences
from interlock.record.events import NodeCreatedEvent
from interlock.record.outcome import Blocker
from interlock.record.payloads import ArtifactPayload, GapRecorded, ObservationKey
from interlock.service.run.context import RunContext, StepLabel, load_run_context
from interlock.service.run.history import History
from interlock.service.run.plans import Plans
from interlock.service.run.summaries import summary_of
from interlock.store.ports.errors import ContentDamagedError
from interlock.store.ports.reader import SessionReader
from interlock.views.node_position import PathStep, path_to, refusal_of
from interlock.views.recap import notes_of_attempt, notes_of_checkpoint
from interlock.views.run_graph import GraphNode, leaves, run_graph
from interlock.views.session import Node
from interlock.views.status import open_gaps, remedy
from interlock.views.summary import RunSummary


class Artifact(Published):
    """What an attempt brought beside its notes. `kind` is what it calls itself; None where it does not say."""

    digest: Digest
    kind: str | None
    content_type: str
    bytes: int
    is_readable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """A step on the way to where the run stands. `at` is when it was done; `refused` says why, attempt by attempt.

    `checkpoint` are the notes of its last checkpoint.
    """

    node: NodeId
    place: StepLabel
    is_done: bool
    at: str | None
    notes: str | None
    checkpoint: str | None
    refused: tuple[tuple[Blocker, ...], ...]
    artifacts: tuple[Artifact, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """An end of the run's graph: the step that is pending there, None where the run is complete."""

    node: NodeId
    place: StepLabel | None
    is_tip: bool
    at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GapReport:
    """An open gap: the step that left it, None for the start, when, and what would resolve it."""

    gap: GapRecorded
    node: NodeId
    step: StepLabel | None
    at: str | None
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """All that is told of a run. `steps` run from the first to where it stands, without the `left_out` earliest ones.

    `blockers` say why it does not go on; `context_keys` are those at its preferred tip; `observed` is where it began.
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
    scene: RunContext
    blockers: tuple[Blocker, ...]
    gaps: tuple[GapReport, ...]
    context_keys: tuple[str, ...]
    observed: Mapping[ObservationKey, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionReport:
    """All that is told of a session: its runs, in the order they began."""

    session: SessionId
    events: int
    runs: tuple[RunReport, ...]


class SessionReporter:
    """Makes accounts of one session. Writes nothing."""

    def __init__(self, reader: SessionReader, plans: Plans, history: History) -> None:
        self._reader = reader
        self._plans = plans
        self._facts = history.facts
        self._times = _times(history)

    def session(self, runs: Sequence[RunId], *, steps_max: int | None = None) -> SessionReport:
        """Return the account of these runs, each with at most the last so many steps.

        Raises:
            ContentDamagedError: A pinned workflow or a snapshot is missing or damaged.
        """
        told = {one.run: one for one in summary_of(self._facts, self._plans).runs if one.run in runs}
        return SessionReport(
            session=self._facts.session,
            events=self._facts.next_index,
            runs=tuple(self._run(summary, steps_max) for summary in told.values()),
        )

    def gaps(self, run: RunId) -> tuple[GapReport, ...]:
        """Return what is open on a run.

        Raises:
            ContentDamagedError: Its pinned workflow or a snapshot is missing or damaged.
        """
        found = open_gaps(self._facts, run)
        return self._gaps(load_run_context(self._facts, self._facts.runs[run], self._plans)) if found else ()

    def _run(self, summary: RunSummary, steps_max: int | None) -> RunReport:
        run = self._facts.runs[summary.run]
        scene = load_run_context(self._facts, run, self._plans)
        tip, graph = self._facts.nodes[summary.tip], run_graph(self._facts, run.run)
        legs = path_to(self._facts, tip)
        done = legs[:-1] if summary.is_complete else legs
        shown = done if steps_max is None else done[-steps_max:]
        refusal = refusal_of(self._facts, tip)
        return RunReport(
            summary=summary,
            workflow_hash=run.workflow_hash,
            source_kind=run.source_kind,
            source_ref=run.source_ref,
            preferences=tip.preferences,
            steps=tuple(self._step(scene, leg) for leg in shown),
            left_out=len(done) - len(shown),
            branches=tuple(self._branch(scene, leaf) for leaf in leaves(graph)),
            graph=graph,
            scene=scene,
            blockers=refusal.blockers if refusal is not None else (),
            gaps=self._gaps(scene),
            context_keys=tuple(sorted(self._facts.context(tip.node))),
            observed=self._observed(run.run),
        )

    def _step(self, scene: RunContext, leg: PathStep) -> StepReport:
        place = scene.place(leg.at)
        assert place is not None, "a run goes on from a step only"
        brought = leg.passed_to
        artifacts = self._artifacts(brought) if brought is not None else ()
        refusals = [refusal_of(scene.session, node) for node in leg.refused]
        held = [notes_of_checkpoint(node) for node in (leg.at, *leg.refused)]
        return StepReport(
            node=leg.at.node,
            place=place,
            is_done=brought is not None,
            at=self._times.get(brought.node) if brought is not None else None,
            notes=self._notes(brought) if brought is not None else None,
            checkpoint=next((notes for notes in reversed(held) if notes is not None), None),
            refused=tuple(one.blockers for one in refusals if one is not None),
            artifacts=artifacts,
        )

    def _notes(self, node: Node) -> str | None:
        """Return the notes of an attempt, whole: a recap has the beginning of long ones, an artifact all of them."""
        for digest, payload in _payloads(node):
            if payload.content_type == WHOLE_NOTES_CONTENT_TYPE:
                try:
                    return self._reader.artifact(digest).decode("utf-8", "replace")
                except ContentDamagedError:
                    break
        return notes_of_attempt(node)

    def _artifacts(self, node: Node) -> tuple[Artifact, ...]:
        found = [one for one in _payloads(node) if one[1].content_type != WHOLE_NOTES_CONTENT_TYPE]
        return tuple(self._artifact(digest, payload) for digest, payload in found)

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

    def _branch(self, scene: RunContext, leaf: GraphNode) -> Branch:
        node = leaf.node
        return Branch(node=node.node, place=scene.place(node), is_tip=leaf.is_tip, at=self._times.get(node.node))

    def _gaps(self, scene: RunContext) -> tuple[GapReport, ...]:
        return tuple(
            GapReport(
                gap=one.gap,
                node=one.node.node,
                step=scene.place(one.step) if one.step is not None else None,
                at=self._times.get(one.node.node),
                remedy=remedy(one.gap.reason, is_of_start=one.step is None),
            )
            for one in open_gaps(scene.session, scene.run.run)
        )

    def _observed(self, run: RunId) -> Mapping[ObservationKey, str]:
        keys: tuple[ObservationKey, ...] = get_args(ObservationKey)
        observed: dict[ObservationKey, str] = {}
        for key in keys:
            value = self._facts.observed(run, key)
            if value is not None:
                observed[key] = value
        return observed


def _payloads(node: Node) -> list[tuple[Digest, ArtifactPayload]]:
    """Return what the attempt that made a node stored by digest."""
    own = [output.payload for output in node.outputs if not output.is_of_checkpoint]
    return [(one.sha256, one) for one in own if isinstance(one, ArtifactPayload)]


def _times(history: History) -> Mapping[NodeId, str]:
    """Return when each node was made, as far as that is recorded."""
    made = (event for plan in history.appended for event in plan if isinstance(event, NodeCreatedEvent))
    return {event.scope.node_id: event.recorded_at for event in made if event.recorded_at is not None}
