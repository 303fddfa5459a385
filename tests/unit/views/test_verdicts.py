"""Verdicts of artifacts, and which of them are in effect."""

from collections.abc import Sequence

import pytest

from interlock.kernel.ids import NodeId
from interlock.views.verdicts import StepVerdict, Verdict, in_effect, verdict_of, worst_standing


@pytest.mark.inv("EVD-2")
@pytest.mark.parametrize(
    ("word", "standing"),
    [
        *((word, "passed") for word in ("passed", "clean", "approved", " Passed ")),
        *((word, "failed") for word in ("failed", "blocking", "rejected", "FAILED")),
        *((word, "open") for word in ("partial", "minor", "uncertain", "good enough", "")),
    ],
)
def test_a_verdict_is_success_failure_or_neither(word: str, standing: str) -> None:
    verdict = verdict_of({"kind": "team.check", "verdict": word, "summary": "Why."})
    assert verdict == Verdict(kind="team.check", word=word, standing=standing, summary="Why.")  # pyright: ignore[reportArgumentType] — a parameter


@pytest.mark.parametrize(
    "artifact", [None, [], "passed", {"verdict": "passed"}, {"kind": "a"}, {"kind": "a", "verdict": 1}]
)
def test_what_states_no_verdict_has_none(artifact: object) -> None:
    assert verdict_of(artifact) is None


def stated(step: str, word: str, *items: int, kind: str = "a", is_asked_for: bool = False) -> StepVerdict:
    verdict = verdict_of({"kind": kind, "verdict": word})
    assert verdict is not None
    return StepVerdict(
        verdict=verdict,
        node=NodeId(f"{step}{items}"),
        step_id=step,
        items=tuple(("list", one) for one in items),
        is_asked_for=is_asked_for,
    )


def left(*found: StepVerdict) -> list[tuple[str, str]]:
    return left_of(*((one,) for one in found))


def left_of(*reports: Sequence[StepVerdict]) -> list[tuple[str, str]]:
    def parallel_to(step: str) -> Sequence[str]:
        return {"left": ["right"], "right": ["left"]}.get(step, [])

    return [(one.step_id, one.verdict.word) for one in in_effect(reports, parallel_to)]


@pytest.mark.inv("EVD-2")
def test_a_later_verdict_of_the_same_kind_replaces_an_earlier_one() -> None:
    assert left(stated("check", "failed"), stated("repair", "passed")) == [("repair", "passed")]
    assert left(stated("check", "passed"), stated("check", "failed")) == [("check", "failed")]
    assert len(left(stated("check", "failed"), stated("check", "passed", kind="b"))) == 2


@pytest.mark.inv("EVD-2")
def test_verdicts_of_other_items_and_of_parallel_steps_stay_in_effect() -> None:
    assert left(stated("check", "failed", 0), stated("check", "passed", 1)) == [
        ("check", "passed"),
        ("check", "failed"),
    ]
    assert left(stated("check", "failed", 0), stated("repair", "passed", 0)) == [("repair", "passed")]
    assert left(stated("check", "failed", 0), stated("all", "passed")) == [("all", "passed")]
    assert left(stated("all", "failed"), stated("check", "passed", 0)) == [("check", "passed"), ("all", "failed")]
    assert left(stated("left", "failed"), stated("right", "passed")) == [("right", "passed"), ("left", "failed")]


@pytest.mark.inv("EVD-2")
def test_no_verdict_of_a_report_replaces_another_of_it() -> None:
    failed, passed = stated("check", "failed"), stated("check", "passed")
    both = [("check", "failed"), ("check", "passed")]
    assert sorted(left_of([failed, passed])) == sorted(left_of([passed, failed])) == both
    assert left_of([failed, passed], [stated("repair", "passed")]) == [("repair", "passed")]


@pytest.mark.inv("EVD-2")
def test_a_verdict_that_no_step_asked_for_replaces_none_that_one_asked_for() -> None:
    failed = stated("check", "failed", is_asked_for=True)
    assert left(failed, stated("end", "passed")) == [("end", "passed"), ("check", "failed")]
    assert left(failed, stated("repair", "passed", is_asked_for=True)) == [("repair", "passed")]
    assert left(stated("note", "failed"), stated("end", "passed")) == [("end", "passed")]


def test_the_worst_standing_is_that_of_a_failure() -> None:
    assert worst_standing(["passed", "failed", "open"]) == "failed"
    assert worst_standing(["passed", "open"]) == "open"
    assert worst_standing(["passed"]) == "passed"
    assert worst_standing([]) is None
