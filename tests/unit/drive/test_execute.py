"""Calls of tools: judged before they are made, in order, retried, timed out, stopped by their breaker, filtered."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.drive import EFFECTFUL, FakeEffects, calls, driving, each, profile, report, tool

from interlock.drive.faults import Fault, TurnError
from interlock.drive.recovery.breaker import Breaker, BreakerRule, Breakers, begin_call, end_call
from interlock.drive.tools.tool import ToolHints
from interlock.kernel.budgets.drive import TOOL_CALLS_PER_ANSWER_MAX
from interlock.testing.harness import Harness, linear_workflow

ONE = linear_workflow("test.abc", "a")


async def made(answer: Any, functions: dict[str, Any], **stated: Any) -> list[dict[str, Any]]:
    """Return the executions of the first turn of a run that ends complete."""
    async with driving(Harness.in_memory(ONE), each(answer), profile(**stated), functions) as drive:
        result = await drive.start()
        assert result.status == "complete", result.fault
        return next(one["tools"] for one in drive.caller.records() if one["status"] == "done")


def answering(*, is_yes: bool) -> Any:
    async def ask(_question: str) -> bool:
        return is_yes

    return ask


def failing(times: int, error: Exception | None = None) -> Any:
    count = 0

    async def invoke(_arguments: Any, _context: Any) -> object:
        nonlocal count
        count += 1
        if count <= times:
            raise error or RuntimeError("no")
        return {"tries": count}

    return invoke


@pytest.mark.asyncio
@pytest.mark.inv("TOOL-3")
async def test_arguments_that_break_the_schema_are_answered_with_their_path_and_nothing_is_called() -> None:
    called: list[object] = []

    async def invoke(arguments: Any, _context: Any) -> object:
        called.append(arguments)
        return {}

    schema = {"type": "object", "properties": {"a": {"properties": {"b": {"type": "integer"}}}}, "required": ["a"]}
    functions = {"one": tool(invoke, schema=schema)}
    for arguments, place in [({"a": {"b": "x"}}, "`a.b`"), ({}, "`(arguments)`"), ("text", "`(arguments)`")]:
        (execution,) = await made(calls(("one", arguments)), functions)
        assert execution["result"]["error"]["code"] == "turn.SCHEMA_VIOLATION"
        assert place in execution["result"]["error"]["message"]
    assert called == []


@pytest.mark.asyncio
async def test_a_tool_that_does_not_exist_is_never_called_and_the_model_reads_which_exist() -> None:
    (execution,) = await made(calls(("continue_workflow", {"ackToken": "x"})), {"echo": tool(failing(0))})
    assert execution["result"]["error"]["code"] == "turn.VALIDATION_ERROR"
    assert execution["result"]["error"]["message"].endswith("The tools are: report_step, note_progress, echo.")


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["echo", "note_progress"])
async def test_of_an_answer_with_too_many_calls_none_is_made_and_the_model_is_asked_again(name: str) -> None:
    made, arguments = list[object](), {"notes": "Half."}

    async def echo(_arguments: Any, _context: Any) -> object:
        made.append(name)
        return "made"

    functions = {"echo": tool(echo)}
    flood = calls(*[(name, arguments)] * (TOOL_CALLS_PER_ANSWER_MAX + 1))
    async with driving(Harness.in_memory(ONE), each(flood), functions=functions) as drive:
        assert ((await drive.start()).status, len(drive.model.requests), made) == ("complete", 2, [])
    async with driving(Harness.in_memory(ONE), flood, functions=functions) as drive:
        result = await drive.start()
        assert (result.status, len(drive.model.requests), made) == ("failed", 4, [])
    assert result.fault is not None
    assert result.fault.message.startswith("The model called 101 tools in one answer; at most 100 are allowed.")
    enough = calls(*[(name, arguments)] * TOOL_CALLS_PER_ANSWER_MAX)
    async with driving(Harness.in_memory(ONE), each(enough), functions=functions) as drive:
        assert ((await drive.start()).status, len(drive.model.requests)) == ("complete", 2)


@pytest.mark.asyncio
@pytest.mark.inv("TOOL-6", "FAULT-4")
@pytest.mark.parametrize(("failures", "retries", "status"), [(0, 0, "success"), (2, 2, "success"), (9, 3, "error")])
async def test_a_failing_tool_is_tried_four_times_and_is_one_execution(
    failures: int, retries: int, status: str
) -> None:
    (execution,) = await made(calls(("one", {})), {"one": tool(failing(failures))})
    assert (execution["retries"], execution["result"]["status"]) == (retries, status)
    if status == "error":
        assert execution["result"]["error"]["code"] == "turn.TOOL_ERROR"


@pytest.mark.asyncio
@pytest.mark.inv("DRIVE-13")
async def test_a_tool_with_side_effects_is_not_tried_again_unless_its_own_entry_says_so() -> None:
    (execution,) = await made(calls(("one", {})), {"one": tool(failing(1), EFFECTFUL)})
    assert (execution["retries"], execution["result"]["status"]) == (0, "error")
    entry = {"name": "one", "type": "function", "retry": {"max_retries": 1}}
    (execution,) = await made(calls(("one", {})), {"one": tool(failing(1), EFFECTFUL)}, tools=[entry])
    assert (execution["retries"], execution["result"]["status"]) == (1, "success")


@pytest.mark.asyncio
@pytest.mark.inv("TOOL-5")
async def test_a_slow_tool_is_cancelled_three_times_and_its_result_is_a_timeout() -> None:
    ended: list[str] = []

    async def hang(_arguments: Any, _context: Any) -> object:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("cancelled")
        raise AssertionError

    entry = {"name": "one", "type": "function", "timeout_ms": 5}
    (execution,) = await made(calls(("one", {})), {"one": tool(hang)}, tools=[entry])
    assert execution["result"]["status"] == "timeout"
    assert execution["result"]["error"]["code"] == "turn.TOOL_TIMEOUT"
    assert (execution["retries"], ended) == (2, ["cancelled"] * 3)


@pytest.mark.asyncio
@pytest.mark.inv("TOOL-7")
@pytest.mark.parametrize("output", [object(), {1, 2}, float("nan"), b"bytes"], ids=["object", "set", "nan", "bytes"])
async def test_output_that_is_no_json_is_an_error_of_the_tool(output: object) -> None:
    async def invoke(_arguments: Any, _context: Any) -> object:
        return output

    (execution,) = await made(calls(("one", {})), {"one": tool(invoke)})
    assert execution["result"]["error"]["code"] == "turn.TOOL_ERROR"


@pytest.mark.asyncio
@pytest.mark.inv("TOOL-7", "DRIVE-6")
async def test_what_an_output_filter_matches_is_neither_shown_nor_kept_and_a_content_filter_covers_all_messages() -> (
    None
):
    async def leak(_arguments: Any, _context: Any) -> object:
        return {"key sk-1234": ["sk-5678 is a key"]}

    stated = profile(
        security={"output_filtering": {"redact": [r"sk-\d+"]}}, safety={"content_filtering": {"redact": ["Do a"]}}
    )
    async with driving(Harness.in_memory(ONE), each(calls(("leak", {}))), stated, {"leak": tool(leak)}) as drive:
        await drive.start()
        kept, shown = json.dumps(drive.caller.called), repr(drive.model.requests)
    assert "sk-" not in kept
    assert "sk-" not in shown
    assert "[redacted]" in kept
    assert "Do a" not in shown


@pytest.mark.asyncio
async def test_a_text_that_the_content_filter_blocks_ends_the_drive() -> None:
    stated = profile(safety={"content_filtering": {"block": ["Do a"]}})
    async with driving(Harness.in_memory(ONE), report, stated) as drive:
        result = await drive.start()
    assert result.status == "failed"
    assert result.fault is not None
    assert result.fault.code == "CONTENT_FILTERED"


@pytest.mark.asyncio
@pytest.mark.inv("TOOL-4")
@pytest.mark.parametrize("is_parallel", [False, True])
async def test_calls_overlap_only_if_their_tool_allows_it_and_results_keep_the_order_of_the_request(
    *, is_parallel: bool
) -> None:
    events: list[str] = []
    both = anyio.Event()

    async def invoke(arguments: Any, _context: Any) -> object:
        events.append(f"begin {arguments['n']}")
        if is_parallel:
            if len(events) == 2:
                both.set()
            await both.wait()
        events.append(f"end {arguments['n']}")
        return arguments["n"]

    entry = {"name": "one", "type": "function", "parallel": is_parallel}
    found = await made(calls(("one", {"n": 1}), ("one", {"n": 2})), {"one": tool(invoke)}, tools=[entry])
    assert [one["result"]["output"] for one in found] == [1, 2]
    assert len({one["callId"] for one in found}) == 2
    expected = ["begin 1", "begin 2"] if is_parallel else ["begin 1", "end 1", "begin 2", "end 2"]
    assert events[: len(expected)] == expected


@pytest.mark.asyncio
@pytest.mark.inv("TOOL-2", "TOOL-1")
async def test_what_is_not_available_or_has_no_valid_schema_is_left_out_with_a_warning() -> None:
    entries = [
        {"name": "grpc_tool", "type": "grpc"},
        {"name": "pods", "type": "kubernetes"},
        {"name": "missing", "type": "function"},
        {"name": "nobody", "type": "mcp", "command": ["/nonexistent/server"], "capabilities": ["x"]},
        {"name": "bad", "type": "function"},
        {"name": "denied", "type": "function", "permission": "deny"},
        {"name": "good", "type": "function"},
    ]
    functions = {name: tool(failing(0)) for name in ("good", "denied")}
    functions["bad"] = tool(failing(0), schema={"type": "no such type"})
    async with driving(Harness.in_memory(ONE), report, profile(tools=entries), functions) as drive:
        result = await drive.start()
        offered = {one.name for one in drive.model.requests[0].tools}
    assert offered == {"report_step", "note_progress", "good"}
    for name in ("grpc_tool", "pods", "missing", "nobody", "bad", "denied"):
        assert any(f"'{name}'" in warning for warning in result.warnings), name


@pytest.mark.asyncio
async def test_an_answer_of_an_address_that_is_too_long_is_an_error_of_the_tool() -> None:
    sent = 0

    async def answer(stream: anyio.abc.SocketStream) -> None:
        nonlocal sent
        async with stream:
            await stream.receive()
            await stream.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n")
            with contextlib.suppress(anyio.BrokenResourceError):
                while sent < 50_000_000:
                    await stream.send(b" " * 100_000)
                    sent += 100_000

    found: dict[str, Any] = {}
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        port = listener.extra_attributes[anyio.abc.SocketAttribute.local_port]()
        entry = {"name": "h", "type": "http", "url": f"http://127.0.0.1:{port}/", "permission": "allow"}
        tasks.start_soon(listener.serve, answer)
        (found,) = await made(calls(("h", {})), {}, tools=[entry])
        tasks.cancel_scope.cancel()
    assert "more than 4000000 bytes" in found["result"]["error"]["message"]
    assert sent < 50_000_000


ENDLESS = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        version = asked["params"]["protocolVersion"]
        server = {"name": "x", "version": "1"}
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
    elif asked.get("method") == "tools/list":
        result = {"tools": [], "nextCursor": "more"}
    else:
        error = {"code": -32601, "message": "no such method"}
        if "id" in asked:
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": error}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


@pytest.mark.asyncio
@pytest.mark.inv("TOOL-2")
@pytest.mark.parametrize("program", ["import time; time.sleep(60)", ENDLESS], ids=["silent", "endless list"])
async def test_a_tool_server_that_does_not_answer_in_time_is_left_out(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp.client.session.DISCOVER_TIMEOUT_SECONDS", 0.3)
    command = [sys.executable, "-c", program]
    entry = {"name": "s", "type": "mcp", "command": command, "timeout_ms": 300, "capabilities": ["x"]}
    with anyio.fail_after(30):
        async with driving(Harness.in_memory(ONE), report, profile(tools=[entry])) as drive:
            result = await drive.start()
    assert result.status == "complete"
    assert any("The MCP server 's' cannot be reached" in warning for warning in result.warnings)


@pytest.mark.asyncio
async def test_a_tool_that_changes_something_needs_permission_and_nobody_can_be_asked_in_a_job() -> None:
    functions = {"wipe": tool(failing(0), ToolHints())}
    (execution,) = await made(calls(("wipe", {})), functions)
    assert execution["result"]["error"]["code"] == "turn.POLICY_VIOLATION"
    allowed = [{"name": "wipe", "type": "function", "permission": "allow"}]
    (execution,) = await made(calls(("wipe", {})), functions, tools=allowed)
    assert execution["result"]["status"] == "success"
    for answer, status in ((True, "success"), (False, "error")):
        ask = answering(is_yes=answer)
        async with driving(Harness.in_memory(ONE), each(calls(("wipe", {}))), profile(), functions, ask=ask) as drive:
            assert (await drive.start()).status == "complete"
            done = [one for one in drive.caller.records() if one["turn"] == 1 and one["status"] == "done"]
            assert done[0]["tools"][0]["result"]["status"] == status


@pytest.mark.asyncio
@pytest.mark.inv("TOOL-6")
async def test_a_breaker_that_is_open_gives_the_fallback_or_ends_the_turn() -> None:
    stated: dict[str, Any] = {
        "reliability": {"circuit_breaker": {"failure_threshold": 2}, "retry": {"max_retries": 1}},
        "tools": [{"name": "one", "type": "function", "fallback": {"from": "cache"}}],
    }
    first, second = await made(calls(("one", {}), ("one", {})), {"one": tool(failing(99))}, **stated)
    assert first["result"]["error"]["code"] == "turn.TOOL_ERROR"
    assert second["result"]["output"] == {"from": "cache"}
    stated["tools"] = []
    both = each(calls(("one", {}), ("one", {})))
    async with driving(Harness.in_memory(ONE), both, profile(**stated), {"one": tool(failing(99))}) as drive:
        result = await drive.start()
    assert result.status == "failed"
    assert result.fault is not None
    assert result.fault.code == "CIRCUIT_OPEN"
    assert "No fallback" in result.fault.message


RULE = BreakerRule(failure_threshold=3, open_seconds=10.0, probes=2)


@pytest.mark.asyncio
@pytest.mark.inv("TOOL-6")
async def test_a_breaker_lets_one_probe_through_at_a_time_and_closes_after_enough_of_them() -> None:
    breakers = Breakers(RULE)
    for _ in range(3):
        assert breakers.begin("x", 0.0)
        breakers.end("x", "failed", 0.0)
    assert not breakers.begin("x", 9.9)
    assert breakers.begin("y", 9.9), "another tool has a breaker of its own"
    assert breakers.begin("x", 10.0)
    assert not breakers.begin("x", 10.0), "a probe is under way"
    breakers.end("x", "succeeded", 10.0)
    assert breakers.begin("x", 10.0)
    breakers.end("x", "succeeded", 10.0)
    assert breakers.begin("x", 10.0)
    assert breakers.begin("x", 10.0), "it is closed"
    breakers.end("x", "succeeded", 10.0)
    for _ in range(3):
        breakers.begin("x", 20.0)
        breakers.end("x", "failed", 20.0)
    assert breakers.begin("x", 30.0)
    breakers.end("x", "failed", 30.0)
    assert not breakers.begin("x", 39.9), "a probe that fails opens it again"


@pytest.mark.inv("TOOL-6")
@given(st.lists(st.tuples(st.sampled_from(["failed", "succeeded"]), st.integers(0, 12)), max_size=30))
def test_a_breaker_is_what_its_rule_says_of_consecutive_calls(steps: list[tuple[Any, int]]) -> None:
    """A model in words: closed counts failures in a row; open waits; half open counts successes in a row."""
    breaker, now = Breaker(), 0.0
    state, failures, passed, since = "closed", 0, 0, 0.0
    for outcome, pause in steps:
        now += pause
        begun = begin_call(breaker, RULE, now)
        may = state == "closed" or now - since >= RULE.open_seconds
        assert (begun is not None) == may
        if begun is None:
            continue
        breaker = end_call(begun, RULE, outcome, now)
        if outcome == "succeeded":
            passed = passed + 1 if state == "open" else 0
            if state == "closed" or passed == RULE.probes:
                state, failures, passed = "closed", 0, 0
        else:
            failures, passed = failures + 1, 0
            if state == "open" or failures >= RULE.failure_threshold:
                state, since = "open", now


@pytest.mark.asyncio
async def test_a_model_that_keeps_failing_is_not_asked_while_its_breaker_is_open() -> None:
    def down(_: Any) -> Any:
        raise TurnError(Fault(code="LLM_ERROR", message="Down.", recoverable=True))

    effects = FakeEffects()
    stated = profile(reliability={"circuit_breaker": {"failure_threshold": 2}})
    async with driving(Harness.in_memory(ONE), down, stated, effects=effects) as drive:
        result = await drive.start()
        assert len(drive.model.requests) == 2
    assert result.fault is not None
    assert result.fault.code == "CIRCUIT_OPEN"


@pytest.mark.inv("TOOL-1")
@pytest.mark.asyncio
async def test_tools_of_an_mcp_server_are_those_that_it_lists_and_the_profile_names(tmp_path: Path) -> None:
    argv = [
        sys.executable,
        "-m",
        "interlock",
        "serve",
        "--data-dir",
        str(tmp_path / "other"),
        "--workspace",
        str(tmp_path),
    ]
    paths = {"PYTHONPATH": os.pathsep.join(sys.path)}
    named = ["list_workflows", "start_workflow", "no_such_tool"]
    entry = {"name": "wf", "type": "mcp", "command": argv, "env": paths, "capabilities": named}
    wanted = calls(("wf__list_workflows", {"query": "quick"}), ("wf__start_workflow", {"workflowId": "wr.quick_task"}))
    async with driving(Harness.in_memory(ONE), each(wanted), profile(tools=[entry])) as drive:
        result = await drive.start()
        offered = {one.name for one in drive.model.requests[0].tools}
        listed, started = next(one["tools"] for one in drive.caller.records() if one["status"] == "done")
    assert result.status == "complete"
    assert offered == {"report_step", "note_progress", "wf__list_workflows", "wf__start_workflow"}
    assert "wr.quick_task" in json.dumps(listed["result"]["output"])
    assert started["result"]["status"] == "success", "its hints say that it destroys nothing, so it needs no permission"
    assert any("no_such_tool" in warning for warning in result.warnings)


def test_the_core_path_needs_nothing_of_the_extra_and_a_server_imports_no_driver() -> None:
    barred = [
        "pydantic_ai",
        "openai",
        "anthropic",
        "google.genai",
        "opentelemetry.sdk",
        "opentelemetry.exporter",
        "cloudevents",
    ]
    code = (
        "import sys\n"
        f"for name in {barred!r}: sys.modules[name] = None\n"
        "import interlock.cli.drive.drive, interlock.drive\n"
        "from interlock.drive.run.setup import make_model\n"
        "from interlock.drive.agent.profile import Profile\n"
        "profile = Profile(role='x')\n"
        "make_model('script:f', profile, lambda _: {})\n"
        "make_model('cmd:true', profile, lambda _: {})\n"
        "try:\n    make_model('openai:x', profile, lambda _: {})\n"
        "except interlock.drive.faults.TurnError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install '.[drive]'" in done.stdout, done.stderr
    serving = (
        "import sys, interlock.cli.top.serve, interlock.server.app\n"
        "print([name for name in sys.modules if 'drive' in name or 'tenacity' in name])"
    )
    assert subprocess.run([sys.executable, "-c", serving], capture_output=True, text=True, check=True).stdout == "[]\n"
