"""The form that a person fills in, and the parser of the reply. The form is flat, because real clients show no other.

Pure: each rule can be tested without a client.
"""

from collections.abc import Mapping

from mcp import types

from interlock.engine.gates import Question, QuestionItem, Reply
from interlock.kernel.budgets import (
    ECHO_BYTES_MAX,
    LIST_DESCRIPTION_BYTES_MAX,
    QUESTION_BYTES_MAX,
    REPLY_BYTES_MAX,
    WORDS_BYTES_MAX,
)
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen
from interlock.kernel.text import has_surrogate, one_line, truncated, utf8_bytes

_CLOSING = "Confirm, or decline and give the reason in the comment."
_CLOSING_WITH_NOTE = (
    "Confirm. Or choose decline, write the reason in the comment, and submit the form. Without a reason nothing is"
    " decided, nor with a decline button beside the form, which sends none."
)
_BUTTONS = ("confirm", "decline")
_WARNING = {
    "needs_user_secret_or_token": "Do not type the secret here. Put it where it belongs, then confirm.",
    "needs_user_account_access": "Do not type a password here. Grant the access where it belongs, then confirm.",
}
"""Warnings for reasons whose answer must not pass through a model's client."""


@frozen
class Form:
    """What a client shows: a message, and a flat JSON Schema of the fields."""

    message: str
    schema: dict[str, Json]


def build_form(question: Question, *, notice: str = "") -> Form:
    """Return the form that asks a question. `notice` comes first in the message.

    Fields: `decision` (`confirm` or `decline`), `answer_<place>` for each ask with a text answer, `comment`.
    A text answer is optional, except for a choice. No answer is preselected.
    """
    decision: dict[str, Json] = {
        "type": "string",
        "title": "Decision",
        "description": "Confirm that this is true or allowed, or decline.",
        "enum": list(_BUTTONS),
    }
    asks = _asks_with_answer(question)
    properties: dict[str, Json] = {"decision": decision}
    properties |= {_field(place): _answer_schema(ask, place, question) for place, ask in asks.items()}
    properties["comment"] = _text_schema("Comment", _comment_words(question))
    required: list[Json] = ["decision", *(_field(place) for place, ask in asks.items() if _is_required(ask))]
    schema: dict[str, Json] = {"type": "object", "properties": properties, "required": required}
    return Form(message=_message(question, notice), schema=schema)


def reply_of(question: Question, result: types.ElicitResult, client: str) -> Reply:
    """Parse a filled-in form. An unreadable form counts as cancelled, and `fault` says why.

    Unknown fields are dropped. A text over its budget is truncated, with the marker.
    """
    content = result.content or {}
    if result.action != "accept":
        return Reply(action=result.action, client=client, answers={}, comment=_text_in(content, "comment"))
    fault = _find_fault(question, content)
    if fault is not None:
        return cancelled_reply(client, fault)
    comment = _text_in(content, "comment")
    if content["decision"] == "decline":
        return Reply(action="decline", client=client, answers={}, comment=comment)
    found = {str(place): _text_in(content, _field(place)) for place in _asks_with_answer(question)}
    answers = {place: text for place, text in found.items() if text is not None}
    return Reply(action="accept", client=client, answers=answers, comment=comment)


def cancelled_reply(client: str, fault: str) -> Reply:
    """Return the reply for an exchange without a usable result: a cancellation, which decides nothing."""
    return Reply(action="cancel", client=client, answers={}, fault=fault)


def _asks_with_answer(question: Question) -> dict[int, QuestionItem]:
    return {place: ask for place, ask in enumerate(question.asks, 1) if ask.wants_answer}


def _is_required(ask: QuestionItem) -> bool:
    return ask.reason == "needs_user_choice"


def _field(place: int) -> str:
    return f"answer_{place}"


def _answer_schema(ask: QuestionItem, place: int, question: Question) -> Json:
    title = "Answer" if len(question.asks) == 1 else f"Answer to {place}"
    schema = _text_schema(title, one_line(ask.ask, LIST_DESCRIPTION_BYTES_MAX))
    return schema | {"minLength": 1} if _is_required(ask) else schema


def _text_schema(title: str, description: str) -> dict[str, Json]:
    return {"type": "string", "title": title, "description": description, "maxLength": REPLY_BYTES_MAX}


def _message(question: Question, notice: str) -> str:
    texts = [ask.ask for ask in question.asks]
    fixed = utf8_bytes(_render_message(question, notice, ["-"] * len(texts)))
    if texts and fixed + sum(map(utf8_bytes, texts)) > QUESTION_BYTES_MAX:
        # Each ask is truncated by itself: one long ask must not hide the next one.
        share = max((QUESTION_BYTES_MAX - fixed) // len(texts), ECHO_BYTES_MAX)
        texts = [truncated(text, share) for text in texts]
    return truncated(_render_message(question, notice, texts), QUESTION_BYTES_MAX)


def _render_message(question: Question, notice: str, texts: list[str]) -> str:
    paragraphs = [notice, one_line(question.title, WORDS_BYTES_MAX)]
    for place, (ask, text) in enumerate(zip(question.asks, texts, strict=True), 1):
        kind = f" ({ask.subject})" if ask.choice_kind else ""
        paragraphs.append(f"{place}. {text}{kind}" if len(texts) > 1 else f"{text}{kind}")
        paragraphs.append(_WARNING.get(ask.reason, ""))
    return "\n\n".join(paragraph for paragraph in (*paragraphs, _closing(question)) if paragraph)


def _closing(question: Question) -> str:
    """Say what each button means: nobody decides what they did not read."""
    closing = _CLOSING_WITH_NOTE if _needs_note(question) else _CLOSING
    named = _choices(question)
    if named is None:
        return closing
    if len(named) > len(_BUTTONS):
        note = f" {_comment_words(question)}" if _needs_note(question) else ""
        return f"Answer with one of: {', '.join(named)}. Then confirm. If you decline, nothing is decided.{note}"
    means = ", ".join(f"{button}: {name}" for button, name in zip(_BUTTONS, named, strict=True))
    return f"{closing} What they mean: {means}."


def _choices(question: Question) -> tuple[str, ...] | None:
    return next((ask.choices for ask in question.asks if ask.choices), None)


def _needs_note(question: Question) -> bool:
    return any(ask.needs_note for ask in question.asks)


def _comment_words(question: Question) -> str:
    if not _needs_note(question):
        return "Anything to record with the decision."
    named = _choices(question)
    if named is None or len(named) == len(_BUTTONS):
        return "The reason. To decline, you need one."
    return f"Each answer but {named[0]} needs the reason in the comment."


def _find_fault(question: Question, content: Mapping[str, object]) -> str | None:
    """Return why an accepted form cannot be read, or None."""
    decision = content.get("decision")
    if decision not in _BUTTONS:
        return f"`decision` is {_describe(decision)}, not `confirm` or `decline`"
    asks = {_field(place): ask for place, ask in _asks_with_answer(question).items()}
    for field in (*asks, "comment"):
        if not _is_text(content.get(field)):
            return f"`{field}` is {_describe(content[field])}, not a string"
    if decision == "confirm":
        for field, ask in asks.items():
            if _is_required(ask) and _text_in(content, field) is None:
                return f"`{field}` is missing, and a choice needs it"
    return None


def _is_text(value: object) -> bool:
    """Say whether a value is None or a string. Half of a surrogate pair cannot be recorded."""
    if value is None:
        return True
    return isinstance(value, str) and not has_surrogate(value)


def _text_in(content: Mapping[str, object], field: str) -> str | None:
    value = content.get(field)
    if not isinstance(value, str) or not value.strip() or not _is_text(value):
        return None
    return truncated(value.strip(), REPLY_BYTES_MAX)


def _describe(value: object) -> str:
    return "missing" if value is None else one_line(repr(value), ECHO_BYTES_MAX)
