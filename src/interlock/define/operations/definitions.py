"""A set of definitions, each under its id and version, and the making of new versions (OPS-2, OPS-3)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, Protocol, TypeAlias, TypeVar, assert_never

from interlock.define.operations.base import Entity
from interlock.define.operations.blocks import WorkBlock
from interlock.define.operations.contracts import Contract
from interlock.define.operations.flows import Flow
from interlock.kernel.errors import InterlockError
from interlock.kernel.ids import Digest
from interlock.kernel.uuids import Uuid

Definition: TypeAlias = WorkBlock | Flow | Contract
DefinitionKind = Literal["block", "flow", "contract"]
CLASS_OF: Mapping[DefinitionKind, type[Definition]] = {"block": WorkBlock, "flow": Flow, "contract": Contract}
"""The model of each kind of definition, by the word that files use."""

_Entity = TypeVar("_Entity", bound=Entity)


class VersionTakenError(InterlockError):
    """Another definition has this id and version. A version never changes, so a changed one needs the next number."""

    def __init__(self, *, definition: Definition, expected: Digest) -> None:
        super().__init__(
            f"Version {definition.version} of {definition.id} ({definition.name!r}) exists with other content:"
            f" {expected}, not {definition.digest()}. Give the changed definition version {definition.version + 1}."
        )
        self.definition = definition
        self.expected = expected


class Resolver(Protocol):
    """Finds the definitions that others refer to."""

    def find(self, definition_id: Uuid, version: int) -> Definition | None:
        """Return a version of a definition, or None if there is none."""
        ...


class Definitions:
    """Definitions by id and version. A pair keeps its first content; the same content may be added again."""

    def __init__(self, definitions: Iterable[Definition] = ()) -> None:
        self._held: dict[tuple[Uuid, int], Definition] = {}
        for one in definitions:
            self.add(one)

    def add(self, definition: Definition) -> None:
        """Add a definition.

        Raises:
            VersionTakenError: Its id and version belong to other content. Nothing was added.
        """
        held = self._held.setdefault((definition.id, definition.version), definition)
        if held is not definition and (type(held) is not type(definition) or held != definition):
            raise VersionTakenError(definition=definition, expected=held.digest())

    def find(self, definition_id: Uuid, version: int) -> Definition | None:
        """Return a version of a definition, or None if there is none."""
        return self._held.get((definition_id, version))

    def __iter__(self) -> Iterator[Definition]:
        """Iterate over the definitions in the order in which they were added."""
        return iter(self._held.values())

    def __len__(self) -> int:
        """Return the number of definitions."""
        return len(self._held)


def kind_of(definition: Definition) -> DefinitionKind:
    """Return the word that files use for a definition's kind."""
    match definition:
        case WorkBlock():
            return "block"
        case Flow():
            return "flow"
        case Contract():
            return "contract"
        case _:
            assert_never(definition)


def next_version(entity: _Entity, **changes: object) -> _Entity:
    """Return the next version of a definition, with these fields changed. The given definition stays as it is.

    Raises:
        ValueError: A change names `id` or `version`, or no field, or gives a field a value that it cannot have.
    """
    fixed = sorted(changes.keys() & {"id", "version"})
    if fixed:
        raise ValueError(f"{fixed[0]!r} cannot be changed: a new version keeps the id and adds 1 to the version")
    kept = {name: getattr(entity, name) for name in type(entity).model_fields}
    return type(entity).model_validate(kept | changes | {"version": entity.version + 1})
