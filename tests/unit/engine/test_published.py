"""Parts of answers: what is optional is left out, and what may be null says so."""

from msgspec import NODEFAULT
from msgspec.structs import fields

from interlock.engine.answer.identity import RunIdentity
from interlock.engine.answer.structure import ExecutionAnswer, NextCall
from interlock.engine.published import Published
from interlock.server.tools import TOOLS


def parts_below(part: type[Published]) -> set[type[Published]]:
    return {part}.union(*(parts_below(one) for one in part.__subclasses__()))


def test_an_optional_field_is_left_out_and_one_that_must_be_there_may_be_null() -> None:
    answer = ExecutionAnswer(
        kind="ok",
        run=RunIdentity(label="ab12", workflow_id="test.demo"),
        next_call=None,
        state_token="st.here",
        is_complete=True,
        next_intent="complete",
        pending=None,
    )
    assert answer.to_json() == {
        "kind": "ok",
        "run": {"label": "ab12", "workflowId": "test.demo"},
        "nextCall": None,
        "stateToken": "st.here",
        "isComplete": True,
        "nextIntent": "complete",
        "pending": None,
    }


def test_a_null_within_a_call_is_sent() -> None:
    call = NextCall(tool="continue_workflow", arguments={"context": {"cause": None}}, fill=())
    assert call.to_json()["arguments"] == {"context": {"cause": None}}


def test_only_what_says_nothing_is_a_default() -> None:
    """What has its default is left out, so any other default would be lost on the way."""
    parts = parts_below(Published)
    assert {tool.output for tool in TOOLS} < parts
    for part in parts:
        assert {field.default for field in fields(part)} <= {None, "", NODEFAULT}
