"""Finds texts that contain only space: the agent of such a step would learn nothing."""

from collections.abc import Iterator

from interlock.define import document as doc
from interlock.define.diagnostics import Diagnostic, fault, warning

_MESSAGE = "The text holds nothing but space."


def check_blanks(document: doc.WorkflowDocument) -> Iterator[Diagnostic]:
    """Yield each name, title, prompt or line of guidance that is blank."""
    report = fault if document.requires_declared_keys else warning
    for at in _blank(document):
        yield report(at, "empty", _MESSAGE, "Write something.")


def _blank(document: doc.WorkflowDocument) -> Iterator[str]:
    if not document.name.strip():
        yield "name"
    yield from (f"guidance[{number}]" for number, line in enumerate(document.guidance) if not line.strip())
    for step in doc.walk_steps(document.steps):
        if not step.title.strip():
            yield f"{step.at}.title"
        if isinstance(step, doc.AgentStep):
            yield from (f"{step.at}.{place}" for place in _blank_in(step))


def _blank_in(step: doc.AgentStep) -> Iterator[str]:
    if isinstance(step.prompt, doc.PromptBlocks):
        yield from (f"promptBlocks.{place}" for place in _blank_blocks(step.prompt))
    elif _is_blank(step.prompt):
        yield "prompt"
    for number, fragment in enumerate(step.fragments):
        if not fragment.text.strip():
            yield f"promptFragments[{number}].text"
    yield from (f"guidance[{number}]" for number, line in enumerate(step.guidance) if not line.strip())


def _blank_blocks(blocks: doc.PromptBlocks) -> Iterator[str]:
    if blocks.goal is not None and _is_blank(blocks.goal):
        yield "goal"
    for name, lines in (
        ("constraints", blocks.constraints),
        ("procedure", blocks.procedure),
        ("verify", blocks.verify),
    ):
        yield from (f"{name}[{number}]" for number, line in enumerate(lines) if _is_blank(line))
    for number, (name, line) in enumerate(blocks.output_required):
        if _is_blank(line):
            yield f"outputRequired.{name}" if name is not None else f"outputRequired[{number}]"


def _is_blank(prose: doc.Prose) -> bool:
    return all(isinstance(part, doc.TextPart) and not part.text.strip() for part in prose)
