"""Every reason, blocker code, event kind, error code and banner is brought about by a test, through its own surface.

A test says what it produces with the mark `produces`.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from interlock.engine.judge.violations import REASONS
from interlock.kernel.errors import ErrorCode
from interlock.record.events import EVENT_CLASSES
from interlock.record.outcome import BlockerCode
from interlock.store.ports.reader import SalvageCode

TESTS = Path(__file__).parents[1]


def names() -> set[str]:
    """Return everything that must be produced."""
    return {
        *(f"reason:{detail}" for detail in REASONS),
        *(f"blocker:{code}" for code in get_args(BlockerCode)),
        *(f"event:{kind.__struct_config__.tag}" for kind in EVENT_CLASSES),
        *(f"error:{code}" for code in ErrorCode),
        *(f"banner:{code}" for code in SalvageCode),
    }


def is_test(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")


def produced() -> Iterator[tuple[str, str]]:
    """Yield each name that a mark on a test names, with the test."""
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for mark in node.decorator_list:
                if not isinstance(mark, ast.Call) or ast.unparse(mark.func) != "pytest.mark.produces":
                    continue
                assert is_test(node), f"{path.name}: {node.name} is marked and no test"
                for argument in mark.args:
                    assert isinstance(argument, ast.Constant), f"{path.name}: a name is a literal"
                    yield str(argument.value), node.name


def test_every_code_is_produced_by_a_test() -> None:
    assert sorted(names() - {name for name, _ in produced()}) == []


def test_every_name_that_a_test_says_it_produces_exists() -> None:
    assert sorted({name for name, _ in produced()} - names()) == []
