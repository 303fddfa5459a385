"""The compiler: a document becomes the typed plan that runs exactly as inspected. Pure, deterministic, total."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import chain

from interlock.define import document as doc
from interlock.define.diagnostics import (
    Diagnostic,
    DiagnosticCode,
    Diagnostics,
    Replacement,
    fault,
    has_errors,
    limited,
    warning,
)
from interlock.define.recovery import is_step_id
from interlock.define.workflow_ids import classify_id, is_reserved, suggest_id
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import SourceKind
from interlock.plan import records
from interlock.plan.builtins.features import FEATURES
from interlock.plan.builtins.packs import PACKS
from interlock.plan.check.checks import check_document
from interlock.plan.check.validate import check_verified, validate_plan
from interlock.plan.compile.builder import Builder, PlanTooLargeError
from interlock.plan.compile.prompts import Prompts
from interlock.plan.compile.routines import RoutineLibrary, builtin_routines
from interlock.plan.compiled import (
    AppliedFeature,
    CapabilityDemand,
    CompiledWarning,
    CompiledWorkflow,
    ScopedFunction,
)
from interlock.plan.packs import packs_of


@frozen
class Compiled:
    """A workflow that can run, and the warnings of the compiler."""

    workflow: CompiledWorkflow
    warnings: Diagnostics


def compile_workflow(document: doc.WorkflowDocument, library: RoutineLibrary | None = None) -> Compiled | Diagnostics:
    """Return the compiled workflow of a document, or every fault that only compiling shows.

    Shuffled keys and features give the same bytes; one changed character of what is authored gives others.
    """
    library = library or RoutineLibrary(routines=builtin_routines())
    found = list(limited(chain(check_document(document), document.warnings)))
    features = _features(document)
    prompts = Prompts(
        slots={slot.slot_id: slot for slot in document.extension_points}, bindings=library.bindings, features=features
    )
    builder = Builder(
        prompts=prompts,
        routines=library.routines,
        assessments={assessment.id: assessment for assessment in document.assessments},
        agent_role=document.agent_role,
    )
    plan: records.Plan | None = None
    with suppress(PlanTooLargeError):
        plan = builder.plan_of(_probes(document), document.steps)
    found += prompts.faults
    if plan is None or not _STEPS_MISSING.isdisjoint(one.code for one in found):
        return tuple(found)
    is_sound = not has_errors(found)
    # The other checks of a plan would repeat a fault that was found, in other words.
    found += [_placed(one, builder) for one in (validate_plan(plan, PACKS) if is_sound else check_verified(plan))]
    if has_errors(found):
        return tuple(found)
    return Compiled(workflow=_workflow(document, builder, plan, found), warnings=tuple(found))


_STEPS_MISSING: frozenset[DiagnosticCode] = frozenset({"unknown_template", "unknown_slot", "template_recursion"})
"""Codes of faults after which a plan is without some steps, so that what it says of steps is not certain."""
_ANYWHERE = ("",)
_RESTS_ON: Mapping[DiagnosticCode, tuple[str, ...]] = {
    "undeclared_key": ("inputs", "steps"),
    "unknown_function": ("functionDefinitions", "steps"),
    "unknown_assessment": ("assessments",),
    "unknown_level": ("assessments",),
    "unassessed_outcome": ("assessments", "steps"),
    "unknown_slot": ("extensionPoints",),
    "unknown_condition": ("conditions",),
    # A source may define more routines than are known here.
    "unknown_template": _ANYWHERE,
    "automatic_cycle": ("steps",),
    "duplicate_node_id": ("steps",),
    "unknown_step": ("steps",),
}
"""Codes that may be false alarms after faulty parts were removed, with the members of a document that cause them."""


_OF_IDS: frozenset[DiagnosticCode] = frozenset({"duplicate_node_id", "unknown_step"})
"""Codes that depend on the ids of steps, which are replaced if they have a fault."""


def faults_beside(reported: Diagnostics, rest: doc.WorkflowDocument) -> Diagnostics:
    """Return further faults of a document whose faulty parts were removed, without those already reported."""
    found = compile_workflow(rest)
    diagnostics = found.warnings if isinstance(found, Compiled) else found
    known = {(one.path, one.code) for one in reported}
    return tuple(one for one in diagnostics if not _is_unsure(one, reported) and (one.path, one.code) not in known)


def _is_unsure(found: Diagnostic, reported: Diagnostics) -> bool:
    # Whether a loop has a decision depends on its own steps only.
    rests_on = (found.path,) if found.code == "loop_decision_missing" else _RESTS_ON.get(found.code, ())
    removed = [one.path for one in reported if found.code in _OF_IDS or not is_step_id(one.path)]
    return any(path.startswith(rests_on) for path in removed) if rests_on else False


def placement_diagnostics(workflow_id: str, source_kind: SourceKind) -> Diagnostics:
    """Check a workflow id in its source: the reserved namespace is an error, no namespace a warning (SRC-2, SRC-3)."""
    suggestion = suggest_id(workflow_id, source_kind)
    renamed = Replacement(found=workflow_id, write=suggestion)
    if source_kind != "bundled" and is_reserved(workflow_id):
        message = f"{workflow_id!r} is in `wr.*`, which is reserved for Interlock's own workflows."
        fix = f"Rename the workflow, for example to `{suggestion}`."
        return (fault("id", "reserved_namespace", message, fix, renamed),)
    if classify_id(workflow_id) == "legacy":
        message = f"{workflow_id!r} has no namespace."
        return (warning("id", "legacy_id", message, f"Rename it to `{suggestion}`.", renamed),)
    return ()


def _features(document: doc.WorkflowDocument) -> tuple[AppliedFeature, ...]:
    """Return the known features in the order of their ids, each with its whole configuration."""
    used = {use.feature_id: use for use in document.features if use.feature_id in FEATURES}
    return tuple(
        AppliedFeature(
            feature_id=feature_id,
            config={
                field.name: used[feature_id].config.get(field.name, field.default)
                for field in FEATURES[feature_id].config
            },
        )
        for feature_id in sorted(used)
    )


def _probes(document: doc.WorkflowDocument) -> Iterator[tuple[doc.AgentStep, records.Provenance]]:
    """Yield a first step for each required capability: try it and report the result."""
    for capability, need in sorted(document.capabilities.items()):
        if need != "required":
            continue
        step = doc.AgentStep(
            at=f"capabilities.{capability}",
            id=f"probe--{capability}",
            title=f"Check that {_NAMES[capability]} works",
            prompt=doc.to_prose(_PROBES[capability]),
            evidence=doc.EvidenceRequirements(notes="optional", contract_ref=records.CAPABILITY_CONTRACT),
            capabilities=(capability,),
        )
        origin = f"wr.capabilities.{capability}"
        yield step, records.Provenance(source="feature_injected", origin_id=origin)


_NAMES = {"delegation": "delegation", "web_browsing": "web browsing"}
_PROBES = {
    "delegation": "This workflow needs subagents. Start one with your client's own subagent tool, let it answer with a"
    " single word, and report what came of it. Do not call `start_workflow` for this.",
    "web_browsing": "This workflow needs the web. Fetch one small public page with the tool your client has for it, and"
    " report what came of it.",
}


def _placed(found: Diagnostic, builder: Builder) -> Diagnostic:
    """Return a fault of the plan with its place in the author's document."""
    inner = found.path.partition("[")[2].rstrip("]")
    at = builder.at.get(inner) or builder.at.get(inner.partition(">")[0])
    return replace(found, path=at) if at else found


def _workflow(
    document: doc.WorkflowDocument, builder: Builder, plan: records.Plan, found: list[Diagnostic]
) -> CompiledWorkflow:
    produced = {one.key: one for step in builder.steps.values() for one in step.declares}
    return CompiledWorkflow(
        schema_version=1,
        workflow_id=document.id,
        name=document.name,
        description=document.description,
        agent_role=document.agent_role,
        guidance=document.guidance,
        references=document.references,
        capabilities=tuple(
            CapabilityDemand(capability=capability, need=need)
            for capability, need in sorted(document.capabilities.items())
        ),
        features=builder.prompts.features,
        inputs=tuple(sorted(document.inputs, key=lambda one: one.key)),
        produced=tuple(produced[key] for key in sorted(produced)),
        functions=tuple(sorted(_functions(document, builder), key=lambda one: (one.function.name, one.owner or ""))),
        assessments=tuple(sorted(document.assessments, key=lambda one: one.id)),
        contracts=packs_of(plan),
        recommended=document.recommended,
        plan=plan,
        compiled_warnings=tuple(CompiledWarning(code=one.code, message=one.message) for one in found),
    )


def _functions(document: doc.WorkflowDocument, builder: Builder) -> Iterator[ScopedFunction]:
    yield from (ScopedFunction(function=function) for function in document.functions)
    loops = [step for step in doc.walk_steps(document.steps) if isinstance(step, doc.LoopStep)]
    for step in (*loops, *builder.steps.values()):
        yield from (ScopedFunction(function=function, owner=step.id) for function in step.own_functions)
