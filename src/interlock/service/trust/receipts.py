"""Records that a command was run, as `interlock witness` saw it: a receipt (PROOF-1, PROOF-2)."""

import shlex
from typing import cast

from interlock.engine.judge.proof import argv_digest
from interlock.kernel.budgets import (
    CHECK_COMMAND_BYTES_MAX,
    EVENT_FIELDS_BYTES_MAX,
)
from interlock.kernel.budgets.workflow import (
    CLAIMED_RECEIPTS_MAX,
    RECEIPT_DIRECTORY_BYTES_MAX,
    RECEIPT_PATH_BYTES_MAX,
    RECEIPT_ROOT_BYTES_MAX,
    RECEIPTS_PER_RUN_MAX,
)
from interlock.kernel.canonical import Json, NotCanonicalError, canonical_bytes
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import Digest, NodeId, RunId, SessionId
from interlock.kernel.text import one_line
from interlock.record.events import Actor
from interlock.record.world import RECEIPT, EventReceived, Fields
from interlock.service.outside.receive import Arrival, Intake, append_intake, free_id, hold_run, take_in
from interlock.service.ports import AppendPorts
from interlock.service.run.context import RunContext
from interlock.service.tools.end_run import refuse_ended
from interlock.store.ports.workspace import WorkTree
from interlock.views.node_position import chain_head


@frozen
class CommandSeen:
    """A command that ran, and how it ended. `exit` is negative after a signal; `output` is the end of its output.

    `program` is the file that ran, as far as it is known; `before` and `after` are the working tree around `directory`.
    """

    argv: tuple[str, ...]
    program: str | None
    directory: str
    exit: int
    seconds: float
    output: str
    digest: Digest
    before: WorkTree
    after: WorkTree


@frozen
class ReceiptReport:
    """A receipt that was recorded, with the title of the step that it is about."""

    label: str
    title: str
    receipt: EventReceived


def pending_node(run_context: RunContext) -> NodeId | Refusal:
    """Return the node about which a receipt is that begins now, or why there is none."""
    tip = run_context.run.tip
    assert tip is not None, "a run has a root"
    refusal = refuse_ended(run_context)
    if refusal is not None:
        return refusal
    node = run_context.session.nodes[tip]
    if run_context.pending(node) is None:
        return _refused(run_context, "It is complete: no step of it needs a receipt.", "Name another run.")
    return chain_head(run_context.session, node).node


def record_receipt(
    ports: AppendPorts, where: tuple[SessionId, RunId, NodeId], seen: CommandSeen, how: Arrival, actor: Actor
) -> ReceiptReport | Refusal:
    """Record that a command ran while the step of a node was pending. It advances nothing.

    Raises:
        StoreFailureError, SessionBusyError, SessionUnhealthyError, ContentDamagedError:
            See `service.failures`.
    """
    session_id, run_id, node = where
    with hold_run(ports, (session_id, run_id)) as held:
        if isinstance(held, Refusal):
            return held
        run_context = held.run_context
        refusal = refuse_ended(run_context) or _full(run_context, how)
        if refusal is not None:
            return refusal
        receipt, nothing = _record(run_context, node, seen, how), Intake(session=run_context.session)
        intake = take_in(ports, nothing, run_context, (receipt, node), actor)
        if isinstance(intake, Refusal):
            return intake
        # Nothing that can fail follows the append.
        title = run_context.title(run_context.session.nodes[node])
        append_intake(ports, held.lock, intake, actor)
    return ReceiptReport(label=run_context.view().label, title=title, receipt=receipt)


def _full(run_context: RunContext, how: Arrival) -> Refusal | None:
    """Refuse a receipt if its run has too many."""
    outside, run = run_context.session.outside, run_context.run.run
    known, known_max, what = outside.count(run, RECEIPT), RECEIPTS_PER_RUN_MAX, "receipts"
    if how.assurance == "claimed":
        # Claims have a share of their own, so that they cannot keep out what is known better.
        known = sum(one.data.assurance == "claimed" for one in outside.latest(run, RECEIPT))
        known_max, what = CLAIMED_RECEIPTS_MAX, "claimed receipts"
    if known < known_max:
        return None
    return _refused(run_context, f"It has {known} {what}, which is the limit.", "Begin a new run.")


def _record(run_context: RunContext, node: NodeId, seen: CommandSeen, how: Arrival) -> EventReceived:
    number = run_context.session.outside.count(run_context.run.run, RECEIPT) + 1
    trees = {"commit": seen.after.commit, "treeBefore": seen.before.digest, "tree": seen.after.digest}
    fields: Fields = {
        "argv": argv_digest(seen.argv),
        "command": one_line(shlex.join(seen.argv), CHECK_COMMAND_BYTES_MAX),
        "digest": seen.digest,
        "exit": seen.exit,
        "seconds": seen.seconds,
        "directory": _whole_path(seen.directory, RECEIPT_DIRECTORY_BYTES_MAX),
        **({"program": one_line(seen.program, RECEIPT_PATH_BYTES_MAX)} if seen.program is not None else {}),
        **{name: value if value is not None else "unknown" for name, value in trees.items()},
        **({"root": _whole_path(seen.after.root, RECEIPT_ROOT_BYTES_MAX)} if seen.after.root is not None else {}),
    }
    room = EVENT_FIELDS_BYTES_MAX - len(canonical_bytes(cast("Json", fields | {"output": ""})))
    fields["output"] = _end(seen.output, room)
    return EventReceived(
        event=RECEIPT,
        sent_id=free_id(run_context, RECEIPT, node, number),
        fields=fields,
        assurance=how.assurance,
        via=how.via,
    )


def _whole_path(path: str, bytes_max: int) -> str:
    """Return a path as it is: the workspace is known by it, and the tree of a repository is read there (PROOF-3).

    A path that is no text, or has so many control characters that it does not fit, is only shown.
    """
    try:
        is_whole = len(canonical_bytes(path)) <= bytes_max
    except NotCanonicalError:
        is_whole = False
    return path if is_whole else one_line(path, RECEIPT_PATH_BYTES_MAX)


def _end(text: str, bytes_max: int) -> str:
    """Return the end of a text that fits as JSON."""
    while len(canonical_bytes(text)) > bytes_max:
        text = text[len(text) // 8 + 1 :]
    return text


def _refused(run_context: RunContext, found: str, fix: str) -> Refusal:
    view = run_context.view()
    return Refusal(
        code=ErrorCode.VALIDATION_ERROR,
        message=f"Run `{view.label}` ({view.workflow_id}): {found} Nothing was recorded.",
        suggestion=fix,
        details={"run": view.to_json()},
    )
