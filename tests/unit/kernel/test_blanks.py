"""The fixed arguments and the blanks together are the call."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.kernel.blanks import Blank, Outline, fill_in, separate
from interlock.kernel.canonical import Json

VERDICT = Blank(what="your verdict", choices=("clean", "bad"))
SAID = Blank(what="say it")
LEAVES = st.one_of(st.booleans(), st.integers(), st.text(max_size=5), st.just(SAID))
NAMES = st.text("abc", min_size=1, max_size=2)


@st.composite
def outlines(draw: st.DrawFn) -> dict[str, Outline]:
    """Draw an outline as Interlock makes them: each item of a list with blanks has a fixed kind."""
    members = st.dictionaries(NAMES, LEAVES, max_size=3)
    outline: dict[str, Outline] = {**draw(members)}
    if draw(st.booleans()):
        outline["output"] = {**draw(members), "artifacts": [{"kind": "k", **one} for one in draw(st.lists(members))]}
    return outline


def written(value: Outline) -> object:
    """Return the value as a caller who writes `said` in each blank sends it."""
    if isinstance(value, Blank):
        return "said"
    if isinstance(value, Mapping):
        return {key: written(member) for key, member in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [written(item) for item in value]
    return value


@pytest.mark.inv("ANS-22")
@given(outlines())
def test_the_fixed_arguments_and_the_blanks_are_the_whole_call(outline: dict[str, Outline]) -> None:
    fixed, fills = separate(outline)
    blanks: list[dict[str, Json]] = [{"path": one.path, "choices": [*one.blank.choices]} for one in fills]
    assert fill_in(fixed, blanks, lambda _: "said") == written(outline)


@pytest.mark.inv("ANS-22")
def test_an_item_of_a_list_with_a_blank_is_listed_as_a_whole() -> None:
    """A model of 1.5 billion parameters sent a shown item with its kind alone as it was, in every call."""
    outline: dict[str, Outline] = {
        "run": "ab12",
        "output": {"artifacts": [{"kind": "wr.note", "text": "fixed"}, {"kind": "wr.verdict", "verdict": VERDICT}]},
        "tags": ["a"],
    }
    fixed, fills = separate(outline)
    artifacts = [{"kind": "wr.note", "text": "fixed"}]
    assert fixed == {"run": "ab12", "output": {"artifacts": artifacts}, "tags": ["a"]}
    assert [(one.path, one.blank) for one in fills] == [
        ("output.artifacts[1].kind", Blank(choices=("wr.verdict",))),
        ("output.artifacts[1].verdict", VERDICT),
    ]


@pytest.mark.inv("ANS-22")
def test_an_open_item_before_a_fixed_one_keeps_its_place() -> None:
    outline: dict[str, Outline] = {"artifacts": [{"kind": "wr.verdict", "verdict": VERDICT}, {"kind": "wr.note"}]}
    fixed, fills = separate(outline)
    assert fixed == {"artifacts": [{}, {"kind": "wr.note"}]}
    assert [one.path for one in fills] == ["artifacts[0].kind", "artifacts[0].verdict"]


def test_a_name_that_could_be_read_as_a_path_is_quoted_in_it() -> None:
    outline: dict[str, Outline] = {"a": [{"wr.x": Blank(), 'b"]': Blank(), "c-d e": Blank()}]}
    arguments, fills = separate(outline)
    assert [one.path for one in fills] == ['a[0]["wr.x"]', 'a[0]["b\\"]"]', "a[0].c-d e"]
    filled = fill_in(arguments, [{"path": one.path} for one in fills], lambda one: one["path"])
    assert filled == {"a": [{"wr.x": fills[0].path, 'b"]': fills[1].path, "c-d e": fills[2].path}]}
