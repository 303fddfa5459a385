"""The decider of a recorded walk: repeats the decisions of a capture, and evaluates nothing (WALK-9)."""

from collections.abc import Mapping, Sequence
from typing import cast

from interlock.decide.evaluate import Undecided
from interlock.engine.walk.flow import ContextAt, Decider, Move, Suspended, Truth, Walk, WalkResult
from interlock.engine.walk.trace import DecisionPoint
from interlock.kernel.canonical import Json
from interlock.kernel.errors import InterlockError
from interlock.kernel.frozen import frozen
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.records import Loop
from interlock.plan.walk import ExecutionState
from interlock.record.context import Context

_UNDECIDED = Undecided(path=None, found="recorded as undecided", expected="a value")


@frozen
class Repeated:
    """The moves of a recorded walk.

    `result` is the walk's end. It is None if the capture left out decisions (`is_left_out`) or does not fit the plan;
    then `moves` are those up to that place.
    """

    moves: tuple[Move, ...]
    result: WalkResult | None
    is_left_out: bool = False


def repeat_walk(
    workflow: CompiledWorkflow,
    marks: ExecutionState,
    at: ContextAt,
    capture: Mapping[str, Json] | None,
) -> Repeated:
    """Walk on with recorded decisions. Changes `marks`.

    `at` is the node to which the walk led: the items of a list come from its context. A walk without decisions has no
    capture.
    """
    decider = _Recorded(capture or {})
    walk = Walk(graphs=workflow.graphs, marks=marks, at=at, decider=decider, never_stops=True)
    try:
        result = walk.run()
    except _DecisionMissingError:
        result = None
    assert not isinstance(result, Suspended), "a walk that never stops is never suspended"
    is_left_out = result is None and decider.has_left_out
    return Repeated(moves=tuple(walk.moves), result=result, is_left_out=is_left_out)


class _DecisionMissingError(InterlockError):
    """The next recorded decision is left out, or is another one."""


class _Recorded(Decider):
    def __init__(self, capture: Mapping[str, Json]) -> None:
        self._left = iter(cast("Sequence[Mapping[str, Json]]", capture.get("decisions", ())))
        self.has_left_out = bool(capture.get("leftOut"))

    def holds(self, point: DecisionPoint, condition_id: str, seen: Context) -> Truth:
        del seen
        return self._next(point, condition_id)

    def has_pass(self, point: DecisionPoint, loop: Loop, outer: Context) -> Truth:
        del loop, outer
        return self._next(point, None)

    def has_first_pass(self, point: DecisionPoint) -> None:
        self._next(point, None)

    def _next(self, point: DecisionPoint, condition_id: str | None) -> Truth:
        recorded = next(self._left, None)
        if recorded is None or not _is_of(recorded, point, condition_id):
            raise _DecisionMissingError
        verdict = recorded.get("verdict")
        return verdict if isinstance(verdict, bool) else _UNDECIDED


def _is_of(recorded: Mapping[str, Json], point: DecisionPoint, condition_id: str | None) -> bool:
    """Say whether a recorded decision is the one of this place."""
    passes = cast("Sequence[Mapping[str, Json]]", recorded.get("passes", ()))
    return (
        recorded.get("at") == point.node_id
        and recorded.get("conditionId") == condition_id
        and [(one.get("loopId"), one.get("iteration")) for one in passes]
        == [(frame.loop_id, frame.iteration) for frame in point.frames]
    )
