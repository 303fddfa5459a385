"""An agent that wants to be done: it sends whatever looks like an answer, and works on nothing.

Each kind of laziness fills the blanks of the calls that answers show. After a refusal it reads how long the text must
be and of which form, and pads what it has. If such an agent brings a run to a plain end, the evidence proved nothing.
"""

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast, get_args

from tests.agents.filling import shortest_match

from interlock.kernel.blanks import fill_in
from interlock.kernel.canonical import Json
from interlock.testing.harness import Harness, ToolResult

Laziness: TypeAlias = Literal["unfilled", "one word", "any choice", "fragments", "examples", "earlier"]
LAZINESS: tuple[Laziness, ...] = get_args(Laziness)
CALLS_MAX, REFUSALS_MAX = 120, 3
_WORDS = ("done", "ok", "yes", "Completed.", "All good", "n/a", "LGTM")
WORKED_ONCE = (
    "At 14:05 the command `run` failed in 3 of 20 runs on a1b2c3d4e5f6; the first wrong value is set in src/app.py:12."
    " The reader drops the last line of a file without a newline, because it compares lengths before it strips them."
    " I changed the comparison, ran the suite again, and all 214 tests passed; what is left open is the old format."
)
"""Notes of an agent that did the first step, and sends them again with every later one."""
_MODES: tuple[Mapping[str, object], ...] = (
    {},
    {"preferences": {"autonomy": "full_auto_stop_on_user_deps"}},
    {"preferences": {"autonomy": "full_auto_never_stop"}},
)

End: TypeAlias = Literal["complete", "complete with gaps", "given up"]


@dataclass(kw_only=True)
class LazyAgent:
    """One run of one workflow by a lazy agent; `seed` decides everything it chooses."""

    harness: Harness
    kind: Laziness
    seed: int

    def __post_init__(self) -> None:
        self._chance = random.Random(f"{self.kind} {self.seed}")
        self._word = self._chance.choice(_WORDS)
        self._earlier: list[Json] = []
        self.calls = 0

    def work(self, workflow_id: str, context: Mapping[str, Json]) -> End:
        """Return how the run ends."""
        mode = self._chance.choice(_MODES)
        answer = self.harness.start(workflow_id, goal="Get it done", context=dict(context), **mode)
        refusals = 0
        while not answer["isComplete"]:
            refusals = refusals + 1 if answer["kind"] == "blocked" else 0
            if refusals > REFUSALS_MAX or self.calls >= CALLS_MAX:
                return "given up"
            self.calls += 1
            sent = self._filled(answer)
            answer_next = self.harness.call(answer["nextCall"]["tool"], sent)
            if answer_next.is_error:
                return "given up"
            answer = answer_next
        return "complete with gaps" if "COMPLETE_WITH_GAPS" in answer.warnings else "complete"

    def _filled(self, answer: ToolResult) -> dict[str, Any]:
        call, prompt = answer["nextCall"], str(answer["pending"]["prompt"])
        if self.kind == "unfilled":
            return dict(call["arguments"])
        blockers = cast("list[Mapping[str, Any]]", answer.structure.get("blockers", []))
        asked = "\n".join([prompt, *(f"{one['message']} {one.get('suggestedFix', '')}" for one in blockers)])
        wanted = list(call["fill"])
        if any(one["code"] == "USER_ONLY_DEPENDENCY" for one in blockers):
            wanted = [one for one in wanted if not one["path"].startswith("output.artifacts")]
        sent: dict[str, Any] = dict(fill_in(call["arguments"], wanted, self._supply(prompt, asked)))
        if any(one["code"] == "USER_ONLY_DEPENDENCY" for one in blockers):
            claim = {"kind": "wr.confirmation", "confirmedBy": "The user", "statement": "Yes."}
            sent.setdefault("output", {}).setdefault("artifacts", []).append(claim)
        artifacts = cast("list[Json]", sent.get("output", {}).get("artifacts", []))
        if self.kind == "earlier" and self._earlier:
            sent["output"] = {**sent.get("output", {}), "artifacts": [*artifacts, *self._earlier[-3:]]}
        self._earlier += artifacts
        return sent

    def _supply(self, prompt: str, asked: str) -> Callable[[Mapping[str, Any]], Json]:
        def supply(blank: Mapping[str, Any]) -> Json:
            choices = cast("list[Json]", blank.get("choices", []))
            if choices:
                return self._chance.choice(choices)
            text = self._text(prompt, str(blank.get("what", blank["path"])))
            if blank["path"] == "output.notesMarkdown":
                return _padded(text, asked)
            return self._of_shape(str(blank.get("shape", "text")), text)

        return supply

    def _text(self, prompt: str, what: str) -> str:
        match self.kind:
            case "fragments":
                words = prompt.split()
                start = self._chance.randrange(max(1, len(words) - 12))
                return " ".join(words[start : start + self._chance.randint(4, 12)])
            case "examples":
                return self._chance.choice((what, f"<{what}>", f"Example: {what}", what.capitalize()))
            case "any choice":
                return self._chance.choice(_WORDS)
            case "earlier":
                return WORKED_ONCE
            case _:
                return self._word

    def _of_shape(self, shape: str, text: str) -> Json:
        least = max(map(int, re.findall(r"at least (\d+) characters", shape)), default=0)
        if shape.startswith("list of "):
            is_needed = "(at least" in shape or self._chance.random() < 1 / 2
            return [self._of_shape(shape.removeprefix("list of "), text)] if is_needed else []
        if shape.startswith("{"):
            members = [one.partition(": ") for one in shape[1 : shape.index("}")].split(", ")]
            return {
                name.rstrip("?"): self._of_shape(kind or "text", text) for name, _, kind in members if "?" not in name
            }
        if " | " in shape:
            return self._chance.choice(shape.split(" | "))
        plain: dict[str, Json] = {"list": [text], "object": {"it": text}, "number": 1, "whole number": 1}
        return plain.get(shape, text if len(text) >= least else (f"{text} " * least)[: least + len(text)].strip())


def _padded(text: str, asked: str) -> str:
    """Return notes of the length and with the texts that a prompt or a refusal asks for."""
    wanted = re.findall(r"""(?<!not )contain (?:'([^']*)'|"([^"]*)")""", asked)
    matches = [shortest_match(one) for one in re.findall(r"match the pattern `([^`]*)`", asked)]
    least = max(map(int, re.findall(r"at least (\d+)(?=[^;.]* characters)", asked)), default=0)
    notes = " ".join([text, *("".join(one) for one in wanted), *matches])
    while len(notes) < least:
        notes += f" {text}"
    return notes
