"""Opens the telemetry that a profile asks for. Without the extra, or without an address, there is none."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from opentelemetry import trace
from opentelemetry.trace import Tracer

from interlock.drive.agent.profile import Profile
from interlock.drive.faults import Fault, TurnError
from interlock.drive.telemetry.emission import Emitter, Telemetry
from interlock.drive.telemetry.spans import SpanEmitter
from interlock.version import VERSION

_NAME = "interlock.drive"


def open_telemetry(profile: Profile, environment: Mapping[str, str], exits: ExitStack) -> Telemetry:
    """Return the emitters of a profile. What they hold is flushed and closed by `exits`.

    Spans are always made: without an SDK they go nowhere, and with the caller's they continue its trace.

    Raises:
        TurnError: Something is asked for that is not installed or cannot be written.
    """
    emitters: list[Emitter] = []
    tracer = trace.get_tracer(_NAME, VERSION)
    endpoint = profile.observability.otlp_endpoint
    try:
        if endpoint is not None:
            provider, metrics = _exporting(endpoint, profile, exits)
            tracer = provider
            emitters.append(metrics)
        if profile.observability.activity_stream.enabled:
            emitters.append(_events(profile, exits))
    except ImportError as error:
        message = "Telemetry needs the extra: pip install '.[drive]' in the checkout of Interlock."
        raise TurnError(Fault(code="VALIDATION_ERROR", message=message)) from error
    pairs = (pair.partition("=") for pair in environment.get("BAGGAGE", "").split(",") if "=" in pair)
    carried = {key.strip(): value.strip() for key, _, value in pairs}
    spans = SpanEmitter(tracer, profile, parent=environment.get("TRACEPARENT"), carried=carried)
    return Telemetry([spans, *emitters])


def _exporting(endpoint: str, profile: Profile, exits: ExitStack) -> tuple[Tracer, Emitter]:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # noqa: PLC0415 — an extra
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 — see above
    from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415 — see above
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader  # noqa: PLC0415 — see above
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 — see above
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 — see above

    from interlock.drive.telemetry.metrics import MetricEmitter  # noqa: PLC0415 — see above

    tracers = TracerProvider()
    tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces")))
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(endpoint=f"{endpoint.rstrip('/')}/v1/metrics"))
    meters = MeterProvider(metric_readers=[reader])
    exits.callback(tracers.shutdown)
    exits.callback(meters.shutdown)
    return tracers.get_tracer(_NAME, VERSION), MetricEmitter(meters.get_meter(_NAME, VERSION), profile)


def _events(profile: Profile, exits: ExitStack) -> Emitter:
    from interlock.drive.telemetry.cloud_events import EventEmitter  # noqa: PLC0415 — an extra

    path = profile.observability.activity_stream.file
    if path is None:
        message = "`observability.activity_stream` is enabled and has no `file`."
        raise TurnError(Fault(code="VALIDATION_ERROR", message=message))
    return EventEmitter(profile, _appending(Path(path), exits))


def _appending(path: Path, exits: ExitStack) -> Callable[[bytes], None]:
    try:
        stream = exits.enter_context(path.open("ab"))
    except OSError as error:
        message = f"The file of the activity stream cannot be written: {error.strerror}."
        raise TurnError(Fault(code="VALIDATION_ERROR", message=message)) from error

    def write(event: bytes) -> None:
        stream.write(event + b"\n")
        stream.flush()

    return write
