"""Checks what steps send outside and what they wait for: reserved kinds, mirrored keys, fields of events."""

from collections.abc import Iterator, Mapping

from interlock.define import document as doc
from interlock.define.diagnostics import Diagnostic, fault, guessed_fix
from interlock.define.parts import INPUTS, AwaitEvent, ContextInput, EmitAction
from interlock.kernel.frozen import replace

SHOWN_PARTS = frozenset({"notes", "artifact", "check"})
"""The parts of a step that a person can be shown, as `<part>.<step>`."""
RESERVED = "wr."
"""How the kinds of Interlock's own events begin."""


def check_outside(document: doc.WorkflowDocument) -> Iterator[Diagnostic]:
    """Yield the faults in the intents and the awaited events of a document. What they read is checked elsewhere."""
    declared = {one.key: one for one in document.inputs}
    forms: dict[str, tuple[str, Mapping[str, str]]] = {}
    for step in doc.walk_steps(document.steps):
        if not isinstance(step, doc.AgentStep):
            continue
        if step.awaits is not None:
            yield from _awaited(step, step.awaits, forms)
        if step.awaits is not None and step.awaits.approval is not None:
            yield from _shown(step, step.awaits.approval.show, document, declared)
        yield from _proofs(step, declared)
        sets = {action.key for action in step.sets}
        for number, action in enumerate(step.emits):
            at = f"{step.at}.emit[{number}]"
            if action.kind.startswith(RESERVED):
                yield _reserved(f"{at}.kind", action.kind)
            for key, name in sorted(action.mirror.items()):
                yield from _mirrored(action, key, name, f"{at}.mirror.{key}", declared)
                if key in sets:
                    message = f"The step sets the key {key!r} twice."
                    yield fault(f"{at}.mirror.{key}", "duplicate_write", message, "Remove one of the two actions.")
                sets.add(key)


def _awaited(
    step: doc.AgentStep, awaits: AwaitEvent, forms: dict[str, tuple[str, Mapping[str, str]]]
) -> Iterator[Diagnostic]:
    """Yield the faults of the event that a step waits for. `forms` has the steps before it, by kind of event."""
    if "expired" in awaits.fields:
        message = "`event.expired` says whether the time has passed."
        yield fault(f"{step.at}.fields.expired", "wrong_value", message, "Give the field another name.")
    if awaits.check is None and awaits.assurance == "executed":
        message = "Only Interlock itself makes events that are `executed`, such as the results of checks."
        fix = "Demand `signed`, or use a step of `type: check`."
        yield fault(f"{step.at}.assurance", "wrong_value", message, fix)
    if (awaits.check or awaits.approval) is not None:
        return
    if awaits.event.startswith(RESERVED):
        yield _reserved(f"{step.at}.event", awaits.event)
    first, fields = forms.setdefault(awaits.event, (step.id, awaits.fields))
    if fields != awaits.fields:
        message = f"The step {first!r} waits for the event {awaits.event!r} with other fields."
        fix = "Write the same `fields` in both steps, or wait for two kinds: each step takes any event of its kind."
        yield fault(f"{step.at}.fields", "wrong_value", message, fix)


def _proofs(step: doc.AgentStep, declared: Mapping[str, ContextInput]) -> Iterator[Diagnostic]:
    """Check that the command of each proof is fixed, or is an input: an agent cannot choose it later (PROOF-4)."""
    for number, proof in enumerate(step.proofs):
        at, path = f"{step.at}.proof[{number}].command", proof.command.source
        if (path is None) == (proof.command.value is None):
            message = "The command must have exactly one of `value` and `from`."
            yield fault(at, "wrong_value", message, "Write one of them.")
            continue
        if path is None:
            continue
        key = path.removeprefix(INPUTS)
        if not path.startswith(INPUTS):
            message = f"{path!r} is no input, so an agent could change the command that proves its own work."
            yield fault(f"{at}.from", "wrong_value", message, "Write `inputs.` and the key of an input.")
        elif key not in declared:
            guess = guessed_fix(key, declared, "Declare it in `inputs`.", before=INPUTS)
            yield fault(f"{at}.from", "undeclared_key", f"There is no input {key!r}.", *guess)
        elif declared[key].type != "string":
            message = f"The input {key!r} is no string."
            yield fault(f"{at}.from", "wrong_type", message, "Name an input of type `string`.")


def _reserved(at: str, kind: str) -> Diagnostic:
    message = f"The kind {kind!r} is one of Interlock's own."
    return fault(at, "wrong_value", message, "Write a kind with a namespace of your own, such as `team.notify`.")


def _mirrored(
    action: EmitAction, key: str, name: str, at: str, declared: Mapping[str, ContextInput]
) -> Iterator[Diagnostic]:
    if name not in action.fields:
        guess = guessed_fix(name, action.fields, "Name one of its `fields`.")
        yield fault(at, "undeclared_key", f"The intent has no field {name!r}.", *guess)
    if key not in declared:
        fix, edit = guessed_fix(key, declared, "Declare it in `inputs`.")
        renamed = replace(edit, is_key=True) if edit is not None else None
        yield fault(at, "undeclared_key", f"The key {key!r} is not declared.", fix, renamed)


def _shown(
    step: doc.AgentStep, show: tuple[str, ...], document: doc.WorkflowDocument, declared: Mapping[str, ContextInput]
) -> Iterator[Diagnostic]:
    """Check that what a person is shown exists: parts of steps that may be done before, or declared keys."""
    steps = list(_before(step, document))
    later = {one.id for one in doc.walk_steps(document.steps)} - {*steps, step.id}
    keys = {*declared, "goal", *(key for one in doc.walk_steps(document.steps) for key in _produced(one))}
    for number, path in enumerate(show):
        root, _, name = path.partition(".")
        is_part = root in SHOWN_PARTS and name
        known = steps if is_part else keys
        wanted = name if is_part else root
        # A step of a routine is not known before the routine is unfolded.
        if wanted in known or (is_part and "--" in wanted):
            continue
        if is_part and wanted in later:
            message = f"The step {wanted!r} comes later, so {path!r} is never there to show."
            yield fault(f"{step.at}.show[{number}]", "unknown_step", message, "Name a step that comes before it.")
            continue
        otherwise = "Name `notes.<step>`, `artifact.<step>`, `check.<step>` or a key."
        guess = guessed_fix(wanted, known, otherwise, before=f"{root}." if is_part else "")
        yield fault(f"{step.at}.show[{number}]", "undeclared_key", f"There is no {path!r} to show.", *guess)


def _before(step: doc.Step, document: doc.WorkflowDocument) -> Iterator[str]:
    """Yield the ids of steps that may be done before a step: earlier ones, and those of an earlier pass of a loop."""
    for one in doc.walk_steps(document.steps):
        if one is step:
            return
        yield one.id
        inside = list(doc.walk_steps(one.body)) if isinstance(one, doc.LoopStep) else []
        if any(inner is step for inner in inside):
            yield from (inner.id for inner in inside if inner is not step)


def _produced(step: doc.Step) -> tuple[str, ...]:
    return step.produces if isinstance(step, doc.AgentStep) else ()
