"""What people wait for who use flows and contracts: compiling a large flow, and the state of a large contract."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.table import Figure, at_most, ms
from interlock.define.operations.blocks import WorkBlock
from interlock.define.operations.builders import ContractBuilder, FlowBuilder, WorkBlockBuilder
from interlock.define.operations.definitions import Definitions
from interlock.define.operations.flows import Condition, Flow
from interlock.kernel.canonical import Json
from interlock.plan.compile.compiler import Compiled
from interlock.plan.flows.lowering import compile_flow
from interlock.record.events import Actor
from interlock.service.contracts.start import ContractCommand, ContractStarted, start_contract
from interlock.service.contracts.status import read_status
from interlock.service.tokens.mint import minting
from interlock.testing.harness import Harness

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
    compiling = at_most(f"validate and compile a flow of {SLOTS} slots", ms(seconds), COMPILE_MS_MAX, " ms")
    return [compiling, status_figure(is_quick=is_quick)]


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


def complete_runs(harness: Harness, started: ContractStarted) -> None:
    """Report the only step of each run."""
    session = harness.store.load(started.session)
    assert session is not None, "it was just begun"
    for run in started.runs:
        one = session.runs[run]
        assert one.tip is not None, "a run has a root"
        token = minting(harness.ports.read, harness.ports.key_ring.ensure_keys(), session, one).state(one.tip)
        output: dict[str, Json] = {"artifacts": [{"kind": "wr.block_outputs", "outputs": {"go": 1}}]}
        assert harness.advance(harness.rehydrate(str(token)), None, output=output)["isComplete"], "it has one step"


STATUS_RUNS = 50
STATUS_MS_MAX = 150.0


def status_figure(*, is_quick: bool) -> Figure:
    """Read the state of a contract of 50 runs that are done, from a store that was read before."""
    block = WorkBlockBuilder("Work").output("go").build()
    flow = FlowBuilder("Work").add_block(block, alias="only").entry("only").build()
    builder = ContractBuilder("Many")
    for number in range(STATUS_RUNS):
        builder.work_flow(flow, alias=f"flow {number}")
    contract = builder.build()
    with TemporaryDirectory() as directory:
        harness = Harness.on_disk(Path(directory))
        actor = Actor(type="human", identifier="benchmark")
        definitions = Definitions([block, flow, contract])
        command = ContractCommand(contract_id=contract.id, version=1, definitions=definitions, goal=None, actor=actor)
        started = start_contract(harness.ports, harness.store, command)
        assert isinstance(started, ContractStarted), started
        complete_runs(harness, started)
        seconds: list[float] = []
        for _ in range(4 if is_quick else 10):
            began = time.perf_counter()
            status = read_status(harness.ports.read, started.session)
            seconds.append(time.perf_counter() - began)
            assert status is not None and status.execution.state == "completed", "all its runs are done"  # noqa: PT018
    what = f"contract status over {STATUS_RUNS} runs, warm"
    return at_most(what, ms(seconds[1:]), STATUS_MS_MAX, " ms")
