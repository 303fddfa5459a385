"""What an author of flows waits for: validating and compiling a large one."""

import time

from benchmarks.table import Figure, at_most, ms
from interlock.define.operations.blocks import WorkBlock
from interlock.define.operations.builders import FlowBuilder, WorkBlockBuilder
from interlock.define.operations.definitions import Definitions
from interlock.define.operations.flows import Condition, Flow
from interlock.plan.compile.compiler import Compiled
from interlock.plan.flows.lowering import compile_flow

SLOTS = 500
COMPILE_MS_MAX = 300.0


def figures(*, is_quick: bool) -> list[Figure]:
    """Parse, validate and compile a flow in which each slot has two followers and every second edge a condition."""
    blocks = [
        WorkBlockBuilder(f"Block {number}").input("go", "where to").output("go", "where to").build()
        for number in range(10)
    ]
    value = large_flow(blocks).to_json()
    resolver = Definitions(blocks)
    seconds: list[float] = []
    for _ in range(3 if is_quick else 9):
        began = time.perf_counter()
        compiled = compile_flow(Flow.from_json(value), resolver)
        seconds.append(time.perf_counter() - began)
        assert isinstance(compiled, Compiled), "it compiles"
    return [at_most(f"validate and compile a flow of {SLOTS} slots", ms(seconds), COMPILE_MS_MAX, " ms")]


def large_flow(blocks: list[WorkBlock]) -> Flow:
    """Return a flow of `SLOTS` slots, of which the first is the entry."""
    builder = FlowBuilder("Large").entry("slot-0")
    for number in range(SLOTS):
        builder.add_block(blocks[number % len(blocks)], alias=f"slot-{number}")
        for follower in (number + 1, number + 2):
            if follower < SLOTS:
                predicate = {"==": [{"var": "go"}, follower]}
                condition = Condition.from_json({"description": "on", "predicate": predicate})
                builder.edge(f"slot-{number}", f"slot-{follower}", condition=condition if follower % 2 else None)
    return builder.build()
