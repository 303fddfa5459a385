"""Every reason, blocker code, event kind and error code is brought about by a test, through the surface that owns it.

A test says what it produces with the mark `produces`; what nothing can produce yet stands below with its reason.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from interlock.engine.findings import REASONS
from interlock.kernel.errors import CODES, ErrorCode, Owner
from interlock.record.events import EVENT_CLASSES
from interlock.record.outcome import BlockerCode

TESTS = Path(__file__).parents[1]
NOT_YET = {
    **dict.fromkeys(
        (f"error:{code}" for code in ErrorCode if code.startswith("BUNDLE_")),
        "No command exports or imports a session yet.",
    ),
    "event:observation_recorded": "Nothing looks at the workspace yet.",
}
"""Grows only with a reason beside it. A name that a test produces must not stand here."""


def names() -> set[str]:
    """Return everything that must be produced."""
    return {
        *(f"reason:{detail}" for detail in REASONS),
        *(f"blocker:{code}" for code in get_args(BlockerCode)),
        *(f"event:{get_args(kind.model_fields['kind'].annotation)[0]}" for kind in EVENT_CLASSES),
        *(f"error:{code}" for code in ErrorCode),
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


def test_every_code_is_produced_by_a_test_or_says_why_not_yet() -> None:
    assert sorted(names() - {name for name, _ in produced()} - set(NOT_YET)) == []


def test_nothing_that_is_produced_stands_among_what_cannot_be_yet() -> None:
    assert sorted({name for name, _ in produced()} & set(NOT_YET)) == []


def test_every_name_that_a_test_or_an_exemption_uses_exists() -> None:
    assert sorted(({name for name, _ in produced()} | set(NOT_YET)) - names()) == []


def test_what_only_commands_answer_with_is_told_apart_from_what_tools_do() -> None:
    for name in NOT_YET:
        if name.startswith("error:"):
            assert CODES[ErrorCode(name.removeprefix("error:"))].owner is Owner.COMMAND
