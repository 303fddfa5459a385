"""What tells the two dialects of a workflow file apart, for authors whose file was read as the other one."""

from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType
from typing import Literal

from interlock.define.diagnostics import Diagnostic, Diagnostics
from interlock.define.parts import Part

Dialect = Literal["native", "workrail"]

_FIX_FOR_NATIVE_KEY = (
    "`{key}` is native, and the file was read as a WorkRail file because it says `version`: remove `version` to have it"
    " read as native, or remove `{key}`."
)
_FIX_FOR_WORKRAIL_KEY = (
    "`{key}` belongs to WorkRail files, and the file was read as native because it says no `version`: add `version` to"
    " have it read as a WorkRail file, or remove `{key}`."
)
_FORMS = ("WorkflowForm", "StepForm", "LoopForm", "ParallelForm", "ChooseForm", "TemplateForm")


def explain_dialect(diagnostics: Diagnostics, dialect: Dialect) -> Diagnostics:
    """Return the diagnostics, the first key that only the other dialect knows with what makes a file one of it."""
    strange = [one for one in diagnostics if one.code == "unknown_key" and one.severity == "error"]
    if not strange:
        return diagnostics
    others = _find_foreign_keys(dialect)
    first = next((one for one in strange if _last_key(one) in others), None)
    if first is None:
        return diagnostics
    fix = (_FIX_FOR_NATIVE_KEY if dialect == "workrail" else _FIX_FOR_WORKRAIL_KEY).format(key=_last_key(first))
    return tuple(replace(one, fix=fix) if one is first else one for one in diagnostics)


def _last_key(found: Diagnostic) -> str:
    return found.path.rpartition(".")[2]


def _find_foreign_keys(dialect: Dialect) -> frozenset[str]:
    # Only a file at fault pays for the forms of a dialect that it is not written in.
    from interlock.define.native import forms as native  # noqa: PLC0415 — see above
    from interlock.define.workrail import forms as workrail  # noqa: PLC0415 — see above

    own, other = (native, workrail) if dialect == "native" else (workrail, native)
    return frozenset(_iter_keys(other)) - frozenset(_iter_keys(own))


def _iter_keys(forms: ModuleType) -> Iterator[str]:
    """Yield the keys of a workflow and of its steps: further inside, both dialects use many of the same words."""
    for name, form in vars(forms).items():
        if name in _FORMS and isinstance(form, type) and issubclass(form, Part):
            yield from (field.alias or key for key, field in form.model_fields.items())
