"""What a call is about: a verified token's node in a healthy session, in the run it says (D4, D15)."""

import json
from dataclasses import dataclass, replace

from interlock.engine.answer import CONTINUE_TOOL
from interlock.kernel.budgets import ECHO_BYTES_MAX
from interlock.kernel.errors import Correction, ErrorCode, Refusal
from interlock.kernel.ids import AttemptId
from interlock.kernel.text import one_line
from interlock.record.tokens import AttemptRef, StateRef, TokenKind, TokenRef
from interlock.service.meant import place_labelled, place_of_run
from interlock.service.mint import Argument
from interlock.service.ports import ReadPorts
from interlock.service.tokens import lost_history, resolved, scope_mismatch
from interlock.service.words import Scene, scene_of
from interlock.store.ports import SessionUnhealthyError
from interlock.views.session import LABEL_CHARS, Node, Session
from interlock.views.standing import chain_head


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The node a call addresses, its run, and the attempt it makes, if it makes one."""

    scene: Scene
    node: Node
    attempt: AttemptId | None


def target_of(
    ports: ReadPorts, ref: TokenRef, *, beside: StateRef | None = None, run: str | None = None
) -> Target | Refusal:
    """Return the target of a verified token; `beside` and `run` are witnesses that must agree with it.

    Raises:
        StoreFailureError, SessionUnhealthyError, ContentDamagedError: See `service.failures`.
    """
    argument: Argument = _argument(ref)
    try:
        with ports.trace.span("load"):
            session = ports.reader.load(ref.session)
    except SessionUnhealthyError as error:
        error.label = ref.run[-LABEL_CHARS:]
        raise
    if session is None or ref.run not in session.runs:
        return lost_history(argument, label=ref.run[-LABEL_CHARS:])
    scene = scene_of(session, session.runs[ref.run], ports.plans)
    if ref.node not in session.nodes or session.nodes[ref.node].run != ref.run:
        return lost_history(argument, words=scene.words())
    node = session.nodes[ref.node]
    refusal = _witness_refusal(ports, scene, _Sent(argument=argument, node=node, beside=beside, run=run))
    if refusal is None and isinstance(ref, StateRef) and ref.workflow_hash != scene.run.workflow_hash:
        refusal = _hash_mismatch(scene)
    if refusal is not None:
        return refusal
    return Target(scene=scene, node=node, attempt=ref.attempt if isinstance(ref, AttemptRef) else None)


def witness_of(ports: ReadPorts, text: str | None, of: Argument, run: str | None = None) -> StateRef | Refusal | None:
    """Return what the `stateToken` beside another token refers to, which verified: it is of the same run, or refused.

    Raises:
        StoreFailureError, KeyRingDamagedError: See `service.failures`.
    """
    if text is None:
        return None
    try:
        beside = resolved(ports, text, "stateToken", run)
    except SessionUnhealthyError as error:
        return scope_mismatch(
            f"The `stateToken` belongs to run `{error.label}`, whose session cannot be read; the `{of}` to another.",
            f"Send the `{of}` of the run you mean, alone: it names its run by itself.",
            instead={"stateToken": None, of: _token_of(of, "the run you mean")},
        )
    assert isinstance(beside, StateRef | Refusal), "a stateToken resolves to a state reference"
    return beside


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    """The token that says most, the node it names, and the witnesses beside it."""

    argument: Argument
    node: Node
    beside: StateRef | None
    run: str | None


def _argument(ref: TokenRef) -> Argument:
    if isinstance(ref, StateRef):
        return "stateToken"
    return "checkpointToken" if ref.kind is TokenKind.CHECKPOINT else "ackToken"


def _witness_refusal(ports: ReadPorts, scene: Scene, sent: _Sent) -> Refusal | None:
    words, run, beside = scene.words(sent.node), sent.run, sent.beside
    if run is not None and not (len(run) >= len(words.label) and scene.run.run.endswith(run)):
        return _another_run(ports, scene, sent, run)
    if beside is None:
        return None
    if beside.run != scene.run.run or beside.session != scene.session.session:
        return _two_runs(ports, scene, sent, beside)
    return None if _is_same_place(scene.session, sent.node, beside) else _two_steps(scene, sent)


def _another_run(ports: ReadPorts, scene: Scene, sent: _Sent, run: str) -> Refusal:
    """Refuse a token whose run is not the one that the call names: the call meant one of the two (D4).

    Which step of which run the evidence is of is not known: the token is the caller's to name, not ours to guess.
    """
    words, found = scene.words(sent.node), one_line(run, ECHO_BYTES_MAX)
    same = f'To go on with run `{words.label}`, send the same token with `run: "{words.label}"`.'
    refusal = scope_mismatch(
        f"The token belongs to run `{words.label}` ({words.workflow_id}{_goal(words.goal)}), but `run` says {found!r}.",
        f"{same} Otherwise send the `{sent.argument}` of the last answer of the run you mean.",
        run=words.to_json(),
        found=found,
        instead={"stateToken": None, sent.argument: _token_of(sent.argument, "the run you mean"), "run": "<its label>"},
    )
    place = place_labelled(ports, run, scene.session)
    if place is None:
        return refusal
    other = place.scene.words()
    beside = f"run `{other.label}` ({other.workflow_id}{_goal(other.goal)})"
    look = json.dumps(place.look(), separators=(",", ":"))
    return replace(
        refusal,
        suggestion=f"If you mean {beside}, send the call below with that run's own token; `{CONTINUE_TOOL}` with {look}"
        f" shows where it stands. {same}",
        correction=Correction(
            instead={"stateToken": None, sent.argument: _token_of(sent.argument, f"run {other.label}")}
        ),
    )


def _token_of(argument: Argument, run: str) -> str:
    """Return what stands for a token that only the caller can name."""
    return f"<{argument} of the last answer of {run}>"


def _is_same_place(session: Session, node: Node, beside: StateRef) -> bool:
    """Say whether two tokens name one node; any node of one chain of refused attempts or its checkpoints counts."""
    other = session.nodes.get(beside.node)
    return other is not None and chain_head(session, other).node == chain_head(session, node).node


def _two_runs(ports: ReadPorts, scene: Scene, sent: _Sent, beside: StateRef) -> Refusal:
    words = scene.words(sent.node)
    place = place_of_run(ports, beside.session, beside.run)
    named = f"run `{beside.run[-LABEL_CHARS:]}`, which is not in the log or cannot be read"
    if place is not None:
        other_words = place.scene.words()
        named = f"run `{other_words.label}` ({other_words.workflow_id}{_goal(other_words.goal)})"
    if beside.run == scene.run.run:
        named += f" of another session, {beside.session}: one is a copy of the other"
    return scope_mismatch(
        f"The `{sent.argument}` belongs to run `{words.label}` ({words.workflow_id}{_goal(words.goal)}), the"
        f" `stateToken` to {named}.",
        f"Send the `{sent.argument}` of the run you mean, alone: it names its run by itself.",
        run=words.to_json(),
        instead={"stateToken": None, sent.argument: _token_of(sent.argument, "the run you mean")},
    )


def _two_steps(scene: Scene, sent: _Sent) -> Refusal:
    words = scene.words(sent.node)
    return scope_mismatch(
        f"Both tokens belong to run `{words.label}` ({words.workflow_id}), but to different steps of it.",
        f"Send the `{sent.argument}` of the step you mean, alone: it names its step by itself.",
        run=words.to_json(),
        instead={"stateToken": None, sent.argument: _token_of(sent.argument, "the step you mean")},
    )


def _goal(goal: str | None) -> str:
    return f", goal {goal[:60]!r}" if goal else ""


def _hash_mismatch(scene: Scene) -> Refusal:
    words = scene.words()
    return Refusal(
        code=ErrorCode.TOKEN_WORKFLOW_HASH_MISMATCH,
        message=f"The `stateToken` pins another workflow than run `{words.label}` does.",
        suggestion="Use a token of the last answer of this run.",
        details={"run": words.to_json()},
    )
