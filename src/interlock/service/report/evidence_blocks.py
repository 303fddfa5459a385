"""What a step left behind as blocks of a page: artifacts as tables, context changes, answers, refused attempts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from interlock.engine.request import REPLY_CONTENT_TYPE
from interlock.kernel.canonical import Json, readable_json
from interlock.record.world import CHECK, EXPIRED, LOST, RECEIPT, UNCOUNTED, check_end, exit_words
from interlock.service.report.document import Block, Bullets, Fold, Line, Notes, Paragraph, Prose, Table, UntrustedText
from interlock.service.report.lines import artifact_line, finding_line
from interlock.service.report.step_report import Artifact, RefusedAttempt, StepReport
from interlock.views.outside import NOT_CONFIGURED, Received

_FIRST_FIELDS = ("verdict", "decision", "summary")
"""Fields that readers look for: shown before the others."""
_PLACES = {"directory", "program", "root"}
"""Fields of a receipt that name a place on somebody's disk: not shown to other people."""


def artifact_blocks(artifact: Artifact) -> Iterator[Block]:
    """Yield an artifact: its name and its fields as a table; a list of objects is a table of its own.

    A person's recorded answer is left out: `answer_line` shows it.
    """
    if artifact.content_type == REPLY_CONTENT_TYPE and artifact.is_readable:
        return
    yield Bullets((artifact_line(artifact),))
    content = artifact.content
    if not isinstance(content, dict):
        if content is not None:
            yield Table(heads=("Field", "Value"), rows=((("value",), value_line(content)),))
        return
    names = [name for name in _FIRST_FIELDS if name in content]
    names += [name for name in sorted(content) if name not in names and name != "kind"]
    tables = {name: rows for name in names if (rows := _objects(content[name])) is not None}
    fields = [name for name in names if name not in tables]
    if fields:
        rows = tuple(((UntrustedText(name),), value_line(content[name])) for name in fields)
        yield Table(heads=("Field", "Value"), rows=rows)
    for name, objects in tables.items():
        yield Paragraph((UntrustedText(name), f": {len(objects)}"))
        yield object_table(objects)


def object_table(objects: Sequence[Mapping[str, Json]]) -> Table:
    """Return objects as a table: a row for each, a column for each field of any of them, `name` first."""
    names = sorted({name for one in objects for name in one}, key=lambda name: (name not in ("name", "severity"), name))
    rows = tuple(tuple(value_line(one[name]) if name in one else () for name in names) for one in objects)
    return Table(heads=tuple(UntrustedText(name) for name in names), rows=rows)


def value_line(value: Json) -> Line:
    """Return a JSON value on one line: text as prose, anything else as compact JSON."""
    if isinstance(value, str):
        return (Prose(value),)
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        texts = cast("list[str]", value)
        return tuple(part for at, text in enumerate(texts) for part in ((" · ",) if at else ()) + (Prose(text),))
    return (UntrustedText(readable_json(value)),)


def context_table(step: StepReport) -> Iterator[Table]:
    """Yield what a step changed in the context, if it changed anything."""
    if step.context:
        rows = tuple(
            (
                (UntrustedText(one.key),),
                value_line(one.before) if one.change != "added" else ("not set",),
                value_line(one.after) if one.change != "removed" else ("removed",),
                ("the plan, from this step's evidence" if one.is_computed else "the report",),
            )
            for one in step.context
        )
        yield Table(heads=("Context", "Before", "After", "Set by"), rows=rows)


_ASKED_CLAIM = "a person was asked, as is only claimed, through "


def answer_lines(step: StepReport) -> Iterator[Line]:
    """Yield what a person was asked and answered, and what the agent says that a person confirmed."""
    if step.answered is not None:
        asked = _ASKED_CLAIM if step.answered.assurance is not None else "a person was asked through "
        for ask in step.answered.asks:
            said: Line = (Prose(ask.answer),) if ask.answer is not None else ("yes",)
            through = UntrustedText(step.answered.client)
            yield asked, through, ": ", Prose(ask.ask), " The answer: ", *said
        if step.answered.comment is not None:
            yield "the person added: ", Prose(step.answered.comment)
    for content in claims_of(step):
        who = content.get("confirmedBy")
        by: Line = (", confirmed by: ", Prose(who)) if isinstance(who, str) else ()
        statement = content.get("statement")
        words: Line = ("; in these words: ", Prose(statement)) if isinstance(statement, str) else ()
        yield "a confirmation that only the agent claims (Interlock asked nobody)", *by, *words


def outside_lines(step: StepReport, *, is_for_others: bool) -> Iterator[Line]:
    """Yield the events about a step, each with how well it is known, and what it sent (WORLD-2)."""
    for event in step.received:
        if event.data.event == EXPIRED:
            yield ("the time of the step was over, and its event had not arrived",)
            continue
        known = f" ({step.levels[event.event_id]}, via {event.data.via})"
        is_lost = event.data.event == CHECK and event.data.fields.get("ended") == LOST
        lost = (f"; {check_end(event.data.fields)}",) if is_lost else ()
        by = (*_signer(step, event), *lost, *not_taken(step, event))
        hidden = _PLACES if is_for_others and event.data.event == RECEIPT else ()
        fields = value_line({name: value for name, value in event.data.fields.items() if name not in hidden})
        yield "received the event ", UntrustedText(event.data.event), known, *by, ": ", *fields
    for intent in step.sent:
        state = intent.state or "not sent yet"
        through: Line = ()
        if intent.settled is not None and intent.settled.channel is not None:
            through = (" through the channel ", UntrustedText(intent.settled.channel))
        yield "intent ", UntrustedText(intent.sends), f": {state}", *through


def _signer(step: StepReport, event: Received) -> Line:
    """Return who signed an event, and that the key is not configured here; empty if nobody signed it."""
    if event.data.signed is None:
        return ()
    unknown = (f" with a key that {NOT_CONFIGURED}",) if event.event_id in step.unknown_keys else ()
    return (", signed by ", UntrustedText(event.data.signed.source), *unknown)


def not_taken(step: StepReport, event: Received) -> Line:
    """Say of an event about a step that the step did not take it; empty if it took it."""
    if event.event_id in step.took:
        return ()
    if event.data.event in UNCOUNTED:
        return ("; the report of the step did not use it",) if step.is_done else ()
    return ("; the step did not continue with it" if step.is_done else "; the step has not continued with it",)


def check_line(step: StepReport, event: Received) -> Line:
    """Return the result of a command that Interlock ran itself, or that a bundle says it ran."""
    fields = event.data.fields
    word = "passed" if fields.get("passed") else "did not pass"
    name, command = UntrustedText(str(fields.get("check"))), UntrustedText(str(fields.get("command")))
    ran = "according to the imported bundle, Interlock ran" if event.event_id in step.imported else "Interlock ran"
    return f"{ran} the check ", name, " (", command, f"): it {word}, {_ended(event)}"


def receipt_line(step: StepReport, event: Received) -> Line:
    """Return how a command ended that `interlock witness` ran, with how well it is known."""
    known = f" ({step.levels[event.event_id]}, via {event.data.via})"
    return "`interlock witness` ran ", UntrustedText(str(event.data.fields.get("command"))), f": {_ended(event)}", known


def _ended(event: Received) -> str:
    return f"{exit_words(event.data.fields)}, {event.data.fields.get('seconds')} s"


def approval_line(step: StepReport, event: Received) -> Line:
    """Return the answer to a question of the workflow, with how well it is known; or that no person was asked."""
    fields = event.data.fields
    if event.data.via == "clock":
        return "no person was asked the question, so Interlock recorded (via clock): ", Prose(str(fields.get("choice")))
    note = fields.get("note")
    said: Line = ("; the person added: ", Prose(str(note))) if note else ()
    known: Line = (f" ({step.levels[event.event_id]}, via {event.data.via})", *_signer(step, event))
    return "the question to a person was answered", *known, ": ", Prose(str(fields.get("choice"))), *said


def claims_of(step: StepReport) -> Iterator[Mapping[str, Json]]:
    """Yield the agent's own statements that a person confirmed."""
    for artifact in step.artifacts:
        is_reply = artifact.content_type == REPLY_CONTENT_TYPE
        if artifact.kind == "wr.confirmation" and not is_reply and isinstance(artifact.content, dict):
            yield artifact.content


def refused_blocks(attempt: RefusedAttempt, number: int) -> Iterator[Block]:
    """Yield a refused attempt: when, why, and what had been sent."""
    at: Line = (", ", UntrustedText(attempt.at)) if attempt.at is not None else ()
    reasons = [(f"attempt {number} was refused", *at, ": ", *finding_line(one)) for one in attempt.blockers]
    yield Bullets(tuple(reasons))
    sent: list[Block] = [Notes(attempt.notes)] if attempt.notes is not None else []
    for artifact in attempt.artifacts:
        sent += artifact_blocks(artifact)
    if sent:
        yield Fold(label=f"What attempt {number} sent", blocks=tuple(sent))


def _objects(value: Json) -> list[dict[str, Json]] | None:
    """Return the value if it is a list of objects, as checks and findings are."""
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        return cast("list[dict[str, Json]]", value)
    return None
