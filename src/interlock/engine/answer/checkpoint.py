"""The answer of `checkpoint_workflow`: which bookmark was made, and how the run goes on (CHK-2)."""

from dataclasses import dataclass

from interlock.engine.answer.model import CONTINUE_TOOL, Answer, Warned, to_fill_in
from interlock.engine.answer.words import RunWords, StepWords, title_in_code
from interlock.kernel.canonical import Json
from interlock.kernel.ids import NodeId
from interlock.kernel.text import json_in_code


@dataclass(frozen=True, slots=True, kw_only=True)
class Bookmarked:
    """What a checkpoint's answer says. `ack_token` reports the step; None where it was done before the checkpoint."""

    run: RunWords
    node: NodeId
    step: StepWords
    state_token: str
    checkpoint_token: str | None
    ack_token: str | None
    warnings: tuple[Warned, ...] = ()


def render_checkpoint(facts: Bookmarked) -> Answer:
    """Return the answer in both channels; each stands alone."""
    call = _next_call(facts)
    structure: dict[str, Json] = {
        "kind": "ok",
        "run": {**facts.run.to_json(), "step": {"number": facts.step.number, "total": facts.step.total}},
        "nextCall": call,
        "stateToken": facts.state_token,
    }
    if facts.checkpoint_token is not None:
        structure["checkpointToken"] = facts.checkpoint_token
    structure["checkpoint"] = {"nodeId": facts.node}
    if facts.warnings:
        structure["warnings"] = [{"code": warned.code, "message": warned.message} for warned in facts.warnings]
    return Answer(structure=structure, text=_text(facts, call))


def _next_call(facts: Bookmarked) -> dict[str, Json]:
    if facts.ack_token is None:
        return {"tool": CONTINUE_TOOL, "arguments": {"stateToken": facts.state_token, "run": facts.run.label}}
    arguments: dict[str, Json] = {"ackToken": facts.ack_token, "run": facts.run.label, **to_fill_in(facts.step)}
    return {"tool": CONTINUE_TOOL, "arguments": arguments}


def _text(facts: Bookmarked, call: dict[str, Json]) -> str:
    step = facts.step
    parts = [f"{facts.run.header()} · step {step.number} of {step.total}: {title_in_code(step.title)}"]
    parts += [warned.in_one_line() for warned in facts.warnings]
    parts.append("Kept. The step is still to be done; nothing else has changed.")
    if facts.ack_token is None:
        parts[-1] = "Kept. The step was done before; to see where the run stands, send the next call."
    lines = ["---", f"Bookmark, good in any later chat: `stateToken` `{facts.state_token}`"]
    if facts.checkpoint_token is not None:
        lines.append(f"To keep more: `checkpointToken` `{facts.checkpoint_token}`")
    head = "When the step is done" if facts.ack_token is not None else "Next"
    lines.append(f"{head}, call `{CONTINUE_TOOL}`:")
    lines.append(json_in_code(call["arguments"]))
    return "\n\n".join([*parts, "\n".join(lines)])
