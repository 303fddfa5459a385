"""Steps over time: bars in proportion, long pauses squeezed, and titles that cannot break the picture."""

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.history import HOSTILE

from interlock.kernel.budgets.pictures import PICTURE_LINE_MAX
from interlock.kernel.text import duration_words
from interlock.views.picture.time_bar import TimeBar
from interlock.views.picture.time_picture import shown_bars, time_scale, time_svg, time_text

MINUTE, HOUR = 60_000, 3_600_000


def bar(since: int, until: int | None, title: str = "1. Step", refused: tuple[int, ...] = ()) -> TimeBar:
    return TimeBar(title=title, node="node_1", since=since, until=until, refused=refused)


def parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)  # noqa: S314 — a picture of our own


def in_sequence(*lengths: int) -> list[TimeBar]:
    bars, here = list[TimeBar](), 0
    for number, length in enumerate(lengths, start=1):
        bars.append(bar(here, here + length, f"{number}. Step"))
        here += length
    return bars


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (0, "less than 1 s"),
        (999, "less than 1 s"),
        (1_000, "1 s"),
        (61_000, "1 min 1 s"),
        (HOUR + 1_000, "1 h"),
        (50 * HOUR + 5 * MINUTE, "2 d 2 h"),
    ],
)
def test_a_duration_in_words(ms: int, words: str) -> None:
    assert duration_words(ms) == words


def test_bars_are_in_proportion_to_what_they_took() -> None:
    scale = time_scale(in_sequence(MINUTE, 2 * MINUTE, MINUTE))
    assert scale.positions == (0.0, 0.25, 0.75, 1.0)
    assert not any(scale.idle)


def test_a_night_is_squeezed_and_labelled() -> None:
    bars = in_sequence(MINUTE, 14 * HOUR, 2 * MINUTE, MINUTE)
    scale = time_scale(bars)
    assert scale.idle == (False, True, False, False)
    assert scale.positions[2] - scale.positions[1] < 0.1
    assert ">14 h</text>" in time_svg(bars)


def test_seconds_are_never_called_idle() -> None:
    assert time_scale(in_sequence(10, 10, 10, 59_000)).idle == (False,) * 4


def test_a_step_without_an_end_and_refused_attempts_are_drawn() -> None:
    svg = time_svg([bar(0, MINUTE, refused=(10, 20)), bar(MINUTE, None)])
    assert svg.count('stroke="#cf222e"') == 2
    assert svg.count("stroke-dasharray") == 1
    assert "1 min, 2 refused" in svg
    assert "not done" in svg


def test_rows_are_links_to_their_steps() -> None:
    root = parsed(time_svg(in_sequence(5, 6), link_of=lambda node: f"/x/{node}"))
    links = root.findall("{http://www.w3.org/2000/svg}a")
    assert [link.get("href") for link in links] == ["/x/node_1"] * 2
    assert [link.get("data-node") for link in links] == ["node_1"] * 2


def test_a_run_in_which_nothing_took_time_has_no_picture() -> None:
    assert not shown_bars([])
    assert not shown_bars([bar(5, 5), bar(5, None)])


def test_a_long_run_shows_its_newest_steps() -> None:
    bars = in_sequence(*[MINUTE] * (PICTURE_LINE_MAX + 5))
    assert shown_bars(bars)[0].title == "6. Step"
    assert len(shown_bars(bars)) == PICTURE_LINE_MAX


@pytest.mark.parametrize("title", HOSTILE)
def test_a_hostile_title_stays_text(title: str) -> None:
    bars = [bar(0, 5, title), bar(5, 9)]
    root = parsed(time_svg(bars, link_of=str))
    assert {element.tag.rpartition("}")[2] for element in root.iter()} <= {"svg", "title", "rect", "path", "text", "a"}
    assert len(time_text(bars).split("\n")) == 2


@given(st.lists(st.tuples(st.integers(0, 10**13), st.integers(0, 10**9)), min_size=1, max_size=30))
def test_every_bar_is_within_the_picture(spans: list[tuple[int, int]]) -> None:
    bars = [bar(since, since + length) for since, length in spans]
    scale = time_scale(bars)
    assert list(scale.positions) == sorted(scale.positions)
    assert 0 <= scale.positions[0] <= scale.positions[-1] < 1.000001
    root = parsed(time_svg(bars))
    for rect in root.findall("{http://www.w3.org/2000/svg}rect"):
        assert float(rect.get("x", "0")) + float(rect.get("width", "0")) <= float(root.get("width", "0"))


def test_the_text_has_a_line_for_each_step() -> None:
    lines = time_text(in_sequence(MINUTE, MINUTE)).split("\n")
    assert [line.rpartition("│ ")[2] for line in lines] == ["1 min", "1 min"]
    assert lines[0].index("█") < lines[1].index("█")
