"""Every invariant has a test, and every tag names an invariant: checked in both directions."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
LISTED = re.compile(r"^\| ([A-Z]+-\d+) \|", re.MULTILINE)


def listed() -> list[str]:
    return LISTED.findall((ROOT / "docs" / "invariants.md").read_text(encoding="utf-8"))


def tagged() -> Iterator[str]:
    """Yield the ids of every `inv` mark that stands on a test, or on a class or module of tests."""
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.inv":
                for argument in node.args:
                    assert isinstance(argument, ast.Constant), f"{path.name}: an id is a literal"
                    yield str(argument.value)


def test_no_invariant_is_listed_twice() -> None:
    ids = listed()
    assert len(ids) == len(set(ids)) > 0


def test_every_invariant_has_a_test() -> None:
    assert sorted(set(listed()) - set(tagged())) == []


def test_every_tag_names_an_invariant() -> None:
    assert sorted(set(tagged()) - set(listed())) == []
