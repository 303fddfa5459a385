"""What a reader should never have to check by hand: sizes, parameters, and that the pure rooms are synchronous."""

import ast
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SRC = ROOT / "src" / "interlock"
PURE_ROOMS = ("kernel", "decide", "record", "define", "plan", "engine", "views")

FILE_LINES_MAX = 800
FUNCTION_LINES_MAX = 60
FUNCTION_LINES_P95_MAX = 35
FUNCTION_LINES_MEDIAN_MAX = 10
PARAMETERS_MAX = 5
ROOM_ENTRIES_MAX = 20
"""Files and rooms in one room; more are a wall of equal boxes."""
TOP_ENTRIES_MAX = 20

# Grows only with a reason beside it; a stale entry fails.
EXEMPT: dict[str, str] = {}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules(root: Path = SRC) -> Iterator[tuple[str, str, ast.Module]]:
    for path in sorted(root.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        yield path.relative_to(root).as_posix(), text, ast.parse(text)


def functions(tree: ast.AST) -> Iterator[Function]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def code_lines(function: Function) -> int:
    first = function.body[0]
    has_docstring = ast.get_docstring(function, clean=False) is not None
    docstring = ((first.end_lineno or 0) - first.lineno + 1) if has_docstring else 0
    return (function.end_lineno or 0) - function.lineno + 1 - docstring


def parameters(function: Function) -> int:
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return sum(argument.arg not in {"self", "cls"} for argument in named)


def breaches() -> Iterator[str]:
    others = ("scripts", "evaluation", "tests/agents")
    for where, text, tree in [*modules(), *(module for name in others for module in modules(ROOT / name))]:
        if text.count("\n") > FILE_LINES_MAX:
            yield where
        for function in functions(tree):
            if code_lines(function) > FUNCTION_LINES_MAX or parameters(function) > PARAMETERS_MAX:
                yield f"{where}:{function.name}"


def test_sizes_stay_readable_and_no_exemption_is_stale() -> None:
    assert set(breaches()) == set(EXEMPT)


def test_most_functions_are_short() -> None:
    lengths = sorted(code_lines(function) for _, _, tree in modules() for function in functions(tree))
    assert statistics.median(lengths) <= FUNCTION_LINES_MEDIAN_MAX
    assert lengths[int(len(lengths) * 0.95)] <= FUNCTION_LINES_P95_MAX


@pytest.mark.parametrize("room", PURE_ROOMS)
def test_a_pure_room_is_synchronous(room: str) -> None:
    asynchronous = [
        where
        for where, _, tree in modules()
        if where.startswith(f"{room}/")
        for node in ast.walk(tree)
        if isinstance(node, ast.AsyncFunctionDef | ast.Await)
    ]
    assert asynchronous == []


def entries(room: Path) -> list[str]:
    apart = {"__init__.py", "__pycache__", "py.typed"}
    return sorted(path.name for path in room.iterdir() if path.name not in apart)


def test_no_room_holds_more_entries_than_one_sees_at_a_glance() -> None:
    rooms = [path for path in SRC.rglob("*") if path.is_dir() and path.name != "__pycache__" and any(path.glob("*.py"))]
    crowded = {path.relative_to(SRC).as_posix(): len(entries(path)) for path in rooms}
    assert {room: number for room, number in crowded.items() if number > ROOM_ENTRIES_MAX} == {}
    assert len(entries(SRC)) <= TOP_ENTRIES_MAX
