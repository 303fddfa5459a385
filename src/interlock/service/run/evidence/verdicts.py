"""The verdicts that the evidence of a run states (EVD-2)."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from interlock.engine.request import ARTIFACT_CONTENT_TYPE
from interlock.kernel.frozen import replace
from interlock.kernel.ids import Digest
from interlock.record.payloads import ArtifactPayload
from interlock.record.snapshot import LoopPosition, Running
from interlock.service.run.context import RunContext
from interlock.store.ports.errors import ContentDamagedError
from interlock.views.node_position import chain_head
from interlock.views.recap import nodes_above, nodes_with_artifacts
from interlock.views.session import Node
from interlock.views.verdicts import Standing, StepVerdict, Verdict, in_effect, verdict_of, worst_standing

if TYPE_CHECKING:
    from interlock.engine.judge.attempt import Artifacts, FailedVerdict


def failed_verdict(run_context: RunContext, node: Node, artifacts: "Artifacts") -> "FailedVerdict | None":
    """Return the failed verdict that is in effect after a node and artifacts of its step; None if there is none.

    One that a claim overruled comes before the others.

    Raises:
        ContentDamagedError: A snapshot is missing or damaged.
    """
    session = run_context.session
    reported = [_of_step(run_context, node, one) for one in map(verdict_of, artifacts) if one is not None]
    failed = [one for one in _in_effect(run_context, node, reported) if one.verdict.standing == "failed"]
    if not failed:
        return None
    from interlock.engine.judge.attempt import FailedVerdict  # noqa: PLC0415 — a report judges no attempt

    claimed = (one for one in nodes_above(session, node) if any(gap.severity == "warning" for gap in one.gaps))
    last_claim = next((one.index for one in claimed), -1)
    found = [
        FailedVerdict(
            kind=one.verdict.kind,
            word=one.verdict.word,
            is_overruled=one not in reported and session.nodes[one.node].index <= last_claim,
        )
        for one in failed
    ]
    return next((one for one in found if one.is_overruled), found[0])


def run_standing(run_context: RunContext, tip: Node) -> Standing | None:
    """Return the worst verdict in effect on the path to a node; None if no step states one.

    Only the latest steps are read, as many as a recap reads: the cost must not grow with the run.

    Raises:
        ContentDamagedError: A snapshot is missing or damaged.
    """
    return worst_standing(one.verdict.standing for one in _in_effect(run_context, tip))


def _in_effect(run_context: RunContext, tip: Node, reported: Sequence[StepVerdict] = ()) -> Iterator[StepVerdict]:
    latest = list(nodes_with_artifacts(run_context.session, tip))
    reports = [[*verdicts_at(run_context, node)] for node in reversed(latest)]
    return in_effect([*reports, reported], run_context.workflow.graphs.parallel_to)


def verdicts_at(run_context: RunContext, node: Node) -> Iterator[StepVerdict]:
    """Yield the verdicts of the step that advanced to a node. Artifacts that cannot be read state none.

    Raises:
        ContentDamagedError: A snapshot is missing or damaged.
    """
    if node.kind != "step" or node.parent is None:
        return
    for digest in _artifacts(node):
        try:
            verdict = run_context.plans.verdict(digest)
        except ContentDamagedError:
            continue
        if verdict is not None:
            parent = run_context.session.nodes[node.parent]
            yield replace(_of_step(run_context, parent, verdict), node=node.node)


def _of_step(run_context: RunContext, node: Node, verdict: Verdict) -> StepVerdict:
    """Return a verdict of the step that is pending at a node."""
    state = run_context.snapshot(chain_head(run_context.session, node)).state
    assert isinstance(state, Running), "a node with a successor is not complete"
    step, workflow = state.pending.step, run_context.workflow
    pack = workflow.packs.get(workflow.graphs.nodes[step.step_id].evidence_schema_ref or "")
    return StepVerdict(
        verdict=verdict,
        node=node.node,
        step_id=step.step_id,
        items=_items(run_context, step.loop_path),
        is_asked_for=pack is not None and pack.artifact_kind == verdict.kind,
    )


def _artifacts(node: Node) -> Iterator[Digest]:
    for output in node.outputs:
        payload = output.payload
        is_artifact = isinstance(payload, ArtifactPayload) and payload.content_type == ARTIFACT_CONTENT_TYPE
        if isinstance(payload, ArtifactPayload) and is_artifact and not output.is_of_checkpoint:
            yield payload.sha256


def _items(run_context: RunContext, path: tuple[LoopPosition, ...]) -> tuple[tuple[str, int], ...]:
    loops = run_context.workflow.graphs.loops
    counted = [one for one in path if loops[one.loop_id].kind in ("for", "for_each")]
    return tuple((one.loop_id, one.iteration) for one in counted)
