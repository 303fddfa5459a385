"""The reference page of the native language: every form and key.

Keys, types, limits and defaults come from the models' JSON Schema, what a form is from its docstring, what a key means
from the description of its field.
"""

import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias, cast

from interlock.define import parts
from interlock.define.native import condition_forms, forms, outside_forms, prompt_forms
from interlock.kernel.budgets.workflow import (
    PROMPT_BYTES_MAX,
)
from interlock.kernel.shape.mirror import mirror_of

_Schema: TypeAlias = Mapping[str, object]
_CITATION = re.compile(r" \([A-Z]+-\d+(?:, [A-Z]+-\d+)*\)")
"""Ids of the register of requirements: for readers of the code."""
_STEP_FORMS = ("StepForm", "LoopForm", "ParallelForm", "ChooseForm", "TemplateForm")
_KINDS_OF_TEXT = {
    "^[a-z0-9_-]+$": "safe id",
    "^[A-Za-z_][A-Za-z0-9_]*$": "name",
    "^[A-Za-z_][A-Za-z0-9_-]*$": "context key",
}
_INTRO = f"""# The native language

Every form and key. How they work together: [language.md](../language.md). Keys without a default may be left out
unless they are required. Of types:

- *safe id*: `[a-z0-9_-]+`, at most 100 characters
- *name*: `[A-Za-z_][A-Za-z0-9_]*`, at most 64 characters
- *context key*: `[A-Za-z_][A-Za-z0-9_-]*`, at most 128 characters; a *context path* is one, or a dotted way into its
  value
- *long text*: at most {PROMPT_BYTES_MAX} characters
- *prose*: a long text, or a list of up to 50 [prose parts](#prose-part)"""

_FORMS: tuple[type[parts.Part], ...] = (
    forms.WorkflowForm,
    forms.StepForm,
    forms.PromptBlocksForm,
    prompt_forms.ProsePart,
    forms.PromptFragmentForm,
    forms.OutputContractForm,
    condition_forms.CriteriaForm,
    forms.ConsequenceForm,
    forms.ConsequenceWhen,
    forms.ConsequenceEffect,
    forms.DelegationForm,
    forms.LoopForm,
    forms.ForForm,
    forms.ForEachForm,
    forms.ParallelForm,
    forms.BranchForm,
    forms.ChooseForm,
    forms.ChoiceBranchForm,
    forms.TemplateForm,
    forms.TemplateCallForm,
    outside_forms.AwaitForm,
    outside_forms.CheckForm,
    outside_forms.ApproveForm,
    outside_forms.EmitForm,
    outside_forms.EmitFieldForm,
    parts.Proof,
    parts.ProofCommand,
    condition_forms.ConditionForm,
    condition_forms.SetActionForm,
    condition_forms.ComputeForm,
    parts.ContextInput,
    parts.ProducedKey,
    parts.ListItems,
    parts.ItemField,
    parts.UserNeed,
    parts.Assessment,
    parts.Dimension,
    parts.FunctionDefinition,
    parts.Parameter,
    forms.FeatureForm,
    parts.ExtensionPoint,
    parts.Reference,
    parts.RecommendedPreferences,
)
"""The order of the page: the workflow first, then what it holds."""


def language_page() -> str:
    """Return the reference page of the native language."""
    schema = cast("_Schema", mirror_of(forms.WorkflowForm).model_json_schema(by_alias=True))
    schemas: dict[str, _Schema] = {"WorkflowForm": schema, **cast("dict[str, _Schema]", schema["$defs"])}
    return "\n\n".join([_INTRO, *(_section(form, schemas[form.__name__]) for form in _FORMS)]) + "\n"


def described_keys() -> dict[str, frozenset[str]]:
    """Return the keys that the page describes, by form."""
    return {form.__name__: frozenset(_meanings(form)) for form in _FORMS}


def _meanings(form: type[parts.Part]) -> dict[str, str]:
    described = ((field.alias or name, field.description) for name, field in mirror_of(form).model_fields.items())
    return {key: description for key, description in described if description is not None}


def _section(form: type[parts.Part], schema: _Schema) -> str:
    description = " ".join(str(schema["description"]).split())
    required = cast("list[str]", schema.get("required", []))
    members = cast("Mapping[str, _Schema]", schema["properties"])
    meanings = _meanings(form)
    rows = (
        (f"`{key}`", _type(member), "yes" if key in required else "", _default(member), meanings[key])
        for key, member in members.items()
    )
    table = _table(("key", "type", "required", "default", "meaning"), rows)
    return f"## {_title(form.__name__)}\n\n{_CITATION.sub('', description)}\n\n{table}"


def _title(name: str) -> str:
    bare = re.sub(r"Form$", "", name)
    return " ".join(part if at == 0 else part.lower() for at, part in enumerate(re.findall(r"[A-Z][a-z]+", bare)))


def _link(name: str) -> str:
    title = _title(name)
    return f"[{title[0].lower()}{title[1:]}](#{title.lower().replace(' ', '-')})"


def _type(schema: _Schema) -> str:
    """Return in words what a schema accepts."""
    ref = str(schema.get("$ref", "")).rpartition("/")[2]
    if ref:
        return "any JSON value" if ref == "JsonValue" else _link(ref)
    options = [
        option
        for option in cast("list[_Schema]", schema.get("anyOf", schema.get("oneOf", [])))
        if option.get("type") != "null"
    ]
    refs = tuple(str(option.get("$ref", "")).rpartition("/")[2] for option in options)
    if refs == _STEP_FORMS:
        return "step of any kind"
    if any(_is_prose_list(option) for option in options):
        return "prose"
    if options:
        words = list(dict.fromkeys(map(_type, options)))
        return "number" if words == ["whole number", "number"] else " or ".join(words)
    choices = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if choices is not None:
        return " | ".join(f"`{choice}`" for choice in cast("list[object]", choices))
    return _plain(schema)


def _is_prose_list(schema: _Schema) -> bool:
    return cast("_Schema", schema.get("items", {})).get("$ref") == "#/$defs/ProsePart"


def _plain(schema: _Schema) -> str:
    match schema["type"]:
        case "array":
            if "prefixItems" in schema:
                return "list of " + ", ".join(map(_type, cast("list[_Schema]", schema["prefixItems"])))
            bounds = _bounds(schema.get("minItems"), schema.get("maxItems"))
            return f"list{bounds} of {_type(cast('_Schema', schema['items']))}"
        case "object":
            patterns = cast("Mapping[str, _Schema]", schema.get("patternProperties", {}))
            inner = cast("_Schema", next(iter(patterns.values()), schema.get("additionalProperties")))
            names = cast("Mapping[str, list[str]]", schema.get("propertyNames", {})).get("enum")
            by = ", ".join(f"`{name}`" for name in names) if names else "by name"
            return f"object, {by}: {_type(inner)}"
        case "string":
            return _text(schema)
        case "integer":
            return "whole number" + _bounds(schema.get("minimum"), schema.get("maximum"))
        case "number":
            return "number"
        case list():
            return "constant"
        case kind:
            assert kind == "boolean", "the kinds of the schema are closed"
            return "`true` | `false`"


def _text(schema: _Schema) -> str:
    pattern, limit = schema.get("pattern"), schema.get("maxLength")
    if pattern is not None:
        return _KINDS_OF_TEXT.get(str(pattern), f"text like `{pattern}`")
    if limit == PROMPT_BYTES_MAX:
        return "long text"
    return "text" + (f", at most {limit} characters" if limit is not None else "")


def _bounds(least: object, most: object) -> str:
    if least is not None and most is not None:
        return f" ({least} to {most})"
    if most is not None:
        return f" (at most {most})"
    return f" (at least {least})" if least else ""


def _default(schema: _Schema) -> str:
    default = schema.get("default")
    return "" if default in (None, [], "") else f"`{str(default).lower() if isinstance(default, bool) else default}`"


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    rule = "|" + "---|" * len(heads)
    return "\n".join([_row(heads), rule, *map(_row, rows)])


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
