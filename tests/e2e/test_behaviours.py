"""The black-box behaviours of `peer-workrail.md` section 8, at a real server process, through the SDK's client.

One test per behaviour, by its number, in both protocol eras; where decision D38 differs, ours is tested. What holds of
every answer (both channels stand alone, the run is named first, the schema is kept, nothing leaks) is checked of every
answer that any test here gets. The client runs on an event loop of its own, so that a test reads from top to bottom.
"""

import itertools
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from filelock import FileLock
from mcp import Client, MCPError, StdioServerParameters, types

from interlock.kernel.errors import ErrorCode
from interlock.server.tools import TOOLS
from interlock.testing.harness import ERAS, Called, Era, call_through, filled_in, linear_workflow

ROOT = Path(__file__).parent.parent.parent
BOOT = """
import ctypes, os, sys
pid_file, is_mortal, *command = sys.argv[1:]
with open(pid_file, "w") as file:
    file.write(str(os.getpid()))
if is_mortal:
    # Root passes over modes by two capabilities; out of the bounding set, they are gone with the next exec.
    for capability in (1, 2):
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)
os.execv(sys.executable, [sys.executable, *command])
"""
NUMBERS = itertools.count()
LEAKS = re.compile(
    r"Traceback|File \"|site-packages|pydantic|jsonschema|errors\.pydantic|\bhttps?://|\.py\b|NoneType|/tmp/|/work/|/home/"
)
ABC = linear_workflow("test.abc", "a", "b", "c", tags=["demo"])
OPTIONAL = linear_workflow(
    "test.optional", "a", {"id": "b", "title": "Step b", "prompt": "Do b.", "notes": "optional"}, "c"
)
FAULTY = linear_workflow("test.faulty", {"id": "a", "titel": "A", "prompt": "Do a."})
SHADOW = linear_workflow("wr.code_review", "a", name="Not the real one")


class Server:
    """A server process and a client that is connected to it. Every answer is checked for what holds of all."""

    def __init__(self, data_dir: Path, workspace: Path, era: Era = "auto", *, is_mortal: bool = False) -> None:
        self.era = era
        self.data_dir = data_dir
        self._pid_file = workspace.parent / f"server-{next(NUMBERS)}.pid"
        boot = [str(self._pid_file), "mortal" if is_mortal else "", "-m", "interlock"]
        arguments = [*boot, "--data-dir", str(data_dir), "--workspace", str(workspace)]
        environment = {"INTERLOCK_WORKFLOWS_DIR": str(workspace / "none"), "INTERLOCK_LOG_LEVEL": "CRITICAL"}
        self._parameters = StdioServerParameters(
            command=sys.executable, args=["-c", BOOT, *arguments], env=environment, cwd=str(workspace)
        )
        self._exits = ExitStack()
        self._portal: BlockingPortal | None = None
        self.client: Client | None = None

    def __enter__(self) -> Self:
        self._portal = self._exits.enter_context(start_blocking_portal())
        connection = self._portal.wrap_async_context_manager(Client(self._parameters, mode=self.era))
        self.client = self._exits.enter_context(connection)
        return self

    def __exit__(self, *_: object) -> None:
        # A killed process leaves a client that may complain of it while it closes.
        with suppress(Exception):
            self._exits.close()
        self._pid_file.unlink(missing_ok=True)

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a coroutine function on the client's loop."""
        assert self._portal is not None
        return self._portal.call(function, *arguments)

    def soon(self, tool: str, arguments: dict[str, Any]) -> "Future[Called]":
        """Begin a call and return at once."""
        assert self._portal is not None
        assert self.client is not None
        return self._portal.start_task_soon(call_through, self.client, tool, arguments)

    def call(self, tool: str, **arguments: Any) -> Called:
        return checked(tool, self.soon(tool, arguments).result(60))

    def start(self, workflow_id: str = "test.abc", **arguments: Any) -> Called:
        return self.call("start_workflow", workflowId=workflow_id, **arguments)

    def advance(self, answer: Called | str, notes: str | None = "Done.", **arguments: Any) -> Called:
        output = {} if notes is None else {"output": {"notesMarkdown": notes}}
        token = answer if isinstance(answer, str) else answer.ack
        return self.call("continue_workflow", ackToken=token, **(output | arguments))

    def look(self, answer: Called | str, **arguments: Any) -> Called:
        token = answer if isinstance(answer, str) else answer.state
        return self.call("continue_workflow", stateToken=token, **arguments)

    def follow(self, answer: Called, notes: str = "Done.") -> Called:
        return self.call(answer["nextCall"]["tool"], **filled_in(answer, notes))

    def kill(self) -> None:
        os.kill(int(self._pid_file.read_text()), signal.SIGKILL)


def checked(tool: str, called: Called) -> Called:
    """Hold an answer to what holds of all answers, whoever asked."""
    told = json.dumps(dict(called.structure), ensure_ascii=False)
    if called.is_error:
        assert set(called.structure) <= {"code", "message", "retry", "suggestion", "details"}
        assert called["retry"]["kind"] in ("not_retryable", "retryable_immediate", "retryable_after_ms")
        for words in (called["code"], called["message"], called["suggestion"], called["retry"]["kind"]):
            assert words in called.text
        assert called.code is not ErrorCode.INTERNAL_ERROR
        assert LEAKS.search(called.text + told) is None
        assert len(called.text) < 10_000
    elif tool in ("start_workflow", "continue_workflow"):
        _check_channels(called, told)
    return called


def _check_channels(called: Called, told: str) -> None:
    first_line = called.text.partition("\n")[0]
    run = called["run"]
    for words in (run["workflowId"], f"`{run['label']}`", run.get("goal", "")):
        assert words in first_line
    keys = list(called.structure)
    assert keys[:4] == ["kind", "run", "nextCall", "stateToken"]
    assert keys[-1] == "pending"
    pending, call, fork = called["pending"], called["nextCall"], called.structure.get("fork")
    if pending is not None:
        assert f"step {run['step']['number']} of {run['step']['total']}" in first_line
        assert pending["prompt"] in called.text
        assert pending["title"] in called.text
    tokens = [called["stateToken"], called.structure.get("ackToken"), fork["ackToken"] if fork else None]
    for token in filter(None, tokens):
        assert token in called.text
        assert token in told
    if call is not None:
        fence = called.text.rpartition("```json\n")[2].removesuffix("\n```")
        assert json.loads(fence) == call["arguments"]
        assert f"`{call['tool']}`" in called.text
        assert call["arguments"]["run"] == run["label"]
        assert called.text.endswith("```")
    for warned in called.structure.get("warnings", ()):
        assert warned["message"] in called.text
    for blocker in called.structure.get("blockers", ()):
        assert blocker["message"] in called.text
        assert blocker["suggestedFix"] in called.text
    assert len(called.text.encode()) < 10_000
    assert len(told.encode()) < 10_000


def workspace_in(directory: Path, **documents: object) -> Path:
    """Make a project with workflow files; each name is the file's, and `.json` when its value is a document."""
    workflows = directory / "space" / ".interlock" / "workflows"
    workflows.mkdir(parents=True)
    for name, document in documents.items():
        text = document if isinstance(document, str) else json.dumps(document)
        (workflows / (f"{name}.yaml" if isinstance(document, str) else f"{name}.json")).write_text(text)
    return directory / "space"


@pytest.fixture(scope="module", params=ERAS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One process per era for all behaviours that need no process of their own. Each test has its own session."""
    directory = tmp_path_factory.mktemp(request.param)
    workspace = workspace_in(directory, abc=ABC, optional=OPTIONAL, faulty=FAULTY, shadow=SHADOW, broken="a: *b\n")
    with Server(directory / "data", workspace, request.param) as server:
        yield server


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> Era:
    era: Era = request.param
    return era


@pytest.fixture
def space(tmp_path: Path) -> Path:
    return workspace_in(tmp_path, abc=ABC)


def events_of(server: Server, answer: Called) -> list[dict[str, Any]]:
    directory = server.data_dir / "sessions" / answer["run"]["sessionId"] / "events"
    lines = [line for path in sorted(directory.glob("*.jsonl")) for line in path.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def count_of(server: Server, answer: Called, kind: str = "advance_recorded") -> int:
    return [event["kind"] for event in events_of(server, answer)].count(kind)


def tree(root: Path) -> dict[str, tuple[int, ...] | bytes]:
    found: dict[str, tuple[int, ...] | bytes] = {}
    for path in sorted([root, *root.rglob("*")]):
        stat = path.stat()
        found[f"{path} times"] = (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino)
        if path.is_file():
            found[str(path)] = path.read_bytes()
    return found


# --- Start and discovery ---------------------------------------------------------------------------------------------


@pytest.mark.inv("ADV-1", "SRV-4")
def test_behaviour_01_a_start_gives_the_first_step_and_one_token_to_advance(server: Server) -> None:
    first = server.start(goal="Show it", workspacePath=str(server.data_dir.parent / "space"))
    assert first["pending"]["stepId"] == "a"
    assert (first["isComplete"], first["nextIntent"]) == (False, "perform_pending_then_continue")
    assert first["nextCall"]["arguments"]["ackToken"] == first.ack
    assert json.dumps(dict(first.structure)).count(first.ack) == 2


@pytest.mark.inv("SRC-5")
def test_behaviour_02_an_unknown_workflow_is_not_found_and_the_list_is_named(server: Server) -> None:
    """D38: the code is `WORKFLOW_NOT_FOUND`."""
    refused = server.start("test.abd")
    assert (refused.code, refused["retry"]["kind"]) == (ErrorCode.WORKFLOW_NOT_FOUND, "not_retryable")
    assert "`list_workflows`" in refused["suggestion"]
    assert "`test.abc`" in refused["suggestion"]


@pytest.mark.inv("SRC-5", "PLAN-4")
def test_behaviour_03_a_faulty_workflow_file_is_named_with_the_path_that_fails(server: Server) -> None:
    refused = server.start("test.faulty")
    assert refused.code is ErrorCode.WORKFLOW_INVALID
    for words in ("faulty.json", "steps[0].titel", "`title`"):
        assert words in refused.text
    paths = {fault["path"] for fault in refused["details"]["diagnostics"]}
    assert {"steps[0].titel", "steps[0].title"} <= paths


@pytest.mark.inv("ANS-12")
def test_behaviour_04_a_relative_workspace_is_refused_with_a_correct_call_and_the_goal_is_optional(
    server: Server,
) -> None:
    """D38: the goal is optional."""
    refused = server.start(workspacePath="some/where")
    assert (refused.code, refused["details"]["path"]) == (ErrorCode.VALIDATION_ERROR, "workspacePath")
    assert refused["details"]["correctedCall"]["arguments"]["workspacePath"].startswith("/")
    assert "goal" not in server.start()["run"]


@pytest.mark.inv("ANS-3")
def test_behaviour_05_the_token_works_the_moment_it_was_given(server: Server) -> None:
    for _ in range(5):
        assert server.follow(server.start())["pending"]["stepId"] == "b"


@pytest.mark.inv("ANS-3", "BLK-1")
def test_behaviour_06_what_the_first_answer_says_to_send_leads_on(server: Server) -> None:
    """With the notes filled in, to the next step; sent as it stands, to a blocked answer that leads on as well."""
    first = server.start()
    assert first["pending"]["prompt"] == "Do a."
    blocked = server.call(first["nextCall"]["tool"], **first["nextCall"]["arguments"])
    assert (blocked["kind"], blocked["pending"]["stepId"]) == ("blocked", "a")
    assert server.follow(blocked)["pending"]["stepId"] == "b"


@pytest.mark.inv("ANS-12")
def test_behaviour_07_a_misspelt_argument_is_answered_with_the_one_that_was_meant(server: Server) -> None:
    refused = server.call("continue_workflow", ackToken=server.start().ack, outputs={"notesMarkdown": "n"})
    assert (refused.code, refused["details"]["didYouMean"]) == (ErrorCode.VALIDATION_ERROR, "output")
    assert "`output`" in refused.text


@pytest.mark.inv("ANS-11")
def test_behaviour_08_objects_sent_as_text_and_what_clients_add_are_taken(server: Server) -> None:
    first = server.start(context='{"x": 1}', goal=None, sessionId="", preferences="", wait_for_previous=True)
    output = json.dumps({"notesMarkdown": "Done."})
    second = server.advance(first, None, output=output, context="{}", run="", wait_for_previous=False)
    assert second["pending"]["stepId"] == "b"


@pytest.mark.inv("SRC-4", "ANS-6")
def test_behaviour_09_a_list_is_compact_and_a_tag_gives_only_its_own(server: Server) -> None:
    everything = server.call("list_workflows")
    assert len(everything.text.encode()) < 5_000
    assert len(json.dumps(dict(everything.structure)).encode()) < 10_000
    listed = {one["workflowId"] for one in everything["workflows"]}
    assert listed >= {"test.abc", "test.optional", "wr.bug_investigation", "wr.code_review", "wr.coding_task"}
    assert {name for name in listed if not name.startswith("wr.")} == {"test.abc", "test.optional"}
    assert [one["workflowId"] for one in server.call("list_workflows", tag="demo")["workflows"]] == ["test.abc"]
    found = server.call("list_workflows", query="bug investigation")["workflows"]
    assert [one["workflowId"] for one in found] == ["wr.bug_investigation"]


@pytest.mark.inv("SRC-3", "SRC-4")
def test_behaviour_10_a_file_with_a_bundled_id_does_not_shadow_it_and_is_reported(server: Server) -> None:
    inspected = server.call("inspect_workflow", workflowId="wr.code_review")
    assert (inspected["name"], inspected["sourceKind"]) == ("Code review", "bundled")
    listed = server.call("list_workflows")
    refused = {one["source"]: one["diagnostic"]["code"] for one in listed["refused"]}
    assert refused["shadow.json"] == "reserved_namespace"
    assert {"broken.yaml", "faulty.json"} <= set(refused)
    assert "shadow.json" in listed.text


# --- Advance and replay ----------------------------------------------------------------------------------------------


@pytest.mark.inv("ADV-3")
def test_behaviour_11_an_advance_gives_the_next_step_and_another_token(server: Server) -> None:
    first = server.start()
    second = server.advance(first, "Did a.")
    assert second["pending"]["stepId"] == "b"
    assert {second.ack, second.state}.isdisjoint({first.ack, first.state})


@pytest.mark.inv("ADV-5")
def test_behaviour_12_the_identical_call_gets_the_identical_answer_and_writes_nothing(server: Server) -> None:
    first = server.start(goal="G")
    second = server.advance(first, "Did a.")
    before = tree(server.data_dir)
    for _ in range(20):
        assert server.advance(first, "Did a.") == second
    assert tree(server.data_dir) == before


@pytest.mark.inv("ADV-7")
def test_behaviour_13_a_repeat_with_other_notes_keeps_the_first_and_says_so(server: Server) -> None:
    first = server.start()
    second = server.advance(first, "The first notes.")
    again = server.advance(first, "Other notes.")
    assert again.warnings == ["REPLAY_PAYLOAD_IGNORED"]
    assert (again.ack, again.state) == (second.ack, second.state)
    assert "The first notes." in server.look(second)["recap"]
    assert "Other notes." not in server.look(second)["recap"]


@pytest.mark.inv("ADV-4")
def test_behaviour_14_the_last_step_completes_the_run_and_its_repeat_says_so_again(server: Server) -> None:
    third = server.follow(server.follow(server.start()))
    last = server.follow(third)
    assert (last["isComplete"], last["pending"], last["nextCall"], last["nextIntent"]) == (True, None, None, "complete")
    assert "complete" in last.text.partition("\n")[0]
    assert server.follow(third) == last
    looked = server.look(last)
    assert (looked["isComplete"], looked["pending"], looked["nextCall"]) == (True, None, None)


@pytest.mark.inv("ADV-6", "LOCK-5")
def test_behaviour_15_two_identical_advances_at_once_are_one_advance_and_two_equal_answers(server: Server) -> None:
    first = server.start()
    arguments = {"ackToken": first.ack, "output": {"notesMarkdown": "Done."}}
    pending = [server.soon("continue_workflow", arguments) for _ in range(2)]
    one, two = (checked("continue_workflow", future.result(60)) for future in pending)
    assert one == two
    assert one["pending"]["stepId"] == "b"
    assert count_of(server, first) == 1


@pytest.mark.inv("TOK-7")
def test_behaviour_16_a_token_works_after_a_restart(tmp_path: Path, space: Path, era: Era) -> None:
    with Server(tmp_path / "data", space, era) as server:
        second = server.advance(server.start(), "Did a.")
    with Server(tmp_path / "data", space, era) as server:
        third = server.advance(second)
        assert third["pending"]["stepId"] == "c"
        assert "Did a." in server.look(third)["recap"]


@pytest.mark.inv("TOK-7", "ADV-6")
def test_behaviour_17_two_servers_on_one_directory_take_each_others_tokens(tmp_path: Path, space: Path) -> None:
    """They speak different eras, too; and one ack at both at once is one advance."""
    with Server(tmp_path / "data", space, "auto") as one, Server(tmp_path / "data", space, "legacy") as two:
        first = one.start()
        second = two.advance(first)
        assert one.advance(first) == second
        third = one.advance(second)
        assert two.look(second).warnings == ["STEP_ALREADY_DONE"]
        pending = [
            server.soon("continue_workflow", {"ackToken": third.ack, "output": {"notesMarkdown": "Done."}})
            for server in (one, two, one, two)
        ]
        answers = [checked("continue_workflow", future.result(60)) for future in pending]
        assert all(answer == answers[0] for answer in answers)
        assert answers[0]["isComplete"]
        assert count_of(one, first) == 3


@pytest.mark.inv("TOK-3", "TOK-4", "ANS-2")
def test_behaviour_18_a_token_that_is_none_is_told_for_what_it_is(server: Server) -> None:
    first = server.start()
    changed = first.ack[:20] + ("A" if first.ack[20] != "A" else "B") + first.ack[21:]
    refused = server.advance(changed)
    assert refused.code is ErrorCode.TOKEN_BAD_SIGNATURE
    assert "this data directory did not issue it" in refused["message"]
    assert server.advance("hello").code is ErrorCode.TOKEN_INVALID_FORMAT
    assert server.look("hello").code is ErrorCode.TOKEN_INVALID_FORMAT
    assert server.advance("ack.v9.x.y").code is ErrorCode.TOKEN_UNSUPPORTED_VERSION
    assert server.advance(first.state).code is ErrorCode.TOKEN_SCOPE_MISMATCH
    assert server.look(first.ack).code is ErrorCode.TOKEN_SCOPE_MISMATCH
    assert count_of(server, first) == 0


@pytest.mark.inv("ANS-9")
def test_behaviour_18_a_token_full_of_brackets_is_no_fault_of_ours(server: Server) -> None:
    """The session is read out of a token before it is verified, to choose a queue; nothing may go wrong there."""
    import base64  # noqa: PLC0415 — this one token

    payload = base64.urlsafe_b64encode(b"[" * 2_900).rstrip(b"=").decode()
    assert server.advance(f"ack.v1.{payload}.AAAA").code is ErrorCode.TOKEN_BAD_SIGNATURE


@pytest.mark.inv("ANS-2", "ANS-4", "TOK-6")
def test_behaviour_19_a_token_moves_only_its_own_run_and_the_answer_names_it(server: Server) -> None:
    """A forgetful agent keeps only the last answer of each of two runs, and alternates."""
    last = {
        goal: server.start(workflow, goal=goal) for goal, workflow in (("Ship", "test.abc"), ("Sink", "test.optional"))
    }
    labels = {goal: answer["run"]["label"] for goal, answer in last.items()}
    refused = server.advance(last["Ship"], stateToken=last["Sink"].state)
    assert refused.code is ErrorCode.TOKEN_SCOPE_MISMATCH
    for words in (*labels.values(), "test.abc", "test.optional", "Ship", "Sink"):
        assert words in refused["message"]
    assert server.advance(last["Ship"], run=labels["Sink"]).code is ErrorCode.TOKEN_SCOPE_MISMATCH
    for step in ("b", "c", None):
        for goal in ("Ship", "Sink"):
            last[goal] = server.follow(last[goal])
            assert (last[goal]["run"]["label"], last[goal]["run"]["goal"]) == (labels[goal], goal)
            assert (last[goal]["pending"] or {"stepId": None})["stepId"] == step


# --- Blocking --------------------------------------------------------------------------------------------------------


@pytest.mark.inv("BLK-1", "BLK-3")
def test_behaviour_20_without_notes_the_answer_is_blocked_and_the_step_stays(server: Server) -> None:
    """D38: the code is `MISSING_REQUIRED_OUTPUT`."""
    first = server.start()
    blocked = server.advance(first, None)
    assert (blocked["kind"], blocked["retryable"], blocked.is_error) == ("blocked", True, False)
    assert [blocker["code"] for blocker in blocked["blockers"]] == ["MISSING_REQUIRED_OUTPUT"]
    assert blocked["pending"] == first["pending"]
    assert blocked.ack != first.ack
    assert server.advance(first, None) == blocked


@pytest.mark.inv("BLK-3", "ADV-5")
def test_behaviour_21_the_tokens_of_a_blocked_answer_go_on_and_their_repeat_replays(server: Server) -> None:
    blocked = server.advance(server.start(), None)
    second = server.follow(blocked, "Now with notes.")
    assert second["pending"]["stepId"] == "b"
    assert server.follow(blocked, "Now with notes.") == second


@pytest.mark.inv("ADV-7", "BLK-3")
def test_behaviour_22_the_spent_token_with_corrected_notes_is_not_silently_replayed(server: Server) -> None:
    first = server.start()
    server.advance(first, None)
    again = server.advance(first, "Now with notes.")
    assert (again["kind"], again.warnings) == ("blocked", ["REPLAY_PAYLOAD_IGNORED"])
    assert server.follow(again, "Now with notes.")["pending"]["stepId"] == "b"


@pytest.mark.inv("BLK-1")
def test_behaviour_23_a_step_with_optional_notes_advances_without(server: Server) -> None:
    second = server.follow(server.start("test.optional"))
    assert "optional" in second.text
    assert server.advance(second, None)["pending"]["stepId"] == "c"


@pytest.mark.inv("BLK-4", "BLK-5")
def test_the_tenth_refusal_says_how_to_recover_and_the_run_can_still_be_looked_at(server: Server) -> None:
    first = answer = server.start()
    for _ in range(9):
        answer = server.advance(answer, None)
        assert answer["kind"] == "blocked"
    refused = server.advance(answer, None)
    assert refused.code is ErrorCode.ATTEMPT_LIMIT_REACHED
    assert refused["details"]["fork"]["ackToken"] in refused.text
    looked = server.look(first)
    assert looked.warnings == ["ATTEMPT_LIMIT_REACHED"]
    assert server.follow(looked)["pending"]["stepId"] == "b"


# --- Rehydrate and fork ----------------------------------------------------------------------------------------------


@pytest.mark.inv("ADV-8", "READ-1", "ANS-13")
def test_behaviour_45_looking_shows_the_step_and_the_notes_so_far_and_writes_nothing(server: Server) -> None:
    second = server.advance(server.start(), "Did a thoroughly.")
    before = tree(server.data_dir)
    looked = server.look(second)
    assert looked["pending"] == second["pending"]
    assert "Did a thoroughly." in looked["recap"]
    assert "Did a thoroughly." in looked.text
    assert looked["nextIntent"] == "rehydrate_only"
    assert looked.ack == second.ack
    refused = server.look(second, output={"notesMarkdown": "n"})
    assert (refused.code, refused["details"]["path"]) == (ErrorCode.VALIDATION_ERROR, "output")
    assert tree(server.data_dir) == before


@pytest.mark.inv("ADV-9", "ADV-10")
def test_behaviour_47_redoing_a_step_takes_the_fork_token_and_the_answer_says_that_a_branch_was_made(
    server: Server,
) -> None:
    """D38: with the fork token."""
    first = server.start()
    second = server.advance(first, "Did a.")
    looked = server.look(first)
    assert "ackToken" not in looked.structure
    assert server.follow(looked).ack == second.ack
    forked = server.advance(looked["fork"]["ackToken"], "Did a otherwise.")
    causes = [event["data"]["cause"]["kind"] for event in events_of(server, first) if event["kind"] == "edge_created"]
    assert causes == ["tip_advance", "intentional_fork"]
    assert forked.ack != second.ack
    assert server.advance(second)["pending"]["stepId"] == "c"
    assert "branch" in forked.text


# --- Durability ------------------------------------------------------------------------------------------------------


@pytest.mark.inv("CRASH-8", "CRASH-1")
def test_behaviour_54_after_kill_9_during_an_advance_the_old_or_the_new_state_holds(
    tmp_path: Path, space: Path, era: Era
) -> None:
    with Server(tmp_path / "data", space, era) as server:
        first = server.start()
        answered = server.advance(first)
        with suppress(Exception):
            future = server.soon(
                "continue_workflow", {"ackToken": answered.ack, "output": {"notesMarkdown": "Killed."}}
            )
            server.kill()
            future.result(60)
    with Server(tmp_path / "data", space, era) as server:
        looked = server.look(answered)
        assert looked["pending"]["stepId"] == "b"
        assert looked.warnings in ([], ["STEP_ALREADY_DONE"])
        third = server.advance(answered, "Killed.")
        assert (third["pending"]["stepId"], third.warnings) == ("c", [])
        assert server.advance(first) == answered
        assert server.follow(third)["isComplete"]
        assert count_of(server, first) == 3


@pytest.mark.inv("CRASH-6")
def test_behaviour_55_a_segment_that_no_manifest_line_names_is_ignored(server: Server) -> None:
    first = server.start()
    directory = server.data_dir / "sessions" / first["run"]["sessionId"] / "events"
    (segment,) = directory.iterdir()
    (directory / "00000004-00000007.jsonl").write_bytes(segment.read_bytes()[:100])
    (directory / "00000004-00000007.jsonl.0123.tmp").write_bytes(b"half")
    assert server.look(first)["pending"]["stepId"] == "a"
    assert server.advance(first)["pending"]["stepId"] == "b"


@pytest.mark.inv("READ-2", "CRASH-7")
def test_behaviour_56_a_changed_byte_hurts_its_own_session_alone(tmp_path: Path, space: Path) -> None:
    with Server(tmp_path / "data", space, "legacy") as server:
        hurt, well = server.start(goal="Hurt"), server.start(goal="Well")
    (segment,) = (tmp_path / "data" / "sessions" / hurt["run"]["sessionId"] / "events").iterdir()
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(bytes(data))
    with Server(tmp_path / "data", space, "legacy") as server:
        for refused in (server.look(hurt), server.advance(hurt), server.start(sessionId=hurt["run"]["sessionId"])):
            assert refused.code is ErrorCode.SESSION_NOT_HEALTHY
        assert server.advance(well)["pending"]["stepId"] == "b"
        assert not server.start().is_error
    assert segment.read_bytes() == bytes(data)


@pytest.mark.produces("error:TOKEN_SESSION_LOCKED")
@pytest.mark.inv("LOCK-3", "LOCK-4")
def test_behaviour_57_a_lock_of_the_living_is_retryable_and_of_the_dead_or_full_of_garbage_is_free(
    tmp_path: Path, space: Path
) -> None:
    with Server(tmp_path / "data", space, "auto") as server, Server(tmp_path / "data", space, "auto") as doomed:
        first = doomed.start()
        second = doomed.advance(first)
        doomed.kill()
        third = server.advance(second)
        assert third["pending"]["stepId"] == "c"
        lock = tmp_path / "data" / "sessions" / first["run"]["sessionId"] / ".lock"
        lock.write_bytes(b"\x00garbage 99999999\n" * 10)
        with FileLock(lock, thread_local=False):
            refused = server.advance(third)
            assert refused.code is ErrorCode.TOKEN_SESSION_LOCKED
            assert refused["retry"] == {"kind": "retryable_after_ms", "afterMs": 1000}
            assert server.look(third)["pending"]["stepId"] == "c"
            assert server.advance(second) == third
        assert server.advance(third)["isComplete"]


@pytest.mark.inv("PLAN-3")
def test_behaviour_58_a_run_goes_on_from_its_pin_when_its_file_is_edited(tmp_path: Path, space: Path) -> None:
    path = space / ".interlock" / "workflows" / "abc.json"
    with Server(tmp_path / "data", space, "legacy") as server:
        first = server.start()
        path.write_text(json.dumps(linear_workflow("test.abc", {"id": "z", "title": "New", "prompt": "New."})))
        second = server.advance(first)
        assert (second["pending"]["prompt"], second["run"]["step"]["total"]) == ("Do b.", 3)
        assert server.start()["pending"]["prompt"] == "New."
        path.unlink()
        assert server.start().code is ErrorCode.WORKFLOW_NOT_FOUND
    with Server(tmp_path / "data", space, "legacy") as server:
        assert server.follow(server.advance(second))["isComplete"]


@pytest.mark.inv("FOLLOW-1")
def test_behaviour_59_an_advance_takes_the_same_order_of_time_after_300_steps(tmp_path: Path) -> None:
    long = linear_workflow("test.long", *(f"s{at}" for at in range(301)))
    with Server(tmp_path / "data", workspace_in(tmp_path, long=long), "auto") as server:
        answer = server.start("test.long")
        took: list[float] = []
        for _ in range(300):
            begun = time.perf_counter()
            answer = server.advance(answer)
            took.append(time.perf_counter() - begun)
        assert answer["run"]["step"]["number"] == 301
        assert statistics.median(took[-50:]) < 2.5 * statistics.median(took[5:55])


# --- Many at once, and an environment that does not play along -------------------------------------------------------


@pytest.mark.inv("KEY-2")
def test_six_first_starts_racing_on_an_empty_directory_all_succeed_and_their_tokens_verify_everywhere(
    tmp_path: Path, space: Path
) -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(Server(tmp_path / "data", space, ERAS[number % 2])) for number in range(6)]
        assert not (tmp_path / "data").exists()
        pending = [server.soon("start_workflow", {"workflowId": "test.abc"}) for server in servers]
        answers = [checked("start_workflow", future.result(60)) for future in pending]
        assert [answer["pending"]["stepId"] for answer in answers] == ["a"] * 6
        for server, answer in zip(reversed(servers), answers, strict=True):
            assert server.advance(answer)["pending"]["stepId"] == "b"
    keys = tmp_path / "data" / "keys"
    assert [path.name for path in keys.iterdir()] == ["keyring.json"]
    assert (keys.stat().st_mode & 0o777, (keys / "keyring.json").stat().st_mode & 0o777) == (0o700, 0o600)


@pytest.mark.inv("ADV-6", "LOCK-5")
def test_eight_sessions_at_once_all_go_on_and_none_waits_for_ever(server: Server) -> None:
    answers = [server.start(goal=f"Goal {number}") for number in range(8)]
    firsts = answers
    for step in ("b", "c", None):
        pending = [
            server.soon("continue_workflow", {"ackToken": answer.ack, "output": {"notesMarkdown": "Done."}})
            for answer in answers
        ]
        answers = [checked("continue_workflow", future.result(60)) for future in pending]
        assert [(answer["pending"] or {"stepId": None})["stepId"] for answer in answers] == [step] * 8
        assert [answer["run"]["goal"] for answer in answers] == [f"Goal {number}" for number in range(8)]
    assert [count_of(server, first) for first in firsts] == [3] * 8


def test_an_unknown_tool_is_a_protocol_error(server: Server) -> None:
    """SRV-5."""
    for name in ("no_such_tool", "checkpoint_workflow", "resume_session", ""):
        with pytest.raises(MCPError) as caught:
            server.call(name)
        assert caught.value.error.code == types.INVALID_PARAMS


@pytest.mark.inv("SRV-1", "SRV-4")
def test_the_tools_that_are_listed_are_the_committed_ones(server: Server) -> None:
    assert server.client is not None
    listed = server.run(server.client.list_tools).tools
    assert [tool.name for tool in listed] == [tool.name for tool in TOOLS]
    for tool in listed:
        committed = json.loads((ROOT / "tool-schemas" / f"{tool.name}.json").read_text(encoding="utf-8"))
        assert tool.model_dump(mode="json", by_alias=True, exclude_none=True) == committed


@pytest.mark.inv("SRV-1", "SRV-2")
def test_the_instructions_are_short_and_name_only_tools_that_exist(server: Server) -> None:
    assert server.client is not None
    instructions = server.client.instructions or ""
    assert 0 < len(instructions.encode()) < 2_000
    named = set(re.findall(r"\b[a-z]+_(?:workflows?|session)\b", instructions))
    assert named <= {tool.name for tool in TOOLS}


@pytest.mark.inv("ANS-9", "CTX-4")
def test_hostile_context_is_refused_with_measured_and_allowed_bytes_and_never_as_our_fault(server: Server) -> None:
    first = server.start()
    large = server.advance(first, context={"x": "x" * 300_000})
    assert large.code is ErrorCode.VALIDATION_ERROR
    assert (large["details"]["maxBytes"], large["details"]["measuredBytes"]) == (262_144, 300_008)
    deep: Any = 1
    for _ in range(80):
        deep = [deep]
    for context in (
        {"__proto__": 1},
        {"a": {"constructor": 1}},
        {"a": deep},
        {"a": 2**53},
        '{"a": 1e400}',
        '{"a": NaN}',
    ):
        assert server.advance(first, context=context).code is ErrorCode.VALIDATION_ERROR
    assert count_of(server, first) == 0
    server.advance(first)
    assert server.advance(first, context={"a": 2**53}).code in (None, ErrorCode.VALIDATION_ERROR)


@pytest.mark.inv("KEY-3")
def test_a_damaged_key_ring_stops_tokens_and_nothing_else(tmp_path: Path, space: Path) -> None:
    with Server(tmp_path / "data", space, "legacy") as server:
        first = server.start()
        path = tmp_path / "data" / "keys" / "keyring.json"
        good = path.read_bytes()
        path.write_bytes(good[:-20] + b"x" + good[-19:])
        for refused in (server.look(first), server.advance(first), server.start()):
            assert refused.code is ErrorCode.KEYRING_DAMAGED
        assert not server.call("list_workflows").is_error
        path.write_bytes(good)
        assert server.advance(first)["pending"]["stepId"] == "b"


@pytest.mark.inv("APP-7", "HOUSE-4")
def test_a_data_directory_that_is_missing_is_made_and_one_that_cannot_be_is_told(tmp_path: Path, space: Path) -> None:
    with Server(tmp_path / "not" / "yet" / "there", space, "auto") as server:
        server.call("list_workflows")
        assert not (tmp_path / "not").exists()
        assert server.follow(server.start())["pending"]["stepId"] == "b"
    (tmp_path / "file").write_text("mine")
    with Server(tmp_path / "file" / "data", space, "auto") as server:
        assert server.start().code in (ErrorCode.STORE_READ_ONLY, ErrorCode.STORE_FAILED)
        assert not server.call("list_workflows").is_error
    assert (tmp_path / "file").read_text() == "mine"


def writes_where_modes_forbid(directory: Path) -> bool:
    """Say whether a process may write into a read-only directory even without the powers that `BOOT` drops."""
    locked = directory / "locked"
    locked.mkdir(mode=0o500)
    attempt = "import pathlib, sys; pathlib.Path(sys.argv[1], 'x').touch()"
    boot = [sys.executable, "-c", BOOT, str(directory / "attempt.pid"), "mortal", "-c", attempt, str(locked)]
    return subprocess.run(boot, stderr=subprocess.DEVNULL, check=False).returncode == 0


@pytest.mark.inv("APP-7", "READ-1")
@pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX")
def test_in_a_read_only_directory_runs_can_be_looked_at_and_nothing_is_recorded(tmp_path: Path, space: Path) -> None:
    if writes_where_modes_forbid(tmp_path):
        pytest.skip("NOT TESTED: this user writes into read-only directories whatever their mode")
    data = tmp_path / "data"
    with Server(data, space, "legacy") as server:
        first = server.start()
        second = server.advance(first)
    for path in [data, *data.rglob("*")]:
        path.chmod(0o500 if path.is_dir() else 0o400)
    before = tree(data)
    with Server(data, space, "auto", is_mortal=True) as server:
        assert server.look(second)["pending"]["stepId"] == "b"
        assert server.advance(first) == second
        for refused in (server.advance(second), server.start(), server.start(sessionId=first["run"]["sessionId"])):
            assert refused.code is ErrorCode.STORE_READ_ONLY
    assert tree(data) == before
    for path in [data, *data.rglob("*")]:
        path.chmod(0o700)
