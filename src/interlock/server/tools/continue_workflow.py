"""The tool `continue_workflow`."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated

from pydantic import Field, JsonValue

from interlock.define.diagnostics import suggest_name
from interlock.engine.answer.structure import ExecutionAnswer
from interlock.engine.ends import RUN_WORKS, STEP_WORKS, WORK_KIND, parse_work
from interlock.engine.request import CONFIRMATION_KIND, MemberFault, Request
from interlock.kernel.canonical import Json
from interlock.kernel.errors import Correction
from interlock.kernel.frozen import replace
from interlock.record.short_tokens import decode_token
from interlock.server.tools.contract import Arguments, Call, Caller, Fault, Hints, Tool, member_names
from interlock.server.tools.evidence import (
    OutputArgument,
    PreferencesArgument,
    evidence_faults,
    member_correction,
    members_of_kind,
    preference_delta,
    work_faults,
)
from interlock.service.tokens.mint import PREFIXES
from interlock.service.tokens.resolve import SentTokens
from interlock.service.tools.continue_workflow import ContinueCommand, continue_workflow

_NOTES = "notesMarkdown"
_MEMBERS = frozenset(member_names(OutputArgument))
_OF_REPORTS = ("output", "context", "preferences")
"""The arguments that only a call with an `ackToken` may have (ANS-13)."""


class ContinueArguments(Arguments):
    """Arguments of `continue_workflow`."""

    ack_token: Annotated[
        str | None,
        Field(
            description="The `ackToken` of the last `nextCall`: reports the step as done. Works once; repeating it is"
            " safe."
        ),
    ] = None
    run: Annotated[str | None, Field(description="The run's label: checks that the token belongs to this run.")] = None
    output: Annotated[OutputArgument | None, Field(description="The step's evidence; only with `ackToken`.")] = None
    context: Annotated[
        dict[str, JsonValue] | None,
        Field(description="Only what the step asks for as context: keys to set or change; null removes a key."),
    ] = None
    preferences: Annotated[
        PreferencesArgument | None,
        Field(description="Only a change the user asked for; applies from the next step."),
    ] = None
    # Last: if it follows `ackToken`, a small model makes one from that token (ANS-23).
    state_token: Annotated[
        str | None,
        Field(description="A `stateToken`. Without `ackToken`, it only shows the step again; then send no evidence."),
    ] = None

    @classmethod
    def missing(cls, sent: Collection[str]) -> list[str]:
        """See `Arguments.missing`. A call with evidence reports a step; one without must not be led to report one."""
        if "ackToken" in sent or "stateToken" in sent:
            return []
        if not any(name in sent for name in _OF_REPORTS):
            return ["stateToken"]
        return [name for name in ("ackToken", "output") if name not in sent]

    def faults(self, caller: Caller) -> Iterator[Fault]:
        """See `Arguments.faults`."""
        if self.ack_token is None:
            yield from self._faults_without_ack()
        yield from evidence_faults(self.output, caller.artifact_bytes_max, takes_events=True)
        yield from self._faults_beside_end()
        yield from work_faults(self.output, RUN_WORKS, self._correct_work)
        if self.context:
            own = self._output()
            yield from self._misplaced_output(self.context, own)
            yield from self._misplaced_members(self.context, own)

    def call(self, caller: Caller) -> Call:
        """See `Arguments.call`."""
        output = self.output or OutputArgument()
        tokens = self._tokens()
        command = ContinueCommand(
            tokens=tokens,
            workspace=caller.workspace,
            request=Request(
                notes=output.notes_markdown,
                artifacts=tuple(output.artifacts or ()),
                context=dict(self.context or {}),
                preferences=preference_delta(self.preferences),
                asking=caller.asking,
            ),
            actor=caller.actor,
        )
        session = None if self.ack_token is None else tokens.token.session
        return Call(run=lambda ports: continue_workflow(ports, command), session=session)

    def _faults_beside_end(self) -> Iterator[Fault]:
        """The end of a run records nothing else, so evidence that came with it would be lost."""
        artifacts = self._artifacts()
        ends = [at for at, one in enumerate(artifacts) if one.get("kind") == WORK_KIND and not _leaves_step(one)]
        others = [one for one in artifacts if one.get("kind") not in (WORK_KIND, CONFIRMATION_KIND)]
        has_notes = self.output is not None and bool(self.output.notes_markdown)
        if ends and (others or has_notes or self.context or self.preferences):
            found = parse_work(artifacts[ends[0]], RUN_WORKS)
            yield Fault(
                "output",
                f"The artifact `{WORK_KIND}` asks for the end of the run. Nothing else is recorded with an end.",
                "Save notes and artifacts first, with `checkpoint_workflow`, or they are lost. The call below has only"
                " the end of the run.",
                correction=self._correct_work(ends[0], found if isinstance(found, tuple) else ()),
            )

    def _correct_work(self, at: int, faults: Sequence[MemberFault]) -> Correction:
        """Correct a record of work: an end of the run is sent alone, and a step is left with a checkpoint (END-7)."""
        record = self._artifacts()[at]
        if _leaves_step(record):
            left = parse_work(record, STEP_WORKS)
            correction = member_correction(at, left if isinstance(left, tuple) else ())
            return replace(correction, tool="checkpoint_workflow", understood=self.sent())
        others = {name: value for name, value in self.sent().items() if name not in _OF_REPORTS}
        return replace(member_correction(0, faults), understood={**others, "output": {"artifacts": [record]}})

    def _artifacts(self) -> list[dict[str, JsonValue]]:
        return (self.output.artifacts if self.output is not None else None) or []

    def _misplaced_output(self, context: Mapping[str, Json], own: Mapping[str, Json]) -> Iterator[Fault]:
        """An output in the context would be kept as a key that nothing reads. `own` is the call's output."""
        inner = _as_output(context.get("output"))
        if all(own.get(name) for name in _MEMBERS & inner.keys()):
            return
        others = {key: value for key, value in context.items() if key != "output"}
        output: dict[str, Json] = {**inner, **{name: value for name, value in own.items() if value}}
        yield Fault(
            "context.output",
            "The evidence was sent in `context`, where no step reads it.",
            "Send it as `output`.",
            correction=Correction(instead={"context": others or None}, understood={**self.sent(), "output": output}),
        )

    def _misplaced_members(self, context: Mapping[str, Json], own: Mapping[str, Json]) -> Iterator[Fault]:
        """Notes and artifacts in the context would be kept as keys that nothing reads, and the step would miss them."""
        for name, what in ((_NOTES, "Notes"), ("artifacts", "Artifacts")):
            value = context.get(name)
            if name not in context or own.get(name) or not (name == _NOTES or _are_artifacts(value)):
                continue
            others = {key: one for key, one in context.items() if key != name}
            yield Fault(
                f"context.{name}",
                f"{what} were sent in `context`, where no step reads them.",
                f"Send them as `output.{name}`.",
                correction=Correction(
                    instead={"context": others or None},
                    wrong=() if name != _NOTES or isinstance(value, str) else (("output", _NOTES),),
                    understood={**self.sent(), "output": {**own, name: value}},
                ),
            )

    def _output(self) -> dict[str, Json]:
        output = self.sent().get("output") or {}
        assert isinstance(output, dict), "the output is an object"
        return output

    def _tokens(self) -> SentTokens:
        state = None if self.state_token is None else decode_token(self.state_token)
        if self.ack_token is not None:
            return SentTokens(argument="ackToken", token=decode_token(self.ack_token), check=state, run=self.run)
        assert state is not None, "a call without a token has a fault"
        return SentTokens(argument="stateToken", token=state, run=self.run)

    def _faults_without_ack(self) -> Iterator[Fault]:
        """A call without an `ackToken` is read-only: it needs a `stateToken` and accepts no evidence (ANS-13)."""
        if self.state_token is None:
            missing = self.missing(self.sent())
            yield Fault(
                missing[0],
                "Neither `ackToken` nor `stateToken` was sent.",
                "Send the `nextCall` of the last answer: its `ackToken` with your notes if the step is done, or its"
                " `stateToken` alone to see the current step.",
                correction=Correction(understood=self.sent()),
            )
            return
        extra = [name for name in _OF_REPORTS if name in self.sent()]
        if extra and self.state_token.startswith(PREFIXES["ackToken"]):
            yield Fault(
                "stateToken",
                "It holds an `ackToken`.",
                "Send it as `ackToken`.",
                correction=Correction(
                    instead={"stateToken": None, "ackToken": self.state_token}, understood=self.sent()
                ),
            )
        if extra:
            yield Fault(
                extra[0],
                f"A `stateToken` alone only shows the step, so `{extra[0]}` would be lost.",
                "To report the step as done, add the `ackToken` of the same answer."
                f" To see the step, leave out `{extra[0]}`.",
                correction=Correction(wrong=(("ackToken",),), understood=self.sent()),
            )


def _as_output(value: Json) -> dict[str, Json]:
    """Return an object with its members under the names of those of an output; an empty one if it is data.

    Data may have members with similar names, so without a right name each member must have a similar one.
    """
    if not isinstance(value, dict):
        return {}
    similar = {name: suggest_name(name, _MEMBERS) for name in value if name not in _MEMBERS}
    if not _MEMBERS & value.keys() and None in similar.values():
        return {}
    moved: dict[str, Json] = {similar[name] or name: value[name] for name in similar}
    return moved | {name: one for name, one in value.items() if name in _MEMBERS}


def _are_artifacts(value: Json) -> bool:
    """Say whether a value can only be meant as artifacts: objects, each with a built-in kind."""
    items = value if isinstance(value, list) else [value]
    return bool(items) and all(isinstance(one, dict) and bool(members_of_kind(str(one.get("kind")))) for one in items)


def _leaves_step(record: Mapping[str, Json]) -> bool:
    """Say whether a record of work can only be that of a step that is left."""
    return record.get("work") in STEP_WORKS and record.get("work") not in RUN_WORKS


CONTINUE_WORKFLOW = Tool(
    name="continue_workflow",
    title="Continue a workflow",
    description="When the pending step is done: reports it and returns the next one. Never for a step that is not done."
    " Send the arguments of the last answer's nextCall and add what its fill names, written by you: without"
    " output.notesMarkdown most steps are refused. If the evidence is not enough, the answer says what is missing"
    " and gives fresh tokens. Repeating a call is safe: it returns what was recorded; only a check that did not pass"
    " runs again. With stateToken alone it only shows the current step, as after a lost answer. If you deviated from"
    " the step, add the artifact wr.workflow_divergence.",
    arguments=ContinueArguments,
    output=ExecutionAnswer,
    hints=Hints(is_read_only=False, is_idempotent=True),
)
