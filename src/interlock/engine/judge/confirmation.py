"""Checks whether a step has the approvals that it needs (GATE-1, GATE-5).

This check is the last: everything else that the step needs is there. A change of preferences never approves the step
that it is sent with.
"""

from collections.abc import Mapping
from typing import Literal

from interlock.engine.gates import Answered, Question, QuestionItem, asks_of
from interlock.engine.judge import reasons
from interlock.engine.judge.attempt import ApprovalMissing, Attempt
from interlock.engine.judge.shape import artifact_outline
from interlock.engine.judge.violations import Violation, blockers_of
from interlock.engine.request import CONFIRMATION_KIND, PreferenceDelta, sample_left
from interlock.engine.template import rendered_line
from interlock.kernel.blanks import Outline
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.text import says_something
from interlock.plan.builtins.pack_schemas import PACK_SCHEMAS
from interlock.plan.records import PlanNode
from interlock.record.base import Preferences
from interlock.record.context import Context

CLAIM: Mapping[str, Outline] = artifact_outline(PACK_SCHEMAS["wr.contracts.confirmation"])
"""The artifact with which an agent claims that a person approved."""
_AUTONOMY_ORDER = ("guided", "full_auto_stop_on_user_deps", "full_auto_never_stop")


@frozen
class Approved:
    """A person approved, or an agent claims that one did.

    `record` is the answer to the form of a client, to be stored; `claims` are disclosed as gaps.
    """

    by: Literal["person", "claim"]
    record: Answered | None = None
    claims: tuple[Violation, ...] = ()


@frozen
class NotApproved:
    """The step is not approved, for these reasons."""

    findings: tuple[Violation, ...]


def check_approval(attempt: Attempt, node: PlanNode, seen: Context) -> Approved | NotApproved | ApprovalMissing | None:
    """Check the approvals of an attempt; None if its step needs none."""
    asks = (*asks_of(node, seen), *_raising(attempt))
    if not asks:
        return None
    asking = attempt.request.asking
    reply = asking.reply
    if reply is not None and reply.counts_as_yes(asking.demands):
        claims = (reasons.claimed_by_form(node.node_id, reply.client),) if reply.is_claim else ()
        return Approved(by="claim" if claims else "person", record=reply.record(asks), claims=claims)
    if reply is not None and reply.action == "decline" and not attempt.never_stops:
        return NotApproved(findings=(reasons.declined(node.node_id, asks[0], reply.client, reply.comment),))
    claim = claim_in(attempt.evidence.artifacts) if asking.takes_claims else None
    if claim is not None:
        return Approved(by="claim", claims=(reasons.claimed(node.node_id, *claim),))
    if attempt.never_stops:
        missed = (reasons.not_asked(node.node_id, number, ask) for number, ask in enumerate(asks, start=1))
        return NotApproved(findings=tuple(missed))
    unheard = reply.unheard() if reply is not None else None
    lacks = tuple(
        reasons.needs_user(node.node_id, number, ask, unheard=unheard if number == 1 else None)
        for number, ask in enumerate(asks, start=1)
    )
    title = f"{attempt.workflow.name}: {rendered_line(node.title, seen)}"
    return ApprovalMissing(
        question=Question(title=title, asks=asks, demands=asking.demands),
        blockers=blockers_of(lacks),
        takes_claims=asking.takes_claims,
    )


def claim_in(artifacts: tuple[Mapping[str, Json], ...]) -> tuple[str, str] | None:
    """Return the person and the statement of the agent's claim of a confirmation; None if no artifact has both."""
    for artifact in artifacts:
        who, what = artifact.get("confirmedBy"), artifact.get("statement")
        if artifact.get("kind") != CONFIRMATION_KIND or not isinstance(who, str) or not isinstance(what, str):
            continue
        if says_something(who) and says_something(what) and sample_left(dict(artifact), CLAIM) is None:
            return who, what
    return None


def approved_without_asking(attempt: Attempt) -> PreferenceDelta:
    """Return the change of preferences that needs no approval (GATE-5)."""
    sent = attempt.request.preferences
    return replace(sent, autonomy=None) if _raising(attempt) else sent


def _raising(attempt: Attempt) -> tuple[QuestionItem, ...]:
    """Return the question for more autonomy, if the client can ask a person (GATE-5)."""
    wanted = attempt.request.preferences.over(attempt.preferences)
    if not attempt.request.asking.client_can or not raises_autonomy(attempt.preferences, wanted):
        return ()
    ask = f"May this run continue with autonomy {wanted.autonomy!r} instead of {attempt.preferences.autonomy!r}?"
    return (QuestionItem(reason="needs_user_approval", ask=ask),)


def raises_autonomy(before: Preferences, after: Preferences) -> bool:
    """Say whether a change of preferences gives a run more autonomy."""
    return _AUTONOMY_ORDER.index(after.autonomy) > _AUTONOMY_ORDER.index(before.autonomy)
