"""Flows for tests: built from aliases, run through the tools, and random ones with a model of what is taken."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

from interlock.define.operations.blocks import WorkBlock
from interlock.define.operations.builders import FlowBuilder, WorkBlockBuilder
from interlock.define.operations.definitions import Definitions
from interlock.define.operations.files import to_file_json
from interlock.define.operations.flows import Condition, Flow
from interlock.kernel.canonical import Json
from interlock.plan.compile.compiler import Compiled
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.flows.lowering import compile_flow
from interlock.testing.harness import Harness, ToolResult

WORKFLOW_ID = "test.flow"
WORK = WorkBlockBuilder("Work").description("Do it.").input("go", required=False).output("go", "a number").build()
LETTERS = "abcdefgh"


def lowered(flow: Flow, *blocks: WorkBlock) -> CompiledWorkflow:
    found = compile_flow(flow, Definitions(blocks))
    assert isinstance(found, Compiled), found
    return found.workflow


def harness_of(flow: Flow, *blocks: WorkBlock) -> Harness:
    """Return a harness whose sources hold a flow, which is started as `WORKFLOW_ID`, and its blocks."""
    named = flow.model_copy(update={"metadata": {**flow.metadata, "workflow_id": WORKFLOW_ID}})
    return Harness.in_memory(*(to_file_json(one) for one in (*{one.id: one for one in blocks}.values(), named)))


def outputs(**values: Json) -> dict[str, Json]:
    return {"artifacts": [{"kind": "wr.block_outputs", "outputs": values}]}


def decision(result: bool) -> dict[str, Json]:  # noqa: FBT001 — the value of a field
    return {"artifacts": [{"kind": "wr.decision", "conditionId": "asked", "result": result}]}


def run_to_end(harness: Harness, answer: ToolResult, output_of: Callable[[str], Mapping[str, Json]]) -> list[str]:
    """Report every step with these outputs, and return the steps in the order in which they were done."""
    done: list[str] = []
    while not answer["isComplete"]:
        step = str(answer["pending"]["stepId"])
        done.append(step)
        answer = harness.advance(answer, None, output=dict(output_of(step)))
        assert not answer.is_error, answer.text
        assert answer["kind"] == "ok", answer.text
    return done


@dataclass(frozen=True, slots=True)
class RandomFlow:
    """A flow of slots with letters as aliases. `edges`: source, target, and the output that takes it; None: always.

    `go` is what each slot outputs.
    """

    slots: str
    edges: tuple[tuple[str | None, str, int | None], ...]
    go: Mapping[str, int]

    def build(self) -> Flow:
        builder = FlowBuilder("Random")
        for slot in self.slots:
            builder.add_block(WORK, alias=slot)
        for source, target, value in self.edges:
            condition = None
            if value is not None:
                condition = Condition(description=f"{value}", predicate={"==": [{"var": "go"}, value]})
            if source is None:
                builder.entry(target, condition=condition)
            else:
                builder.edge(source, target, condition=condition)
        return builder.build()

    def is_terminal(self, slot: str) -> bool:
        return all(source != slot for source, _, _ in self.edges)

    def taken(self, begin: int) -> set[str]:
        """Return the slots that are done if the flow begins with this input: the model."""
        done: set[str] = set()
        for slot in self.slots:
            for source, target, value in self.edges:
                given = begin if source is None else self.go[source]
                if target == slot and (source is None or source in done) and value in (None, given):
                    done.add(slot)
        return done


@st.composite
def random_flows(draw: st.DrawFn) -> RandomFlow:
    slots = LETTERS[: draw(st.integers(1, 7))]
    condition = st.none() | st.integers(0, 1)
    edges: list[tuple[str | None, str, int | None]] = []
    for at, slot in enumerate(slots):
        sources = draw(st.lists(st.sampled_from([None, *slots[:at]]), min_size=1, max_size=3))
        edges += [(source, slot, draw(condition)) for source in sources]
    go = {slot: draw(st.integers(0, 1)) for slot in slots}
    return RandomFlow(slots=slots, edges=tuple(edges), go=go)
