"""The definitions of a contract run: found in a project or among the published, and read back from its session."""

from collections.abc import Iterable, Iterator, Mapping

from interlock.define.diagnostics import Diagnostic, Diagnostics, fault, has_errors
from interlock.define.operations.contracts import Contract
from interlock.define.operations.definitions import Definition, Definitions, Resolver
from interlock.define.operations.files import parse_definition_file, to_file_json, validate_definition
from interlock.define.operations.flows import Flow
from interlock.kernel.budgets.operations import BOUND_CONTRACTS_MAX, BOUND_DEFINITIONS_MAX
from interlock.kernel.canonical import canonical_bytes, digest_of_bytes
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import Digest
from interlock.kernel.uuids import Uuid
from interlock.plan.compile.compiler import Compiled
from interlock.plan.flows.lowering import compile_flow
from interlock.record.errors import MalformedRecordError
from interlock.store.ports.definitions import DamagedDefinition, DefinitionArchive, DefinitionKey, DefinitionReader
from interlock.store.ports.errors import DefinitionDamagedError
from interlock.store.ports.reader import SessionReader
from interlock.views.session import Session


@frozen
class Gathered:
    """A contract and everything that it refers to, all of it sound."""

    contract: Contract
    definitions: Definitions

    def contents(self) -> Mapping[DefinitionKey, bytes]:
        """Return every definition in the form in which it is published and stored."""
        return {(one.id, one.version): to_bytes(one) for one in self.definitions}


@frozen
class _Sources:
    """Resolves a definition in a project and among the published ones; of two, that of the project by default."""

    project: Resolver
    published: "Published"
    prefers_published: bool

    def find(self, definition_id: Uuid, version: int) -> Definition | None:
        """See `Resolver.find`.

        Raises:
            DefinitionDamagedError: It was published, and the file is damaged.
        """
        found = self.project.find(definition_id, version)
        if found is not None and not self.prefers_published:
            return found
        damaged = self.published.damaged.get((definition_id, version))
        if damaged is not None:
            raise DefinitionDamagedError(name=damaged.name, found=damaged.found)
        return self.published.sound.get((definition_id, version), found)


@frozen
class Published:
    """The published definitions: those that can be used, and the others."""

    sound: Mapping[DefinitionKey, Definition]
    damaged: Mapping[DefinitionKey, DamagedDefinition]


def read_published(archive: DefinitionReader) -> Published:
    """Return the published definitions. One that this release does not understand counts as damaged.

    Raises:
        StoreFailureError: The disk failed.
    """
    sound: dict[DefinitionKey, Definition] = {}
    damaged = dict(archive.damaged_definitions())
    for key, data in archive.published().items():
        try:
            sound[key] = parse_stored(data)
        except MalformedRecordError as error:
            damaged[key] = DamagedDefinition(name=f"{key[0]}, version {key[1]}", found=error.found)
    return Published(sound=sound, damaged=damaged)


def to_bytes(definition: Definition) -> bytes:
    """Return a definition as it is published and stored."""
    return canonical_bytes(to_file_json(definition))


def digest_in_store(definition: Definition) -> Digest:
    """Return the digest under which a definition is stored."""
    return digest_of_bytes(to_bytes(definition))


def parse_stored(data: bytes) -> Definition:
    """Return the definition in stored bytes.

    Raises:
        MalformedRecordError: They hold none.
    """
    parsed = parse_definition_file(data, "json")
    if isinstance(parsed, tuple):
        raise MalformedRecordError("definition", parsed[0].render_line())
    return parsed


def all_sources(project: Resolver, archive: DefinitionArchive, *, prefers_published: bool = False) -> Resolver:
    """Return what resolves a contract and its references, in a project and among the published definitions."""
    return _Sources(project=project, published=read_published(archive), prefers_published=prefers_published)


def gather(contract: Contract, resolver: Resolver) -> Gathered | Diagnostics:
    """Return a contract with everything that it refers to, or every fault of any part."""
    found = Definitions()
    waiting: list[Definition] = [contract]
    contracts = 0
    while waiting:
        one = waiting.pop()
        if found.find(one.id, one.version) is not None:
            continue
        found.add(one)
        contracts += isinstance(one, Contract)
        if len(found) > BOUND_DEFINITIONS_MAX or contracts > BOUND_CONTRACTS_MAX:
            message = f"The contract refers to more than {BOUND_DEFINITIONS_MAX} definitions, or contains more than"
            fix = "Divide the contract."
            return (fault("", "too_many", f"{message} {BOUND_CONTRACTS_MAX} contracts.", fix),)
        parts = (resolver.find(*key) for key in _references(one))
        waiting += [part for part in parts if part is not None]
    faults = tuple(_find_faults(found))
    return faults if has_errors(faults) else Gathered(contract=contract, definitions=found)


def _references(definition: Definition) -> Iterable[DefinitionKey]:
    if isinstance(definition, Flow):
        return [(slot.target_id, slot.target_version) for slot in definition.nodes]
    if isinstance(definition, Contract):
        flows = [(one.flow_id, one.flow_version) for one in definition.work_flows]
        flows += [(one.contract_id, one.contract_version) for one in definition.sub_contracts]
        for binding in definition.assessment_bindings:
            flows.append((binding.assessment_flow_id, binding.assessment_flow_version))
            flows += [(one.flow_id, one.flow_version) for one in binding.test_flow_refs]
        return flows
    return ()


def _find_faults(definitions: Definitions) -> Iterator[Diagnostic]:
    """Yield the faults of each definition. Its name is put before the path."""
    for one in definitions:
        found = compile_flow(one, definitions) if isinstance(one, Flow) else validate_definition(one, definitions)
        diagnostics = (
            found if isinstance(found, tuple) else found.warnings if isinstance(found, Compiled) else found.faults
        )
        yield from (replace(fault, path=f"{one.name}: {fault.path}") for fault in diagnostics)


def read_bound(reader: SessionReader, session: Session) -> Definitions:
    """Return the definitions that a contract run was started with, from its own session.

    Raises:
        ContentDamagedError: A definition is missing or damaged.
        MalformedRecordError: What is stored is no definition.
    """
    digests = {digest for bound in session.contracts for digest in (bound.definition, *(bound.definitions or ()))}
    return Definitions(parse_stored(reader.artifact(digest)) for digest in sorted(digests))
