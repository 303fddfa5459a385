"""Plans a checkpoint: a bookmark of a node, and the agent's notes and artifacts so far. Pure."""

from interlock.engine.ends import work_in
from interlock.engine.event_drafts import artifact_drafts, notes_draft, on_node
from interlock.engine.request import Request
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import (
    AttemptId,
    NodeId,
    OutputId,
    RunId,
    SessionId,
    SnapshotRef,
    WorkflowHash,
    node_of_attempt,
)
from interlock.record import payloads as data
from interlock.record.append_plan import AppendPlan, EventDraft, PlannedEdge


@frozen
class Checkpoint:
    """A checkpoint that is to be made of a node. `supersedes` are the notes of the node's last one, if it had any."""

    session: SessionId
    run: RunId
    node: NodeId
    attempt: AttemptId
    workflow_hash: WorkflowHash
    snapshot: SnapshotRef
    request: Request
    supersedes: OutputId | None = None


def plan_checkpoint(checkpoint: Checkpoint) -> AppendPlan:
    """Return the plan of a checkpoint: a node with its parent's state, and outputs on that parent (CHK-1, END-7).

    The run's tip, the pending step and every token stay unchanged.
    """
    run, node, attempt = checkpoint.run, checkpoint.node, checkpoint.attempt
    made = node_of_attempt(attempt)
    created = data.NodeCreated(
        node_kind="checkpoint",
        parent_node_id=node,
        workflow_hash=checkpoint.workflow_hash,
        snapshot_ref=checkpoint.snapshot,
        request_digest=checkpoint.request.digest(),
    )
    edge = PlannedEdge(
        edge_kind="checkpoint", from_node=node, to_node=made, cause="checkpoint_created", cause_position=0
    )
    work, request = work_in(checkpoint.request)
    outputs = request.stored_artifacts()
    drafts = [
        EventDraft(data=created, run=run, node=made),
        EventDraft(data=edge, run=run),
        *notes_draft(attempt, request, run=run, node=node, supersedes=checkpoint.supersedes),
        *artifact_drafts(attempt, outputs, run=run, node=node),
        *on_node(run, made, [work] if work is not None else []),
    ]
    files = tuple((one.digest, one.data) for one in outputs)
    return AppendPlan(session=checkpoint.session, drafts=tuple(drafts), artifacts=files)
