"""Branches of one run do not see each other, and what a node once handed out it hands out for ever.

A random history of advances, refusals, retries and forks, at any node of the run, over a workflow with a loop, a
condition and templates. The model knows what was sent with each call and which node is whose parent, nothing else.
"""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.flow import document, loop, step
from tests.support.shares import examples

from interlock.kernel.errors import ErrorCode
from interlock.record.events import NodeCreatedEvent
from interlock.testing.harness import Harness, ToolResult

pytestmark = pytest.mark.exhaustive

CHANGED = ("x", "y", "o", "things")
"""What reports change; a run keeps its goal."""
CONTEXT = "x={{x}} y={{y}} deep={{o.k}} of {{goal}}"
IN_LOOP = CONTEXT + " item={{item.name}} pass={{iteration}} at={{index}}"
IS_ONE = {"var": "x", "equals": 1}
INPUTS = [
    {"key": "x", "description": "Which way.", "type": "number"},
    {"key": "things", "description": "What to go through.", "type": "list"},
]
RUN = document(
    step("a", title="A {{y}}", prompt=CONTEXT),
    loop(
        "l",
        step("b", title="B {{y}} {{iteration}}", prompt=IN_LOOP),
        step("c", prompt=IN_LOOP, promptFragments=[{"id": "one", "text": "One: {{y}}.", "when": IS_ONE}]),
        forEach={"items": "things"},
    ),
    step("d", prompt=CONTEXT, when=IS_ONE),
    step("z", title="Z {{y}}", prompt=CONTEXT),
    inputs=INPUTS,
)
MAY_DIFFER = {"recap", "warnings", "fork", "nextCall"}


@dataclass(slots=True)
class Known:
    """A node as it was handed out first, and how it was shown first after its step was done."""

    node: str
    state: str
    pending: str
    done: str | None = None


@dataclass(slots=True)
class History:
    """One run under test, and the model of it."""

    harness: Harness
    known: list[Known] = field(default_factory=list[Known])
    parents: dict[str, str | None] = field(default_factory=dict[str, str | None])
    sent: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    items: dict[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])
    count: int = 0

    def begin(self) -> None:
        context = self.fresh((*CHANGED, "goal"))
        self.learn(self.harness.start("test.flow", context=context), context)

    def fresh(self, keys: tuple[str, ...] = CHANGED, x: int | None = 1) -> dict[str, Any]:
        """Return a delta whose texts stand nowhere else in the run."""
        self.count += 1
        word = f"v{self.count}-"
        things = [{"name": f"{word}first"}, {"name": f"{word}second"}]
        whole = {"x": x, "y": f"{word}y", "o": {"k": f"{word}k"}, "things": things, "goal": f"{word}goal"}
        return {key: whole[key] for key in keys}

    def learn(self, answer: ToolResult, delta: dict[str, Any]) -> None:
        """Take a node into the model, and hold what it renders against the model's context."""
        session = self.harness.session_of(self.harness.rehydrate(answer))
        created = [event for event in self.harness.events(session) if isinstance(event, NodeCreatedEvent)][-1]
        node = str(created.scope.node_id)
        if node in self.parents:
            return
        self.parents[node] = created.data.parent_node_id
        self.sent[node] = delta
        self.known.append(Known(node=node, state=answer.state, pending=json.dumps(answer["pending"])))
        if answer["pending"]:
            assert answer["pending"]["prompt"] == self.expected(node, answer["pending"])

    def context(self, node: str) -> dict[str, Any]:
        parent = self.parents[node]
        merged = (self.context(parent) if parent is not None else {}) | self.sent[node]
        return {key: value for key, value in merged.items() if value is not None}

    def expected(self, node: str, pending: dict[str, Any]) -> str:
        found = self.context(node)
        shown = {key: found.get(key, f"[context key not set: {key}]") for key in ("x", "y", "goal")}
        deep = found["o"]["k"] if "o" in found else "[context key not set: o.k]"
        text = f"x={shown['x']} y={shown['y']} deep={deep} of {shown['goal']}"
        if "loop" in pending:
            at = pending["loop"]["pass"] - 1
            # Within a pass the item stays what it was when the pass began.
            begun = self.items.get(self.parents[node] or "")
            item = begun[1] if begun is not None and begun[0] == at else found["things"][at]["name"]
            self.items[node] = (at, item)
            text += f" item={item} pass={at + 1} at={at}"
        is_one = pending["stepId"] == "c" and found.get("x") == 1
        return text + (f"\n\nOne: {shown['y']}." if is_one else "")

    def act(self, at: int, notes: str | None, delta: dict[str, Any]) -> None:
        """Report the step of a node: by its own ack where it is open, by a fork where it is done or used up."""
        looked = self.harness.rehydrate(self.known[at % len(self.known)].state)
        if looked["pending"] is None:
            return
        token = looked.structure.get("ackToken") or looked["fork"]["ackToken"]
        answer = self.harness.advance(token, notes, context=delta)
        if answer.code is not ErrorCode.ATTEMPT_LIMIT_REACHED:
            assert not answer.is_error, answer.text
            self.learn(answer, delta)

    def check(self) -> None:
        """Look at every node that was ever handed out."""
        for known in self.known:
            looked = self.harness.rehydrate(known.state)
            assert json.dumps(looked["pending"]) == known.pending
            if "STEP_ALREADY_DONE" in looked.warnings:
                rest = json.dumps({key: value for key, value in looked.structure.items() if key not in MAY_DIFFER})
                known.done = known.done or rest
                assert rest == known.done


ACTS = st.tuples(
    st.integers(0, 30),
    st.sampled_from(["Done.", "Done.", "Done.", None]),
    st.sets(st.sampled_from(CHANGED)).map(lambda keys: tuple(sorted(keys))),
    st.sampled_from([1, 2]),
    st.sets(st.sampled_from(["y", "o"])),
)


@pytest.mark.inv("CTX-2", "ADV-8")
@settings(max_examples=examples(20), derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ACTS, min_size=4, max_size=14))
def test_a_node_shows_the_same_step_for_ever_and_no_value_of_another_branch(acts: list[Any]) -> None:
    history = History(Harness.in_memory(RUN))
    history.begin()
    for at, notes, keys, x, removed in acts:
        delta: dict[str, Any] = history.fresh(keys, x)
        history.act(at, notes, delta | dict.fromkeys(removed - set(keys)))
        history.check()


@pytest.mark.inv("CTX-2", "ADV-8", "ADV-10")
def test_the_same_holds_of_a_history_with_everything_in_it() -> None:
    """To the end, refused and retried in the loop, redone from the start, from the loop and after the end."""
    history = History(Harness.in_memory(RUN))
    history.begin()
    last = 0
    for notes in ("Done.", None, None, "Done.", "Done.", "Done.", None, "Done.", "Done.", "Done."):
        history.act(last, notes, history.fresh(("y", "things")))
        last = len(history.known) - 1
        history.check()
    assert json.loads(history.known[-1].pending) is None
    for at in (0, 2, 4, 0, 7):
        history.act(at, None, history.fresh(("y",)))
        history.act(len(history.known) - 1, "Done.", history.fresh(x=2))
        history.act(len(history.known) - 1, "Done.", history.fresh(("things",)))
        history.check()
    assert len(history.known) == 26
    handed = [json.loads(known.pending) for known in history.known]
    assert {pending["stepId"] for pending in handed if pending} == {"a", "b", "c", "d", "z"}
