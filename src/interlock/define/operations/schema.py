"""The JSON Schema of files of definitions, for editors."""

from typing import Any, cast

from interlock.define.operations.definitions import CLASS_OF
from interlock.kernel.canonical import Json


def definitions_schema() -> dict[str, Json]:
    """Return the schema of a file: a block, a flow or a contract, by its kind."""
    parts: dict[str, Any] = {}
    options: list[Json] = []
    for kind, model in CLASS_OF.items():
        schema = model.model_json_schema(by_alias=True)
        parts |= schema.pop("$defs", {})
        schema["properties"] = {"kind": {"const": kind}, **schema["properties"]}
        schema["required"] = ["kind", *schema["required"]]
        parts[kind] = schema
        options.append({"$ref": f"#/$defs/{kind}"})
    return cast(
        "dict[str, Json]",
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "oneOf": options, "$defs": parts},
    )
