"""What is printed cannot steer a terminal, and every fault stands on one line that begins with its place."""

import json
import sys

import pytest

from interlock.cli.screen import fault_lines, flat, printable, printable_line, say_json, say_table
from interlock.define.diagnostics import Diagnostic, fault, warning


def test_characters_that_colour_move_or_reorder_are_written_out_and_the_others_stay() -> None:
    assert printable("a\x1b[31mb\x07\r\x9b\u202ec\ud800") == "a\\x1b[31mb\\x07\\r\\x9b\\u202ec\\ud800"
    assert printable("Ünïcode ↻ 中文\n\tand lines") == "Ünïcode ↻ 中文\n\tand lines"


def test_the_name_of_a_file_stays_on_one_line() -> None:
    assert printable_line("a\nb\tc.json") == "a\\nb\\tc.json"


def test_a_label_is_one_line_with_single_spaces() -> None:
    assert flat(" Two\n  lines\x1b ") == "Two lines\\x1b"


def test_faults_stand_in_the_order_of_their_places_and_begin_with_them() -> None:
    later = Diagnostic(path="steps[1]", code="unknown_key", message="M.", fix="F.", line=9, column=2)
    sooner = Diagnostic(path="id", code="legacy_id", message="M.", fix="F.", severity="warning", line=2, column=11)
    assert fault_lines("a.json", (later, sooner)) == [
        "a.json:2:11: warning legacy_id id: M. F.",
        "a.json:9:2: error unknown_key steps[1]: M. F.",
    ]


def test_a_text_that_cannot_be_read_is_placed_where_it_breaks_off() -> None:
    broken = fault("", "not_json", "Line 3, column 7: Expecting value.", "Correct the JSON.")
    nested = fault("", "too_deep", "Line 4 nests deeper than 64 levels.", "Flatten it.")
    assert fault_lines("a.json", (broken, nested)) == [
        "a.json:3:7: error not_json (document): Line 3, column 7: Expecting value. Correct the JSON.",
        "a.json:4:1: error too_deep (document): Line 4 nests deeper than 64 levels. Flatten it.",
    ]


def test_a_fault_without_a_place_stands_at_the_beginning() -> None:
    assert fault_lines("a.json", (warning("", "legacy_id", "M.", "F."),))[0].startswith("a.json:1:1: warning ")


def test_json_is_ascii_so_that_any_pipe_carries_it(capsys: pytest.CaptureFixture[str]) -> None:
    say_json({"name": "Prüfung \x9b"})
    printed = capsys.readouterr().out
    assert printed.isascii()
    assert json.loads(printed) == {"name": "Prüfung \x9b"}


def test_a_table_that_is_read_by_a_program_is_columns_of_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    say_table(("ID", "WHAT"), [("a.long_id", "One\nthing"), ("b", "")])
    assert capsys.readouterr().out.splitlines() == ["ID         WHAT", "a.long_id  One thing", "b"]


LONG_ID = "wr.bug_investigation.agentic"
TABLE = (("ID", "STEPS", "SOURCE", "WHAT IT IS"), [(LONG_ID, "12", "bundled", "Find the cause of a fault " * 3)])


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest) -> str:
    """Return the table as a terminal of the given width shows it, without bold."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for name, value in {"COLUMNS": str(request.param), "TERM": "xterm", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    say_table(*TABLE, ids=("ID",))
    return capsys.readouterr().out.replace("\x1b[1m", "").replace("\x1b[0m", "")


@pytest.mark.inv("HIS-4")
@pytest.mark.parametrize("shown", [56, 57, 79, 80, 81, 200], indirect=True)
def test_a_table_fits_the_terminal_and_leaves_ids_whole(shown: str, request: pytest.FixtureRequest) -> None:
    heads, _, first, *_ = lines = [line.rstrip() for line in shown.splitlines()]
    assert heads.split() == ["ID", "STEPS", "SOURCE", "WHAT", "IT", "IS"]
    assert first.startswith(f"{LONG_ID}  12     bundled  Find")
    assert max(map(len, lines)) <= request.node.callspec.params["shown"]


@pytest.mark.inv("HIS-4")
@pytest.mark.parametrize("shown", [20, 32, 40, 55], indirect=True)
def test_a_terminal_that_is_too_narrow_for_the_columns_shows_a_block_for_each_row(shown: str) -> None:
    title, steps, source, *words = shown.splitlines()
    assert (title, steps, source) == (LONG_ID, "  STEPS: 12", "  SOURCE: bundled")
    assert words[0].startswith("  WHAT IT IS: Find")
    assert {len(line) - len(line.lstrip()) for line in words[1:]} <= {len("  WHAT IT IS: ")}
    assert " ".join(" ".join(words).split()) == "WHAT IT IS: " + TABLE[1][0][3].strip()
