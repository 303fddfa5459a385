"""Finds placeholders in native texts that would be shown as unset: references, slots, and keys that nothing sets."""

import re
from collections.abc import Iterator

from interlock.define import document as doc
from interlock.define.diagnostics import Diagnostic, fault, suggest_name, warning
from interlock.kernel.frozen import replace
from interlock.plan.check.kinds import declared_kinds, path_faults
from interlock.plan.check.reads import declared_keys, walk_in_loops

_PLACEHOLDER = re.compile(r"\{\{\s*wr\.(refs|bindings)\.[^{}]*\}\}")
_PATH = re.compile(r"\{\{\s*([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)\s*\}\}")
"""A placeholder: the path that it reads."""
_PARTS = {"refs": '{"kind": "ref", "refId": "wr.refs.…"}', "bindings": '{"kind": "binding", "slotId": "…"}'}


def check_placeholders(document: doc.WorkflowDocument) -> Iterator[Diagnostic]:
    """Yield each placeholder that would be shown as an unset context key (PLAN-11)."""
    for step in doc.walk_steps(document.steps):
        for at, text in _texts(step):
            for found in _PLACEHOLDER.finditer(text):
                message = f"`{found.group(0)}` is not filled in: a placeholder takes only a context key."
                fix = f"Write a part {_PARTS[found.group(1)]} in `promptBlocks`."
                yield fault(f"{step.at}.{at}", "wrong_value", message, fix)


def check_placeholder_keys(document: doc.WorkflowDocument) -> Iterator[Diagnostic]:
    """Yield each placeholder whose key nothing declares or sets, or whose path enters what is no object.

    A warning: an agent may send any key (PLAN-23).
    """
    kinds = declared_kinds(document)
    keys = set[str]().union(*declared_keys(document, doc.walk_steps(document.steps)))
    for step, around in walk_in_loops(document.steps):
        known = keys | around
        for at, text in _texts(step):
            for path in dict.fromkeys(_PATH.findall(text)):
                key, member = [*path.split("."), ""][:2]
                if key == "wr":
                    continue
                if key in known:
                    found = path_faults(f"{step.at}.{at}", path, kinds, warning)
                    yield from (replace(one, replacement=None) for one in found if one.severity == "warning")
                    continue
                guess = member if member in known else suggest_name(key, known)
                message = f"The placeholder reads the key {key!r}, which no input, step or loop around it sets."
                fix = "Declare it in `inputs`, or in `produces` of a step."
                fix = f"Did you mean `{{{{{guess}}}}}`?" if guess is not None else fix
                yield warning(f"{step.at}.{at}", "undeclared_key", message, fix)


def _texts(step: doc.Step) -> Iterator[tuple[str, str]]:
    """Yield the texts of a step that are rendered with the context, each with its place in the step."""
    yield "title", step.title
    match step:
        case doc.AgentStep():
            asked = step.awaits.approval if step.awaits is not None else None
            if asked is not None:
                yield "question", asked.question
            # Such a step without a prompt of its own has one that is made of its question.
            if asked is None or step.prompt != doc.to_prose(doc.approval_prompt(asked.question)):
                yield from _prompt_texts(step.prompt)
            for at, one in enumerate(step.fragments):
                yield f"promptFragments[{at}].text" if one.work is None else f"delegate[{one.work}]", one.text
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
