"""The execution adapter of drivers: an agent executes the blocks of a flow, outside of any run (ADPT-4)."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import anyio

from interlock.drive.account import Account
from interlock.drive.client import Draft, Evidence, PendingStep, Position, Tokens
from interlock.drive.conversation.messages import Message, Origin
from interlock.drive.faults import TurnError
from interlock.drive.models.protocol import InferenceRequest, Place, ToolSpec
from interlock.drive.run.driver import Driver
from interlock.drive.turn import Equipment
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import replace
from interlock.operations.adapter import Assignment, BaseAdapter, BlockFailedError, Condition, ExecutorInfo, WorkBlock

OpenAgent = Callable[[], AbstractAsyncContextManager[Equipment]]
"""Opens what the turns of one agent share, with the connections of its tools."""
_OUTPUTS_KIND = "wr.block_outputs"
_DECIDE = ToolSpec(
    name="decide",
    description="Say whether the condition is true.",
    input_schema={
        "type": "object",
        "properties": {"result": {"type": "boolean"}},
        "required": ["result"],
        "additionalProperties": False,
    },
)


class AgentAdapter(BaseAdapter):
    """Lets an agent work on each block, turn by turn, with its own tools and limits."""

    def __init__(self, open_agent: OpenAgent, *, name: str) -> None:
        super().__init__()
        self._open_agent = open_agent
        self._executor = ExecutorInfo(type="agent", identifier=name)

    def choose_executor(self, block: WorkBlock) -> ExecutorInfo:
        """Return the agent: whether it can do the work shows when it is done."""
        del block
        return self._executor

    def do_work(self, assignment: Assignment) -> Json:
        """Let the agent work on a block, and return its outputs, or else its report.

        Raises:
            BlockFailedError: The agent did not report the block.
        """
        return anyio.run(self._drive_block, assignment)

    def evaluate_condition(self, condition: Condition, context: Json) -> bool:
        """Ask the agent whether a condition is true. Everything but a clear yes is a no."""
        text = f"Is this true? {condition.description}\n\nContext: {json.dumps(context, ensure_ascii=False)}"
        return anyio.run(self._decide, text)

    async def _drive_block(self, assignment: Assignment) -> Json:
        draft = Draft()
        async with self._open_agent() as equipment:
            driver = Driver(replace(equipment, client=draft, account=Account()))
            result = await driver.continue_at(_position(assignment))
        for saved in draft.saved:
            if saved.notes is not None:
                assignment.progress({"notes": saved.notes})
        if draft.reported is None:
            message = str(result.fault.message) if result.fault is not None else "the agent did not report it"
            raise BlockFailedError(message)
        return _outcome(draft.reported)

    async def _decide(self, text: str) -> bool:
        origin = Origin(source="api", original_format="condition", normalized_at="")
        async with self._open_agent() as equipment:
            request = InferenceRequest(
                model=equipment.profile.llm.model,
                system_prompt=equipment.profile.role,
                messages=(Message(role="user", content=text, origin=origin),),
                tools=(_DECIDE,),
                parameters=equipment.profile.llm.parameters,
                place=Place(step_id="condition", turn=1, turn_of_step=1),
            )
            try:
                response = await equipment.model.infer(request)
            except TurnError as error:
                raise BlockFailedError(error.fault.message) from error
        answers = [call.arguments for call in response.calls if call.name == _DECIDE.name]
        return any(isinstance(one, dict) and one.get("result") is True for one in answers)


def _position(assignment: Assignment) -> Position:
    """Return the position of a block: a step that no run waits for."""
    block = assignment.block
    outputs = "".join(f"\n- `{port.name}`: {port.description}" for port in block.outputs)
    wanted = f"\n\nReport an artifact of kind `{_OUTPUTS_KIND}` whose `outputs` hold:{outputs}" if outputs else ""
    prompt = f"{block.description}\n\nInputs: {json.dumps(assignment.inputs, ensure_ascii=False)}{wanted}"
    step = PendingStep(
        step_id=str(block.id), title=block.name, prompt=prompt, role=None, number=1, total=1, needs_person=False
    )
    tokens = Tokens(state="", ack=f"draft of {block.id}")
    return Position(session="", run="", label="", workflow_id="", tokens=tokens, step=step, is_complete=False)


def _outcome(report: Evidence) -> Json:
    outputs = next((one.get("outputs") for one in report.artifacts if one.get("kind") == _OUTPUTS_KIND), None)
    if outputs is not None:
        return outputs
    artifacts: list[Json] = [dict(one) for one in report.artifacts]
    return {"notes": report.notes, "artifacts": artifacts, "context": dict(report.context)}
