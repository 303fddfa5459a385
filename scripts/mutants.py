"""Draw rules whose tests are to be tried by mutations, and judge mutations by the tests of their rule.

    python scripts/mutants.py draw SEED NUMBER     rules of docs/invariants.md, each with the tests marked with its id
    python scripts/mutants.py judge PATCH...       `<id>.patch` or `<id>.<anything>.patch`, each on its own

A patch breaks its rule. It is applied to a scratch copy of the repository, and only the tests marked with the rule run
there: `killed` if one of them fails, `survived` if none does. It is `not judged` if they fail without the patch, if
none of them runs, or if the patch does not apply or leaves code that cannot be imported.
"""

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from requirements import REGISTER, parse_register

ROOT = Path(__file__).parent.parent
_RULE_ENV = "INTERLOCK_RULE"
_SECONDS_MAX = 900


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the tests of one rule: this module is the plugin of the runs that it starts."""
    rule = os.environ[_RULE_ENV]
    items[:] = [item for item in items if any(rule in mark.args for mark in item.iter_markers("inv"))]


def rules() -> dict[str, str]:
    """Return each rule of the register that holds by its id."""
    register = parse_register(REGISTER.read_text(encoding="utf-8"))
    return {rule.id: rule.text for rule in register if rule.status == "holds"}


def draw(seed: int, number: int) -> list[str]:
    """Return the ids of so many rules; a seed draws the same ones every time."""
    return random.Random(seed).sample(list(rules()), number)  # noqa: S311 — a draw that can be repeated


def tests_of(rule: str) -> list[str]:
    """Return the tests marked with a rule, each once whatever its parameters."""
    collected = _pytest(ROOT, rule, "--collect-only").stdout.splitlines()
    return list(dict.fromkeys(line.partition("[")[0] for line in collected if "::" in line))


def judge(patch: Path) -> str:
    """Return what the tests of a patch's rule say of it: `killed`, `survived`, or why neither."""
    rule = patch.name.partition(".")[0]
    if rule not in rules():
        return f"not judged: there is no rule {rule}"
    if not _pass_unpatched(rule):
        return "not judged: the tests do not pass without the patch, or none of them runs"
    with tempfile.TemporaryDirectory() as directory:
        copy = copy_repository(Path(directory))
        if not _apply(patch, copy):
            return "not judged: the patch does not apply"
        try:
            run = _pytest(copy, rule, "-x")
        except subprocess.TimeoutExpired:
            return f"killed: the tests do not end within {_SECONDS_MAX} s"
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", run.stdout, re.MULTILINE)
    if run.returncode == pytest.ExitCode.TESTS_FAILED:
        return f"killed: {failed[0]}"
    return "survived" if run.returncode == 0 else "not judged: the tests do not run; does the code still import?"


def copy_repository(root: Path) -> Path:
    """Copy the files that git knows, as they are now, and return the copy's root."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S607
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, root / name)
    return root


def _apply(patch: Path, copy: Path) -> bool:
    # Inside of another repository git would take the patch for one of that, and apply nothing.
    env = os.environ | {"GIT_CEILING_DIRECTORIES": str(copy.resolve().parent)}
    command = ["git", "apply", str(patch.absolute())]
    return subprocess.run(command, cwd=copy, env=env, capture_output=True, check=False).returncode == 0


@cache
def _pass_unpatched(rule: str) -> bool:
    with tempfile.TemporaryDirectory() as directory:
        run = _pytest(copy_repository(Path(directory)), rule)
    return run.returncode == 0 and re.search(r"\d+ passed", run.stdout) is not None


def _pytest(root: Path, rule: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the tests of a rule in a copy, against the code of that copy.

    Raises:
        subprocess.TimeoutExpired: They took too long.
    """
    files = [path for path in sorted((root / "tests").rglob("*.py")) if f'"{rule}"' in path.read_text(encoding="utf-8")]
    # The installed package is that of the checkout; what PYTHONPATH names comes before it.
    path = os.pathsep.join(str(root / name) for name in ("src", "scripts"))
    always = ["-q", "-n", "0", "-p", "mutants", "-m", "not soak"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *always, *options, *map(str, files)],
        cwd=root,
        env=os.environ | {"PYTHONPATH": path, _RULE_ENV: rule},
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS_MAX,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw or judge, and return the exit code: 1 if a patch was not killed."""
    parser = argparse.ArgumentParser(description="Draw rules, and judge mutations by the tests of their rule.")
    commands = parser.add_subparsers(dest="command", required=True)
    drawing = commands.add_parser("draw")
    drawing.add_argument("seed", type=int)
    drawing.add_argument("number", type=int)
    commands.add_parser("judge").add_argument("patches", type=Path, nargs="+")
    given = parser.parse_args(arguments)
    if given.command == "draw":
        for rule in draw(given.seed, given.number):
            print("\n".join([f"{rule}: {rules()[rule]}", *(f"  {test}" for test in tests_of(rule)), ""]))
        return 0
    not_killed = 0
    for patch in given.patches:
        verdict = judge(patch)
        print(f"{patch.name} {verdict}", flush=True)
        not_killed += not verdict.startswith("killed")
    return 1 if not_killed else 0


if __name__ == "__main__":
    sys.exit(main())
