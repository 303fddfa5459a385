"""What a validator found in a definition, and what it could not judge (OPS-12)."""

from interlock.define.diagnostics import Diagnostic, Diagnostics, fault, has_errors
from interlock.define.operations.base import InvalidDefinitionError
from interlock.define.operations.definitions import CLASS_OF, Definition, DefinitionKind, Resolver, kind_of
from interlock.kernel.frozen import frozen
from interlock.kernel.uuids import Uuid


@frozen
class Report:
    """Every fault of a definition, and the paths that need a resolver to be judged, if there was none."""

    faults: Diagnostics = ()
    not_judged: tuple[str, ...] = ()

    @property
    def is_valid(self) -> bool:
        """Whether no fault is an error. What was not judged may still be at fault."""
        return not has_errors(self.faults)

    def raise_faults(self) -> None:
        """Raise the faults if any is an error.

        Raises:
            InvalidDefinitionError: The definition has errors.
        """
        if not self.is_valid:
            raise InvalidDefinitionError(self.faults)


@frozen
class Reference:
    """A reference to a version of a definition, and where it is."""

    path: str
    target_id: Uuid
    version: int
    kind: DefinitionKind


def resolve(reference: Reference, resolver: Resolver) -> Definition | Diagnostic:
    """Return the definition that a reference names, or why there is none."""
    found = resolver.find(reference.target_id, reference.version)
    named = f"{reference.target_id} version {reference.version}"
    if found is None:
        message = f"There is no definition {named}."
        return fault(reference.path, "unknown_definition", message, f"Name an existing {reference.kind}, or add this.")
    if not isinstance(found, CLASS_OF[reference.kind]):
        message = f"{named} is a {kind_of(found)}, not a {reference.kind}."
        return fault(reference.path, "unknown_definition", message, f"Name an existing {reference.kind}.")
    return found
