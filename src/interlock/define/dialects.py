"""Explains to authors why their file was read in the other dialect than they expected."""

from collections.abc import Iterator
from types import ModuleType
from typing import Literal

from interlock.define.diagnostics import Diagnostic, Diagnostics
from interlock.kernel.frozen import replace

Dialect = Literal["native", "workrail"]

_FIX_FOR_NATIVE_KEY = (
    "`{key}` is a native key, but this is a WorkRail file because it has `version`. Remove `version` to make it a"
    " native file, or remove `{key}`."
)
_FIX_FOR_WORKRAIL_KEY = (
    "`{key}` is a WorkRail key, but this is a native file because it has no `version`. Add `version` to make it a"
    " WorkRail file, or remove `{key}`."
)
_NO_WORKRAIL_FILE = " `version` makes this a WorkRail file: remove `version` to make it a native file."
_ONLY_WORKRAIL = frozenset({"version", "description"})
"""The keys that a WorkRail file must have and a native file need not have."""
_FORMS = ("WorkflowForm", "StepForm", "LoopForm", "ParallelForm", "ChooseForm", "TemplateForm")


def explain_dialect(diagnostics: Diagnostics, dialect: Dialect) -> Diagnostics:
    """Return the diagnostics, with fixes that explain how the dialect of the file was detected.

    They are the fix of the first key that only the other dialect has, and those of the keys that only a WorkRail file
    must have; all other diagnostics are unchanged.
    """
    if dialect == "workrail":
        diagnostics = tuple(
            replace(one, fix=one.fix + _NO_WORKRAIL_FILE) if one.path in _ONLY_WORKRAIL else one for one in diagnostics
        )
    unknown = [one for one in diagnostics if one.code == "unknown_key" and one.severity == "error"]
    if not unknown:
        return diagnostics
    foreign_keys = _find_foreign_keys(dialect)
    first = next((one for one in unknown if _last_key(one) in foreign_keys), None)
    if first is None:
        return diagnostics
    fix = (_FIX_FOR_NATIVE_KEY if dialect == "workrail" else _FIX_FOR_WORKRAIL_KEY).format(key=_last_key(first))
    return tuple(replace(one, fix=fix) if one is first else one for one in diagnostics)


def _last_key(found: Diagnostic) -> str:
    return found.path.rpartition(".")[2]


def _find_foreign_keys(dialect: Dialect) -> frozenset[str]:
    # The forms of the other dialect are slow to build, so they are loaded only for a file with faults.
    from interlock.define.native import forms as native  # noqa: PLC0415 — see above
    from interlock.define.workrail import forms as workrail  # noqa: PLC0415 — see above

    own, other = (native, workrail) if dialect == "native" else (workrail, native)
    return frozenset(_iter_keys(other)) - frozenset(_iter_keys(own))


def _iter_keys(forms: ModuleType) -> Iterator[str]:
    """Yield the keys of a workflow and of its steps. Deeper keys are too often the same in both dialects."""
    from interlock.kernel.shape.mirror import model_of  # noqa: PLC0415 — see above

    for name in _FORMS:
        form: object = vars(forms).get(name)
        if isinstance(form, type):
            yield from (field.alias or key for key, field in model_of(form).model_fields.items())
