"""Compares two branches, of one run or of two: aligned by step, what differs in path, evidence, context and text."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher, unified_diff
from typing import Literal

from interlock.kernel.canonical import Json, canonical_bytes
from interlock.kernel.frozen import frozen
from interlock.record.context import Context
from interlock.service.report.step_report import Artifact, StepReport
from interlock.service.run.context import StepLabel

Side = Literal["both", "first", "second"]


@frozen
class Change:
    """One value that differs. A side that lacks it has None; `lines` is the difference of two texts, line by line."""

    what: str
    first: Json
    second: Json
    lines: tuple[str, ...] = ()


@frozen
class StepDifference:
    """A step of one or both branches, and what differs about it; nothing if it is the same on both."""

    place: StepLabel
    step_id: str
    side: Side
    changes: tuple[Change, ...] = ()


@frozen
class Difference:
    """Two branches compared: each step of either in order, and the context keys that differ at their ends."""

    steps: tuple[StepDifference, ...]
    context: tuple[Change, ...]

    @property
    def is_none(self) -> bool:
        """Whether the branches are the same in all that is compared."""
        return not self.context and all(one.side == "both" and not one.changes for one in self.steps)


def compare_branches(
    first: Sequence[StepReport], second: Sequence[StepReport], contexts: tuple[Context, Context]
) -> Difference:
    """Compare two branches. Times, clients, ids and digests are not compared: they always differ."""
    keys = [_keys(first), _keys(second)]
    steps: list[StepDifference] = []
    for tag, a_from, a_to, b_from, b_to in SequenceMatcher(None, *keys, autojunk=False).get_opcodes():
        if tag == "equal":
            steps += [_compare(a, b) for a, b in zip(first[a_from:a_to], second[b_from:b_to], strict=True)]
        else:
            steps += [_only(one, "first") for one in first[a_from:a_to]]
            steps += [_only(one, "second") for one in second[b_from:b_to]]
    return Difference(steps=tuple(steps), context=tuple(_members("context", *contexts)))


def _keys(steps: Sequence[StepReport]) -> list[str]:
    """Return a key for each step: its id and the pass of its loop."""
    return [f"{one.step_id}@{one.place.loop.pass_ if one.place.loop is not None else 0}" for one in steps]


def _only(step: StepReport, side: Side) -> StepDifference:
    return StepDifference(place=step.place, step_id=step.step_id, side=side)


def _compare(a: StepReport, b: StepReport) -> StepDifference:
    return StepDifference(place=a.place, step_id=a.step_id, side="both", changes=tuple(_changes(a, b)))


def _changes(a: StepReport, b: StepReport) -> Iterator[Change]:
    if a.is_done != b.is_done:
        yield Change(what="done", first=a.is_done, second=b.is_done)
    if a.prompt != b.prompt:
        yield _text("task", a.prompt, b.prompt)
    if a.notes != b.notes:
        yield _text("notes", a.notes, b.notes)
    yield from _artifacts(a.artifacts, b.artifacts)
    if len(a.refused) != len(b.refused):
        yield Change(what="refused attempts", first=len(a.refused), second=len(b.refused))
    answers = [one.answered.to_json() if one.answered is not None else None for one in (a, b)]
    if answers[0] != answers[1]:
        yield Change(what="a person's answer", first=answers[0], second=answers[1])
    yield from _members("context", _after(a), _after(b))


def _after(step: StepReport) -> Mapping[str, Json]:
    return {one.key: one.after for one in step.context}


def _artifacts(first: Sequence[Artifact], second: Sequence[Artifact]) -> Iterator[Change]:
    """Yield what differs between the artifacts of each kind, field by field where both are objects."""
    a, b = _by_subject(first), _by_subject(second)
    for subject in sorted(a.keys() | b.keys()):
        was, now = a.get(subject), b.get(subject)
        if isinstance(was, dict) and isinstance(now, dict):
            yield from _members(subject, was, now)
        elif not _is_same(was, now):
            yield Change(what=subject, first=was, second=now)


def _by_subject(artifacts: Sequence[Artifact]) -> dict[str, Json]:
    """Return artifacts by kind; several of a kind are numbered in their stored order."""
    found: dict[str, Json] = {}
    for one in artifacts:
        name = one.kind or one.content_type
        if isinstance(one.content, dict) and isinstance(one.content.get("assessmentId"), str):
            name = f"{name} {one.content['assessmentId']}"
        number = sum(key == name or key.startswith(f"{name} #") for key in found)
        found[name if number == 0 else f"{name} #{number + 1}"] = one.content
    return found


def _members(what: str, first: Mapping[str, Json], second: Mapping[str, Json]) -> Iterator[Change]:
    for key in sorted(first.keys() | second.keys()):
        was, now = first.get(key), second.get(key)
        if (key in first) == (key in second) and _is_same(was, now):
            continue
        if isinstance(was, str) and isinstance(now, str) and "\n" in f"{was}{now}":
            yield _text(f"{what}: {key}", was, now)
        else:
            yield Change(what=f"{what}: {key}", first=was, second=now)


def _is_same(a: Json, b: Json) -> bool:
    return canonical_bytes(a) == canonical_bytes(b)


def _text(what: str, a: str | None, b: str | None) -> Change:
    lines = unified_diff((a or "").splitlines(), (b or "").splitlines(), lineterm="", n=1)
    return Change(what=what, first=a, second=b, lines=tuple(lines)[2:])
