"""What a model reads: its role and how it works in the system prompt, each step with what its report must hold."""

import json
from collections.abc import Mapping, Sequence

from interlock.drive.agent.profile import Profile
from interlock.drive.client import PendingStep, Position
from interlock.drive.conversation.messages import Message, Origin
from interlock.drive.models.protocol import ToolSpec
from interlock.drive.record import PROGRESS_TOOL, REPORT_TOOL
from interlock.kernel.budgets.drive import TURN_RECORD_BYTES_MAX
from interlock.kernel.canonical import Json

REPORT = ToolSpec(
    name=REPORT_TOOL,
    description="Report the step as done, with its evidence. Only when it is done.",
    input_schema={
        "type": "object",
        "properties": {
            "notes": {
                "type": "string",
                "description": "Markdown: the result: what you did, found and decided.",
            },
            "artifacts": {
                "type": "array",
                "items": {"type": "object"},
                "description": "Structured evidence, if the step asks for it. Each has a `kind`.",
            },
            "context": {"type": "object", "description": "Context keys, if the step asks for them."},
        },
        "additionalProperties": False,
    },
)
PROGRESS = ToolSpec(
    name=PROGRESS_TOOL,
    description="Save notes of an unfinished step. It does not report the step.",
    input_schema={
        "type": "object",
        "properties": {"notes": {"type": "string"}},
        "required": ["notes"],
        "additionalProperties": False,
    },
)

_HOW = (
    "You work through a workflow, one step at a time. Each step is a message. Do the step, then call"
    f" `{REPORT_TOOL}` with its evidence: where a step or a refusal says `output.notesMarkdown`, send `notes`; where it"
    " says `output.artifacts`, send `artifacts`. Never claim what a person did or approved: such evidence is dropped."
)
UNREPORTED = f"The step is still pending. Continue it, or call `{REPORT_TOOL}` with its evidence if it is done."
TOO_LARGE_TO_WAIT = (
    "Not accepted: the step waits for a person or an event, and the report is too large or nested too deep to be kept"
    f" until then. Call `{REPORT_TOOL}` again with less than {TURN_RECORD_BYTES_MAX} bytes: put long texts into files"
    " and name the files."
)
CUT_OFF = "Your answer was cut off at the limit of its length. Continue, in shorter answers."


def system_prompt(profile: Profile) -> str:
    """Return the system prompt: the role, the profile's own text, and how steps are worked."""
    parts = [profile.role, profile.prompts.system or "", _HOW]
    return "\n\n".join(one for one in parts if one)


def step_message(position: Position, step: PendingStep) -> str:
    """Return the message of a step, with what its report must hold. It holds no token."""
    parts = [f"# Step {step.number} of {step.total}: {step.title}"]
    if position.goal is not None:
        parts.append(f"Goal of the run: {position.goal}")
    if step.role is not None:
        parts.append(step.role)
    parts.append(step.prompt)
    wanted = evidence_outline(position)
    if wanted:
        parts.append(f"The report (`{REPORT_TOOL}`) must hold:\n{wanted}")
    return "\n\n".join(parts)


def evidence_outline(position: Position) -> str:
    """Return the outline of the evidence: what is fixed, and a line for each value that the model writes."""
    call = position.wanted or {}
    arguments = call.get("arguments")
    fixed = arguments if isinstance(arguments, dict) else {}
    output = fixed.get("output")
    shown: dict[str, Json] = {}
    if isinstance(output, dict) and "artifacts" in output:
        shown["artifacts"] = output["artifacts"]
    if fixed.get("context"):
        shown["context"] = fixed["context"]
    lines = [f"fixed: {json.dumps(shown, ensure_ascii=False)}"] if shown else []
    fills = call.get("fill")
    lines += [_fill_line(one) for one in (fills if isinstance(fills, list) else []) if isinstance(one, dict)]
    return "\n".join(lines)


def _fill_line(fill: Mapping[str, Json]) -> str:
    path = str(fill.get("path", "")).removeprefix("output.").replace("notesMarkdown", "notes")
    choices, shape = fill.get("choices"), fill.get("shape")
    if isinstance(choices, list) and len(choices) == 1:
        return f"- `{path}`: exactly `{json.dumps(choices[0], ensure_ascii=False)}`"
    kind = " | ".join(map(str, choices)) if isinstance(choices, list) and choices else shape
    return f"- `{path}`" + (f" ({kind})" if kind else "") + (f": {fill['what']}" if "what" in fill else "")


def refusal_message(blockers: Sequence[Mapping[str, Json]], position: Position) -> str:
    """Return what a model reads after its report was refused."""
    lines = ["Not accepted yet:"]
    for one in blockers:
        fix = one.get("suggestedFix")
        lines.append(f"- {one.get('code')}: {one.get('message')}" + (f" {fix}" if fix else ""))
    wanted = evidence_outline(position)
    if wanted:
        lines.append(f"Call `{REPORT_TOOL}` again with:\n{wanted}\nThe other parts that you sent are kept.")
    return "\n".join(lines)


def few_shots(profile: Profile, now: str) -> list[Message]:
    """Return the examples of a profile as messages, which precede the conversation."""
    origin = Origin(source="api", original_format="few_shot", normalized_at=now)
    return [
        message
        for one in profile.prompts.few_shot_examples
        for message in (
            Message(role="user", content=one.user, origin=origin),
            Message(role="assistant", content=one.assistant, origin=origin),
        )
    ]
