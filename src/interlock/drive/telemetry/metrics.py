"""Metrics of turns. Their attributes have few values: the agent, a tool, a code, never an id of a turn (TEL-2)."""

from collections.abc import Mapping
from datetime import datetime

from opentelemetry.metrics import Meter

from interlock.drive.agent.profile import Profile
from interlock.drive.faults import Fault
from interlock.drive.record import TurnRecord
from interlock.drive.telemetry import names
from interlock.kernel.canonical import Json

_MS = 1000


class MetricEmitter:
    """Counts turns, tokens, calls and errors, and measures how long turns take."""

    def __init__(self, meter: Meter, profile: Profile) -> None:
        self._agent = {names.AGENT_ID: profile.identity.id}
        self._turns = meter.create_counter(names.METRIC_TURNS)
        self._errors = meter.create_counter(names.METRIC_ERRORS)
        self._latency = meter.create_histogram(names.METRIC_LATENCY, unit="ms")
        self._input = meter.create_counter(names.METRIC_INPUT)
        self._output = meter.create_counter(names.METRIC_OUTPUT)
        self._calls = meter.create_counter(names.METRIC_TOOL_CALLS)
        self._failed = meter.create_counter(names.METRIC_TOOL_ERRORS)

    def begin(self, record: TurnRecord) -> Mapping[str, Json]:  # noqa: ARG002 — a metric needs the end of a turn
        """See `Emitter.begin`."""
        return {}

    def end(self, record: TurnRecord, fault: Fault | None) -> None:
        """See `Emitter.end`."""
        self._turns.add(1, self._agent)
        self._input.add(record.usage.input_tokens, self._agent)
        self._output.add(record.usage.output_tokens, self._agent)
        if record.phases:
            began, ended = datetime.fromisoformat(record.started_at), datetime.fromisoformat(record.phases[-1].end)
            self._latency.record((ended - began).total_seconds() * _MS, self._agent)
        for error in [*record.errors, *([fault] if fault is not None else [])]:
            self._errors.add(1, {**self._agent, names.ERROR: error.code})
        for execution in record.executions:
            named = {**self._agent, names.TOOL_NAME: execution.tool_name}
            self._calls.add(1, named)
            if execution.error is not None:
                self._failed.add(1, named)
