"""Lowers conditions and criteria of native files: resolves names and checks that each has exactly one meaning."""

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, cast

from msgspec import UNSET

from interlock.decide.condition import (
    AllOf,
    Always,
    AnyOf,
    Compare,
    Condition,
    LoopControl,
    Not,
    Operator,
    reads_loop_control,
)
from interlock.decide.criteria import Contains, Criteria, EveryOf, Length, Matches, NoneOf, SomeOf
from interlock.decide.value import Choose, Given, Operation, Read, Value
from interlock.decide.value import Operator as ValueOperator
from interlock.define.diagnostics import Diagnostic, fault, guessed_fix
from interlock.define.document import Guard
from interlock.define.faults import check_length
from interlock.define.native.condition_forms import ComputeForm, ConditionForm, CriteriaForm
from interlock.define.patterns import PatternChecker
from interlock.kernel.budgets.workflow import (
    CHOICE_DEPTH_MAX,
    CONDITION_TERMS_MAX,
    VALUE_DEPTH_MAX,
)
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import mutable

_OPERATORS: Mapping[str, Operator] = {
    "equals": "equals",
    "not_equals": "not_equals",
    "gt": "gt",
    "gte": "gte",
    "lt": "lt",
    "lte": "lte",
    "in_": "in",
    "contains": "contains",
    "starts_with": "starts_with",
    "ends_with": "ends_with",
    "exists": "exists",
}
_COMPARED_WITH_NULL = ("equals", "not_equals")
_NO_VALUE = Given(op="constant", value=None)
"""Replaces a faulty value. The fault is reported."""
_PLACEHOLDER = Always(op="always")
"""Replaces a faulty condition, so that the rest of the document can still be checked. The fault is reported."""


@mutable
class ConditionLowering:
    """Lowers the conditions and criteria of one document.

    `named` holds the document's named conditions. Faults are added to `faults`.
    """

    named: Mapping[str, ConditionForm]
    patterns: PatternChecker = field(default_factory=PatternChecker)
    faults: list[Diagnostic] = field(default_factory=list[Diagnostic])
    _terms: int = 0
    _negations: int = 0

    def lower_guard(self, form: ConditionForm, at: str, loop_id: str | None = None) -> Guard:
        """Lower a condition and keep its path. `loop_id` is the loop whose loop control it may read."""
        name = form.condition_id if form.kind == "condition_ref" and form.condition_id in self.named else None
        return Guard(condition=self.lower_condition(form, at, loop_id), at=at, name=name)

    def lower_condition(
        self, form: ConditionForm, at: str, loop_id: str | None = None, above: tuple[str, ...] = ()
    ) -> Condition:
        """Lower a condition. `above` lists the named conditions that it is inside of, to detect cycles."""
        self._terms += 1
        if self._terms > CONDITION_TERMS_MAX:
            return self._report_too_many(at)
        forms = [name for name in ("kind", "and_", "or_", "not_") if getattr(form, name) is not None]
        forms += ["var"] if form.var is not None else []
        operators = [name for name in _OPERATORS if getattr(form, name) is not UNSET]
        if len(forms) != 1 or (forms != ["var"] and operators):
            message = "The condition must have exactly one of `var`, `and`, `or`, `not`, `kind`."
            return self._report(at, message, "Write `var` with one operator, or one of and/or/not.")
        match forms[0]:
            case "var":
                return self._lower_comparison(form, operators, at)
            case "kind":
                return self._lower_kind(form, at, loop_id, above)
            case "not_":
                return self._lower_negation(cast("ConditionForm", form.not_), f"{at}.not", loop_id, above)
            case joined:
                parts = cast("tuple[ConditionForm, ...]", getattr(form, joined))
                word = joined.rstrip("_")
                of = tuple(
                    self.lower_condition(part, f"{at}.{word}[{number}]", loop_id, above)
                    for number, part in enumerate(parts)
                )
                return AllOf(op="and", of=of) if word == "and" else AnyOf(op="or", of=of)

    def _lower_negation(self, form: ConditionForm, at: str, loop_id: str | None, above: tuple[str, ...]) -> Condition:
        condition = self.lower_condition(form, at, loop_id, above)
        if not reads_loop_control(condition):
            return Not(op="not", of=condition)
        message = "`not` reverses `loop_control`: `continue` of the agent would end the loop."
        return self._report(at, message, "Remove `not`. Another pass begins if the agent says `continue`.")

    def _lower_comparison(self, form: ConditionForm, operators: list[str], at: str) -> Condition:
        if len(operators) != 1:
            found = " and ".join(f"`{_to_camel(name)}`" for name in operators) or "no operator"
            message = f"Found {found} with `var`."
            return self._report(at, message, "Write exactly one operator. Join several conditions with `and`.")
        value = cast("Json", getattr(form, operators[0]))
        assert form.var is not None, "the caller checked it"
        if value is None and operators[0] not in _COMPARED_WITH_NULL:
            name = _to_camel(operators[0])
            self._report_null(f"{at}.{name}", f"`{name}` cannot compare with null.")
            return _PLACEHOLDER
        if operators[0] == "in_":
            value = list(cast("tuple[Json, ...]", value))
        # The form is strict, so the value needs no further checks.
        return Compare(op=_OPERATORS[operators[0]], var=form.var, value=value)

    def _lower_kind(self, form: ConditionForm, at: str, loop_id: str | None, above: tuple[str, ...]) -> Condition:
        if form.kind == "loop_control":
            if loop_id is None:
                return self._report(at, "Only `while` of a loop may read loop control.", "Compare a `var` instead.")
            return LoopControl(op="loop_control", loop_id=loop_id, when_absent="missing")
        name = form.condition_id
        if name is None or name not in self.named:
            guess = guessed_fix(name or "", self.named, "Define it in `conditions`.")
            message = f"There is no condition {name!r}."
            self.faults.append(fault(f"{at}.conditionId", "unknown_condition", message, *guess))
            return _PLACEHOLDER
        if name in above:
            return self._report(at, f"The condition {name!r} refers to itself.", "Write it out.")
        if len(above) >= CHOICE_DEPTH_MAX:
            message = f"Named conditions nest deeper than {CHOICE_DEPTH_MAX} levels here."
            self.faults.append(fault(at, "too_deep", message, f"Write out the condition {name!r}."))
            return _PLACEHOLDER
        # Faults inside the definition are reported at its place; loop control depends on where it is used.
        condition = self.lower_condition(self.named[name], f"conditions.{name}", loop_id or "named", (*above, name))
        if loop_id is None and reads_loop_control(condition):
            message = f"{name!r} reads loop control. Only `while` of a loop may do that."
            return self._report(at, message, "Write `var` and an operator instead.")
        return condition

    def lower_value(self, form: object, at: str, depth: int = 1) -> Value:
        """Lower a computed value. What is no object is a constant."""
        self._terms += 1
        if self._terms > CONDITION_TERMS_MAX:
            self._report_too_many(at)
            return _NO_VALUE
        if depth > VALUE_DEPTH_MAX:
            message = f"The value is nested more than {VALUE_DEPTH_MAX} levels deep."
            self.faults.append(fault(at, "too_many", message, "Set a part of it in an earlier step."))
            return _NO_VALUE
        if not isinstance(form, ComputeForm):
            return Given(op="constant", value=cast("Json", form))
        written = sorted(name for name in form.__struct_fields__ if getattr(form, name) is not UNSET)
        if len(written) != 1:
            message = "The value must have exactly one of `var`, `if` and the operations."
            self.faults.append(fault(at, "wrong_value", message, "Write one of them."))
            return _NO_VALUE
        name, held = written[0], cast("object", getattr(form, written[0]))
        if held is None:
            return self._replace_null(f"{at}.{_to_camel(name)}")
        if name == "var":
            return Read(op="read", var=cast("str", held))
        if name == "if_":
            when, *branches = cast("tuple[ConditionForm, object, object]", held)
            then, otherwise = (
                self.lower_value(one, f"{at}.if[{number}]", depth + 1) for number, one in enumerate(branches, start=1)
            )
            return Choose(op="if", when=self.lower_condition(when, f"{at}.if[0]"), then=then, otherwise=otherwise)
        if not isinstance(held, tuple):
            of = (self.lower_value(held, f"{at}.{name}", depth + 1),)
        else:
            operands = enumerate(cast("tuple[object, ...]", held))
            of = tuple(
                self._replace_null(f"{at}.{name}[{number}]")
                # Only the item that `append` adds may be null: all other operands are numbers and lists.
                if one is None and (name, number) != ("append", 1)
                else self.lower_value(one, f"{at}.{name}[{number}]", depth + 1)
                for number, one in operands
            )
        return Operation(op=cast("ValueOperator", name), of=of)

    def _replace_null(self, at: str) -> Value:
        self._report_null(at, "Nothing can be computed from null.")
        return _NO_VALUE

    def _report_null(self, at: str, message: str) -> None:
        fix = "Write a value. In YAML, a key without a value is null."
        self.faults.append(fault(at, "wrong_type", message, fix))

    def _report_too_many(self, at: str) -> Condition:
        if self._terms == CONDITION_TERMS_MAX + 1:
            message = f"All conditions of the workflow together have more than {CONDITION_TERMS_MAX} parts."
            self.faults.append(fault(at, "too_many", message, "Use fewer conditions, or conditions with fewer parts."))
        return _PLACEHOLDER

    def _report(self, at: str, message: str, fix: str) -> Condition:
        self.faults.append(fault(at, "wrong_value", message, fix))
        return _PLACEHOLDER

    def lower_criteria(self, forms: CriteriaForm | tuple[CriteriaForm, ...], at: str) -> Criteria:
        """Lower the criteria of a step. A list is joined by `and`."""
        if isinstance(forms, CriteriaForm):
            return self._lower_criterion(forms, at)
        parts = tuple(self._lower_criterion(form, f"{at}[{number}]") for number, form in enumerate(forms))
        return parts[0] if len(parts) == 1 else EveryOf(kind="and", of=parts)

    def _lower_criterion(self, form: CriteriaForm, at: str) -> Criteria:
        joined = [name for name in ("and_", "or_", "not_") if getattr(form, name) is not None]
        if len(joined) + (form.type is not None) != 1:
            message = "The rule must have exactly one of `type`, `and`, `or`, `not`."
            self.faults.append(fault(at, "wrong_value", message, "Write exactly one of these keys."))
            return Length(kind="length")
        if not joined:
            return self._lower_rule(form, at)
        if form.not_ is not None:
            self._negations += 1
            barred = self._lower_criterion(form.not_, f"{at}.not")
            self._negations -= 1
            return NoneOf(kind="not", of=barred)
        word = joined[0].rstrip("_")
        parts = cast("tuple[CriteriaForm, ...]", getattr(form, joined[0]))
        of = tuple(self._lower_criterion(part, f"{at}.{word}[{number}]") for number, part in enumerate(parts))
        return EveryOf(kind="and", of=of) if word == "and" else SomeOf(kind="or", of=of)

    def _lower_rule(self, form: CriteriaForm, at: str) -> Criteria:
        common: dict[str, Any] = {"message": form.message} if form.message is not None else {}
        if form.when is not None:
            common["when"] = self.lower_condition(form.when, f"{at}.when")
        make = _RULES[form.type or "length"]
        rule = make(form, common)
        if rule is None:
            key = {"contains": "value", "regex": "pattern", "length": "min` or `max"}[form.type or "length"]
            message = f"The rule of type {form.type!r} needs `{key}`."
            self.faults.append(fault(at, "missing_key", message, f"Add `{key}`."))
            return Length(kind="length")
        if isinstance(rule, Length):
            self.faults += check_length(rule, at, is_negated=self._negations % 2 == 1)
        if isinstance(rule, Matches):
            self.faults += self.patterns.check(rule.pattern, rule.flags, f"{at}.pattern")
        return rule


def _build_contains(form: CriteriaForm, common: Mapping[str, Any]) -> Criteria | None:
    if form.value is None:
        return None
    return Contains(kind="contains", value=form.value, **common)


def _build_matches(form: CriteriaForm, common: Mapping[str, Any]) -> Criteria | None:
    if form.pattern is None:
        return None
    return Matches(kind="regex", pattern=form.pattern, flags=form.flags or "", **common)


def _build_length(form: CriteriaForm, common: Mapping[str, Any]) -> Criteria | None:
    if form.min is None and form.max is None:
        return None
    return Length(kind="length", min=form.min, max=form.max, **common)


_RULES: Mapping[str, Callable[[CriteriaForm, Mapping[str, Any]], Criteria | None]] = {
    "contains": _build_contains,
    "regex": _build_matches,
    "length": _build_length,
}


def _to_camel(name: str) -> str:
    head, *tail = name.rstrip("_").split("_")
    return head + "".join(word.title() for word in tail)
