"""What of a conversation a request holds."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.drive import calls, driving, each, profile, said, texts, tool

from interlock.drive.agent.profile import Memory, Summarization
from interlock.drive.conversation.memory import estimate_tokens, select_window
from interlock.drive.conversation.messages import (
    ContentPart,
    Message,
    Origin,
    ToolCall,
    carried,
    parse_message,
)
from interlock.kernel.canonical import canonical_bytes
from interlock.testing.harness import Harness, linear_workflow

ORIGIN = Origin(source="api", original_format="text", normalized_at="2026-01-01T00:00:00.000Z")


def message(role: Any, text: str, call: str | None = None) -> Message:
    made = (ToolCall(call_id=call, name="t", arguments={}),) if call is not None and role == "assistant" else ()
    return Message(role=role, content=text, origin=ORIGIN, calls=made, call_id=call if role == "tool" else None)


@pytest.mark.inv("DRIVE-10")
def test_thirty_messages_are_cut_to_the_last_twenty() -> None:
    messages = [message("user" if number % 2 else "assistant", f"m{number}") for number in range(30)]
    window = select_window(messages, Memory())
    assert list(window.kept) == messages[10:]
    assert list(window.left_out) == messages[:10]


GROUPS = st.lists(st.tuples(st.sampled_from(["user", "assistant", "call"]), st.integers(1, 900)), max_size=12)


@pytest.mark.inv("DRIVE-10")
@given(GROUPS, st.sampled_from(["truncate", "sliding", "summarize"]))
def test_a_call_is_never_parted_from_its_result_and_nothing_is_lost_or_doubled(
    groups: list[tuple[str, int]], strategy: Summarization
) -> None:
    messages: list[Message] = []
    for number, (kind, size) in enumerate(groups):
        if kind == "call":
            messages += [message("assistant", "x" * size, f"c{number}"), message("tool", "y" * size, f"c{number}")]
        else:
            messages.append(message(kind, f"{number}:" + "x" * size))
    memory = Memory(window_size=5, max_history_tokens=400, summarization=strategy)
    window = select_window(messages, memory)
    kept_calls = {call.call_id for one in window.kept for call in one.calls}
    assert kept_calls == {one.call_id for one in window.kept if one.role == "tool"}
    assert [one for one in messages if one in window.kept] == list(window.kept)
    assert len(window.kept) + len(window.left_out) == len(messages)
    newest = 2 if groups and groups[-1][0] == "call" else min(1, len(messages))
    if len(window.kept) > newest:
        assert len(window.kept) <= 5
        assert sum(map(estimate_tokens, window.kept)) <= 400


@pytest.mark.inv("DRIVE-4", "DRIVE-5")
def test_a_message_with_several_media_keeps_its_parts_and_its_origin_through_the_record() -> None:
    parts = (
        ContentPart(type="text", value="Look:"),
        ContentPart(type="image", value="https://example.org/a.png", media_type="image/png"),
        ContentPart(type="file", value="https://example.org/a.pdf"),
    )
    made = Message(role="user", content=parts, origin=Origin(source="user", original_format="mixed", normalized_at="t"))
    assert parse_message(made.to_json()) == made
    assert made.text().splitlines() == [
        "Look:",
        "[image https://example.org/a.png]",
        "[file https://example.org/a.pdf]",
    ]


FOREIGN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.just("\ud800"),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(), max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(FOREIGN)
def test_whatever_a_model_sends_becomes_a_value_with_canonical_bytes(value: object) -> None:
    assert canonical_bytes(carried(value))


@pytest.mark.inv("DRIVE-7")
@pytest.mark.asyncio
async def test_a_request_holds_the_role_the_examples_first_the_messages_and_the_tools() -> None:
    shots = {"few_shot_examples": [{"user": "How?", "assistant": "So."}, {"input": "And?", "output": "Thus."}]}
    stated = profile(
        role="You are a tester.", prompts={**shots, "system": "Be brief."}, llm={"parameters": {"seed": 1}}
    )

    async def look(_arguments: Any, _context: Any) -> object:
        return "seen"

    one = Harness.in_memory(linear_workflow("test.abc", "a"))
    async with driving(one, each(calls(("look", {}))), stated, {"look": tool(look)}) as drive:
        await drive.start()
        first, second = drive.model.requests
        record = drive.caller.records()[0]
    assert first.system_prompt.startswith("You are a tester.\n\nBe brief.")
    assert texts(first.messages[:4]) == ["How?", "So.", "And?", "Thus."]
    assert [one.role for one in second.messages[4:]] == ["user", "assistant", "tool"]
    assert [one.name for one in first.tools] == ["report_step", "note_progress", "look"]
    assert first.parameters == {"seed": 1}
    assert record["usage"] == {"inputTokens": 10, "outputTokens": 5, "cost": 0}
    assert record["model"] == {"requested": "fake", "actual": "fake-1", "finishReason": "tool_use"}


@pytest.mark.inv("DRIVE-10")
@pytest.mark.asyncio
async def test_the_step_stays_in_a_request_however_long_the_conversation_is_and_what_is_left_out_is_summarised() -> (
    None
):
    def answer(request: Any) -> Any:
        if not request.tools:
            return said(text="A summary.", usage=(1, 1))
        return said(("note_progress", {"notes": "On."}), text=f"turn {request.place.turn}")

    stated = profile(memory={"window_size": 5, "summarization": "summarize"}, turn_chain={"max_tool_turns": 5})
    async with driving(Harness.in_memory(linear_workflow("test.abc", "a")), answer, stated) as drive:
        result = await drive.start()
        last = drive.model.requests[-1]
        summaries = [one for one in drive.model.requests if not one.tools]
    assert result.turns == 5
    assert "A summary." in last.messages[0].text()
    assert "# Step 1 of 1" in last.messages[1].text()
    assert len(last.messages) <= 6
    assert result.usage.input_tokens == 5 * 10 + len(summaries)
