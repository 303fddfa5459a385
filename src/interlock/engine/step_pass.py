"""What a step sets and sends when it is done: one pass over its decision graph (EFF-2, WORLD-5). Pure."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import field
from functools import partial
from typing import TypeAlias

from interlock.decide.evaluate import NOT_SET, ConditionInputs, Undecided
from interlock.decide.evaluation_pass import Outcome, PassAborted, PassResult, run_pass
from interlock.decide.lowering import action_id, emit_name
from interlock.define.declared import TypeMismatch, conform_value
from interlock.define.parts import EmitAction, SetAction
from interlock.engine.judge import reasons
from interlock.engine.judge.violations import Violation
from interlock.engine.template import rendered_line, with_loop_variables
from interlock.engine.walk.capture import StepPass
from interlock.engine.walk.items import name_list
from interlock.kernel.budgets import CONTEXT_BYTES_MAX
from interlock.kernel.budgets.operations import PORT_VALUE_BYTES_MAX
from interlock.kernel.canonical import Json, canonical_bytes, digest_of_bytes
from interlock.kernel.frozen import frozen, replace
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.records import PlanNode
from interlock.record.context import Context, merge_context
from interlock.record.snapshot import LoopFrame

_Named: TypeAlias = Callable[[Undecided], Undecided]
"""Points what is wrong with a loop's item at the list that can be sent."""


@frozen
class StepInputs:
    """What a step reads when it is done: the context, the passes of the loops around it, and its evidence."""

    context: Context
    stack: tuple[LoopFrame, ...]
    evidence: Mapping[str, Json]


def emitted_before(node: PlanNode, emitted: Collection[int] = ()) -> dict[str, Json]:
    """Return what a step reads of its intents with `once`: whether each was sent before. `emitted` are their numbers.

    Without any, the run has sent nothing yet.
    """
    assert node.task is not None, "only a task sends anything"
    sent: dict[str, Json] = {str(at): at in emitted for at, one in enumerate(node.task.emits) if one.once}
    return {"wr": {"emitted": sent}} if sent else {}


@frozen
class EvaluatedStep:
    """The pass over what a step sets and sends, the same as it is captured, and what has to be corrected.

    `evaluated` has the results of every node; None if the step has no actions. Only `captured` is held to the budget of
    the context.
    """

    evaluated: PassResult | PassAborted | None = None
    captured: StepPass = field(default_factory=StepPass)
    findings: tuple[Violation, ...] = ()


def run_step_pass(
    workflow: CompiledWorkflow, node: PlanNode, given: StepInputs, *, is_expired: bool = False
) -> EvaluatedStep:
    """Evaluate what a step sets and sends.

    A step whose event did not come (`is_expired`) sends and mirrors nothing.
    """
    assert node.task is not None, "only a task sets anything"
    if not node.task.sets and not node.task.emits:
        return EvaluatedStep()
    seen = with_loop_variables(workflow.graphs, given.context, given.stack)
    inputs = ConditionInputs(context=seen, evidence=given.evidence)
    done = run_pass(workflow.graphs.actions(node.node_id), inputs, partial(_conform_set, workflow))
    names = [*(action.key for action in node.task.sets), *map(emit_name, range(len(node.task.emits)))]
    outcomes = {name: done.outcomes[action_id(name)] for name in names}
    if isinstance(done, PassAborted):
        finding = reasons.aborted(node.node_id, done)
        return EvaluatedStep(evaluated=done, captured=StepPass(read=done.read, outcomes=outcomes), findings=(finding,))
    title = rendered_line(node.title, seen)
    named = partial(name_list, workflow.graphs, given.stack)
    findings = [
        _finding_of_set(node, title, action, outcomes[action.key], named)
        for action in node.task.sets
        if outcomes[action.key].why is not None
    ]
    findings += [
        _finding_of_emit(node, title, action, outcomes[emit_name(number)], named)
        for number, action in enumerate(node.task.emits)
        if outcomes[emit_name(number)].why is not None and not is_expired
    ]
    intents, mirrored = done.intents, frozenset[str]()
    if is_expired:
        outcomes |= {emit_name(number): Outcome(kind="skipped") for number in range(len(node.task.emits))}
        intents, mirrored = (), frozenset(key for one in node.task.emits for key in one.mirror)
    captured = StepPass(
        read=done.read,
        triggers={one: None if isinstance(emitted, Undecided) else emitted for one, emitted in done.triggers.items()},
        outcomes=outcomes,
        effects={effect.key: effect.value for effect in done.effects if effect.key not in mirrored},
        intents={emit_name(one.number): one for one in intents},
        mirrored=frozenset(emit_name(one.number) for one in intents if node.task.emits[one.number].mirror),
    )
    captured = _fitting(captured, given.context, findings)
    return EvaluatedStep(evaluated=done, captured=captured, findings=tuple(findings))


def _finding_of_set(node: PlanNode, title: str, action: SetAction, outcome: Outcome, named: _Named) -> Violation:
    """Return the violation for an action that had no effect for a reason that has to be corrected."""
    why = outcome.why
    assert why is not None, "as the caller checked"
    if outcome.kind == "rejected" and action.compute is not None:
        return reasons.unfit_computed(node.node_id, action.key, why)
    if outcome.kind == "rejected":
        source = action.source or action.key
        item = named(replace(why, path=source))
        return (
            reasons.unfit_key(title, action.key, source, why)
            if item.path == source
            else reasons.undecided(item, title, is_of_step=True)
        )
    return _finding_of_missing(title, f"sets {action.key!r} from", outcome, named(why))


def _finding_of_emit(node: PlanNode, title: str, action: EmitAction, outcome: Outcome, named: _Named) -> Violation:
    """Return the violation for an intent that is not sent for a reason that has to be corrected."""
    why = outcome.why
    assert why is not None, "as the caller checked"
    if outcome.kind == "rejected":
        return reasons.unfit_intent(node.node_id, action.kind, why)
    return _finding_of_missing(title, f"sends the intent {action.kind!r} with", outcome, named(why))


def _finding_of_missing(title: str, does: str, outcome: Outcome, why: Undecided) -> Violation:
    if outcome.kind == "failed" and why.path is not None and why.found == NOT_SET:
        return reasons.missing_key(title, why.path, does)
    return reasons.undecided(why, title, is_of_step=True)


def _fitting(step: StepPass, context: Context, findings: list[Violation]) -> StepPass:
    """Return the pass of a step. If the context would exceed its budget, every value is rejected."""
    if not step.effects:
        return step
    measured = len(canonical_bytes(dict(merge_context(context, step.effects))))
    if measured <= CONTEXT_BYTES_MAX:
        return step
    findings.append(reasons.context_too_large(measured, CONTEXT_BYTES_MAX))
    why = Undecided(path=None, found=f"a context of {measured} bytes", expected=f"at most {CONTEXT_BYTES_MAX} bytes")
    setting = {name for name, one in step.outcomes.items() if one.kind == "completed" or name in step.mirrored}
    rejected = dict.fromkeys(setting, Outcome(kind="rejected", why=why))
    kept = {name: one for name, one in step.intents.items() if name not in step.mirrored}
    return replace(step, outcomes={**step.outcomes, **rejected}, effects={}, intents=kept)


def _conform_set(workflow: CompiledWorkflow, key: str, value: Json) -> Json | Undecided:
    """Return a value as it is set, or why it may not be set.

    An undeclared key takes any value: routines that a workflow unfolds set keys of their own. Of the outputs of a
    slot, large values are replaced by their digest: the artifact holds them.
    """
    if key in workflow.output_keys and isinstance(value, dict):
        return {port: _refer_to_large(held) for port, held in value.items()}
    declared = workflow.declared.get(key)
    held = conform_value(declared, value) if declared is not None else value
    return Undecided(path=None, found=held.found, expected=held.wanted) if isinstance(held, TypeMismatch) else held


def _refer_to_large(value: Json) -> Json:
    data = canonical_bytes(value)
    return value if len(data) <= PORT_VALUE_BYTES_MAX else {"digest": digest_of_bytes(data), "bytes": len(data)}
