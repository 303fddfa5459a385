"""The context of a run, as the command line of a drive states it."""

import json
import sys
from pathlib import Path

import pytest
from tests.e2e.test_drive import STEPS, agent, run, script
from tests.support.server import workspace_in

from interlock.testing.harness import linear_workflow

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="starts a server")
TYPES = {"ticket": "string", "tries": "number", "tags": "list"}
WORKRAIL = {
    "id": "team-old",
    "name": "Old",
    "description": "A file of the WorkRail format.",
    "version": "1.0.0",
    "steps": [{"id": "a", "title": "A", "prompt": "Do a."}],
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    declared = [{"key": key, "type": kind, "description": key, "required": True} for key, kind in TYPES.items()]
    typed = linear_workflow("test.typed", "a", inputs=declared)
    workspace_in(tmp_path, typed=typed, plain=linear_workflow("test.plain", "a"), old=WORKRAIL)
    return tmp_path


def test_a_context_key_has_the_type_that_the_workflow_declares(root: Path) -> None:
    given = [f"--context={key}={text}" for key, text in (("ticket", "12"), ("tries", "12"), ("tags", '["api"]'))]
    options = ["--agent", agent(root), "--model", script(root, STEPS), "--json"]
    done = run(root, "drive", "test.typed", *given, *options)
    result = json.loads(done.stdout)
    assert (done.returncode, result["status"]) == (0, "complete"), done.stderr
    shown = run(root, "session", "context", result["session"], "--json").stdout
    assert '"value": "12"' in shown
    wrong = run(root, "drive", "test.typed", *given[:1], "--context=tries=many", *given[2:], *options)
    assert (wrong.returncode, "tries" in wrong.stdout) == (1, True)


@pytest.mark.parametrize(
    ("workflow", "stated", "message"),
    [
        ("test.typed", ["tickets=12"], "declares no context key 'tickets'.\nDid you mean 'ticket'? It declares: tags"),
        ("test.plain", ["nope=x"], "declares no context key 'nope'.\nIt declares none"),
        ("test.typed", ["ticket=1", "ticket=2"], "--context states 'ticket' more than once."),
    ],
    ids=["undeclared", "none declared", "twice"],
)
def test_a_context_key_that_would_have_no_effect_is_refused_before_the_run_begins(
    root: Path, workflow: str, stated: list[str], message: str
) -> None:
    given = [f"--context={pair}" for pair in stated]
    done = run(root, "drive", workflow, *given, "--agent", agent(root), "--model", script(root, STEPS))
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert not (root / "data").exists()


def test_a_workflow_of_a_format_without_declarations_takes_every_context_key(root: Path) -> None:
    options = ["--agent", agent(root), "--model", script(root, STEPS), "--json"]
    done = run(root, "drive", "team-old", "--context=size=Large", *options)
    assert done.returncode == 0, done.stderr
    shown = run(root, "session", "context", json.loads(done.stdout)["session"], "--json").stdout
    assert '"value": "Large"' in shown
