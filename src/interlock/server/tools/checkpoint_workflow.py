"""The tool `checkpoint_workflow`."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from interlock.engine.request import Request
from interlock.record.short_tokens import decode_token
from interlock.server.tools.contract import Arguments, Call, Caller, Fault, Hints, Output, Tool
from interlock.server.tools.evidence import OutputArgument, evidence_faults
from interlock.server.tools.results import NextCall, RunIdentity, Warned
from interlock.service.tokens.resolve import SentTokens
from interlock.service.tools.checkpoint_workflow import CheckpointCommand, checkpoint_workflow


class CheckpointArguments(Arguments):
    """Arguments of `checkpoint_workflow`."""

    checkpoint_token: Annotated[str, Field(description="The last answer's `checkpointToken`. Repeating it is safe.")]
    state_token: Annotated[str | None, Field(description="Optional check: a `stateToken` of the same step.")] = None
    output: Annotated[
        OutputArgument | None, Field(description="What to keep of the step so far; a later checkpoint replaces it.")
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


class CheckpointOut(Output):
    """The bookmark that was made."""

    node_id: str


class CheckpointAnswer(Output):
    """Answer of `checkpoint_workflow`. `stateToken` is the bookmark: any later chat may look at it."""

    kind: Literal["ok"]
    run: RunIdentity
    next_call: NextCall
    state_token: str
    checkpoint_token: str | None = None
    checkpoint: CheckpointOut
    warnings: list[Warned] | None = None


CHECKPOINT_WORKFLOW = Tool(
    name="checkpoint_workflow",
    title="Keep notes of an unfinished step",
    description="Keeps notes and artifacts of a step that is not done yet, and returns a stateToken as a bookmark"
    " that any later chat can look at. The step stays pending and every token stays good. Use it before a long or"
    " risky part, or when the chat may end. Repeating a call is safe."
    ' Example: {"checkpointToken": "chk_ab12…", "output": {"notesMarkdown": "Half of the tests pass…"}}.',
    arguments=CheckpointArguments,
    output=CheckpointAnswer,
    hints=Hints(is_read_only=False, is_idempotent=True),
)
