"""`continue_workflow`: the token decides whether it shows a node (rehydrate) or attempts to advance it."""

from dataclasses import field
from pathlib import Path

from interlock.engine.answer.model import Answer, HumanInputRequired
from interlock.engine.request import Request
from interlock.kernel.errors import Refusal
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import WorkflowHash
from interlock.record.events import Actor
from interlock.service.outside.checks import begin_check
from interlock.service.ports import Ports
from interlock.service.tokens.resolve import SentTokens
from interlock.service.tools.advance import advance
from interlock.service.tools.check_result import record_lost_run
from interlock.service.tools.rehydrate import rehydrate
from interlock.service.tools.target import Target, load_target
from interlock.service.tools.warnings import SourceRemoved
from interlock.service.workflows.catalog import Pinnable
from interlock.views.session import Run


@frozen
class ContinueCommand:
    """A parsed call; `request` is empty unless there is an `ackToken`."""

    tokens: SentTokens
    workspace: Path | None = None
    request: Request = field(default_factory=Request)
    actor: Actor | None = None


def continue_workflow(ports: Ports, command: ContinueCommand) -> Answer | Refusal | HumanInputRequired:
    """Show a node, or attempt to advance it; an attempt may need a person's answer.

    Raises:
        StoreFailureError, SessionBusyError, SessionUnhealthyError, ContentDamagedError, KeyRingDamagedError:
            See `service.failures`; nothing was recorded, unless a `StoreFailureError` says that it may be.
    """
    target = load_target(ports.read, command.tokens)
    if isinstance(target, Target) and target.attempt is not None and record_lost_run(ports, target.run_context):
        target = load_target(ports.read, command.tokens)
    if isinstance(target, Refusal):
        return target
    target = replace(target, run_context=replace(target.run_context, signing_keys=ports.signing_keys))
    if target.attempt is None:
        source = _find_source(ports, command, target.run_context.run)
        target = replace(target, run_context=replace(target.run_context, now_ms=ports.clock.unix_ms()))
        return rehydrate(ports.read, target, command.request.asking, source)
    outcome = advance(ports, target, command.request, command.actor, command.workspace)
    return begin_check(ports, target.run_context, target.node, outcome)


def _find_source(ports: Ports, command: ContinueCommand, run: Run) -> WorkflowHash | SourceRemoved | None:
    """Return the hash of the workflow's current source, or that it is gone; None if it does not compile."""
    view = ports.catalog.view(command.workspace)
    entry = view.startable(run.workflow_id)
    if entry is None or (entry.source.kind, entry.source.ref) != (run.source_kind, run.source_ref):
        return None if view.holds(run.source_kind, run.source_ref) else SourceRemoved()
    compiled = entry.compiled
    return compiled.workflow_hash if isinstance(compiled, Pinnable) else None
