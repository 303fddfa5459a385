"""The turns that drivers recorded in a run: a view of the artifacts `wr.turn` (TURN-8).

A record is what a driver says of itself. It is returned as it is stored, so a view of other versions reads it too.
"""

import json
from collections.abc import Iterator, Mapping
from typing import cast

from interlock.engine.request import TURN_CONTENT_TYPE
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import Digest, NodeId, RunId
from interlock.record.payloads import ArtifactPayload
from interlock.service.run.evidence.sent import stored_object
from interlock.store.ports.reader import SessionReader
from interlock.views.node_position import chain_head, walk_up
from interlock.views.session import Node, NodeOutput, Session


@frozen
class RecordedTurn:
    """A turn as it is stored: at which step node the step was pending, the event that names it, and the record.

    `is_current` says whether that node is on the path to the run's preferred tip.
    """

    step_node: NodeId
    index: int
    digest: Digest
    is_current: bool
    record: Mapping[str, Json]

    def to_json(self) -> dict[str, Json]:
        """Return the turn as commands and resources show it."""
        return {
            "stepNode": self.step_node,
            "event": self.index,
            "digest": self.digest,
            "isCurrent": self.is_current,
            "turn": dict(self.record),
        }


@frozen
class RunTurns:
    """All turns of a run, the oldest first, and the node at which its step is pending."""

    run: RunId
    pending_node: NodeId
    turns: tuple[RecordedTurn, ...]

    def to_json(self) -> dict[str, Json]:
        """Return the turns with what they sum up to."""
        turns: list[Json] = [turn.to_json() for turn in self.turns]
        return {
            "run": self.run,
            "pendingNode": self.pending_node,
            "totals": totals_of([turn.record for turn in self.turns]),
            "turns": turns,
        }


def turns_of(reader: SessionReader, session: Session, run: RunId) -> RunTurns:
    """Return the turns of a run, those of other branches too.

    Raises:
        ContentDamagedError: A record is missing or damaged.
    """
    tip = session.runs[run].tip
    assert tip is not None, "a run has a root"
    path = {node.node for node in walk_up(session, session.nodes[tip])}
    nodes = sorted((node for node in session.nodes.values() if node.run == run), key=lambda node: node.index)
    found = sorted(
        ((output.index, node, output) for node in nodes for output in node.outputs if _is_turn(output)),
        key=lambda one: one[0],
    )
    turns = tuple(_turns(reader, session, found, path))
    return RunTurns(run=run, pending_node=chain_head(session, session.nodes[tip]).node, turns=turns)


def _turns(
    reader: SessionReader, session: Session, found: list[tuple[int, Node, NodeOutput]], path: set[NodeId]
) -> Iterator[RecordedTurn]:
    for index, node, output in found:
        assert isinstance(output.payload, ArtifactPayload), "as selected"
        step_node = _step_node(session, node, output)
        yield RecordedTurn(
            step_node=step_node,
            index=index,
            digest=output.payload.sha256,
            is_current=step_node in path,
            record=stored_object(reader, output.payload.sha256),
        )


def _is_turn(output: NodeOutput) -> bool:
    return isinstance(output.payload, ArtifactPayload) and output.payload.content_type == TURN_CONTENT_TYPE


def _step_node(session: Session, node: Node, output: NodeOutput) -> NodeId:
    """Return the node at which the turn's step was pending: an accepted attempt stores its outputs on the next one."""
    is_before = not output.is_of_checkpoint and node.kind == "step" and node.parent is not None
    return chain_head(session, session.nodes[node.parent] if is_before and node.parent is not None else node).node


def totals_of(records: list[Mapping[str, Json]]) -> dict[str, Json]:
    """Return what turns sum up to: turns, tokens, money, calls of tools and errors.

    A call that was marked before it began is not a turn of its own; the record of its turn replaces the mark. A turn
    that failed has no record; what it used is in that of the next turn.
    """
    last = {_interaction(record): record for record in records}
    usages = [_object(record.get(name)) for record in last.values() for name in ("usage", "usageOfFailedTurns")]
    return {
        "turns": len(last),
        "inputTokens": sum(_count(usage.get("inputTokens")) for usage in usages),
        "outputTokens": sum(_count(usage.get("outputTokens")) for usage in usages),
        "cost": round(sum(_amount(usage.get("cost")) for usage in usages), 9),
        "toolCalls": sum(_length(record.get("tools")) for record in last.values()),
        "errors": sum(_length(record.get("errors")) for record in last.values()),
    }


def _interaction(record: Mapping[str, Json]) -> str:
    return str(_object(record.get("ids")).get("interactionId") or json.dumps(dict(record), sort_keys=True))


def _object(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else cast("dict[str, Json]", {})


def _count(value: Json) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _amount(value: Json) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def _length(value: Json) -> int:
    return len(value) if isinstance(value, list) else 0
