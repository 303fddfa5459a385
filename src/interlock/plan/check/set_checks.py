"""Checks what steps set and send: declared keys, once, of the declared type, no loop's variable; fields that fit."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import cast

from interlock.decide.condition import existing_paths
from interlock.decide.evaluate import EVENT, EVIDENCE_ROOTS, ConditionInputs
from interlock.decide.value import (
    INTENT_FIELD,
    CalculationError,
    Choose,
    Given,
    Operation,
    Read,
    Value,
    calculate,
    describe_unsendable,
    inputs_of_value,
    iter_parts,
)
from interlock.define import document as doc
from interlock.define.declared import (
    TypeMismatch,
    conform_value,
    describe_choices,
    describe_type,
    infer_type,
    type_mismatch,
)
from interlock.define.diagnostics import Diagnostic, fault, suggest_name, warning
from interlock.define.parts import Assessment, AwaitEvent, ContextInput, EmitAction, EmitField, ListItems, SetAction
from interlock.kernel.budgets import EVENT_FIELDS_BYTES_MAX, WORDS_BYTES_MAX
from interlock.kernel.budgets.workflow import (
    SUGGESTED_STEP_BYTES_MAX,
)
from interlock.kernel.canonical import Json, canonical_bytes
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.text import one_line, utf8_bytes
from interlock.plan.builtins.packs import PACKS
from interlock.plan.check.reads import declared_items, set_reads
from interlock.plan.records import ASSESSMENT_CONTRACT
from interlock.record.world import UNANSWERED_CHOICE

_ASSESSMENT_PARTS = 3
"""`assessments.<id>.<dimension>`."""


def check_sets(document: doc.WorkflowDocument) -> Iterator[Diagnostic]:
    """Yield the faults in the keys that steps set, and in their values."""
    return _Sets(
        declared={one.key: one for one in document.inputs},
        items=declared_items(document),
        ratings={assessment.id: assessment for assessment in document.assessments},
    ).of_steps(document.steps)


@frozen
class _Source:
    """The type and the possible values at a path, as known before any run. None: not known.

    `is_sent`: an agent sends it in this report, which is refused if the value does not fit. One that fits is enough.
    `is_optional`: it is a member that the declaration of the items allows to be missing.
    """

    type: str | None = None
    choices: tuple[Json, ...] = ()
    is_sent: bool = False
    is_optional: bool = False
    members: "Mapping[str, _Source]" = field(default_factory=dict[str, "_Source"])


_UNKNOWN = _Source()
_WANTED: Mapping[tuple[str, int], tuple[str, ...]] = {
    ("sum", 0): ("list",),
    ("length", 0): ("list", "string"),
    ("append", 0): ("list",),
    ("append", 1): (),
}
"""The types that an operand may have, by operation and number. All others are numbers; empty: any type."""


@frozen
class _Sets:
    """One check. `variables` are those of the loops around, each with what is known of it and its loop.

    `existing` are the paths at which a value exists by the conditions around.
    """

    declared: Mapping[str, ContextInput]
    items: Mapping[str, ListItems]
    ratings: Mapping[str, Assessment]
    variables: Mapping[str, tuple[str, _Source]] = field(default_factory=dict[str, tuple[str, _Source]])
    existing: frozenset[str] = frozenset()

    def of_steps(self, steps: Iterable[doc.Step]) -> Iterator[Diagnostic]:
        """Yield the faults of steps and of all that is nested in them."""
        for step in steps:
            here = self if step.when is None else self.knowing(existing_paths(step.when.condition))
            if isinstance(step, doc.AgentStep):
                yield from here.of_actions(step)
            elif isinstance(step, doc.ChoiceStep):
                yield from here.of_branches(step)
            else:
                inside = here.in_body(step) if isinstance(step, doc.LoopStep) else here
                yield from inside.of_steps(doc.inner_steps(step))

    def of_branches(self, choice: doc.ChoiceStep) -> Iterator[Diagnostic]:
        """Yield the faults in branches. The conditions of all branches before one are false in it."""
        here = self
        for branch in choice.branches:
            condition = branch.guard.condition
            yield from here.knowing(existing_paths(condition)).of_steps(branch.steps)
            here = here.knowing(existing_paths(condition, verdict=False))
        yield from here.of_steps(choice.otherwise or ())

    def knowing(self, paths: frozenset[str]) -> "_Sets":
        """Return the check of steps or actions that are reached only if a value exists at these paths too."""
        return replace(self, existing=self.existing | paths)

    def of_actions(self, step: doc.AgentStep) -> Iterator[Diagnostic]:
        """Yield the faults in what one step sets and sends."""
        for number, action in enumerate(step.sets):
            yield from self._of_action(step, action, f"{step.at}.set[{number}]")
        yield from _check_together(step)
        for number, action in enumerate(step.emits):
            yield from self._of_intent(step, action, f"{step.at}.emit[{number}]")

    def in_body(self, loop: doc.LoopStep) -> "_Sets":
        """Return the check of the steps in a loop's body."""
        number = (loop.id, _Source(type="number"))
        own = {loop.iteration_var: number, loop.index_var: number}
        if loop.item_var is not None:
            own[loop.item_var] = (loop.id, _item(self.items.get(loop.items or "")))
        around = frozenset(path for path in self.existing if path.partition(".")[0] not in own)
        return replace(self, variables={**self.variables, **own}, existing=around)

    def _of_action(self, step: doc.AgentStep, action: SetAction, at: str) -> Iterator[Diagnostic]:
        if action.key in self.variables:
            yield self._variable(action.key, f"{at}.key")
            return
        declared = self.declared.get(action.key)
        possible = [self._known(step, one) for one in _results(action.payload)]
        if action.compute is not None:
            yield from self._operands(step, action.compute, f"{at}.compute")
        yield from self._missing(action, action.payload, at)
        if declared is None:
            yield self._undeclared(step, action, possible[0], at)
        elif action.compute is None and action.source is None:
            yield from _check_value(declared, action.value, at)
        else:
            what, part = (repr(action.source), "from") if action.compute is None else ("the value", "compute")
            found = (fault for one in possible for fault in _check_source(declared, what, one, f"{at}.{part}"))
            yield from dict.fromkeys(found)

    def _of_intent(self, step: doc.AgentStep, action: EmitAction, at: str) -> Iterator[Diagnostic]:
        """Yield each field that can never be sent, and each mirrored key that can never take its field (WORLD-5)."""
        for name, one in sorted(action.fields.items()):
            yield from self._of_field(step, one, f"{at}.fields.{name}")
            yield from self._missing(action, one.payload, f"{at}.fields.{name}")
        fixed = {name: one.value for name, one in action.fields.items() if _is_fixed(one)}
        size = len(canonical_bytes(fixed)) if all(describe_unsendable(one) is None for one in fixed.values()) else 0
        if size > EVENT_FIELDS_BYTES_MAX:
            message = f"The fixed values have {size} bytes; all fields of an intent may have {EVENT_FIELDS_BYTES_MAX}."
            yield fault(f"{at}.fields", "too_long", message, "Shorten them; pass large data by reference.")
        for key, name in sorted(action.mirror.items()):
            place, sent, declared = f"{at}.mirror.{key}", action.fields.get(name), self.declared.get(key)
            if key in self.variables:
                yield self._variable(key, place)
            elif declared is not None and sent is not None:
                possible = (self._known(step, each) for each in _results(sent.payload))
                found = (
                    each for one in possible for each in _check_source(declared, f"the field {name!r}", one, place)
                )
                yield from dict.fromkeys(found)

    def _of_field(self, step: doc.AgentStep, sent: EmitField, at: str) -> Iterator[Diagnostic]:
        """Yield why a field can never be sent: a field is a text, a number or a boolean."""
        if _is_fixed(sent):
            found = describe_unsendable(sent.value)
            if found is not None:
                yield fault(
                    f"{at}.value", "wrong_type", f"A field of an intent is {INTENT_FIELD}; this is {found}.", _FIX
                )
            return
        part = "from" if sent.compute is None else "compute"
        if sent.compute is not None:
            yield from self._operands(step, sent.compute, f"{at}.compute")
        types = dict.fromkeys(self._known(step, one).type for one in _results(sent.payload))
        for known in (one for one in types if one is not None and one not in _SENDABLE):
            message = f"A field of an intent is {INTENT_FIELD}; this is {describe_type(known)}."
            yield fault(f"{at}.{part}", "wrong_type", message, _FIX)

    def _missing(self, action: SetAction | EmitAction, value: Value, at: str) -> Iterator[Diagnostic]:
        """Yield each member that an item may lack and that is read without asking: its report would be refused."""
        here = self if action.when is None else self.knowing(existing_paths(action.when))
        part = "from" if isinstance(value, Read) else "compute"
        for path in dict.fromkeys(here.uncertain_reads(value)):
            if self._variable_at(path).is_optional:
                message = f"{path!r} may be missing in an item, but this needs a value that always exists."
                fix = f"Remove `required: false` from the member, or add `when: {{var: {path}, exists: true}}`."
                yield fault(f"{at}.{part}", "wrong_value", message, fix)

    def uncertain_reads(self, value: Value) -> Iterator[str]:
        """Yield the paths that a value reads where it is not known whether a value exists there."""
        match value:
            case Read():
                yield from () if value.var in self.existing else (value.var,)
            case Choose():
                yield from self.knowing(existing_paths(value.when)).uncertain_reads(value.then)
                yield from self.knowing(existing_paths(value.when, verdict=False)).uncertain_reads(value.otherwise)
            case Operation():
                for part in value.of:
                    yield from self.uncertain_reads(part)
            case Given():
                return

    def _variable(self, key: str, at: str) -> Diagnostic:
        loop, _ = self.variables[key]
        message = f"{key!r} is a variable of the loop {loop!r}; only the loop sets it."
        fix = f"Set a key other than {key!r}, or rename the variable in the loop {loop!r}."
        return fault(at, "wrong_value", message, fix)

    def _operands(self, step: doc.AgentStep, value: Value, at: str) -> Iterator[Diagnostic]:
        """Yield why a value can never be computed: the pass would be aborted every time."""
        found = list(self._operand_types(step, value, at))
        yield from found or _check_constants(value, at)

    def _operand_types(self, step: doc.AgentStep, value: Value, at: str) -> Iterator[Diagnostic]:
        """Yield each operand that can only have the wrong type."""
        parts = (value.then, value.otherwise) if isinstance(value, Choose) else ()
        if isinstance(value, Operation):
            parts = value.of
            for number, part in enumerate(parts):
                wanted = _WANTED.get((value.op, number), ("number",))
                words = " or ".join(map(describe_type, wanted))
                types = dict.fromkeys(self._known(step, one).type for one in _results(part))
                for known in (one for one in types if one is not None and wanted and one not in wanted):
                    message = f"`{value.op}` needs {words}; operand {number + 1} is {describe_type(known)}."
                    yield fault(at, "wrong_type", message, f"Give it {words}. No operation converts a value.")
        for part in parts:
            yield from self._operand_types(step, part, at)

    def _undeclared(self, step: doc.AgentStep, action: SetAction, source: _Source, at: str) -> Diagnostic:
        entry = {
            "key": action.key,
            "type": source.type or "string",
            "description": f"Set by the step {one_line(step.id, SUGGESTED_STEP_BYTES_MAX)}.",
            "required": False,
        }
        guess = suggest_name(action.key, self.declared)
        add = f"dd to `inputs`: {json.dumps(entry, ensure_ascii=False)}"
        suggestion = f"Did you mean `{guess}`? Otherwise a{add}"
        # The entry is there to be copied: drop a guess that leaves no room for it.
        fix = suggestion if guess is not None and utf8_bytes(suggestion) <= WORDS_BYTES_MAX else f"A{add}"
        message = f"The step sets the key {action.key!r}, which `inputs` does not declare."
        return fault(f"{at}.key", "undeclared_key", message, fix)

    def _known(self, step: doc.AgentStep, value: Given | Read | Operation) -> _Source:
        """Return what is known of a value before any run."""
        match value:
            case Given():
                return _Source(type=infer_type(value.value), choices=(value.value,))
            case Read():
                return self._source(step, value.var)
            case Operation():
                return _Source(type="list" if value.op == "append" else "number")

    def _source(self, step: doc.AgentStep, path: str) -> _Source:
        """Return what is known of a path. Evidence hides variables, and those hide the context."""
        root, *members = path.split(".")
        if root == "assessments":
            return self._level(step, path)
        if root == EVENT and step.awaits is not None and len(members) == 1:
            return _field_of_event(step.awaits, members[0])
        if root == "artifact":
            return _field_of_artifact(step.evidence, members)
        if root in self.variables:
            return self._variable_at(path)
        if members or root == EVENT:
            return _UNKNOWN
        declared = self.declared.get(root)
        if declared is None and root == "goal":
            return _Source(type="string")
        return _Source(type=declared.type, choices=declared.choices) if declared is not None else _UNKNOWN

    def _variable_at(self, path: str) -> _Source:
        """Return what is known of a path into a variable of the loops around."""
        root, *members = path.split(".")
        known = self.variables[root][1] if root in self.variables else _UNKNOWN
        for member in members:
            known = known.members.get(member, _UNKNOWN)
        return known

    def _level(self, step: doc.AgentStep, path: str) -> _Source:
        parts = path.split(".")
        rating = self.ratings.get(parts[1]) if len(parts) == _ASSESSMENT_PARTS else None
        if rating is None or rating.id not in step.evidence.assessments:
            return _UNKNOWN
        levels = next((one.levels for one in rating.dimensions if one.id == parts[2]), ())
        return _Source(type="string", choices=tuple(levels))


def _field_of_event(awaits: AwaitEvent, name: str) -> _Source:
    """Return what is known of a field of the event that a step waits for; a person's choice is one of the question."""
    if name == "expired":
        return _Source(type="boolean")
    choices: tuple[Json, ...] = ()
    if awaits.approval is not None and name == "choice":
        choices = (*awaits.approval.choices, *((UNANSWERED_CHOICE,) if awaits.timeout_s is not None else ()))
    return _Source(type=awaits.fields.get(name), choices=choices)


def _item(items: ListItems | None) -> _Source:
    """Return what the declaration of a list says of an item."""
    if items is None:
        return _UNKNOWN
    members = {
        one.key: _Source(type=one.type, choices=one.choices, is_optional=not one.required) for one in items.fields
    }
    return _Source(type=items.type, choices=items.choices, members=members)


_TYPES: Mapping[object, str] = {
    "string": "string",
    "number": "number",
    "integer": "number",
    "boolean": "boolean",
    "array": "list",
    "object": "object",
}
"""The type of a declared key for each type of JSON Schema."""


def _field_of_artifact(wanted: doc.EvidenceRequirements, members: Iterable[str]) -> _Source:
    """Return what the schema of the step's artifact says of a field."""
    ref = wanted.contract_ref or (ASSESSMENT_CONTRACT if wanted.assessments else None)
    pack = PACKS.get(ref) if ref is not None else None
    schema: Mapping[str, Json] = {"type": "object", **((pack.schema if pack is not None else None) or {})}
    for member in members:
        properties = cast("Mapping[str, Mapping[str, Json]]", schema.get("properties") or {})
        schema = properties.get(member, {})
    choices = [schema["const"]] if "const" in schema else cast("list[Json]", schema.get("enum") or [])
    kind = _TYPES.get(schema.get("type")) or (infer_type(choices[0]) if choices else None)
    return _Source(type=kind, choices=tuple(choices), is_sent=True)


_SENDABLE = ("string", "number", "boolean")
_FIX = "Send a part of it, its `length`, or the path of a file that holds it."


def _is_fixed(sent: EmitField) -> bool:
    return sent.source is None and sent.compute is None


def _results(value: Value) -> Iterator[Given | Read | Operation]:
    """Yield the values that a value may be: of an `if` either one, otherwise the value itself."""
    if isinstance(value, Choose):
        yield from _results(value.then)
        yield from _results(value.otherwise)
    else:
        yield value


def _check_constants(value: Value, at: str) -> Iterator[Diagnostic]:
    """Yield each operation that fails whenever it is computed: its operands are constants, or it divides by 0."""
    failed = dict[str, None]()
    for part in iter_parts(value):
        if not isinstance(part, Operation):
            continue
        # Zero can be divided by everything but zero, so only a divisor of 0 fails whatever is divided.
        of = part.of if part.op != "divide" else (Given(op="constant", value=0), part.of[1])
        for operation in (part, part.changed(of=of)):
            try:
                if not inputs_of_value(operation):
                    calculate(operation, ConditionInputs(context={}))
            except CalculationError as error:
                failed[error.found] = None
    for found in failed:
        message = f"A part of this fails whenever it is computed: found {found}."
        yield fault(at, "wrong_value", message, "Write other operands.")


def _check_together(step: doc.AgentStep) -> Iterator[Diagnostic]:
    """Yield actions of one step that depend on each other: none reads what another one sets (EFF-2)."""
    setting: dict[str, SetAction] = {}
    for number, action in enumerate(step.sets):
        if setting.setdefault(action.key, action) is not action:
            message = f"The step sets the key {action.key!r} twice."
            yield fault(f"{step.at}.set[{number}].key", "duplicate_write", message, "Remove one of the two actions.")
    for number, action in enumerate(step.sets):
        for part, path in set_reads(action):
            read = path.partition(".")[0]
            if read in setting and read != action.key and read not in EVIDENCE_ROOTS:
                message = f"It reads the value of {read!r} from before: no action sees what another of its step sets."
                fix = f"If you mean the new value, take it from where {read!r} gets it; else leave this as it is."
                yield warning(f"{step.at}.set[{number}].{part}", "same_pass_read_after_write", message, fix)


def _check_value(declared: ContextInput, value: Json, at: str) -> Iterator[Diagnostic]:
    mismatch = type_mismatch(declared, value)
    if mismatch is None:
        return
    message = f"{declared.key!r} is declared as {mismatch.wanted}; the value is {mismatch.found}."
    part = "type" if mismatch.is_kind else "choices"
    code = "wrong_type" if mismatch.is_kind else "wrong_value"
    yield fault(f"{at}.value", code, message, f"Write {mismatch.wanted}, or change its `{part}` in `inputs`.")


def _check_source(declared: ContextInput, what: str, source: _Source, at: str) -> Iterator[Diagnostic]:
    """Compare types and values: every possible value must fit the declared key; of a field of an artifact, one."""
    if source.type is None:
        return
    if source.type != declared.type:
        message = (
            f"{declared.key!r} is declared as {describe_type(declared.type)}; {what} is {describe_type(source.type)}."
        )
        fix = f"Take {describe_type(declared.type)}, or change the `type` of {declared.key!r} in `inputs`."
        yield fault(at, "wrong_type", message, fix)
        return
    foreign = [one for one in source.choices if isinstance(conform_value(declared, one), TypeMismatch)]
    if source.is_sent and len(foreign) < max(1, len(source.choices)):
        return
    if declared.choices and (foreign or not source.choices):
        found = f"may be {json.dumps(foreign, ensure_ascii=False)}" if foreign else f"may be any {source.type}"
        message = f"{declared.key!r} is declared as {describe_choices(declared.choices)}; {what} {found}."
        fix = f"Add those to the `choices` of {declared.key!r}."
        if not foreign:
            fix = f"Take a value with the same `choices`, or remove those of {declared.key!r} in `inputs`."
        yield fault(at, "wrong_value", message, fix)
