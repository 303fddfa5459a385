"""Answers as data: the models that build what execution tools answer and publish its schema."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Self

from interlock.define.diagnostics import Diagnostic
from interlock.define.parts import Reference
from interlock.engine.answer.identity import LoopPass, RestsOn, RunIdentity, WaitingOut
from interlock.engine.gates import Answered
from interlock.engine.published import Published
from interlock.engine.request import NOTES_WORDS
from interlock.kernel.blanks import Fill, Outline, choice_text, separate
from interlock.kernel.budgets import FILLS_NAMED_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.shape import Rule, described
from interlock.kernel.text import code_span, json_in_code, json_line
from interlock.record.payloads import RunEndKind, WorkReason


class FillOut(Published):
    """A value to add to the call, written by you."""

    path: Annotated[str, described("Its place in the arguments.")]
    what: Annotated[str | None, described("What to write there. Never send these words.")] = None
    choices: tuple[Json, ...] | None = None
    shape: str | None = None

    @classmethod
    def of(cls, fill: Fill) -> Self:
        """Return a blank as answers carry it."""
        blank = fill.blank
        return cls(path=fill.path, what=blank.what, choices=blank.choices or None, shape=blank.shape)

    def in_one_line(self, notes: str = NOTES_WORDS) -> str:
        """Return the blank as one line of an answer's text; `notes` is what it says of notes."""
        if self.choices is not None and len(self.choices) == 1:
            return f"- `{self.path}`: exactly `{json.dumps(self.choices[0], ensure_ascii=False)}`"
        kind = " | ".join(map(choice_text, self.choices or ())) or self.shape
        what = self.what or (None if self.choices else notes)
        return f"- `{self.path}`" + (f" ({kind})" if kind else "") + (f": {what}" if what else "")


def call_lines(arguments: Mapping[str, Json], fill: Sequence[FillOut], notes: str = NOTES_WORDS) -> str:
    """Return the arguments of a call as texts show them: one line for each, and for each value to add.

    Arguments that are complete are shown as JSON instead: they can be sent as they are.
    """
    if not fill:
        return json_in_code(arguments, separators=(",", ":"))
    fixed = [f"- `{name}`: {_value_in_code(value)}" for name, value in arguments.items()]
    return "\n".join([*fixed, *(one.in_one_line(notes) for one in fill)])


def _value_in_code(value: Json) -> str:
    """Return a fixed value for a line: a text of words as it is, such as a token or a goal, and all else as JSON."""
    is_word = isinstance(value, str) and _WORD.fullmatch(value) and not _JSON_WORD.fullmatch(value)
    return f"`{value}`" if is_word else code_span(json_line(value))


_WORD = re.compile(r"[\w.-]+(?: [(]?[\w.'/-]+[,:;?!)]*)*")
_JSON_WORD = re.compile(r"true|false|null|-?\d+(?:\.\d+)?(?:[eE]-?\d+)?")


class NextCall(Published):
    """What to send next: `arguments` unchanged, plus each value that `fill` names."""

    # `fill` follows the arguments: a small model continues its call with what comes after them (ANS-22).
    then: str | None = None
    tool: str
    arguments: dict[str, Json]
    fill: tuple[FillOut, ...]

    @classmethod
    def of(cls, tool: str, outline: Mapping[str, Outline], instruction: str | None = None) -> Self:
        """Return the call of an outline; `instruction` is the beginning of the sentence that says when to make it."""
        arguments, fills = separate(outline)
        then = None if instruction is None else f"{instruction} these arguments{_added(fills)}."
        return cls(fill=tuple(map(FillOut.of, fills)), tool=tool, arguments=arguments, then=then)

    def in_lines(self, notes: str = NOTES_WORDS) -> str:
        """Return the call as an answer's text shows it: the arguments, and a line for each value to add."""
        return call_lines(self.arguments, self.fill, notes)


def _added(fills: Sequence[Fill]) -> str:
    """Return what a sentence says of the values to add: their names, if they are few."""
    if not fills:
        return ""
    *first, last = (fill.path for fill in fills)
    names = f"{', '.join(first)} and {last}" if first else last
    return f", and add {names if len(fills) <= FILLS_NAMED_MAX else 'each value that fill names'}, written by you"


class Fork(Published):
    """The only way to redo a step that is done: on a new branch."""

    ack_token: str
    note: str

    def in_one_line(self) -> str:
        """Return the note with the token, as texts show it."""
        return f"{self.note.removesuffix('.')}: `{self.ack_token}`"


WarningCode = Literal[
    "STEP_ALREADY_DONE",
    "ATTEMPT_LIMIT_REACHED",
    "REPLAY_PAYLOAD_IGNORED",
    "NOTES_TRUNCATED",
    "BRANCH_CREATED",
    "LOOP_LIMIT_REACHED",
    "LEVEL_NORMALISED",
    "GAP_RECORDED",
    "COMPLETE_WITH_GAPS",
    "CLAIMED_FACT",
    "BEYOND_RECOMMENDATION",
    "LOOKS_LIKE_SECRET",
    "WORKFLOW_SOURCE_CHANGED",
    "WORKFLOW_SOURCE_REMOVED",
    "WORKFLOW_REPLACED",
    "EVENT_CONTENT_IGNORED",
    "EVENT_NOT_RECORDED",
    "EVENT_TOO_LATE",
    "SAME_RUN_OPEN",
]
"""Derivable from the log, except `SAME_RUN_OPEN` of a start.

Closed here and open as published: a new one must not break a client that validates."""


class Warned(Published):
    """A warning."""

    code: Annotated[WarningCode, Rule(schema={"type": "string"})]
    message: str

    def in_one_line(self) -> str:
        """Return the warning as one line of an answer's text. It is no quote: only texts of others are quoted."""
        return f"**Note** `{self.code}`: {self.message}"


class BlockerOut(Published):
    """What keeps the step from advancing, and what to send instead."""

    code: str
    pointer: dict[str, Json]
    message: str
    suggested_fix: str | None = None
    details: dict[str, Json] | None = None


class PreferencesOut(Published):
    """How autonomous and how cautious the run is."""

    autonomy: str
    risk_policy: str


class Pending(Published):
    """The step to perform. `parallelWith` names steps that need not wait for it."""

    step_id: str
    title: str
    prompt: str
    agent_role: str | None = None
    require_confirmation: bool | None = None
    loop: LoopPass | None = None
    parallel_with: tuple[str, ...] | None = None


class ReferenceOut(Published):
    """Material the workflow refers to."""

    id: str | None = None
    title: str
    source: str
    purpose: str | None = None
    authoritative: bool | None = None

    @classmethod
    def of(cls, reference: Reference) -> Self:
        """Return a workflow's reference with all its members."""
        return cls(**{name: getattr(reference, name) for name in reference.__struct_fields__})


class DiagnosticOut(Published):
    """A fault of a workflow file, with its place and its fix."""

    path: str
    code: str
    severity: str
    message: str
    fix: str
    line: int | None = None
    column: int | None = None

    @classmethod
    def of(cls, diagnostic: Diagnostic) -> Self:
        """Return a diagnostic as answers carry it."""
        return cls(
            path=diagnostic.path,
            code=diagnostic.code,
            severity=diagnostic.severity,
            message=diagnostic.message,
            fix=diagnostic.fix,
            line=diagnostic.line,
            column=diagnostic.column if diagnostic.line is not None else None,
        )


class EndedOut(Published):
    """How the run ended although its last step was not done."""

    status: RunEndKind
    reason: WorkReason
    at: str | None = None
    note: str | None = None


NextIntent = Literal["perform_pending_then_continue", "await_user_confirmation", "rehydrate_only", "complete"]


class ExecutionAnswer(Published):
    """Answer of `start_workflow` and `continue_workflow`."""

    kind: Literal["ok", "blocked"]
    run: RunIdentity
    next_call: NextCall | None
    waiting: WaitingOut | None = None
    state_token: str
    ack_token: str | None = None
    checkpoint_token: str | None = None
    is_complete: bool
    ended: EndedOut | None = None
    next_intent: NextIntent
    fork: Fork | None = None
    blockers: tuple[BlockerOut, ...] | None = None
    retryable: bool | None = None
    warnings: tuple[Warned, ...] | None = None
    preferences: PreferencesOut | None = None
    guidance: tuple[str, ...] | None = None
    answered: Answered | None = None
    rests_on: RestsOn | None = None
    recap: str | None = None
    references: tuple[ReferenceOut, ...] | None = None
    pending: Pending | None


class CheckpointOut(Published):
    """The bookmark that was made."""

    node_id: str


class CheckpointAnswer(Published):
    """Answer of `checkpoint_workflow`. `stateToken` is the bookmark: any later chat may read it."""

    kind: Literal["ok"]
    run: RunIdentity
    next_call: NextCall
    state_token: str
    checkpoint_token: str | None = None
    checkpoint: CheckpointOut
    warnings: tuple[Warned, ...] | None = None
