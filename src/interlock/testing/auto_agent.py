"""An agent that drives any run to its end by what answers say, and by nothing else.

It sends the call that an answer shows, with what the step asks for filled in, varied by a seed; where it is refused it
reads why. It never sees the plan, so a run that it cannot finish is one whose answers do not say enough:

    played = AutoAgent("test.demo", seed=7).run(harness.call)
    assert played.is_complete

With `mistakes` it first sends something wrong, now and then, as agents do.
"""

import ast
import json
import random
import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from interlock.kernel.errors import ErrorCode
from interlock.testing.harness import Called, filled_out
from interlock.testing.mistakes import MISTAKES
from interlock.testing.reading import Channel, Reading, read
from interlock.testing.script import AsyncCall, Call, Script, play, play_async

Arguments: TypeAlias = dict[str, Any]

_MISTAKES_PER_STEP_MAX = 2
"""Refused attempts are counted, and the honest ones that follow must find room."""
_REFUSED_STARTS_MAX = 12
_FILLER = "I looked at what this step is about, decided on the plainest way, and wrote down what came of it. "
_QUOTED = r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""


class AgentStuckError(Exception):
    """The answers do not say how to go on, or the calls are used up."""

    def __init__(self, found: str, played: "Played") -> None:
        super().__init__(f"{found}; steps so far: {[handed.step for handed in played.handed][-10:]}")
        self.found, self.played = found, played


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed:
    """A step as it was handed out. Where only texts are read, `step` is its title."""

    step: str
    loop_pass: int | None
    parallel_with: tuple[str, ...]
    answer: Called = field(repr=False)


@dataclass(slots=True, kw_only=True)
class Played:
    """What came of a run: how many calls it took, which steps were handed out in which order, what was refused."""

    calls: int = 0
    blocked: int = 0
    is_complete: bool = False
    handed: list[Handed] = field(default_factory=list[Handed])
    warnings: list[str] = field(default_factory=list[str])
    errors: list[ErrorCode] = field(default_factory=list[ErrorCode])
    answers: list[Called] = field(default_factory=list[Called], repr=False)

    @property
    def steps(self) -> list[str]:
        """The steps in the order in which they were handed out."""
        return [handed.step for handed in self.handed]

    @property
    def last(self) -> Called:
        """The last answer."""
        return self.answers[-1]


@dataclass(frozen=True, slots=True)
class AutoAgent:
    """Plays one workflow.

    Args:
        workflow_id: What to start.
        seed: Of everything it chooses.
        mistakes: How likely it sends something wrong before it sends what is asked for.
        known: What it can say for a context key, by key: one of the values is taken. For others it makes something up.
        channel: Which channel of an answer it reads.
        goal: What it starts the run for.
        calls_max: How many calls it makes before it gives up.
    """

    workflow_id: str
    seed: int = 0
    mistakes: float = 0.0
    known: Mapping[str, tuple[object, ...]] = field(default_factory=dict[str, tuple[object, ...]])
    channel: Channel = "structure"
    goal: str | None = "See it through"
    calls_max: int = 2_000

    def run(self, call: Call, *, after: Called | None = None) -> Played:
        """Play to the end; from an answer on, if one is given.

        Raises:
            AgentStuckError: The answers do not lead to an end.
        """
        playing = _Play(self)
        play(playing.script(after), call)
        return playing.played

    async def run_async(self, call: AsyncCall, *, after: Called | None = None) -> Played:
        """Play to the end through a client that is awaited. See `run`."""
        playing = _Play(self)
        await play_async(playing.script(after), call)
        return playing.played


Asked: TypeAlias = Generator[tuple[str, Arguments], Called, Called]


class _Play:
    """One run as it is played: yields calls, is sent their answers."""

    def __init__(self, agent: AutoAgent) -> None:
        self.played = Played()
        self._agent = agent
        self._chance = random.Random(agent.seed)
        self._context: Arguments = {}

    def script(self, after: Called | None) -> Script:
        """Play: each call is yielded, and its answer expected."""
        answer = after if after is not None else (yield from self._started())
        while not (reading := read(answer, self._agent.channel)).is_complete:
            self._note(reading, answer)
            answer = yield from self._reported(reading)
        self.played.is_complete = True

    def _note(self, reading: Reading, answer: Called) -> None:
        if not reading.refusal:
            handed = Handed(
                step=reading.step,
                loop_pass=reading.place[1] if reading.place else None,
                parallel_with=reading.parallel_with,
                answer=answer,
            )
            self.played.handed.append(handed)

    def _asked(self, tool: str, arguments: Arguments) -> Asked:
        """Send one call and keep count of what came of it."""
        if self.played.calls >= self._agent.calls_max:
            raise AgentStuckError(f"{self.played.calls} calls were not enough", self.played)
        answer = yield tool, arguments
        played = self.played
        played.calls += 1
        played.answers.append(answer)
        if answer.is_error:
            played.errors.append(answer.code or ErrorCode.INTERNAL_ERROR)
        else:
            played.blocked += answer["kind"] == "blocked"
            played.warnings += answer.warnings
        return answer

    def _started(self) -> Asked:
        """Begin the run, bringing what a refusal asks for."""
        agent, refusal = self._agent, None
        for key in agent.known:
            if self._chance.random() < 1 / 2:
                self._set(key, self._chosen(key, None))
        sent: Arguments = {"workflowId": agent.workflow_id} | ({"goal": agent.goal} if agent.goal else {})
        for _ in range(_REFUSED_STARTS_MAX):
            if self._context:
                sent["context"] = dict(self._context)
            if self._errs():
                answer = yield from self._asked("start_workflow", self._mistaken(sent))
                if not answer.is_error:
                    return answer
            answer = yield from self._asked("start_workflow", sent)
            if not answer.is_error:
                return answer
            refusal = answer
            if answer.code is not ErrorCode.VALIDATION_ERROR:
                break
            self._bring(answer)
        raise AgentStuckError(f"the start is refused: {refusal.text if refusal else ''}", self.played)

    def _bring(self, refusal: Called) -> None:
        """Take into the context what a refused start asks for."""
        details = cast("Mapping[str, Any]", refusal.structure.get("details", {}))
        for wanted in details.get("wanted", ()):
            if wanted["required"] or self._chance.random() < 1 / 2:
                choices = tuple(wanted.get("choices", ()))
                self._set(wanted["key"], self._chosen(wanted["key"], wanted["type"], choices))
        if "wanted" not in details and str(details.get("path", "")).startswith("context."):
            key = str(details["path"]).removeprefix("context.")
            self._set(key, self._chosen(key, _kind_wanted(refusal.text, key)))

    def _reported(self, reading: Reading) -> Asked:
        """Report the step that an answer hands out; now and then with a mistake or two first."""
        for _ in range(_MISTAKES_PER_STEP_MAX):
            if not self._errs():
                break
            came = yield from self._asked("continue_workflow", self._mistaken(self._filled(reading)))
            if came.is_error:
                continue
            if came["kind"] != "blocked":
                return came
            reading = read(came, self._agent.channel)
        arguments = self._filled(reading)
        came = yield from self._asked("continue_workflow", arguments)
        if came.code is ErrorCode.TOKEN_SESSION_LOCKED:
            came = yield from self._asked("continue_workflow", arguments)
        if came.is_error:
            raise AgentStuckError(f"an honest report is refused: {came.text}", self.played)
        return came

    def _errs(self) -> bool:
        return self._agent.mistakes > 0 and self._chance.random() < self._agent.mistakes

    def _mistaken(self, arguments: Arguments) -> Arguments:
        mistake = self._chance.choice(MISTAKES)
        return mistake(json.loads(json.dumps(arguments)), self._chance)

    def _filled(self, reading: Reading) -> Arguments:
        """Return the call that an answer shows, with what it asks for filled in."""
        arguments: Arguments = json.loads(json.dumps(reading.arguments))
        output = cast("Arguments", arguments.get("output", {}))
        if "notesMarkdown" in output:
            output["notesMarkdown"] = notes_for(reading.wants)
        if "artifacts" in output:
            output["artifacts"] = [self._varied(artifact, reading) for artifact in output["artifacts"]]
        if "ackToken" in arguments:
            context = self._context_of(reading)
            if context:
                arguments["context"] = context
        return arguments

    def _context_of(self, reading: Reading) -> Arguments:
        """Return what to say in the context: what the call shows and has room for, and now and then something known."""
        shown = cast("Arguments", reading.arguments.get("context", {}))
        asked = _keys_asked(reading.refusal)
        inner = {path.partition(".")[0] for path in asked}
        asked |= {key: None for key, value in shown.items() if value is None and key not in inner}
        if not reading.refusal:
            # A value that stands may have changed, and agents say more than they are asked.
            offered = (*self._agent.known, *shown)
            asked |= {key: None for key in offered if key not in asked and self._chance.random() < 1 / 4}
        for path, kind in asked.items():
            self._set(path, self._chosen(path, kind, _choices_in(kind)))
        said = {path.partition(".")[0] for path in asked}
        return {key: value for key, value in shown.items() if value is not None} | {
            key: self._context[key] for key in sorted(said)
        }

    def _set(self, key: str, value: object) -> None:
        """Remember a value; a dotted key is a path into an object."""
        *outer, last = key.split(".")
        place = self._context
        for part in outer:
            if not isinstance(place.get(part), dict):
                place[part] = {}
            place = place[part]
        place[last] = value

    def _chosen(self, key: str, kind: str | None, choices: tuple[object, ...] = ()) -> object:
        make = _KINDS.get(kind or "")
        known = [value for value in self._agent.known.get(key, ()) if kind is None or _is_of_kind(value, kind)]
        if choices or known:
            return self._chance.choice(list(choices or known))
        return make(self._chance) if make is not None else f"What there is to say about {key}"

    def _varied(self, artifact: Mapping[str, Any], reading: Reading) -> Arguments:
        """Return an example as it is or, unless it was refused before, with another decision or other ratings."""
        varied = cast("Arguments", filled_out(dict(artifact)))
        is_stopped = '"decision": "stop"' in reading.refusal
        if artifact.get("kind") == "wr.loop_control":
            decision = self._chance.choice(["continue", "stop"])
            varied["decision"] = "stop" if is_stopped or reading.refusal else decision
        if artifact.get("kind") == "wr.assessment" and not reading.refusal:
            levels = _levels_in(reading.prompt)
            rated = cast("Mapping[str, Any]", artifact["dimensions"])
            varied["dimensions"] = {
                name: self._chance.choice(levels[name]) if name in levels else level for name, level in rated.items()
            }
        return varied


def notes_for(wanted: str) -> str:
    """Return notes that hold what lines such as "Your notes must contain 'x'" ask for."""
    forbidden = [_unquoted(found) for found in re.findall(rf"not contain {_QUOTED}", wanted)]
    texts = [_unquoted(found) for found in re.findall(rf"(?<!not )contain {_QUOTED}", wanted)]
    # A pattern that is a plain text is met by itself; of others this agent knows nothing.
    texts += re.findall(r"match the pattern `([^`]*)`", wanted)
    least = max(map(int, re.findall(r"at least (\d+)(?=[^;.]* characters)", wanted)), default=0)
    most = min(map(int, re.findall(r"at most (\d+) characters", wanted)), default=None)
    held = " ".join(dict.fromkeys(texts))
    filler = _FILLER
    for text in forbidden:
        filler = filler.replace(text, "…")
    notes = f"{held}\n{filler}" if held else filler
    while len(notes) < least:
        notes += filler
    return notes[: most if most is not None and most >= len(held) else None]


def _unquoted(text: str) -> str:
    try:
        return str(ast.literal_eval(text))
    except (SyntaxError, ValueError):
        return text[1:-1]


def _levels_in(prompt: str) -> dict[str, list[str]]:
    """Return the levels that the evidence lines of a prompt name, by dimension."""
    lines = [line for line in prompt.splitlines() if "`wr.assessment`" in line]
    found = [pair for line in lines for pair in re.findall(r"`([^`]+)` \(([^()]*\|[^()]*)\):", line)]
    return {name: levels.removesuffix(", optional").split(" | ") for name, levels in found}


def _keys_asked(refusal: str) -> dict[str, str | None]:
    """Return the context paths that a refusal asks for, each with the kind of value if it says one."""
    asked = rf"`context` holding {_QUOTED}(?: whole, with {_QUOTED} in it)?(?: \(([^)]+)\))?"
    found = cast("list[tuple[str, str, str]]", re.findall(asked, refusal))
    return {_unquoted(key) + (f".{_unquoted(member)}" if member else ""): kind or None for key, member, kind in found}


def _choices_in(kind: str | None) -> tuple[object, ...]:
    """Return the values that a refusal offers as choices, if it offers any."""
    return tuple(json.loads(kind.removeprefix("one of "))) if kind is not None and kind.startswith("one of [") else ()


def _kind_wanted(words: str, path: str) -> str | None:
    """Return what kind of value a refused start asks for at a context path, if it says so."""
    found = re.search(rf"{re.escape(repr(path))}, .*?; it needs (.+?)\.", words)
    return found.group(1) if found else None


_KINDS: Mapping[str, Callable[[random.Random], object]] = {
    "a list": lambda _: [{"name": "one"}, {"name": "two"}],
    "list": lambda _: [{"name": "one"}, {"name": "two"}],
    "a number": lambda chance: chance.randint(0, 3),
    "a whole number": lambda chance: chance.randint(0, 3),
    "number": lambda chance: chance.randint(0, 3),
    "boolean": lambda chance: chance.random() < 1 / 2,
    "a boolean": lambda chance: chance.random() < 1 / 2,
    "object": lambda _: {"name": "one"},
    "an object": lambda _: {"name": "one"},
}


def _is_of_kind(value: object, kind: str) -> bool:
    made = _KINDS[kind](random.Random(0)) if kind in _KINDS else ""
    return type(value) is type(made) or kind == "a value"
