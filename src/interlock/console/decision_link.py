"""Links that decide one question: signed, for a time, and void after the first answer (CON-9).

GET shows the question and changes nothing, so a program that opens links in advance decides nothing. The signature
covers the question with all that is shown, and the number of answers that it has. So the log itself ends a link with
the first answer, also if the answer came by command, and also after a restart: there is no list of used links.
"""

from interlock.console.access import is_signed, moment_in, signature_of
from interlock.kernel.budgets.console import CONSOLE_DECISION_MS, CONSOLE_TARGET_BYTES_MAX
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import Digest, NodeId, SessionId, SigningKey
from interlock.service.clock import Clock

_PURPOSE = b"interlock/console/decision/v1"
_BY_PERSON = {"person": True, "anybody": False}
_PARTS = ("made", "person", "session", "node", "signature")
PATH = "/decide/"
"""Where the console shows the question of a link."""


@frozen
class LinkedQuestion:
    """A question as a link is signed for it. `answers` counts those that it has. `is_person`: a person made it."""

    session: SessionId
    node: NodeId
    shown: Digest
    answers: int
    is_person: bool


@frozen
class DecisionLink:
    """A link that was opened: nothing of it is believed before `is_valid` says so."""

    session: SessionId
    node: NodeId
    is_person: bool
    made_ms: int
    signature: str

    def is_valid(self, asked: LinkedQuestion, port: int, keys: tuple[SigningKey, ...], clock: Clock) -> bool:
        """Say whether one of the keys signed this link for a question as it is now, and recently."""
        is_recent = self.made_ms <= clock.unix_ms() <= self.made_ms + CONSOLE_DECISION_MS
        return is_recent and is_signed(keys, _PURPOSE, _body(self.made_ms, asked, port), self.signature)


def make_decision_link(key: SigningKey, port: int, asked: LinkedQuestion, clock: Clock) -> str:
    """Return the address of a page that shows one question and takes one answer to it."""
    made_ms = clock.unix_ms()
    by = next(word for word, is_person in _BY_PERSON.items() if is_person == asked.is_person)
    signature = signature_of(key, _PURPOSE, _body(made_ms, asked, port))
    return f"http://127.0.0.1:{port}{PATH}{made_ms}.{by}.{asked.session}.{asked.node}.{signature}"


def parse_decision_link(text: str) -> DecisionLink | None:
    """Return what a link says; None if it is none."""
    parts = dict(zip(_PARTS, text.split("."), strict=False)) if len(text) < CONSOLE_TARGET_BYTES_MAX else {}
    made_ms = moment_in(parts.get("made", ""))
    if text.count(".") != len(_PARTS) - 1 or made_ms is None or parts["person"] not in _BY_PERSON:
        return None
    return DecisionLink(
        session=SessionId(parts["session"]),
        node=NodeId(parts["node"]),
        is_person=_BY_PERSON[parts["person"]],
        made_ms=made_ms,
        signature=parts["signature"],
    )


def _body(made_ms: int, asked: LinkedQuestion, port: int) -> str:
    parts = (port, made_ms, asked.is_person, asked.session, asked.node, asked.shown, asked.answers)
    return ".".join(map(str, parts))
