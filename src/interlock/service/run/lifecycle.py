"""Reads what the lifecycle and the executions of a run are derived from: pinned plan, captures and snapshots."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from interlock.kernel.canonical import Json
from interlock.kernel.ids import Digest
from interlock.service.run.context import RunContext
from interlock.service.run.evidence.sent import stored_object
from interlock.store.ports.errors import ContentDamagedError
from interlock.store.ports.reader import SessionReader
from interlock.views.lifecycle.projection import Lifecycle, Sources, lifecycle_of
from interlock.views.session import Node, Session

if TYPE_CHECKING:
    from interlock.views.executions.projection import Executions, Recorded


def read_lifecycle(reader: SessionReader, run_context: RunContext, tip: Node) -> Lifecycle:
    """Return the lifecycle of a branch of a run, to a node of it.

    Raises:
        ContentDamagedError: A snapshot is needed that is missing or damaged.
    """

    def capture(digest: Digest) -> Mapping[str, Json] | None:
        try:
            return stored_object(reader, digest)
        except ContentDamagedError:
            return None

    sources = Sources(capture=capture, snapshot=run_context.loaded_snapshot)
    return lifecycle_of(run_context.session, tip, run_context.workflow, sources)


def read_facts(reader: SessionReader, session: Session) -> "tuple[Recorded, ...]":
    """Return when each event of a session was recorded, and by whom."""
    from interlock.views.executions.projection import recorded_facts  # noqa: PLC0415 — a lifecycle needs no executions

    return recorded_facts(event for part in reader.history(session.session) for event in part)


def read_executions(
    reader: SessionReader, run_context: RunContext, tip: Node, facts: "tuple[Recorded, ...] | None" = None
) -> "Executions":
    """Return the executions of a branch of a run, to a node of it. `facts` are those of the session, if they were read.

    Raises:
        ContentDamagedError: A snapshot is needed that is missing or damaged.
    """
    from interlock.views.executions.projection import project_executions  # noqa: PLC0415 — see `read_facts`

    session = run_context.session
    facts = facts if facts is not None else read_facts(reader, session)
    lifecycle = read_lifecycle(reader, run_context, tip)
    return project_executions(session, run_context.run, run_context.workflow, lifecycle, facts)
