"""The answer of `checkpoint_workflow`: the new bookmark, and how to continue the run (CHK-2)."""

from interlock.engine.answer.identity import StepPosition
from interlock.engine.answer.model import CONTINUE_TOOL, Answer, ack_call, evidence_outline, look_call
from interlock.engine.answer.parts import PendingStepView, RunView
from interlock.engine.answer.structure import CheckpointAnswer, CheckpointOut, NextCall, Warned
from interlock.engine.template import title_in_code
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import NodeId


@frozen
class CheckpointModel:
    """What a checkpoint's answer says. `ack_token` reports the step; None if it was done before the checkpoint.

    `is_empty`: nothing was sent to save, so the checkpoint is only a bookmark.
    """

    run: RunView
    node: NodeId
    step: PendingStepView
    state_token: str
    checkpoint_token: str | None
    ack_token: str | None
    is_empty: bool = False
    warnings: tuple[Warned, ...] = ()


def render_checkpoint(facts: CheckpointModel) -> Answer:
    """Render the answer as data and as text; each is complete without the other."""
    step, label = facts.step, facts.run.label
    if facts.ack_token is None:
        call = look_call(facts.state_token, label)
    else:
        call = ack_call(facts.ack_token, label, evidence_outline(step))
    data = CheckpointAnswer(
        kind="ok",
        run=facts.run.identity(StepPosition(number=step.number, total=step.total)),
        next_call=call,
        state_token=facts.state_token,
        checkpoint_token=facts.checkpoint_token,
        checkpoint=CheckpointOut(node_id=facts.node),
        warnings=facts.warnings or None,
    )
    return Answer(data=data, text=_text(facts, call))


def _text(facts: CheckpointModel, call: NextCall) -> str:
    step = facts.step
    parts = [f"{facts.run.header()} · step {step.number} of {step.total}: {title_in_code(step.title)}"]
    parts += [warned.in_one_line() for warned in facts.warnings]
    saved = "Nothing was sent to save, so this is only a bookmark." if facts.is_empty else "Saved."
    if facts.ack_token is None:
        parts.append(f"{saved} The step was done before; the next call shows where the run is.")
    else:
        parts.append(f"{saved} The step is still pending; nothing else has changed.")
    lines = ["---", f"Bookmark for any later chat: `stateToken` `{facts.state_token}`"]
    if facts.checkpoint_token is not None:
        lines.append(f"To save more: `checkpointToken` `{facts.checkpoint_token}`")
    head = "When the step is done" if facts.ack_token is not None else "Next"
    lines.append(f"{head}, call `{CONTINUE_TOOL}`:")
    lines.append(call.in_lines())
    return "\n\n".join([*parts, "\n".join(lines)])
