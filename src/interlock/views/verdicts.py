"""Verdicts: what an artifact concludes, by its own words (EVD-2)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, cast

from interlock.kernel.frozen import frozen
from interlock.kernel.ids import NodeId

Standing = Literal["passed", "failed", "open"]
"""`open` is a verdict that is neither, such as `partial`, or one in the author's own words."""

_STANDINGS: Mapping[str, Standing] = {
    "passed": "passed",
    "clean": "passed",
    "approved": "passed",
    "failed": "failed",
    "blocking": "failed",
    "rejected": "failed",
}


@frozen
class Verdict:
    """The verdict of an artifact: its kind, the word, and its own summary of the reason; None if it has none."""

    kind: str
    word: str
    standing: Standing
    summary: str | None


@frozen
class StepVerdict:
    """A verdict and its step. `node` is the node to which the step advanced.

    `items` are the passes of the loops around the step that run once for each item or number; another pass of such a
    loop is about something else. `is_asked_for` says that the contract of the step asks for an artifact of this kind,
    so the artifact was checked and the plan may depend on it.
    """

    verdict: Verdict
    node: NodeId
    step_id: str
    items: tuple[tuple[str, int], ...] = ()
    is_asked_for: bool = False


def verdict_of(artifact: object) -> Verdict | None:
    """Return the verdict that an artifact states; None if it states none."""
    if not isinstance(artifact, Mapping):
        return None
    members = cast("Mapping[str, object]", artifact)
    word, kind = members.get("verdict"), members.get("kind")
    if not isinstance(word, str) or not isinstance(kind, str):
        return None
    reason = members.get("summary", members.get("rationale"))
    summary = reason if isinstance(reason, str) else None
    return Verdict(kind=kind, word=word, standing=standing_of(word), summary=summary)


def standing_of(word: str) -> Standing:
    """Return whether the word of a verdict means success, failure, or neither."""
    return _STANDINGS.get(word.strip().casefold(), "open")


def worst_standing(standings: Iterable[Standing]) -> Standing | None:
    """Return `failed` before `open` before `passed`; None if there is none."""
    found = set(standings)
    order: tuple[Standing, ...] = ("failed", "open", "passed")
    return next((one for one in order if one in found), None)


def in_effect(
    reports: Sequence[Sequence[StepVerdict]], parallel_to: Callable[[str], Sequence[str]]
) -> Iterator[StepVerdict]:
    """Yield the verdicts that no later one replaces, the latest first.

    A verdict of a later report replaces an earlier one of the same kind, for example after a repair, unless it is
    about another item of a list or comes from a parallel step. A verdict that no step asked for does not replace one
    that a step asked for.

    Args:
        reports: The verdicts of each report of one branch, oldest first.
        parallel_to: Returns the steps that are parallel to a step.
    """
    kept: list[StepVerdict] = []
    for report in reversed(reports):
        left = [one for one in reversed(report) if not any(_replaces(later, one, parallel_to) for later in kept)]
        kept += left
        yield from left


def _replaces(later: StepVerdict, earlier: StepVerdict, parallel_to: Callable[[str], Sequence[str]]) -> bool:
    covers_item = earlier.items[: len(later.items)] == later.items
    is_same = later.verdict.kind == earlier.verdict.kind and covers_item
    is_as_sound = later.is_asked_for or not earlier.is_asked_for
    return is_same and is_as_sound and later.step_id not in parallel_to(earlier.step_id)
