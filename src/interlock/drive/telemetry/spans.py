"""Spans and log entries of turns, by OpenTelemetry. Without a configured SDK they cost nothing and go nowhere."""

import logging
from collections.abc import Mapping
from datetime import datetime

from opentelemetry import baggage, trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from interlock.drive.agent.profile import Profile
from interlock.drive.faults import Fault
from interlock.drive.record import Phase, ToolExecution, TurnRecord
from interlock.drive.telemetry import names
from interlock.drive.telemetry.emission import traceparent, valid_traceparent
from interlock.kernel.canonical import Json

_log = logging.getLogger(__name__)
_NANOSECONDS = 1_000_000_000


class SpanEmitter:
    """Makes a span of each turn, with children for the request to the model, the calls of tools and the commit.

    Args:
        tracer: Where spans go.
        profile: Names the agent.
        parent: The W3C trace context of the caller; a malformed one is ignored with a warning (DRIVE-3).
        carried: The W3C baggage of the caller, recorded with each turn.
    """

    def __init__(
        self,
        tracer: Tracer,
        profile: Profile,
        *,
        parent: str | None = None,
        carried: Mapping[str, str] | None = None,
    ) -> None:
        self._tracer, self._profile = tracer, profile
        self._carried = dict(carried or {})
        if parent is not None and valid_traceparent(parent) is None:
            _log.warning("the trace context of the caller is malformed and ignored")
            parent = None
        self._parent = _context_of(parent, self._carried)
        self._open: dict[str, Span] = {}

    def begin(self, record: TurnRecord) -> Mapping[str, Json]:
        """See `Emitter.begin`."""
        links = _links(record.delegated_by)
        span = self._tracer.start_span(
            names.SPAN_TURN, context=self._parent, attributes=self._attributes(record), links=links
        )
        self._open[record.ids.interaction_id] = span
        context = span.get_span_context()
        found: dict[str, Json] = {
            "traceId": trace.format_trace_id(context.trace_id),
            "spanId": trace.format_span_id(context.span_id),
        }
        if self._carried:
            found["baggage"] = dict(self._carried)
        return found

    def end(self, record: TurnRecord, fault: Fault | None) -> None:
        """See `Emitter.end`."""
        span = self._open.pop(record.ids.interaction_id)
        inside = trace.set_span_in_context(span)
        usage = record.usage
        span.set_attributes({names.INPUT_TOKENS: usage.input_tokens, names.OUTPUT_TOKENS: usage.output_tokens})
        for phase in record.phases:
            if phase.name == "infer":
                self._chat(record, phase, inside)
            elif phase.name == "persist":
                self._state(phase, inside)
        for execution in record.executions:
            self._tool(execution, inside)
        for error in record.errors:
            span.add_event("error", {names.ERROR: error.code})
        if fault is not None:
            span.set_status(Status(StatusCode.ERROR, fault.code))
            span.set_attribute(names.ERROR, fault.code)
        span.end()
        context = span.get_span_context()
        ids = {
            "trace_id": trace.format_trace_id(context.trace_id),
            "span_id": trace.format_span_id(context.span_id),
        }
        outcome = "completed" if fault is None else f"failed with {fault.code}"
        _log.info("turn %s %s", record.number, outcome, extra=ids)

    def _attributes(self, record: TurnRecord) -> dict[str, str | int]:
        identity = self._profile.identity
        return {
            names.AGENT_ID: identity.id,
            names.AGENT_NAME: identity.name or identity.id,
            names.AGENT_VERSION: identity.version or "",
            names.INSTANCE: record.ids.instance_id,
            names.SESSION: record.ids.session_id,
            names.INTERACTION: record.ids.interaction_id,
            names.TURN_NUMBER: record.number,
            names.STATE_MODE: self._profile.state.mode,
        }

    def _chat(self, record: TurnRecord, phase: Phase, inside: Context) -> None:
        attributes: dict[str, str | int | list[str]] = {
            names.OPERATION: "chat",
            names.REQUEST_MODEL: str(record.model.get("requested", "")),
            names.RESPONSE_MODEL: str(record.model.get("actual", "")),
            names.FINISH_REASONS: [str(record.model.get("finishReason", ""))],
            names.INPUT_TOKENS: record.usage.input_tokens,
            names.OUTPUT_TOKENS: record.usage.output_tokens,
        }
        span = self._tracer.start_span(
            names.SPAN_CHAT, context=inside, attributes=attributes, start_time=_nanoseconds(phase.start)
        )
        if phase.status == "failed":
            span.set_status(Status(StatusCode.ERROR))
        span.end(_nanoseconds(phase.end))

    def _state(self, phase: Phase, inside: Context) -> None:
        state = self._profile.state
        attributes = {names.STATE_MODE: state.mode, names.STATE_STORAGE: state.storage}
        start = _nanoseconds(phase.start)
        span = self._tracer.start_span(names.SPAN_STATE_SAVE, context=inside, attributes=attributes, start_time=start)
        span.end(_nanoseconds(phase.end))

    def _tool(self, execution: ToolExecution, inside: Context) -> None:
        attributes = {names.TOOL_NAME: execution.tool_name, names.TOOL_STATUS: execution.status}
        start = _nanoseconds(execution.started_at)
        span = self._tracer.start_span(names.SPAN_TOOL, context=inside, attributes=attributes, start_time=start)
        if execution.error is not None:
            span.set_status(Status(StatusCode.ERROR, execution.error.code))
        span.end(_nanoseconds(execution.completed_at))


def _links(delegated_by: Mapping[str, Json] | None) -> list[Link]:
    """Return a link to the turn of the agent that delegated: it is no parent, because it does not wait for the end."""
    header = traceparent(delegated_by) if delegated_by is not None else None
    if header is None:
        return []
    return [Link(trace.get_current_span(_context_of(header, {})).get_span_context())]


def _context_of(header: str | None, carried: Mapping[str, str]) -> Context:
    context = TraceContextTextMapPropagator().extract({"traceparent": header} if header is not None else {})
    for key, value in carried.items():
        context = baggage.set_baggage(key, value, context)
    return context


def _nanoseconds(timestamp: str) -> int:
    return round(datetime.fromisoformat(timestamp).timestamp() * _NANOSECONDS)
