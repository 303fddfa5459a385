"""Holds the context of a call to the declarations of its workflow: at the start and at every report (CTX-12)."""

from collections.abc import Mapping

from interlock.define.declared import TypeMismatch, conform_value, declared_blank, describe_type
from interlock.engine.request import is_sample
from interlock.kernel.frozen import frozen
from interlock.plan.compiled import CompiledWorkflow
from interlock.record.context import Context


@frozen
class HeldContext:
    """A sent context, held to its declarations.

    `corrections` replace sent values: a choice is spelled as it is declared, and a key whose value does not fit keeps
    the value from before. So the context of a node never holds a value that does not fit.
    """

    corrections: Context
    mismatches: Mapping[str, TypeMismatch]


def hold_context(workflow: CompiledWorkflow, before: Context, sent: Context) -> HeldContext:
    """Hold the keys of a sent context to their declarations; the sample text of an answer is no value."""
    declared = workflow.declared
    held = {
        key: TypeMismatch(found="the sample text", wanted=describe_type(declared[key].type), is_kind=True)
        if is_sample(value, declared_blank(declared[key]))
        else conform_value(declared[key], value)
        for key, value in sent.items()
        if key in declared
    }
    mismatches = {key: value for key, value in held.items() if isinstance(value, TypeMismatch)}
    corrections = {
        key: before.get(key) if isinstance(value, TypeMismatch) else value
        for key, value in held.items()
        if isinstance(value, TypeMismatch) or value != sent[key]
    }
    return HeldContext(corrections=corrections, mismatches=mismatches)
