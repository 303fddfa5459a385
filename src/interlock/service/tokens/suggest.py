"""Suggests a token in place of a wrong one: a similar issued token, or one of the run that the call names (ANS-15).

A suggestion is never applied; the caller decides whether to send it. A similar token is only suggested if the caller
sent nearly all of it, including the signature, so a suggestion reveals nothing that the same token would not.
"""

import re
import string
from collections.abc import Iterator
from heapq import nlargest

from interlock.kernel.budgets import NEAR_TOKEN_CHARS_MAX, NEAR_TOKEN_NODES_MAX, SPLICED_TOKEN_CHARS_MIN
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import RunId, SessionId
from interlock.record.short_tokens import decode_token
from interlock.service.ports import ReadPorts
from interlock.service.run.context import RunContext, load_run_context
from interlock.service.tokens.mint import PREFIXES, Argument, Mint, minting
from interlock.store.ports.errors import UNUSABLE_SESSION
from interlock.views.node_position import node_position
from interlock.views.session import Node, Run, Session

_LABELLED = re.compile(r"(?:st|ack|chk)_([0-9a-z]{4})(?:[0-9a-z]{2})?", re.IGNORECASE)
_AROUND = string.whitespace + string.punctuation.replace("-", "").replace("_", "")
"""What may be around a token that was copied from a text. No token begins or ends with one of these."""


@frozen
class RunTokens:
    """A run of a session, and the mint of its tokens."""

    run_context: RunContext
    mint: Mint

    @property
    def label(self) -> str:
        """The run's label."""
        return self.run_context.session.label(self.run_context.run.run)

    @property
    def is_ended(self) -> bool:
        """Whether the run ended, so that nothing more of it is recorded."""
        return self.run_context.run.ended is not None

    def show_arguments(self) -> dict[str, Json]:
        """Return the arguments of `continue_workflow` that show the run's current step."""
        return {"stateToken": self.mint.state(self._tip.node), "run": self.label}

    def current(self, argument: Argument, node: Node | None = None) -> str | None:
        """Return the token for an argument at a node, by default the preferred tip; None if there is no such token."""
        at = node or self._tip
        if argument == "stateToken":
            return self.mint.state(at.node)
        if self.is_ended:
            return None
        position = node_position(self.run_context.session, at.node)
        if position.passed_to is not None or position.is_used_up or self.run_context.place(at) is None:
            return None
        last = position.last
        return self.mint.ack(last.node) if argument == "ackToken" else self.mint.checkpoint(last.node, last.checkpoints)

    def issued(self, argument: Argument) -> Iterator[tuple[Node, str]]:
        """Yield nodes on every branch of the run, the latest first, with their issued tokens for an argument."""
        nodes = (node for node in self.run_context.session.nodes.values() if node.run == self.run_context.run.run)
        for node in nlargest(NEAR_TOKEN_NODES_MAX, nodes, key=lambda node: node.index):
            match argument:
                case "stateToken":
                    yield node, self.mint.state(node.node)
                case "ackToken":
                    yield node, self.mint.ack(node.node)
                    yield from ((node, self.mint.fork(node.node, number)) for number in range(node.forks + 1))
                case "checkpointToken":
                    yield from (
                        (node, self.mint.checkpoint(node.node, number)) for number in range(node.checkpoints + 1)
                    )

    @property
    def _tip(self) -> Node:
        assert self.run_context.run.tip is not None, "a run with a node has a tip"
        return self.run_context.session.nodes[self.run_context.run.tip]


def place_of(ports: ReadPorts, session: Session, run: Run) -> RunTokens | None:
    """Return a run with its mint; None if its workflow cannot be read or there is no key ring."""
    ring = ports.key_ring.keys()
    if ring is None or run.tip is None:
        return None
    try:
        run_context = load_run_context(session, run, ports.plans)
    except UNUSABLE_SESSION:
        return None
    return RunTokens(run_context=run_context, mint=minting(ports, ring, session, run))


def place_of_run(ports: ReadPorts, session: SessionId, run: RunId) -> RunTokens | None:
    """Load a run of a session with its mint; None if it does not exist or cannot be read."""
    found = _load(ports, session)
    return place_of(ports, found, found.runs[run]) if found is not None and run in found.runs else None


def place_labelled(ports: ReadPorts, label: str, first: Session | None = None) -> RunTokens | None:
    """Find the run with a label: first in the given session, else in all sessions if exactly one run has it."""
    run = _find_run(first, label) if first is not None else None
    if first is not None and run is not None:
        return place_of(ports, first, run)
    summaries = ports.listing().sessions
    matching = [(one.session, run.run) for one in summaries for run in one.runs if label in (run.label, run.run)]
    return place_of_run(ports, *matching[0]) if len(matching) == 1 else None


def suggest_token(ports: ReadPorts, text: str, argument: Argument, label: str | None) -> str | None:
    """Return the issued token that a text nearly equals: cut, misspelled, or in another case; None if there is none.

    If the report with that token was refused, it is the token that came with the refusal. For the text of a token of
    another kind behind the prefix of this one, it is the current token of the same step.
    """
    found = text.strip(_AROUND)
    for place in _places(ports, found, label):
        if place.is_ended and argument != "stateToken":
            continue
        for node, token in place.issued(argument):
            if _is_near(found, token):
                # Repeating a refused report only repeats the refusal.
                return (place.current(argument, node) if argument == "ackToken" else None) or token
        of_steps = (place.current(argument, node) for node in _of_other_kinds(place, found, argument))
        token = next(filter(None, of_steps), None)
        if token is not None:
            return token
    return None


def _of_other_kinds(place: RunTokens, text: str, argument: Argument) -> Iterator[Node]:
    """Yield the nodes with a token of another kind that a text nearly equals but for the prefix."""
    body = text.partition("_")[2]
    for other, prefix in PREFIXES.items():
        if other != argument:
            yield from (node for node, token in place.issued(other) if _is_near(prefix + body, token))


def label_in(text: str) -> str | None:
    """Return the run label in a text that begins like a token of format 2; None for other texts."""
    found = _LABELLED.match(text.strip(_AROUND))
    return found[1].lower() if found is not None else None


def _places(ports: ReadPorts, text: str, label: str | None) -> Iterator[RunTokens]:
    claimed = decode_token(text).session
    session = _load(ports, claimed) if claimed is not None else None
    if session is not None:
        yield from filter(None, (place_of(ports, session, run) for run in session.runs.values()))
    for named in dict.fromkeys(filter(None, (label, label_in(text)))):
        place = place_labelled(ports, named)
        if place is not None:
            yield place


def _load(ports: ReadPorts, session: SessionId) -> Session | None:
    try:
        return ports.load(session)
    except UNUSABLE_SESSION:
        return None


def _find_run(session: Session, label: str) -> Run | None:
    return next((run for run in session.runs.values() if label in (session.label(run.run), run.run)), None)


def _is_near(text: str, token: str) -> bool:
    """Say whether a text equals a token apart from one damaged place, or begins like no other token.

    Small models continue a token with the end of another one. Case is ignored, as agents often lose it.
    """
    found, wanted = text.lower(), token.lower()
    same = _common_length(found, wanted)
    head = _LABELLED.match(token)
    if head is not None and same >= head.end() + SPLICED_TOKEN_CHARS_MIN:
        return True
    same += _common_length(found[same:][::-1], wanted[same:][::-1])
    return max(len(found), len(wanted)) - same <= NEAR_TOKEN_CHARS_MAX


def _common_length(one: str, other: str) -> int:
    """Return the length of the common prefix of two texts."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))
