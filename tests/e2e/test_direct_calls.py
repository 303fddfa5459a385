"""Calls that do not pass the SDK's dispatcher, over real pipes: no client can tell them from those that do."""

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from filelock import FileLock
from tests.e2e.test_stdio_transport import ENDS, ENVELOPE, ERAS, HELLO, Json, Served, call, in_era, serving, text_of
from tests.support.forkserver import forking_python

from interlock.kernel.budgets import DRAIN_SECONDS_MAX, UNTAKEN_MESSAGES_MAX

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="waits on pipes with select"),
    pytest.mark.inv("SRV-19"),
]
THROUGH = b"through the SDK"
VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
CALLS: dict[str, Json] = {
    "an answer": {"name": "list_workflows", "arguments": {}},
    "an answer without arguments": {"name": "list_workflows"},
    "a link": {"name": "inspect_workflow", "arguments": {"workflowId": "wr.coding_task", "detail": "plan"}},
    "a refusal": {"name": "inspect_workflow", "arguments": {"workflowId": "test.none"}},
    "a refusal of arguments": {"name": "continue_workflow", "arguments": {"ackToken": 3}},
    "an unknown tool": {"name": "no_such_tool", "arguments": {}},
    "a start with a link": {
        "name": "start_workflow",
        "arguments": {"workflowId": "wr.quick_task", "goal": "Two words."},
    },
}


@pytest.fixture
def saying() -> Iterator[Served]:
    with serving("--say-calls") as server:
        yield server


@pytest.fixture
def product(tmp_path: Path) -> Iterator[Served]:
    places = ["--data-dir", str(tmp_path / "data"), "--workspace", str(tmp_path)]
    with serving(command=[forking_python(), "-m", "interlock", "serve", *places]) as server:
        yield server


def with_id(identity: int, params: Json) -> Json:
    return {"jsonrpc": "2.0", "id": identity, "method": "tools/call", "params": params}


def opened(server: Served, version: str) -> Json:
    """Shake hands in this version, if it does that; return what each request then has to carry."""
    if version == VERSIONS[-1]:
        return {"_meta": ENVELOPE}
    hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    server.send({"jsonrpc": "2.0", "id": 90, "method": "initialize", "params": hello})
    assert server.answer()["result"]["protocolVersion"] == version
    server.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    return {}


def shape(value: Any) -> Any:
    """Return a JSON value with the names of its members, in which texts with random parts are left out."""
    if isinstance(value, dict):
        return {name: shape(item) for name, item in cast("Json", value).items()}
    if isinstance(value, list):
        return [shape(item) for item in cast("list[Any]", value)]
    return type(value).__name__ if isinstance(value, str) else value


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_equals_that_of_the_sdk_in_each_version(product: Served, version: str) -> None:
    envelope = opened(product, version)
    product.send(with_id(1, CALLS["an answer"] | envelope))
    product.answer()
    for name, params in CALLS.items():
        # The SDK ignores a parameter that it does not know, and only it decides what to ignore.
        found = list[Json]()
        for more in ({}, {"unknown": True}):
            product.send(with_id(7, params | envelope | more))
            found.append(product.answer())
        direct, through = found
        if name == "a link":
            kinds = [block["type"] for block in direct["result"]["content"]]
            assert kinds == ["text", "resource_link"][: 2 if version >= "2025-06-18" else 1]
        if name == "a start with a link":
            direct, through = shape(direct), shape(through)
        assert direct == through, name


@pytest.mark.parametrize("era", ERAS)
def test_only_the_first_call_of_a_client_passes_the_sdk(saying: Served, era: str) -> None:
    saying.open(era)
    saying.accept(era, 4)
    saying.end("end of input")
    assert (saying.exit_code(), saying.errors.rest().splitlines()) == (0, [THROUGH])


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"io.modelcontextprotocol/protocolVersion": "2031-01-01"}, -32022),
        ({"io.modelcontextprotocol/clientCapabilities": None}, -32602),
        ({"progressToken": []}, -32602),
        (3, -32602),
        ([], -32602),
    ],
)
def test_what_the_sdk_refuses_is_refused_after_an_accepted_call(
    saying: Served, changed: Json | int | list[int], code: int
) -> None:
    saying.accept("modern", 2)
    meta = ENVELOPE | changed if isinstance(changed, dict) else changed
    saying.send(with_id(1, {"name": "echo", "arguments": {"text": "a"}, "_meta": meta}))
    assert saying.answer()["error"]["code"] == code


def test_a_client_that_declares_something_else_passes_the_sdk_again(saying: Served) -> None:
    saying.accept("modern", 2)
    other: Json = ENVELOPE | {"io.modelcontextprotocol/clientCapabilities": {"roots": {}}}
    for at in range(2):
        saying.send(with_id(at, {"name": "echo", "arguments": {"text": "a"}, "_meta": other}))
        assert text_of(saying.answer()) == "a"
    saying.end("end of input")
    assert (saying.exit_code(), saying.errors.rest().splitlines()) == (0, [THROUGH, THROUGH])


@pytest.mark.parametrize("era", ERAS)
def test_progress_reaches_a_client_that_asked_for_it_and_no_other(saying: Served, era: str) -> None:
    saying.open(era)
    saying.accept(era, 1)
    asking = in_era(era, call(1, "report"))
    asking["params"]["_meta"] = {**asking["params"].get("_meta", {}), "progressToken": "p"}
    saying.send(asking, in_era(era, call(2, "report")))
    progress = {"progressToken": "p", "progress": 0.5, "message": "half"}
    found = [saying.answer() for _ in range(3)]
    assert [one["params"] for one in found if "method" in one] == [progress]
    assert found[0]["method"] == "notifications/progress"
    assert [one["id"] for one in found if "result" in one] == [1, 2]


@pytest.mark.inv("SRV-10")
def test_a_subscriber_hears_of_later_calls(product: Served) -> None:
    opened(product, "2025-11-25")
    product.send(with_id(1, CALLS["a start with a link"]))
    begun = product.answer()["result"]["structuredContent"]
    uri = f"interlock://sessions/{begun['run']['sessionId']}"
    product.send({"jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": {"uri": uri}})
    assert product.answer() == {"jsonrpc": "2.0", "id": 2, "result": {}}
    kept = {"ackToken": begun["ackToken"], "output": {"notesMarkdown": "Half of it is done."}}
    product.send(with_id(3, {"name": "checkpoint_workflow", "arguments": kept}))
    update, answer = product.answer(), product.answer()
    assert (update["method"], update["params"]) == ("notifications/resources/updated", {"uri": uri})
    assert (answer["id"], answer["result"]["isError"]) == (3, False)


def started(product: Served, declared: Json) -> Json:
    """Return the structure of a started run, after the client shook hands if its era does that."""
    product.send(with_id(1, CALLS["a start with a link"] | declared))
    return product.answer()["result"]["structuredContent"]


@pytest.mark.inv("SRV-7")
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("version", [VERSIONS[-1], HELLO["protocolVersion"]])
@pytest.mark.parametrize("is_direct", [False, True])
def test_a_change_that_is_recorded_after_the_patience_for_those_that_wait_is_answered(
    product: Served, tmp_path: Path, version: str, end: str | signal.Signals, *, is_direct: bool
) -> None:
    """The call waits for another process's lock, and announces its change before the answer."""
    declared = opened(product, version)
    begun = started(product, declared)
    unusual = {} if is_direct else {"unknown": True}
    with FileLock(tmp_path / "data" / "sessions" / begun["run"]["sessionId"] / ".lock"):
        sent = {"ackToken": begun["ackToken"], "output": {"notesMarkdown": "The two words are swapped in line 3."}}
        product.send(with_id(2, {"name": "continue_workflow", "arguments": sent} | declared | unusual))
        product.send({"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": declared})
        assert product.answer()["id"] == 3
        product.end(end)
        with contextlib.suppress(subprocess.TimeoutExpired):
            product.process.wait(1.2 * DRAIN_SECONDS_MAX)
    answer = product.answer()
    assert (answer["id"], answer["result"]["isError"]) == (2, False)
    assert product.exit_code() == 0


@pytest.mark.inv("SRV-7")
def test_what_an_ending_server_answers_of_a_queue_is_in_the_log_once(product: Served, tmp_path: Path) -> None:
    declared = opened(product, VERSIONS[-1])
    begun = started(product, declared)
    notes = [f"Part {at} of the text is written." for at in range(25)]
    with FileLock(tmp_path / "data" / "sessions" / begun["run"]["sessionId"] / ".lock"):
        for at, words in enumerate(notes):
            sent = {"ackToken": begun["ackToken"], "output": {"notesMarkdown": words}}
            product.send(with_id(at, {"name": "checkpoint_workflow", "arguments": sent} | declared))
        product.send({"jsonrpc": "2.0", "id": 25, "method": "tools/list", "params": declared})
        assert product.answer()["id"] == 25
        product.end(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            product.process.wait(DRAIN_SECONDS_MAX / 2)
    assert product.exit_code() == 0
    answers: list[Json] = [json.loads(line) for line in product.answers.rest().splitlines()]
    events = tmp_path / "data" / "sessions" / begun["run"]["sessionId"] / "events"
    log = "".join(path.read_text() for path in events.iterdir())
    recorded: list[int] = [one["id"] for one in answers if "result" in one and not one["result"]["isError"]]
    assert [log.count(notes[at]) for at in recorded] == [1] * len(recorded)
    assert recorded


@pytest.mark.inv("SRV-10")
def test_an_ending_server_answers_a_subscription_with_its_result(product: Served) -> None:
    params = {"notifications": {"resourcesListChanged": True}, "_meta": ENVELOPE}
    product.send({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params})
    assert product.answer()["method"] == "notifications/subscriptions/acknowledged"
    product.end(signal.SIGTERM)
    assert product.answer()["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == 1
    assert product.exit_code() == 0


@pytest.mark.inv("SRV-5")
def test_notifications_without_end_wait_in_the_pipe(saying: Served) -> None:
    saying.open("legacy")
    changed = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
    saying.send(*[changed] * 20 * UNTAKEN_MESSAGES_MAX)
    saying.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert saying.answer() == {"jsonrpc": "2.0", "id": 1, "result": {}}
    saying.end(signal.SIGTERM)
    assert saying.exit_code() == 0
