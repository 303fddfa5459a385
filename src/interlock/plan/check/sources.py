"""Checks what each `set` reads: declared keys, members that exist, and for `from` a value that always exists."""

from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from interlock.decide.evaluate import EVENT
from interlock.define import document as doc
from interlock.define.diagnostics import Diagnostic, fault, guessed_fix
from interlock.define.parts import Assessment, AwaitEvent
from interlock.kernel.canonical import Json
from interlock.plan.builtins.packs import PACKS
from interlock.plan.check.kinds import Kinds, declared_kinds, path_faults
from interlock.plan.check.reads import action_reads, has_blank_part
from interlock.plan.check.removed import check_removed
from interlock.plan.records import ASSESSMENT_CONTRACT

_NEEDS_VALUE = "but `from` needs a value that always exists"


def check_sources(document: doc.WorkflowDocument) -> Iterator[Diagnostic]:
    """Yield a fault for each path of a `set` that does not exist, and for each `from` whose value may be missing."""
    kinds = declared_kinds(document)
    ratings = {assessment.id: assessment for assessment in document.assessments}
    for step in doc.walk_steps(document.steps):
        for at, path in action_reads(step):
            assert isinstance(step, doc.AgentStep), "only these have actions"
            found = _source(step, path, at, kinds, ratings)
            # A condition can ask whether the value exists; `from` alone always needs it.
            yield from (one for one in found if at.endswith(".from") or _NEEDS_VALUE not in one.message)
    yield from check_removed(document.steps)


def _source(
    step: doc.AgentStep, path: str, at: str, kinds: Kinds, ratings: Mapping[str, Assessment]
) -> Iterator[Diagnostic]:
    head, *members = path.split(".")
    wanted = step.evidence
    if has_blank_part(path):
        yield from path_faults(at, path, kinds)
    elif head == "artifact" and (wanted.contract_ref is not None or wanted.assessments):
        yield from _check_artifact(wanted, members, at)
    elif head == "assessments" and wanted.assessments:
        yield from _check_rating(wanted, members, at, ratings)
    elif head == EVENT and step.awaits is not None:
        yield from _check_event(step.awaits, members, at)
    elif head not in kinds:
        yield _undeclared(head, at, kinds)
    else:
        yield from path_faults(at, path, kinds)


def _check_event(awaits: AwaitEvent, members: list[str], at: str) -> Iterator[Diagnostic]:
    """Check a path into the event of a step: it has the declared fields, and says whether the time has passed."""
    known = [*awaits.fields, "expired"]
    if len(members) == 1 and members[0] in known:
        return
    named = ", ".join(f"`{EVENT}.{one}`" for one in known)
    guess = guessed_fix(".".join(members), known, f"Read one of {named}.", before=f"{EVENT}.")
    yield fault(at, "undeclared_key", f"The event `{awaits.event}` has no field {'.'.join(members)!r}.", *guess)


def _undeclared(key: str, at: str, kinds: Kinds) -> Diagnostic:
    if key == "artifact":
        fix = "Give the step an `outputContract`, or read a declared key."
        return fault(at, "undeclared_key", "The step has no output contract, so there is no artifact to read.", fix)
    if key == "assessments":
        return fault(
            at,
            "undeclared_key",
            "The step asks for no assessment.",
            "Name the assessment in the step's `assessmentRefs`.",
        )
    if key == EVENT:
        fix = "Read it in the step of `type: await` that waits for the event, and set a declared key to it."
        return fault(at, "undeclared_key", "The step waits for no event.", fix)
    otherwise = "Declare it in `inputs`, or in `produces` of this step or an earlier one."
    known = [one for one in kinds if "." not in one]
    guess = guessed_fix(key, [*known, "artifact", "assessments"], otherwise)
    return fault(at, "undeclared_key", f"The key {key!r} is not declared.", *guess)


def _check_artifact(wanted: doc.EvidenceRequirements, members: list[str], at: str) -> Iterator[Diagnostic]:
    ref = wanted.contract_ref or ASSESSMENT_CONTRACT
    pack = PACKS.get(ref)
    if pack is None or pack.schema is None:
        return
    if wanted.contract_ref is not None and not wanted.contract_required and not wanted.assessments:
        message = f"The contract `{ref}` is not required here, {_NEEDS_VALUE}."
        yield fault(at, "wrong_value", message, "Remove `required: false` from `outputContract`, or remove this entry.")
    schema: Mapping[str, Json] = pack.schema
    before = "artifact"
    for member in members:
        here = f"{before}.{member}"
        if schema.get("type", "object") != "object" and "anyOf" not in schema:
            message = f"`{here}` cannot exist: `{before}` is not an object."
            yield fault(at, "wrong_type", message, f"Read `{before}` itself.")
            return
        inner = cast("Mapping[str, Mapping[str, Json]]", schema.get("properties") or {})
        if member not in inner:
            # An object without known members may contain any; one with known members is closed here.
            if inner:
                guess = guessed_fix(member, inner, f"Use one of {', '.join(sorted(inner))}.", before=f"{before}.")
                yield fault(at, "undeclared_key", f"The contract `{ref}` has no field `{here}`.", *guess)
            return
        if member not in cast("Iterable[str]", schema.get("required") or ()):
            message = f"`{here}` may be left out of the artifact, {_NEEDS_VALUE}."
            yield fault(at, "wrong_value", message, "Read a required member, or the whole object around it.")
            return
        schema, before = inner[member], here


def _check_rating(
    wanted: doc.EvidenceRequirements, members: list[str], at: str, ratings: Mapping[str, Assessment]
) -> Iterator[Diagnostic]:
    if not members:
        return
    name, *inside = members
    rating = ratings.get(name)
    if name not in wanted.assessments:
        asked = ", ".join(f"`assessments.{one}`" for one in wanted.assessments)
        guess = guessed_fix(name, wanted.assessments, f"The step asks for {asked}.", before="assessments.")
        yield fault(at, "unknown_assessment", f"The step does not ask for the assessment {name!r}.", *guess)
    elif rating is not None and inside:
        dimensions = {dimension.id: dimension for dimension in rating.dimensions}
        dimension = dimensions.get(inside[0])
        here = f"assessments.{name}."
        if dimension is None:
            guess = guessed_fix(inside[0], dimensions, f"Its dimensions are {', '.join(dimensions)}.", before=here)
            yield fault(at, "unknown_assessment", f"The assessment {name!r} has no dimension {inside[0]!r}.", *guess)
        elif len(inside) > 1:
            message = f"`{here}{inside[0]}` is a level and has no members."
            yield fault(at, "wrong_type", message, f"Read `{here}{inside[0]}` itself.")
        elif not dimension.required:
            message = f"The dimension {inside[0]!r} may be left unrated, {_NEEDS_VALUE}."
            yield fault(
                at, "wrong_value", message, f"Remove `required: false` of {inside[0]!r}, or read another dimension."
            )
