"""How well an event must be known for a step to take it, and how it is sent so (WORLD-4)."""

import json
from typing import assert_never

from interlock.define.parts import AwaitEvent
from interlock.kernel.ids import RunId
from interlock.plan.compiled import CompiledWorkflow
from interlock.record.world import ASSURANCES, EXPIRED, Assurance, Signed
from interlock.service.run.attempts import pending_task
from interlock.service.run.context import RunContext
from interlock.views.node_position import chain_head
from interlock.views.outside import Received, level_of
from interlock.views.session import Node


def how_to_send(awaits: AwaitEvent, label: str, run: RunId) -> str:
    """Say who sends the event of a step so that the step takes it, and with which command."""
    send = f"interlock event send {awaits.event} --run {label} --id ID"
    declared = {name: f"<{kind}>" for name, kind in sorted(awaits.fields.items())}
    fields = f" --fields '{json.dumps(declared)}'" if declared else ""
    match awaits.assurance:
        case "claimed":
            return f"a person or CI sends it with `{send}{fields}`"
        case "observed":
            return f"a person sends it with `{send}{fields}` in a terminal of their own, or a channel answers with it"
        case "signed":
            sign = f"interlock event sign {awaits.event} --run {run} --id ID{fields} --sign KEYFILE"
            return f"a source of the user's `config.toml` signs it with `{sign}`, and `{send} --signed FILE` sends it"
        case "executed":
            return "Interlock itself records it"
        case _:
            assert_never(awaits.assurance)


def unknown_key_words(signer: Signed) -> str:
    """Say that a signature does not count here because of its key, and who can change that (WORLD-10)."""
    return (
        f"An event that {json.dumps(signer.source)} signed is recorded, but its key {signer.public_key} is not"
        " configured here. Only the user can add it to `config.toml`, if the user trusts it."
    )


def weaker_level(run_context: RunContext, node: Node) -> Assurance | None:
    """Return the best level of the recorded events that the step of a node cannot take, because it demands more.

    Raises:
        ContentDamagedError: The node's snapshot is missing or damaged.
    """
    awaits = pending_task(run_context, node).awaits
    if awaits is None:
        return None
    here = chain_head(run_context.session, node).node
    recorded = run_context.session.outside.received(node.run, awaits.event)
    trusted_from, keys = run_context.session.trusted_from, run_context.signing_keys
    free = [one for one in recorded if one.node in (None, here) and one.event_id not in node.taken]
    levels: set[Assurance] = {level_of(one, trusted_from, keys) for one in free}
    weaker: list[Assurance] = [one for one in ASSURANCES if one in levels and is_below(one, awaits.assurance)]
    return weaker[-1] if weaker else None


def is_too_late(run_context: RunContext, node: Node, event: Received) -> bool:
    """Say whether an event came after its step had waited too long, on the branch of a node, and no step takes it now.

    Raises:
        ContentDamagedError: A snapshot is missing or damaged.
    """
    if event.event_id in node.taken or _awaits(run_context, node, event.data.event):
        return False
    session = run_context.session
    passed = [one for one in session.outside.received(node.run, EXPIRED) if one.event_id in node.taken]
    nodes = [session.nodes[one.node] for one in passed if one.node is not None and one.index < event.index]
    return any(_awaits(run_context, one, event.data.event) for one in nodes)


def _awaits(run_context: RunContext, node: Node, kind: str) -> bool:
    """Say whether the step that is pending at a node waits for events of a kind."""
    awaits = pending_task(run_context, node).awaits if run_context.pending(node) is not None else None
    return awaits is not None and awaits.event == kind


def unmet_demand(workflow: CompiledWorkflow, event: str, level: Assurance) -> AwaitEvent | None:
    """Return what the least demanding step waits for, if no step takes an event of this kind and level."""
    tasks = (node.task for node in workflow.steps.values() if node.task is not None)
    found = [one.awaits for one in tasks if one.awaits is not None and one.awaits.event == event]
    least = min(found, key=lambda one: ASSURANCES.index(one.assurance), default=None)
    return least if least is not None and is_below(level, least.assurance) else None


def is_below(level: Assurance, demanded: Assurance) -> bool:
    """Say whether a level is not enough."""
    return ASSURANCES.index(level) < ASSURANCES.index(demanded)
