from typing import Any

import pytest
from mcp import types
from mcp_types.methods import validate_client_result

from interlock.engine.gates import Question, QuestionItem, Reply, UserReason
from interlock.kernel.budgets import QUESTION_BYTES_MAX, REPLY_BYTES_MAX
from interlock.kernel.text import TRUNCATION_MARKER, utf8_bytes
from interlock.server.elicitation.form import build_form, reply_of

NEW, OLD = "2025-11-25", "2025-06-18"
CONFIRMED = {"decision": "confirm"}
MIXED = Question(
    title="Release, step 3 of 4: Publish",
    asks=(
        QuestionItem(reason="needs_user_approval", ask="Publish it?"),
        QuestionItem(reason="needs_user_choice", ask="Which region?"),
        QuestionItem(reason="needs_user_artifact", ask="Where is the logo?"),
    ),
)


def asking(reason: UserReason, ask: str = "Please.") -> Question:
    return Question(title="T", asks=(QuestionItem(reason=reason, ask=ask),))


def fields_of(question: Question) -> dict[str, Any]:
    properties: Any = build_form(question).schema["properties"]
    return properties


def read(question: Question, content: Any, action: Any = "accept") -> Reply:
    return reply_of(question, types.ElicitResult.model_construct(action=action, content=content), "pen")


def test_one_ask_stands_in_the_authors_words_below_the_title() -> None:
    message = build_form(asking("needs_user_approval", "Publish *it*?\n\nReally?")).message
    assert message == "T\n\nPublish *it*?\n\nReally?\n\nConfirm, or decline and give the reason in the comment."


@pytest.mark.inv("APPR-2")
@pytest.mark.parametrize(
    ("choices", "words"),
    [
        (("tonight", "now"), "What they mean: confirm: tonight, decline: now."),
        (("never", "now", "later"), "Answer with one of: never, now, later. Then confirm. If you decline, nothing is"),
    ],
)
def test_the_form_says_what_each_button_means_however_long_the_text_is(choices: tuple[str, ...], words: str) -> None:
    reason: UserReason = "needs_user_choice" if len(choices) > 2 else "needs_user_approval"
    asked = QuestionItem(reason=reason, ask="x" * 2 * QUESTION_BYTES_MAX, choices=choices)
    assert words in build_form(Question(title="T", asks=(asked,))).message


@pytest.mark.inv("APPR-10")
def test_the_form_says_which_answers_need_a_note() -> None:
    two = QuestionItem(reason="needs_user_approval", ask="Do it?", choices=("go", "stop"), needs_note=True)
    more = QuestionItem(reason="needs_user_choice", ask="Do it?", choices=("go", "stop", "later"), needs_note=True)
    form = build_form(Question(title="T", asks=(two,)))
    assert "nor with a decline button beside the form" in form.message
    assert form.message.endswith("What they mean: confirm: go, decline: stop.")
    assert fields_of(Question(title="T", asks=(two,)))["comment"]["description"].endswith("To decline, you need one.")
    several = Question(title="T", asks=(more,))
    words = "Each answer but go needs the reason in the comment."
    assert build_form(several).message.endswith(words)
    assert fields_of(several)["comment"]["description"] == words


def test_several_asks_are_numbered_and_a_field_carries_the_number_of_its_ask() -> None:
    form = build_form(MIXED)
    assert form.message.startswith(
        "Release, step 3 of 4: Publish\n\n1. Publish it?\n\n2. Which region?\n\n3. Where is the logo?\n\n"
    )
    assert list(fields_of(MIXED)) == ["decision", "answer_2", "answer_3", "comment"]
    assert form.schema["required"] == ["decision", "answer_2"]
    assert fields_of(MIXED)["answer_2"]["title"] == "Answer to 2"
    assert fields_of(MIXED)["answer_2"]["description"] == "Which region?"


def test_a_notice_stands_before_everything_else() -> None:
    assert build_form(MIXED, notice="Once more.").message.startswith("Once more.\n\nRelease")


@pytest.mark.parametrize("reason", ["needs_user_secret_or_token", "needs_user_account_access"])
def test_whoever_is_asked_for_a_secret_is_asked_not_to_type_it(reason: UserReason) -> None:
    assert "Do not type" in build_form(asking(reason, "x" * 2 * QUESTION_BYTES_MAX)).message


def test_a_secret_has_no_field() -> None:
    assert list(fields_of(asking("needs_user_secret_or_token"))) == ["decision", "comment"]


@pytest.mark.inv("APPR-4")
def test_no_answer_is_preselected() -> None:
    fields = fields_of(MIXED)
    assert fields["decision"]["enum"] == ["confirm", "decline"]
    assert [name for name, field in fields.items() if "default" in field] == []


@pytest.mark.parametrize("count", [1, 2, 7, 100])
@pytest.mark.parametrize("char", ["x", "ä"])
def test_a_long_question_keeps_its_budget_and_the_beginning_of_every_ask_that_fits(count: int, char: str) -> None:
    asks = tuple(QuestionItem(reason="needs_user_approval", ask=f"ask {at} " + char * 5_000) for at in range(count))
    message = build_form(Question(title="T" * 5_000, asks=asks)).message
    assert utf8_bytes(message) <= QUESTION_BYTES_MAX
    assert TRUNCATION_MARKER in message
    shown = [at for at in range(count) if f"{at + 1}. ask {at} " in message or count == 1]
    assert shown == list(range(count)) or count == 100


def test_a_short_ask_beside_a_long_one_that_fits_is_not_cut() -> None:
    asks = (
        QuestionItem(reason="needs_user_approval", ask="x" * 3_000),
        QuestionItem(reason="needs_user_approval", ask="short"),
    )
    assert TRUNCATION_MARKER not in build_form(Question(title="T", asks=asks)).message


def test_a_confirmed_form_is_accepted_with_its_answers_by_place() -> None:
    content = CONFIRMED | {"answer_2": " eu-1 ", "answer_3": "", "comment": "go", "answer_9": "who asked?"}
    assert read(MIXED, content) == Reply(action="accept", client="pen", answers={"2": "eu-1"}, comment="go")


def test_a_form_that_declines_is_a_decline_with_the_comment_and_needs_no_answers() -> None:
    content = {"decision": "decline", "comment": "too early"}
    assert read(MIXED, content) == Reply(action="decline", client="pen", answers={}, comment="too early")


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_dialog_that_was_declined_or_dismissed_is_not_read_as_confirmed(action: str) -> None:
    assert read(MIXED, CONFIRMED | {"answer_2": "eu"}, action) == Reply(action=action, client="pen", answers={})  # type: ignore[arg-type]  # of the parameters


UNREADABLE: list[tuple[Any, str]] = [
    (None, "`decision` is missing"),
    ({}, "`decision` is missing"),
    ({"decision": "yes", "answer_2": "eu"}, "`decision` is 'yes'"),
    ({"decision": True, "answer_2": "eu"}, "`decision` is True"),
    ({"decision": ["confirm"], "answer_2": "eu"}, "`decision` is ['confirm']"),
    (CONFIRMED, "`answer_2` is missing"),
    (CONFIRMED | {"answer_2": "  "}, "`answer_2` is missing"),
    (CONFIRMED | {"answer_2": 5}, "`answer_2` is 5"),
    (CONFIRMED | {"answer_2": "eu", "answer_3": ["a"]}, "`answer_3` is ['a']"),
    (CONFIRMED | {"answer_2": "eu", "comment": 1}, "`comment` is 1"),
    (CONFIRMED | {"answer_2": "\ud800"}, "`answer_2` is"),
    ({"decision": "x" * 10_000}, "`decision` is 'xxx"),
]


@pytest.mark.parametrize(("content", "fault"), UNREADABLE)
def test_a_form_that_cannot_be_read_counts_as_cancelled_and_says_why(content: Any, fault: str) -> None:
    reply = read(MIXED, content)
    assert (reply.action, reply.answers, reply.comment) == ("cancel", {}, None)
    assert reply.fault is not None
    assert reply.fault.startswith(fault)
    assert utf8_bytes(reply.fault) < 200


def test_an_answer_over_its_budget_is_cut_with_the_marker() -> None:
    reply = read(MIXED, CONFIRMED | {"answer_2": "x" * 100_000})
    assert utf8_bytes(reply.answers["2"]) <= REPLY_BYTES_MAX
    assert reply.answers["2"].endswith(TRUNCATION_MARKER)


@pytest.mark.parametrize("version", [OLD, NEW])
def test_what_a_form_asks_for_is_what_a_client_may_send_back(version: str) -> None:
    sent = {"action": "accept", "content": CONFIRMED | {"answer_2": "eu"}}
    validate_client_result("elicitation/create", version, sent)
    assert reply_of(MIXED, types.ElicitResult.model_validate(sent), "pen").action == "accept"
