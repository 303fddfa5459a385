"""Many at once, and an environment that does not play along, at real server processes."""

import json
import re
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError, types
from tests.support.forked_server import ForkedServer
from tests.support.server import Server, checked, count_of, tree, writes_where_modes_forbid

from interlock.kernel.errors import ErrorCode
from interlock.server.tools import TOOLS
from interlock.testing.harness import ERAS

ROOT = Path(__file__).parent.parent.parent.parent


@pytest.mark.inv("KEY-2")
def test_six_first_starts_racing_on_an_empty_directory_all_succeed_and_their_tokens_verify_everywhere(
    tmp_path: Path, space: Path
) -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(ForkedServer(tmp_path / "data", space, ERAS[number % 2])) for number in range(6)]
        pending = [server.soon("start_workflow", {"workflowId": "test.abc"}) for server in servers]
        answers = [checked("start_workflow", future.result(60)) for future in pending]
        assert [answer["pending"]["stepId"] for answer in answers] == ["a"] * 6
        for server, answer in zip(reversed(servers), answers, strict=True):
            assert server.advance(answer)["pending"]["stepId"] == "b"
    keys = tmp_path / "data" / "keys"
    assert {path.name for path in keys.iterdir()} == {"keyring.json", "settled"}
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
        assert [answer["run"]["label"] for answer in answers] == [first["run"]["label"] for first in firsts]
    assert [count_of(server, first) for first in firsts] == [3] * 8


def test_an_unknown_tool_is_a_protocol_error(server: Server) -> None:
    """SRV-5."""
    for name in ("no_such_tool", "resume", "List_Workflows", ""):
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
    with ForkedServer(tmp_path / "data", space, "legacy") as server:
        first = server.start()
        path = tmp_path / "data" / "keys" / "keyring.json"
        good = path.read_bytes()
        path.write_bytes(good[:-20] + b"x" + good[-19:])
        for refused in (server.rehydrate(first), server.advance(first), server.start()):
            assert refused.code is ErrorCode.KEYRING_DAMAGED
        assert not server.call("list_workflows").is_error
        path.write_bytes(good)
        assert server.advance(first)["pending"]["stepId"] == "b"


@pytest.mark.inv("APP-7", "HOUSE-4")
def test_a_data_directory_that_is_missing_is_made_and_one_that_cannot_be_is_reported(
    tmp_path: Path, space: Path
) -> None:
    with ForkedServer(tmp_path / "not" / "yet" / "there", space, "auto") as server:
        server.call("list_workflows")
        assert server.follow(server.start())["pending"]["stepId"] == "b"
    # A server refuses to begin below a file; this one came later.
    with ForkedServer(tmp_path / "file" / "data", space, "auto") as server:
        assert not server.call("list_workflows").is_error
        (tmp_path / "file").rename(tmp_path / "away")
        (tmp_path / "file").write_text("mine")
        refused = server.start()
        assert refused.code is ErrorCode.STORE_FAILED
        assert "is not a directory" in refused["message"]
        assert not server.call("list_workflows").is_error
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.inv("APP-7", "READ-1")
@pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX")
def test_in_a_read_only_directory_runs_can_be_looked_at_and_nothing_is_recorded(tmp_path: Path, space: Path) -> None:
    if writes_where_modes_forbid(tmp_path):
        pytest.skip("NOT TESTED: this user writes into read-only directories whatever their mode")
    data = tmp_path / "data"
    with ForkedServer(data, space, "legacy") as server:
        first = server.start()
        second = server.advance(first)
    for path in [data, *data.rglob("*")]:
        path.chmod(0o500 if path.is_dir() else 0o400)
    before = tree(data)
    with Server(data, space, "auto", is_mortal=True) as server:
        assert server.rehydrate(second)["pending"]["stepId"] == "b"
        assert server.advance(first) == second
        for refused in (server.advance(second), server.start(), server.start(sessionId=first["run"]["sessionId"])):
            assert refused.code is ErrorCode.STORE_READ_ONLY
    assert tree(data) == before
    for path in [data, *data.rglob("*")]:
        path.chmod(0o700)
