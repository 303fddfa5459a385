"""The WorkRail front end: reads files of that project (version 3.x) without changes and reports every fault.

These keys are accepted without effect: `version`, `about`, `validatedAgainstSpecVersion`, `metricsProfile`;
`resolveFrom` of a reference; `askForFiles` and `hasValidation` of a step; `requireConfirmation` of a parallel step;
`requireConfirmation` and `notesOptional` of a loop, because a loop itself is never given to an agent; and evidence and
fragments of a step with `templateCall`, because the steps of the routine replace it. Only one kind of evidence of a
step counts: a contract, else assessments, else criteria.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import cast

from pydantic import ValidationError

from interlock.define import document as doc
from interlock.define.diagnostics import Diagnostic, Diagnostics, fault, limited
from interlock.define.faults import diagnose_faults, make_free_name, make_safe_id
from interlock.define.parts import CLARIFY, Reference
from interlock.define.patterns import PatternChecker
from interlock.define.recovery import is_step_id
from interlock.define.workrail.forms import ReferenceForm, WorkflowForm, step_tag
from interlock.define.workrail.steps import LOOP_CONTROL, StepLowering, drop_blank_lines, render_model_tier
from interlock.kernel.budgets.workflow import (
    WORKFLOW_ID_CHARS_MAX,
)
from interlock.kernel.canonical import Json
from interlock.kernel.shape.mirror import faults_of

_ID = re.compile(r"[a-z0-9][a-z0-9_-]*|[a-z][a-z0-9_-]*\.[a-z][a-z0-9_-]*")
_PROMPTS = ("prompt", "promptBlocks", "templateCall")
_DECLARED_STEPS = ("verification", "audit", "synthesis")
"""Keys of a step that become separate steps. Their ids begin with the id of the step that declares them."""
_STEP_PATH = re.compile(r"steps\[(\d+)\](?:\.body\[(\d+)\])?")
_REQUIRED: Mapping[str, Json] = {"id": "stand-in", "name": "-", "description": "-", "version": "-"}


def parse_workrail(value: dict[str, Json], patterns: PatternChecker) -> tuple[doc.WorkflowDocument | None, Diagnostics]:
    """Parse a WorkRail document and return it with all its faults.

    If its form has faults, the returned document is without the faulty parts, for further checks only. It is None if
    nothing can be recovered.
    """
    form, faults = _parse_form(value)
    if form is None:
        form, _ = _parse_form(_recover_document(value, faults))
    # These checks read the original value, so that no fault of form hides their faults.
    faults += _check_id(value.get("id"))
    faults += limited(_check_prompts(value.get("steps")))
    faults += limited(_check_duplicate_ids(value.get("steps")))
    document = _lower_document(form, faults, patterns) if form is not None else None
    return document, tuple(dict.fromkeys(faults))


def _parse_form(value: dict[str, Json]) -> tuple[WorkflowForm | None, list[Diagnostic]]:
    try:
        return WorkflowForm.model_validate(value), []
    except ValidationError as error:
        return None, diagnose_faults(faults_of(error), value, WorkflowForm)


def _lower_document(form: WorkflowForm, faults: list[Diagnostic], patterns: PatternChecker) -> doc.WorkflowDocument:
    """Lower the whole document. Faults are added to `faults`."""
    return doc.WorkflowDocument(
        id=form.id,
        name=form.name,
        description=form.description,
        examples=form.examples,
        guidance=tuple(_lower_guidance(form)),
        references=tuple(_lower_reference(reference) for reference in form.references),
        features=tuple(
            doc.FeatureUse(feature_id=feature, config={}, at=f"features[{number}]")
            for number, feature in enumerate(form.features)
        ),
        functions=form.function_definitions,
        assessments=form.assessments,
        extension_points=form.extension_points,
        recommended=form.recommended_preferences,
        steps=StepLowering(form.steps, faults, patterns).lower(),
        requires_declared_keys=False,
    )


def _lower_guidance(form: WorkflowForm) -> Iterator[str]:
    yield from drop_blank_lines(form.meta_guidance)
    yield from (f"Before you begin: {line}" for line in drop_blank_lines(form.preconditions))
    yield from (f"{CLARIFY}{line}" for line in drop_blank_lines(form.clarification_prompts))
    if form.model_tier is not None:
        yield render_model_tier(form.model_tier)


def _lower_reference(form: ReferenceForm) -> Reference:
    return Reference(**{name: getattr(form, name) for name in Reference.__struct_fields__})


def _check_id(workflow_id: object) -> Iterator[Diagnostic]:
    if (
        not isinstance(workflow_id, str)
        or not 0 < len(workflow_id) <= WORKFLOW_ID_CHARS_MAX
        or _ID.fullmatch(workflow_id)
    ):
        return
    message = f"{workflow_id!r} is not a workflow id."
    yield fault("id", "bad_id", message, "Write the id in lower case, with digits, `_` and `-`, and at most one dot.")


def _walk_authored_steps(steps: object, at: str = "steps") -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the path and value of every object in a list of steps, loop bodies included."""
    for number, step in enumerate(cast("list[object]", steps) if isinstance(steps, list) else []):
        if isinstance(step, dict):
            members = cast("dict[str, object]", step)
            yield f"{at}[{number}]", members
            yield from _walk_authored_steps(members.get("body"), f"{at}[{number}].body")


def _check_prompts(steps: object) -> Iterator[Diagnostic]:
    for at, step in _walk_authored_steps(steps):
        if step_tag(step) != "<step>":
            continue
        prompts = [name for name in _PROMPTS if step.get(name) is not None]
        if not prompts or (prompts == ["promptBlocks"] and _is_empty(step["promptBlocks"])):
            fix = "Add `prompt`, `promptBlocks` or `templateCall`."
            yield fault(at, "prompt_missing", "The step has no prompt.", fix)
        if len(prompts) > 1:
            found = " and ".join(f"`{name}`" for name in prompts)
            yield fault(
                at, "prompt_twice", f"The step has {found}, but needs exactly one of them.", "Remove all but one."
            )


def _is_empty(blocks: object) -> bool:
    return isinstance(blocks, dict) and not any(cast("dict[str, object]", blocks).values())


def _check_duplicate_ids(steps: object) -> Iterator[Diagnostic]:
    """Report duplicate step ids, including those of loop bodies and of steps that are declared on other steps."""
    first_at: dict[str, str] = {}
    ids = list(_iter_ids(steps))
    taken = {step_id for _, _, step_id in ids}
    for at, place, step_id in ids:
        if step_id in first_at:
            message = f"{step_id!r} is also the id of {first_at[step_id]}."
            fix = f"Give one of the two another id, for example `{make_free_name(step_id, taken)}`."
            yield fault(place, "duplicate_id", message, fix)
        first_at.setdefault(step_id, at)


def _iter_ids(steps: object) -> Iterator[tuple[str, str, str]]:
    for at, step in _walk_authored_steps(steps):
        if isinstance(step_id := step.get("id"), str):
            yield at, f"{at}.id", step_id
            for name in _DECLARED_STEPS:
                if isinstance(step.get(name), dict):
                    yield f"{at}.{name}", f"{at}.{name}", f"{step_id}--{name}"


def _recover_document(value: dict[str, Json], faults: list[Diagnostic]) -> dict[str, Json]:
    """Return a copy of the document without its faulty parts. It is only checked, never run.

    A step whose id has a fault receives a valid one. A step with another fault is replaced by a stand-in. Any other
    member with a fault is removed.
    """
    recovered = dict(value)
    for path in [one.path for one in faults]:
        steps = recovered.get("steps")
        if (place := _STEP_PATH.match(path)) is not None and isinstance(steps, list):
            repair = _with_safe_id if is_step_id(path) else _build_stand_in
            recovered["steps"] = _repair_step(steps, int(place[1]), int(place[2]) if place[2] else None, repair)
            continue
        faulty_keys = [key for key in recovered if path == key or path.startswith((f"{key}.", f"{key}["))]
        for key in faulty_keys:
            del recovered[key]
        recovered |= {key: given for key, given in _REQUIRED.items() if key not in recovered}
    return recovered


def _repair_step(steps: list[Json], number: int, inner: int | None, repair: Callable[[Json], Json]) -> list[Json]:
    if number >= len(steps):
        return steps
    step = steps[number]
    repaired = repair(step)
    if inner is not None and isinstance(step, dict) and isinstance(body := step.get("body"), list):
        kept: Json = list(_repair_step(body, inner, None, repair))
        repaired = {**step, "body": kept}
    return [*steps[:number], repaired, *steps[number + 1 :]]


def _with_safe_id(step: Json) -> Json:
    return step | {"id": make_safe_id(str(step.get("id")))} if isinstance(step, dict) else _build_stand_in(step)


def _build_stand_in(step: Json) -> Json:
    members = step if isinstance(step, dict) else {}
    kept: dict[str, Json] = {"id": make_safe_id(str(members.get("id"))), "title": "-", "prompt": "-"}
    contract = members.get("outputContract")
    if isinstance(contract, dict) and contract.get("contractRef") == LOOP_CONTROL:
        # A loop may depend on this step to decide whether it continues.
        kept["outputContract"] = {"contractRef": LOOP_CONTROL}
    return kept
