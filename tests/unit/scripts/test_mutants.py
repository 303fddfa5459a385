"""Rules with their tests, and mutations judged by those tests in a scratch copy."""

import re
from difflib import unified_diff
from pathlib import Path

import pytest

import mutants

ROOT = Path(__file__).parents[3]
MUTATED = "src/interlock/kernel/text.py"


def patch(path: Path, old: str, new: str) -> Path:
    before = (ROOT / MUTATED).read_text(encoding="utf-8")
    after = before.replace(old, new, 1)
    assert after != before
    lines = unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{MUTATED}", f"b/{MUTATED}"
    )
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.mark.soak
def test_each_mutation_is_judged_by_the_tests_of_its_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    patches = [
        patch(tmp_path / "ID-5.marker.patch", "room = bytes_max - utf8_bytes(marker)", "room = bytes_max"),
        patch(tmp_path / "ID-5.comment.patch", "# The cut keeps at most", "# It keeps at most"),
        patch(tmp_path / "ID-5.syntax.patch", "def truncated(", "def truncated("[:-1]),
        patch(tmp_path / "NONE-1.patch", "def truncated(", "def cut("),
    ]
    (tmp_path / "ID-5.stale.patch").write_text(patches[0].read_text().replace("room = bytes_max - ", "space = "))
    assert mutants.main(["judge", *map(str, patches), str(tmp_path / "ID-5.stale.patch")]) == 1
    verdicts = dict(line.split(" ", 1) for line in capsys.readouterr().out.splitlines())
    assert verdicts["ID-5.marker.patch"].startswith("killed: tests/unit/kernel/test_text.py::")
    assert verdicts["ID-5.comment.patch"] == "survived"
    assert "does the code still import" in verdicts["ID-5.syntax.patch"]
    assert verdicts["NONE-1.patch"] == "not judged: there is no rule NONE-1"
    assert verdicts["ID-5.stale.patch"] == "not judged: the patch does not apply"
    assert "room = bytes_max - utf8_bytes(marker)" in (ROOT / MUTATED).read_text(encoding="utf-8")


def test_a_seed_draws_the_same_rules_and_another_seed_draws_others() -> None:
    assert mutants.draw(1, 5) == mutants.draw(1, 5) != mutants.draw(2, 5)
    assert set(mutants.draw(1, 5)) <= mutants.rules().keys()


@pytest.mark.soak
def test_a_drawn_rule_is_shown_with_the_tests_that_are_marked_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    (rule,) = mutants.draw(3, 1)
    assert mutants.main(["draw", "3", "1"]) == 0
    first, *tests = capsys.readouterr().out.strip().splitlines()
    assert first == f"{rule}: {mutants.rules()[rule]}"
    files = {ROOT / test.strip().partition("::")[0] for test in tests}
    assert files
    assert files <= {path for path in (ROOT / "tests").rglob("test_*.py") if f'"{rule}"' in path.read_text()}


@pytest.mark.soak
def test_the_tests_of_a_rule_are_those_below_its_mark_whatever_bears_it() -> None:
    assert "tests/property/test_sweep.py::TestRetention::runTest" in mutants.tests_of("GC-9")
    marked = ROOT / "tests" / "clients" / "test_configuration_blocks.py"
    assert 'pytestmark = pytest.mark.inv("DOC-3")' in marked.read_text()
    names = re.findall(r"def (test_\w+)", marked.read_text())
    assert {f"tests/clients/{marked.name}::{name}" for name in names} <= set(mutants.tests_of("DOC-3"))
