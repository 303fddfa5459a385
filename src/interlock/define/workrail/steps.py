"""Lowers steps of the WorkRail dialect into the document model. One authored step may become several.

A verification, audit or synthesis that a step declares becomes a separate step after it. A step that a loop names as
its body is moved into the loop, and is not performed anywhere else.
"""

import json
from collections.abc import Iterator
from typing import Literal, TypeAlias, assert_never

from interlock.decide.condition import LoopControl
from interlock.define import document as doc
from interlock.define.diagnostics import Diagnostic, fault, suggest_name
from interlock.define.faults import check_path
from interlock.define.patterns import PatternChecker
from interlock.define.workrail import forms
from interlock.define.workrail.conditions import ALWAYS, ConditionLowering
from interlock.define.workrail.delegation import lower_delegations
from interlock.define.workrail.prompts import PromptLowering

LOOP_CONTROL = "wr.contracts.loop_control"
_VERIFICATION_REPORT = "wr.contracts.verification_report"
_StepForm: TypeAlias = forms.StepForm | forms.LoopForm | forms.ParallelForm
_Placed: TypeAlias = tuple[tuple[str, _StepForm], ...]
"""Steps with their paths in the author's document."""


def render_model_tier(tier: str) -> str:
    """Render the line that tells an agent which model tier the author suggests."""
    return f"Suggested model tier: {tier}."


def drop_blank_lines(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Return the lines that are not blank."""
    return tuple(line for line in lines if line.strip())


class StepLowering:
    """Lowers the steps of one document. Faults are added to `faults`."""

    def __init__(self, steps: tuple[_StepForm, ...], faults: list[Diagnostic], patterns: PatternChecker) -> None:
        self._faults = faults
        self._conditions = ConditionLowering(faults, patterns)
        self._prompts = PromptLowering(faults, self._conditions)
        self._authored: _Placed = tuple((f"steps[{number}]", step) for number, step in enumerate(steps))
        self._top = {step.id: (at, step) for at, step in reversed(self._authored)}
        self._moved_to: dict[str, str] = {}
        self._find_moved_bodies()

    def lower(self) -> tuple[doc.Step, ...]:
        """Lower all steps, in the order in which they are performed."""
        return self._lower_all(tuple((at, step) for at, step in self._authored if step.id not in self._moved_to))

    def _find_moved_bodies(self) -> None:
        for at, loop in self._authored:
            if not isinstance(loop, forms.LoopForm) or not isinstance(target := loop.body, str):
                continue
            if target not in self._top:
                guess = suggest_name(target, self._top)
                fix = f"Did you mean `{guess}`?" if guess else "Write the id of a step of `steps`, or a list of steps."
                self._report(f"{at}.body", "unknown_step", f"There is no step {target!r}.", fix)
            elif isinstance(self._top[target][1], forms.LoopForm):
                self._report(
                    f"{at}.body", "wrong_value", f"{target!r} is itself a loop.", "Name a step that is not a loop."
                )
            elif target in self._moved_to:
                message = f"{target!r} is also the body of {self._moved_to[target]}."
                self._report(f"{at}.body", "wrong_value", message, "Give each loop its own body.")
            else:
                self._moved_to[target] = at

    def _report(
        self,
        at: str,
        code: Literal["unknown_step", "wrong_value", "wrong_type", "missing_key", "loop_condition_missing"],
        message: str,
        fix: str,
    ) -> None:
        self._faults.append(fault(at, code, message, fix))

    def _lower_all(self, placed: _Placed) -> tuple[doc.Step, ...]:
        return tuple(step for at, form in placed for step in self._lower_step(form, at))

    def _lower_step(self, form: _StepForm, at: str) -> Iterator[doc.Step]:
        when = self._conditions.lower_guard(form.run_condition, f"{at}.runCondition")
        match form:
            case forms.LoopForm():
                yield self._lower_loop(form, at, when)
            case forms.ParallelForm():
                yield self._lower_parallel(form, at, when)
                if form.synthesis is not None:
                    yield self._build_synthesis(form, form.synthesis, f"{at}.synthesis", when)
            case forms.StepForm():
                call = form.template_call
                yield (
                    self._lower_template(form, call, at, when)
                    if call is not None
                    else self._lower_agent_step(form, at, when)
                )
                if form.verification is not None:
                    yield self._build_verification(form, form.verification, f"{at}.verification", when)
                if form.audit is not None:
                    yield self._build_audit(form, form.audit, f"{at}.audit", when)
            case _:
                assert_never(form)

    # Plain steps.

    def _lower_agent_step(self, form: forms.StepForm, at: str, when: doc.Guard | None) -> doc.AgentStep:
        tier = (render_model_tier(form.model_tier),) if form.model_tier is not None else ()
        called = [call.name for call in form.function_calls]
        named = [name.removesuffix("()") for name in form.function_references]
        return doc.AgentStep(
            at=at,
            id=form.id,
            title=form.title,
            prompt=self._lower_prompt(form, at),
            when=when,
            agent_role=form.agent_role,
            guidance=(*drop_blank_lines(form.guidance), *_render_calls(form.function_calls), *tier),
            fragments=tuple(self._prompts.lower_fragments(form.prompt_fragments, f"{at}.promptFragments")),
            confirmation=self._lower_confirmation(form.require_confirmation, f"{at}.requireConfirmation"),
            evidence=self._lower_evidence(form, at),
            functions=tuple(dict.fromkeys([*named, *called])),
            own_functions=form.function_definitions,
        )

    def _lower_prompt(self, form: forms.StepForm, at: str) -> doc.Prose | doc.PromptBlocks:
        if form.prompt_blocks is not None:
            return self._prompts.lower_blocks(form.prompt_blocks, f"{at}.promptBlocks")
        return self._prompts.lower_prose(form.prompt or "", f"{at}.prompt")

    def _lower_confirmation(self, form: forms.ConfirmationForm | None, at: str) -> doc.Guard | None:
        if form is None or form is False:
            return None
        if isinstance(form, forms.GateForm):
            here = f"{at}.condition" if form.condition is not None else at
            return doc.Guard(condition=self._conditions.lower_condition(form.condition, here), at=here)
        condition = form if isinstance(form, forms.ConditionForm) else None
        return doc.Guard(condition=self._conditions.lower_condition(condition, at), at=at)

    def _lower_evidence(self, form: forms.StepForm, at: str) -> doc.EvidenceRequirements:
        """Lower the evidence that counts: the contract, else the assessments, else the criteria."""
        # Evidence that does not count is lowered too, so that its faults are reported.
        criteria = None
        if form.validation_criteria is not None:
            criteria = self._conditions.lower_criteria(form.validation_criteria, f"{at}.validationCriteria")
        consequences = self._lower_consequences(form, at)
        if form.output_contract is not None:
            return _build_contract_evidence(form.output_contract)
        notes = "optional" if form.notes_optional else "required"
        assessments = tuple(dict.fromkeys(form.assessment_refs))
        return doc.EvidenceRequirements(
            notes=notes,
            criteria=None if assessments else criteria,
            assessments=assessments,
            consequences=consequences,
        )

    def _lower_consequences(self, form: forms.StepForm, at: str) -> tuple[doc.Consequence, ...]:
        first_at: dict[tuple[str, str | None], str] = {}
        consequences: list[doc.Consequence] = []
        for number, one in enumerate(form.assessment_consequences):
            here, pair = f"{at}.assessmentConsequences[{number}]", (one.when.any_equals_level, one.when.for_assessment)
            if pair in first_at:
                message = f"The level {pair[0]!r} already has a consequence in {first_at[pair]}."
                self._faults.append(fault(here, "duplicate_consequence", message, "Combine the two consequences."))
            first_at.setdefault(pair, here)
            consequences.append(
                doc.Consequence(level=pair[0], guidance=one.effect.guidance, assessment_id=pair[1], at=here)
            )
        return tuple(consequences)

    def _lower_template(
        self, form: forms.StepForm, call: forms.TemplateCallForm, at: str, when: doc.Guard | None
    ) -> doc.TemplateStep:
        for name, value in call.args.items():
            if value is None or isinstance(value, dict | list):
                message = f"The argument {name!r} is not a string, a number, true or false."
                self._report(
                    f"{at}.templateCall.args.{name}", "wrong_type", message, "Write a string, a number, true or false."
                )
        return doc.TemplateStep(
            at=at,
            id=form.id,
            title=form.title,
            template=call.template_id,
            args=call.args,
            when=when,
            agent_role=form.agent_role,
            guidance=form.guidance,
            confirmation=self._lower_confirmation(form.require_confirmation, f"{at}.requireConfirmation"),
        )

    # Steps that other steps declare. Their prompts are part of compiled plans: a change changes hashes.

    def _build_verification(
        self, form: forms.StepForm, check: forms.VerificationForm, at: str, when: doc.Guard | None
    ) -> doc.AgentStep:
        ask = (
            f"Check the result of the step before this one, **{form.title}**. Look at the result itself, not at what"
            " was reported of it, and change nothing."
        )
        prompt = doc.to_prose(ask)
        if check.command is not None:
            run = "\n\nRun this command, and judge by what it prints:\n\n```\n"
            prompt += (
                *doc.to_prose(run),
                *self._prompts.lower_prose(check.command, f"{at}.command"),
                *doc.to_prose("\n```"),
            )
        if check.prompt is not None:
            prompt += (*doc.to_prose("\n\n"), *self._prompts.lower_prose(check.prompt, f"{at}.prompt"))
        evidence = doc.EvidenceRequirements(notes="optional", contract_ref=_VERIFICATION_REPORT)
        return doc.AgentStep(
            at=at,
            id=f"{form.id}--verification",
            title=f"Verify: {form.title}",
            prompt=prompt,
            owner="verifier",
            when=when,
            evidence=evidence,
        )

    def _build_audit(
        self, form: forms.StepForm, audit: forms.AuditForm, at: str, when: doc.Guard | None
    ) -> doc.AgentStep:
        ask = (
            f"Review the result of the step before this one, **{form.title}**, as someone who did not make it, and"
            " change nothing. Say in your notes what holds, what does not, and where that can be seen."
        )
        prompt = doc.to_prose(ask)
        if audit.prompt is not None:
            prompt += (*doc.to_prose("\n\n"), *self._prompts.lower_prose(audit.prompt, f"{at}.prompt"))
        if drop_blank_lines(audit.rubric):
            prompt += doc.to_prose("\n\nJudge it by each of these:\n")
        for number, line in enumerate(audit.rubric):
            point = self._prompts.lower_prose(line, f"{at}.rubric[{number}]")
            prompt += (*doc.to_prose("\n- "), *point) if line.strip() else ()
        return doc.AgentStep(
            at=at, id=f"{form.id}--audit", title=f"Audit: {form.title}", prompt=prompt, owner="verifier", when=when
        )

    def _build_synthesis(
        self, form: forms.ParallelForm, synthesis: forms.SynthesisForm, at: str, when: doc.Guard | None
    ) -> doc.AgentStep:
        ask = (
            f"Bring together what the step before this one, **{form.title}**, has brought back: where the results"
            " agree, where they differ and which of them you follow, and what comes of it."
        )
        prompt = doc.to_prose(ask)
        if synthesis.prompt is not None:
            prompt += (*doc.to_prose("\n\n"), *self._prompts.lower_prose(synthesis.prompt, f"{at}.prompt"))
        contract = synthesis.output_contract
        return doc.AgentStep(
            at=at,
            id=f"{form.id}--synthesis",
            title=f"Synthesis: {form.title}",
            prompt=prompt,
            when=when,
            evidence=_build_contract_evidence(contract) if contract is not None else doc.EvidenceRequirements(),
        )

    def _lower_parallel(self, form: forms.ParallelForm, at: str, when: doc.Guard | None) -> doc.AgentStep:
        prompt, fragments = lower_delegations(form, f"{at}.parallelDelegations", self._prompts, self._conditions)
        return doc.AgentStep(
            at=at,
            id=form.id,
            title=form.title,
            prompt=doc.to_prose(prompt),
            when=when,
            fragments=fragments,
            evidence=doc.EvidenceRequirements(notes="optional" if form.notes_optional else "required"),
            capabilities=("delegation",),
        )

    # Loops.

    def _lower_loop(self, form: forms.LoopForm, at: str, when: doc.Guard | None) -> doc.LoopStep:
        spec, body = form.loop, self._find_body(form, at)
        kind, condition = self._lower_loop_kind(form, body, at)
        is_counted = kind in ("for", "for_each")
        return doc.LoopStep(
            at=at,
            id=form.id,
            title=form.title,
            kind=kind,
            max_iterations=spec.max_iterations,
            body=self._lower_all(body),
            when=when,
            condition=condition,
            count=spec.count if kind == "for" else None,
            items=spec.items if kind == "for_each" else None,
            iteration_var=spec.iteration_var,
            index_var=spec.index_var,
            item_var=spec.item_var if kind == "for_each" else None,
            on_limit="exit",
            checked="before_pass" if is_counted else "before_step",
            own_functions=form.function_definitions,
        )

    def _find_body(self, form: forms.LoopForm, at: str) -> _Placed:
        if isinstance(form.body, str):
            return (self._top[form.body],) if self._moved_to.get(form.body) == at else ()
        placed: list[tuple[str, _StepForm]] = []
        for number, step in enumerate(form.body):
            here = f"{at}.body[{number}]"
            if isinstance(step, forms.LoopForm):
                self._report(here, "wrong_value", f"{step.id!r} is a loop inside a loop.", "Move it out of the loop.")
            else:
                placed.append((here, step))
        return tuple(placed)

    def _lower_loop_kind(
        self, form: forms.LoopForm, body: _Placed, at: str
    ) -> tuple[Literal["while", "until", "for", "for_each"], doc.Guard | None]:
        """Return the kind of a loop, and the condition that it depends on."""
        spec, here = form.loop, f"{at}.loop"
        match spec.type:
            case "for":
                if spec.count is None:
                    self._report(f"{here}.count", "missing_key", "A `for` loop needs `count`.", "Add `count`.")
                if isinstance(spec.count, str):
                    self._faults += check_path(spec.count, f"{here}.count")
                return "for", None
            case "forEach":
                if spec.items is None:
                    message = "A `forEach` loop needs `items`."
                    self._report(f"{here}.items", "missing_key", message, "Add `items`, the context key of the list.")
                else:
                    self._faults += check_path(spec.items, f"{here}.items")
                return "for_each", None
            case "while" | "until":
                guard = self._lower_loop_guard(spec, body, here)
                # The artifact says whether to continue, so such an `until` loop is a `while` loop too.
                return "while" if isinstance(guard.condition, LoopControl) else spec.type, guard
            case _:
                assert_never(spec.type)

    def _lower_loop_guard(self, spec: forms.LoopSpecForm, body: _Placed, at: str) -> doc.Guard:
        source = spec.condition_source
        if isinstance(source, forms.ArtifactSource):
            return _build_loop_control(f"{at}.conditionSource")
        if source is not None:
            here = f"{at}.conditionSource.condition"
            return doc.Guard(condition=self._conditions.lower_condition(source.condition, here), at=here)
        decider = next((place for place, step in body if _is_loop_decision(step)), None)
        if decider is not None:
            return _build_loop_control(f"{decider}.outputContract")
        if spec.condition is not None:
            here = f"{at}.condition"
            return doc.Guard(condition=self._conditions.lower_condition(spec.condition, here), at=here)
        message = f"The `{spec.type}` loop has no condition to end it."
        fix = f"Add `condition` or `conditionSource`, or a step of the body with the contract {LOOP_CONTROL}."
        self._report(at, "loop_condition_missing", message, fix)
        return doc.Guard(condition=ALWAYS, at=at)


def _build_loop_control(at: str) -> doc.Guard:
    # In this dialect the loop that an artifact names does not matter, and a call without an artifact continues.
    return doc.Guard(condition=LoopControl(op="loop_control", loop_id=None, when_absent="hold"), at=at)


def _is_loop_decision(step: _StepForm) -> bool:
    contract = step.output_contract if isinstance(step, forms.StepForm) else None
    return contract is not None and contract.contract_ref == LOOP_CONTROL


def _build_contract_evidence(contract: forms.OutputContractForm) -> doc.EvidenceRequirements:
    return doc.EvidenceRequirements(
        notes="optional", contract_ref=contract.contract_ref, contract_required=contract.required
    )


def _render_calls(calls: tuple[forms.FunctionCallForm, ...]) -> Iterator[str]:
    for call in calls:
        if call.args:
            yield f"Use `{call.name}` with {json.dumps(call.args, ensure_ascii=False, sort_keys=True)}."
