"""What docstrings name exists: whoever implements a port catches and raises by what its docstring says."""

import ast
import builtins
import importlib
import inspect
import re
from collections.abc import Iterator

from tests.architecture.test_sizes import modules

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

RAISED = re.compile(r"^    (\w+): ", re.MULTILINE)
"""A name of a `Raises:` section: one indent below it. Continued lines are indented by more."""
BUILTIN = {
    name for name, value in vars(builtins).items() if inspect.isclass(value) and issubclass(value, BaseException)
}
FOREIGN = {"MCPError": "mcp"}
"""Errors of other packages, and where each can be imported from."""


def raised_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, Documented):
            section = (ast.get_docstring(node) or "").partition("Raises:\n")[2].partition("\n\n")[0]
            yield from RAISED.findall(section)


def test_every_error_that_a_docstring_promises_is_a_class_that_exists() -> None:
    trees = [(name, tree) for name, _, tree in modules()]
    classes = {node.name for _, tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    named = [(name, raised) for name, tree in trees for raised in raised_names(tree)]
    assert len({raised for _, raised in named}) > 20, "the sections are found"
    assert [where for where in named if where[1] not in classes | BUILTIN | FOREIGN.keys()] == []
    assert all(inspect.isclass(getattr(importlib.import_module(home), name)) for name, home in FOREIGN.items())
    assert FOREIGN.keys() <= {raised for _, raised in named}
