"""The tool `answer_question`, for the page in a chat."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from interlock.kernel.budgets import APPROVAL_NOTE_BYTES_MAX
from interlock.kernel.text import utf8_bytes
from interlock.server.tools.contract import Call, Caller, Fault, Hints, Tool, too_large
from interlock.server.tools.page_arguments import PageArguments
from interlock.service.trust.run_page import AppAnswer, RunPage, answer_question


class AnswerArguments(PageArguments):
    """Arguments of `answer_question`."""

    mark: Annotated[str, Field(description="The `mark` of the question that was shown.")]
    choice: Annotated[str, Field(description="One of the `choices` of the question.")]
    note: Annotated[str, Field(description="The person's words.")] = ""

    def faults(self, caller: Caller) -> Iterator[Fault]:  # noqa: ARG002 — the faults do not depend on the caller
        """See `Arguments.faults`."""
        size = utf8_bytes(self.note)
        if size > APPROVAL_NOTE_BYTES_MAX:
            yield too_large("note", size, APPROVAL_NOTE_BYTES_MAX, fix="Write a shorter note.")

    def call(self, caller: Caller) -> Call:
        """See `Arguments.call`."""
        tokens, given = self.tokens(), AppAnswer(mark=self.mark, choice=self.choice, note=self.note)
        return Call(
            run=lambda ports: answer_question(ports, tokens, given, caller.asking, caller.actor),
            session=tokens.token.session,
        )


ANSWER_QUESTION = Tool(
    name="answer_question",
    title="Answer the question of a run",
    description="For the page of Interlock in a chat, never for a model: records the person's answer as a claim.",
    arguments=AnswerArguments,
    output=RunPage,
    hints=Hints(is_read_only=False, is_idempotent=False),
    is_for_pages=True,
)
