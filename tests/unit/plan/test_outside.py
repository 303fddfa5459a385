"""What the manifest and the checks say of events and intents that a workflow declares."""

import pytest
from tests.support.flow import Document, compiled, declared, document, loop, step

from interlock.define.diagnostics import Diagnostics
from interlock.define.document import WorkflowDocument
from interlock.define.front import parse_workflow
from interlock.plan.compile.compiler import Compiled, compile_workflow

INPUTS = [
    declared("room", required=False),
    declared("status", required=False),
    declared("count", "number"),
    declared("tags", "list"),
    declared("speed", choices=["fast", "slow"], required=False),
]
EMIT: Document = {"kind": "team.notify", "fields": {"text": {"value": "Built"}, "room": {"from": "room"}}}
APPROVE: Document = {"type": "approve", "id": "ask", "title": "Ask", "question": "Yes?"}
AWAIT: Document = {"type": "await", "id": "ci", "title": "CI", "event": "ci.finished", "fields": {"status": "string"}}


def diagnostics(*steps: Document) -> Diagnostics:
    parsed = parse_workflow(document(*steps, inputs=INPUTS))
    if not isinstance(parsed, WorkflowDocument):
        return parsed
    found = compile_workflow(parsed)
    return found.warnings if isinstance(found, Compiled) else found


@pytest.mark.inv("WORLD-8")
def test_the_manifest_lists_events_and_intents_in_plan_order() -> None:
    workflow = compiled(
        step("a", emit=[{**EMIT, "mirror": {"status": "text"}}]), {**AWAIT, "assurance": "signed"}, inputs=INPUTS
    )
    assert workflow.adapter is not None
    assert [one.to_json() for one in workflow.adapter.events] == [
        {"step": "ci", "event": "ci.finished", "fields": {"status": "string"}, "assurance": "signed"}
    ]
    assert [one.to_json() for one in workflow.adapter.intents] == [
        {"step": "a", "sends": "team.notify", "fields": ["room", "text"], "mirror": {"status": "text"}}
    ]
    assert workflow.set_by["status"] == ("a",)
    assert workflow.sends == ("team.notify",)
    plain = compiled(step("a"), inputs=INPUTS)
    assert plain.adapter is not None
    assert "events" not in plain.adapter.to_json()


FAULTS: dict[str, tuple[tuple[Document, ...], str, str]] = {
    "an intent of a reserved kind": (
        (step("a", emit=[{**EMIT, "kind": "wr.notify"}]),),
        "steps[0].emit[0].kind",
        "wrong_value",
    ),
    "an event of a reserved kind": (({**AWAIT, "event": "wr.approval"},), "steps[0].event", "wrong_value"),
    "a kind without a namespace": (
        (step("a", emit=[{**EMIT, "kind": "notify"}]),),
        "steps[0].emit[0].kind",
        "bad_id",
    ),
    "a field of no key": (
        (step("a", emit=[{**EMIT, "fields": {"room": {"from": "rom"}}}]),),
        "steps[0].emit[0].fields.room.from",
        "undeclared_key",
    ),
    "a field with two values": (
        (step("a", emit=[{**EMIT, "fields": {"room": {"from": "room", "value": 1}}}]),),
        "steps[0].emit[0].fields.room",
        "wrong_value",
    ),
    "a mirror of no field": (
        (step("a", emit=[{**EMIT, "mirror": {"status": "txt"}}]),),
        "steps[0].emit[0].mirror.status",
        "undeclared_key",
    ),
    "a mirror into no key": (
        (step("a", emit=[{**EMIT, "mirror": {"state": "text"}}]),),
        "steps[0].emit[0].mirror.state",
        "undeclared_key",
    ),
    "a key that is set and mirrored": (
        (step("a", emit=[{**EMIT, "mirror": {"status": "text"}}], set=[{"key": "status", "value": "x"}]),),
        "steps[0].emit[0].mirror.status",
        "duplicate_write",
    ),
    "a field that the event has not": (
        ({**AWAIT, "set": [{"key": "status", "from": "event.state"}]},),
        "steps[0].set[0].from",
        "undeclared_key",
    ),
    "an event where nothing waits": (
        (step("a", set=[{"key": "status", "from": "event.status"}]),),
        "steps[0].set[0].from",
        "undeclared_key",
    ),
    "an event that no sender can make": (({**AWAIT, "assurance": "executed"},), "steps[0].assurance", "wrong_value"),
    "a question with one answer twice": (
        ({**APPROVE, "choices": ["yes", "yes"]},),
        "steps[0].choices[1]",
        "duplicate_id",
    ),
    "a question with the answer of nobody": (
        ({**APPROVE, "choices": ["yes", "expired"]},),
        "steps[0].choices[1]",
        "wrong_value",
    ),
    "an answer that no person can give": (({**APPROVE, "assurance": "executed"},), "steps[0].assurance", "wrong_value"),
    "an answer that is no choice of the key": (
        ({**APPROVE, "set": [{"key": "speed", "from": "event.choice"}]},),
        "steps[0].set[0].from",
        "wrong_value",
    ),
    "an answer that may come too late": (
        ({**APPROVE, "choices": ["fast", "slow"], "expires": "1h", "set": [{"key": "speed", "from": "event.choice"}]},),
        "steps[0].set[0].from",
        "wrong_value",
    ),
    "one kind of event in two forms": (
        ({**AWAIT, "id": "one"}, step("a"), {**AWAIT, "fields": {"state": "string"}}),
        "steps[2].fields",
        "wrong_value",
    ),
    "a field of another type": (
        ({**AWAIT, "set": [{"key": "count", "from": "event.status"}]},),
        "steps[0].set[0].from",
        "wrong_type",
    ),
    "a fixed value that is a list": (
        (step("a", emit=[{"kind": "team.notify", "fields": {"tags": {"value": ["x"]}}}]),),
        "steps[0].emit[0].fields.tags.value",
        "wrong_type",
    ),
    "a fixed value that is nothing": (
        (step("a", emit=[{"kind": "team.notify", "fields": {"tags": {"value": None}}}]),),
        "steps[0].emit[0].fields.tags.value",
        "wrong_type",
    ),
    "a field that reads a list": (
        (step("a", emit=[{"kind": "team.notify", "fields": {"tags": {"from": "tags"}}}]),),
        "steps[0].emit[0].fields.tags.from",
        "wrong_type",
    ),
    "a field that reads the whole artifact": (
        (
            step(
                "a",
                emit=[{"kind": "team.notify", "fields": {"all": {"from": "artifact"}}}],
                outputContract={"contractRef": "wr.contracts.verification_report"},
            ),
        ),
        "steps[0].emit[0].fields.all.from",
        "wrong_type",
    ),
    "a computed field that is a list": (
        (step("a", emit=[{"kind": "t.n", "fields": {"tags": {"compute": {"append": [{"var": "tags"}, 1]}}}}]),),
        "steps[0].emit[0].fields.tags.compute",
        "wrong_type",
    ),
    "fixed values beyond the limit": (
        (
            step(
                "a", emit=[{"kind": "t.n", "fields": {"text": {"value": "x" * 5_000}, "more": {"value": "y" * 5_000}}}]
            ),
        ),
        "steps[0].emit[0].fields",
        "too_long",
    ),
    "a mirrored value of another type": (
        (step("a", emit=[{**EMIT, "mirror": {"count": "text"}}]),),
        "steps[0].emit[0].mirror.count",
        "wrong_type",
    ),
    "a mirrored key of another type": (
        (step("a", emit=[{**EMIT, "mirror": {"count": "room"}}]),),
        "steps[0].emit[0].mirror.count",
        "wrong_type",
    ),
    "a mirrored computed value of another type": (
        (
            step(
                "a",
                emit=[
                    {
                        "kind": "t.n",
                        "fields": {"next": {"compute": {"add": [{"var": "count"}, 1]}}},
                        "mirror": {"status": "next"},
                    }
                ],
            ),
        ),
        "steps[0].emit[0].mirror.status",
        "wrong_type",
    ),
    "a mirrored value that is no choice": (
        (step("a", emit=[{"kind": "t.n", "fields": {"at": {"value": "warp"}}, "mirror": {"speed": "at"}}]),),
        "steps[0].emit[0].mirror.speed",
        "wrong_value",
    ),
    "a mirror into the variable of a loop": (
        (
            loop(
                "l",
                step("a", emit=[{"kind": "t.n", "fields": {"at": {"value": 1}}, "mirror": {"count": "at"}}]),
                **{"for": {"count": 2}, "iterationVar": "count"},
            ),
        ),
        "steps[0].body[0].emit[0].mirror.count",
        "wrong_value",
    ),
    "a timeout without end": (({**AWAIT, "timeout": "999999d"},), "steps[0].timeout", "wrong_value"),
    "a timeout without a unit": (({**AWAIT, "timeout": "90"},), "steps[0].timeout", "wrong_value"),
    "a question that shows what does not exist": (
        ({**APPROVE, "show": ["notes.plan"]},),
        "steps[0].show[0]",
        "undeclared_key",
    ),
    "a question that shows a later step": (
        ({**APPROVE, "show": ["notes.b"]}, step("b")),
        "steps[0].show[0]",
        "unknown_step",
    ),
    "a question with one answer": (
        ({**APPROVE, "choices": ["yes"]},),
        "steps[0].choices",
        "wrong_value",
    ),
    "a loop that only waits": ((loop("l", AWAIT, **{"for": {"count": 2}}),), "steps[0]", "automatic_cycle"),
}


@pytest.mark.inv("IR-13")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_what_goes_out_or_comes_in_is_reported_with_its_place(fault: str) -> None:
    steps, path, code = FAULTS[fault]
    assert (path, code) in [(one.path, one.code) for one in diagnostics(*steps)], diagnostics(*steps)


def test_every_form_of_an_event_and_an_intent_is_taken() -> None:
    emits = [
        {**EMIT, "when": {"var": "count", "gte": 3}, "once": "run"},
        {
            "kind": "team.count",
            "fields": {"next": {"compute": {"add": [{"var": "count"}, 1]}}},
            "mirror": {"count": "next"},
        },
        {"kind": "team.ping"},
    ]
    sets = [{"key": "status", "from": "event.status"}]
    waits = {**AWAIT, "timeout": "2h", "assurance": "signed", "prompt": "CI runs.", "set": sets, "emit": [EMIT]}
    assert diagnostics(step("a", emit=emits), waits) == ()


def test_a_key_with_the_choices_of_a_question_takes_the_answer() -> None:
    asks = {**APPROVE, "choices": ["fast", "slow"], "set": [{"key": "speed", "from": "event.choice"}]}
    assert diagnostics(asks) == ()


def test_a_question_in_a_loop_shows_a_step_of_an_earlier_pass() -> None:
    asks = {**APPROVE, "show": ["notes.b", "notes.a"]}
    assert diagnostics(step("a"), loop("l", asks, step("b"), **{"for": {"count": 2}})) == ()


def test_the_fix_of_a_field_that_may_be_any_string_can_be_applied() -> None:
    [found] = diagnostics({**AWAIT, "set": [{"key": "speed", "from": "event.status"}]})
    assert found.fix == "Take a value with the same `choices`, or remove those of 'speed' in `inputs`."


@pytest.mark.inv("PROOF-4")
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ({}, "wrong_value"),
        ({"value": "make", "from": "inputs.room"}, "wrong_value"),
        ({"from": "room"}, "wrong_value"),
        ({"from": "inputs.rooom"}, "undeclared_key"),
        ({"from": "inputs.count"}, "wrong_type"),
    ],
)
def test_a_command_that_an_agent_could_choose_later_is_a_fault(command: Document, code: str) -> None:
    [found] = diagnostics(step("fix", proof=[{"command": command}]))
    assert (found.code, found.path.startswith("steps[0].proof[0].command")) == (code, True)


@pytest.mark.inv("PROOF-4")
@pytest.mark.parametrize("command", [{"value": "make"}, {"from": "inputs.room"}])
def test_a_fixed_command_and_an_input_are_none(command: Document) -> None:
    assert diagnostics(step("fix", proof=[{"command": command, "tree": "unchanged"}])) == ()
