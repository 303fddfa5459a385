"""`interlock session verify | explain`: what does not follow, and why a run stands where it does."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.flow import IS_FAST, Document, choose, declared, document, loop, step
from tests.support.modes import NEVER_STOPS
from tests.support.server import tree
from tests.support.tampering import Tampering

from interlock.cli.main import main
from interlock.testing.harness import Harness, ToolResult

WORKFLOW = document(
    step("a", set=[{"key": "seen", "from": "mode"}]),
    choose("way", (IS_FAST, [step("quick", produces=["level"])]), otherwise=[step("slow")]),
    loop("twice", step("again", notes="optional"), **{"for": {"countFrom": "level"}}),
    step("end", needs=["box.size"]),
    inputs=[declared("mode"), declared("seen"), declared("level", "number"), declared("box", "object")],
)
PLACE = "capture: decisions[0].read[0].value"
LOOKS = ["verify", "verify --json", "verify --force", "explain {token}", "explain node_x"]
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def harness(data: Path) -> Harness:
    return Harness.on_disk(data, WORKFLOW)


@pytest.fixture
def command(data: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `interlock session …` on the data directory; gives the exit code and what was printed."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["session", *arguments, "--data-dir", str(data)])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def a_run(harness: Harness, **more: object) -> list[ToolResult]:
    """Return the answers of a run from the start to its end; its second attempt is refused."""
    answers = [harness.start("test.flow", context={"mode": "fast", "box": {"size": 1}}, **more)]
    answers.append(harness.advance(answers[-1]))
    answers.append(harness.advance(answers[-1], None))
    answers.append(harness.advance(answers[-1], "Was quick.", context={"level": 1}))
    answers.append(harness.advance(answers[-1], None))
    answers.append(harness.advance(answers[-1]))
    assert answers[-1]["isComplete"]
    return answers


def altered(data: Path, found: str = "slow") -> str:
    """Let a captured record say that a decision read something else; return the decision's node."""

    def change(capture: Document) -> None:
        capture["decisions"][0]["read"][0]["value"] = found

    return Tampering(data).alter_capture(change)


# verify.


def test_sound_sessions_are_reported_one_by_one_and_end_with_0(harness: Harness, command: Command) -> None:
    first, second = a_run(harness)[0], harness.start("test.flow", context={"mode": "slow"})
    names = sorted(map(harness.session_of, (first, second)))
    result = [f"{name}: sound" for name in names]
    assert command("verify") == (0, "\n".join([*result, "2 sessions, 0 mismatches", ""]), "")
    assert command("verify", names[1]) == (0, f"{result[1]}\n1 session, 0 mismatches\n", "")


def test_without_sessions_there_is_nothing_wrong(data: Path, command: Command) -> None:
    assert command("verify") == (0, "0 sessions, 0 mismatches\n", "")
    assert not data.exists()


@pytest.mark.damages
def test_a_mismatch_is_reported_with_code_node_place_and_fix_and_ends_with_1(
    data: Path, harness: Harness, command: Command
) -> None:
    session = harness.session_of(a_run(harness)[0])
    node = altered(data)
    code, out, err = command("verify")
    assert (code, err) == (1, "")
    assert out.splitlines() == [
        f"{session}: 1 mismatch",
        f'  decision_mismatch at {node}, {PLACE}: recorded: "slow"; replayed: "fast"',
        "    The record was changed, or another build of Interlock wrote it. Compare it with a backup.",
        "1 session, 1 mismatch",
    ]


@pytest.mark.damages
def test_json_is_one_value_with_the_sessions_and_each_mismatch(data: Path, harness: Harness, command: Command) -> None:
    session = harness.session_of(a_run(harness)[0])
    code, out, _ = command("verify", "--json")
    counted = {"appends": 6, "events": 27, "decisions": 5, "contents": 9, "signatures": 0}
    proof = {"sessions": [session], "mismatches": [], "examined": {session: counted}, "unfinished": {}}
    assert (code, json.loads(out)) == (0, proof)
    node = altered(data)
    code, out, err = command("verify", "--json")
    result = json.loads(out)
    (mismatch,) = result["mismatches"]
    assert (code, err, result["sessions"]) == (1, "", [session])
    assert (mismatch["code"], mismatch["session"], mismatch["node"]) == ("decision_mismatch", session, node)
    assert sorted(mismatch) == ["code", "fix", "found", "node", "session", "where"]


@pytest.mark.damages
def test_what_is_shown_of_a_record_cannot_steer_the_terminal(data: Path, harness: Harness, command: Command) -> None:
    a_run(harness)
    altered(data, "\x1b[2J")
    assert "\x1b" not in command("verify")[1]


def test_an_unknown_session_is_refused_with_1(harness: Harness, command: Command) -> None:
    a_run(harness)
    code, out, err = command("verify", "sess_nope")
    assert (code, out) == (1, "")
    assert "There is no session 'sess_nope'" in err
    code, out, _ = command("verify", "sess_nope", "--json")
    assert code == 1
    assert "sess_nope" in json.loads(out)["error"]["message"]


@pytest.mark.parametrize("arguments", [["verify", "--forced"], ["explain"], ["look"], []])
def test_a_wrong_command_line_ends_with_2(command: Command, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command(*arguments)
    assert ended.value.code == 2


@pytest.mark.damages
@pytest.mark.inv("VERIFY-3")
def test_force_compares_what_other_operators_decided(data: Path, harness: Harness, command: Command) -> None:
    a_run(harness)
    Tampering(data).alter_capture(lambda capture: capture.update(catalogue="sha256:" + "0" * 64))
    code, out, _ = command("verify")
    assert code == 1
    assert "provenance_mismatch" in out
    assert "--force" in out
    assert command("verify", "--force")[0] == 0
    node = altered(data)
    code, out, _ = command("verify", "--force")
    assert code == 1
    assert f"decision_mismatch at {node}, {PLACE}" in out


# explain.


@pytest.mark.inv("VERIFY-6")
def test_a_choice_is_explained_with_its_condition_what_it_read_and_the_way_taken(
    harness: Harness, command: Command
) -> None:
    answer = a_run(harness)[1]
    code, out, _ = command("explain", answer.state)
    assert code == 0
    head, *lines = out.splitlines()
    assert head.endswith(": Step quick")
    assert lines == [
        "Decided:",
        "  `way`: `mode` equals 'fast' [`mode` = \"fast\"] holds → `quick`",
        "Set:",
        '  `seen` = "fast"',
        "In short:",
        "  Set `seen`.",
        "  `mode` equals 'fast': holds",
        "  Next: Step quick",
    ]


def test_a_refusal_is_explained_by_its_blockers(harness: Harness, command: Command) -> None:
    code, out, _ = command("explain", a_run(harness)[2].ack)
    assert code == 0
    refused = out.partition("Refused:\n")[2].splitlines()
    assert [line.strip().partition(":")[0] for line in refused] == ["MISSING_REQUIRED_OUTPUT"] * 2
    assert "must set the context key 'level'" in out
    assert "needs notes" in out


def test_a_pass_of_a_loop_is_explained_with_its_number(harness: Harness, command: Command) -> None:
    answers = a_run(harness)
    assert (
        "`twice`, pass 1 of `twice`: one more pass [`level` = 1] holds → the loop continues"
        in command("explain", answers[3].state)[1]
    )
    assert (
        "`twice`, pass 2 of `twice`: one more pass [`level` = 1] does not hold → the loop ends"
        in command("explain", answers[4].state)[1]
    )


def test_a_gap_is_explained_where_it_was_left(harness: Harness, command: Command) -> None:
    first = harness.start("test.flow", context={"mode": "fast"}, preferences=NEVER_STOPS)
    gone_on = harness.advance(harness.advance(first), None)
    out = command("explain", gone_on.state)[1]
    assert "Gaps:\n" in out
    assert "needs notes: `output.notesMarkdown` is" in out


def test_where_nothing_was_decided_that_is_said(harness: Harness, command: Command) -> None:
    assert "No decision led here" in command("explain", a_run(harness)[0].state)[1]
    assert ": Complete\n" in command("explain", a_run(harness)[-1].state)[1]


def test_an_id_and_both_tokens_of_a_node_explain_the_same(harness: Harness, command: Command) -> None:
    answer = a_run(harness)[1]
    by_state = command("explain", answer.state)
    node = by_state[1].partition(" ")[0]
    assert node.startswith("node_")
    assert command("explain", node) == command("explain", answer.ack) == by_state


@pytest.mark.inv("VERIFY-6")
def test_json_holds_the_same_and_the_captured_record(harness: Harness, command: Command) -> None:
    answers = a_run(harness)
    result: Any = json.loads(command("explain", answers[1].state, "--json")[1])
    assert list(result) == ["session", "node", "title", "refused", "decided", "set", "gaps", "reasons", "capture"]
    assert result["title"] == "Step quick"
    assert result["decided"] == ["`way`: `mode` equals 'fast' [`mode` = \"fast\"] holds → `quick`"]
    (decision,) = result["capture"]["decisions"]
    assert (decision["at"], decision["verdict"]) == ("way", True)
    assert decision["read"] == [{"path": "mode", "value": "fast"}]
    refused = json.loads(command("explain", answers[2].state, "--json")[1])
    assert refused["capture"] == {}
    assert len(refused["refused"]) == 2


@pytest.mark.parametrize("wanted", ["node_" + "0" * 26, "node_"])
def test_a_node_that_is_nowhere_is_refused_with_1(harness: Harness, command: Command, wanted: str) -> None:
    a_run(harness)
    code, out, err = command("explain", wanted)
    assert (code, out) == (1, "")
    assert f"contains the node {wanted!r}" in err


@pytest.mark.parametrize("wanted", ["what", "st.v1.e30.e30", "", "\x1b[2J", "x" * 10_000])
def test_what_is_neither_an_id_nor_a_token_of_here_is_refused_with_1(
    harness: Harness, command: Command, wanted: str
) -> None:
    a_run(harness)
    code, out, err = command("explain", wanted)
    assert (code, out) == (1, "")
    assert "is neither a node id nor a token of this data directory" in err
    assert "\x1b" not in err
    assert len(err) < 400


def test_a_token_of_another_data_directory_is_refused_with_1(
    tmp_path: Path, harness: Harness, command: Command
) -> None:
    a_run(harness)
    elsewhere = Harness.on_disk(tmp_path / "elsewhere", WORKFLOW).start("test.flow")
    assert command("explain", elsewhere.state)[0] == 1


@pytest.mark.damages
def test_a_node_of_a_damaged_session_is_reported_as_damaged_by_its_token(
    data: Path, harness: Harness, command: Command
) -> None:
    answer = a_run(harness)[1]
    manifest = next(data.glob("sessions/*/manifest.jsonl"))
    manifest.write_bytes(manifest.read_bytes().replace(b"sha256:", b"sha256:0", 1))
    code, out, err = command("explain", answer.state)
    assert (code, out) == (1, "")
    assert "damaged" in err


# Nothing is written.


@pytest.mark.damages
@pytest.mark.inv("VERIFY-4")
@pytest.mark.parametrize("is_sound", [True, False])
@pytest.mark.parametrize("look", LOOKS)
def test_nothing_in_the_data_directory_changes(
    data: Path, harness: Harness, command: Command, look: str, *, is_sound: bool
) -> None:
    answer = a_run(harness)[1]
    if not is_sound:
        manifest = next(data.glob("sessions/*/manifest.jsonl"))
        manifest.write_bytes(manifest.read_bytes()[:-9])
    before = tree(data)
    command(*look.format(token=answer.state).split())
    assert tree(data) == before
