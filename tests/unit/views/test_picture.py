"""Pictures: placed without overlaps, the same for the same chart, folded where they would be too large to read."""

import os
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.bundles import DOCUMENT, a_session
from tests.support.history import HOSTILE

from interlock.kernel.budgets.pictures import PICTURE_COLUMN_PX_MAX, PICTURE_LINE_MAX, PICTURE_PARTS_MAX
from interlock.testing.harness import Harness
from interlock.views.picture.chart import Box, Chart, ChartPart, Lane, all_parts, fold_chart
from interlock.views.picture.layout import BOX_WIDTH, Placed, place_chart, wrap_text
from interlock.views.picture.plan_picture import plan_chart
from interlock.views.picture.run_picture import NodeText, run_chart
from interlock.views.picture.svg import render_svg
from interlock.views.run_graph import run_graph

PICTURES = Path(__file__).parent / "pictures"


def step(text: str = "step", **more: object) -> ChartPart:
    return ChartPart(box=Box(kind="step", lines=(text,)), **more)  # pyright: ignore[reportArgumentType] — parts


def lane(*parts: ChartPart) -> Lane:
    return Lane(label="if so", parts=parts)


def extended(inner: st.SearchStrategy[ChartPart]) -> st.SearchStrategy[ChartPart]:
    lanes = st.lists(st.lists(inner, max_size=3).map(lambda parts: lane(*parts)), max_size=3).map(tuple)
    return st.builds(
        step, st.text(max_size=90), ways=lanes, body=st.lists(inner, max_size=3).map(tuple), branches=lanes
    )


TEXTS = st.sampled_from(["", "a", "a word that is long " * 5, "日本" * 20])
PARTS = st.lists(st.recursive(st.builds(step, TEXTS), extended, max_leaves=12), min_size=1, max_size=9)


def overlaps(placed: Placed) -> list[tuple[object, object]]:
    boxes = [(one.x, one.y, one.x + BOX_WIDTH, one.y + one.height) for one in placed.boxes]
    return [
        (a, b)
        for at, a in enumerate(boxes)
        for b in boxes[at + 1 :]
        if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
    ]


@pytest.mark.inv("EVD-5")
@given(PARTS)
def test_no_two_boxes_overlap_and_everything_is_on_the_picture(parts: list[ChartPart]) -> None:
    placed = place_chart(Chart(title="a", parts=tuple(parts)))
    assert overlaps(placed) == []
    points = [(one.x, one.y) for one in (*placed.boxes, *placed.frames, *placed.texts)]
    points += [(one.x + BOX_WIDTH, one.y + one.height) for one in placed.boxes]
    points += [(one.x + one.width, one.y + one.height) for one in placed.frames]
    points += [point for arrow in placed.arrows for point in arrow.points]
    assert all(0 <= x <= placed.width and 0 <= y <= placed.height for x, y in points)


@pytest.mark.inv("EVD-5")
@given(PARTS)
def test_a_picture_is_well_formed_and_the_same_each_time(parts: list[ChartPart]) -> None:
    chart = Chart(title="a", parts=tuple(parts))
    drawn = render_svg(chart)
    assert drawn == render_svg(chart)
    assert ET.fromstring(drawn).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314 — our own text


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags |= {tag, *(name for name, _ in attrs if name.startswith("on") or name in ("href", "style", "src"))}


@pytest.mark.inv("EVD-5", "HIS-6")
def test_text_of_others_is_text_in_a_picture() -> None:
    page = Tags()
    page.feed(render_svg(Chart(title=HOSTILE, parts=(step(HOSTILE, ways=(Lane(label=HOSTILE, parts=(step("a"),)),)),))))
    assert page.tags == {"svg", "title", "rect", "path", "text"}


@pytest.mark.inv("EVD-5")
def test_loops_are_folded_first_then_ways_and_a_long_line_keeps_its_ends() -> None:
    many = tuple(step(str(number)) for number in range(PICTURE_PARTS_MAX))
    looped = fold_chart(Chart(title="a", parts=(step(body=many, ways=(lane(step("b")),)),))).parts
    assert [part.box.lines for part in all_parts(looped)] == [("step",), ("b",), (f"{PICTURE_PARTS_MAX} steps",)]
    wide = fold_chart(Chart(title="a", parts=(step(ways=(lane(*many), lane())),))).parts
    assert [way.parts[0].box.lines if way.parts else () for way in wide[0].ways] == [
        (f"{PICTURE_PARTS_MAX} steps",),
        (),
    ]
    line = tuple(step(str(number)) for number in range(PICTURE_LINE_MAX + 51))
    kept = fold_chart(Chart(title="a", parts=line)).parts
    assert len(kept) == PICTURE_LINE_MAX + 1
    assert (kept[0], kept[-1], kept[PICTURE_LINE_MAX // 2].box.lines) == (line[0], line[-1], ("51 steps",))


@pytest.mark.inv("EVD-5")
def test_two_hundred_steps_fit_on_columns_of_a_readable_height() -> None:
    line = tuple(step(f"{number}. A step with a title of usual length") for number in range(200))
    placed = place_chart(Chart(title="a", parts=line))
    assert len(placed.boxes) == 200
    assert placed.height <= PICTURE_COLUMN_PX_MAX + 100
    assert placed.width < 12 * BOX_WIDTH
    assert overlaps(placed) == []


def test_branches_of_branches_do_not_exhaust_the_stack() -> None:
    part = step("last")
    for number in range(3_000):
        part = step(str(number), branches=(lane(part),))
    assert "steps" in render_svg(Chart(title="a", parts=(part,)))


def test_many_branches_of_one_step_become_one() -> None:
    part = step(branches=tuple(lane(step(str(number))) for number in range(9)))
    (folded,) = fold_chart(Chart(title="a", parts=(part,))).parts
    assert [branch.label for branch in folded.branches] == ["if so", "if so", "if so", "6 more branches"]
    assert folded.branches[-1].parts[0].box.lines == ("6 steps",)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("two words", ["two", "words"]),
        ("a b c", ["a b c"]),
        ("abcdefghij", ["abcde", "fghij"]),
        ("日本語", ["日本", "語"]),
        ("ab 日本語 c", ["ab", "日本", "語 c"]),
    ],
)
def test_text_is_wrapped_by_the_columns_that_it_takes(text: str, lines: list[str]) -> None:
    assert wrap_text(text, 5) == lines


def drawn() -> dict[str, str]:
    """Return the pictures of a plan with every shape, and of a run with a refusal, a branch and loops."""
    harness = Harness.in_memory(DOCUMENT)
    session = harness.store.load(a_session(harness))
    assert session is not None
    run = min(session.runs.values(), key=lambda one: one.index)
    workflow = harness.ports.read.plans.workflow(run.workflow_hash)
    chart = run_chart(run_graph(session, run.run), "A run", lambda node: NodeText(title=f"at depth {node.depth}"))
    return {"plan.svg": render_svg(plan_chart(workflow)), "run.svg": render_svg(chart)}


@pytest.mark.inv("EVD-5")
@pytest.mark.parametrize("name", ["plan.svg", "run.svg"])
def test_the_pictures_of_a_plan_and_of_a_run_are_those_on_record(name: str) -> None:
    picture = drawn()[name] + "\n"
    if os.environ.get("INTERLOCK_WRITE_GOLDENS") == "facts":
        (PICTURES / name).write_text(picture, encoding="utf-8")
    assert picture == (PICTURES / name).read_text(encoding="utf-8")


def test_consecutive_steps_of_a_loop_are_in_one_frame() -> None:
    harness = Harness.in_memory(DOCUMENT)
    session = harness.store.load(a_session(harness))
    assert session is not None
    run = min(session.runs.values(), key=lambda one: one.index)
    chart = run_chart(run_graph(session, run.run), "A run", lambda _: NodeText(title="in it", loop="turn"))
    (frame,) = chart.parts
    assert frame.box.lines == ("↻ turn",)
    assert len(frame.body) > 1
