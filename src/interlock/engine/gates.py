"""Questions that only a person can answer before a step is done, and the replies (GATE-1)."""

from collections.abc import Mapping
from typing import Literal

from interlock.decide.evaluate import ConditionInputs, evaluate
from interlock.engine.published import Published
from interlock.engine.template import ValueRoom, rendered_line
from interlock.kernel.canonical import Json, digest_of
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import Digest
from interlock.plan.records import PlanNode
from interlock.record.context import Context
from interlock.record.payloads import UserReason
from interlock.record.world import Assurance

GateClaims = Literal["when_client_cannot_ask", "always", "never"]
"""When an agent's own statement that a person confirmed is accepted (GATE-6)."""
AppAnswers = Literal["as_claims", "always", "never"]
"""When an answer from a page in a chat is accepted; `as_claims`: when a claim is (CHAT-2)."""

WITHOUT_ANSWER = frozenset({"needs_user_secret_or_token", "needs_user_approval"})
"""Reasons that a yes settles: a secret is never asked for in words, it is put where it belongs."""


@frozen
class QuestionItem:
    """One thing that only a person can give, in the author's words.

    `choices` are the names of all answers, if they have names: of two, a yes means the first and a no the second; of
    more, the answer is one of them, and a no names none. `needs_note`: each but the first needs a comment.
    """

    reason: UserReason
    ask: str
    choice_kind: str | None = None
    choices: tuple[str, ...] = ()
    needs_note: bool = False

    @property
    def subject(self) -> str:
        """What the person decides or gives, with the kind of choice if the author marked one (MODE-9)."""
        named = self.reason.removeprefix("needs_user_").replace("_", " ")
        return f"{named}: {self.choice_kind.replace('_', ' ')}" if self.choice_kind else named

    @property
    def wants_answer(self) -> bool:
        """Return whether the answer is a string. If not, a yes is enough."""
        return self.reason not in WITHOUT_ANSWER


@frozen
class Question:
    """All questions of one step to a person. `title` names the run and the step.

    `demands` is how well an answer must be known to count (WORLD-9).
    """

    title: str
    asks: tuple[QuestionItem, ...]
    demands: Assurance = "observed"

    def digest(self) -> Digest:
        """Return the digest that a reply must carry, so that it approves nothing else."""
        asks: list[Json] = [
            {"reason": one.reason, "ask": one.ask, "choiceKind": one.choice_kind, "choices": list(one.choices)}
            for one in self.asks
        ]
        return digest_of({"asks": asks})


@frozen
class Origin:
    """When a question was asked, in unix time, and ten random bytes of it: what a start that it grants is named by."""

    unix_ms: int
    entropy: bytes


@frozen
class Reply:
    """A person's answer. `answers` has one text for each ask that needs one; its key is the ask's number from 1."""

    action: Literal["accept", "decline", "cancel"]
    client: str
    answers: Mapping[str, str]
    comment: str | None = None
    fault: str | None = None
    """Why this is a `cancel` although the person did not cancel; None in every other reply."""
    origin: Origin | None = None
    """What the question was asked with; None if the client cannot send the reply again."""
    assurance: Assurance = "observed"
    """How well it is known that a person gave it (WORLD-9)."""

    @property
    def is_claim(self) -> bool:
        """Say whether a program may have given it."""
        return self.assurance == "claimed"

    def counts_as_yes(self, demands: Assurance) -> bool:
        """Say whether it is a yes that is known as well as the question demands."""
        return self.action == "accept" and not (self.is_claim and demands != "claimed")

    def unheard(self) -> str | None:
        """Return why the person gave no answer that counts; None if they did. Call it for no yes that counts."""
        if self.action == "accept":
            return (
                f"The question was answered (through {self.client}), but this does not count: an agent may have started"
                " that client."
            )
        if self.action != "cancel":
            return None
        if self.fault:
            return f"No answer of the user arrived (through {self.client}): {self.fault}."
        return f"The user was asked (through {self.client}) and closed the question without an answer."

    def record(self, asks: tuple[QuestionItem, ...]) -> "Answered":
        """Return the record to store: the questions, the answers and the client."""
        asked = tuple(
            AskOut(
                reason=one.reason,
                ask=one.ask,
                choice_kind=one.choice_kind,
                answer=self.answers.get(str(number)) or None,
            )
            for number, one in enumerate(asks, start=1)
        )
        return Answered(
            kind="wr.confirmation",
            client=self.client,
            asks=asked,
            comment=self.comment or None,
            assurance="claimed" if self.is_claim else None,
        )


class AskOut(Published):
    """One question that a person was asked. `answer` is None if the question only asks for approval."""

    answer: str | None = None
    ask: str
    reason: str
    choice_kind: str | None = None


class Answered(Published):
    """What a person answered, and the client that asked. `assurance`: a program may have answered; else None."""

    asks: tuple[AskOut, ...]
    assurance: Literal["claimed"] | None = None
    client: str
    comment: str | None = None
    kind: Literal["wr.confirmation"]

    def reply(self) -> Reply:
        """Return the reply that this record was made from."""
        answers = {str(number): one.answer for number, one in enumerate(self.asks, start=1) if one.answer is not None}
        return Reply(
            action="accept",
            client=self.client,
            answers=answers,
            comment=self.comment,
            assurance=self.assurance or "observed",
        )


@frozen
class ApprovalContext:
    """How a person can be asked: by the client or not, which claims and pages count, the reply to this attempt."""

    client_can: bool = False
    claims: GateClaims = "when_client_cannot_ask"
    reply: Reply | None = None
    apps: AppAnswers = "as_claims"

    @property
    def demands(self) -> Assurance:
        """Return how well an answer through the client must be known to open a gate.

        If a program may have answered, the client cannot ask a person as far as that is known, so the answer counts
        where a claim of such a client counts (GATE-6).
        """
        return "observed" if self.claims == "never" else "claimed"

    @property
    def takes_claims(self) -> bool:
        """Say whether an agent's claim is enough."""
        return self.claims == "always" or (self.claims == "when_client_cannot_ask" and not self.client_can)

    @property
    def takes_app_answers(self) -> bool:
        """Say whether an answer from a page in a chat is accepted (CHAT-2)."""
        return self.apps == "always" or (self.apps == "as_claims" and self.takes_claims)

    @property
    def needs_claim(self) -> bool:
        """Say whether an agent's claim is the only approval that can be given, so a call for it shows one (GATE-9)."""
        return self.takes_claims and not self.client_can


NO_APPROVAL = ApprovalContext()


def needs_confirmation(node: PlanNode, seen: Context) -> bool:
    """Say whether a step asks for a confirmation. A condition that cannot be decided counts as true (GATE-1)."""
    confirmation = node.task.confirmation if node.task is not None else None
    return confirmation is not None and evaluate(confirmation, ConditionInputs(context=seen)) is not False


def needs_of(node: PlanNode, seen: Context) -> tuple[QuestionItem, ...]:
    """Return the questions of a step that only the user can answer."""
    assert node.task is not None, "only a task has a gate"
    room = ValueRoom()
    return tuple(
        QuestionItem(reason=need.reason, ask=rendered_line(need.ask, seen, room), choice_kind=need.choice_kind)
        for need in node.task.needs_user
    )


def asks_of(node: PlanNode, seen: Context) -> tuple[QuestionItem, ...]:
    """Return the questions that a person must answer before a step is done."""
    asks = list(needs_of(node, seen))
    if needs_confirmation(node, seen):
        ask = f"Do you approve the step {rendered_line(node.title, seen)!r}?"
        asks.insert(0, QuestionItem(reason="needs_user_approval", ask=ask))
    return tuple(asks)
