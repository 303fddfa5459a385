"""Questions to a person: several answers at the same moment, and the message that one waits."""

import json
import subprocess
import threading
from pathlib import Path

import pytest
from tests.support.approvals import asking, given, replying
from tests.support.forked_server import ForkedServer
from tests.support.forkserver import forking_python
from tests.support.modes import session_of
from tests.support.server import until, workspace_in
from tests.support.verify import unsound, unsound_below

from interlock.kernel.errors import Refusal
from interlock.testing.harness import Harness, ToolResult


def at_the_question(root: Path) -> tuple[Harness, ToolResult, ToolResult]:
    harness = Harness.on_disk(root, asking(assurance="claimed"))
    start = harness.start("test.flow", goal="Ship")
    return harness, start, harness.advance(start, "The plan: change one file, and test it.")


def ways_approved(harness: Harness, start: ToolResult) -> list[str]:
    """Return how each recorded answer arrived; all of them approve."""
    found = [one.data for one in session_of(harness, start).outside.events.values()]
    assert {one.fields["choice"] for one in found} <= {"approve"}
    return [one.via for one in found]


@pytest.mark.inv("APPR-2")
def test_of_two_commands_at_once_one_counts_and_the_other_names_it(tmp_path: Path) -> None:
    harness, start, waiting = at_the_question(tmp_path)
    label = waiting["run"]["label"]
    command = [forking_python(), "-m", "interlock", "--data-dir", str(tmp_path), "approve", label, "--json"]
    running = [
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outputs = [(one.communicate(timeout=60), one.returncode) for one in running]
    [counted] = [out for (out, _), code in outputs if code == 0]
    [refused] = [error for (_, error), code in outputs if code != 0]
    assert json.loads(counted)["isAdvanced"] is True
    assert "the last answer was 'approve', claimed" in refused
    assert ways_approved(harness, start) == ["command"]
    assert harness.advance(waiting, None)["pending"]["stepId"] == "b"
    assert unsound(harness.store) == []


@pytest.mark.inv("APPR-2")
def test_of_a_command_and_the_user_of_a_client_at_once_one_counts(tmp_path: Path) -> None:
    harness, start, waiting = at_the_question(tmp_path)
    begin, refused, answers = threading.Barrier(2), list[bool](), list[ToolResult]()

    def by_command() -> None:
        begin.wait()
        refused.append(isinstance(given(harness, start), Refusal))

    def by_client() -> None:
        begin.wait()
        answers.append(replying(harness, "accept").advance(waiting, None))

    threads = [threading.Thread(target=one) for one in (by_command, by_client)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert [one["pending"]["stepId"] for one in answers] == ["b"]
    assert ways_approved(harness, start) == (["elicitation"] if refused == [True] else ["command"])
    assert unsound(harness.store) == []


@pytest.mark.inv("WORLD-12")
def test_a_channel_tells_a_person_that_a_run_waits_for_them(tmp_path: Path) -> None:
    data, space, sent = tmp_path / "data", workspace_in(tmp_path, flow=asking()), tmp_path / "sent"
    data.mkdir()
    lines = [
        'kind = "file"',
        'accepts = ["wr.needs_person"]',
        'sources = ["project"]',
        f"path = {json.dumps(str(sent))}",
    ]
    (data / "config.toml").write_text("\n".join(["[channels.desk]", *lines, ""]))
    with ForkedServer(data, space) as server:
        start = server.start("test.flow", goal="Ship")
        waiting = server.advance(start)
        until(sent.exists)
        assert waiting["waiting"]["for"] == "approval"
        (message,) = map(json.loads, sent.read_text().splitlines())
        assert (message["kind"], message["fields"]["question"]) == ("wr.needs_person", "Do it this way?")
        assert message["run"] == start["run"]["runId"]
    assert unsound_below(data) == []
