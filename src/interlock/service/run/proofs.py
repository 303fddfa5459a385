"""Reads from the log what the proofs of a step are judged by, and the working tree for them (PROOF-2, PROOF-3)."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from interlock.define.parts import Proof
from interlock.engine.judge.proof import UNKNOWN, ProofContext, Receipt, ReceiptPlace, argv_digest, argv_of, command_of
from interlock.engine.judge.proof import witness_line as line_of
from interlock.kernel.budgets import (
    RECAP_NODES_MAX,
)
from interlock.kernel.budgets.workflow import (
    RECEIPTS_COMPARED_MAX,
)
from interlock.kernel.ids import NodeId
from interlock.plan.records import Task
from interlock.record.content import REDACTED
from interlock.record.context import Context
from interlock.record.world import RECEIPT, TREE, EventReceived
from interlock.service.run.context import RunContext
from interlock.store.ports.workspace import WorkTree
from interlock.views.node_position import chain_head, walk_up
from interlock.views.outside import Received, level_of
from interlock.views.session import Node
from interlock.views.summary import path_digest


def proof_context(run_context: RunContext, node: Node, task: Task) -> ProofContext:
    """Return what the proofs of a pending step are judged by. A step without proofs reads nothing."""
    if not task.proofs:
        return ProofContext()
    session, run = run_context.session, run_context.run
    head = chain_head(session, node)
    tree = next(_of_node(run_context, head, TREE), None)
    return ProofContext(
        label=session.label(run.run),
        mode=run.proofs,
        inputs=started_with(run_context),
        receipts=tuple(_receipts(run_context, head)),
        tree=str(tree.data.fields["tree"]) if tree is not None else None,
    )


def started_with(run_context: RunContext) -> Context:
    """Return the context with which a run was started; what was sent later does not change it."""
    root = run_context.run.root
    return run_context.session.context(root) if root is not None else {}


def is_proven(run_context: RunContext, made: Node, proof: Proof, inputs: Context) -> bool:
    """Say whether the advance to a node took a receipt that proves this, by its command and how it ended.

    A redaction leaves of a command that held its value no more than that it was redacted.
    """
    command = command_of(proof, inputs)
    assert made.parent is not None, "an advance made the node"
    if command is None:
        return False
    parent = run_context.session.nodes[made.parent]
    argv = REDACTED if REDACTED in command else argv_digest(argv_of(command))
    return any(
        one.data.fields["argv"] == argv and one.data.fields["exit"] == proof.exit
        for one in _of_node(run_context, chain_head(run_context.session, parent), RECEIPT)
        if one.event_id in made.taken and one.event_id not in parent.taken
    )


def proof_lines(run_context: RunContext, task: Task) -> Iterator[tuple[str, Proof]]:
    """Yield each command line that makes a receipt which a step demands, and the proof that it is for."""
    if not task.proofs or run_context.run.proofs == "off":
        return
    inputs, label = started_with(run_context), run_context.session.label(run_context.run.run)
    for proof in task.proofs:
        command = command_of(proof, inputs)
        if command is not None:
            yield line_of(label, command), proof


def tree_now(read: Callable[[Path], WorkTree], run_context: RunContext, node: Node) -> WorkTree | None:
    """Read the working tree of the newest receipt of a step, if a proof of the step demands that it is unchanged.

    Raises:
        ContentDamagedError: The node's snapshot is missing or damaged.
    """
    pending = run_context.pending(node)
    task = run_context.workflow.steps[pending.step_id].task if pending is not None else None
    if task is None or run_context.run.proofs == "off" or all(one.tree is None for one in task.proofs):
        return None
    head = chain_head(run_context.session, node)
    for one in _of_node(run_context, head, RECEIPT):
        root = one.data.fields.get("root")
        if isinstance(root, str) and _is_of_workspace(run_context, one):
            return read(Path(root))
    return None


def tree_record(run_context: RunContext, node: Node, tree: WorkTree) -> tuple[EventReceived, NodeId] | None:
    """Return the record that the tree is this now, with its node; None if the last record of the step says so."""
    head = chain_head(run_context.session, node)
    known = list(_of_node(run_context, head, TREE))
    digest = tree.digest or UNKNOWN
    if known and known[0].data.fields["tree"] == digest:
        return None
    record = EventReceived(
        event=TREE,
        sent_id=f"{head.node}.{len(known) + 1}",
        fields={"tree": digest},
        assurance="executed",
        via="check",
    )
    return record, head.node


def _of_node(run_context: RunContext, head: Node, kind: str) -> Iterator[Received]:
    """Yield the events of a kind about a node, the newest first. Events before the node are not looked at."""
    for one in run_context.session.outside.latest(run_context.run.run, kind):
        if one.index < head.index:
            return
        if one.node == head.node:
            yield one


def _receipts(run_context: RunContext, head: Node) -> Iterator[Receipt]:
    """Yield the receipts of the step; if it has none, the latest ones elsewhere, which say why."""
    own = [_receipt(run_context, one, "here") for one in _of_node(run_context, head, RECEIPT)]
    yield from own or islice(_elsewhere(run_context, head), RECEIPTS_COMPARED_MAX)


def _elsewhere(run_context: RunContext, head: Node) -> Iterator[Receipt]:
    session, here = run_context.session, run_context.run.run
    above = {one.node: one.index for one in islice(walk_up(session, head), RECAP_NODES_MAX)}
    lowest = min(above.values())
    for one in session.outside.latest(here, RECEIPT):
        is_above = one.node in above or one.index < lowest
        yield _receipt(run_context, one, "earlier" if is_above else "branch")
    for run in session.runs:
        if run != here:
            yield from (_receipt(run_context, one, "run") for one in session.outside.latest(run, RECEIPT))


def _receipt(run_context: RunContext, received: Received, place: ReceiptPlace) -> Receipt:
    fields, code = received.data.fields, received.data.fields["exit"]
    assert isinstance(code, int), "a receipt has an exit code"
    return Receipt(
        event_id=received.event_id,
        place=place,
        argv=str(fields["argv"]),
        command=str(fields["command"]),
        exit=code,
        tree=str(fields["tree"]),
        assurance=level_of(received, run_context.session.trusted_from, run_context.signing_keys),
        is_of_workspace=_is_of_workspace(run_context, received),
    )


def _is_of_workspace(run_context: RunContext, received: Received) -> bool:
    """Say whether a receipt is of the place in which the run was started, as far as both are known.

    The place is the repository, or without one the workspace with every directory below it.
    """
    fields, observed = received.data.fields, partial(run_context.session.observed, run_context.run.run)
    repository, workspace = observed("repo_root_hash"), observed("workspace_hash")
    if REDACTED in (repository, workspace) or (repository, workspace) == (None, None):
        return True
    root, directory = fields.get("root"), Path(str(fields["directory"]))
    is_of_repository = isinstance(root, str) and path_digest(root) == repository
    return is_of_repository or workspace in [path_digest(str(one)) for one in (directory, *directory.parents)]
