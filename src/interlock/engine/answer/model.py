"""Renders answers to agents twice from one model: as data and as Markdown (ANS-1, ANS-2).

Pure: a first answer and its replay come from the same records through the same function.
"""

from collections.abc import Mapping
from textwrap import indent
from typing import Literal

from interlock.decide.evaluate import CONTEXT_SOURCE, EVIDENCE_ROOTS
from interlock.define.parts import Reference
from interlock.engine.answer.identity import RestsOn, RunIdentity, StepPosition
from interlock.engine.answer.parts import PendingStepView, RunView
from interlock.engine.answer.structure import (
    BlockerOut,
    EndedOut,
    ExecutionAnswer,
    Fork,
    NextCall,
    NextIntent,
    Pending,
    PreferencesOut,
    ReferenceOut,
    Warned,
)
from interlock.engine.gates import Answered, Question
from interlock.engine.published import Published
from interlock.engine.request import (
    IN_STRUCTURE,
    IN_TEXT,
    NOTES_BLANK,
    OPTIONAL_NOTES_BLANK,
    notes_words,
    report_instruction,
)
from interlock.engine.template import title_in_code
from interlock.kernel.blanks import Blank, Outline
from interlock.kernel.canonical import Json, JsonScalar
from interlock.kernel.errors import Refusal
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.text import flat, quoted
from interlock.plan.records import NOTES_CONTRACT
from interlock.record.base import Preferences
from interlock.record.outcome import (
    PROOF_DETAIL,
    Blocker,
    BlockerReport,
    CapabilityPointer,
    ContextKeyPointer,
    OutputContractPointer,
)

CONTINUE_TOOL = "continue_workflow"
RESUME_TOOL = "resume_session"
LIST_TOOL = "list_workflows"
START_TOOL = "start_workflow"
WORKFLOW_BLANK = Blank(what="an id that list_workflows returned")

Occasion = Literal["start", "advance", "rehydrate"]


@frozen
class PendingApproval:
    """Only a person's approval is missing. `claim` is the artifact for an agent's claim, if allowed."""

    claim: Mapping[str, Outline] | None


@frozen
class AnswerModel:
    """Everything an execution answer says. `step` is None when the run is complete at this node, or has `ended`.

    `answered` is what a person answered before the run came to this step.
    """

    occasion: Occasion
    run: RunView
    state_token: str
    step: PendingStepView | None
    ack_token: str | None = None
    checkpoint_token: str | None = None
    redirect: str | None = None
    fork: Fork | None = None
    blockers: BlockerReport | None = None
    warnings: tuple[Warned, ...] = ()
    preferences: Preferences | None = None
    recap: str | None = None
    guidance: tuple[str, ...] = ()
    references: tuple[Reference, ...] = ()
    where: str | None = None
    awaited: PendingApproval | None = None
    answered: Answered | None = None
    ended: EndedOut | None = None
    rests_on: RestsOn | None = None


@frozen
class Answer:
    """The same answer as data and as text; `link` is the address and name of a resource with more."""

    data: Published
    text: str
    link: tuple[str, str] | None = None

    @property
    def structure(self) -> dict[str, Json]:
        """The data as it is sent."""
        return self.data.to_json()


def render_answer(facts: AnswerModel) -> Answer:
    """Render the answer as data and as text; each is complete without the other."""
    call = _next_call(facts)
    return Answer(data=_data(facts, call), text=_render_text(facts, call))


def look_call(state_token: str, label: str) -> NextCall:
    """Return the call that shows a position of the labelled run without changing it."""
    return NextCall.of(CONTINUE_TOOL, {"stateToken": state_token, "run": label})


def ack_call(ack_token: str, label: str, evidence: Mapping[str, Outline], then: str | None = None) -> NextCall:
    """Return the call that reports a step of the labelled run; `then` says in a sentence when to make it."""
    return NextCall.of(CONTINUE_TOOL, {"ackToken": ack_token, "run": label, **evidence}, then)


def _next_call(facts: AnswerModel) -> NextCall | None:
    """Return the next call: it shows the current step, reports the step's evidence, or forks."""
    token = facts.ack_token
    if facts.redirect is not None:
        return look_call(facts.redirect, facts.run.label)
    if facts.step is None:
        return None
    if token is None:
        assert facts.fork is not None, "a step that is not done has an attempt or a fork"
        token = facts.fork.ack_token
    step, awaited = facts.step, facts.awaited
    is_known = facts.occasion == "advance" and facts.blockers is None and awaited is None and step.waiting is None
    then = None if is_known else _instruction(facts, *IN_STRUCTURE)
    if awaited is None:
        return ack_call(token, facts.run.label, evidence_outline(step, facts.blockers), then)
    return ack_call(token, facts.run.label, evidence_outline(replace(step, claim=awaited.claim)), then)


def evidence_outline(step: PendingStepView, blockers: BlockerReport | None = None) -> dict[str, Outline]:
    """Return what a call must contain: all evidence of the step, or after a refusal only the refused parts.

    Everything sent before is kept, but not a claim that a person approved.
    """
    claims = (step.claim,) if step.claim is not None else ()
    refused = [(blocker.pointer, blocker.details) for blocker in blockers.blockers] if blockers is not None else []
    if refused and all(PROOF_DETAIL in (details or {}) for _, details in refused):
        # A receipt does not come with the call.
        return {"output": {"artifacts": claims}} if claims else {}
    contracts = {one.contract_ref for one, _ in refused if isinstance(one, OutputContractPointer)}
    wanted = {one.key: details for one, details in refused if isinstance(one, ContextKeyPointer)}
    keys = [path for path, details in wanted.items() if not step.artifacts or _is_of_context(path, details)]
    is_refused = bool(contracts or wanted or any(isinstance(one, CapabilityPointer) for one, _ in refused))
    is_of_artifact = bool(contracts - {NOTES_CONTRACT}) or len(keys) < len(wanted)
    artifacts = step.artifacts if not is_refused or is_of_artifact or not (contracts or wanted) else ()
    wants_notes = NOTES_CONTRACT in contracts if is_refused else step.needs_notes or not step.artifacts
    if step.waiting is not None:
        wants_notes = False
    output: dict[str, Outline] = {"notesMarkdown": _notes_blank(step)} if wants_notes else {}
    if artifacts or claims:
        output["artifacts"] = (*artifacts, *claims)
    evidence: dict[str, Outline] = {"output": output} if output else {}
    context = (
        {path.partition(".")[0]: _key_blank(step, path, wanted[path]) for path in keys} if is_refused else step.context
    )
    if context:
        evidence["context"] = context
    return evidence


def _is_of_context(path: str, details: Mapping[str, JsonScalar] | None) -> bool:
    """Say whether a refused path is one of the context, and not of the evidence of the step."""
    return path.partition(".")[0] not in EVIDENCE_ROOTS or (details or {}).get("source") == CONTEXT_SOURCE


def _notes_blank(step: PendingStepView) -> Blank:
    return NOTES_BLANK if step.needs_notes else OPTIONAL_NOTES_BLANK


def _key_blank(step: PendingStepView, path: str, details: Mapping[str, JsonScalar] | None) -> Blank:
    """Return the blank of a refused context path; a member is part of its whole key.

    What the step declares says more than the refusal, which names only what its check wanted.
    """
    known, refused = step.context.get(path), refused_blank(path, details)
    if known is None:
        return refused
    return known if known.choices or known.shape is not None else replace(known, shape=refused.shape)


def refused_blank(path: str, details: Mapping[str, JsonScalar] | None) -> Blank:
    """Return the blank of a context path that a refusal asks for; its details say which kind of value is wanted."""
    key, _, member = path.partition(".")
    wanted = (details or {}).get("wanted")
    return Blank(
        what=f"the value of {key}" + (f", whole and with its member {member}" if member else ""),
        shape=None if wanted in (None, "a value") else str(wanted),
    )


def _next_intent(facts: AnswerModel) -> NextIntent:
    """Return the closed-set hint of what is expected (ANS-21)."""
    if facts.ended is not None:
        return "rehydrate_only"
    if facts.step is None:
        return "complete"
    if facts.occasion == "rehydrate" or (facts.redirect is not None and facts.step.waiting is not None):
        return "rehydrate_only"
    waits = facts.awaited is not None or facts.step.needs_confirmation
    waits = waits or (facts.step.waiting is not None and facts.step.waiting.for_ == "approval")
    return "await_user_confirmation" if waits else "perform_pending_then_continue"


def _data(facts: AnswerModel, call: NextCall | None) -> ExecutionAnswer:
    preferences = facts.preferences
    blockers = None if facts.blockers is None else tuple(map(_blocker, facts.blockers.blockers))
    references = tuple(_reference(facts.occasion, reference) for reference in facts.references)
    return ExecutionAnswer(
        kind="blocked" if blockers is not None else "ok",
        run=_identity(facts),
        next_call=call,
        waiting=facts.step.waiting if facts.step is not None else None,
        state_token=facts.state_token,
        ack_token=None if _is_one_call(facts) else facts.ack_token,
        checkpoint_token=None if _is_one_call(facts) else facts.checkpoint_token,
        is_complete=facts.step is None and facts.ended is None,
        ended=facts.ended,
        next_intent=_next_intent(facts),
        fork=facts.fork,
        blockers=blockers,
        retryable=facts.ack_token is not None if blockers is not None else None,
        warnings=facts.warnings or None,
        preferences=None if preferences is None else _preferences(preferences),
        guidance=facts.guidance or None,
        answered=facts.answered,
        rests_on=facts.rests_on,
        recap=facts.recap,
        references=references or None,
        pending=_pending(facts.step),
    )


def is_ordinary(facts: AnswerModel) -> bool:
    """Say whether the answer is the next step after an accepted report, to be reported with the shown call.

    It does not repeat what an earlier answer said or its own call holds (ANS-16): the goal, the workflow's id, a second
    place for the `ackToken`, and a token for checkpoints, for which the `ackToken` serves.
    """
    return facts.blockers is None and _is_one_call(facts)


def _is_one_call(facts: AnswerModel) -> bool:
    """Say whether the answer to a report asks for one call alone, so that no second token can be mixed in (ANS-16)."""
    if facts.occasion != "advance" or facts.step is None or facts.ack_token is None:
        return False
    return facts.redirect is None and facts.awaited is None and facts.step.waiting is None


def _identity(facts: AnswerModel) -> RunIdentity:
    position = _position(facts.step)
    if is_ordinary(facts):
        return RunIdentity(label=facts.run.label, step=position)
    return facts.run.identity(position, is_full=facts.occasion != "advance")


def _blocker(blocker: Blocker) -> BlockerOut:
    return BlockerOut(
        code=blocker.code,
        pointer=blocker.pointer.to_json(),
        message=blocker.message,
        suggested_fix=blocker.suggested_fix,
        details=None if blocker.details is None else dict(blocker.details),
    )


def _preferences(preferences: Preferences) -> PreferencesOut:
    return PreferencesOut(autonomy=preferences.autonomy, risk_policy=preferences.risk_policy)


def _position(step: PendingStepView | None) -> StepPosition | None:
    if step is None:
        return None
    return StepPosition(number=step.number, total=step.total, pass_=step.loop.pass_ if step.loop is not None else None)


def _pending(step: PendingStepView | None) -> Pending | None:
    if step is None:
        return None
    return Pending(
        step_id=step.step_id,
        title=step.title,
        prompt=step.prompt,
        agent_role=step.agent_role,
        require_confirmation=step.needs_confirmation or None,
        loop=step.loop,
        parallel_with=step.parallel_with or None,
    )


def _reference(occasion: Occasion, reference: Reference) -> ReferenceOut:
    if occasion == "start":
        return ReferenceOut.of(reference)
    return ReferenceOut(title=reference.title, source=reference.source)


def _render_text(facts: AnswerModel, call: NextCall | None) -> str:
    parts = [_render_header(facts)]
    parts += [warned.in_one_line() for warned in facts.warnings]
    if facts.blockers is not None:
        parts.append(_render_blockers(facts.blockers, can_retry=facts.redirect is None or facts.ack_token is not None))
    if facts.ended is not None and facts.ended.note is not None:
        parts.append(f"The note about its end:\n\n{quoted(facts.ended.note)}")
    if facts.answered is not None:
        parts.append(_render_reply(facts.answered))
    if facts.preferences is not None:
        preferences = facts.preferences
        parts.append(f"Preferences: autonomy `{preferences.autonomy}`, risk policy `{preferences.risk_policy}`.")
    if facts.guidance:
        parts.append("**For the whole run**\n" + "\n".join(f"- {line}" for line in facts.guidance))
    if facts.references:
        lines = [_render_reference(facts.occasion, reference) for reference in facts.references]
        parts.append("**References**\n" + "\n".join(lines))
    if facts.rests_on is not None:
        parts.append(facts.rests_on.in_one_line())
    if facts.recap is not None:
        parts.append(facts.recap)
    if facts.step is not None:
        parts.append(render_step(facts.step))
    parts.append(_render_footer(facts, call))
    return "\n\n".join(parts)


def _render_header(facts: AnswerModel) -> str:
    head = facts.run.header(is_short=is_ordinary(facts))
    if facts.ended is not None:
        return f"{head} · {facts.ended.status}: {facts.ended.reason.replace('_', ' ')}"
    if facts.step is None:
        return f"{head} · complete"
    step = facts.step
    loop_pass = f", pass {step.loop.pass_} of at most {step.loop.max_iterations}" if step.loop is not None else ""
    line = f"{head} · step {step.number} of {step.total}{loop_pass}: {title_in_code(step.title)}"
    return f"{line} · {facts.where}" if facts.where else line


def _render_blockers(blockers: BlockerReport, *, can_retry: bool) -> str:
    """Render why the last attempt was refused; what to send instead only if it can still be sent."""
    lines = ["**Not accepted yet**"]
    for blocker in blockers.blockers:
        fix = f"\n  {blocker.suggested_fix}" if blocker.suggested_fix and can_retry else ""
        lines.append(f"- `{blocker.code}` {blocker.message}{fix}")
    return "\n".join(lines)


def _render_reply(answered: Answered) -> str:
    """Render each question and what the person answered."""
    is_claim = answered.assurance is not None
    lines = [f"**{'The client says that the' if is_claim else 'The'} user was asked and said yes**"]
    for one in answered.asks:
        ask = flat(one.ask)
        colon = "" if ask.endswith((".", "?", "!", ":")) else ":"
        answer = f"{colon}\n{indent(quoted(one.answer), '  ')}" if one.answer is not None else ""
        lines.append(f"- {ask}{answer}")
    if answered.comment is not None:
        lines.append(f"- Comment:\n{indent(quoted(answered.comment), '  ')}")
    return "\n".join(lines)


def render_step(step: PendingStepView) -> str:
    """Render a step as an agent receives it: its role, its prompt, whether a person must confirm it."""
    role = f"*{step.agent_role}*\n\n" if step.agent_role else ""
    confirm = "\n\nThis step needs the user's confirmation: ask before you continue." if step.needs_confirmation else ""
    return f"{role}{step.prompt}{confirm}"


def _render_reference(occasion: Occasion, reference: Reference) -> str:
    short = f"- {reference.title}: {reference.source}"
    if occasion != "start":
        return short
    weight = " (authoritative)" if reference.authoritative else ""
    return f"{short} — {reference.purpose}{weight}"


def _render_footer(facts: AnswerModel, call: NextCall | None) -> str:
    """Render the call to make. It shows one token, so that a reader cannot mix two (ANS-23)."""
    lines = ["---"]
    if facts.fork is not None:
        lines.append(facts.fork.in_one_line())
    if call is None:
        return "\n".join([*lines, _COMPLETE if facts.ended is None else _ENDED])
    instruction = _instruction(facts, *IN_TEXT)
    # With the title of its step, a small model copies the notes of the step before into fewer reports.
    notes = notes_words(facts.step.title if facts.step is not None else None)
    return "\n".join([*lines, f"{instruction}:", call.in_lines(notes)])


_COMPLETE = "Complete. Call no more tools; report the result to the user."

_ENDED = (
    "The run has ended; nothing more of it is recorded. Stop working on it and tell the user. To do the work after all,"
    " begin a new run with `start_workflow`, if the user wants it."
)


def _instruction(facts: AnswerModel, step: str, tool: str) -> str:
    """Return what to do before the call and when to make it, as the beginning of a sentence that the call ends."""
    waiting = facts.step.waiting if facts.step is not None else None
    if facts.redirect is not None:
        if waiting is None:
            return f"Next, call {tool} to see the current step"
        # A step that waits in vain is retried from the step before it, which can be redone on a new branch.
        why = f"{waiting.how} " if facts.blockers is None else ""
        return f"{why}Next, call {tool} to see the step before it"
    if facts.awaited is not None:
        return _approval_line(facts.awaited, tool)
    if facts.blockers is not None:
        return f"Do what is missing of {step}. Then call {tool} with"
    if waiting is not None:
        return f"{waiting.how} Then call {tool} with"
    return report_instruction(step, tool)


def _approval_line(awaited: PendingApproval, tool: str) -> str:
    if awaited.claim is None:
        return f"Nothing was recorded. Stop here. When the user is ready to answer, call {tool} again with"
    return (
        "Nothing was recorded. Ask the user. If they say yes, write into the artifact who confirmed what (it is kept"
        f" as your claim) and call {tool} again with the evidence of the step and"
    )


@frozen
class HumanInputRequired:
    """An attempt is complete except for an answer of a person.

    `subject` names what the answer is for, so that it counts for nothing else; `answer` is returned if the client
    cannot ask, or the person did not answer.
    """

    question: Question
    subject: str
    answer: Answer | Refusal
