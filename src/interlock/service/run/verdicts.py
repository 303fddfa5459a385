"""The verdicts that the evidence of a run states (EVD-2)."""

from collections.abc import Iterator
from itertools import islice

from interlock.engine.request import ARTIFACT_CONTENT_TYPE
from interlock.kernel.budgets import RECAP_NODES_MAX
from interlock.kernel.ids import Digest
from interlock.record.payloads import ArtifactPayload
from interlock.record.snapshot import LoopPosition, Running
from interlock.service.run.context import RunContext
from interlock.store.ports.errors import ContentDamagedError
from interlock.views.node_position import chain_head, walk_up
from interlock.views.session import Node
from interlock.views.verdicts import Standing, StepVerdict, in_effect, worst_standing


def run_standing(run_context: RunContext, tip: Node) -> Standing | None:
    """Return the worst verdict in effect on the path to a node; None if no step states one.

    Only the latest steps are read, as many as a recap reads: the cost must not grow with the run.

    Raises:
        ContentDamagedError: A snapshot is missing or damaged.
    """
    latest = list(islice(walk_up(run_context.session, tip), RECAP_NODES_MAX))
    found = [verdict for node in reversed(latest) for verdict in verdicts_at(run_context, node)]
    return worst_standing(one.verdict.standing for one in in_effect(found, run_context.workflow.graphs.parallel_to))


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
            parent = chain_head(run_context.session, run_context.session.nodes[node.parent])
            state = run_context.snapshot(parent).state
            assert isinstance(state, Running), "a node with a successor is not complete"
            step = state.pending.step
            items = _items(run_context, step.loop_path)
            yield StepVerdict(verdict=verdict, node=node.node, step_id=step.step_id, items=items)


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
