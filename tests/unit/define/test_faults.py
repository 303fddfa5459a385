"""Validation errors as diagnostics: the place in the document, what was found there, and what to write."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Discriminator, Field, JsonValue, Tag, ValidationError

from interlock.define.diagnostics import Diagnostic
from interlock.define.faults import diagnose_faults, find_value, make_safe_id
from interlock.kernel.shape.mirror import faults_of
from interlock.kernel.text import render_path


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Cat(Closed):
    kind: Literal["cat"]
    lives: Annotated[int, Field(ge=1)] = 9
    friends: Annotated[tuple["Animal", ...], Field(strict=False)] = ()


class Dog(Closed):
    kind: Literal["dog"]
    tricks: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=2, strict=False)]


def _which(value: object) -> str:
    return "<many>" if isinstance(value, list) else "<one>"


Animal = Annotated[Cat | Dog, Field(discriminator="kind")]


class Zoo(Closed):
    name: Annotated[str, Field(pattern=r"^[a-z0-9_-]+$", max_length=12)] = "zoo"
    code: Annotated[str, Field(pattern=r"^Z[a-z]+$")] | None = None
    digits: Annotated[str, Field(pattern=r"^[0-9]+$")] = "0"
    animals: Annotated[tuple[Animal, ...], Field(max_length=3, strict=False)] = ()
    star: Animal | None = None
    weight: int | float | None = None
    is_open: bool = Field(default=True, alias="isOpen")
    cages: dict[Annotated[str, Field(pattern=r"^[a-z0-9_-]+$")], Dog] = Field(default_factory=dict[str, Dog])
    prices: dict[Literal["adult", "child"], float] = Field(default_factory=dict[Literal["adult", "child"], float])
    shown: (
        Annotated[
            Annotated[Dog, Tag("<one>")] | Annotated[list[Dog], Tag("<many>")],
            Discriminator(_which),
        ]
        | None
    ) = None
    either: Dog | list[int] | None = None
    anything: JsonValue = None


Cat.model_rebuild()
Zoo.model_rebuild()


def faults(**document: Any) -> list[Diagnostic]:
    with pytest.raises(ValidationError) as caught:
        Zoo.model_validate(document)
    found = diagnose_faults(faults_of(caught.value), document, Zoo)
    assert all(one.severity == "error" and one.message and one.fix for one in found)
    return found


def fault_codes(**document: Any) -> list[tuple[str, str]]:
    return [(one.path, one.code) for one in faults(**document)]


DOG = {"kind": "dog", "tricks": ["sit", "roll"]}


def test_a_mistyped_key_is_compared_with_the_keys_known_at_its_place_at_any_depth() -> None:
    cases: list[tuple[dict[str, Any], str, str]] = [
        ({"isopen": True}, "isopen", "isOpen"),
        ({"animals": [{**DOG, "trick": 1}]}, "animals[0].trick", "tricks"),
        ({"animals": [{"kind": "cat", "friends": [{**DOG, "trick": 1}]}]}, "animals[0].friends[0].trick", "tricks"),
        ({"star": {"kind": "cat", "live": 1}}, "star.live", "lives"),
        ({"cages": {"a": {**DOG, "trick": 1}}}, "cages.a.trick", "tricks"),
        ({"shown": {**DOG, "trick": 1}}, "shown.trick", "tricks"),
        ({"shown": [DOG, {**DOG, "trick": 1}]}, "shown[1].trick", "tricks"),
    ]
    for document, path, similar in cases:
        (found,) = faults(**document)
        is_twice = similar == "tricks"
        fix = f"`{similar}` is there already. Remove the key." if is_twice else f"Did you mean `{similar}`?"
        assert (found.path, found.code, found.fix) == (path, "unknown_key", fix)


def test_a_key_that_resembles_nothing_is_to_be_removed() -> None:
    (found,) = faults(animals=[{**DOG, "xyz": 1}])
    assert found.fix == "Remove the key."


def test_a_key_of_the_document_that_looks_like_the_name_of_an_alternative_stays_in_the_path() -> None:
    assert fault_codes(cages={"<one>": DOG, "dog": {**DOG, "x": 1}}) == [
        ("cages.<one>", "bad_id"),
        ("cages.dog.x", "unknown_key"),
    ]


def test_alternatives_without_a_name_of_their_own_do_not_show_in_paths() -> None:
    assert fault_codes(either={**DOG, "trick": 1}) == [("either.trick", "unknown_key"), ("either", "wrong_type")]
    assert ("either[1]", "wrong_type") in fault_codes(either=[1, "x"])


def test_a_value_that_is_not_json_is_reported_at_its_place_inside_one() -> None:
    infinite = float("inf")
    assert fault_codes(anything=infinite) == [("anything", "wrong_value")]
    assert fault_codes(anything=[{"list": [1, infinite]}]) == [("anything[0].list[1]", "wrong_value")]


def test_one_fault_that_each_alternative_reports_is_listed_once() -> None:
    assert fault_codes(weight="heavy") == [("weight", "wrong_type")]


def test_a_fault_of_the_discriminator_is_reported_at_its_own_place() -> None:
    (missing,) = faults(animals=[{"lives": 3}])
    assert (missing.path, missing.code) == ("animals[0].kind", "missing_key")
    (unknown,) = faults(animals=[{"kind": "dogg"}])
    assert (unknown.path, unknown.code, unknown.fix) == ("animals[0].kind", "wrong_value", "Did you mean `dog`?")
    (far,) = faults(star={"kind": "zebra"})
    assert far.fix == "Write 'cat', 'dog'."


def test_a_value_of_the_wrong_type_is_named() -> None:
    values: list[Any] = [3, None, True, False, [], {}]
    assert [faults(name=value)[0].message for value in values] == [
        f"Found {named}, which has the wrong type." for named in ("3", "null", "true", "false", "a list", "an object")
    ]
    assert [one.code for one in faults(animals=3, cages=[], isOpen=1, star=3)] == ["wrong_type"] * 4


def test_an_id_is_shown_in_the_form_that_would_be_accepted() -> None:
    (found,) = faults(name="My Zoo!")
    assert (found.code, found.fix) == ("bad_id", "Use only a-z, 0-9, `_` and `-`. For example `my-zoo`.")


def test_another_pattern_is_quoted() -> None:
    assert [(one.path, one.code) for one in faults(code="Q", digits="x")] == [
        ("code", "bad_id"),
        ("digits", "wrong_value"),
    ]
    assert all("a string that matches" in one.fix for one in faults(code="Q", digits="x"))


def test_a_long_text_is_quoted_by_its_beginning() -> None:
    (found,) = faults(name="x" * 200)
    assert found.code == "too_long"
    assert "x" * 58 not in found.message


def test_a_key_itself_may_be_at_fault() -> None:
    (found,) = faults(prices={"adlt": 3.0})
    assert (found.path, found.code, found.fix) == ("prices.adlt", "unknown_key", "Did you mean `adult`?")


def test_a_list_of_faulty_members_is_not_called_empty() -> None:
    assert fault_codes(star={"kind": "dog", "tricks": ["", ""]}) == [
        ("star.tricks[0]", "empty"),
        ("star.tricks[1]", "empty"),
    ]
    assert ("star.tricks", "empty") in fault_codes(star={"kind": "dog", "tricks": []})


def test_counts_and_bounds_and_missing_keys_are_reported() -> None:
    assert fault_codes(animals=[DOG] * 4) == [("animals", "too_many")]
    assert fault_codes(star={"kind": "cat", "lives": 0}) == [("star.lives", "wrong_value")]
    assert fault_codes(star={"kind": "dog"}) == [("star.tricks", "missing_key")]


def test_a_location_that_leads_nowhere_has_no_value() -> None:
    document: dict[str, Any] = {"a": [{"b": 1}]}
    assert find_value(document, ("a", 0, "b")) == 1
    assert [find_value(document, loc) for loc in (("a", 1), ("a", "b"), ("a", 0, "c"), ("a", 0, "b", "c"))] == [
        None
    ] * 4


def test_a_location_reads_as_authors_write_it() -> None:
    assert render_path(()) == ""
    assert render_path(("steps", 3, "promptBlocks", "goal")) == "steps[3].promptBlocks.goal"


def test_any_text_has_a_safe_id_near_it() -> None:
    assert [make_safe_id(text) for text in ("My Step", "é", "a_b-1", "x" * 200)] == [
        "my-step",
        "step",
        "a_b-1",
        "x" * 100,
    ]


class Counted(Closed):
    branches: Annotated[tuple[int, ...], Field(min_length=2, strict=False)] = (1, 2)
    whole: int = 1
    any: int | float = 1
    slot: Annotated[str, Field(min_length=3)] = "abc"


def _counted(document: dict[str, Any]) -> Diagnostic:
    with pytest.raises(ValidationError) as refusal:
        Counted.model_validate(document)
    (found,) = diagnose_faults(faults_of(refusal.value), document, Counted)
    return found


def test_too_few_entries_are_not_reported_as_empty() -> None:
    found = _counted({"branches": [1]})
    assert (found.code, found.message) == ("wrong_value", "Found a list with 1 entry; the minimum is 2.")
    found = _counted({"slot": "s"})
    assert found.message == "Found 's' with 1 character; the minimum is 3."
    assert _counted({"branches": []}).code == "empty"


@pytest.mark.parametrize(
    ("document", "fix"),
    [
        ({"whole": 1.5}, "Write a whole number."),
        ({"whole": 1.0}, "Write a whole number."),
        ({"any": "x"}, "Write a number."),
    ],
)
def test_a_whole_number_is_asked_for_where_only_that_will_do(document: dict[str, Any], fix: str) -> None:
    assert _counted(document).fix == fix
