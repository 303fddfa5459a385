"""Finds placeholders of references and slots in native texts, which render only context keys."""

import re
from collections.abc import Iterator

from interlock.define import document as doc
from interlock.define.diagnostics import Diagnostic, fault

_PLACEHOLDER = re.compile(r"\{\{\s*wr\.(refs|bindings)\.[^{}]*\}\}")
_PARTS = {"refs": '{"kind": "ref", "refId": "wr.refs.…"}', "bindings": '{"kind": "binding", "slotId": "…"}'}


def check_placeholders(document: doc.WorkflowDocument) -> Iterator[Diagnostic]:
    """Yield each placeholder that would be shown as an unset context key (PLAN-11)."""
    for step in doc.walk_steps(document.steps):
        for at, text in _texts(step):
            for found in _PLACEHOLDER.finditer(text):
                message = f"`{found.group(0)}` is not filled in: a placeholder takes only a context key."
                fix = f"Write a part {_PARTS[found.group(1)]} in `promptBlocks`."
                yield fault(f"{step.at}.{at}", "wrong_value", message, fix)


def _texts(step: doc.Step) -> Iterator[tuple[str, str]]:
    """Yield the texts of a step that are rendered with the context, each with its place in the step."""
    yield "title", step.title
    match step:
        case doc.AgentStep():
            yield from _prompt_texts(step.prompt)
            yield from ((f"promptFragments[{at}].text", one.text) for at, one in enumerate(step.fragments))
            yield from ((f"guidance[{at}]", line) for at, line in enumerate(step.guidance))
            yield from ((f"needsUser[{at}].ask", need.ask) for at, need in enumerate(step.needs_user))
        case doc.TemplateStep():
            texts = ((name, value) for name, value in step.args.items() if isinstance(value, str))
            yield from ((f"templateCall.args.{name}", value) for name, value in texts)
        case _:
            return


def _prompt_texts(prompt: doc.Prose | doc.PromptBlocks) -> Iterator[tuple[str, str]]:
    if not isinstance(prompt, doc.PromptBlocks):
        yield from (("prompt", text) for text in _plain(prompt))
        return
    yield from (("promptBlocks.goal", text) for text in _plain(prompt.goal or ()))
    named = {"constraints": prompt.constraints, "procedure": prompt.procedure, "verify": prompt.verify}
    for name, lines in named.items():
        yield from ((f"promptBlocks.{name}[{at}]", text) for at, line in enumerate(lines) for text in _plain(line))
    for at, (name, line) in enumerate(prompt.output_required):
        place = f".{name}" if name is not None else f"[{at}]"
        yield from ((f"promptBlocks.outputRequired{place}", text) for text in _plain(line))


def _plain(prose: doc.Prose) -> Iterator[str]:
    yield from (part.text for part in prose if isinstance(part, doc.TextPart))
