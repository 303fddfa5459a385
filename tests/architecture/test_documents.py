"""Documents and configuration keep step with the code."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from interlock.server.tools import INSTRUCTIONS, TOOLS

ROOT = Path(__file__).parent.parent.parent


def tracked_texts() -> dict[str, str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split(
        "\n"
    )
    paths = [ROOT / name for name in listed if name] or [path for path in ROOT.rglob("*") if ".venv" not in path.parts]
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8", errors="replace")
        for path in paths
        if path.is_file()
    }


@pytest.mark.inv("HOUSE-5")
def test_each_run_time_dependency_has_its_line_of_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    documented = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    names = [re.split(r"[^A-Za-z0-9-]", requirement)[0] for requirement in project["dependencies"]]
    assert [name for name in names if f"| {name} |" not in documented] == []


@pytest.mark.inv("IR-41")
def test_the_page_of_plans_says_that_a_plan_is_a_substrate_and_not_a_product() -> None:
    page = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
    plans = " ".join(page.partition("### Plan files\n")[2].partition("\n#")[0].split())
    assert "A plan is a substrate for agents and tools, and not a product" in plans


def test_the_tool_set_is_frozen() -> None:
    assert [tool.name for tool in TOOLS] == [
        "list_workflows",
        "inspect_workflow",
        "start_workflow",
        "continue_workflow",
        "checkpoint_workflow",
        "resume_session",
    ]


def test_descriptions_and_instructions_fit_what_clients_show() -> None:
    assert all(len(tool.description.encode()) < 2_000 for tool in TOOLS)
    assert len(INSTRUCTIONS.encode()) < 2_000


def test_descriptions_name_no_tool_that_does_not_exist() -> None:
    named = set(re.findall(r"[a-z]+_(?:workflows?|session)", INSTRUCTIONS + " ".join(t.description for t in TOOLS)))
    assert named <= {tool.name for tool in TOOLS}


@pytest.mark.inv("HOUSE-5")
def test_pinned_requirements_carry_hashes_and_no_index_address() -> None:
    for name in ("requirements/run", "requirements/drive", "requirements/dev", "evaluation/engine", "evaluation/parts"):
        text = (ROOT / f"{name}.txt").read_text(encoding="utf-8")
        pins = re.split(r"^(?=[a-z0-9._-]+==)", text, flags=re.MULTILINE | re.IGNORECASE)[1:]
        assert pins
        assert "://" not in text
        assert "--index" not in text
        assert [pin for pin in pins if not re.search("--hash=sha256:[0-9a-f]{64}", pin)] == []


@pytest.mark.parametrize("word", ["TO" + "DO", "FIX" + "ME", "X" + "XX"])
def test_no_unfinished_note_lands(word: str) -> None:
    assert [name for name, text in tracked_texts().items() if name.startswith("src/") and word in text] == []


def test_make_help_lists_every_target_with_one_line() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert phony is not None
    done = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    described = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert sorted(described) == sorted(phony[1].split())
    assert all(described.values())
