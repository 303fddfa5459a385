"""Print the register of requirements, `docs/invariants.md`: counts by specification and status, or single rules.

`requirements.py` prints the counts, `requirements.py TOK-1 TOK-2` these rules with the tests that carry their ids.
"""

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
REGISTER = ROOT / "docs" / "invariants.md"
OWN = "Interlock"
SPECIFICATIONS = ("durable core", "workflow IR", "execution model", "turn runtime", "operational model")
STATUSES = ("holds", "differs", "open")
_ROW = re.compile(r"^\| ([A-Z]+-\d+) \|", re.MULTILINE)
_SECTION = r"(?:\d+(?:\.\d+)*|model|decisions|acceptance|phase \d|additions|appendix)"
_SOURCE = re.compile(rf"(?:(?P<spec>{'|'.join(SPECIFICATIONS)}) {_SECTION}(?:, {_SECTION})*|{OWN}|decision \d{{4}})")
_STATUS = re.compile(r"holds|open|differs: (?P<instead>decision \d{4}|[A-Z]+-\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One row of the register. `instead` names what holds in place of a rule that differs."""

    id: str
    text: str
    specifications: tuple[str, ...]
    status: str
    instead: str | None


def parse_register(text: str) -> tuple[Rule, ...]:
    """Return the rules of the register in its order.

    Raises:
        ValueError: A row does not have four cells, or its source or status is not in the form that the page states.
    """
    return tuple(_parse_row(line) for line in text.splitlines() if _ROW.match(line))


def _parse_row(line: str) -> Rule:
    cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
    if len(cells) != 4:  # noqa: PLR2004 — id, rule, source, status
        message = f"not four cells: {line}"
        raise ValueError(message)
    rule_id, text, source, status = cells
    sources = [_SOURCE.fullmatch(part) for part in source.split("; ")]
    stated = _STATUS.fullmatch(status)
    if stated is None or not all(sources):
        message = f"{rule_id}: source or status is not in the stated form: {source} | {status}"
        raise ValueError(message)
    named = tuple(found["spec"] for found in sources if found is not None and found["spec"] is not None)
    return Rule(
        id=rule_id,
        text=text,
        specifications=named or (OWN,),
        status=status.partition(":")[0],
        instead=stated["instead"],
    )


def marked_tests() -> Mapping[str, tuple[str, ...]]:
    """Return the tests that carry each id, as `file::name`. A mark of a class or a module is named by that."""
    found: dict[str, list[str]] = defaultdict(list)
    for folder in ("tests", "src"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            for rule_id, name in _marks(ast.parse(text)) if "mark.inv" in text else ():
                found[rule_id].append(f"{path.relative_to(ROOT)}{name}")
    return {rule_id: tuple(names) for rule_id, names in found.items()}


def _marks(tree: ast.AST, at: str = "") -> Iterator[tuple[str, str]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                yield from ((one, f"{at}::{node.name}") for one in _ids(decorator))
            yield from _marks(node, f"{at}::{node.name}")
        elif isinstance(node, ast.Assign):
            yield from ((one, at) for one in _ids(node.value))


def _ids(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.inv":
            for argument in node.args:
                assert isinstance(argument, ast.Constant), "the argument of a mark is a literal id"
                yield str(argument.value)


def count_table(rules: tuple[Rule, ...]) -> str:
    """Return the counts by specification and status. A rule of two specifications counts for both, once in the sum."""
    counts = Counter((name, rule.status) for rule in rules for name in set(rule.specifications))
    counts.update(("all rules", rule.status) for rule in rules)
    lines = [f"{'':18}{''.join(f'{status:>9}' for status in STATUSES)}{'rules':>9}"]
    for name in (*SPECIFICATIONS, OWN, "all rules"):
        row = [counts[name, status] for status in STATUSES]
        lines.append(f"{name:18}{''.join(f'{count:9}' for count in (*row, sum(row)))}")
    return "\n".join(lines)


def rule_page(rule: Rule, tests: tuple[str, ...]) -> str:
    """Return a rule with its status and its tests, for a terminal."""
    status = rule.status if rule.instead is None else f"{rule.status}: {rule.instead}"
    return "\n".join(
        [f"{rule.id} ({', '.join(rule.specifications)}; {status})", f"  {rule.text}", *(f"  {one}" for one in tests)]
    )


def main(wanted: list[str]) -> int:
    """Print the counts or the named rules, and return 1 if an id names no rule."""
    rules = parse_register(REGISTER.read_text(encoding="utf-8"))
    if not wanted:
        print(count_table(rules))
        return 0
    by_id = {rule.id: rule for rule in rules}
    tests = marked_tests()
    unknown = [one for one in wanted if one not in by_id]
    print("\n\n".join(rule_page(by_id[one], tests.get(one, ())) for one in wanted if one in by_id))
    if unknown:
        print(f"The register has no rule {', '.join(unknown)}.", file=sys.stderr)
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
