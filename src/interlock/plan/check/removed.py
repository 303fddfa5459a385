"""Checks what is decided right after a step that removes a context key: no call comes in between that could send it."""

from collections.abc import Iterable, Iterator
from dataclasses import field
from functools import reduce
from typing import NamedTuple, TypeAlias

from interlock.decide.condition import AllOf, Always, AnyOf, Compare, Condition, LoopControl, Not
from interlock.decide.evaluate import ConditionInputs, Undecided, Verdict, combine_verdicts, evaluate
from interlock.decide.value import Given, Value
from interlock.define import document as doc
from interlock.define.diagnostics import Diagnostic, fault
from interlock.kernel.budgets.workflow import STEPS_FOLLOWED_MAX
from interlock.kernel.frozen import mutable
from interlock.plan.check.reads import loop_variables, read_paths

_Results: TypeAlias = frozenset[Verdict]
"""The possible results of a condition."""
_ANY: _Results = frozenset({True, False})
_HOLDS: _Results = frozenset({True})


class _Place(NamedTuple):
    """A place in a document: the steps that follow, the loop whose body they end, and the place after them."""

    steps: tuple[doc.Step, ...]
    loop: doc.LoopStep | None = None
    outer: "_Place | None" = None


def check_removed(steps: tuple[doc.Step, ...]) -> Iterator[Diagnostic]:
    """Yield a fault for each decision that needs a key which the step right before it removes (WALK-4)."""
    yield from _check(_Place(steps))


def _check(place: _Place) -> Iterator[Diagnostic]:
    for number, step in enumerate(place.steps):
        after = _Place(place.steps[number + 1 :], place.loop, place.outer)
        if isinstance(step, doc.AgentStep):
            removed = _removed(step)
            found = _Following(removed).follow(after) if removed else ()
            for at, key in dict.fromkeys(found):
                message = f"The step {step.id!r}, which is done right before this is decided, removes {key!r}."
                fix = f"Give {key!r} a value in {step.id!r}, or do not read it here."
                yield fault(at, "wrong_value", message, fix)
        for inner in _inside(step, after):
            yield from _check(inner)


def _removed(step: doc.AgentStep) -> frozenset[str]:
    last = {action.key: action for action in step.sets}
    return frozenset(key for key, action in last.items() if action.when is None and _is_null(action.payload))


def _is_null(value: Value) -> bool:
    return isinstance(value, Given) and value.value is None


def _inside(step: doc.Step, after: _Place) -> Iterator[_Place]:
    """Yield the places at which the sequences inside a step begin. What follows a branch of several is not certain."""
    match step:
        case doc.LoopStep():
            yield _Place(step.body, step, after)
        case doc.ParallelStep():
            yield from map(_Place, step.branches)
        case doc.ChoiceStep():
            yield from (_Place(branch.steps, outer=after) for branch in step.branches)
            yield _Place(step.otherwise or (), outer=after)
        case doc.AgentStep() | doc.TemplateStep():
            return


@mutable
class _Following:
    """Follows every way from a step up to the next steps of an agent, with some keys removed."""

    removed: frozenset[str]
    seen: set[str] = field(default_factory=set[str])

    def follow(self, place: _Place | None) -> Iterator[tuple[str, str]]:
        """Yield the place of each decision that cannot be made, and the removed key that it needs."""
        while place is not None and not place.steps:
            if place.loop is not None:
                lost = [*self._after_pass(place.loop)]
                yield from lost
                if lost:
                    return
            place = place.outer
        if place is None:
            return
        step, rest = place.steps[0], _Place(place.steps[1:], place.loop, place.outer)
        if step.at in self.seen or len(self.seen) >= STEPS_FOLLOWED_MAX:
            return
        self.seen.add(step.at)
        entered = self.results(step.when)
        if lost := _lost(step.when, entered):
            yield lost
            return
        if True in entered:
            yield from self._enter(step, rest)
        if False in entered:
            yield from self.follow(rest)

    def _enter(self, step: doc.Step, rest: _Place) -> Iterator[tuple[str, str]]:
        lost = [*self._paths(step)]
        yield from lost
        if lost:
            return
        match step:
            case doc.ChoiceStep():
                yield from self._choose(step, rest)
            case doc.LoopStep():
                yield from self._begin(step, rest)
            case doc.ParallelStep():
                yield from self.follow(_Place(step.branches[0]))
            case doc.AgentStep() | doc.TemplateStep():
                return

    def _paths(self, step: doc.Step) -> Iterator[tuple[str, str]]:
        """Yield the paths that a step needs to be reached, outside of conditions."""
        paths = ((at, path.partition(".")[0]) for at, path in read_paths(step))
        return ((at, key) for at, key in paths if key in self.removed)

    def _choose(self, step: doc.ChoiceStep, rest: _Place) -> Iterator[tuple[str, str]]:
        for branch in step.branches:
            results = self.results(branch.guard)
            if lost := _lost(branch.guard, results):
                yield lost
                return
            if True in results:
                yield from self.follow(_Place(branch.steps, outer=rest))
            if False not in results:
                return
        yield from self.follow(_Place(step.otherwise or (), outer=rest))

    def _begin(self, loop: doc.LoopStep, rest: _Place) -> Iterator[tuple[str, str]]:
        results = _HOLDS if loop.checked == "after_pass" else self._passes(loop)
        if lost := _lost(loop.condition, results):
            yield lost
            return
        if True in results:
            yield from self._inside(loop).follow(_Place(loop.body))
        if False in results:
            yield from self.follow(rest)

    def _after_pass(self, loop: doc.LoopStep) -> Iterator[tuple[str, str]]:
        """Yield what cannot be decided after a pass of a loop: whether there is another one, or in its first steps."""
        results = self._passes(loop)
        lost = [*self._paths(loop), *filter(None, [_lost(loop.condition, results)])]
        yield from lost
        if not lost and loop.max_iterations > 1 and True in results:
            yield from self._inside(loop).follow(_Place(loop.body))

    def _passes(self, loop: doc.LoopStep) -> _Results:
        """Return the possible results of the question whether a loop has another pass."""
        if loop.condition is None:
            return _ANY
        results = self._inside(loop).results(loop.condition)
        return _negated(results) if loop.kind == "until" else results

    def _inside(self, loop: doc.LoopStep) -> "_Following":
        return _Following(self.removed - loop_variables(loop), self.seen)

    def results(self, guard: doc.Guard | None) -> _Results:
        """Return the possible results of a condition; without one, a step is entered."""
        return _possible(guard.condition, self.removed) if guard is not None else _HOLDS


def _lost(guard: doc.Guard | None, results: _Results) -> tuple[str, str] | None:
    """Return the place of a condition and the removed key that it needs, unless other keys may decide it both ways."""
    missing = next((one.path for one in results if isinstance(one, Undecided) and one.path is not None), None)
    if guard is None or missing is None or results >= _ANY:
        return None
    return guard.at, missing.partition(".")[0]


def _possible(condition: Condition, removed: frozenset[str]) -> _Results:
    """Return the possible results of a condition if some keys are not set and nothing is known of the others."""
    match condition:
        case Compare():
            return frozenset({evaluate(condition, ConditionInputs(context={}))}) if condition.key in removed else _ANY
        case Always():
            return _HOLDS
        case LoopControl():
            return _ANY
        case Not():
            return _negated(_possible(condition.of, removed))
        case AllOf() | AnyOf():
            deciding = isinstance(condition, AnyOf)
            parts = [_possible(part, removed) for part in condition.of]
            return reduce(lambda left, right: _combined(left, right, deciding=deciding), parts)


def _negated(results: _Results) -> _Results:
    return frozenset(one if isinstance(one, Undecided) else not one for one in results)


def _combined(left: Iterable[Verdict], right: _Results, *, deciding: bool) -> _Results:
    return frozenset(combine_verdicts([one, other], deciding=deciding) for one in left for other in right)
