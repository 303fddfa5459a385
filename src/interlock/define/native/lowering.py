"""The native front end: parses a JSON value into the document model and reports every fault."""

from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from msgspec import UNSET

from interlock.decide.condition import Always, reads_loop_control
from interlock.decide.evaluate import EVENT
from interlock.decide.value import iter_reads
from interlock.define import document as doc
from interlock.define.diagnostics import Diagnostic, Diagnostics, fault, limited
from interlock.define.faults import diagnose_faults, make_free_name
from interlock.define.native import forms as native
from interlock.define.native.conditions import ConditionLowering
from interlock.define.native.outside_forms import ApproveForm, AwaitForm, CheckForm, EmitFieldForm, EmitForm, seconds_of
from interlock.define.native.prompt_forms import PromptBlocksForm, ProsePart
from interlock.define.parts import AwaitEvent, EmitAction, EmitField, SetAction
from interlock.define.patterns import PatternChecker
from interlock.define.recovery import recover_document
from interlock.define.workflow_ids import classify_id
from interlock.kernel.budgets import (
    AWAIT_S_MAX,
    DAY_S,
)
from interlock.kernel.budgets.workflow import (
    WORKFLOW_ID_CHARS_MAX,
)
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import replace
from interlock.kernel.shape import Reader, ShapeError
from interlock.record.world import APPROVAL, CHECK, RECORDED_FIELDS

_WORKFLOW = Reader[native.WorkflowForm](native.WorkflowForm)
_SET, _EMIT_FIELD = Reader[SetAction](SetAction), Reader[EmitField](EmitField)
_EMIT, _AWAIT = Reader[EmitAction](EmitAction), Reader[AwaitEvent](AwaitEvent)
_REQUIRED: Mapping[str, Json] = {"id": "stand.in", "name": "-", "steps": [{"id": "a", "title": "-", "prompt": "-"}]}


def parse_native(value: dict[str, Json], patterns: PatternChecker) -> tuple[doc.WorkflowDocument | None, Diagnostics]:
    """Parse a native document and return it with all its faults.

    If its form has faults, the returned document is without the faulty parts, for further checks only. It is None if
    nothing can be recovered.
    """
    form, faults = _parse_form(value)
    if form is None:
        form, _ = _parse_form(recover_document(value, faults, _REQUIRED))
    # These checks read the original value, so that no fault of form hides their faults.
    faults += _check_id(value.get("id"))
    if not any(one.path == "steps" for one in faults):
        faults += limited(_check_steps(value))
    if form is None:
        return None, tuple(faults)
    lowering = _Lowering(form, patterns)
    document = lowering.lower()
    return document, tuple(dict.fromkeys([*faults, *lowering.faults]))


def _parse_form(value: dict[str, Json]) -> tuple[native.WorkflowForm | None, list[Diagnostic]]:
    try:
        return _WORKFLOW.of_json(value), []
    except ShapeError as error:
        return None, diagnose_faults(error.faults, value, native.WorkflowForm)


def _check_id(workflow_id: object) -> list[Diagnostic]:
    if not isinstance(workflow_id, str) or not workflow_id or len(workflow_id) > WORKFLOW_ID_CHARS_MAX:
        return []
    if classify_id(workflow_id) is not None:
        return []
    message = f"{workflow_id!r} is not a workflow id."
    return [fault("id", "bad_id", message, "Write an id of the form `namespace.name`: lower case, with one dot.")]


def _check_steps(value: Mapping[str, Json]) -> Iterator[Diagnostic]:
    """Report duplicate step ids, and steps that do not have exactly one prompt, at any nesting level."""
    first_at: dict[str, str] = {}
    steps = list(_walk_authored_steps(value.get("steps"), "steps"))
    taken = {one for _, step in steps if isinstance(one := step.get("loopId", step.get("id")), str)}
    for at, step in steps:
        yield from _check_prompt(step, at)
        key = "loopId" if "loopId" in step else "id"
        step_id = step.get(key)
        if not isinstance(step_id, str):
            continue
        if step_id in first_at:
            message = f"{step_id!r} is also the id of {first_at[step_id]}."
            fix = f"Give one of the two another id, for example `{make_free_name(step_id, taken)}`."
            yield fault(f"{at}.{key}", "duplicate_id", message, fix)
        first_at.setdefault(step_id, at)


def _check_prompt(step: Mapping[str, object], at: str) -> Iterator[Diagnostic]:
    if native.step_tag(step) != "<step>" or step.get("type") not in (None, "step"):
        return
    prompts = [name for name in ("prompt", "promptBlocks") if step.get(name) is not None]
    if not prompts or (prompts == ["promptBlocks"] and step["promptBlocks"] == {}):
        yield fault(at, "prompt_missing", "The step has no prompt.", "Add `prompt` or `promptBlocks`.")
    if len(prompts) > 1:
        yield fault(at, "prompt_twice", "The step has both `prompt` and `promptBlocks`.", "Remove one of the two.")


def _walk_authored_steps(steps: object, at: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the path and value of every object in a list of steps, at any nesting level."""
    for here, step in _iter_objects(steps, at):
        yield here, step
        for name in _STEP_LIST_KEYS:
            if name in step:
                yield from _walk_authored_steps(step[name], f"{here}.{name}")
        for name in _BRANCH_LIST_KEYS:
            for there, branch in _iter_objects(step.get(name), f"{here}.{name}"):
                yield from _walk_authored_steps(branch.get("steps"), f"{there}.steps")


_STEP_LIST_KEYS = ("body", "otherwise")
_BRANCH_LIST_KEYS = ("branches", "choose")


def _iter_objects(items: object, at: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    if isinstance(items, list):
        for number, item in enumerate(cast("list[object]", items)):
            if isinstance(item, dict):
                yield f"{at}[{number}]", cast("dict[str, object]", item)


class _Lowering:
    """Lowers one document. Faults are added to `faults`."""

    def __init__(self, form: native.WorkflowForm, patterns: PatternChecker) -> None:
        self._form = form
        self._conditions = ConditionLowering(named=form.conditions, patterns=patterns)

    @property
    def faults(self) -> list[Diagnostic]:
        """The faults found so far."""
        return self._conditions.faults

    def lower(self) -> doc.WorkflowDocument:
        """Lower the whole document."""
        form = self._form
        for name, condition in form.conditions.items():
            # A named condition may be used in a loop, so loop control is allowed in its definition.
            self._conditions.lower_condition(condition, f"conditions.{name}", loop_id="named", above=(name,))
        return doc.WorkflowDocument(
            id=form.id,
            name=form.name,
            description=form.description,
            tags=form.tags,
            keywords=form.keywords,
            examples=form.examples,
            agent_role=form.agent_role,
            guidance=form.guidance,
            references=form.references,
            inputs=form.inputs,
            capabilities=form.capabilities,
            features=tuple(_lower_feature(feature, f"features[{at}]") for at, feature in enumerate(form.features)),
            functions=form.function_definitions,
            assessments=form.assessments,
            extension_points=form.extension_points,
            recommended=form.recommended_preferences,
            steps=self._lower_steps(form.steps, "steps"),
        )

    def _lower_steps(self, forms: Iterable[object], at: str) -> tuple[doc.Step, ...]:
        return tuple(self._lower_step(form, f"{at}[{number}]") for number, form in enumerate(forms))

    def _lower_step(self, form: object, at: str) -> doc.Step:
        match form:
            case native.StepForm():
                return self._lower_agent_step(form, at)
            case native.LoopForm():
                return self._lower_loop(form, at)
            case native.ParallelForm():
                branches = tuple(
                    self._lower_steps(branch.steps, f"{at}.branches[{number}].steps")
                    for number, branch in enumerate(form.branches)
                )
                return doc.ParallelStep(
                    at=at, id=form.id, title=form.title, when=self._lower_when(form.when, at), branches=branches
                )
            case native.ChooseForm():
                return self._lower_choice(form, at)
            case AwaitForm():
                return self._lower_await(form, at)
            case CheckForm():
                return self._lower_check(form, at)
            case ApproveForm():
                return self._lower_approve(form, at)
            case _:
                assert isinstance(form, native.TemplateForm), "the forms of a step are closed"
                return self._lower_template(form, at)

    def _lower_when(self, form: native.ConditionForm | None, at: str, key: str = "when") -> doc.Guard | None:
        return self._conditions.lower_guard(form, f"{at}.{key}") if form is not None else None

    def _lower_agent_step(self, form: native.StepForm, at: str) -> doc.AgentStep:
        confirmation = self._lower_when(form.confirm_when, at, "confirmWhen")
        if form.require_confirmation:
            confirmation = doc.Guard(condition=Always(op="always"), at=f"{at}.requireConfirmation")
        fragments = [
            doc.PromptFragment(
                fragment_id=fragment.id,
                text=fragment.text,
                when=self._lower_when(fragment.when, f"{at}.promptFragments[{number}]"),
                asks_user=fragment.asks_user,
            )
            for number, fragment in enumerate(form.prompt_fragments)
        ]
        return doc.AgentStep(
            at=at,
            id=form.id,
            title=form.title,
            prompt=self._lower_prompt(form, at),
            when=self._lower_when(form.when, at),
            agent_role=form.agent_role,
            guidance=form.guidance,
            fragments=(*fragments, *self._lower_delegations(form, at)),
            confirmation=confirmation,
            evidence=self._lower_evidence(form, at),
            functions=tuple(name.removesuffix("()") for name in form.function_references),
            own_functions=form.function_definitions,
            needs=form.needs,
            produces=tuple(one if isinstance(one, str) else one.key for one in form.produces),
            declares=tuple(one for one in form.produces if not isinstance(one, str)),
            sets=tuple(self._lower_set(one, f"{at}.set[{number}]") for number, one in enumerate(form.set)),
            emits=tuple(self._lower_emit(one, f"{at}.emit[{number}]") for number, one in enumerate(form.emit)),
            needs_user=form.needs_user,
            capabilities=(*form.capabilities, *(("delegation",) if form.delegate else ())),
            owner="verifier" if form.verifies else "agent",
            hints=form.hints,
            metadata=form.metadata,
            verifies=form.verifies,
            by=form.by,
            proofs=form.proof,
        )

    def _lower_set(self, form: native.SetActionForm, at: str) -> SetAction:
        parts: dict[str, object] = {"key": form.key, **self._lower_payload(form, at, "action")}
        if form.when is not None:
            parts["when"] = self._conditions.lower_condition(form.when, f"{at}.when")
        return _SET.of_json(parts)

    def _lower_payload(self, form: native.SetActionForm | EmitFieldForm, at: str, what: str) -> dict[str, object]:
        written = {"value": form.value, "source": form.source, "compute": form.compute}
        given = {name: one for name, one in written.items() if one is not UNSET}
        if len(given) != 1:
            message = f"The {what} must have exactly one of `value`, `from` and `compute`."
            self.faults.append(fault(at, "wrong_value", message, "Write one of them."))
        for name, key in (("source", "from"), ("compute", "compute")):
            if name in given and given[name] is None:
                message = f"`{key}` is null, so the {what} has no value."
                self.faults.append(fault(f"{at}.{key}", "wrong_type", message, f"Write what `{key}` needs."))
        parts: dict[str, object] = {"value": given.get("value"), "from": given.get("source")}
        if given.get("compute") is not None:
            parts["compute"] = self._conditions.lower_value(given["compute"], f"{at}.compute")
        return parts

    def _lower_emit(self, form: EmitForm, at: str) -> EmitAction:
        fields = {
            name: _EMIT_FIELD.of_json(self._lower_payload(one, f"{at}.fields.{name}", "field"))
            for name, one in sorted(form.fields.items())
        }
        parts: dict[str, object] = {"kind": form.kind, "fields": fields, "once": form.once, "mirror": form.mirror}
        if form.when is not None:
            parts["when"] = self._conditions.lower_condition(form.when, f"{at}.when")
        return _EMIT.of_json(parts)

    def _lower_await(self, form: AwaitForm, at: str) -> doc.AgentStep:
        awaits = {"event": form.event, "fields": dict(sorted(form.fields.items())), "assurance": form.assurance}
        awaits |= self._lower_timeout(form.timeout, f"{at}.timeout")
        return self._waiting_step(form, at, f"{doc.WAITS_TEXT} `{form.event}`.", awaits)

    def _lower_timeout(self, duration: str | None, at: str) -> dict[str, object]:
        if duration is None:
            return {}
        seconds = seconds_of(duration)
        if seconds > AWAIT_S_MAX:
            message = f"The timeout is {seconds} seconds; the limit is {AWAIT_S_MAX}."
            fix = f"Write at most `{AWAIT_S_MAX // DAY_S}d`, or leave it out."
            self.faults.append(fault(at, "wrong_value", message, fix))
        return {"timeoutS": min(seconds, AWAIT_S_MAX)}

    def _lower_check(self, form: CheckForm, at: str) -> doc.AgentStep:
        awaits = {"event": CHECK, "fields": dict(RECORDED_FIELDS[CHECK]), "assurance": "executed", "check": form.run}
        step = self._waiting_step(form, at, f"{doc.CHECKS_TEXT} `{form.run}`.", awaits)
        return _needing(step, "passed", "exit")

    def _lower_approve(self, form: ApproveForm, at: str) -> doc.AgentStep:
        ask = {
            "question": form.question,
            "show": form.show,
            "choices": form.choices,
            "needsNote": form.note is not None,
        }
        fields = dict(RECORDED_FIELDS[APPROVAL])
        awaits = {"event": APPROVAL, "fields": fields, "assurance": form.assurance, "approval": ask}
        awaits |= self._lower_timeout(form.expires, f"{at}.expires")
        step = self._waiting_step(form, at, doc.approval_prompt(form.question), awaits)
        return replace(_needing(step, "approved", "choice"), owner="human_gate")

    def _waiting_step(
        self, form: AwaitForm | CheckForm | ApproveForm, at: str, prompt: str, awaits: Mapping[str, object]
    ) -> doc.AgentStep:
        """Return a step that waits for an event: no agent works on it. `prompt` is for a form without one."""
        return doc.AgentStep(
            at=at,
            id=form.id,
            title=form.title,
            prompt=doc.to_prose(form.prompt or prompt),
            owner="plugin",
            when=self._lower_when(form.when, at),
            evidence=doc.EvidenceRequirements(notes="optional"),
            sets=tuple(self._lower_set(one, f"{at}.set[{number}]") for number, one in enumerate(form.set)),
            emits=tuple(self._lower_emit(one, f"{at}.emit[{number}]") for number, one in enumerate(form.emit)),
            awaits=_AWAIT.of_json(awaits),
        )

    def _lower_prompt(self, form: native.StepForm, at: str) -> doc.Prose | doc.PromptBlocks:
        if form.prompt is not None:
            return doc.to_prose(form.prompt)
        blocks = form.prompt_blocks or PromptBlocksForm()
        at = f"{at}.promptBlocks"
        return doc.PromptBlocks(
            goal=self._lower_prose(blocks.goal, f"{at}.goal") if blocks.goal is not None else None,
            constraints=self._lower_proses(blocks.constraints, f"{at}.constraints"),
            procedure=self._lower_proses(blocks.procedure, f"{at}.procedure"),
            output_required=self._lower_outputs(blocks.output_required, f"{at}.outputRequired"),
            verify=self._lower_proses(blocks.verify, f"{at}.verify"),
        )

    def _lower_outputs(self, outputs: object, at: str) -> tuple[tuple[str | None, doc.Prose], ...]:
        if isinstance(outputs, Mapping):
            named = cast("Mapping[str, object]", outputs)
            # Ordered by name, because the order of an object's members has no meaning.
            return tuple((name, self._lower_prose(value, f"{at}.{name}")) for name, value in sorted(named.items()))
        return tuple((None, one) for one in self._lower_proses(cast("tuple[object, ...]", outputs), at))

    def _lower_proses(self, values: Iterable[object], at: str) -> tuple[doc.Prose, ...]:
        return tuple(self._lower_prose(value, f"{at}[{number}]") for number, value in enumerate(values))

    def _lower_prose(self, value: object, at: str) -> doc.Prose:
        if isinstance(value, str):
            return doc.to_prose(value)
        parts = cast("tuple[ProsePart, ...]", value)
        return tuple(self._lower_part(part, f"{at}[{number}]") for number, part in enumerate(parts))

    def _lower_part(self, part: ProsePart, at: str) -> doc.TextPart | doc.SnippetPart | doc.BindingPart:
        members = {"text": part.text, "refId": part.ref_id, "slotId": part.slot_id}
        key = {"text": "text", "ref": "refId", "binding": "slotId"}[part.kind]
        content = members.pop(key)
        if content is None or any(other is not None for other in members.values()):
            message = f"A part of kind {part.kind!r} must have `{key}` and no other key."
            self.faults.append(fault(at, "wrong_value", message, f"Write `kind` and `{key}`, and no other key."))
            content = content or ""
        match part.kind:
            case "text":
                return doc.TextPart(text=content)
            case "ref":
                return doc.SnippetPart(ref_id=content, at=f"{at}.refId")
            case "binding":
                return doc.BindingPart(slot_id=content, at=f"{at}.slotId")

    def _lower_delegations(self, form: native.StepForm, at: str) -> tuple[doc.PromptFragment, ...]:
        pieces = tuple(
            doc.PromptFragment(
                fragment_id=f"delegate-{number + 1}",
                text=f"Subagent: **{work.title}**. {work.goal}"
                + (f" Method: the workflow `{work.workflow_id}`." if work.workflow_id else ""),
                when=self._lower_when(work.when, f"{at}.delegate[{number}]"),
                work=number,
            )
            for number, work in enumerate(form.delegate)
        )
        if not pieces:
            return ()
        shown = doc.guard_of_any(pieces, f"{at}.delegate")
        return (doc.PromptFragment(fragment_id="delegate", text=doc.DELEGATE_TEXT, when=shown), *pieces)

    def _lower_evidence(self, form: native.StepForm, at: str) -> doc.EvidenceRequirements:
        contract = form.output_contract
        criteria = form.validation_criteria
        return doc.EvidenceRequirements(
            notes=form.notes or ("required" if contract is None else "optional"),
            contract_ref=contract.contract_ref if contract is not None else None,
            contract_required=contract.required if contract is not None else True,
            criteria=self._conditions.lower_criteria(criteria, f"{at}.validationCriteria")
            if criteria is not None
            else None,
            assessments=form.assessment_refs,
            consequences=tuple(
                doc.Consequence(
                    level=one.when.any_equals_level,
                    guidance=one.effect.guidance,
                    assessment_id=one.when.for_assessment,
                    at=f"{at}.assessmentConsequences[{number}]",
                )
                for number, one in enumerate(form.assessment_consequences)
            ),
        )

    def _lower_loop(self, form: native.LoopForm, at: str) -> doc.LoopStep:
        kinds = {"while": form.while_, "until": form.until, "for": form.for_, "forEach": form.for_each}
        found = [name for name, kind in kinds.items() if kind is not None]
        if len(found) != 1:
            message = f"The loop has {' and '.join(f'`{name}`' for name in found) or 'no way to end'}."
            fix = "Write exactly one of `while`, `until`, `for`, `forEach`."
            self.faults.append(fault(at, "loop_condition_missing", message, fix))
        return doc.LoopStep(
            at=at,
            id=form.loop_id,
            title=form.title,
            max_iterations=form.max_iterations,
            when=self._lower_when(form.when, at),
            body=self._lower_steps(form.body, f"{at}.body"),
            iteration_var=form.iteration_var,
            index_var=form.index_var,
            own_functions=form.function_definitions,
            **self._lower_loop_kind(form, at),  # pyright: ignore[reportArgumentType] — the fields of one of four kinds
        )

    def _lower_loop_kind(self, form: native.LoopForm, at: str) -> dict[str, object]:
        if form.for_ is not None:
            if (form.for_.count is None) == (form.for_.count_from is None):
                message = "`for` must have exactly one of `count` and `countFrom`."
                self.faults.append(fault(f"{at}.for", "wrong_value", message, "Write exactly one of these keys."))
            return {"kind": "for", "count": form.for_.count if form.for_.count is not None else form.for_.count_from}
        if form.for_each is not None:
            return {"kind": "for_each", "items": form.for_each.items, "item_var": form.for_each.item_var}
        if form.until is not None:
            return {"kind": "until", "condition": self._conditions.lower_guard(form.until, f"{at}.until")}
        if form.while_ is None:
            return {"kind": "for", "count": 0}
        guard = self._conditions.lower_guard(form.while_, f"{at}.while", loop_id=form.loop_id)
        if not reads_loop_control(guard.condition):
            return {"kind": "while", "condition": guard}
        # The last step of a pass makes the decision, so the loop checks it after each pass, not before the first.
        return {"kind": "while", "condition": guard, "checked": "after_pass", "on_limit": "block"}

    def _lower_choice(self, form: native.ChooseForm, at: str) -> doc.ChoiceStep:
        branches = tuple(
            doc.Branch(
                guard=self._conditions.lower_guard(branch.when, f"{at}.choose[{number}].when"),
                steps=self._lower_steps(branch.steps, f"{at}.choose[{number}].steps"),
            )
            for number, branch in enumerate(form.choose)
        )
        otherwise = self._lower_steps(form.otherwise, f"{at}.otherwise") if form.otherwise is not None else None
        return doc.ChoiceStep(
            at=at,
            id=form.id,
            title=form.title,
            when=self._lower_when(form.when, at),
            branches=branches,
            otherwise=otherwise,
        )

    def _lower_template(self, form: native.TemplateForm, at: str) -> doc.TemplateStep:
        call = form.template_call
        if (call.template_id is None) == (call.slot_id is None):
            message = "`templateCall` must have exactly one of `templateId` and `slotId`."
            self.faults.append(fault(f"{at}.templateCall", "wrong_value", message, "Write exactly one of these keys."))
        template: str | doc.BindingPart = call.template_id or ""
        if call.slot_id is not None:
            template = doc.BindingPart(slot_id=call.slot_id, at=f"{at}.templateCall.slotId")
        return doc.TemplateStep(
            at=at,
            id=form.id,
            title=form.title or form.id,
            template=template,
            args=cast("Mapping[str, Json]", call.args),
            when=self._lower_when(form.when, at),
        )


def _lower_feature(form: str | native.FeatureForm, at: str) -> doc.FeatureUse:
    if isinstance(form, str):
        return doc.FeatureUse(feature_id=form, config={}, at=at)
    return doc.FeatureUse(feature_id=form.id, config=cast("Mapping[str, Json]", form.config), at=f"{at}.id")


def _needing(step: doc.AgentStep, field: str, *others: str) -> doc.AgentStep:
    """Return a waiting step that is done only if a field of its event is true, unless it reads that field itself."""
    assert step.awaits is not None, "the step waits"
    values = [one.payload for one in step.sets]
    values += [one.payload for action in step.emits for one in action.fields.values()]
    deciding = {f"{EVENT}.{one}" for one in (field, *others)}
    if any(path in deciding for value in values for path in iter_reads(value)):
        return step
    return replace(step, awaits=step.awaits.changed(must=field))
