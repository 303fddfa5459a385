"""The verifier fails when what is published drifts from the code, and names the file and the place inside it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from publish.drift import file_drift, server_drift
from publish.files import WHEEL_TOOLS, published_files

ROOT = Path(__file__).parent.parent.parent
FRESH = published_files()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    for name in ("src", "scripts", "tool-schemas", "docs/reference", "docs/workflows", "docs/decisions"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, root)
    return root


def run_script(checkout: Path, name: str) -> subprocess.CompletedProcess[str]:
    """Run a script of a checkout on that checkout's own code."""
    return subprocess.run(
        [sys.executable, str(checkout / "scripts" / name)],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.inv("SRV-3")
def test_the_committed_files_are_what_the_code_generates() -> None:
    assert list(file_drift(ROOT, FRESH)) == []


@pytest.mark.inv("SRV-3")
def test_one_changed_byte_is_named_with_its_path_in_the_checkout_and_in_the_built_wheel(checkout: Path) -> None:
    change(checkout / "tool-schemas" / "start_workflow.json", "Start a workflow", "Start o workflow")
    change(checkout / WHEEL_TOOLS, "List workflows", "List workflaws")
    done = run_script(checkout, "verify.py")
    assert done.returncode == 1, done.stderr
    published = "interlock/server/published/tools.json"
    assert [line for line in done.stdout.splitlines()[:-1] if " @@ " not in line] == [
        'tool-schemas/start_workflow.json: - "title": "Start o workflow",',
        'tool-schemas/start_workflow.json: + "title": "Start a workflow",',
        f'{WHEEL_TOOLS}: -  "title": "List workflaws",',
        f'{WHEEL_TOOLS}: +  "title": "List workflows",',
        f'wheel: {published}: -  "title": "List workflaws",',
        f'wheel: {published}: +  "title": "List workflows",',
    ]


@pytest.mark.inv("SRV-3")
def test_of_a_long_line_only_the_part_that_differs_is_printed(tmp_path: Path) -> None:
    words = " ".join(f"word-{number}" for number in range(2000))
    (tmp_path / "page.md").write_text(words.replace("word-1000 ", "wort-1000 "), encoding="utf-8")
    _, removed, added = file_drift(tmp_path, {"page.md": words})
    assert len(removed) < 250 > len(added)
    assert removed.startswith("page.md: -…")
    assert "wort-1000 word-1001" in removed
    assert "word-1000 word-1001" in added


@pytest.mark.inv("SRV-3")
def test_a_changed_page_a_missing_and_a_stale_file_are_found_and_generating_repairs_them(checkout: Path) -> None:
    (checkout / "tool-schemas" / "records" / "event.json").unlink()
    (checkout / "tool-schemas" / "old_tool.json").write_text("{}", encoding="utf-8")
    (checkout / "tool-schemas" / "config.json").write_text("{", encoding="utf-8")
    change(checkout / "docs" / "reference" / "limits.md", "# Limits", "# Limit")
    change(checkout / "tool-schemas" / "records" / "bundle.json", "{\n", "{ \n")
    found = list(file_drift(checkout, FRESH))
    assert set(found) > {
        "docs/reference/limits.md: @@ -3 +3 @@",
        "docs/reference/limits.md: -# Limit",
        "docs/reference/limits.md: +# Limits",
        "tool-schemas/old_tool.json: is not generated any more",
        "tool-schemas/records/bundle.json: -{ ",
        "tool-schemas/records/bundle.json: +{",
        "tool-schemas/records/event.json: is missing",
    }
    assert any(line.startswith("tool-schemas/config.json: +") for line in found)
    assert run_script(checkout, "generate.py").returncode == 0
    assert list(file_drift(checkout, FRESH)) == []


@pytest.mark.inv("SRV-3")
def test_a_server_that_lists_other_tools_is_found_in_both_eras() -> None:
    echo = [sys.executable, str(ROOT / "tests" / "e2e" / "echo_server.py")]
    found = list(server_drift(echo, os.environ, FRESH))
    for era in ("2025-11-25", "2026-07-28"):
        assert f'tools/list ({era}).json: +  "name": "list_workflows",' in found


def change(path: Path, old: str, new: str) -> None:
    """Replace the first occurrence of a text in a file."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
