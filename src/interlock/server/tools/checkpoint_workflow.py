"""The tool `checkpoint_workflow`."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from interlock.engine.answer.structure import CheckpointAnswer
from interlock.engine.request import Request
from interlock.record.short_tokens import decode_token
from interlock.server.tools.contract import Arguments, Call, Caller, Fault, Hints, Tool
from interlock.server.tools.evidence import OutputArgument, evidence_faults
from interlock.service.tokens.resolve import SentTokens
from interlock.service.tools.checkpoint_workflow import CheckpointCommand, checkpoint_workflow


class CheckpointArguments(Arguments):
    """Arguments of `checkpoint_workflow`."""

    checkpoint_token: Annotated[str, Field(description="The last answer's `checkpointToken`. Repeating it is safe.")]
    state_token: Annotated[str | None, Field(description="Optional check: a `stateToken` of the same step.")] = None
    output: Annotated[
        OutputArgument | None, Field(description="Evidence of the step so far; a later checkpoint replaces it.")
    ] = None

    def faults(self, caller: Caller) -> Iterator[Fault]:
        """See `Arguments.faults`."""
        return evidence_faults(self.output, caller.artifact_bytes_max)

    def call(self, caller: Caller) -> Call:
        """See `Arguments.call`."""
        output = self.output or OutputArgument()
        token, state = decode_token(self.checkpoint_token), self.state_token
        check = None if state is None else decode_token(state)
        command = CheckpointCommand(
            tokens=SentTokens(argument="checkpointToken", token=token, check=check),
            request=Request(notes=output.notes_markdown, artifacts=tuple(output.artifacts or ())),
            actor=caller.actor,
        )
        return Call(run=lambda ports: checkpoint_workflow(ports, command), session=token.session)


CHECKPOINT_WORKFLOW = Tool(
    name="checkpoint_workflow",
    title="Save notes of an unfinished step",
    description="Saves notes and artifacts of a step that is not done yet, and returns a stateToken as a bookmark"
    " for any later chat. The step stays pending and every token stays valid. Use it before a long or risky part, or"
    " when the chat may end. Not for a finished step: use continue_workflow. Repeating a call is safe."
    ' Example: {"checkpointToken": "chk_ab12…", "output": {"notesMarkdown": "Half of the tests pass…"}}.',
    arguments=CheckpointArguments,
    output=CheckpointAnswer,
    hints=Hints(is_read_only=False, is_idempotent=True),
)
