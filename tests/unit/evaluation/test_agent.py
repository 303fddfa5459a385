"""An episode of the evaluation on the real server, with a script in the place of the model."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from evaluation.agent import CALLS_MAX, Channel, Episode, count_blanks, play
from evaluation.arms import ARMS
from evaluation.model import CUT, Message, ModelCall, NoCallError, Tool, call_schema, render_prompt
from evaluation.product import Product, serving_product
from jsonschema import Draft202012Validator
from tests.agents.reading import read
from tests.support.forkserver import forking_python

from interlock.kernel.canonical import digest_of_bytes
from interlock.testing.harness import ToolResult, filled_call

Choice = tuple[str, Mapping[str, Any]]
NOTES = (
    "Wrote the text, counted each line, compared the result with the goal, corrected one word, and read it aloud."
    " Nothing else was changed; the check found no fault, and the source is the goal itself."
)


@pytest.fixture
def product() -> Iterator[Product]:
    with serving_product(forking_python()) as served:
        yield served


class Script:
    """Chooses the next call by a function of what the last message shows."""

    def __init__(self, choose: Callable[[str], Choice]) -> None:
        self.choose, self.shown, self.seeds, self.made = choose, list[str](), set[int](), 0

    def next_call(self, messages: Sequence[Message], tools: Sequence[Tool], seed: int) -> ModelCall:
        assert [one.role for one in messages] == ["system", "user", *["assistant", "tool"] * (self.made + 1)]
        assert len(tools) == 6
        assert seed not in self.seeds
        self.seeds.add(seed)
        self.shown.append(messages[-1].content)
        tool, arguments = self.choose(messages[-1].content)
        self.made += 1
        return ModelCall(tool=tool, arguments=arguments, prompt_tokens=100, fresh_tokens=10)


def played(product: Product, script: Script, arm: str = "linear", channel: Channel = "text") -> Episode:
    return play(product, script, ARMS[arm], channel, 1)


def follow(shown: str, notes: str | None = None) -> Choice:
    """Read the call that a channel shows, and fill it in; by default with notes of its own for each step."""
    if notes is None:
        notes = f"{NOTES} {digest_of_bytes(shown.encode())}"
    is_structure = shown.startswith("{")
    called = ToolResult(structure=json.loads(shown) if is_structure else {}, text=shown, is_error=False)
    call = read(called, "structure" if is_structure else "text").call
    assert call is not None, shown
    return call.tool, filled_call({"tool": call.tool, "arguments": call.arguments, "fill": call.fill}, notes)


@pytest.mark.parametrize(("arm", "channel"), [("linear", "text"), ("verdict", "structured"), ("quick_task", "text")])
def test_a_run_that_follows_either_channel_is_done_without_a_refusal(
    product: Product, arm: str, channel: Channel
) -> None:
    script = Script(follow)
    episode = played(product, script, arm, channel)
    assert (episode.ended, episode.is_done, episode.is_first_an_advance) == ("done", True, True)
    assert (episode.refused, episode.token_errors, episode.blanks, episode.has_gaps) == (0, 0, 0, False)
    assert episode.calls == episode.advances == len(script.shown) > 1
    assert (episode.prompt_tokens, episode.fresh_tokens) == (100 * episode.calls, 10 * episode.calls)
    assert all(shown.startswith("{") == (channel == "structured") for shown in script.shown)


def test_a_run_that_is_done_with_one_text_for_every_step_is_done_with_gaps(product: Product) -> None:
    episode = played(product, Script(lambda shown: follow(shown, NOTES)))
    assert (episode.is_done, episode.has_gaps, episode.calls, episode.refused) == (True, True, 5, 2)


def test_a_refused_token_is_counted_and_the_episode_ends_at_its_limit_of_calls(product: Product) -> None:
    episode = played(product, Script(lambda _: ("continue_workflow", {"ackToken": "ack_spliced"})))
    assert (episode.ended, episode.is_done, episode.is_first_an_advance) == ("out of calls", False, False)
    assert (episode.calls, episode.refused, episode.token_errors) == (CALLS_MAX, CALLS_MAX, CALLS_MAX)
    assert episode.advances == 0
    assert {one["code"] for one in episode.transcript} == {"TOKEN_INVALID_FORMAT"}


def test_evidence_that_is_left_out_is_a_blank_and_a_refusal(product: Product) -> None:
    def forget(_: str) -> Choice:
        tool, arguments = follow(script.shown[0])
        return tool, {name: value for name, value in arguments.items() if name != "output"}

    script = Script(forget)
    episode = played(product, script)
    assert episode.blanks == episode.refused == episode.calls == CALLS_MAX
    assert {one["code"] for one in episode.transcript} == {"blocked"}


def test_a_call_that_the_protocol_refuses_is_a_response_too(product: Product) -> None:
    episode = played(product, Script(lambda _: ("no_such_tool", {})))
    assert episode.refused == CALLS_MAX
    assert all(one["code"] and one["shown"] for one in episode.transcript)


def test_an_episode_ends_where_the_model_can_make_no_call(product: Product) -> None:
    def refuse(_: str) -> Choice:
        raise NoCallError("context full")

    episode = played(product, Script(refuse))
    assert (episode.ended, episode.calls, episode.is_done) == ("context full", 0, False)


def test_a_call_that_was_cut_off_is_made_again_as_clients_do(product: Product) -> None:
    cuts = iter([CUT])

    def choose(shown: str) -> Choice:
        for reason in cuts:
            raise NoCallError(reason, 100, 10)
        return follow(shown)

    episode = played(product, Script(choose))
    assert (episode.is_done, episode.cut, episode.refused) == (True, 1, 0)
    assert (episode.prompt_tokens, episode.fresh_tokens) == (100 * (episode.calls + 1), 10 * (episode.calls + 1))


OUTPUTS: list[tuple[dict[str, Any], int]] = [
    ({"notesMarkdown": "A haiku.", "artifacts": [{"verdict": "clean", "findings": []}]}, 0),
    ({"notesMarkdown": "A haiku.", "artifacts": [{"verdict": "clean"}]}, 1),
    ({"notesMarkdown": "A haiku.", "artifacts": []}, 2),
    ({"notesMarkdown": "A haiku.", "artifacts": "none"}, 2),
    ({}, 3),
    ({"notesMarkdown": " ", "artifacts": [{"verdict": "<a verdict>", "findings": []}]}, 2),
    ({"notesMarkdown": "what you did", "artifacts": [{"verdict": "output.artifacts[0].verdict"}]}, 3),
]


@pytest.mark.parametrize(("output", "expected"), OUTPUTS)
def test_a_blank_is_missing_or_empty_or_a_copy_of_what_asked_for_it(output: Mapping[str, Any], expected: int) -> None:
    paths = ("output.notesMarkdown", "output.artifacts[0].verdict", "output.artifacts[0].findings")
    offered = {"tool": "continue_workflow", "fill": [{"path": path, "what": "what you did"} for path in paths]}
    arguments = {"ackToken": "ack_x", "output": output}
    call = ModelCall(tool="continue_workflow", arguments=arguments, prompt_tokens=0, fresh_tokens=0)
    assert count_blanks(offered, call) == expected
    assert count_blanks(None, call) == 0


def test_a_prompt_continues_the_one_before_it_and_the_schema_admits_the_calls_of_the_tools_alone() -> None:
    tool = {"name": "act", "description": "Acts.", "parameters": {"type": "object", "required": ["now"]}}
    opening = [Message(role="system", content="Work."), Message(role="user", content="Act.")]
    call = Message(role="assistant", content='{"name": "act", "arguments": {}}')
    first = render_prompt(opening, [tool])
    second = render_prompt([*opening, call, Message(role="tool", content="Refused.")], [tool])
    assert first.endswith("<|im_start|>user\nAct.<|im_end|>\n<|im_start|>assistant\n<tool_call>\n")
    assert second.startswith(
        f"{first}{call.content}\n</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\nRefused."
    )
    schema = call_schema([tool])
    assert is_valid({"name": "act", "arguments": {"now": 1}}, schema)
    assert not is_valid({"name": "act", "arguments": {}}, schema)
    assert not is_valid({"name": "other", "arguments": {"now": 1}}, schema)


def is_valid(value: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    return Draft202012Validator(schema).is_valid(value)
