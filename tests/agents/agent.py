"""An agent that knows nothing but what answers say, through one of their two channels, and errs on purpose.

It works on one run or on several in one chat, errs with a given chance on each call, and continues as the answers say.
It never sees the plan, so a run that it cannot finish is one whose answers do not say enough:

    agent = Agent((Task("test.demo"),), seed=7, fault_rate=0.2)
    assert agent.work(harness.call).is_complete

`judge` says what is wrong with the runs, from the log alone.
"""

import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from tests.agents.faults import (
    FAULTS,
    LOST_ANSWER,
    LOST_MEMORY,
    TOKENS,
    Arguments,
    Remembered,
    spoil,
)
from tests.agents.filling import Filling, artifact_values, notes_for
from tests.agents.reading import Channel, Reading, Shown, read

from interlock.kernel.blanks import fill_in
from interlock.kernel.errors import ErrorCode
from interlock.testing.harness import ToolResult

Call: TypeAlias = Callable[[str, Mapping[str, object]], ToolResult]
AsyncCall: TypeAlias = Callable[[str, Mapping[str, object]], Awaitable[ToolResult]]
_Script: TypeAlias = Generator[Shown, ToolResult, None]

_OLDER_MAX = 12
_FAULTS_PER_LOST_MEMORY = 2
"""How much likelier each other fault is than to lose all memory: chats rarely begin anew."""


class LostAgentError(Exception):
    """The answers do not lead to the end: the calls are used up."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a user wants done: by which workflow, in their words, and the word of them that no other task has."""

    workflow_id: str
    goal: str = "See it through"
    word: str = "through"


@dataclass(slots=True, kw_only=True)
class Work:
    """What came of it: calls and answers, how often the agent erred in which way, and what was refused."""

    sent: list[Shown] = field(default_factory=list[Shown], repr=False)
    answers: list[ToolResult] = field(default_factory=list[ToolResult], repr=False)
    presented: list[ToolResult] = field(default_factory=list[ToolResult], repr=False)
    """The answers that gave the agent a step to do, in their order."""
    faults: Counter[str] = field(default_factory=Counter[str])
    is_complete: bool = False

    @property
    def calls(self) -> int:
        """How many calls it took."""
        return len(self.answers)

    @property
    def steps(self) -> list[str]:
        """The ids of the steps in the order in which the agent was given them."""
        return [answer["pending"]["stepId"] for answer in self.presented]

    @property
    def blocked(self) -> int:
        """How many reports were not accepted."""
        return sum(answer["kind"] == "blocked" for answer in self._accepted() if "kind" in answer.structure)

    @property
    def warnings(self) -> list[str]:
        """The codes of all warnings."""
        return [code for answer in self._accepted() for code in answer.warnings]

    @property
    def errors(self) -> list[ErrorCode]:
        """The codes of all errors."""
        return [answer.code for answer in self.answers if answer.code is not None]

    def last_calls(self, count: int) -> str:
        """Return the last calls, each with the beginning of its answer: what to read when an agent got lost."""
        pairs = list(zip(self.sent, self.answers, strict=True))[-count:]
        return "\n".join(f"{call.tool} {json.dumps(call.arguments)} -> {answer.text[:300]}" for call, answer in pairs)

    def _accepted(self) -> Iterable[ToolResult]:
        return (answer for answer in self.answers if not answer.is_error)


@dataclass(frozen=True, slots=True)
class Agent:
    """Does tasks in one chat.

    Args:
        tasks: What the user wants. Several are worked on by turns.
        seed: Of everything it chooses.
        fault_rate: How likely it errs on a call.
        faults: In which ways it errs, apart from losing an answer or all memory.
        known: What it can say for a context key, by key.
        channel: What its client shows it of an answer.
        is_joined: Whether it begins every run in the session of the first.
        calls_max: How many calls it makes before it gives up.
    """

    tasks: tuple[Task, ...]
    seed: int = 0
    fault_rate: float = 0.0
    faults: Iterable[str] = tuple(FAULTS)
    known: Mapping[str, tuple[object, ...]] = field(default_factory=dict[str, tuple[object, ...]])
    channel: Channel = "structure"
    is_joined: bool = False
    calls_max: int = 2_000

    def work(self, call: Call, *, after: ToolResult | None = None) -> Work:
        """Do all tasks; the first one from an answer on, if one is given.

        Raises:
            LostAgentError: The answers do not lead to an end.
        """
        chat = _Chat(self, after)
        script = chat.script()
        try:
            due = next(script)
            while True:
                due = script.send(call(due.tool, due.arguments))
        except StopIteration:
            return chat.work

    async def work_async(self, call: AsyncCall) -> Work:
        """Do all tasks through a client that is awaited. See `work`."""
        chat = _Chat(self, None)
        script = chat.script()
        try:
            due = next(script)
            while True:
                answer = await call(due.tool, due.arguments)
                due = script.send(answer)
        except StopIteration:
            return chat.work


@dataclass(slots=True, kw_only=True)
class _Run:
    """What the agent remembers of one task. Its memory is what answers said; the user could tell it `is_begun`."""

    task: Task
    values: Filling
    is_begun: bool = False
    is_done: bool = False
    is_forgotten: bool = False
    label: str | None = None
    call: Shown | None = None
    filled: Shown | None = None
    """`call` as it is sent: the same again when its answer is lost."""
    reading: Reading = field(default_factory=Reading)
    older: list[str] = field(default_factory=list[str])
    token: str | None = None

    def forget(self) -> None:
        self.is_forgotten = self.is_forgotten or (self.call is not None and not self.is_done)
        self.label, self.reading, self.token = None, Reading(), None
        self.follow(None)
        self.older.clear()

    def follow(self, call: Shown | None) -> None:
        self.call, self.filled = call, None

    def learn(self, reading: Reading) -> None:
        """Learn from an answer about this run."""
        if self.token is not None and self.token not in self.older:
            self.older = [*self.older, self.token][-_OLDER_MAX:]
        self.is_begun = True
        self.label, self.reading, self.is_done = reading.label, reading, reading.is_complete
        self.token = reading.arguments.get("ackToken", self.token)
        self.follow(reading.call)


class _Chat:
    def __init__(self, agent: Agent, after: ToolResult | None) -> None:
        self.work = Work()
        self._agent = agent
        self._chance = random.Random(f"{agent.seed}")
        self._runs = [_Run(task=task, values=Filling(agent.known, self._chance)) for task in agent.tasks]
        self._session: str | None = None
        if after is not None:
            self._runs[0].learn(read(after, agent.channel))

    def script(self) -> _Script:
        """Work: each call is yielded, and its answer expected."""
        while open_runs := [run for run in self._runs if not run.is_done]:
            run = self._chance.choice(open_runs)
            due = self._due(run)
            fault, call = self._spoilt(run, due)
            if fault == LOST_MEMORY:
                for each in self._runs:
                    each.forget()
                continue
            if run.is_forgotten:
                # Counted once for each run that has to be found again.
                run.is_forgotten = False
                self.work.faults[LOST_MEMORY] += 1
            if fault:
                self.work.faults[fault] += 1
            if self.work.calls >= self._agent.calls_max:
                raise LostAgentError(f"{self.work.calls} calls were not enough\n{self.work.last_calls(12)}")
            answer = yield call
            self.work.sent.append(call)
            self.work.answers.append(answer)
            if fault != LOST_ANSWER:
                self._take_in(run, call, answer)
            elif call.tool == "start_workflow" and not answer.is_error:
                # A start is not repeated: a search says whether it was done.
                run.is_begun = True
                run.follow(None)
        self.work.is_complete = True

    def _spoilt(self, run: _Run, call: Shown) -> tuple[str, Shown]:
        """Return how the agent errs, if it does, and the call as it sends it then."""
        if self._chance.random() >= self._agent.fault_rate:
            return "", call
        kinds = [*self._agent.faults, LOST_ANSWER] * _FAULTS_PER_LOST_MEMORY + [LOST_MEMORY] * run.is_begun
        self._chance.shuffle(kinds)
        for kind in kinds:
            if kind not in FAULTS:
                return kind, call
            spoilt = spoil(kind, call.arguments, self._remembered(run), self._chance)
            if spoilt is not None:
                return kind, Shown(tool=call.tool, arguments=spoilt)
        return "", call

    def _remembered(self, run: _Run) -> Remembered:
        others = [other.token for other in self._runs if other is not run and other.token is not None]
        return Remembered(older=tuple(run.older), others=tuple(others))

    def _due(self, run: _Run) -> Shown:
        """Return the call to send for a run: what the last answer showed, filled in; else a start or a search."""
        if run.call is None and run.is_begun:
            return Shown(tool="resume_session", arguments={"query": run.task.word})
        if run.filled is None:
            run.filled = self._filled(run, run.call or self._start(run))
        return run.filled

    def _start(self, run: _Run) -> Shown:
        arguments: Arguments = {"workflowId": run.task.workflow_id, "goal": run.task.goal}
        if self._agent.is_joined and self._session is not None:
            arguments["sessionId"] = self._session
        return Shown(tool="start_workflow", arguments=arguments)

    def _take_in(self, run: _Run, sent: Shown, answer: ToolResult) -> None:
        reading = read(answer, self._agent.channel)
        if reading.is_error:
            if sent.tool == "start_workflow":
                run.reading = reading
            # Without a call in the refusal, the last good one is sent again.
            if reading.call is not None:
                run.follow(reading.call)
            return
        if sent.tool == "resume_session":
            run.follow(next((call for title, call in reading.found if run.task.word in title), None))
            return
        if reading.label is None:
            # A list of workflows, which shows no call.
            run.follow(None)
            return
        owner = next((each for each in self._runs if each.label == reading.label), run)
        owner.learn(reading)
        if not (reading.refusal or reading.is_complete) and "stateToken" not in sent.arguments:
            self.work.presented.append(answer)
        if self._session is None and sent.tool == "start_workflow":
            self._session = str(cast("Mapping[str, Any]", answer.structure["run"])["sessionId"])

    def _filled(self, run: _Run, shown: Shown) -> Shown:
        """Return a call as it is to be sent: what it leaves open from memory, notes about this step, artifacts."""
        task = run.task
        known = dict.fromkeys(TOKENS, run.token) | {"run": run.label, "goal": task.goal}
        known["workflowId"] = task.workflow_id
        artifact = artifact_values(run.reading, f"{self._agent.seed} {task.word}")

        def supply(blank: Mapping[str, Any]) -> Any:
            path = str(blank["path"])
            if path.endswith("notesMarkdown"):
                notes = notes_for(run.reading.wants, notes_on(task, run.reading.title))
                if "are those of the step before" in run.reading.refusal:
                    notes += f" Done once more, for the report that begins {str(run.token)[:24]}."
                return notes
            if path == "output.artifacts":
                # What was too long to be repeated in a refusal is what the answer before it asked for.
                return _artifacts(run.reading, artifact)
            return artifact(blank) if path.startswith("output.artifacts") else known.get(path)

        own = tuple(blank for blank in shown.fill if not str(blank["path"]).startswith("context"))
        arguments = fill_in(shown.arguments, own, supply)
        is_refused = bool(run.reading.refusal)
        if shown.tool == "start_workflow":
            arguments |= {"goal": task.goal, "context": run.values.for_start(shown.fill, is_refused=is_refused)}
        elif "ackToken" in arguments:
            arguments["context"] = run.values.for_report(shown.fill, is_refused=is_refused)
        return Shown(tool=shown.tool, arguments={name: value for name, value in arguments.items() if value != {}})


def _artifacts(reading: Reading, supply: Callable[[Mapping[str, Any]], Any]) -> list[Any]:
    call = reading.call or Shown(tool="", arguments={})
    asked = tuple(blank for blank in call.fill if str(blank["path"]).startswith("output.artifacts["))
    output = cast("Arguments", fill_in(call.arguments, asked, supply).get("output") or {})
    return cast("list[Any]", output.get("artifacts", []))


def notes_on(task: Task, title: str) -> str:
    """Return the notes of a step: whose they are and of which step can be read off the log."""
    return f"For the {task.word}: did {title}."
