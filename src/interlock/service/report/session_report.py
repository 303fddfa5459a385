"""The report of a session for people: its runs, their current step, the finished steps, and what is open."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, get_args

from interlock.engine.answer.identity import RestsOn
from interlock.engine.template import unfilled_line
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import Digest, NodeId, RunId, SessionId, SourceKind, WorkflowHash
from interlock.record.base import Preferences
from interlock.record.events import NodeScope, ObservationRecordedEvent, RunStartedEvent
from interlock.record.outcome import Blocker
from interlock.record.payloads import CapabilityObserved, DivergenceRecorded, GapRecorded, ObservationKey
from interlock.record.snapshot import PendingStep, Running
from interlock.service.report.step_report import ContextChange, StepReader, StepReport, changes_between
from interlock.service.run.context import RunContext, StepLabel, load_run_context
from interlock.service.run.evidence.verdicts import verdicts_at
from interlock.service.run.history import History
from interlock.service.run.plans import Plans
from interlock.service.run.rests_on import rests_on
from interlock.service.run.summarize import summary_of
from interlock.store.ports.reader import SessionReader
from interlock.views.node_position import PathStep, chain_head, path_to, refusal_of, tip_below, walk_up
from interlock.views.outside import SigningKeys
from interlock.views.run_graph import GraphNode, leaves, run_graph, walk
from interlock.views.session import Node, RunEnd
from interlock.views.status import open_gaps, remedy
from interlock.views.summary import RunSummary
from interlock.views.verdicts import Verdict, in_effect

if TYPE_CHECKING:
    from interlock.views.picture.chart import Chart


@frozen
class Branch:
    """A leaf of the run's graph, with its pending step; `place` is None if the run is complete there."""

    node: NodeId
    place: StepLabel | None
    is_tip: bool
    at: str | None


@frozen
class GapReport:
    """An open gap: its step (None for the start), its time, and what would resolve it."""

    gap: GapRecorded
    node: NodeId
    step: StepLabel | None
    at: str | None
    remedy: str


@frozen
class VerdictReport:
    """A verdict and the step that stated it. A later verdict replaced it unless it `is_in_effect` (EVD-2)."""

    verdict: Verdict
    step: StepLabel
    at: str | None
    is_in_effect: bool


@frozen
class FactReport:
    """A capability as it was observed, or a deviation: recorded with `node`, by an attempt at `step`.

    `step` is None for the start. `is_on_path`: on the way to the preferred tip.
    """

    fact: CapabilityObserved | DivergenceRecorded
    node: NodeId
    step: StepLabel | None
    at: str | None
    is_on_path: bool


@frozen
class ContextEntry:
    """A context key at a node. `step` set it last; None if it was sent with the start."""

    key: str
    value: Json
    step: StepLabel | None
    at: str | None
    is_computed: bool


@frozen
class StepNotDone:
    """A step of the plan that was not done on the path: it was skipped, or the run has not come to it."""

    step_id: str
    title: str
    number: int
    is_skipped: bool


@frozen
class RunReport:
    """The report of a run. `steps` go from the first to the current one, without the `left_out` earliest steps.

    `verdicts` are those of all steps, the latest first; `not_done` are the steps of the plan that are not on the path.
    `elsewhere` are steps on other branches about which there are events, such as a person's answer or a failed check.
    `facts` are the observed capabilities and the deviations of all its branches, the earliest first.
    `blockers` say why it is blocked; `context` is that at its preferred tip, by key; `ended` says how it ended
    if its last step was not done (END-1); `began_on` is the git position at which it began, `observed` the last one;
    `config_hash` identifies the configuration of the server that began it (CFG-5).
    """

    summary: RunSummary
    workflow_hash: WorkflowHash
    source_kind: SourceKind
    source_ref: str
    preferences: Preferences
    steps: tuple[StepReport, ...]
    left_out: int
    verdicts: tuple[VerdictReport, ...]
    not_done: tuple[StepNotDone, ...]
    elsewhere: tuple[StepReport, ...]
    branches: tuple[Branch, ...]
    graph: GraphNode
    run_context: RunContext
    blockers: tuple[Blocker, ...]
    gaps: tuple[GapReport, ...]
    facts: tuple[FactReport, ...]
    context: tuple[ContextEntry, ...]
    ended: RunEnd | None
    began_on: Mapping[ObservationKey, str]
    observed: Mapping[ObservationKey, str]
    config_hash: Digest | None
    rests_on: RestsOn


@frozen
class SessionReport:
    """The report of a session: its runs, in the order they began."""

    session: SessionId
    events: int
    runs: tuple[RunReport, ...]


class SessionReporter:
    """Makes reports of one session. Writes nothing.

    `keys` are the signing keys that are configured, if they are known.
    """

    def __init__(self, reader: SessionReader, plans: Plans, history: History, keys: SigningKeys | None = None) -> None:
        self._plans = plans
        self._session = history.session
        self._keys = keys
        self._steps = StepReader(reader, history, keys)
        events = [event for plan in history.appended for event in plan]
        started = (event for event in events if isinstance(event, RunStartedEvent))
        self._configs = {event.scope.run_id: event.data.applied_config_hash for event in started}
        self._first_seen: dict[tuple[RunId | None, ObservationKey], str] = {}
        for event in events:
            if isinstance(event, ObservationRecordedEvent) and not isinstance(event.scope, NodeScope):
                owner = event.scope.run_id if event.scope is not None else None
                self._first_seen.setdefault((owner, event.data.key), event.data.value.value)

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

    def branch(self, run_context: RunContext, tip: Node) -> tuple[StepReport, ...]:
        """Return the reports of the steps on the path to a node, without the end of a complete run.

        Raises:
            ContentDamagedError: A snapshot is missing or damaged.
        """
        path = path_to(self._session, tip)
        return tuple(self._steps.step(run_context, one) for one in path if run_context.place(one.at) is not None)

    def step(self, run_context: RunContext, tip: Node, node: Node) -> StepReport | None:
        """Return the report of the step on the path to `tip` that was pending, or tried in vain, at a node.

        None if no step is pending there: the run is complete.

        Raises:
            ContentDamagedError: A snapshot is missing or damaged.
        """
        for one in path_to(self._session, tip):
            if node.node in (one.at.node, *(refused.node for refused in one.refused)):
                return self._steps.step(run_context, one) if run_context.place(one.at) is not None else None
        return None

    def gaps(self, run: RunId) -> tuple[GapReport, ...]:
        """Return the open gaps of a run.

        Raises:
            ContentDamagedError: Its pinned workflow or a snapshot is missing or damaged.
        """
        found = open_gaps(self._session, run)
        return self._gaps(load_run_context(self._session, self._session.runs[run], self._plans)) if found else ()

    def _run(self, summary: RunSummary, steps_max: int | None) -> RunReport:
        run = self._session.runs[summary.run]
        run_context = replace(load_run_context(self._session, run, self._plans), signing_keys=self._keys)
        tip, graph = self._session.nodes[summary.tip], run_graph(self._session, run.run)
        path = path_to(self._session, tip)
        done = path[:-1] if summary.is_complete else path
        # The graph is drawn with the title of every node: a lost snapshot of any branch is found here.
        pending_at = {here.node.node: run_context.pending(here.node) for here in walk(graph)}
        pending = [pending_at[one.at.node] for one in path]
        shown = done if steps_max is None else done[-steps_max:]
        refusal = refusal_of(self._session, tip)
        return RunReport(
            summary=summary,
            workflow_hash=run.workflow_hash,
            source_kind=run.source_kind,
            source_ref=run.source_ref,
            preferences=tip.preferences,
            steps=tuple(self._steps.step(run_context, path_step) for path_step in shown),
            left_out=len(done) - len(shown),
            verdicts=tuple(self._verdicts(run_context, path)),
            not_done=tuple(_not_done(run_context, path[-1].at, pending)),
            elsewhere=tuple(self._elsewhere(run_context, path)),
            branches=tuple(self._branch(run_context, leaf) for leaf in leaves(graph)),
            graph=graph,
            run_context=run_context,
            blockers=refusal.blockers if refusal is not None else (),
            gaps=self._gaps(run_context),
            facts=tuple(self._facts(run_context, tip)),
            context=tuple(self._context(run_context, path, pending)),
            ended=run.ended,
            began_on=self._began_on(run.run),
            observed=self._observed(run.run),
            config_hash=self._configs.get(run.run),
            rests_on=rests_on(run_context, tip),
        )

    def _branch(self, run_context: RunContext, leaf: GraphNode) -> Branch:
        node = leaf.node
        return Branch(
            node=node.node, place=run_context.place(node), is_tip=leaf.is_tip, at=self._steps.time_of(node.node)
        )

    def _elsewhere(self, run_context: RunContext, path: Sequence[PathStep]) -> Iterator[StepReport]:
        on_path = {one.at.node for one in path}
        for node in self._steps.nodes_with_events(run_context.run.run):
            if node not in on_path and node in self._session.nodes:
                here = self._session.nodes[node]
                tip = self._session.nodes[tip_below(self._session, here)]
                step = self.step(run_context, tip, here)
                if step is not None:
                    yield step

    def _gaps(self, run_context: RunContext) -> tuple[GapReport, ...]:
        return tuple(
            GapReport(
                gap=one.gap,
                node=one.node.node,
                step=run_context.place(one.step) if one.step is not None else None,
                at=self._steps.time_of(one.node.node),
                remedy=remedy(one.gap.reason, is_of_start=one.step is None),
            )
            for one in open_gaps(run_context.session, run_context.run.run)
        )

    def _facts(self, run_context: RunContext, tip: Node) -> Iterator[FactReport]:
        """Yield what is recorded of capabilities and deviations in a run, in log order."""
        found = [
            (node, facts)
            for node in self._session.nodes.values()
            if node.run == run_context.run.run and (facts := (*node.observed, *self._steps.divergences_of(node.node)))
        ]
        on_path = {one.node for one in walk_up(self._session, tip)} if found else set[NodeId]()
        for node, facts in sorted(found, key=lambda one: one[0].index):
            tried = self._session.nodes[node.parent] if node.parent is not None else None
            place = run_context.place(chain_head(self._session, tried)) if tried is not None else None
            at, is_on_path = self._steps.time_of(node.node), node.node in on_path
            for fact in facts:
                yield FactReport(fact=fact, node=node.node, step=place, at=at, is_on_path=is_on_path)

    def _verdicts(self, run_context: RunContext, path: Sequence[PathStep]) -> Iterator[VerdictReport]:
        """Yield the verdicts of the steps of a path, the latest first."""
        at = {one.passed_to.node: one.at for one in path if one.passed_to is not None}
        nodes = [one.passed_to for one in path if one.passed_to is not None]
        reports = [[*verdicts_at(run_context, node)] for node in nodes]
        effective = list(in_effect(reports, run_context.workflow.graphs.parallel_to))
        for one in (one for report in reversed(reports) for one in reversed(report)):
            place = run_context.place(at[one.node])
            assert place is not None, "a step with a verdict was pending"
            yield VerdictReport(
                verdict=one.verdict, step=place, at=self._steps.time_of(one.node), is_in_effect=one in effective
            )

    def _context(
        self, run_context: RunContext, path: Sequence[PathStep], pending: Sequence[PendingStep | None]
    ) -> Iterator[ContextEntry]:
        """Yield the context at the end of a path, each key with the step that set it last."""
        last: dict[str, tuple[PathStep, ContextChange]] = {}
        for path_step, step in zip(path, pending, strict=True):
            if path_step.passed_to is not None and step is not None:
                found = changes_between(run_context, (path_step.at.node, path_step.passed_to.node), step.step_id)
                last.update((one.key, (path_step, one)) for one in found)
        for key, value in sorted(self._session.context(path[-1].at.node).items()):
            path_step, change = last.get(key, (None, None))
            made = path_step.passed_to if path_step is not None else path[0].at
            assert made is not None, "only a finished step changes the context"
            yield ContextEntry(
                key=key,
                value=value,
                step=run_context.place(path_step.at) if path_step is not None else None,
                at=self._steps.time_of(made.node),
                is_computed=change is not None and change.is_computed,
            )

    def _began_on(self, run: RunId) -> Mapping[ObservationKey, str]:
        """Return the position of the start: that of the run itself if it joined the session, else of the session."""
        owner = run if any(one == run for one, _ in self._first_seen) else None
        return {key: value for (one, key), value in self._first_seen.items() if one == owner}

    def _observed(self, run: RunId) -> Mapping[ObservationKey, str]:
        keys: tuple[ObservationKey, ...] = get_args(ObservationKey)
        observed: dict[ObservationKey, str] = {}
        for key in keys:
            value = self._session.observed(run, key)
            if value is not None:
                observed[key] = value
        return observed


def draw_chart(run_context: RunContext, graph: GraphNode) -> "Chart":
    """Return the graph of a run as a chart."""
    from interlock.views.picture.run_picture import NodeText, run_chart  # noqa: PLC0415 — most reports have no picture

    def text_of(node: Node) -> NodeText:
        place = run_context.place(node)
        if place is None:
            return NodeText(title="complete", is_end=True)
        loop = place.loop.loop_id if place.loop is not None else None
        return NodeText(title=f"{place.number}. {place.title}", loop=loop)

    view = run_context.view()
    goal = f" · {view.goal}" if view.goal is not None else ""
    return run_chart(graph, f"{view.workflow_name} · run {view.label}{goal}", text_of)


def _not_done(run_context: RunContext, end: Node, pending: Sequence[PendingStep | None]) -> Iterator[StepNotDone]:
    """Yield the steps of the plan that were not pending on a path to a node, in plan order."""
    state = run_context.snapshot(end).state
    done = {one.step_id for one in pending if one is not None}
    skipped = {key.rpartition("::")[2] for key in state.skipped.values} if isinstance(state, Running) else None
    for step_id, node in run_context.workflow.steps.items():
        if step_id not in done:
            is_skipped = skipped is None or step_id in skipped
            number = run_context.workflow.numbers[step_id]
            title = unfilled_line(node.title)
            yield StepNotDone(step_id=step_id, title=title, number=number, is_skipped=is_skipped)
