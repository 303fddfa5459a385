"""A call that waits for a person: nothing is recorded and nothing held until they have answered (D12, D24)."""

from dataclasses import dataclass

from interlock.engine.answer import Answer
from interlock.engine.gates import Question
from interlock.kernel.errors import Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedsPerson:
    """Nothing but a person's word is missing.

    `subject` is what the word is for, so that it counts for nothing else; `answer` is what is told where nobody can be
    asked, or nobody answered.
    """

    question: Question
    subject: str
    answer: Answer | Refusal
