"""The base of the operational model: immutable values with the field names of their JSON form (OPS-13)."""

from collections.abc import Mapping
from typing import Annotated, Any, Self, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from interlock.define.diagnostics import Diagnostic, Diagnostics, fault
from interlock.define.faults import diagnose_faults
from interlock.kernel.budgets import (
    CONTEXT_KEY_BYTES_MAX,
)
from interlock.kernel.budgets.operations import DEFINITION_VERSION_MAX
from interlock.kernel.budgets.workflow import (
    DOCUMENT_DEPTH_MAX,
    PROMPT_BYTES_MAX,
    TITLE_CHARS_MAX,
)
from interlock.kernel.canonical import Json, NotCanonicalError, canonical_bytes, digest_of, nests_deeper_than
from interlock.kernel.errors import InterlockError
from interlock.kernel.ids import Digest
from interlock.kernel.shape.mirror import faults_of
from interlock.record.base import UuidField

Version = Annotated[int, Field(ge=1, le=DEFINITION_VERSION_MAX)]
Name = Annotated[str, Field(min_length=1, max_length=TITLE_CHARS_MAX)]
Text = Annotated[str, Field(max_length=PROMPT_BYTES_MAX)]
PortName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$", max_length=CONTEXT_KEY_BYTES_MAX)]
Metadata = dict[str, Json]
"""Key-value pairs of the author. Nothing reads them, with one exception: see `Flow.metadata`."""


class InvalidDefinitionError(InterlockError):
    """A definition has faults. `faults` lists all of them, each with its path and code."""

    def __init__(self, faults: Diagnostics) -> None:
        super().__init__("\n".join(f"{one.code} at {one.render_line()}" for one in faults))
        self.faults = faults


class Value(BaseModel):
    """A part of a definition: strict, frozen, without unknown keys. Its JSON form has every field."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        validate_by_name=True,
        validate_by_alias=True,
        allow_inf_nan=False,
        defer_build=True,
    )

    def to_json(self) -> dict[str, Json]:
        """Return the value as JSON, with every field."""
        return self.model_dump(mode="json", by_alias=True)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Return the value of its JSON form.

        Raises:
            InvalidDefinitionError: The form is wrong; the error lists every fault.
        """
        parsed = cls.parse(cast("Mapping[str, Json]", value))
        if isinstance(parsed, tuple):
            raise InvalidDefinitionError(parsed)
        return parsed

    @classmethod
    def parse(cls, value: Mapping[str, Json]) -> Self | Diagnostics:
        """Return the value of its JSON form, or every fault of the form."""
        unreadable = _find_unreadable(value)
        if unreadable is not None:
            return (unreadable,)
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            return tuple(diagnose_faults(faults_of(error), value, cls))


class Entity(Value):
    """A definition with an identity. The pair of `id` and `version` names its content for ever (OPS-2, OPS-3)."""

    id: UuidField
    version: Version
    name: Name
    description: Text = ""

    def digest(self) -> Digest:
        """Return the digest of the definition: equal for definitions with equal content, defaults included."""
        return digest_of(self.to_json())


def _find_unreadable(value: Mapping[str, Json]) -> Diagnostic | None:
    """Return why a value cannot be stored as JSON; None if it can."""
    if nests_deeper_than(value, DOCUMENT_DEPTH_MAX):
        message = f"The definition nests deeper than {DOCUMENT_DEPTH_MAX} levels."
        return fault("", "too_deep", message, "Use fewer objects and lists inside each other.")
    try:
        canonical_bytes(value)
    except NotCanonicalError as error:
        return fault(error.path, "number_not_exact", f"Found {error.found}.", "Write it as text, in quotes.")
    return None
