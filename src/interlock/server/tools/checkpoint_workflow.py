"""The tool `checkpoint_workflow`."""

from collections.abc import Collection, Iterator, Sequence
from typing import Annotated

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from interlock.engine.answer.structure import CheckpointAnswer
from interlock.engine.ends import RUN_WORKS, STEP_WORKS, parse_work
from interlock.engine.request import MemberFault, Request
from interlock.kernel.canonical import Json
from interlock.kernel.errors import Correction
from interlock.kernel.frozen import replace
from interlock.record.short_tokens import decode_token
from interlock.server.tools.contract import Arguments, Call, Caller, Fault, Hints, Tool
from interlock.server.tools.evidence import OutputArgument, evidence_faults, member_correction, work_faults
from interlock.service.tokens.mint import Argument
from interlock.service.tokens.resolve import SentTokens
from interlock.service.tools.checkpoint_workflow import CheckpointCommand, checkpoint_workflow


class CheckpointArguments(Arguments):
    """Arguments of `checkpoint_workflow`."""

    ack_token: Annotated[
        str | None, Field(description="The step's `ackToken`. Here it only saves; it does not report the step.")
    ] = None
    output: Annotated[
        OutputArgument | None, Field(description="Evidence of the step so far; a later checkpoint replaces it.")
    ] = None
    checkpoint_token: Annotated[
        str | None, Field(description="A `checkpointToken` of the step, in place of its `ackToken`.")
    ] = None
    state_token: SkipJsonSchema[str | None] = None
    """A check that is not published, because a small model sends wrong tokens in it."""

    @classmethod
    def missing(cls, sent: Collection[str]) -> list[str]:
        """See `Arguments.missing`."""
        return [] if "ackToken" in sent or "checkpointToken" in sent else ["ackToken"]

    def faults(self, caller: Caller) -> Iterator[Fault]:
        """See `Arguments.faults`."""
        if self.ack_token is self.checkpoint_token is self.state_token is None:
            yield Fault(
                "ackToken",
                "Neither `ackToken` nor `checkpointToken` was sent.",
                "Send the `ackToken` of the last answer of the run.",
                correction=Correction(understood=self.sent()),
            )
        elif None not in (self.ack_token, self.checkpoint_token, self.state_token):
            yield Fault(
                "ackToken",
                "Three tokens were sent; each of them names the step.",
                "Send only one of them: the `ackToken` or the `checkpointToken`.",
                correction=Correction(instead={"ackToken": None, "stateToken": None}, understood=self.sent()),
            )
        yield from evidence_faults(self.output, caller.artifact_bytes_max)
        yield from work_faults(self.output, STEP_WORKS, self._correct_work)

    def _correct_work(self, at: int, faults: Sequence[MemberFault]) -> Correction:
        """Correct a record of work: the end of a run is asked for with a report, and alone (END-5)."""
        record = ((self.output.artifacts if self.output is not None else None) or [])[at]
        if record.get("work") not in RUN_WORKS or record.get("work") in STEP_WORKS:
            return member_correction(at, faults)
        ends = parse_work(record, RUN_WORKS)
        correction = member_correction(0, ends if isinstance(ends, tuple) else ())
        token = self.ack_token or self.checkpoint_token
        alone: dict[str, Json] = {"ackToken": token, "output": {"artifacts": [record]}}
        return replace(correction, tool="continue_workflow", understood=alone)

    def call(self, caller: Caller) -> Call:
        """See `Arguments.call`."""
        output = self.output or OutputArgument()
        tokens = self._tokens()
        command = CheckpointCommand(
            tokens=tokens,
            request=Request(notes=output.notes_markdown, artifacts=tuple(output.artifacts or ()), asking=caller.asking),
            actor=caller.actor,
        )
        return Call(run=lambda ports: checkpoint_workflow(ports, command), session=tokens.token.session)

    def _tokens(self) -> SentTokens:
        """Return the token that names the step, and another one that must name the same step (CHK-5).

        A `stateToken` alone is refused by the use case, which knows the right token.
        """
        if self.ack_token is None and self.checkpoint_token is None and self.state_token is not None:
            return SentTokens(argument="stateToken", token=decode_token(self.state_token))
        text = self.ack_token or self.checkpoint_token
        assert text is not None, "a call without a token has a fault"
        argument: Argument = "checkpointToken" if self.ack_token is None else "ackToken"
        is_second = None not in (self.ack_token, self.checkpoint_token)
        check = self.checkpoint_token if is_second else self.state_token
        return SentTokens(
            argument=argument,
            token=decode_token(text),
            check=None if check is None else decode_token(check),
            check_argument="checkpointToken" if is_second else "stateToken",
        )


CHECKPOINT_WORKFLOW = Tool(
    name="checkpoint_workflow",
    title="Save notes of an unfinished step",
    description="Only if you must stop before the step is done. Never a way to report a step: report it with"
    " continue_workflow. Saves your notes so far under the step's ackToken. The step stays pending, every token stays"
    " valid, and the answer's stateToken is a bookmark for any later chat. Repeating a call is safe.",
    arguments=CheckpointArguments,
    output=CheckpointAnswer,
    hints=Hints(is_read_only=False, is_idempotent=True),
)
