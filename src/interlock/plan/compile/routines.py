"""Routines: steps that a workflow unfolds in place, with arguments (PLAN-12)."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import cache

from interlock.define import document as doc
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen, replace
from interlock.plan.builtins.templates import TEMPLATES

ROUTINE_NAMESPACE = "wr.templates.routine."
_ROUTINE_ID = re.compile(r"(?:wr\.)?routine-(.+)")
_HOLE = re.compile(r"(?<![{\w]){([A-Za-z_][A-Za-z0-9_]*)}(?!})")
"""`{name}`: filled when a routine is unfolded; `{{name}}` is filled at run time."""


@frozen
class Routine:
    """Steps to unfold. `args` are the names that its texts hold."""

    template_id: str
    steps: tuple[doc.Step, ...]
    guidance: tuple[str, ...] = ()

    @property
    def args(self) -> frozenset[str]:
        """The names of the arguments that the texts of the routine hold."""
        return frozenset(name for step in self.steps for text in _texts(step) for name in _HOLE.findall(text))


@frozen
class RoutineLibrary:
    """What a document may refer to outside itself: routines by template id, and a project's bindings of slots."""

    routines: Mapping[str, Routine]
    bindings: Mapping[str, str] = field(default_factory=dict[str, str])


@cache
def builtin_routines() -> Mapping[str, Routine]:
    """Return the routines that ship with Interlock."""
    return {
        template.template_id: Routine(
            template_id=template.template_id,
            steps=tuple(
                doc.AgentStep(
                    at="",
                    id=step.step_id,
                    title=step.title,
                    prompt=doc.to_prose(step.prompt),
                    agent_role=step.agent_role,
                    guidance=step.guidance,
                )
                for step in template.steps
            ),
        )
        for template in TEMPLATES.values()
    }


def names_routine(workflow_id: str) -> bool:
    """Return whether a core workflow with this id defines a routine."""
    return _ROUTINE_ID.fullmatch(workflow_id) is not None


def routine_of(document: doc.WorkflowDocument) -> Routine | None:
    """Return the routine that a core workflow defines, if its id names one."""
    named = _ROUTINE_ID.fullmatch(document.id)
    if named is None:
        return None
    return Routine(template_id=f"{ROUTINE_NAMESPACE}{named.group(1)}", steps=document.steps, guidance=document.guidance)


def unfolded(routine: Routine, call: doc.TemplateStep) -> tuple[doc.Step, ...]:
    """Return the steps of a routine for a call: ids prefixed with the id of the call and `--`, arguments inserted."""

    def fill(text: str) -> str:
        return _HOLE.sub(lambda hole: _filled(hole, call.args), text)

    steps = [_renamed(step, call, fill) for step in routine.steps]
    first, last = steps[0], steps[-1]
    guidance = (*call.guidance, *map(fill, routine.guidance))
    if guidance and isinstance(first, doc.AgentStep):
        # Only in the first step; otherwise every step would repeat it.
        steps[0] = replace(first, guidance=(*guidance, *first.guidance))
    if call.confirmation is not None and isinstance(last, doc.AgentStep):
        steps[-1] = replace(steps[-1], confirmation=call.confirmation)
    return tuple(steps)


def _filled(hole: re.Match[str], args: Mapping[str, Json]) -> str:
    value = args.get(hole.group(1))
    if value is None:
        return hole.group(0)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _renamed(step: doc.Step, call: doc.TemplateStep, fill: Callable[[str], str]) -> doc.Step:
    name = f"{call.id}--{step.id}"
    match step:
        case doc.AgentStep():
            return replace(
                step,
                at=call.at,
                id=name,
                verifies=tuple(f"{call.id}--{verified}" for verified in step.verifies),
                title=fill(step.title),
                agent_role=step.agent_role or call.agent_role,
                prompt=_filled_prompt(step.prompt, fill),
                guidance=tuple(map(fill, step.guidance)),
            )
        case doc.LoopStep():
            return replace(step, at=call.at, id=name, title=fill(step.title), body=_all_renamed(step.body, call, fill))
        case doc.ParallelStep():
            branches = tuple(_all_renamed(branch, call, fill) for branch in step.branches)
            return replace(step, at=call.at, id=name, branches=branches)
        case doc.ChoiceStep():
            return replace(
                step,
                at=call.at,
                id=name,
                branches=tuple(
                    replace(branch, steps=_all_renamed(branch.steps, call, fill)) for branch in step.branches
                ),
                otherwise=_all_renamed(step.otherwise, call, fill) if step.otherwise is not None else None,
            )
        case doc.TemplateStep():
            return replace(step, at=call.at, id=name)


def _all_renamed(
    steps: tuple[doc.Step, ...], call: doc.TemplateStep, fill: Callable[[str], str]
) -> tuple[doc.Step, ...]:
    return tuple(_renamed(step, call, fill) for step in steps)


def _filled_prompt(prompt: doc.Prose | doc.PromptBlocks, fill: Callable[[str], str]) -> doc.Prose | doc.PromptBlocks:
    if not isinstance(prompt, doc.PromptBlocks):
        return _filled_prose(prompt, fill)
    return doc.PromptBlocks(
        goal=_filled_prose(prompt.goal, fill) if prompt.goal is not None else None,
        constraints=tuple(_filled_prose(one, fill) for one in prompt.constraints),
        procedure=tuple(_filled_prose(one, fill) for one in prompt.procedure),
        output_required=tuple((name, _filled_prose(one, fill)) for name, one in prompt.output_required),
        verify=tuple(_filled_prose(one, fill) for one in prompt.verify),
    )


def _filled_prose(prose: doc.Prose, fill: Callable[[str], str]) -> doc.Prose:
    return tuple(doc.TextPart(text=fill(part.text)) if isinstance(part, doc.TextPart) else part for part in prose)


def _texts(step: doc.Step) -> Iterator[str]:
    """Yield the texts of a step in which arguments are filled in."""
    yield step.title
    if isinstance(step, doc.AgentStep):
        yield from step.guidance
        for prose in proses(step.prompt):
            yield from (part.text for part in prose if isinstance(part, doc.TextPart))
    for inner in doc.inner_steps(step):
        yield from _texts(inner)


def proses(prompt: doc.Prose | doc.PromptBlocks) -> Iterator[doc.Prose]:
    """Yield every piece of prose of a prompt."""
    if not isinstance(prompt, doc.PromptBlocks):
        yield prompt
        return
    if prompt.goal is not None:
        yield prompt.goal
    yield from prompt.constraints
    yield from prompt.procedure
    yield from (prose for _, prose in prompt.output_required)
    yield from prompt.verify
