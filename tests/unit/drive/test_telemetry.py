"""Telemetry of turns: names and attributes of the conventions, no ids in metrics, and no influence on results."""

import gzip
import json
import logging
import os
import socket
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext
from tests.support.drive import calls, driving, each, profile, report, team, tool

from interlock.drive.client import StartOptions
from interlock.drive.telemetry.cloud_events import EventEmitter, EventFile
from interlock.drive.telemetry.emission import Telemetry
from interlock.drive.telemetry.metrics import MetricEmitter
from interlock.drive.telemetry.opening import open_telemetry
from interlock.drive.telemetry.spans import SpanEmitter
from interlock.testing.harness import Harness, linear_workflow

ABC = linear_workflow("test.abc", "a", "b")
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
pytestmark = pytest.mark.asyncio


async def fail(_arguments: Any, _context: Any) -> object:
    raise RuntimeError


async def change(_arguments: Any, context: Any) -> object:
    await context.state.set("key", 1)
    return {}


def spans(**options: Any) -> tuple[InMemorySpanExporter, SpanEmitter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return exporter, SpanEmitter(provider.get_tracer("test"), profile(identity={"id": "tester"}), **options)


def context_of(span: ReadableSpan) -> SpanContext:
    context = span.get_span_context()
    assert context is not None
    return context


async def drive_with(*emitters: Any) -> tuple[Any, list[dict[str, Any]]]:
    functions = {"fail": tool(fail), "change": tool(change)}
    answer = each(calls(("fail", {}), ("change", {})))
    async with driving(Harness.in_memory(ABC), answer, functions=functions, telemetry=Telemetry(emitters)) as drive:
        result = await drive.start()
        return result, drive.caller.records()


@pytest.mark.inv("TEL-1")
async def test_spans_have_the_names_and_the_attributes_of_the_table() -> None:
    exporter, emitter = spans()
    await drive_with(emitter)
    found = exporter.get_finished_spans()
    assert {span.name for span in found} == {"ossa.agent.turn", "gen_ai.chat", "ossa.tool.call", "ossa.state.save"}
    turns = {context_of(span).span_id: span for span in found if span.name == "ossa.agent.turn"}
    assert [dict(span.attributes or {})["ossa.turn.number"] for span in turns.values()] == [1, 2, 3]
    for span in found:
        if context_of(span).span_id not in turns:
            assert span.parent is not None
            assert span.parent.span_id in turns
        attributes = dict(span.attributes or {})
        if span.name == "gen_ai.chat":
            assert attributes["gen_ai.usage.input_tokens"] == 10
            assert attributes["gen_ai.response.model"] == "fake-1"
        if span.name == "ossa.tool.call":
            assert {"ossa.tool.name", "ossa.tool.status"} <= set(attributes)


@pytest.mark.inv("DRIVE-3")
@pytest.mark.parametrize(
    ("given", "is_continued"),
    [(PARENT, True), (None, False), ("00-zz-xx-01", False), (PARENT.replace("-0af", "-00"), False)],
)
async def test_the_trace_of_the_caller_is_continued_and_a_malformed_one_ignored_with_a_warning(
    given: str | None, caplog: pytest.LogCaptureFixture, *, is_continued: bool
) -> None:
    exporter, emitter = spans(parent=given, carried={"ossa.tenant.id": "t1"})
    _, records = await drive_with(emitter)
    trace_ids = {context_of(span).trace_id for span in exporter.get_finished_spans()}
    assert (trace_ids == {int(PARENT[3:35], 16)}) == is_continued
    assert all(len(record["trace"]["traceId"]) == 32 for record in records)
    assert records[0]["trace"]["baggage"] == {"ossa.tenant.id": "t1"}
    assert ("malformed" in caplog.text) == (given is not None and not is_continued)


@pytest.mark.inv("TEL-3")
async def test_log_entries_name_their_trace_and_span(caplog: pytest.LogCaptureFixture) -> None:
    exporter, emitter = spans()
    with caplog.at_level(logging.INFO, "interlock.drive"):
        await drive_with(emitter)
    turns = [span for span in exporter.get_finished_spans() if span.name == "ossa.agent.turn"]
    logged = [(one.__dict__["trace_id"], one.__dict__["span_id"]) for one in caplog.records if "turn" in one.message]
    assert logged == [(f"{context_of(span).trace_id:032x}", f"{context_of(span).span_id:016x}") for span in turns]


@pytest.mark.inv("DELEG-1", "TEL-1")
async def test_a_delegated_turn_is_linked_to_the_one_before_it_and_is_no_child_of_it() -> None:
    exporter, emitter = spans()
    lead = profile(identity={"id": "lead"}, delegation=[{"type": "handoff", "target_agent": "other", "steps": ["b"]}])
    members: dict[str, tuple[Any, Any]] = {"other": (profile(identity={"id": "other"}), report)}
    crew_of = team(Harness.in_memory(ABC), (lead, report), members, telemetry=Telemetry([emitter]))
    async with crew_of as (crew, _, _models):
        assert (await crew.start(StartOptions(workflow_id="test.abc"))).status == "complete"
    first, second = (span for span in exporter.get_finished_spans() if span.name == "ossa.agent.turn")
    assert (first.parent, second.parent) == (None, None)
    assert (list(first.links), [link.context.span_id for link in second.links]) == ([], [context_of(first).span_id])


@pytest.mark.inv("DRIVE-3")
async def test_the_trace_of_a_turn_is_passed_on_to_its_tools() -> None:
    passed: list[str | None] = []

    async def look(_arguments: Any, context: Any) -> object:
        passed.append(context.trace)
        return {}

    _, emitter = spans(parent=PARENT)
    answer, functions = each(calls(("look", {}))), {"look": tool(look)}
    async with driving(Harness.in_memory(ABC), answer, functions=functions, telemetry=Telemetry([emitter])) as drive:
        await drive.start()
        trace = drive.caller.records()[0]["trace"]
    assert passed == [f"00-{trace['traceId']}-{trace['spanId']}-01"]
    assert trace["traceId"] == PARENT[3:35]


@pytest.mark.inv("TEL-2")
async def test_metrics_count_and_have_no_attribute_of_unbounded_values() -> None:
    reader = InMemoryMetricReader()
    emitter = MetricEmitter(MeterProvider(metric_readers=[reader]).get_meter("test"), profile(identity={"id": "me"}))
    result, _ = await drive_with(emitter)
    data = reader.get_metrics_data()
    assert data is not None
    metrics = [one for resource in data.resource_metrics for scope in resource.scope_metrics for one in scope.metrics]
    points = {one.name: list(one.data.data_points) for one in metrics}
    assert points["ossa.agent.turns"][0].value == result.turns  # pyright: ignore[reportAttributeAccessIssue] — a sum
    assert points["ossa.tokens.input"][0].value == result.usage.input_tokens  # pyright: ignore[reportAttributeAccessIssue] — see above
    assert "ossa.agent.latency" in points
    keys = {key for found in points.values() for point in found for key in point.attributes or {}}
    assert keys == {"ossa.agent.id", "ossa.tool.name", "error.type"}


@pytest.mark.inv("TEL-4")
async def test_every_event_is_a_cloud_event_and_names_what_happened() -> None:
    written: list[dict[str, Any]] = []
    await drive_with(EventEmitter(profile(identity={"id": "me"}), lambda event: written.append(json.loads(event))))
    for event in written:
        assert (event["specversion"], event["source"]) == ("1.0", "urn:interlock:agent:me")
        assert event["id"]
        assert event["type"].startswith("io.ossa.")
    assert len({event["id"] for event in written}) == len(written)
    assert {event["type"].removeprefix("io.ossa.") for event in written} == {
        "agent.turn.completed",
        "tool.completed",
        "tool.failed",
        "state.changed",
    }


@pytest.mark.inv("TEL-4")
async def test_an_emission_that_fails_changes_no_result() -> None:
    def refuse(_: bytes) -> None:
        raise OSError

    class Broken:
        def begin(self, _record: Any) -> dict[str, Any]:
            raise ValueError

        def end(self, _record: Any, _fault: Any) -> None:
            raise ValueError

    quiet, _ = await drive_with()
    result, records = await drive_with(Broken(), EventEmitter(profile(), refuse))
    assert (result.status, result.turns, result.usage) == (quiet.status, quiet.turns, quiet.usage)
    emitted = [one["previous"]["phases"][1]["status"] for one in records[1:]]
    assert emitted == ["failed", "failed"]


def unread_pipe(root: Path) -> Path:
    os.mkfifo(root / "pipe")
    return root / "pipe"


def removed_directory(root: Path) -> Path:
    (root / "lost").mkdir()
    (root / "lost").rmdir()
    return root / "lost" / "events"


BROKEN_FILES: dict[str, Callable[[Path], Path]] = {
    "full": lambda _: Path("/dev/full"),
    "pipe": unread_pipe,
    "removed": removed_directory,
    "directory": lambda root: root,
}


@pytest.mark.inv("TEL-4")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("kind", BROKEN_FILES)
async def test_a_file_of_events_that_cannot_be_written_is_one_warning_and_changes_no_result(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stream = {"enabled": True, "file": str(BROKEN_FILES[kind](tmp_path))}
    with ExitStack() as exits:
        telemetry = open_telemetry(profile(observability={"activity_stream": stream}), {}, exits)
        async with driving(Harness.in_memory(ABC), report, telemetry=telemetry) as drive:
            result = await drive.start()
    assert (result.status, result.turns) == ("complete", 2)
    assert len([one for one in caplog.records if "Telemetry is lost" in one.message]) == 1


@pytest.mark.inv("TEL-4")
async def test_events_are_whole_lines_at_once_and_a_pipe_that_was_closed_loses_only_what_nobody_reads(
    tmp_path: Path,
) -> None:
    path = unread_pipe(tmp_path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with EventFile(path) as write:
        write(b"first")
        assert os.read(reader, 100) == b"first\n"
        os.close(reader)
        with pytest.raises(BrokenPipeError):
            write(b"lost")
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        write(b"second")
        assert os.read(reader, 100) == b"second\n"
        with pytest.raises(BlockingIOError):
            write(b"x" * 10_000_000)
        while os.read(reader, 100_000).endswith(b"x" * 100_000):
            pass
        write(b"third")
        assert os.read(reader, 100) == b"\nthird\n"
    os.close(reader)


@pytest.mark.inv("TEL-4")
@pytest.mark.parametrize("is_open", [True, False])
async def test_a_collector_that_refuses_or_never_answers_is_a_warning_for_each_kind_and_changes_no_result(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, is_open: bool
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        if not is_open:
            silent.close()
        stated = profile(observability={"otlp_endpoint": endpoint})
        with ExitStack() as exits:
            telemetry = open_telemetry(stated, os.environ, exits)
            async with driving(Harness.in_memory(ABC), report, stated, telemetry=telemetry) as drive:
                result = await drive.start()
    assert (result.status, result.turns) == ("complete", 2)
    warned = [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]
    assert warned == [f"Telemetry is lost, and the drive continues: {endpoint} did not take it."] * 2


@dataclass(slots=True)
class Collector:
    """A collector of telemetry on the loopback: what it received, by path."""

    address: str = ""
    received: dict[str, list[bytes]] = field(default_factory=dict[str, list[bytes]])


@contextmanager
def collecting() -> Generator[Collector]:
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            plain = gzip.decompress(body) if self.headers["content-encoding"] == "gzip" else body
            collector.received.setdefault(self.path, []).append(plain)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 — the name that the class gives it
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector.address = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.inv("TEL-1", "TEL-2")
async def test_spans_and_metrics_arrive_at_the_collector_that_the_profile_names() -> None:
    with collecting() as collector:
        stated = profile(identity={"id": "tester"}, observability={"otlp_endpoint": collector.address})
        with ExitStack() as exits:
            telemetry = open_telemetry(stated, {"TRACEPARENT": PARENT}, exits)
            async with driving(Harness.in_memory(ABC), report, stated, telemetry=telemetry) as drive:
                result = await drive.start()
        assert result.status == "complete"
    sent = [ExportTraceServiceRequest.FromString(one) for one in collector.received["/v1/traces"]]
    spans = [
        span for one in sent for group in one.resource_spans for scope in group.scope_spans for span in scope.spans
    ]
    assert [span.name for span in spans].count("ossa.agent.turn") == result.turns == 2
    assert {span.trace_id.hex() for span in spans} == {PARENT.split("-")[1]}
    metrics = [ExportMetricsServiceRequest.FromString(one) for one in collector.received["/v1/metrics"]]
    named = {
        metric.name: metric
        for one in metrics
        for group in one.resource_metrics
        for scope in group.scope_metrics
        for metric in scope.metrics
    }
    (point,) = named["ossa.agent.turns"].sum.data_points
    assert point.as_int == result.turns
