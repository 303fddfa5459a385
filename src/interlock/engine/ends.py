"""Decides whether a run ends otherwise than by its last step: only a person ends one (END-5, END-6). Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias, get_args

from interlock.engine.gates import NO_APPROVAL, Answered, Question, QuestionItem, Reply
from interlock.engine.request import MemberFault, Request
from interlock.kernel.blanks import Blank
from interlock.kernel.budgets import AUTHORED_SHARE_BYTES_MAX, WORK_NOTE_BYTES_MAX, WORK_REF_BYTES_MAX, WORK_REFS_MAX
from interlock.kernel.canonical import Json, digest_of_bytes
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import RunId, SessionId
from interlock.kernel.shape import ShapeError
from interlock.kernel.text import one_line
from interlock.record.append_plan import AppendPlan, EventDraft
from interlock.record.events import Actor
from interlock.record.payloads import Work, WorkReason, WorkRecorded

WORK_KIND = "wr.work_record"
"""The artifact with which an agent asks for the end of its run, or leaves the work on a step."""
RUN_WORKS: tuple[Work, ...] = ("cancelled", "failed")
STEP_WORKS: tuple[Work, ...] = ("released", "failed")
WORK_MEMBERS = ("work", "reason", "note", "refs")
"""The members of the artifact beside its `kind`."""


def parse_work(artifact: Mapping[str, Json], allowed: Sequence[Work]) -> WorkRecorded | tuple[MemberFault, ...]:
    """Parse the artifact `wr.work_record`, in which `work` is one of these, or return its faults."""
    faults = {one.member: one for one in _member_faults(artifact, allowed)}
    try:
        record = WorkRecorded.of_json({name: artifact[name] for name in WORK_MEMBERS if name in artifact})
    except ShapeError as error:
        for member in (str(one["loc"][0]) for one in error.faults):
            faults.setdefault(member, MemberFault(member=member, found="It is too long or no text.", fix=_BUDGETS))
        return tuple(faults.values())
    return tuple(faults.values()) or record


def _member_faults(artifact: Mapping[str, Json], allowed: Sequence[Work]) -> Iterator[MemberFault]:
    for name in artifact:
        if name not in ("kind", *WORK_MEMBERS):
            yield MemberFault(member=name, found="It is no member of `wr.work_record`.", fix="Leave it out.")
    for member, choices in (("work", allowed), ("reason", get_args(WorkReason))):
        if artifact.get(member) not in choices:
            listed = ", ".join(f"`{choice}`" for choice in choices)
            found = f"`{member}` must be one of: {listed}."
            yield MemberFault(member=member, found=found, fix=_WHERE, blank=Blank(choices=tuple(choices)))
    if "note" in artifact and artifact["note"] in (None, ""):
        yield MemberFault(member="note", found="The note is empty.", fix="Write why, or leave it out.")


_WHERE = (
    "`cancelled` and `failed` end a run, with `continue_workflow` and an `ackToken`; `released` and `failed` leave a"
    " step, with `checkpoint_workflow`."
)
_BUDGETS = (
    f"`note` is a text of at most {WORK_NOTE_BYTES_MAX} bytes, `refs` a list of 1 to {WORK_REFS_MAX} texts of at most"
    f" {WORK_REF_BYTES_MAX} bytes."
)


def work_in(request: Request) -> tuple[WorkRecorded | None, Request]:
    """Split a request whose artifacts were checked into its record of how work ended, and the rest."""
    records = [one for one in request.artifacts if one.get("kind") == WORK_KIND]
    if not records:
        return None, request
    work = parse_work(records[0], get_args(Work))
    assert isinstance(work, WorkRecorded), "arguments with such a fault are refused before"
    return work, replace(request.without(WORK_KIND), asking=NO_APPROVAL)


def is_same_end(one: WorkRecorded, other: WorkRecorded) -> bool:
    """Say whether a second end repeats the first: the same outcome for the same reason (END-6)."""
    return (one.work, one.reason) == (other.work, other.reason)


@frozen
class RunEnding:
    """A call that asks for the end of a run: for which run, what to record, who asks, and a person's reply if any."""

    session: SessionId
    run: RunId
    title: str
    is_complete: bool
    work: WorkRecorded
    actor: Actor | None
    reply: Reply | None = None


@frozen
class Ended:
    """The plan records the end of the run."""

    plan: AppendPlan


@frozen
class EndNotAgreed:
    """No person agreed, so nothing is recorded: the question to ask, and why there is no agreement yet."""

    question: Question
    why: str


@frozen
class RunComplete:
    """The last step of the run is done: nothing is left to end."""


EndDecision: TypeAlias = Ended | EndNotAgreed | RunComplete


def decide_end(ending: RunEnding) -> EndDecision:
    """Decide whether a run ends. A call by a person needs no question; any other call needs a person's yes."""
    if ending.is_complete:
        return RunComplete()
    if ending.actor is not None and ending.actor.type == "human":
        return Ended(plan=_plan(ending, None))
    asks = (QuestionItem(reason="needs_user_approval", ask=_ask(ending.work)),)
    reply = ending.reply
    if reply is not None and reply.counts_as_yes("observed"):
        return Ended(plan=_plan(ending, reply.record(asks)))
    return EndNotAgreed(question=Question(title=ending.title, asks=asks), why=_why(reply))


def _ask(work: WorkRecorded) -> str:
    verb = "Cancel this run" if work.work == "cancelled" else "End this run as failed"
    note = f" The agent's note: {one_line(work.note, WORK_NOTE_BYTES_MAX)!r}." if work.note is not None else ""
    return f"{verb}? It cannot be continued afterwards. Reason: {work.reason.replace('_', ' ')}.{note}"


def _why(reply: Reply | None) -> str:
    if reply is None:
        return "Only a person can end a run, and this client cannot ask one."
    unheard = reply.unheard()
    if unheard is not None:
        return unheard
    comment = f" They said: {one_line(reply.comment, AUTHORED_SHARE_BYTES_MAX)!r}" if reply.comment else ""
    return f"The user was asked (through {reply.client}) and did not agree to end the run.{comment}"


def _plan(ending: RunEnding, answered: Answered | None) -> AppendPlan:
    """Plan the one event that ends a run, and the record of the person's answer."""
    if answered is None:
        return AppendPlan(session=ending.session, drafts=(EventDraft(data=ending.work, run=ending.run),))
    written = answered.to_bytes()
    work = ending.work.changed(answer_ref=digest_of_bytes(written))
    return AppendPlan(
        session=ending.session,
        drafts=(EventDraft(data=work, run=ending.run),),
        artifacts=((digest_of_bytes(written), written),),
    )


def without_answer(work: WorkRecorded) -> WorkRecorded:
    """Return what a call asked to record, without the person's answer to it."""
    return work.changed(answer_ref=None)
