"""`continue_workflow`: what was given decides whether it looks (rehydrate) or acts (advance)."""

from dataclasses import dataclass, field
from pathlib import Path

from interlock.engine.answer import Answer
from interlock.engine.attempt import NOBODY_ASKED, Asking
from interlock.engine.request import Request
from interlock.kernel.errors import Refusal
from interlock.kernel.ids import WorkflowHash
from interlock.record.events import Actor
from interlock.record.tokens import AttemptRef
from interlock.service.advance import advance
from interlock.service.catalog import Pinnable
from interlock.service.person import NeedsPerson
from interlock.service.ports import Ports
from interlock.service.rehydrate import rehydrate
from interlock.service.target import Target, target_of, witness_of
from interlock.service.tokens import resolved
from interlock.views.session import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinueCommand:
    """A parsed call with at least one token; `request` is empty unless there is an `ack_token`."""

    ack_token: str | None = None
    state_token: str | None = None
    run: str | None = None
    workspace: Path | None = None
    request: Request = field(default_factory=Request)
    actor: Actor | None = None
    asking: Asking = NOBODY_ASKED


def continue_workflow(ports: Ports, command: ContinueCommand) -> Answer | Refusal | NeedsPerson:
    """Look at a node, or attempt to advance it; an attempt may wait for a person.

    Raises:
        StoreFailureError, SessionBusyError, SessionUnhealthyError, ContentDamagedError, KeyRingDamagedError:
            See `service.failures`; nothing was recorded, unless a `StoreFailureError` says that it may be.
    """
    target = _target(ports, command)
    if isinstance(target, Refusal):
        return target
    if target.attempt is None:
        return rehydrate(ports.read, target, _source_hash(ports, command, target.scene.run))
    return advance(ports, target, command.request, command.actor, command.asking)


def _source_hash(ports: Ports, command: ContinueCommand, run: Run) -> WorkflowHash | None:
    """Return what the source of a run's workflow compiles to now; None where it is gone, or does not compile."""
    entry = ports.catalog.view(command.workspace).entries.get(run.workflow_id)
    if entry is None or (entry.source.kind, entry.source.ref) != (run.source_kind, run.source_ref):
        return None
    compiled = entry.compiled
    return compiled.workflow_hash if isinstance(compiled, Pinnable) else None


def _target(ports: Ports, command: ContinueCommand) -> Target | Refusal:
    """Resolve the tokens to the one node they name together (D4)."""
    if command.ack_token is None:
        assert command.state_token is not None, "a call has a token"
        state = resolved(ports.read, command.state_token, "stateToken", command.run)
        return state if isinstance(state, Refusal) else target_of(ports.read, state, run=command.run)
    ack = resolved(ports.read, command.ack_token, "ackToken", command.run)
    if isinstance(ack, Refusal):
        return ack
    beside = witness_of(ports.read, command.state_token, "ackToken", command.run)
    if isinstance(beside, Refusal):
        return beside
    assert isinstance(ack, AttemptRef), "an ackToken resolves to an attempt"
    return target_of(ports.read, ack, beside=beside, run=command.run)
