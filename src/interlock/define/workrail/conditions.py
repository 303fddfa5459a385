"""Lowers conditions and criteria of the WorkRail dialect (DEC-12).

The dialect compares leniently, so its operators become the `lenient_` operators. If an object has several operators,
only one counts, in a fixed order; they are not joined.
"""

from collections.abc import Iterator, Mapping
from typing import Any, assert_never, cast

from interlock.decide.condition import AllOf, Always, AnyOf, Compare, Condition, Not, Operator
from interlock.decide.criteria import Contains, Criteria, EveryOf, Length, Matches, NoneOf, SomeOf
from interlock.define.diagnostics import Diagnostic, fault, warning
from interlock.define.document import Guard
from interlock.define.faults import check_length
from interlock.define.patterns import PatternChecker
from interlock.define.workrail.forms import CompositionForm, ConditionForm, CriteriaForm, CriterionForm, RuleForm
from interlock.kernel.canonical import Json

ALWAYS = Always(op="always")

_COMPARISONS: Mapping[str, Operator] = {
    "equals": "lenient_equals",
    "not_equals": "lenient_not_equals",
    "gt": "lenient_gt",
    "gte": "lenient_gte",
    "lt": "lenient_lt",
    "lte": "lenient_lte",
    "in_": "lenient_in",
    "contains": "lenient_contains",
}
"""The operators in order of precedence: the first one in an object counts."""
_COMPARED_WITH_NULL = ("equals", "not_equals")
_FLAGS_KEPT, _FLAGS_DROPPED = "ims", "gu"
"""`g` and `u` have no effect: a pattern is searched only once, and always in Unicode text."""
_KEYS_READ: Mapping[str, frozenset[str]] = {
    "contains": frozenset({"value"}),
    "regex": frozenset({"pattern", "flags"}),
    "length": frozenset({"min", "max"}),
    "schema": frozenset({"schema_"}),
}
_TYPED_KEYS = frozenset({"value", "pattern", "flags", "min", "max"})
_ALWAYS_MET = Length(kind="length")
"""A rule that all notes meet. It replaces a faulty rule and an empty list of rules."""


class ConditionLowering:
    """Lowers the conditions and criteria of one document. Faults are added to `faults`."""

    def __init__(self, faults: list[Diagnostic], patterns: PatternChecker) -> None:
        self._faults = faults
        self._patterns = patterns
        self._negations = 0

    def lower_guard(self, form: ConditionForm | None, at: str) -> Guard | None:
        """Lower a condition and keep its path. Return None if the condition is always true."""
        condition = self.lower_condition(form, at)
        return None if isinstance(condition, Always) else Guard(condition=condition, at=at)

    def lower_condition(self, form: ConditionForm | None, at: str) -> Condition:
        """Lower a condition. An empty or missing condition is always true."""
        if form is None:
            return ALWAYS
        operator = next((name for name in _COMPARISONS if _is_written(form, name)), None)
        if operator is not None:
            return self._lower_comparison(form, operator, at)
        if form.and_ is not None:
            return _join_all(self._lower_parts(form.and_, f"{at}.and"))
        if form.or_ is not None:
            parts = self._lower_parts(form.or_, f"{at}.or")
            return AnyOf(op="or", of=parts) if parts else Not(op="not", of=ALWAYS)
        if form.not_ is not None:
            return Not(op="not", of=self.lower_condition(form.not_, f"{at}.not"))
        return Compare(op="lenient_truthy", var=form.var) if form.var is not None else ALWAYS

    def _lower_parts(self, forms: tuple[ConditionForm, ...], at: str) -> tuple[Condition, ...]:
        return tuple(self.lower_condition(form, f"{at}[{number}]") for number, form in enumerate(forms))

    def _lower_comparison(self, form: ConditionForm, operator: str, at: str) -> Condition:
        if form.var is None:
            message = f"`{operator.rstrip('_')}` has no `var` to compare."
            self._faults.append(fault(f"{at}.var", "missing_key", message, "Add `var`, the context key to compare."))
            return ALWAYS
        value = cast("Json", getattr(form, operator))
        if operator == "in_":
            value = list(cast("tuple[Json, ...]", value))
        return Compare(op=_COMPARISONS[operator], var=form.var, value=value)

    def lower_criteria(self, forms: CriteriaForm, at: str) -> Criteria | None:
        """Lower the criteria of a step. A list is joined by `and`; an empty one demands nothing, as in that project."""
        if not isinstance(forms, tuple):
            return self._lower_criterion(forms, at)
        if not forms:
            return None
        parts = self._lower_criterions(forms, at)
        return parts[0] if len(parts) == 1 else EveryOf(kind="and", of=parts)

    def _lower_criterions(self, forms: tuple[CriterionForm, ...], at: str) -> tuple[Criteria, ...]:
        return tuple(self._lower_criterion(form, f"{at}[{number}]") for number, form in enumerate(forms))

    def _lower_criterion(self, form: CriterionForm, at: str) -> Criteria:
        if isinstance(form, RuleForm):
            return self._lower_rule(form, at)
        return self._lower_composition(form, at)

    def _lower_composition(self, form: CompositionForm, at: str) -> Criteria:
        keys = [word for word in ("and", "or", "not") if getattr(form, f"{word}_") is not None]
        if len(keys) != 1:
            found = " and ".join(f"`{word}`" for word in keys) or "nothing"
            fix = "Write exactly one of `and`, `or`, `not`."
            self._faults.append(
                fault(
                    at,
                    "wrong_value",
                    f"Found {found}, but a combined rule needs exactly one of `and`, `or`, `not`.",
                    fix,
                )
            )
            return _ALWAYS_MET
        if form.not_ is not None:
            self._negations += 1
            barred = self._lower_criterion(form.not_, f"{at}.not")
            self._negations -= 1
            return NoneOf(kind="not", of=barred)
        parts = self._lower_criterions(form.and_ or form.or_ or (), f"{at}.{keys[0]}")
        if not parts:
            return _ALWAYS_MET if keys == ["and"] else NoneOf(kind="not", of=_ALWAYS_MET)
        return EveryOf(kind="and", of=parts) if keys == ["and"] else SomeOf(kind="or", of=parts)

    def _lower_rule(self, form: RuleForm, at: str) -> Criteria:
        common: dict[str, Any] = {"message": form.message}
        self._faults += _check_unread_keys(form, at)
        if (when := self.lower_guard(form.condition, f"{at}.condition")) is not None:
            common["when"] = when.condition
        match form.type:
            case "contains":
                value = self._require(form.value, f"{at}.value")
                return Contains(kind="contains", value=value, **common) if value else _ALWAYS_MET
            case "regex":
                return self._lower_regex(form, at, common)
            case "length":
                length = Length(kind="length", min=form.min, max=form.max, **common)
                self._faults += check_length(length, at, is_negated=self._negations % 2 == 1)
                return length
            case "schema":
                message = "A `schema` rule checks an object, but notes are text."
                fix = "Declare an `outputContract`, or use `contains`, `regex` or `length`."
                self._faults.append(fault(f"{at}.type", "wrong_value", message, fix))
                return _ALWAYS_MET
            case _:
                assert_never(form.type)

    def _require(self, value: str | None, at: str) -> str | None:
        if value is None:
            key = at.rpartition(".")[2]
            self._faults.append(fault(at, "missing_key", f"The key {key!r} is missing.", "Add the key."))
        return value

    def _lower_regex(self, form: RuleForm, at: str, common: Mapping[str, Any]) -> Criteria:
        pattern = self._require(form.pattern, f"{at}.pattern")
        flags = form.flags or ""
        if unknown := sorted(set(flags) - set(_FLAGS_KEPT + _FLAGS_DROPPED)):
            message = f"The pattern flags {''.join(unknown)!r} do not exist."
            self._faults.append(
                fault(f"{at}.flags", "wrong_value", message, "Use only the flags `i`, `m`, `s`, `g`, `u`.")
            )
        if pattern is None:
            return _ALWAYS_MET
        kept = "".join(flag for flag in _FLAGS_KEPT if flag in flags)
        self._faults += self._patterns.check(pattern, kept, f"{at}.pattern")
        return Matches(kind="regex", pattern=pattern, flags=kept, **common)


def _check_unread_keys(form: RuleForm, at: str) -> Iterator[Diagnostic]:
    """Warn about keys that a rule of this type does not read."""
    read = _KEYS_READ[form.type]
    for name in sorted(_TYPED_KEYS & form.model_fields_set - read):
        message = f"A rule of type {form.type!r} does not read {name!r}."
        known = " and ".join(f"`{one}`" for one in sorted(read))
        yield warning(f"{at}.{name}", "unknown_key", message, f"Remove it; the rule reads {known}.")


def _is_written(form: ConditionForm, operator: str) -> bool:
    """Return whether an operator is present. Null counts as a value only for `equals` and `not_equals`."""
    return getattr(form, operator) is not None or (
        operator in _COMPARED_WITH_NULL and operator in form.model_fields_set
    )


def _join_all(parts: tuple[Condition, ...]) -> Condition:
    return AllOf(op="and", of=parts) if parts else ALWAYS
