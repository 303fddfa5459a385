"""The target of a call: the node of a verified token, in a healthy session, in the named run (TOK-6, ANS-2)."""

import json

from interlock.engine.answer.model import CONTINUE_TOOL
from interlock.kernel.blanks import Blank
from interlock.kernel.budgets import ECHO_BYTES_MAX, NAMED_GOAL_CHARS_MAX
from interlock.kernel.errors import Correction, ErrorCode, Refusal
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import LABEL_CHARS, AttemptId, tag_of
from interlock.kernel.text import one_line
from interlock.record.short_tokens import decode_token
from interlock.record.tokens import AttemptRef, StateRef, TokenRef
from interlock.service.ports import ReadPorts
from interlock.service.run.context import RunContext, load_run_context
from interlock.service.tokens.mint import Argument
from interlock.service.tokens.resolve import (
    SentTokens,
    load_session,
    lost_history,
    lost_session,
    resolve_token,
    scope_mismatch,
)
from interlock.service.tokens.suggest import place_labelled, place_of_run
from interlock.store.ports.errors import SessionUnhealthyError
from interlock.store.ports.keys import KeyRing
from interlock.views.node_position import chain_head
from interlock.views.session import Node, Session


@frozen
class Target:
    """The node that a call addresses, its run, the keys, and the attempt that it makes.

    `attempt` is None for a call that only reads.
    """

    run_context: RunContext
    node: Node
    ring: KeyRing
    attempt: AttemptId | None


def load_target(ports: ReadPorts, sent: SentTokens) -> Target | Refusal:
    """Find the target of a call, or refuse the call if its tokens and its run name none, or different ones.

    Raises:
        StoreFailureError, SessionUnhealthyError, ContentDamagedError, KeyRingDamagedError: See `service.failures`.
    """
    resolved = resolve_token(ports, sent)
    if isinstance(resolved, Refusal):
        return _check_suggestion(ports, sent, resolved)
    check = _resolve_check(ports, sent, resolved.session)
    if isinstance(check, Refusal):
        return check
    ref, label = resolved.ref, resolved.ref.run[-LABEL_CHARS:]
    session = resolved.session or load_session(ports, ref.session, label, tag_of(ref.node))
    if session is None:
        return lost_session(sent.argument, ref.session, label)
    if ref.run not in session.runs:
        return lost_history(sent.argument, label=label)
    run_context = load_run_context(session, session.runs[ref.run], ports.plans)
    node = session.nodes.get(ref.node)
    if node is None or node.run != ref.run:
        return lost_history(sent.argument, run=run_context.view())
    refusal = _check_agreement(ports, run_context, node, sent, check)
    if refusal is None and isinstance(ref, StateRef) and ref.workflow_hash != run_context.run.workflow_hash:
        refusal = _refuse_other_hash(run_context)
    if refusal is not None:
        return refusal
    attempt = ref.attempt if isinstance(ref, AttemptRef) else None
    return Target(run_context=run_context, node=node, ring=resolved.ring, attempt=attempt)


def _check_suggestion(ports: ReadPorts, sent: SentTokens, refusal: Refusal) -> Refusal:
    """Return the refusal of a token, with a correction that is not refused in turn.

    The suggested token is checked against the rest of the call as a token that was sent. If they name two runs, the
    caller says which token is meant; a faulty second token is left out.
    """
    correction = refusal.correction
    suggested = correction.instead.get(sent.argument) if correction is not None and correction.tool is None else None
    if not isinstance(suggested, str):
        return refusal
    found = load_target(ports, replace(sent, token=decode_token(suggested)))
    if not isinstance(found, Refusal) or found.correction is None:
        return refusal
    instead = {sent.argument: suggested, **found.correction.instead}
    return replace(refusal, suggestion=f"{found.message} {found.suggestion}", correction=Correction(instead=instead))


def _resolve_check(ports: ReadPorts, sent: SentTokens, known: Session | None) -> TokenRef | Refusal | None:
    """Resolve the second token that was sent as a check; None if none was sent, or the first one again (TOK-6)."""
    if sent.check in (None, sent.token):
        return None
    try:
        check = resolve_token(ports, replace(sent, argument=sent.check_argument, token=sent.check), known)
    except SessionUnhealthyError as error:
        return scope_mismatch(
            f"The `{sent.check_argument}` belongs to run `{error.label}`, whose session cannot be read; the"
            f" `{sent.argument}` belongs to another run.",
            f"Send only the `{sent.argument}` of the run you mean; it identifies its run.",
            instead={sent.check_argument: None, sent.argument: _token_blank(sent.argument, "the run you mean")},
        )
    if isinstance(check, Refusal):
        return replace(
            check,
            suggestion=f"Leave `{sent.check_argument}` out: the `{sent.argument}` is enough.",
            correction=Correction(instead={sent.check_argument: None}),
        )
    return check.ref


def _check_agreement(
    ports: ReadPorts, run_context: RunContext, node: Node, sent: SentTokens, check: TokenRef | None
) -> Refusal | None:
    """Refuse a call whose `run` or second token names another run or step than its first token."""
    run = sent.run
    if run is not None and not (len(run) >= len(run_context.view(node).label) and run_context.run.run.endswith(run)):
        return _refuse_other_run(ports, run_context, node, sent, run)
    if check is None:
        return None
    if check.run != run_context.run.run or check.session != run_context.session.session:
        return _refuse_two_runs(ports, run_context, node, sent, check)
    return None if _is_same_place(run_context.session, node, check) else _refuse_two_steps(run_context, node, sent)


def _refuse_other_run(ports: ReadPorts, run_context: RunContext, node: Node, sent: SentTokens, run: str) -> Refusal:
    """Refuse a token of another run than the call names (TOK-6).

    Only the caller knows which of the two runs the evidence is for, so no token is guessed.
    """
    view, found = run_context.view(node), one_line(run, ECHO_BYTES_MAX)
    same = f'To continue run `{view.label}`, send the same token with `run: "{view.label}"`.'
    refusal = scope_mismatch(
        f"The token belongs to run `{view.label}` ({view.workflow_id}{_goal(view.goal)}), but `run` says {found!r}.",
        f"{same} Otherwise send the `{sent.argument}` of the last answer of the run you mean.",
        run=view.to_json(),
        found=found,
        instead={
            "stateToken": None,
            sent.argument: _token_blank(sent.argument, "the run you mean"),
            "run": Blank(what="the label of that run"),
        },
    )
    place = place_labelled(ports, run, run_context.session)
    if place is None:
        return refusal
    other = place.run_context.view()
    named = f"run `{other.label}` ({other.workflow_id}{_goal(other.goal)})"
    look = json.dumps(place.show_arguments(), separators=(",", ":"))
    return replace(
        refusal,
        suggestion=f"If you mean {named}, send the call below with that run's own token; `{CONTINUE_TOOL}` with {look}"
        f" shows its current step. {same}",
        correction=Correction(
            instead={"stateToken": None, sent.argument: _token_blank(sent.argument, f"run {other.label}")}
        ),
    )


def _token_blank(argument: Argument, run: str) -> Blank:
    """Return the blank of a token that only the caller knows."""
    return Blank(what=f"the {argument} of the last answer of {run}")


def _is_same_place(session: Session, node: Node, check: TokenRef) -> bool:
    """Say whether two tokens name the same step: nodes of one chain of refused attempts, or their checkpoints."""
    other = session.nodes.get(check.node)
    return other is not None and chain_head(session, other).node == chain_head(session, node).node


def _refuse_two_runs(
    ports: ReadPorts, run_context: RunContext, node: Node, sent: SentTokens, check: TokenRef
) -> Refusal:
    view, argument = run_context.view(node), sent.argument
    place = place_of_run(ports, check.session, check.run)
    named = f"run `{check.run[-LABEL_CHARS:]}`, which is not in the log or cannot be read"
    if place is not None:
        other_view = place.run_context.view()
        named = f"run `{other_view.label}` ({other_view.workflow_id}{_goal(other_view.goal)})"
    if check.run == run_context.run.run:
        named += f" of another session, {check.session}: one is a copy of the other"
    return scope_mismatch(
        f"The `{argument}` belongs to run `{view.label}` ({view.workflow_id}{_goal(view.goal)}), the"
        f" `{sent.check_argument}` to {named}.",
        f"Send only the `{argument}` of the run you mean; it identifies its run.",
        run=view.to_json(),
        instead={sent.check_argument: None, argument: _token_blank(argument, "the run you mean")},
    )


def _refuse_two_steps(run_context: RunContext, node: Node, sent: SentTokens) -> Refusal:
    view, argument = run_context.view(node), sent.argument
    return scope_mismatch(
        f"Both tokens belong to run `{view.label}` ({view.workflow_id}), but to different steps of it.",
        f"Send only the `{argument}` of the step you mean; it identifies its step.",
        run=view.to_json(),
        instead={sent.check_argument: None, argument: _token_blank(argument, "the step you mean")},
    )


def _goal(goal: str | None) -> str:
    return f", goal {goal[:NAMED_GOAL_CHARS_MAX]!r}" if goal else ""


def _refuse_other_hash(run_context: RunContext) -> Refusal:
    view = run_context.view()
    return Refusal(
        code=ErrorCode.TOKEN_WORKFLOW_HASH_MISMATCH,
        message=f"The `stateToken` is for another version of the workflow than run `{view.label}` uses.",
        suggestion="Use a token from the last answer of this run.",
        details={"run": view.to_json()},
    )
