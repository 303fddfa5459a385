"""The words of the committed answers: each message once in `words.json`, and the answers by the keys of theirs.

`committed.py` says how to write them anew, and that a run which does so writes no fact.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.golden.committed import SWITCH, Kind, compare, is_writing
from tests.golden.conversation import WORKFLOW, make_data_dir, scripted
from tests.golden.wording import Apart, Words, take_apart, words_of, written_words

from interlock.store.ports.keys import KeyRing
from interlock.testing.harness import FIXED_KEYS, ToolResult

WORDS = Path(__file__).parent / "words.json"
OTHER_KEYS = KeyRing(current=FIXED_KEYS.previous or FIXED_KEYS.current, previous=None)


def committed() -> Words:
    return json.loads(WORDS.read_text(encoding="utf-8"))


@cache
def answers_today() -> Mapping[str, ToolResult]:
    return scripted()


@cache
def today() -> Apart:
    return take_apart(answers_today())


def of_the_script(words: Words) -> dict[str, dict[str, list[str]]]:
    return {name: places for name, places in words["answers"].items() if not name.startswith("data-dir-1: ")}


@pytest.mark.inv("ANS-1")
def test_the_scripted_runs_give_answers_in_the_committed_words(tmp_path: Path) -> None:
    made = take_apart(make_data_dir(tmp_path / "data")).words
    found = today().words | {f"data-dir-1: {name}": places for name, places in made.items()}
    compare("words", WORDS, written_words(words_of(found, committed())))


def with_other_keys() -> dict[str, ToolResult]:
    return scripted(ring=OTHER_KEYS)


def with_another_source() -> dict[str, ToolResult]:
    reference = {"id": "spec", "title": "Spec", "source": "docs/plan.md", "purpose": "Advisory.", "authoritative": True}
    return scripted(WORKFLOW | {"references": [reference]})


def with_another_code() -> dict[str, ToolResult]:
    return replaced(answers_today(), "MISSING_REQUIRED_OUTPUT", "OUTPUT_WANTED")


def replaced(answers: Mapping[str, ToolResult], old: str, new: str) -> dict[str, ToolResult]:
    """Return the answers with a text replaced in both channels."""

    def other(value: Any) -> Any:
        text = json.dumps(value, ensure_ascii=False)
        return json.loads(text.replace(json.dumps(old, ensure_ascii=False)[1:-1], json.dumps(new)[1:-1]))

    return {
        name: ToolResult(structure=other(dict(one.structure)), text=one.text.replace(old, new), is_error=one.is_error)
        for name, one in answers.items()
    }


@pytest.mark.parametrize("changed", [with_other_keys, with_another_source, with_another_code])
def test_a_changed_fact_leaves_the_words_alone(changed: Callable[[], dict[str, ToolResult]]) -> None:
    before, after = today(), take_apart(changed())
    assert after.facts != before.facts
    assert words_of(after.words, committed()) == words_of(before.words, committed())
    assert of_the_script(words_of(after.words, committed())) == of_the_script(committed())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(" · goal: ", " · aim: ", id="a part of the header"),
        pytest.param("**Not accepted yet**", "**The step is not accepted**", id="a heading"),
        pytest.param("missing, empty, or sample text", "none", id="the message of a blocker"),
        pytest.param(
            "Use the tokens of this answer, not the earlier ones.", "Use these tokens.", id="a fix's last one"
        ),
        pytest.param("This is a new branch", "It is another branch", id="a warning"),
        pytest.param("Send it under that name.", "Rename `it`, then send `it` again.", id="a suggestion"),
        pytest.param("Do this step now: write your answer to it.", "Do it now.", id="what to do next"),
        pytest.param("Stored artifacts", "Kept artifacts", id="a recap's heading"),
    ],
)
def test_a_changed_wording_is_one_message_and_no_fact(old: str, new: str) -> None:
    before, after = today(), take_apart(replaced(answers_today(), old, new))
    assert after.facts == before.facts
    words = words_of(before.words, committed())
    reworded = words_of(after.words, words)
    assert reworded["answers"] == words["answers"]
    assert list(reworded["messages"]) == list(words["messages"])
    (key,) = [key for key, message in reworded["messages"].items() if message != words["messages"][key]]
    assert old.strip(" ·*") in words["messages"][key].replace("{nextCall.tool}", "continue_workflow")
    written, rewritten = written_words(words).splitlines(), written_words(reworded).splitlines()
    assert sum(one != other for one, other in zip(written, rewritten, strict=True)) == 1


def tokens(answer: ToolResult) -> tuple[str, str]:
    return answer.state, answer.ack


def messages(answer: ToolResult) -> tuple[str, str]:
    return answer["blockers"][1]["message"], answer["blockers"][2]["message"]


@pytest.mark.parametrize(("name", "pair"), [("start", tokens), ("rating, criterion and key are missing", messages)])
def test_a_text_that_disagrees_with_the_structure_is_other_words(
    name: str, pair: Callable[[ToolResult], tuple[str, str]]
) -> None:
    answer = answers_today()[name]
    first, second = pair(answer)
    text = answer.text.replace(first, "\0").replace(second, first).replace("\0", second)
    swapped = dict(answers_today()) | {name: replace(answer, text=text)}
    assert take_apart(swapped).facts == today().facts
    found = words_of(take_apart(swapped).words, committed())["answers"]
    assert [name for name, places in found.items() if places != committed()["answers"][name]] == [name]


def test_an_id_that_only_the_words_hold_is_a_fact() -> None:
    held = {name: facts["idsInWords"] for name, facts in today().facts.items() if "idsInWords" in facts}
    (token,) = held["label of another run"]
    changed = take_apart(replaced(answers_today(), token, token[:-2] + "AA"))
    assert changed.facts["label of another run"]["idsInWords"] == [token[:-2] + "AA"]
    assert words_of(changed.words, committed()) == words_of(today().words, committed())


def test_a_new_message_gets_a_key_and_one_that_is_gone_takes_its_key_along() -> None:
    answers = answers_today()
    first = take_apart({"start": answers["start"]}).words
    old = words_of(first, Words(messages={}, answers={}))
    text = answers["start"].text.replace("**References**\n", "**References**\nTwo of them.\n")
    grown = ToolResult(structure=answers["start"].structure, text=text, is_error=False)
    new = words_of(take_apart({"start": grown}).words, old)
    assert new["messages"].keys() - old["messages"].keys() == {"two-of-them"}
    assert words_of(first, new) == old


@pytest.mark.parametrize(("kind", "other"), [("facts", "words"), ("words", "facts")])
def test_a_run_that_writes_one_kind_cannot_write_the_other(
    kind: Kind, other: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "golden"
    path.write_text("committed", encoding="utf-8")
    monkeypatch.setenv(SWITCH, kind)
    with pytest.raises(AssertionError):
        compare(other, path, "changed")
    assert path.read_text(encoding="utf-8") == "committed"
    compare(kind, path, "changed")
    assert path.read_text(encoding="utf-8") == "changed"


def test_a_switch_that_names_no_kind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "1")
    with pytest.raises(AssertionError, match="facts or words"):
        is_writing("facts")
