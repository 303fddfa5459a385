"""Resolves tokens with the key ring; a wrong token is refused with a suggestion (TOK-3, TOK-8, ANS-15)."""

from collections.abc import Mapping

from interlock.engine.answer.model import CONTINUE_TOOL, RESUME_TOOL, START_TOOL, WORKFLOW_BLANK
from interlock.engine.answer.parts import RunView
from interlock.kernel.blanks import Blank, Outline
from interlock.kernel.canonical import Json
from interlock.kernel.errors import Correction, ErrorCode, Refusal
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import (
    LABEL_CHARS,
    NodeId,
    SessionId,
    ack_attempt,
    checkpoint_attempt,
    fork_attempt,
    tag_of,
)
from interlock.record.short_tokens import SentToken, ShortKind, ShortRef
from interlock.record.tokens import AttemptRef, StateRef, TokenFault, TokenKind, TokenRef, token_kind
from interlock.service.ports import ReadPorts
from interlock.service.tokens.mint import PREFIXES, Argument
from interlock.service.tokens.suggest import RunTokens, label_in, place_labelled, place_of, suggest_token
from interlock.store.ports.errors import SessionBusyError, SessionUnhealthyError
from interlock.store.ports.keys import KeyRing
from interlock.views.session import Session

_KIND_OF_ARGUMENT = {"ackToken": TokenKind.ACK, "stateToken": TokenKind.STATE, "checkpointToken": TokenKind.CHECKPOINT}


@frozen
class SentTokens:
    """How a call names a node: by a token. A second token, in `check_argument`, and a run's label are checks."""

    argument: Argument
    token: SentToken
    check: SentToken | None = None
    check_argument: Argument = "stateToken"
    run: str | None = None


@frozen
class ResolvedToken:
    """The node or attempt that a token refers to, and the ring whose key verified it.

    `session` is set if it was loaded to find the node.
    """

    ref: TokenRef
    ring: KeyRing
    session: Session | None


def resolve_token(ports: ReadPorts, sent: SentTokens, known: Session | None = None) -> ResolvedToken | Refusal:
    """Return what a token refers to, or why it is refused. If the signature fails, the key ring is read again once.

    `known` is a session that is already loaded.

    Raises:
        StoreFailureError, SessionUnhealthyError, KeyRingDamagedError: See `service.failures`.
    """
    found, ring = _verify(ports, sent.token)
    if isinstance(found, TokenFault):
        return _refuse_unverified(ports, found, sent)
    assert ring is not None, "only a key verifies a token"
    if isinstance(found, ShortRef):
        resolved = _resolve_short(ports, found, ring, sent.argument, known)
    else:
        resolved = ResolvedToken(ref=found, ring=ring, session=None)
    if isinstance(resolved, Refusal) or token_kind(resolved.ref) is _KIND_OF_ARGUMENT[sent.argument]:
        return resolved
    return _refuse_kind(ports, resolved, sent.argument)


def _verify(ports: ReadPorts, token: SentToken) -> tuple[TokenRef | ShortRef | TokenFault, KeyRing | None]:
    """Return what a token refers to, or its fault, and the ring by which it was verified."""
    found, ring = _verify_with(ports.key_ring.keys(), token)
    is_foreign = isinstance(found, TokenFault) and found.code is ErrorCode.TOKEN_BAD_SIGNATURE
    return _verify_with(ports.key_ring.keys(fresh=True), token) if is_foreign else (found, ring)


def _verify_with(ring: KeyRing | None, token: SentToken) -> tuple[TokenRef | ShortRef | TokenFault, KeyRing | None]:
    return token.verify(ring.keys() if ring is not None else ()), ring


def load_session(ports: ReadPorts, session: SessionId, label: str, tag: str) -> Session | None:
    """Load the session of a verified token, which names a node with this tag; None if it does not exist.

    An error names the run by `label`.

    Raises:
        StoreFailureError, SessionUnhealthyError: See `service.failures`.
    """
    try:
        with ports.trace.span("load"):
            return ports.load(session, tag)
    except (SessionUnhealthyError, SessionBusyError) as error:
        error.label = label
        raise


def _resolve_short(
    ports: ReadPorts, ref: ShortRef, ring: KeyRing, argument: Argument, known: Session | None
) -> ResolvedToken | Refusal:
    """Find what a short reference refers to in its session, or refuse it because the history is lost (TOK-5, TOK-8)."""
    is_known = known is not None and known.session == ref.session
    session = known if is_known else load_session(ports, ref.session, ref.label, ref.tag)
    if session is None:
        return lost_session(argument, ref.session, ref.label)
    whole = whole_reference(session, ref)
    if whole is None:
        return lost_history(argument, label=ref.label)
    return ResolvedToken(ref=whole, ring=ring, session=session)


def whole_reference(session: Session, ref: ShortRef) -> TokenRef | None:
    """Expand a short reference within its session; None if the session has no such node."""
    node = session.nodes.get(session.tags.get(ref.tag, NodeId("")))
    if node is None:
        return None
    attempts = {ShortKind.FORK: fork_attempt, ShortKind.CHECKPOINT: checkpoint_attempt}
    if ref.kind is ShortKind.STATE:
        run = session.runs[node.run]
        return StateRef(session=ref.session, run=node.run, node=node.node, workflow_hash=run.workflow_hash)
    attempt_of = attempts.get(ref.kind)
    attempt = attempt_of(node.node, ref.number) if attempt_of is not None else ack_attempt(node.node)
    return AttemptRef(kind=ref.kind.kind, session=ref.session, run=node.run, node=node.node, attempt=attempt)


def scope_mismatch(
    message: str, suggestion: str, *, instead: Mapping[str, Outline] | None = None, **details: Json
) -> Refusal:
    """Refuse a token that Interlock issued but that does not fit this call."""
    return Refusal(
        code=ErrorCode.TOKEN_SCOPE_MISMATCH,
        message=message,
        suggestion=suggestion,
        details=details,
        correction=Correction(instead=instead) if instead is not None else None,
    )


def lost_history(argument: Argument, *, run: RunView | None = None, label: str = "") -> Refusal:
    """Refuse a valid token whose node or attempt is not in the log: history was lost (TOK-5)."""
    named: dict[str, Json] = run.to_json() if run else {"label": label}
    return Refusal(
        code=ErrorCode.TOKEN_UNKNOWN_NODE,
        message=f"The `{argument}` was issued here, but the log of run `{named['label']}` does not hold what it refers"
        " to: the stored history is shorter than when the token was issued.",
        suggestion="Ask the user whether the data directory was restored from a backup, and to run `interlock doctor`."
        " To continue, use a token from an earlier answer of this run, or begin a new run with `start_workflow`.",
        details={"run": named},
    )


def lost_session(argument: Argument, session: SessionId, label: str) -> Refusal:
    """Refuse a valid token whose session does not exist any more."""
    return Refusal(
        code=ErrorCode.TOKEN_UNKNOWN_NODE,
        message=f"The `{argument}` was issued here, but no session of this data directory holds run `{label}` any more:"
        f" {session} was deleted, or its files were moved.",
        suggestion="Ask the user whether it was deleted on purpose, or the data directory was restored from an older"
        " backup. A deleted session may still be in `trash/sessions` of the data directory. No other token of this run"
        " works. To do the work, begin a new run with `start_workflow`.",
        details={"run": {"label": label}, "sessionId": session},
    )


def _refuse_kind(ports: ReadPorts, resolved: ResolvedToken, argument: Argument) -> Refusal:
    ref, kind = resolved.ref, token_kind(resolved.ref)
    named: dict[str, Json] = {"label": ref.run[-LABEL_CHARS:]}
    session = resolved.session or ports.load(ref.session, tag_of(ref.node))
    place = place_of(ports, session, session.runs[ref.run]) if session is not None and ref.run in session.runs else None
    node = session.nodes.get(ref.node) if session is not None else None
    if place is not None:
        named = place.run_context.view(node).to_json()
    suggested = place.current(argument, node) if place is not None and node is not None else None
    of_run = f"run `{named['label']}`" + (f" ({named['workflowId']})" if "workflowId" in named else "")
    shown = f"Send the `{argument}` of that run's last answer."
    if suggested is not None:
        shown = f"The call below has the `{argument}` of the same step."
    elif place is not None:
        shown = "That step is not pending any more; the call below shows where the run is."
    refusal = scope_mismatch(
        f"`{argument}` holds {'an' if kind.value[0] in 'aeiou' else 'a'} `{kind.value}Token`, of {of_run}.",
        f"{shown} Every `{argument}` begins with `{PREFIXES[argument]}`.",
        found=kind.value,
        expected=_KIND_OF_ARGUMENT[argument].value,
        run=named,
    )
    if suggested is not None:
        return replace(refusal, correction=Correction(instead={argument: suggested}))
    return _add_look_call(refusal, place)


def _refuse_unverified(ports: ReadPorts, fault: TokenFault, sent: SentTokens) -> Refusal:
    argument, text = sent.argument, sent.token.text
    match fault.code:
        case ErrorCode.TOKEN_UNSUPPORTED_VERSION:
            message = f"`{argument}` is a token of {fault.found}, which this release does not know."
        case ErrorCode.TOKEN_BAD_SIGNATURE:
            message = (
                f"`{argument}` does not verify: this data directory did not issue it, its text was altered, or its key"
                " was rotated out."
            )
        case _:
            message = (
                f"The `{argument}` is not valid ({fault.found}). Every `{argument}` begins with `{PREFIXES[argument]}`."
            )
    copy = f"Copy the `{argument}` from the last answer of this run, whole and unchanged."
    search = "If you have none, find the run with `resume_session` and a few words of the run's goal."
    fix = f"{copy} {search}"
    refusal = Refusal(
        code=fault.code, message=message, suggestion=fix, details={"argument": argument, "found": fault.found}
    )
    if not ports.listing().sessions and not ports.listing().unreadable:
        return replace(
            refusal,
            suggestion=f"No run exists yet: call `{START_TOOL}`.",
            correction=Correction(tool=START_TOOL, instead={"workflowId": WORKFLOW_BLANK}),
        )
    suggested = suggest_token(ports, text, argument, sent.run)
    if suggested is not None:
        near = (
            "The text is nearly the same as a token that was issued here. If you mean that step, send the call below."
        )
        fix = f"{near} If not: {copy} {search}"
        return replace(refusal, suggestion=fix, correction=Correction(instead={argument: suggested}))
    places = (place_labelled(ports, label) for label in (sent.run, label_in(text)) if label)
    place = next((one for one in places if one is not None), None)
    if place is not None:
        refusal = replace(refusal, suggestion=f"{copy} If you have none, the call below shows where the run is.")
    return _add_look_call(refusal, place)


def _add_look_call(refusal: Refusal, place: RunTokens | None) -> Refusal:
    """Add the call that shows the run's current step; if the run is not known, the call that finds runs."""
    if place is not None:
        return replace(refusal, correction=Correction(tool=CONTINUE_TOOL, instead=place.show_arguments()))
    words = Blank(what="a few words of the run's goal or notes")
    return replace(refusal, correction=Correction(tool=RESUME_TOOL, instead={"query": words}))
