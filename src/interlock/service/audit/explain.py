"""Explain why a run is at a node, from the captured record of what its decisions read (TRACE-3)."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import msgspec

from interlock.decide.condition import describe_condition
from interlock.engine.published import Published
from interlock.engine.walk.trace import GOES_ON, LEAVES
from interlock.kernel.canonical import Json
from interlock.kernel.ids import NodeId, SessionId
from interlock.plan.compiled import CompiledWorkflow
from interlock.service.run.context import load_run_context
from interlock.service.run.evidence.sent import stored_object
from interlock.service.run.plans import Plans
from interlock.store.ports.reader import SessionReader
from interlock.views.node_position import refusal_of
from interlock.views.session import Node, Session
from interlock.views.timeline import is_cut


class Explanation(Published):
    """Why a run is at a node.

    `decisions` are those of the call that led there, in order: the condition in words, the values it read, its result
    and the branch taken. `record` holds the same as data.
    """

    session: SessionId
    node: NodeId
    title: str
    refusal: tuple[str, ...] = msgspec.field(name="refused")
    decisions: tuple[str, ...] = msgspec.field(name="decided")
    effects: tuple[str, ...] = msgspec.field(name="set")
    gaps: tuple[str, ...]
    reasons: tuple[str, ...]
    record: dict[str, Json] = msgspec.field(name="capture")


def explain(reader: SessionReader, plans: Plans, session: Session, node: Node) -> Explanation:
    """Explain why a run is at a node.

    Raises:
        ContentDamagedError: The captured record, the snapshot or the pinned workflow is missing or damaged.
    """
    run_context = load_run_context(session, session.runs[node.run], plans)
    captures = [stored_object(reader, digest) for digest in node.captures]
    decisions = [one for capture in captures for one in _objects(capture, "decisions")]
    refusal = refusal_of(session, node)
    return Explanation(
        session=session.session,
        node=node.node,
        title=run_context.title(node),
        decisions=tuple(_decision(run_context.workflow, one) for one in decisions),
        effects=tuple(_effects(captures)),
        reasons=tuple(f"{entry.summary} (cut)" if is_cut(entry) else entry.summary for entry in node.trace),
        refusal=tuple(f"{one.code}: {one.message}" for one in refusal.blockers) if refusal is not None else (),
        gaps=tuple(gap.summary for gap in node.gaps),
        record=captures[0] if captures else {},
    )


def _effects(captures: Sequence[Mapping[str, Json]]) -> Iterator[str]:
    """Yield what the step set, then the actions without effect, with their outcomes."""
    yield from (f"`{one['key']}` = {_value(one)}" for capture in captures for one in _objects(capture, "effects"))
    outcomes = [one for capture in captures for one in _objects(capture, "outcomes")]
    yield from (f"`{one['key']}` was not set: {one['kind']}" for one in outcomes if one["kind"] != "completed")


def _objects(capture: Mapping[str, Json], name: str) -> Iterator[dict[str, Json]]:
    listed = capture.get(name)
    for one in listed if isinstance(listed, list) else []:
        if isinstance(one, dict):
            yield one


def _decision(workflow: CompiledWorkflow, one: Mapping[str, Json]) -> str:
    """Return one decision in words: its place, loop passes, condition, inputs, result and branch taken."""
    passes = "".join(f", pass {_number(frame) + 1} of `{frame['loopId']}`" for frame in _objects(one, "passes"))
    condition = workflow.graphs.conditions.get(str(one.get("conditionId")))
    asked = describe_condition(condition) if condition is not None else "one more pass"
    read = [f"`{value['path']}` = {_value(value)}" for value in _objects(one, "read")]
    verdict = {True: "holds", False: "does not hold", None: "could not be decided"}[cast("bool | None", one["verdict"])]
    way = _way(workflow, one.get("took"))
    return f"`{one['at']}`{passes}: {asked} [{', '.join(read) or 'nothing read'}] {verdict}{way}"


def _way(workflow: CompiledWorkflow, took: Json) -> str:
    if took is None:
        return ""
    if took in (GOES_ON, LEAVES):
        return " → the loop continues" if took == GOES_ON else " → the loop ends"
    edge = next((edge for edge in workflow.plan.edges if edge.edge_id == took), None)
    return f" → `{edge.target if edge is not None else took}`"


def _number(frame: Mapping[str, Json]) -> int:
    return int(cast("int", frame["iteration"]))


def _value(captured: Mapping[str, Json]) -> str:
    if "value" in captured:
        return json.dumps(captured["value"], ensure_ascii=False)
    return f"{captured['bytes']} bytes of {captured['digest']}"
