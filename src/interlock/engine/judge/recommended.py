"""Compares preferences with those that the author recommends. A run beyond them is warned, never refused (MODE-5)."""

from collections.abc import Iterator

from interlock.engine.judge.confirmation import raises_autonomy
from interlock.plan.compiled import CompiledWorkflow
from interlock.record.base import Preferences
from interlock.record.payloads import TraceEntry

_RISK_ORDER = ("conservative", "balanced", "aggressive")


def beyond_recommendation(workflow: CompiledWorkflow, preferences: Preferences) -> Iterator[str]:
    """Yield in words each preference that exceeds the author's recommendation."""
    advice = workflow.recommended
    if advice is None:
        return
    advised = Preferences(
        autonomy=advice.recommended_autonomy or preferences.autonomy,
        risk_policy=advice.recommended_risk_policy or preferences.risk_policy,
    )
    if raises_autonomy(advised, preferences):
        yield f"The autonomy is {preferences.autonomy!r}; the author recommends at most {advised.autonomy!r}."
    if _RISK_ORDER.index(preferences.risk_policy) > _RISK_ORDER.index(advised.risk_policy):
        yield f"The risk policy is {preferences.risk_policy!r}; the author recommends at most {advised.risk_policy!r}."


def recommendation_trace(
    workflow: CompiledWorkflow, after: Preferences, before: Preferences | None = None
) -> tuple[TraceEntry, ...]:
    """Return the trace of preferences that begin to exceed the recommendation; none if they are as before (MODE-12)."""
    if after == before:
        return ()
    words = beyond_recommendation(workflow, after)
    return tuple(TraceEntry(kind="evaluated_condition", summary=one, refs=()) for one in words)
