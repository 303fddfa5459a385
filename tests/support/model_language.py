"""What a workflow says, written a second time and simply: a document is walked as a tree, step by step.

The half of the model that runs are held against which concerns the document alone; `tests.support.model` has the other.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, cast

Document: TypeAlias = dict[str, Any]
Context: TypeAlias = Mapping[str, Any]

CONTRACTS = "wr.contracts."
ABSENT = object()


class Owed(NamedTuple):
    """Something that is missing or wrong: why, of what, and what else tells it from another of its kind."""

    detail: str
    subject: str
    more: tuple[Any, ...] = ()

    @property
    def blocker(self) -> tuple[str, str]:
        """Its code and what it points at."""
        code = "USER_ONLY_DEPENDENCY" if self.detail.startswith("needs_user") else self.detail.upper()
        return code, self.subject


def missing(subject: str) -> Owed:
    return Owed("missing_required_output", subject)


def invalid(subject: str, *more: Any) -> Owed:
    return Owed("invalid_required_output", subject, more)


# Values and conditions.


def merged(context: Context, delta: Context) -> Context:
    """Return the context with a delta on top of it; null takes a key away."""
    both = {**context, **delta}
    return {key: value for key, value in both.items() if value is not None}


def at(seen: Any, path: str) -> Any:
    for part in path.split("."):
        if not isinstance(seen, dict) or part not in seen:
            return ABSENT
        seen = cast("Document", seen)[part]
    return seen


def same(left: Any, right: Any) -> bool:
    """Say whether two JSON values are equal; their texts tell true from 1, and 1.0 is written as 1 here."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def is_number(value: Any) -> bool:
    return type(value) in (int, float)


def truth(condition: Document, seen: Context, named: Mapping[str, Document]) -> bool | Owed:
    """Return whether a condition holds, or what keeps it from being decided."""
    if condition.get("kind") == "condition_ref":
        return truth(named[condition["conditionId"]], seen, named)
    if "not" in condition:
        inner = truth(condition["not"], seen, named)
        return inner if isinstance(inner, Owed) else not inner
    for word, settling in (("and", False), ("or", True)):
        if word in condition:
            parts = [truth(part, seen, named) for part in condition[word]]
            undecided = [part for part in parts if isinstance(part, Owed)]
            return settling if settling in parts else undecided[0] if undecided else not settling
    operator, value = next((key, value) for key, value in condition.items() if key != "var")
    found = at(dict(seen), condition["var"])
    if operator == "exists":
        return (found is not ABSENT) == value
    if found is ABSENT:
        return missing(condition["var"])
    said = _compared(operator, found, value)
    return invalid(condition["var"]) if said is None else said


def _compared(operator: str, found: Any, value: Any) -> bool | None:
    """Return what an operator says; None of a value that it cannot be asked about."""
    match operator:
        case "equals":
            return same(found, value)
        case "notEquals":
            return not same(found, value)
        case "in":
            return any(same(found, item) for item in value)
        case "contains" if isinstance(found, list):
            return any(same(item, value) for item in cast("list[Any]", found))
        case "contains":
            return value in found if isinstance(found, str) else None
        case "startsWith" | "endsWith":
            is_first = operator == "startsWith"
            return (
                found[slice(len(value)) if is_first else slice(-len(value), None)] == value
                if isinstance(found, str)
                else None
            )
        case _ if is_number(found):
            return {"gt": found > value, "gte": found >= value, "lt": found < value, "lte": found <= value}[operator]
        case _:
            return None


def is_met(rule: Document, notes: str, seen: Context) -> bool | None:
    """Say whether notes meet a criterion; None where it asks for nothing."""
    for word, settling in (("and", False), ("or", True)):
        if word in rule:
            held = {is_met(part, notes, seen) for part in rule[word]} - {None}
            return None if not held else settling if settling in held else not settling
    if "not" in rule:
        inner = is_met(rule["not"], notes, seen)
        return None if inner is None else not inner
    if "when" in rule and truth(rule["when"], seen, {}) is not True:
        return None
    match rule["type"]:
        case "contains":
            return rule["value"] in notes
        case "regex":
            return re.search(rule["pattern"], notes, re.IGNORECASE if "i" in rule.get("flags", "") else 0) is not None
        case _:
            return rule.get("min", 0) <= len(notes) <= rule.get("max", len(notes))


def rendered(text: str, seen: Context) -> str:
    """Return a text with its holes filled from what a step sees."""

    def filled(hole: "re.Match[str]") -> str:
        found = at(dict(seen), hole[1])
        if found is ABSENT:
            return f"[context key not set: {hole[1]}]"
        return found if isinstance(found, str) else json.dumps(found, separators=(",", ":"))

    return re.sub(r"\{\{([^{}]+)\}\}", filled, text)


# Where a run stands in its document.


@dataclass(frozen=True, slots=True)
class Steps:
    """A list of steps that is being gone through."""

    steps: tuple[Document, ...]
    following: int = 0


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass of a loop; the steps of its body stand above it."""

    loop: Document
    number: int
    item: Any = ABSENT


Place: TypeAlias = tuple[Steps | Pass, ...]
"""Outermost first."""


def sees(context: Context, place: Iterable[Steps | Pass]) -> Context:
    """Return the context with what the loops around a place add."""
    seen = dict(context)
    for one in place:
        if isinstance(one, Pass):
            seen[one.loop.get("iterationVar", "iteration")] = one.number + 1
            seen[one.loop.get("indexVar", "index")] = one.number
            if one.item is not ABSENT:
                seen["item"] = one.item
    return seen


class StuckError(Exception):
    """The run cannot go on as it is written."""

    def __init__(self, owed: Owed) -> None:
        self.owed = owed


@dataclass(slots=True)
class Walk:
    """One call's way through the document, from a place to the next step that somebody performs."""

    named: Mapping[str, Document]
    context: Context
    never_stops: bool
    decisions: list[Document] = field(default_factory=list[Document])
    owed: set[Owed] = field(default_factory=set[Owed])
    used_up: list[str] = field(default_factory=list[str])

    def go(self, place: Place) -> tuple[Document | None, Place]:
        """Return the next step, and the place behind it; no step at the end.

        Raises:
            StuckError: Something that the way turns on is not there, and the run stops for it.
        """
        while place:
            *below, top = place
            outer: Place = tuple(below)
            if isinstance(top, Pass):
                place = outer + self._passes(top.loop, top.number + 1, outer)
            elif top.following == len(top.steps):
                place = outer
            else:
                place = (*outer, Steps(top.steps, top.following + 1))
                step = top.steps[top.following]
                if "when" in step and not self._holds(step["when"], place):
                    continue
                if "prompt" in step or "promptBlocks" in step:
                    self._needs(step, place)
                    return step, place
                place += self._inside(step, place)
        return None, ()

    def _needs(self, step: Document, place: Place) -> None:
        for key in step.get("needs", ()):
            if at(dict(sees(self.context, place)), key) is ABSENT:
                self._lacks(missing(key))

    def _inside(self, step: Document, place: Place) -> Place:
        if "body" in step:
            return self._passes(step, 0, place)
        if "branches" in step:
            return tuple(Steps(tuple(branch["steps"])) for branch in reversed(step["branches"]))
        for branch in step["choose"]:
            verdict = self._verdict(branch["when"], place)
            if verdict is True:
                return (Steps(tuple(branch["steps"])),)
            if verdict is None:
                break
        return (Steps(tuple(step["otherwise"])),)

    def _passes(self, loop: Document, number: int, outer: Place) -> Place:
        """Return what a loop puts on the place for a pass: the pass and its body, or nothing where it ends."""
        wants, items = self._wants(loop, number, outer)
        if not wants:
            return ()
        if number == loop["maxIterations"]:
            if wants == "asked":
                self._lacks(Owed("invariant_violation", f"{CONTRACTS}loop_control", (loop["loopId"], number)))
            self.used_up.append(loop["loopId"])
            return ()
        item = items[number] if items is not None else ABSENT
        return Pass(loop, number, item), Steps(tuple(loop["body"]))

    def _wants(self, loop: Document, number: int, outer: Place) -> tuple[bool | str, list[Any] | None]:
        seen = dict(sees(self.context, outer))
        if "forEach" in loop:
            path = loop["forEach"]["items"]
            items = at(seen, path)
            return self._fits(path, items, is_fit=isinstance(items, list)) and number < len(items), items
        if "for" in loop:
            path = loop["for"].get("countFrom", "")
            count = at(seen, path) if path else loop["for"]["count"]
            return self._fits(path, count, is_fit=is_number(count) and count == int(count)) and number < count, None
        if loop.get("while") == {"kind": "loop_control"}:
            return (self._controlled(loop["loopId"]) if number else True), None
        inside = (*outer, Pass(loop, number))
        if "while" in loop:
            return self._holds(loop["while"], inside), None
        return self._verdict(loop["until"], inside) is False, None

    def _fits(self, path: str, found: Any, *, is_fit: bool) -> bool:
        if not is_fit:
            self._lacks(missing(path) if found is ABSENT else invalid(path))
        return is_fit

    def _controlled(self, loop: str) -> bool | str:
        """Return whether the agent asked for another pass; what it said is used up then."""
        said = [one["decision"] for one in self.decisions if one.get("loopId", loop) == loop]
        if not said:
            self._lacks(missing(f"{CONTRACTS}loop_control"))
            return False
        self.decisions = []
        return "asked" if said[0] == "continue" else False

    def _holds(self, condition: Document, place: Place) -> bool:
        return self._verdict(condition, place) is True

    def _verdict(self, condition: Document, place: Place) -> bool | None:
        found = truth(condition, sees(self.context, place), self.named)
        if isinstance(found, Owed):
            self._lacks(found)
            return None
        return found

    def _lacks(self, owed: Owed) -> None:
        """Stop, unless the run never does: then it is disclosed, and the cautious way is taken."""
        if not self.never_stops:
            raise StuckError(owed)
        self.owed.add(owed)
