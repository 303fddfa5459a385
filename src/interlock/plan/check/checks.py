"""Checks a document as a whole: unknown names, undeclared keys, evidence that proves nothing."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from interlock.decide.condition import LoopControl, iter_comparisons
from interlock.decide.criteria import Contains, Criteria, EveryOf, Length, NoneOf
from interlock.define import document as doc
from interlock.define.diagnostics import Diagnostic, fault, guessed_fix, warning
from interlock.define.parts import Assessment
from interlock.kernel.budgets.workflow import (
    CRITERIA_COMPARED_MAX,
    DIAGNOSTICS_FOUND_MAX,
)
from interlock.plan.builtins.features import FEATURES
from interlock.plan.builtins.packs import PACKS
from interlock.plan.check.blanks import check_blanks
from interlock.plan.check.declarations import check_declarations
from interlock.plan.check.kinds import constant_comparisons, unanswerable_reads
from interlock.plan.check.outside_checks import check_outside
from interlock.plan.check.placeholders import check_placeholder_keys, check_placeholders
from interlock.plan.check.reads import declared_keys, guards, loop_variables, read_paths, walk_in_loops
from interlock.plan.check.set_checks import check_sets
from interlock.plan.check.sources import check_sources
from interlock.plan.records import LOOP_CONTROL_CONTRACT

_FLAG = re.compile(r"\s*[\w.-]+\s*([=:]\s*(true|yes|done|ok|complete|completed)\s*)?", re.IGNORECASE)
"""A word, or a word that is set to true: one can write it without doing any work."""


def check_document(document: doc.WorkflowDocument) -> Iterator[Diagnostic]:
    """Yield the faults and warnings of a document as a whole."""
    steps = list(doc.walk_steps(document.steps))
    yield from check_declarations(document)
    yield from _features(document)
    yield from _functions(document, steps)
    yield from _evidence(document, steps)
    yield from _loop_decisions(steps)
    yield from _capabilities(document, steps)
    yield from check_blanks(document)
    if document.requires_declared_keys:
        yield from check_placeholders(document)
        # There may be very many, and each is compared with all keys.
        yield from islice(check_placeholder_keys(document), DIAGNOSTICS_FOUND_MAX + 1)
        yield from _keys(document, steps)
        yield from check_sets(document)
        yield from check_sources(document)
        yield from check_outside(document)
        yield from unanswerable_reads(document)
        yield from islice(constant_comparisons(document), DIAGNOSTICS_FOUND_MAX + 1)


def _features(document: doc.WorkflowDocument) -> Iterator[Diagnostic]:
    seen: set[str] = set()
    for use in document.features:
        feature = FEATURES.get(use.feature_id)
        if feature is None:
            guess = guessed_fix(use.feature_id, FEATURES, f"Use one of {', '.join(sorted(FEATURES))}.")
            yield fault(use.at, "unknown_feature", f"There is no feature {use.feature_id!r}.", *guess)
            continue
        if use.feature_id in seen:
            yield fault(
                use.at, "duplicate_id", f"The feature {use.feature_id!r} is listed twice.", "Remove one of the two."
            )
        seen.add(use.feature_id)
        at = f"{use.at.removesuffix('.id')}.config"
        fields = {field.name: field for field in feature.config}
        for name, value in use.config.items():
            field = fields.get(name)
            if field is None:
                known = ", ".join(sorted(fields)) or "nothing"
                yield fault(
                    f"{at}.{name}",
                    "unknown_key",
                    f"{name!r} is no option of this feature.",
                    f"The options of the feature are: {known}.",
                )
            elif not field.takes(value):
                message = f"{name!r} cannot be {value!r}."
                yield fault(f"{at}.{name}", "wrong_value", message, f"Write {field.in_words()}.")


def _capabilities(document: doc.WorkflowDocument, steps: list[doc.Step]) -> Iterator[Diagnostic]:
    for step in steps:
        for capability in step.capabilities if isinstance(step, doc.AgentStep) else ():
            if document.capabilities.get(capability) == "disabled":
                message = f"The step uses {capability!r}, which the workflow disables."
                yield fault(
                    step.at,
                    "wrong_value",
                    message,
                    "Allow the capability in `capabilities`, or remove it from the step.",
                )


def _functions(document: doc.WorkflowDocument, steps: list[doc.Step]) -> Iterator[Diagnostic]:
    known = {function.name for function in document.functions}
    for step in steps:
        if isinstance(step, doc.AgentStep | doc.LoopStep):
            known |= {function.name for function in step.own_functions}
    for step in steps:
        for number, name in enumerate(step.functions if isinstance(step, doc.AgentStep) else ()):
            if name not in known:
                report = fault if document.requires_declared_keys else warning
                guess = guessed_fix(name, known, "Define it in `functionDefinitions`.")
                message = f"There is no function {name!r}."
                yield report(f"{step.at}.functionReferences[{number}]", "unknown_function", message, *guess)


def _evidence(document: doc.WorkflowDocument, steps: list[doc.Step]) -> Iterator[Diagnostic]:
    ratings = {assessment.id: assessment for assessment in document.assessments}
    asked: set[str] = set()
    for step in steps:
        if not isinstance(step, doc.AgentStep):
            continue
        wanted = step.evidence
        asked |= set(wanted.assessments)
        ref = wanted.contract_ref
        if ref is not None and (ref not in PACKS or PACKS[ref].kind is None):
            offered = sorted(name for name, pack in PACKS.items() if pack.kind is not None)
            guess = guessed_fix(ref, offered, f"Use one of {', '.join(offered)}.")
            message = f"There is no contract {ref!r} for artifacts."
            yield fault(f"{step.at}.outputContract.contractRef", "unknown_contract_ref", message, *guess)
        for number, name in enumerate(wanted.assessments):
            if name not in ratings:
                guess = guessed_fix(name, ratings, "Define it in `assessments`.")
                at = f"{step.at}.assessmentRefs[{number}]"
                yield fault(at, "unknown_assessment", f"There is no assessment {name!r}.", *guess)
        asked_here = {name: ratings[name] for name in wanted.assessments if name in ratings}
        yield from _consequences(step, asked_here, ratings)
        yield from _check_levels(step, asked_here)
        if wanted.criteria is not None and _is_gameable(wanted.criteria):
            message = "One text proves nothing: it can be written without doing the work."
            fix = "Use `outputContract`, or several criteria that only the work can meet."
            yield warning(f"{step.at}.validationCriteria", "gameable_validation", message, fix)
        yield from _contradiction(step)
    for number, assessment in enumerate(document.assessments):
        if assessment.id not in asked:
            message = f"No step asks for the assessment {assessment.id!r}."
            yield warning(f"assessments[{number}]", "unassessed_outcome", message, "Name it in `assessmentRefs`.")


def _consequences(
    step: doc.AgentStep, ratings: dict[str, Assessment], declared: dict[str, Assessment]
) -> Iterator[Diagnostic]:
    """Yield the faults of a step's consequences. `ratings` are the assessments that it asks for, by id."""
    seen: set[tuple[str, str | None]] = set()
    for one in step.evidence.consequences:
        if (one.level, one.assessment_id) in seen:
            message = f"The level {one.level!r} has two consequences."
            yield fault(one.at, "duplicate_consequence", message, "Remove one of the two consequences.")
        seen.add((one.level, one.assessment_id))
        named = [ratings[one.assessment_id]] if one.assessment_id in ratings else list(ratings.values())
        if one.assessment_id is not None and one.assessment_id not in ratings:
            guess = guessed_fix(one.assessment_id, ratings, "Name one of the step's `assessmentRefs`.")
            message = f"The step does not ask for the assessment {one.assessment_id!r}."
            yield fault(f"{one.at}.when.forAssessment", "unknown_assessment", message, *guess)
            continue
        if not ratings:
            # An unknown assessment that it asks for is a fault already.
            if not step.evidence.assessments:
                yield _unrated(one, declared)
            continue
        levels = sorted({level for rating in named for level in _levels(rating)})
        if one.level.strip().lower() not in {level.strip().lower() for level in levels}:
            guess = guessed_fix(one.level, levels, f"Use one of {', '.join(levels) or 'the levels of an assessment'}.")
            message = f"No dimension has the level {one.level!r}."
            yield fault(f"{one.at}.when.anyEqualsLevel", "unknown_level", message, *guess)


def _unrated(one: doc.Consequence, declared: dict[str, Assessment]) -> Diagnostic:
    """Return the fault of a consequence in a step that asks for no assessment."""
    rated = sorted(name for name, rating in declared.items() if one.level in _levels(rating))
    fix = f"Add `assessmentRefs: [{rated[0]}]`." if rated else "Name an assessment with this level in `assessmentRefs`."
    message = f"The step asks for no assessment, so nothing can have the level {one.level!r}."
    return fault(f"{one.at}.when.anyEqualsLevel", "unknown_level", message, fix)


def _check_levels(step: doc.AgentStep, ratings: dict[str, Assessment]) -> Iterator[Diagnostic]:
    """Yield each dimension of which every level is refused: the step could never be done."""
    for name, rating in ratings.items():
        avoided = {one.level.strip().lower() for one in step.evidence.consequences if one.assessment_id in (None, name)}
        for dimension in rating.dimensions:
            if dimension.required and avoided >= {level.strip().lower() for level in dimension.levels}:
                message = f"Every level of {dimension.id!r} calls for more work, so no rating is ever accepted."
                fix = "Leave one level without a consequence."
                yield fault(f"{step.at}.assessmentConsequences", "wrong_value", message, fix)


def _levels(rating: Assessment) -> Iterator[str]:
    for dimension in rating.dimensions:
        yield from dimension.levels


def _is_gameable(criteria: Criteria) -> bool:
    if isinstance(criteria, EveryOf):
        return len(criteria.of) == 1 and _is_gameable(criteria.of[0])
    return isinstance(criteria, Contains) and bool(_FLAG.fullmatch(criteria.value))


def _contradiction(step: doc.AgentStep) -> Iterator[Diagnostic]:
    """Yield why no notes can meet the criteria of a step, as far as two of its rules show it."""
    joined = _joined(step.evidence.criteria) if step.evidence.criteria is not None else ()
    rules = list(islice(joined, CRITERIA_COMPARED_MAX))
    texts = [rule.value for rule in rules if isinstance(rule, Contains) and rule.when is None]
    for message in (*_barred(rules, texts), *_too_short(rules, texts)):
        yield fault(f"{step.at}.validationCriteria", "wrong_value", message, "Remove one of these two criteria.")
    for rule in rules:
        barred = rule.of if isinstance(rule, NoneOf) else None
        # Empty notes count as missing.
        if isinstance(barred, Length) and barred.when is None and barred.max is None and barred.min in (0, 1):
            message = f"All notes have at least {barred.min} characters, so none meet the `not` around this rule."
            yield fault(f"{step.at}.validationCriteria", "wrong_value", message, "Remove the rule, or the `not`.")


def _barred(rules: Iterable[Criteria], texts: Iterable[str]) -> Iterator[str]:
    """Describe each pair of a text that notes must contain, and a criterion that excludes it."""
    for rule in rules:
        barred = rule.of if isinstance(rule, NoneOf) else None
        if isinstance(barred, Contains) and barred.when is None:
            for text in texts:
                if barred.value in text:
                    yield f"Notes must contain {text!r} and must not contain {barred.value!r}."


def _too_short(rules: Iterable[Criteria], texts: Iterable[str]) -> Iterator[str]:
    """Describe what needs more characters than another criterion allows. One rule alone is checked at its place."""
    lengths = [rule for rule in rules if isinstance(rule, Length) and rule.when is None]
    limits = [rule for rule in lengths if rule.max is not None]
    if not limits:
        return
    limit = min(limits, key=lambda rule: rule.max or 0)
    for rule in lengths:
        if rule is not limit and rule.min is not None and rule.min > (limit.max or 0):
            yield f"Notes must have at least {rule.min} and at most {limit.max} characters."
    for text in texts:
        if len(text) > (limit.max or 0):
            yield f"Notes must contain {text!r} and have at most {limit.max} characters."


def _joined(criteria: Criteria) -> Iterator[Criteria]:
    if isinstance(criteria, EveryOf):
        for part in criteria.of:
            yield from _joined(part)
    else:
        yield criteria


def _loop_decisions(steps: list[doc.Step]) -> Iterator[Diagnostic]:
    """Yield each native loop on loop control whose last step does not make the decision."""
    for step in steps:
        if not isinstance(step, doc.LoopStep) or step.condition is None:
            continue
        condition = step.condition.condition
        if not isinstance(condition, LoopControl) or condition.when_absent == "hold":
            continue
        last = step.body[-1]
        is_decision = (
            isinstance(last, doc.AgentStep)
            and last.when is None
            and last.evidence.contract_ref == LOOP_CONTROL_CONTRACT
            and last.evidence.contract_required
        )
        if not is_decision:
            message = f"No step at the end of the loop {step.id!r} decides whether it continues."
            fix = f"Give its last step the output contract `{LOOP_CONTROL_CONTRACT}` and no `when`."
            yield fault(f"{step.at}.body", "loop_decision_missing", message, fix)


def _keys(document: doc.WorkflowDocument, steps: list[doc.Step]) -> Iterator[Diagnostic]:
    """Yield reads of undeclared keys, and loops on keys that an agent may set freely."""
    firm, produced = declared_keys(document, steps)
    for step, around in walk_in_loops(document.steps):
        known = firm | produced | around
        for guard in guards(step):
            yield from _undeclared(guard, known, "Declare it in `inputs`, or in `produces` of an earlier step.")
        if isinstance(step, doc.LoopStep) and step.condition is not None:
            yield from _check_loop_condition(step.condition, firm | around | loop_variables(step), produced)
        for at, path in read_paths(step):
            key = path.partition(".")[0]
            # A path that begins with a dot is reported elsewhere.
            if key.strip() and key not in known:
                guess = guessed_fix(key, known, "Declare it in `inputs`, or in `produces` of an earlier step.")
                yield fault(at, "undeclared_key", f"The key {key!r} is not declared.", *guess)


def _check_loop_condition(guard: doc.Guard, firm: set[str], produced: set[str]) -> Iterator[Diagnostic]:
    """Yield the keys that a loop must not depend on: undeclared ones, and those that only an agent sets."""
    for key in dict.fromkeys(term.key for term in iter_comparisons(guard.condition)):
        if key in produced - firm:
            message = f"A loop cannot depend on {key!r}, which steps only produce."
            fix = "Let a step `set` it from an artifact or a rating, or declare it in `inputs`."
            yield fault(guard.at, "undeclared_key", message, fix)
    fix = "A loop reads loop control, declared `inputs` or keys that steps `set`."
    yield from _undeclared(guard, firm, fix, passed=produced)


def _undeclared(guard: doc.Guard, known: set[str], otherwise: str, passed: Iterable[str] = ()) -> Iterator[Diagnostic]:
    for key in dict.fromkeys(term.key for term in iter_comparisons(guard.condition)):
        if key.strip() and key not in known and key not in passed:
            guess = guessed_fix(key, known, otherwise)
            yield fault(
                guard.at,
                "undeclared_key",
                f"The condition reads the key {key!r}, which is not declared.",
                *guess,
            )
