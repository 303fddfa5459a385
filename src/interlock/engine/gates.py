"""What only a person can give before a step is done: what is asked, and what came back (GATE-1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from interlock.decide.evaluate import ConditionInputs, evaluate
from interlock.kernel.canonical import Json, digest_of
from interlock.kernel.ids import Digest
from interlock.plan.records import PlanNode
from interlock.record.context import Context
from interlock.record.payloads import UserReason

GateClaims = Literal["when_client_cannot_ask", "always", "never"]
"""When an agent's own statement that a person confirmed is accepted (GATE-6)."""

WITHOUT_ANSWER = frozenset({"needs_user_secret_or_token", "needs_user_approval"})
"""Reasons that a yes settles: a secret is never asked for in words, it is put where it belongs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One thing that only a person can give, in the author's words."""

    reason: UserReason
    ask: str
    choice_kind: str | None = None

    @property
    def wants_answer(self) -> bool:
        """Say whether the answer is a text; else a yes is enough."""
        return self.reason not in WITHOUT_ANSWER


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a person is asked in one go. `title` names the run and the step in words."""

    title: str
    asks: tuple[Ask, ...]

    def digest(self) -> Digest:
        """Return what a reply must refer to, so that it opens no other gate."""
        asks: list[Json] = [{"reason": one.reason, "ask": one.ask, "choiceKind": one.choice_kind} for one in self.asks]
        return digest_of({"asks": asks})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a person answered. `answers` hold one text for each ask that wants one, by its place from 1, as text."""

    action: Literal["accept", "decline", "cancel"]
    client: str
    answers: Mapping[str, str]
    comment: str | None = None
    fault: str | None = None
    """Why a `cancel` is one although the person did not cancel, in words; it stands in no other reply."""

    def unheard(self) -> str | None:
        """Return in words why there is no answer; None where there is one."""
        if self.action != "cancel":
            return None
        why = f": {self.fault}" if self.fault else "; they put the question away"
        return f"They were asked (through {self.client}), and no answer came{why}."

    def record(self, asks: tuple[Ask, ...]) -> dict[str, Json]:
        """Return the reply as it is kept: what was asked, what was answered, through which client."""
        told: list[Json] = []
        for number, ask in enumerate(asks, start=1):
            answer = self.answers.get(str(number))
            one: dict[str, Json] = {"reason": ask.reason, "ask": ask.ask}
            told.append(one | ({"answer": answer} if answer else {}))
        body: dict[str, Json] = {"kind": "wr.confirmation", "client": self.client, "asks": told}
        return body | ({"comment": self.comment} if self.comment else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How people can be asked: whether the client can, what agents may claim, what a person said to this attempt."""

    client_can: bool = False
    claims: GateClaims = "when_client_cannot_ask"
    reply: Reply | None = None

    @property
    def takes_claims(self) -> bool:
        """Say whether an agent's word is enough."""
        return self.claims == "always" or (self.claims == "when_client_cannot_ask" and not self.client_can)


NOBODY_ASKED = Asking()


def reply_of(record: Mapping[str, Json]) -> Reply:
    """Return the reply that a record was kept of."""
    asks, comment = record.get("asks"), record.get("comment")
    answers = {
        str(number): str(ask["answer"])
        for number, ask in enumerate(asks if isinstance(asks, list) else [], start=1)
        if isinstance(ask, dict) and "answer" in ask
    }
    return Reply(
        action="accept",
        client=str(record.get("client")),
        answers=answers,
        comment=comment if isinstance(comment, str) else None,
    )


def needs_confirmation(node: PlanNode, seen: Context) -> bool:
    """Say whether a step asks for a confirmation. What cannot be decided is confirmed: the cautious way (GATE-1)."""
    confirmation = node.task.confirmation if node.task is not None else None
    return confirmation is not None and evaluate(confirmation, ConditionInputs(context=seen)) is not False
