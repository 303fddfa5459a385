"""What a run rests on: how well its steps are known, and which demanded proof was not given (PROOF-7)."""

from itertools import islice

from interlock.engine.answer.identity import RestsOn
from interlock.kernel.budgets import RECAP_NODES_MAX
from interlock.record.snapshot import Running
from interlock.service.run.context import RunContext
from interlock.service.run.evidence.verdicts import verdicts_at
from interlock.views.node_position import walk_up
from interlock.views.session import Node


def rests_on(run_context: RunContext, node: Node) -> RestsOn:
    """Return what the steps on the way to a node rest on.

    A signature counts by the signing keys of the run's context; if these are not known, none does. Only the latest
    steps are looked through for missing proof, and only if the workflow demands any.

    Raises:
        ContentDamagedError: A snapshot is missing or damaged.
    """
    claimed, observed, signed, executed = node.levels_by(run_context.signing_keys or frozenset())
    return RestsOn(
        claimed=claimed,
        observed=observed,
        signed=signed,
        executed=executed,
        imported=True if run_context.run.index < run_context.session.imported else None,
        not_proven=tuple(_not_proven(run_context, node)) or None,
    )


def _not_proven(run_context: RunContext, node: Node) -> list[str]:
    """Return the steps on the way that demand a proof and were done without one, in plan order."""
    proofs = {name: one.task.proofs for name, one in run_context.workflow.steps.items() if one.task is not None}
    wanted = {name for name, demanded in proofs.items() if demanded}
    if not wanted:
        return []
    from interlock.service.run.proofs import is_proven, started_with  # noqa: PLC0415 — few workflows demand proof

    session, inputs, mode = run_context.session, started_with(run_context), run_context.run.proofs
    missing = set[str]()
    for here in islice(walk_up(session, node), RECAP_NODES_MAX):
        if here.kind != "step" or here.parent is None:
            continue
        parent = session.nodes[here.parent]
        state = run_context.snapshot(parent).state
        assert isinstance(state, Running), "a node with a successor is not complete"
        name = state.pending.step.step_id
        if name not in wanted:
            continue
        words = {one.verdict.word for one in verdicts_at(run_context, here)}
        demanded = [one for one in proofs[name] if one.verdict is None or one.verdict in words]
        if demanded and (mode == "off" or not all(is_proven(run_context, here, one, inputs) for one in demanded)):
            missing.add(name)
    return [name for name in proofs if name in missing]
