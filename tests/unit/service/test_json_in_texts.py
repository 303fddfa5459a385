"""JSON that is sent as a text is judged by the rules of a line (ANS-11)."""

import pytest

from interlock.kernel.errors import ErrorCode
from interlock.testing.harness import Harness, linear_workflow

pytestmark = pytest.mark.inv("ANS-11")

CONTINUE = "continue_workflow"


@pytest.fixture
def memory() -> Harness:
    return Harness.in_memory(linear_workflow("test.abc", "a", "b"))


@pytest.mark.parametrize("argument", ["output", "context", "preferences", "artifacts", "arguments"])
@pytest.mark.parametrize(
    ("inner", "fault"),
    [
        ('{"verdict": "rejected", "verdict": "approved"}', "the key 'verdict' occurs twice"),
        ('{"a": {"verdict": 1, "\\u0076erdict": 2}}', "the key 'verdict' occurs twice"),
        ('{"a": NaN}', "NaN, which is no JSON value"),
        ('{"a": "x\\ud800"}', "half of a surrogate pair"),
        ('{"x\\ud800": 1}', "half of a surrogate pair"),
    ],
)
def test_a_text_of_json_is_judged_by_the_rules_of_a_line(
    memory: Harness, argument: str, inner: str, fault: str
) -> None:
    sent = {"output": {"artifacts": f"[{inner}]"}} if argument == "artifacts" else {argument: inner}
    refused = memory.call(CONTINUE, {"ackToken": memory.start("test.abc").ack, **sent})
    assert refused.code is ErrorCode.VALIDATION_ERROR
    if argument != "arguments":
        assert fault in refused["message"]
    assert refused["details"]["correctedCall"]["arguments"].keys() == {"ackToken"}
