"""The typed plan: nodes, edges, loops and conditions, as they are pinned (IR-1).

The plan is a typed graph. Loops are structured: a loop is one node of the graph around it, and the nodes of its body
form a graph of their own, so no graph has a cycle. Nodes are in plan order, so every edge leads forward. The plan
holds no run state: that is in the snapshots.

A member that has a `Written` default may be left out of a plan file, and is in the bytes of every plan (IR-18).
"""

from typing import Annotated, Literal

import msgspec

from interlock.decide.condition import Condition
from interlock.decide.criteria import Criteria
from interlock.define.parts import AwaitEvent, EmitAction, Hints, Metadata, Proof, SetAction, UserNeed
from interlock.kernel.budgets.workflow import EMITS_PER_STEP_MAX, PROOFS_PER_STEP_MAX
from interlock.kernel.shape import EMPTY, Written, limits
from interlock.plan.prompt_blocks import ResolvedBlocks
from interlock.record.base import DelimiterSafe, DigestField, IndexField, Record
from interlock.record.outcome import Capability

NOTES_CONTRACT = "wr.contracts.notes"
"""Evidence of a plain step: its notes (BLK-1)."""
STEP_INPUT = "wr.contracts.step_input"
"""The input of a step for an agent: its prompt and the context."""
ASSESSMENT_CONTRACT = "wr.contracts.assessment"
LOOP_CONTROL_CONTRACT = "wr.contracts.loop_control"
CAPABILITY_CONTRACT = "wr.contracts.capability_observation"
CONFIRMATION_CONTRACT = "wr.contracts.confirmation"
OUTPUTS_CONTRACT = "wr.contracts.block_outputs"
DIVERGENCE_CONTRACT = "wr.contracts.workflow_divergence"
EVENT_CONTRACT = "wr.contracts.event"
"""Evidence of a step that waits: an event from outside, which is in the log and not in the report."""

NodeKind = Literal["task", "decision", "fan_out", "fan_in", "loop", "terminal"]
Owner = Literal["harness", "agent", "plugin", "human_gate", "verifier"]
EdgeKind = Literal["direct", "conditional", "fan_out", "fan_in", "terminal"]


class Provenance(Record):
    """Where a part of the plan comes from."""

    source: Literal["authored", "template_injected", "feature_injected"]
    origin_id: str | None = None


AUTHORED = Provenance(source="authored")


class Injection(Record):
    """A built-in text that was inlined into a prompt when it was compiled (PLAN-10)."""

    ref_id: str
    ref_content_hash: DigestField
    byte_length: IndexField


class Fragment(Record):
    """A part of a prompt that is shown if its condition is true when the prompt is rendered; without one, always.

    One with `asks_user` is not shown in a run that never stops.
    """

    fragment_id: str
    condition: Condition | None = None
    text: str
    asks_user: bool = False


class Consequence(Record):
    """The effect of an assessed level: the step is not done until the guidance was followed."""

    level: str
    guidance: str
    assessment_id: str | None = None


NotesNeed = Literal["required", "optional"]


class Evidence(Record):
    """The evidence that a step needs in addition to the artifact of its contract."""

    artifact_required: bool = msgspec.field(default_factory=Written(default=False))
    notes: NotesNeed = msgspec.field(default_factory=Written[NotesNeed]("required"))
    assessments: tuple[str, ...] = ()
    consequences: tuple[Consequence, ...] = ()
    criteria: Criteria | None = None


_PLAIN_EVIDENCE = Evidence()
"""That of a step which asks for its notes alone."""


class Task(Record):
    """The work of an agent in a step. Texts may contain `{{key}}`, rendered with the node's context (PLAN-6).

    A step with `awaits` has no work: it is done when its event is there (WORLD-1). `prompt_blocks` are the parts of a
    prompt that was written in parts; they say nothing that `prompt` does not say.
    """

    prompt: str
    prompt_blocks: ResolvedBlocks | None = None
    agent_role: str | None = None
    fragments: tuple[Fragment, ...] = ()
    requirements: tuple[str, ...] = ()
    evidence: Evidence = msgspec.field(default_factory=Written(_PLAIN_EVIDENCE))
    confirmation: Condition | None = None
    functions: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    produces: tuple[str, ...] = ()
    sets: tuple[SetAction, ...] = ()
    emits: Annotated[tuple[EmitAction, ...], *limits(max_length=EMITS_PER_STEP_MAX)] = ()
    awaits: AwaitEvent | None = None
    needs_user: tuple[UserNeed, ...] = ()
    injections: tuple[Injection, ...] = ()
    verifies: tuple[DelimiterSafe, ...] = ()
    by: Literal["another"] | None = None
    proofs: Annotated[tuple[Proof, ...], *limits(max_length=PROOFS_PER_STEP_MAX)] = ()


class PlanNode(Record):
    """One unit of the plan. If it is in the body of a loop, the loop lists it there.

    `hints` and `metadata` are for readers: no decision reads them (IR-17).
    """

    node_id: DelimiterSafe
    kind: NodeKind
    owner: Owner
    title: str
    input_schema_ref: str | None = None
    evidence_schema_ref: str | None = None
    capabilities: tuple[Capability, ...] = ()
    provenance: Provenance = msgspec.field(default_factory=Written(AUTHORED))
    hints: Hints = ()
    metadata: Metadata | None = None
    task: Task | None = None


class PlanEdge(Record):
    """A way from one node to another of the same graph."""

    edge_id: str
    kind: EdgeKind
    source: DelimiterSafe
    target: DelimiterSafe
    condition_id: DelimiterSafe | None = None


CheckedWhen = Literal["before_pass", "after_pass", "before_step"]
"""When the condition of a loop is read."""


class Loop(Record):
    """A loop: how its passes are decided, and what its steps may read of them.

    `while` and `until` have a condition, `for` counts, `for_each` takes one item a pass. Passes count from 0; a
    pass begins only below `max_iterations`. `checked` says when the condition is read: before every pass, before
    every pass but the first, or before every step.
    """

    loop_id: DelimiterSafe
    kind: Literal["while", "until", "for", "for_each"]
    max_iterations: Annotated[int, *limits(ge=1)]
    on_limit: Literal["exit", "block"]
    body: tuple[DelimiterSafe, ...]
    checked: CheckedWhen = msgspec.field(default_factory=Written[CheckedWhen]("before_pass"))
    condition_id: DelimiterSafe | None = None
    count: int | str | None = None
    items: str | None = None
    iteration_var: str
    index_var: str
    item_var: str | None = None


class NamedCondition(Record):
    """A condition that edges and loops refer to."""

    condition_id: DelimiterSafe
    condition: Condition


class Plan(Record):
    """The typed graph that the engine walks. Nodes are in plan order."""

    v: Literal[1]
    nodes: Annotated[tuple[PlanNode, ...], *limits(min_length=1)]
    edges: tuple[PlanEdge, ...] = msgspec.field(default_factory=EMPTY)
    loops: tuple[Loop, ...] = msgspec.field(default_factory=EMPTY)
    conditions: tuple[NamedCondition, ...] = msgspec.field(default_factory=EMPTY)
