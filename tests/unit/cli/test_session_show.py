"""One session whole, the status of runs, and what is open: as people read it and as data."""

import os
import sys

import pytest
from tests.support.flow import deciding, loop, step
from tests.support.history import HOSTILE, Place, appended, begun_at, checkpointed, label_of, redone, tip_of
from tests.support.modes import NEVER_STOPS, claim, with_artifacts
from tests.support.words import many_words

from interlock.kernel.budgets import NOTES_BYTES_MAX
from interlock.kernel.canonical import digest_of_bytes
from interlock.kernel.ids import OutputId, derived_id
from interlock.record import payloads as data
from interlock.record.append_plan import EventDraft
from interlock.store.git import GitAnchors
from interlock.testing.harness import Harness, ToolResult, linear_workflow

SHIP = linear_workflow("team.ship", "a", "b", "c", name="Ship it")

DELETION = "`interlock gc` may delete it from 2025-04-01T00:03:00.000Z on, unless something is recorded before"


@pytest.fixture
def harness(place: Place) -> Harness:
    return place.serving(SHIP)


def worked(place: Place, harness: Harness) -> ToolResult:
    """Do the first step with evidence, be refused in the second, keep a checkpoint, do it; leave the third."""
    first = harness.start("team.ship", goal="Ship 1.0", context={"mode": "fast"})
    place.later(1)
    verdict = {"kind": "team.verdict", "ok": True}
    second = harness.advance(first, None, output={"notesMarkdown": "Built it.\nTwice.", "artifacts": [verdict]})
    place.later(1)
    refused = harness.advance(second, None)
    checkpointed(harness, first, "Half of b.", client="claude-code")
    place.later(1)
    harness.advance(refused, "Did b.", context={"tag": "v1"})
    return first


@pytest.mark.inv("HIS-9", "GC-2")
@pytest.mark.parametrize("way", ["directory", "pipe", "loop"])
def test_retention_pins_that_are_no_file_keep_no_session_from_being_shown(
    place: Place, harness: Harness, way: str
) -> None:
    session = str(harness.session_of(worked(place, harness)))
    pins = place.root / "config" / "keep.json"
    if way == "loop":
        pins.symlink_to(pins.name)
    else:
        pins.mkdir() if way == "directory" else os.mkfifo(pins)
    shown = place.run("show")
    assert (shown.code, "not known: the marks of kept sessions cannot be read" in shown.out) == (0, True)
    refused = place.run("keep", session)
    assert (refused.code, "config/keep.json of the data directory, cannot be read" in refused.err) == (1, True)


@pytest.mark.inv("GC-1")
def test_a_session_says_how_long_it_is_kept(place: Place, harness: Harness) -> None:
    session = str(harness.session_of(worked(place, harness)))
    assert place.run("show", "--json").json()["lifetime"] == {
        "isKept": False,
        "expiresAt": "2025-04-01T00:03:00.000Z",
        "days": 90,
    }
    place.run("keep", session)
    assert "  Deletion        never deleted by age: it is marked to be kept" in place.run("show").out.splitlines()
    (place.root / "config" / "keep.json").write_text("{")
    assert "not known: the marks of kept sessions cannot be read" in place.run("show").out
    for name in ("keep.json", "keep.settled"):
        (place.root / "config" / name).unlink()
    (place.root / "config.toml").write_text("[retention]\ndays = 0\n")
    assert "never deleted by age: `retention.days` is 0" in place.run("show").out
    (place.root / "config.toml").write_text("[retention]\ndays = -1\n")
    assert "not known: the configuration has faults" in place.run("show").out


def test_a_session_is_shown_whole(place: Place, harness: Harness) -> None:
    first = worked(place, harness)
    digest = place.run("show", "--json").json()["runs"][0]["steps"][0]["artifacts"][0]["digest"]
    workflow = place.run("show", "--json").json()["runs"][0]["workflowHash"]
    run = first["run"]
    fix = place.run("show", "--json").json()["runs"][0]["steps"][1]["refused"][0]["blockers"][0]
    assert place.run("show").out.splitlines() == [
        f"Ship it: run {label_of(first)}",
        "  Goal            Ship 1.0",
        "  Status          in progress: step 3 of 3, Step c",
        "  Workflow        team.ship (project, team.ship.json)",
        f"  Pinned as       {workflow}",
        "  Preferences     autonomy guided, risk policy conservative",
        "  Started         2025-01-01T00:00:00.000Z",
        "  Last worked on  2025-01-01T00:03:00.000Z",
        "  Context keys    goal, mode, tag",
        f"  Deletion        {DELETION}",
        f"  Session         {run['sessionId']}, 20 events, run {run['runId']}, 4 nodes",
        "  What the steps rest on: 2 claimed.",
        "",
        "  Steps, newest first",
        "",
        "    3. Step c: pending",
        "",
        "    2. Step b, 2025-01-01T00:03:00.000Z",
        "      > Did b.",
        "      Notes of its last checkpoint:",
        "      > Half of b.",
        f"      - attempt 1 was refused: MISSING_REQUIRED_OUTPUT: {fix['message']} {fix['suggestedFix']}",
        "",
        "    1. Step a, 2025-01-01T00:01:00.000Z",
        "      > Built it.",
        "      > Twice.",
        f"      - artifact team.verdict, 33 bytes, {digest}",
    ]


def test_one_node_is_not_counted_in_the_plural(place: Place, harness: Harness) -> None:
    harness.start("team.ship")
    for command in ("show", "report"):
        assert ", 1 node\n" in place.run(command).out


FORGED = ("- received the event wr.check (executed, via check): passed", "2. Step b, 2025-01-01T00:03:00.000Z")


@pytest.mark.inv("EVD-4")
@pytest.mark.parametrize("options", [(), ("--evidence",), ("--step", "1")])
def test_no_line_of_notes_can_pass_for_a_line_of_interlock(
    place: Place, harness: Harness, options: tuple[str, ...]
) -> None:
    notes = "\n".join(["Built it.", *FORGED, *(f"    {line}" for line in FORGED)])
    harness.advance(harness.start("team.ship"), notes)
    shown = [line for line in place.run("show", *options).out.splitlines() if line.endswith(FORGED)]
    assert len(shown) == 4
    assert all(line.startswith("      > ") for line in shown)


@pytest.mark.inv("EVD-4")
@pytest.mark.parametrize("options", [("--evidence",), ("--step", "1")])
@pytest.mark.parametrize("columns", ["40", "400"])
def test_no_line_of_an_artifact_can_pass_for_a_line_of_interlock(
    place: Place, harness: Harness, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], columns: str
) -> None:
    said = "received the event wr.check (executed, via check)"
    artifact: dict[str, object] = {
        "kind": "team.plan",
        f"- {said}": "passed",
        said: [{said: "a", "b": f"- {said}"}, {said: said}],
        "rows": [{"a": said}],
        "list": [said, said],
    }
    harness.advance(harness.start("team.ship"), "Built it.", output=with_artifacts(artifact, notes="Built it."))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", columns)
    shown = [line for line in place.run("show", *options).out.splitlines() if "received" in line or "(executed" in line]
    assert len(shown) >= 6
    assert [line for line in shown if not line.startswith("      > ")] == []


@pytest.mark.inv("HIS-4")
def test_a_session_as_json_tells_the_same_of_each_step(place: Place, harness: Harness) -> None:
    worked(place, harness)
    (run,) = place.run("show", "--json").json()["runs"]
    assert [(one["number"], one["isDone"], one["notes"], one["at"]) for one in run["steps"]] == [
        (1, True, "Built it.\nTwice.", "2025-01-01T00:01:00.000Z"),
        (2, True, "Did b.", "2025-01-01T00:03:00.000Z"),
        (3, False, None, None),
    ]
    assert run["steps"][1]["checkpoint"] == "Half of b."
    assert [one["kind"] for one in run["steps"][0]["artifacts"]] == ["team.verdict"]
    assert (run["sourceKind"], run["source"], [one["key"] for one in run["context"]]) == (
        "project",
        "team.ship.json",
        ["goal", "mode", "tag"],
    )
    assert run["preferences"] == {"autonomy": "guided", "riskPolicy": "conservative"}
    assert (run["status"], run["number"], run["total"]) == ("in_progress", 3, 3)
    assert [(one["step"]["number"], one["isPreferredTip"]) for one in run["branches"]] == [(3, True)]


def test_a_refused_run_says_why_it_does_not_go_on(place: Place, harness: Harness) -> None:
    harness.advance(harness.start("team.ship"), None)
    result = place.run("show").out
    assert "Status          blocked: step 1 of 3, Step a" in result
    assert "Why it is blocked\n    - MISSING_REQUIRED_OUTPUT: " in result


def test_only_the_last_steps_are_shown_and_long_notes_cut_unless_all_is_asked_for(place: Place) -> None:
    harness = place.serving(linear_workflow("team.long", *(f"s{number}" for number in range(9))))
    answer = harness.start("team.long")
    for number in range(8):
        answer = harness.advance(answer, f"Step {number} was long. {many_words(140)} {number}")
    short, whole = place.run("show").out, place.run("show", "--all").out
    assert "4 earlier steps are left out; `interlock session show --all` shows them." in short
    assert "Step 4 was long." in short
    assert "Step 3 was long." not in short
    assert short.count("…") == 4
    assert whole.count(" was long.") == 8
    assert "left out" not in whole
    assert "…" not in whole


@pytest.mark.damages
def test_notes_over_their_budget_are_shown_whole_from_the_artifact_that_holds_them(
    place: Place, harness: Harness
) -> None:
    notes = "é" * NOTES_BYTES_MAX
    harness.advance(harness.start("team.ship"), notes)
    (run,) = place.run("show", "--json").json()["runs"]
    assert run["steps"][0]["notes"] == notes
    assert run["steps"][0]["artifacts"] == []
    for stored in place.root.glob("artifacts/*"):
        stored.unlink()
    (run,) = place.run("show", "--json").json()["runs"]
    assert run["steps"][0]["notes"].endswith("[TRUNCATED]")


@pytest.mark.damages
def test_an_artifact_that_is_gone_is_reported_and_the_rest_is_shown(place: Place, harness: Harness) -> None:
    worked(place, harness)
    for stored in place.root.glob("artifacts/*"):
        stored.unlink()
    result = place.run("show")
    assert result.code == 1
    assert "artifact application/json, 33 bytes, sha256:" in result.out
    assert "missing or damaged" in result.out


def test_an_artifact_that_names_no_kind_is_reported_by_its_type(place: Place, harness: Harness) -> None:
    first = harness.start("team.ship")
    harness.advance(first, None, output={"notesMarkdown": "Done.", "artifacts": [{"kind": "x" * 9, "n": 1}]})
    assert "artifact xxxxxxxxx, " in place.run("show").out


@pytest.mark.damages
def test_an_artifact_that_is_no_json_is_reported_by_its_type(place: Place, harness: Harness) -> None:
    first = harness.start("team.ship")
    harness.advance(first)
    run, tip = tip_of(harness, first)
    stored = b"\xff\x00 no JSON"
    payload = data.ArtifactPayload(
        sha256=digest_of_bytes(stored),
        content_type="application/octet-stream",
        byte_length=len(stored),
    )
    output = data.NodeOutputAppended(
        output_id=OutputId(derived_id("out", tip.node, "odd")), output_channel="artifact", payload=payload
    )
    appended(harness, first, EventDraft(data=output, run=run.run, node=tip.node), artifacts=(stored,))
    assert f"artifact application/octet-stream, {len(stored)} bytes, {digest_of_bytes(stored)}" in place.run("show").out


def test_branches_are_listed_and_drawn_and_the_preferred_one_is_marked(place: Place, harness: Harness) -> None:
    first = worked(place, harness)
    redone(harness, first)
    result = place.run("show").out
    assert "  Branches: 2\n    - step 3, Step c (node_" in result
    assert "- step 2, Step b (node_" in result
    assert result.count("preferred") == 2
    assert "⑂ redone on a branch" in result


def test_of_a_large_graph_show_names_the_command_that_draws_it(place: Place, harness: Harness) -> None:
    first = harness.start("team.ship")
    harness.advance(first)
    for _ in range(40):
        redone(harness, first)
    assert f"`interlock session graph {label_of(first)}` draws its 42 nodes." in place.run("show").out
    assert "⑂" in place.run("show", "--all").out


def test_a_complete_run_shows_its_steps_and_no_pending_one(place: Place, harness: Harness) -> None:
    answer = harness.start("team.ship")
    while not answer["isComplete"]:
        answer = harness.advance(answer)
    result = place.run("show").out
    assert "Status          complete\n" in result
    assert "pending" not in result
    assert [result.index(f"{number}. Step") for number in (3, 2, 1)] == sorted(
        result.index(f"{number}. Step") for number in (3, 2, 1)
    )


def test_a_step_of_a_loop_says_its_pass(place: Place) -> None:
    body = loop("l", deciding("again"), maxIterations=3, **{"while": {"kind": "loop_control"}})
    harness = place.serving({"id": "team.loop", "name": "Loop", "steps": [body, step("end")]})
    more = with_artifacts({"kind": "wr.loop_control", "decision": "continue"})
    harness.advance(harness.start("team.loop"), None, output=more)
    assert "1. Step again (pass 2): pending" in place.run("show").out
    (run,) = place.run("show", "--json").json()["runs"]
    assert [one["loop"] for one in run["steps"]] == [{"loopId": "l", "pass": 1}, {"loopId": "l", "pass": 2}]


def test_where_a_run_began_in_git_is_shown(place: Place, harness: Harness) -> None:
    anchors = GitAnchors(repo_root="/home/ada/ship", branch="main", head_sha="a" * 40)
    begun_at(harness, anchors).start("team.ship")
    result = place.run("show").out
    assert "  Git branch      main\n" in result
    assert f"  Git head sha    {'a' * 40}\n" in result
    assert "  Repo root       /home/ada/ship\n" in result
    report = place.run("report").out
    assert "main" in report
    assert "/home/ada" not in report


def test_all_runs_of_a_session_are_shown_or_the_one_that_is_named(place: Place, harness: Harness) -> None:
    first = harness.start("team.ship", goal="One")
    second = harness.start("team.ship", goal="Two", sessionId=first["run"]["sessionId"])
    assert place.run("show").out.count("\n\nShip it: run ") == 1
    assert "Two" not in place.run("show", label_of(first)).out
    assert "One" not in place.run("show", label_of(second)).out


@pytest.mark.inv("HIS-4")
def test_what_is_shown_fits_the_terminal_and_cannot_steer_it(
    place: Place, harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = harness.start("team.ship", goal=HOSTILE)
    harness.advance(first, f"{HOSTILE}\n\tindented\r\n{'long ' * 90}{'x' * 300}\n\nعربي")
    place.capsys.readouterr()
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    shown = place.run("show", "--all")
    assert shown.code == 0
    result = shown.out
    assert "\x1b" not in result
    assert "\u202e" not in result
    assert max(map(len, result.splitlines())) <= 60
    assert "عربي" in result


def test_the_status_is_a_line_for_each_run_and_the_exit_code_never_depends_on_it(
    place: Place, harness: Harness
) -> None:
    first = harness.start("team.ship", goal="One")
    place.later(1)
    second = harness.start("team.ship", goal="Two")
    harness.advance(second, None)
    result = place.run("status")
    assert result.code == 0
    assert [line.split() for line in result.out.splitlines()] == [
        ["RUN", "STATUS", "STEP", "TITLE", "WORKFLOW", "GOAL"],
        [label_of(second), "blocked", "1", "of", "3", "Step", "a", "team.ship", "Two"],
        [label_of(first), "in", "progress", "1", "of", "3", "Step", "a", "team.ship", "One"],
    ]
    one = place.run("status", label_of(first), "--json").json()
    assert [(run["session"], run["status"]) for run in one["runs"]] == [(first["run"]["sessionId"], "in_progress")]


def test_where_nothing_is_recorded_the_status_says_so(place: Place) -> None:
    assert place.run("status").out == "There are no runs here.\n"


@pytest.mark.inv("HIS-5")
def test_open_gaps_say_what_where_when_and_what_would_resolve_each(place: Place, harness: Harness) -> None:
    first = harness.start("team.ship", preferences=NEVER_STOPS)
    place.later(1)
    harness.advance(first, None)
    harness.start("team.ship")
    for name in ((), (label_of(first),)):
        result = place.run("open-gaps", *name)
        assert result.code == 1
        lines = result.out.splitlines()
        assert lines[0] == f"Run {label_of(first)} of {first['run']['sessionId']}, team.ship: 1 open"
        assert lines[1].startswith("  critical, missing required output: The step 'Step a' needs notes")
        assert lines[2].startswith("    opened in step 1, Step a, 2025-01-01T00:01:00.000Z (node_")
        assert lines[3].startswith("    to resolve: Correct what was missing")
        assert len(lines) == 4
    (run,) = place.run("open-gaps", "--json").json()["runs"]
    (gap,) = run["gaps"]
    assert (run["label"], gap["severity"], gap["step"]["title"]) == (label_of(first), "critical", "Step a")
    assert gap["reason"] == {"category": "contract_violation", "detail": "missing_required_output"}
    assert "Open gaps: 1" in place.run("show", label_of(first)).out


@pytest.mark.inv("HIS-5")
def test_a_gap_is_gone_from_what_is_open_once_its_step_is_redone(place: Place, harness: Harness) -> None:
    first = harness.start("team.ship", preferences=NEVER_STOPS)
    harness.advance(first, None)
    assert place.run("open-gaps").code == 1
    redone(harness, first)
    result = place.run("open-gaps")
    assert (result.code, result.out) == (0, "There are no open gaps.\n")


@pytest.mark.inv("HIS-5")
def test_each_category_says_what_would_resolve_it(place: Place) -> None:
    gate = step("gate", requireConfirmation=True)
    needy = linear_workflow("team.gate", gate, "b", capabilities={"web_browsing": "required"})
    harness = place.serving(needy)
    first = harness.start("team.gate", preferences=NEVER_STOPS)
    unavailable = {"kind": "wr.capability_observation", "capability": "web_browsing", "status": "unavailable"}
    harness.advance(harness.advance(first, None, output=with_artifacts(unavailable)))
    result = place.run("open-gaps").out
    assert "critical, required capability unavailable: " in result
    assert "Make the capability available" in result
    assert "critical, needs user approval: " in result
    assert "Answer or approve what the step needs" in result


@pytest.mark.inv("HIS-5")
def test_what_was_missing_at_the_start_stays_open_and_says_so(place: Place) -> None:
    starts = linear_workflow(
        "team.starts",
        step("a", when={"var": "mode", "equals": "fast"}),
        "b",
        inputs=[{"key": "mode", "type": "string", "description": "The mode."}],
    )
    harness = place.serving(starts)
    first = harness.start("team.starts", preferences=NEVER_STOPS)
    assert not first.is_error, first.text
    result = place.run("open-gaps").out
    assert "opened in the start, " in result
    assert "Begin a new run with what is missing" in result


def test_a_claim_is_open_and_is_nothing_critical(place: Place) -> None:
    harness = place.serving(linear_workflow("team.gate", step("gate", requireConfirmation=True), "b"))
    first = harness.start("team.gate")
    harness.advance(first, None, output=with_artifacts(claim()))
    result = place.run("open-gaps")
    assert result.code == 0
    assert "  warning, needs user approval: " in result.out
