"""Files of definitions: one block, flow or contract with its `kind`, in JSON or YAML (OPS-12, OPS-13)."""

from collections.abc import Mapping

from interlock.define.diagnostics import Diagnostic, Diagnostics, fault, suggest_name
from interlock.define.operations.blocks import WorkBlock
from interlock.define.operations.contracts import Contract
from interlock.define.operations.definitions import CLASS_OF, Definition, Resolver, kind_of
from interlock.define.operations.flows import Flow
from interlock.define.operations.report import Report
from interlock.define.operations.validate_contract import validate_contract
from interlock.define.operations.validate_flow import validate_block, validate_flow, validate_port_mappings
from interlock.define.source.text_form import TextFormat, parse_text
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import replace


def parse_definition(value: Mapping[str, Json]) -> Definition | Diagnostics:
    """Return the definition in a JSON value, or every fault of its form."""
    kind = value.get("kind")
    if kind is None:
        return (fault("kind", "missing_key", "The key 'kind' is missing.", "Write `block`, `flow` or `contract`."),)
    model = CLASS_OF.get(kind) if kind in ("block", "flow", "contract") else None
    if model is None:
        guess = suggest_name(kind, CLASS_OF) if isinstance(kind, str) else None
        fix = f"Did you mean `{guess}`?" if guess else "Write `block`, `flow` or `contract`."
        return (fault("kind", "wrong_value", "The kind is none of `block`, `flow` and `contract`.", fix),)
    return model.parse({key: member for key, member in value.items() if key != "kind"})


def parse_definition_file(data: bytes, text_format: TextFormat) -> Definition | Diagnostics:
    """Return the definition in the bytes of a file, or every fault of their form.

    The limits are those of workflow files.
    """
    value = parse_text(data, text_format)
    if not isinstance(value, Diagnostic):
        return parse_definition(value)
    if value.code == "not_an_object":
        value = replace(value, fix="Write one object. A definition begins with `kind`: `block`, `flow` or `contract`.")
    return (value,)


def to_file_json(definition: Definition) -> dict[str, Json]:
    """Return a definition as a file holds it: with its kind."""
    return {"kind": kind_of(definition), **definition.to_json()}


def validate_definition(definition: Definition, resolver: Resolver | None = None) -> Report:
    """Check a definition of any kind with all the checks of its kind."""
    match definition:
        case WorkBlock():
            return validate_block(definition)
        case Flow():
            shape, ports = validate_flow(definition, resolver), validate_port_mappings(definition, resolver)
            return Report(faults=shape.faults + ports.faults, not_judged=shape.not_judged + ports.not_judged)
        case Contract():
            return validate_contract(definition, resolver)
