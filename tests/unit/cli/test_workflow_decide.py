"""`interlock workflow decide`: the decisions of a step without a session. It writes nothing."""

import json

import pytest
from tests.support.flow import Document, choose, declared, document, loop, parallel, step
from tests.unit.cli.conftest import Project

from interlock.kernel.budgets import CONTEXT_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.testing.harness import Harness

FLOW = document(
    step(
        "count",
        set=[
            {"key": "level", "compute": {"add": [{"var": "level"}, 1]}},
            {"key": "mode", "value": "fast", "when": {"var": "is_urgent", "equals": True}},
        ],
    ),
    choose("pick", ({"var": "level", "gt": 1}, [step("high")]), otherwise=[step("low")]),
)


def run(project: Project, capsys: pytest.CaptureFixture[str], flow: Document, *words: str) -> tuple[int, str, str]:
    (project.root / "flow.json").write_text(json.dumps(flow))
    code = project.run("decide", "flow.json", *words)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def a_file(project: Project, value: object, name: str = "context.json") -> str:
    (project.root / name).write_text(value if isinstance(value, str) else json.dumps(value))
    return name


@pytest.mark.inv("DEC-15")
@pytest.mark.parametrize(("level", "following", "taken"), [(0, "low", False), (1, "high", True)])
def test_the_step_and_the_decisions_after_it_are_evaluated(
    project: Project, capsys: pytest.CaptureFixture[str], level: int, following: str, *, taken: bool
) -> None:
    given = a_file(project, {"level": level, "is_urgent": False})
    code, out, _ = run(project, capsys, FLOW, "--at", "count", "--context", given, "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["pass"]["values"]["value:level"] == {"value": level + 1}
    assert answer["pass"]["outcomes"] == {"action:level": {"kind": "completed"}, "action:mode": {"kind": "skipped"}}
    assert answer["pass"]["triggers"]["trigger:mode.when"] == "not_emitted"
    assert answer["pass"]["effects"] == [
        {"kind": "set", "action": "action:level", "key": "level", "value": level + 1},
    ]
    (condition,) = answer["conditions"]
    assert condition["pass"]["values"]["path:level"] == {"value": level + 1}
    assert condition["pass"]["triggers"][condition["trigger"]] == ("emitted" if taken else "not_emitted")
    assert [one["verdict"] for one in answer["decisions"]] == [taken]
    assert (answer["next"], answer["isComplete"], answer["refusedFor"]) == (following, False, [])


def test_the_table_has_a_row_for_every_node(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    given = a_file(project, {"level": 1, "is_urgent": True})
    words = ("--at", "count", "--context", given)
    code, out, _ = run(project, capsys, FLOW, *words)
    _, as_json, _ = run(project, capsys, FLOW, *words, "--json")
    rows = [line.split() for line in out.splitlines() if line]
    answer = json.loads(as_json)
    graphs = [answer["pass"], *(one["pass"] for one in answer["conditions"])]
    nodes = [node for graph in graphs for part in ("values", "triggers", "outcomes") for node in graph[part]]
    assert [row[1] for row in rows if row[1].partition(":")[0] in NODE_KINDS] == nodes
    assert ["count", "action:mode", "-", "-", "completed", "mode", "=", '"fast"'] in rows
    assert rows[-1] == ["Next:", "high"]
    assert code == 0


NODE_KINDS = {"path", "constant", "compute", "value", "trigger", "action"}


def test_an_aborted_pass_ends_with_1_and_names_its_node(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    flow = document(step("a", set=[{"key": "level", "compute": {"divide": [1, {"var": "box.size"}]}}]), step("b"))
    given = a_file(project, {"box": {"size": 0}})
    code, out, _ = run(project, capsys, flow, "--at", "a", "--context", given, "--json")
    answer = json.loads(out)
    assert code == 1
    assert answer["pass"]["isAborted"]
    assert answer["pass"]["failed"]["node"] == "value:level"
    assert answer["pass"]["failed"]["found"] == "a division by zero"
    assert answer["pass"]["outcomes"] == {"action:level": {"kind": "cancelled"}}
    assert [one["code"] for one in answer["refusedFor"]] == ["INVARIANT_VIOLATION"]
    assert (answer["next"], answer["isComplete"]) == (None, False)
    code, out, _ = run(project, capsys, flow, "--at", "a", "--context", given)
    assert code == 1
    assert "a division by zero" in out
    assert "Refused" in out


@pytest.mark.parametrize(("context", "key"), [({"is_urgent": True}, "level"), ({"level": "x"}, "level")])
def test_a_key_that_is_missing_or_unfit_is_named(
    project: Project, capsys: pytest.CaptureFixture[str], context: Document, key: str
) -> None:
    given = a_file(project, context)
    code, out, _ = run(project, capsys, FLOW, "--at", "count", "--context", given, "--json")
    assert code == 1
    pointers = [one["pointer"] for one in json.loads(out)["refusedFor"]]
    assert {"kind": "context_key", "key": key} in pointers


def test_a_suspended_walk_ends_with_1_and_names_the_key(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    flow = document(step("a"), choose("pick", ({"var": "mode", "equals": "x"}, [step("b")])))
    code, out, _ = run(project, capsys, flow, "--at", "a", "--context", a_file(project, {}), "--json")
    answer = json.loads(out)
    assert code == 1
    assert [one["pointer"]["key"] for one in answer["refusedFor"]] == ["mode"]
    assert [one["verdict"] for one in answer["decisions"]] == [None]
    _, out, _ = run(project, capsys, flow, "--at", "a", "--context", "context.json")
    assert "undecided" in out
    assert "mode" in out


def test_what_a_step_reads_of_its_artifact_comes_from_the_file(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    review = {"contractRef": "wr.contracts.review_verdict"}
    flow = document(step("a", outputContract=review, set=[{"key": "mode", "from": "artifact.verdict"}]), step("b"))
    artifact: Document = {
        "kind": "wr.review_verdict",
        "verdict": "clean",
        "confidence": "high",
        "findings": [],
        "summary": "Nothing found.",
    }
    words = ("--at", "a", "--context", a_file(project, {}), "--artifact", a_file(project, artifact, "one.json"))
    code, out, _ = run(project, capsys, flow, *words, "--json")
    assert code == 0
    assert json.loads(out)["pass"]["effects"][0]["value"] == "clean"
    a_file(project, artifact | {"verdict": "nice"}, "one.json")
    code, out, _ = run(project, capsys, flow, *words)
    assert code == 1
    assert "verdict" in out


def test_a_loop_control_artifact_decides_the_loop_after_the_step(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    control = {"contractRef": "wr.contracts.loop_control"}
    asking = step("ask", outputContract=control)
    body = loop("again", step("work"), asking, **{"while": {"kind": "loop_control"}})
    for decision, following in (("continue", "work"), ("stop", "after")):
        artifact = a_file(
            project, {"kind": "wr.loop_control", "decision": decision, "summary": "As found."}, "one.json"
        )
        words = ("--at", "ask", "--context", a_file(project, {}), "--artifact", artifact, "--json")
        code, out, _ = run(project, capsys, document(body, step("after")), *words)
        answer = json.loads(out)
        assert (code, answer["next"]) == (0, following)
        assert [(one["at"], len(one["passes"])) for one in answer["decisions"]] == [("again", 1)]


def test_a_step_in_a_loop_sees_the_first_item(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    inner = step("each", set=[{"key": "mode", "from": "item"}])
    flow = document(loop("all", inner, forEach={"items": "things"}), step("end"))
    given = a_file(project, {"things": ["first", "second"]})
    code, out, _ = run(project, capsys, flow, "--at", "each", "--context", given, "--json")
    answer = json.loads(out)
    assert (code, answer["next"]) == (0, "each")
    assert answer["pass"]["effects"][0]["value"] == "first"
    unusable: tuple[Json, ...] = ([], "none")
    for things in unusable:
        given = a_file(project, {"things": things})
        code, out, _ = run(project, capsys, flow, "--at", "each", "--context", given, "--json")
        assert code == 1
        assert json.loads(out)["refusedFor"][0]["pointer"]["key"] == "things"


def test_the_last_step_leads_to_the_end(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(project, capsys, FLOW, "--at", "low", "--context", a_file(project, {}))
    assert (code, out) == (0, "Next: the end of the run\n")


@pytest.mark.inv("DEC-15")
def test_the_next_step_is_that_of_a_run(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """The same flow, run and decided step by step: whatever is pending next in the run is what is printed."""
    flow = document(
        step("a", set=[{"key": "level", "value": 2}]),
        parallel("both", [step("b"), step("c")], [step("d")]),
        loop("twice", step("e"), **{"for": {"count": 2}}),
        choose("pick", ({"var": "level", "equals": 2}, [step("f")])),
    )
    harness = Harness.in_memory(flow)
    answer = harness.start("test.flow", context={"level": 2})
    passed: list[str] = []
    while answer["pending"] is not None:
        here = answer["pending"]["stepId"]
        answer = harness.advance(answer)
        following = answer["pending"] and answer["pending"]["stepId"]
        if here not in passed:
            given = a_file(project, {"level": 2})
            code, out, _ = run(project, capsys, flow, "--at", here, "--context", given, "--json")
            assert (code, json.loads(out)["next"]) == (0, following), here
        passed.append(here)
    assert passed == ["a", "b", "c", "d", "e", "e", "f"]


@pytest.mark.inv("DEC-15")
def test_nothing_is_written(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    given = a_file(project, {"level": 1, "is_urgent": True})
    assert run(project, capsys, FLOW, "--at", "count", "--context", given)[0] == 0
    assert sorted(path.name for path in project.root.rglob("*")) == ["context.json", "flow.json"]


def test_an_unknown_step_is_a_wrong_command_line_with_the_list(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(project, capsys, FLOW, "--at", "coutn", "--context", a_file(project, {}))
    assert code == 2
    assert "Did you mean count? Its steps are count, high, low." in err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[1]", "is not a JSON object"),
        ("{", "is not valid JSON"),
        ('{"a": 9007199254740993}', "at a"),
        ('{"a": NaN}', "at a"),
        ("[" * 10_000, "nested too deeply"),
        (json.dumps({"a": "x" * CONTEXT_BYTES_MAX}), f"has more than {CONTEXT_BYTES_MAX} bytes"),
        (None, "cannot be read"),
    ],
)
def test_a_file_that_is_no_usable_object_is_a_wrong_command_line(
    project: Project, capsys: pytest.CaptureFixture[str], content: str | None, words: str
) -> None:
    name = "missing.json" if content is None else a_file(project, content)
    code, out, err = run(project, capsys, FLOW, "--at", "count", "--context", name, "--json")
    assert code == 2
    assert words in err
    assert words in json.loads(out)["error"]["message"]


def test_the_file_of_an_artifact_is_checked_like_that_of_the_context(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = a_file(project, "[]", "one.json")
    words = ("--at", "low", "--context", a_file(project, {}), "--artifact", bad)
    code, _, err = run(project, capsys, FLOW, *words)
    assert code == 2
    assert "one.json is not a JSON object" in err


def test_a_declared_choice_is_read_as_it_is_declared(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = [declared("speed", choices=["fast", "slow"])]
    flow = document(step("a"), choose("pick", ({"var": "speed", "equals": "fast"}, [step("b")])), inputs=inputs)
    code, out, _ = run(project, capsys, flow, "--at", "a", "--context", a_file(project, {"speed": "FAST"}), "--json")
    assert (code, json.loads(out)["next"]) == (0, "b")


@pytest.mark.inv("DEC-15")
def test_what_is_sent_once_in_a_run_is_sent_and_shown_with_its_kind_and_fields(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    sent = {
        "kind": "team.audit",
        "fields": {"x": {"value": 9}, "level": {"from": "level"}},
        "mirror": {"audited": "x", "noted": "level"},
        "once": "run",
    }
    never = {"kind": "team.other", "fields": {}, "when": {"var": "level", "gt": 5}}
    inputs = [declared(one, "number") for one in ("audited", "level", "noted")]
    flow = document(step("a", emit=[sent, never]), step("b"), inputs=inputs)
    words = ("--at", "a", "--context", a_file(project, {"level": 2}))
    code, as_json, _ = run(project, capsys, flow, *words, "--json")
    assert code == 0, as_json
    outcomes = json.loads(as_json)["pass"]["outcomes"]
    assert outcomes == {"action:emit.0": {"kind": "attempted"}, "action:emit.1": {"kind": "skipped"}}
    _, out, _ = run(project, capsys, flow, *words)
    (row,) = (line for line in out.splitlines() if line.startswith("a   action:emit.0 "))
    assert row.endswith('send team.audit {"level": 2, "x": 9}; audited = 9; noted = 2')
