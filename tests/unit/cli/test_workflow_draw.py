"""A plan is drawn as it reads: loops hold their steps, decisions their ways, and no label can break the drawing."""

import json
import re
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from interlock.cli.render.chart import Dot, Mermaid
from interlock.cli.workflow.graph import charted, drawn
from interlock.cli.workflow.places import BUNDLED, WorkflowLocations, chosen_workflow
from interlock.plan.compiled import CompiledWorkflow
from interlock.testing.harness import linear_workflow
from interlock.views.picture.plan_shape import ShapeNode, shape_of

SIZE = [{"key": "size", "description": "How large.", "type": "string", "required": True}]
IS_SMALL = {"var": "size", "equals": "small"}


def step(step_id: str, **more: object) -> dict[str, object]:
    return {"id": step_id, "title": f"Step {step_id}", "prompt": f"Do {step_id}."} | more


def compiled(tmp_path: Path, *steps: str | Mapping[str, object], **more: object) -> CompiledWorkflow:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(linear_workflow("team.abc", *steps, **({"name": "Abc", "inputs": SIZE} | more))))
    places = WorkflowLocations(workspace=tmp_path, user_dir=tmp_path / "user", core_source=None)
    return chosen_workflow(places, str(path))[1].workflow


@pytest.fixture
def nested(tmp_path: Path) -> CompiledWorkflow:
    branches = [{"steps": [step("l"), step("m")]}, {"steps": [step("r")]}]
    both = {"type": "parallel", "id": "both", "title": "Both", "branches": branches}
    body = [both, step("sum")]
    loop = {"type": "loop", "loopId": "work", "title": "Work", "maxIterations": 3, "for": {"count": 2}, "body": body}
    choice = {
        "type": "choose",
        "id": "way",
        "title": "Which way",
        "choose": [{"when": IS_SMALL, "steps": [step("quick")]}],
        "otherwise": [loop],
    }
    last = step("last", when={"not": IS_SMALL}, requireConfirmation=True)
    return compiled(tmp_path, step("first"), choice, last)


def tree(workflow: CompiledWorkflow) -> list[str]:
    out = StringIO()
    Console(file=out, width=200, color_system=None).print(drawn(workflow))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_the_tree_nests_ways_branches_and_loops(nested: CompiledWorkflow) -> None:
    assert tree(nested) == [
        "Abc (team.abc)",
        "├── ● 1. Step first  first",
        "├── ◆ Which way",
        "│   ├── if `size` equals 'small'",
        "│   │   └── ● 2. Step quick  quick",
        "│   └── otherwise",
        "│       └── ↻ Work: 2 passes, at most 3 passes  work",
        "│           ├── ∥ Both",
        "│           │   ├── branch 1",
        "│           │   │   ├── ● 3. Step l  l",
        "│           │   │   └── ● 4. Step m  m",
        "│           │   └── branch 2",
        "│           │       └── ● 5. Step r  r",
        "│           ├── ⊥ All of: Both (waits for all)",
        "│           └── ● 6. Step sum  sum",
        "├── ◆ Whether: Step last",
        "│   ├── if not `size` equals 'small'",
        "│   │   └── ● 7. Step last  last, needs confirmation",
        "│   └── otherwise: continue",
        "└── ■ End",
    ]


def ids(parts: tuple[ShapeNode, ...]) -> list[str]:
    found: list[str] = []
    for part in parts:
        found.append(part.node.node_id)
        for inner in (*(way.parts for way in part.ways), part.body):
            found += ids(inner)
    return found


def test_every_node_of_every_bundled_plan_is_drawn_once(tmp_path: Path) -> None:
    places = WorkflowLocations(workspace=tmp_path, user_dir=tmp_path, core_source=None)
    for path in sorted(BUNDLED.glob("*.json")):
        workflow = chosen_workflow(places, str(path))[1].workflow
        ends = {f"{loop.loop_id}--end" for loop in workflow.plan.loops}
        assert sorted(ids(shape_of(workflow))) == sorted({node.node_id for node in workflow.plan.nodes} - ends)


def test_a_choice_that_ends_the_workflow_meets_at_its_end(tmp_path: Path) -> None:
    ways = [{"when": IS_SMALL, "steps": [step("a", when=IS_SMALL)]}, {"when": {"not": IS_SMALL}, "steps": [step("b")]}]
    choice = {"type": "choose", "id": "way", "title": "Way", "choose": ways, "otherwise": []}
    assert tree(compiled(tmp_path, choice)) == [
        "Abc (team.abc)",
        "├── ◆ Way",
        "│   ├── if `size` equals 'small'",
        "│   │   └── ◆ Whether: Step a",
        "│   │       ├── if `size` equals 'small'",
        "│   │       │   └── ● 1. Step a  a",
        "│   │       └── otherwise: continue",
        "│   ├── if not `size` equals 'small'",
        "│   │   └── ● 2. Step b  b",
        "│   └── otherwise: continue",
        "└── ■ End",
    ]


def test_a_mermaid_chart_frames_each_loop_and_names_every_condition(nested: CompiledWorkflow) -> None:
    chart = charted(nested, Mermaid()).splitlines()
    assert chart[0] == "flowchart TD"
    inside = chart[chart.index('  subgraph loop_n4_work["Work"]') : chart.index("  end")]
    assert '    n4_work{{"↻ 2 passes, at most 3 passes"}}' in inside
    assert '    n9_both__join[["All of: Both"]]' in inside
    assert "  n2_way -->|\"if #96;size#96; equals 'small'\"| n3_quick" in chart
    assert '  n2_way -->|"otherwise"| n4_work' in chart
    assert '  n4_work -->|"each pass"| n5_both' in chart
    assert "  n11_work__end -.-> n4_work" in chart


def test_a_dot_chart_has_a_cluster_for_each_loop(nested: CompiledWorkflow) -> None:
    chart = charted(nested, Dot())
    assert chart.startswith("digraph workflow {")
    assert chart.endswith("\n}")
    assert 'subgraph cluster_loop_n4_work { label="Work";' in chart
    assert chart.count("{") == chart.count("}")
    assert "n2_way -> n3_quick [label=\"if `size` equals 'small'\"];" in chart


HOSTILE = '"]; end\n%%{init}%% <b>#quot; |x| `md` \\n \x1b[31m (a) {b} & c'


def test_no_title_can_break_out_of_a_mermaid_label(tmp_path: Path) -> None:
    chart = charted(compiled(tmp_path, step("end", title=HOSTILE), name=HOSTILE), Mermaid())
    assert '  n1_end["1. #34;#93;#59; end #37;#37;#123;init' in chart
    assert "\x1b" not in chart
    for line in chart.splitlines()[2:]:
        assert re.fullmatch(r'  (?:n\d\w+(?:\[|\(\[)"[^"%<>\[\]{}()|`\\]*"(?:\]\)|\])|n\d\w+ --> n\d\w+)', line), line


def test_no_title_can_break_out_of_a_dot_label(tmp_path: Path) -> None:
    chart = charted(compiled(tmp_path, step("a", title=HOSTILE), name=HOSTILE), Dot())
    assert 'label="1. \\"]; end %%{init}%% <b>#quot; |x| `md` \\\\n \\\\x1b[31m (a) {b} & c"' in chart
    assert all(re.sub(r"\\.", "", line).count('"') % 2 == 0 for line in chart.splitlines())


def test_ids_that_differ_only_in_what_a_name_cannot_hold_stay_apart(tmp_path: Path) -> None:
    chart = charted(compiled(tmp_path, step("a-b"), step("a_b")), Mermaid())
    assert "  n1_a_b --> n2_a_b" in chart


def test_a_long_plan_is_drawn_without_deep_recursion(tmp_path: Path) -> None:
    workflow = compiled(tmp_path, *(step(f"s{number}", when=IS_SMALL) for number in range(800)))
    assert len(tree(workflow)) == 2 + 800 * 4
