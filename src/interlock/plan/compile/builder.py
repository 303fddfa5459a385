"""Builds the typed plan from the steps of a document; ids of nodes, edges and conditions derive from step ids.

A step with a condition is no special case: it is a choice between the step and nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, cast

from interlock.decide.condition import Condition
from interlock.define import document as doc
from interlock.define.diagnostics import Diagnostic, Replacement, fault, guessed_fix, warning
from interlock.define.parts import Assessment
from interlock.kernel.budgets.workflow import (
    CHOICE_DEPTH_MAX,
    LOOP_DEPTH_MAX,
    PLAN_NODES_MAX,
    PROMPT_BYTES_MAX,
    PROMPTS_BYTES_MAX,
)
from interlock.kernel.frozen import frozen, mutable
from interlock.kernel.text import utf8_bytes
from interlock.plan import records as plan
from interlock.plan.compile.prompts import Prompts
from interlock.plan.compile.requirements import requirement_lines
from interlock.plan.compile.routines import Routine, unfolded
from interlock.plan.prompt_blocks import ResolvedBlocks


class PlanTooLargeError(Exception):
    """The unfolded plan exceeds a budget; the fault is in `faults`."""


@frozen
class _Exit:
    """An edge out of a node whose target is not known yet."""

    source: str
    condition_id: str | None = None


@mutable
class Builder:
    """Builds the plan of one document; `at` maps each node to its place in the author's document."""

    prompts: Prompts
    routines: Mapping[str, Routine]
    assessments: Mapping[str, Assessment]
    agent_role: str | None
    at: dict[str, str] = field(default_factory=dict[str, str])
    steps: dict[str, doc.AgentStep] = field(default_factory=dict[str, doc.AgentStep])
    _nodes: list[plan.PlanNode] = field(default_factory=list[plan.PlanNode])
    _edges: list[plan.PlanEdge] = field(default_factory=list[plan.PlanEdge])
    _loops: list[plan.Loop] = field(default_factory=list[plan.Loop])
    _conditions: dict[str, Condition] = field(default_factory=dict[str, Condition])
    _kinds: dict[str, plan.NodeKind] = field(default_factory=dict[str, plan.NodeKind])
    _bodies: list[list[str]] = field(default_factory=lambda: [[]])
    _origin: plan.Provenance = plan.AUTHORED
    _depth: int = 0
    _bytes: int = 0

    @property
    def faults(self) -> list[Diagnostic]:
        """The faults found so far."""
        return self.prompts.faults

    def plan_of(self, probes: Iterable[tuple[doc.AgentStep, plan.Provenance]], steps: Iterable[doc.Step]) -> plan.Plan:
        """Return the plan: the compiler's own steps first, then the author's.

        Raises:
            PlanTooLargeError: The plan exceeds a budget.
        """
        exits: list[_Exit] = []
        for step, provenance in probes:
            self._origin = provenance
            exits = self._step(step, exits)
        self._origin = plan.AUTHORED
        self._end("--end", self._chain(steps, exits))
        return plan.Plan(
            v=1,
            nodes=tuple(self._nodes),
            edges=tuple(self._edges),
            loops=tuple(sorted(self._loops, key=lambda loop: loop.loop_id)),
            conditions=tuple(
                plan.NamedCondition(condition_id=name, condition=condition)
                for name, condition in sorted(self._conditions.items())
            ),
        )

    def _chain(self, steps: Iterable[doc.Step], entries: list[_Exit]) -> list[_Exit]:
        for step in steps:
            entries = self._step(step, entries)
        return entries

    def _step(self, step: doc.Step, entries: list[_Exit]) -> list[_Exit]:
        if step.when is None:
            return self._bare(step, entries)
        decision = f"{step.id}--when"
        self._add(decision, "decision", f"Whether: {step.title}", step.at, entries)
        condition_id = self._named(step.when, f"{step.id}--when")
        return [
            *self._bare(step, [_Exit(source=decision, condition_id=condition_id)]),
            _Exit(source=decision),
        ]

    def _bare(self, step: doc.Step, entries: list[_Exit]) -> list[_Exit]:
        """Add a step that is reached by these entries; return the edges out of it."""
        self._depth += 1
        if self._depth > CHOICE_DEPTH_MAX:
            self._too_large(step.at, f"Steps nest deeper than {CHOICE_DEPTH_MAX} levels.")
        match step:
            case doc.AgentStep():
                exits = self._task(step, entries)
            case doc.LoopStep():
                exits = self._loop(step, entries)
            case doc.ParallelStep():
                exits = self._parallel(step, entries)
            case doc.ChoiceStep():
                exits = self._choice(step, entries)
            case doc.TemplateStep():
                exits = self._template(step, entries)
        self._depth -= 1
        return exits

    def _task(self, step: doc.AgentStep, entries: list[_Exit]) -> list[_Exit]:
        prompt, blocks, injections = self.prompts.rendered(step)
        size = utf8_bytes(prompt) + sum(utf8_bytes(fragment.text) for fragment in step.fragments)
        if size > PROMPT_BYTES_MAX:
            message = f"The rendered prompt has {size} bytes; the limit is {PROMPT_BYTES_MAX}."
            fix = "Shorten the prompt; point at long texts with `references`."
            self.faults.append(fault(step.at, "too_long", message, fix))
        self._bytes += size
        if self._bytes > PROMPTS_BYTES_MAX:
            self._too_large(step.at, f"The prompts of the plan have more than {PROMPTS_BYTES_MAX} bytes.")
        self.steps[step.id] = step
        wanted = step.evidence
        evidence_ref = wanted.contract_ref or (plan.ASSESSMENT_CONTRACT if wanted.assessments else plan.NOTES_CONTRACT)
        if step.awaits is not None:
            evidence_ref = plan.EVENT_CONTRACT
        fields: dict[str, object] = {
            "owner": step.owner,
            "input_schema_ref": plan.STEP_INPUT,
            "evidence_schema_ref": evidence_ref,
            "task": self._task_record(step, prompt, blocks, injections),
        }
        if step.hints:
            fields["hints"] = step.hints
        if step.metadata:
            fields["metadata"] = dict(sorted(step.metadata.items()))
        if step.capabilities:
            fields["capabilities"] = tuple(dict.fromkeys(step.capabilities))
        self._add(step.id, "task", step.title, step.at, entries, **fields)
        return [_Exit(source=step.id)]

    def _task_record(
        self, step: doc.AgentStep, prompt: str, blocks: ResolvedBlocks | None, injections: tuple[plan.Injection, ...]
    ) -> plan.Task:
        fragments = tuple(
            plan.Fragment(
                fragment_id=fragment.fragment_id,
                text=fragment.text,
                condition=fragment.when.condition if fragment.when is not None else None,
                asks_user=fragment.asks_user,
            )
            for fragment in step.fragments
        )
        return plan.Task(
            prompt=prompt,
            evidence=_evidence(step),
            prompt_blocks=blocks,
            agent_role=step.agent_role or self.agent_role,
            fragments=fragments,
            requirements=requirement_lines(step, self.assessments),
            confirmation=step.confirmation.condition if step.confirmation is not None else None,
            functions=step.functions,
            needs=step.needs,
            produces=step.produces,
            sets=step.sets,
            emits=step.emits,
            awaits=step.awaits,
            needs_user=step.needs_user,
            injections=injections,
            verifies=step.verifies,
            by=step.by,
            proofs=step.proofs,
        )

    def _loop(self, step: doc.LoopStep, entries: list[_Exit]) -> list[_Exit]:
        if len(self._bodies) > LOOP_DEPTH_MAX:
            self._too_large(step.at, f"Loops nest deeper than {LOOP_DEPTH_MAX} levels.")
        self._add(step.id, "loop", step.title, step.at, entries)
        self._bodies.append([])
        self._end(f"{step.id}--end", self._chain(step.body, []))
        self._loops.append(
            plan.Loop(
                loop_id=step.id,
                kind=step.kind,
                max_iterations=step.max_iterations,
                on_limit=step.on_limit,
                body=tuple(self._bodies.pop()),
                checked=step.checked,
                condition_id=self._named(step.condition, f"{step.id}--{step.kind}") if step.condition else None,
                count=step.count,
                items=step.items,
                iteration_var=step.iteration_var,
                index_var=step.index_var,
                item_var=step.item_var,
            )
        )
        return [_Exit(source=step.id)]

    def _parallel(self, step: doc.ParallelStep, entries: list[_Exit]) -> list[_Exit]:
        self._add(step.id, "fan_out", step.title, step.at, entries)
        exits: list[_Exit] = []
        for branch in step.branches:
            exits += self._chain(branch, [_Exit(source=step.id)])
        barrier = f"{step.id}--join"
        self._add(barrier, "fan_in", f"All of: {step.title}", step.at, exits)
        return [_Exit(source=barrier)]

    def _choice(self, step: doc.ChoiceStep, entries: list[_Exit]) -> list[_Exit]:
        self._add(step.id, "decision", step.title, step.at, entries)
        exits: list[_Exit] = []
        for number, branch in enumerate(step.branches, start=1):
            condition_id = self._named(branch.guard, f"{step.id}--{number}")
            exits += self._chain(branch.steps, [_Exit(source=step.id, condition_id=condition_id)])
        if step.otherwise is None:
            message = f"All conditions of {step.id!r} may be false."
            fix = "Add `otherwise`: the steps to take then, or `[]` for none."
            self.faults.append(fault(step.at, "no_default_branch", message, fix))
        return exits + self._chain(step.otherwise or (), [_Exit(source=step.id)])

    def _template(self, step: doc.TemplateStep, entries: list[_Exit]) -> list[_Exit]:
        template = self.prompts.bound(step.template) if isinstance(step.template, doc.BindingPart) else step.template
        if template is None:
            return entries
        routine = self.routines.get(template)
        at = f"{step.at}.templateCall"
        if routine is None:
            self.faults.append(self._unknown_routine(step.template, template, at))
            return entries
        missing = sorted(routine.args - step.args.keys())
        if missing:
            names = ", ".join(f"`{name}`" for name in missing)
            message = f"The routine {template!r} needs {names}."
            self.faults.append(fault(at, "missing_argument", message, f"Add {names} to `args`."))
        unknown = sorted(step.args.keys() - routine.args)
        if unknown:
            message = f"The routine {template!r} takes no argument {unknown[0]!r}."
            known = ", ".join(sorted(routine.args)) or "none"
            removed = Replacement(found=unknown[0], write=None, is_key=True)
            place = f"{at}.args.{unknown[0]}"
            self.faults.append(warning(place, "unknown_key", message, f"Remove it. It takes: {known}.", removed))
        before = self._origin
        self._origin = plan.Provenance(source="template_injected", origin_id=template)
        for inner in unfolded(routine, step):
            if isinstance(inner, doc.TemplateStep):
                message = f"The routine {template!r} calls another routine, which is not allowed."
                self.faults.append(
                    fault(at, "template_recursion", message, "Write the steps of that routine into the workflow.")
                )
                continue
            entries = self._step(inner, entries)
        self._origin = before
        return entries

    def _unknown_routine(self, named: doc.BindingPart | str, template: str, at: str) -> Diagnostic:
        """Return the fault of a call of a routine that does not exist; it names the file that has the wrong name."""
        fix, edit = guessed_fix(template, self.routines, f"Use one of {', '.join(sorted(self.routines))}.")
        if not isinstance(named, doc.BindingPart):
            return fault(f"{at}.templateId", "unknown_template", f"There is no routine {template!r}.", fix, edit)
        slot = named.slot_id
        if slot in self.prompts.bindings:
            message = f"`.interlock/bindings.json` binds the slot {slot!r} to {template!r}, which is no routine."
            fix = f"{fix} Correct the binding, not this file."
        else:
            message = f"The default of the slot {slot!r} is {template!r}, which is no routine."
            fix = f"{fix} Correct the `default` in `extensionPoints`."
        return fault(f"{at}.slotId", "unknown_template", message, fix)

    def _named(self, guard: doc.Guard, derived: str) -> str:
        """Return the id of a condition: its own name, or one derived from its place."""
        condition_id = guard.name or derived
        # A name may be another condition in each loop, because each reads its own loop control.
        while self._conditions.setdefault(condition_id, guard.condition) != guard.condition:
            condition_id = f"{condition_id}-2"
        return condition_id

    def _end(self, node_id: str, entries: list[_Exit]) -> None:
        self._add(node_id, "terminal", "End", "", entries)

    def _add(
        self, node_id: str, kind: plan.NodeKind, title: str, at: str, entries: list[_Exit], **more: object
    ) -> None:
        if len(self._nodes) >= PLAN_NODES_MAX:
            self._too_large(at, f"The plan has more than {PLAN_NODES_MAX} nodes.")
        if node_id in self._kinds:
            message = f"Two parts of the plan are called {node_id!r}."
            # A node that the compiler adds has no place; the step with the same name must be renamed.
            place = at or self.at[node_id]
            self.faults.append(fault(place, "duplicate_node_id", message, "Rename the step that adds the second one."))
        fields = cast("dict[str, Any]", {"owner": "harness", "provenance": self._origin} | more)
        self._nodes.append(plan.PlanNode(node_id=node_id, kind=kind, title=title, **fields))
        self._kinds[node_id] = kind
        self.at.setdefault(node_id, at)
        self._bodies[-1].append(node_id)
        for entry in entries:
            self._connect(entry, node_id)

    def _connect(self, entry: _Exit, target: str) -> None:
        kind: plan.EdgeKind = "direct"
        if entry.condition_id is not None:
            kind = "conditional"
        elif self._kinds[target] == "terminal":
            kind = "terminal"
        elif self._kinds[target] == "fan_in":
            kind = "fan_in"
        elif self._kinds[entry.source] == "fan_out":
            kind = "fan_out"
        edge_id = f"{entry.source}>{target}"
        self._edges.append(
            plan.PlanEdge(
                edge_id=edge_id, kind=kind, source=entry.source, target=target, condition_id=entry.condition_id
            )
        )

    def _too_large(self, at: str, message: str) -> None:
        self.faults.append(fault(at, "too_many", message, "Use fewer or shorter steps in the workflow."))
        raise PlanTooLargeError(message)


def _evidence(step: doc.AgentStep) -> plan.Evidence:
    wanted = step.evidence
    return plan.Evidence(
        artifact_required=wanted.contract_ref is not None and wanted.contract_required,
        notes=wanted.notes,
        assessments=wanted.assessments,
        consequences=tuple(
            plan.Consequence(level=one.level, guidance=one.guidance, assessment_id=one.assessment_id)
            for one in wanted.consequences
        ),
        criteria=wanted.criteria,
    )
