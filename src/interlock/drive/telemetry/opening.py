"""Opens the telemetry that a profile asks for. Without the extra, or without an address, there is none."""

import logging
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from opentelemetry import trace
from opentelemetry.trace import Tracer

from interlock.drive.agent.profile import Profile
from interlock.drive.faults import Fault, TurnError
from interlock.drive.telemetry.emission import Emitter, Telemetry
from interlock.drive.telemetry.spans import SpanEmitter
from interlock.kernel.budgets.drive import TELEMETRY_S_MAX
from interlock.version import VERSION

_log = logging.getLogger(__name__)
_NAME = "interlock.drive"
_TIMEOUTS = ("OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT")


def open_telemetry(profile: Profile, environment: Mapping[str, str], exits: ExitStack) -> Telemetry:
    """Return the emitters of a profile. What they hold is flushed and closed by `exits`.

    Spans are always made: without an SDK they go nowhere, and with the caller's they continue its trace.

    Raises:
        TurnError: Something is asked for that is not installed, or the activity stream has no file.
    """
    emitters: list[Emitter] = []
    tracer = trace.get_tracer(_NAME, VERSION)
    endpoint = profile.observability.otlp_endpoint
    try:
        if endpoint is not None:
            provider, metrics = _exporting(endpoint, profile, environment, exits)
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


def _exporting(
    endpoint: str, profile: Profile, environment: Mapping[str, str], exits: ExitStack
) -> tuple[Tracer, Emitter]:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # noqa: PLC0415 — an extra
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 — see above
    from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415 — see above
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader  # noqa: PLC0415 — see above
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 — see above
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 — see above

    from interlock.drive.telemetry.metrics import MetricEmitter  # noqa: PLC0415 — see above

    named = any(name in environment for name in _TIMEOUTS)
    timeout = None if named else TELEMETRY_S_MAX
    address = endpoint.rstrip("/")
    tracers = TracerProvider()
    tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{address}/v1/traces", timeout=timeout)))
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{address}/v1/metrics", timeout=timeout))
    meters = MeterProvider(metric_readers=[reader])
    for module in (OTLPSpanExporter.__module__, OTLPMetricExporter.__module__):
        exits.enter_context(_one_warning(module, endpoint))
    for shut_down in (tracers.shutdown, meters.shutdown):
        exits.callback(_closed, shut_down)
    return tracers.get_tracer(_NAME, VERSION), MetricEmitter(meters.get_meter(_NAME, VERSION), profile)


@contextmanager
def _one_warning(exporter: str, endpoint: str) -> Generator[None]:
    """Let an exporter log one failure, in a sentence: it would log each try of each request."""
    logger, is_warned = logging.getLogger(exporter), False

    def shorten(record: logging.LogRecord) -> bool:
        nonlocal is_warned
        if is_warned or record.levelno < logging.ERROR:
            return False
        is_warned = True
        record.msg, record.args = "Telemetry is lost, and the drive continues: %s did not take it.", (endpoint,)
        record.exc_info = None
        return True

    logger.addFilter(shorten)
    try:
        yield
    finally:
        logger.removeFilter(shorten)


def _closed(shut_down: Callable[[], None]) -> None:
    """Flush and close, whatever comes of it."""
    try:
        shut_down()
    except Exception as error:  # noqa: BLE001 — no telemetry may change a result
        _log.warning("Telemetry is lost: %s: %s", type(error).__name__, error)


def _events(profile: Profile, exits: ExitStack) -> Emitter:
    from interlock.drive.telemetry.cloud_events import EventEmitter, EventFile  # noqa: PLC0415 — an extra

    path = profile.observability.activity_stream.file
    if path is None:
        message = "`observability.activity_stream` is enabled and has no `file`."
        raise TurnError(Fault(code="VALIDATION_ERROR", message=message))
    return EventEmitter(profile, exits.enter_context(EventFile(Path(path))))
