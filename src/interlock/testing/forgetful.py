"""An agent that errs on purpose and knows nothing but what answers say, through one of their two channels.

It works on one run or on several in one chat, slips with a given chance on each call, and goes on as the answers tell
it. A run that it cannot finish is one whose answers do not say enough:

    agent = ForgetfulAgent(errands=(Errand(workflow_id="test.demo", goal="Mend the lamp", word="lamp"),), seed=7)
    worked = agent.work(harness.call)
    assert worked.is_complete

What came of the runs is for `effects` to judge, by the log alone.
"""

import json
import random
from collections import Counter
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from interlock.testing.harness import Called, filled_out
from interlock.testing.reading import Channel, Reading, Shown, read
from interlock.testing.script import AsyncCall, Call, Script, play, play_async
from interlock.testing.slips import LOST_ANSWER, LOST_MEMORY, SLIPS, TOKENS, Arguments, Remembered, slipped

_OLDER_MAX = 12
_SLIPS_PER_LOST_MEMORY = 2
"""How much likelier each other slip is than to lose all memory: chats rarely begin anew."""


class LostAgentError(Exception):
    """The answers do not lead to the end, or the calls are used up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """What a user wants done: by which workflow, in their words, and the word of them that no other errand has."""

    workflow_id: str
    goal: str
    word: str


@dataclass(slots=True, kw_only=True)
class Worked:
    """What came of it: the calls that it took, and how often the agent slipped in which way."""

    calls: int = 0
    is_complete: bool = False
    slips: Counter[str] = field(default_factory=Counter[str])
    said: list[str] = field(default_factory=list[str], repr=False)
    """Each call with the beginning of its answer: what to read when an agent got lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetfulAgent:
    """Does errands in one chat.

    Args:
        errands: What the user wants. Several are worked on by turns.
        seed: Of everything it chooses.
        slips: How likely it slips on a call.
        channel: What its client shows it of an answer.
        is_joined: Whether it begins every run in the session of the first.
        calls_max: How many calls it makes before it gives up.
    """

    errands: tuple[Errand, ...]
    seed: int = 0
    slips: float = 0.2
    channel: Channel = "structure"
    is_joined: bool = False
    calls_max: int = 400

    def work(self, call: Call) -> Worked:
        """Do all errands.

        Raises:
            LostAgentError: The answers do not lead to an end.
        """
        chat = _Chat(self)
        play(chat.script(), call)
        return chat.worked

    async def work_async(self, call: AsyncCall) -> Worked:
        """Do all errands through a client that is awaited. See `work`."""
        chat = _Chat(self)
        await play_async(chat.script(), call)
        return chat.worked


@dataclass(slots=True, kw_only=True)
class _Run:
    """What the agent has in mind of one errand. Its memory is what answers said; `is_begun` the user could tell it."""

    errand: Errand
    is_begun: bool = False
    is_done: bool = False
    is_forgotten: bool = False
    label: str | None = None
    call: Shown | None = None
    reading: Reading = field(default_factory=Reading)
    older: list[str] = field(default_factory=list[str])
    token: str | None = None

    def forget(self) -> None:
        self.is_forgotten = self.is_forgotten or (self.call is not None and not self.is_done)
        self.label, self.call, self.reading, self.token = None, None, Reading(), None
        self.older.clear()

    def learn(self, reading: Reading) -> None:
        """Take in an answer about this run."""
        if self.token is not None and self.token not in self.older:
            self.older = [*self.older, self.token][-_OLDER_MAX:]
        self.label, self.call, self.reading, self.is_done = reading.label, reading.call, reading, reading.is_complete
        self.token = reading.arguments.get("ackToken", self.token)


class _Chat:
    def __init__(self, agent: ForgetfulAgent) -> None:
        self.worked = Worked()
        self._agent = agent
        self._chance = random.Random(f"{agent.seed}")
        self._runs = [_Run(errand=errand) for errand in agent.errands]
        self._session: str | None = None

    def script(self) -> Script:
        """Work: each call is yielded, and its answer expected."""
        while open_runs := [run for run in self._runs if not run.is_done]:
            run = self._chance.choice(open_runs)
            call = self._due(run)
            slip, call = self._slip(run, call)
            if slip == LOST_MEMORY:
                for each in self._runs:
                    each.forget()
                continue
            if run.is_forgotten:
                # Counted once for each run that has to be found again.
                run.is_forgotten = False
                self.worked.slips[LOST_MEMORY] += 1
            if slip:
                self.worked.slips[slip] += 1
            answer = yield from self._sent(call)
            if slip == LOST_ANSWER:
                if call.tool == "start_workflow" and not answer.is_error:
                    # A start is not repeated: whether it was done, a search tells.
                    run.is_begun, run.call = True, None
                continue
            self._take_in(run, call, answer)
        self.worked.is_complete = True

    def _sent(self, call: Shown) -> Generator[tuple[str, Arguments], Called, Called]:
        if self.worked.calls >= self._agent.calls_max:
            raise LostAgentError("\n".join([f"{self.worked.calls} calls were not enough", *self.worked.said[-12:]]))
        answer = yield call.tool, dict(call.arguments)
        self.worked.calls += 1
        self.worked.said.append(f"{call.tool} {json.dumps(call.arguments)} -> {answer.text[:300]}")
        return answer

    def _slip(self, run: _Run, call: Shown) -> tuple[str, Shown]:
        """Return how the agent slips, if it does, and the call as it sends it then."""
        if self._chance.random() >= self._agent.slips:
            return "", call
        kinds = [*SLIPS, LOST_ANSWER] * _SLIPS_PER_LOST_MEMORY + ([LOST_MEMORY] if run.is_begun else [])
        self._chance.shuffle(kinds)
        for kind in kinds:
            if kind not in SLIPS:
                return kind, call
            spoilt = slipped(kind, call.arguments, self._remembered(run), self._chance)
            if spoilt is not None:
                return kind, Shown(tool=call.tool, arguments=spoilt)
        return "", call

    def _remembered(self, run: _Run) -> Remembered:
        others = [other.token for other in self._runs if other is not run and other.token is not None]
        return Remembered(older=tuple(run.older), others=tuple(others))

    def _due(self, run: _Run) -> Shown:
        """Return the call to send for a run: what the last answer showed, filled in; else a start or a search."""
        if run.call is not None:
            return Shown(tool=run.call.tool, arguments=self._filled(run, run.call.arguments))
        if run.is_begun:
            return Shown(tool="resume_session", arguments={"query": run.errand.word})
        arguments: Arguments = {"workflowId": run.errand.workflow_id, "goal": run.errand.goal}
        if self._agent.is_joined and self._session is not None:
            arguments["sessionId"] = self._session
        return Shown(tool="start_workflow", arguments=arguments)

    def _take_in(self, run: _Run, sent: Shown, answer: Called) -> None:
        reading = read(answer, self._agent.channel)
        if reading.is_error:
            # Without a call in the refusal, the last good one stands.
            run.call = reading.call or run.call
            return
        if sent.tool == "resume_session":
            named = [call for title, call in reading.found if run.errand.word in title]
            run.call = named[0] if named else None
            return
        if reading.label is None:
            return
        owner = next((each for each in self._runs if each.label == reading.label), run)
        owner.is_begun = True
        owner.learn(reading)
        if self._session is None and sent.tool == "start_workflow" and not answer.is_error:
            self._session = str(cast("Mapping[str, Any]", answer.structure["run"])["sessionId"])

    def _filled(self, run: _Run, shown: Mapping[str, Any]) -> Arguments:
        """Return arguments as they are to be sent: tokens from memory, notes about this step, artifacts."""
        arguments: Arguments = json.loads(json.dumps(shown))
        for name in TOKENS:
            if str(arguments.get(name, "")).startswith("<"):
                arguments[name] = run.reading.arguments.get(name, run.token)
        for name, told in (("goal", run.errand.goal), ("workflowId", run.errand.workflow_id)):
            if name in arguments and str(arguments[name]).startswith("<"):
                arguments[name] = told
        if "workflowId" in arguments:
            arguments["goal"] = run.errand.goal
        output = cast("Arguments", arguments.get("output", {}))
        if "notesMarkdown" in output:
            output["notesMarkdown"] = notes_on(run.errand, run.reading.title)
        if isinstance(output.get("artifacts"), str):
            # What was too long to be repeated in a refusal is what the answer before it asked for.
            output["artifacts"] = run.reading.arguments.get("output", {}).get("artifacts", [])
        if "artifacts" in output:
            output["artifacts"] = [self._decided(run, artifact) for artifact in output["artifacts"]]
        return arguments

    def _decided(self, run: _Run, artifact: Arguments) -> Arguments:
        """Return an artifact that says what this agent decides at this place, however often it is asked."""
        made = cast("Arguments", filled_out(artifact))
        if made.get("kind") == "wr.loop_control":
            place = run.reading.place or (0, 1)
            goes_on = random.Random(f"{self._agent.seed} {run.errand.word} {place}").random() < 1 / 2
            made["decision"] = "continue" if goes_on and (place[1] or 1) < PASSES else "stop"
        return made


PASSES = 3
"""After so many passes the agent leaves a loop."""


def notes_on(errand: Errand, title: str) -> str:
    """Return the notes of a step: whose they are and of which step can be read off the log."""
    return f"For the {errand.word}: did {title}."
