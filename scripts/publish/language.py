"""The reference page of the native language: every form and key.

Keys, types, limits and defaults come from the models' JSON Schema, what a form is from its docstring. What each key
means stands here, once; a test holds it against the models.
"""

import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias, cast

from interlock.kernel.budgets import PROMPT_BYTES_MAX

_Schema: TypeAlias = Mapping[str, object]
_SOURCE = re.compile(r" \((?:locks|D)\s?[\d., D]+\)")
"""Where a rule comes from: for readers of the code."""
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

_MEANINGS: Mapping[str, Mapping[str, str]] = {
    "WorkflowForm": {
        "id": "`namespace.name`, lower case; how it is started",
        "name": "how people call it",
        "description": "when to take it and when not; agents choose by it",
        "tags": "by which lists are narrowed",
        "examples": "requests that fit it",
        "agentRole": "the role of steps that have none",
        "guidance": "rules for the whole run, told at its start and on resume",
        "references": "material that it points at",
        "inputs": "context keys that a run is started with, or that its steps set",
        "capabilities": "how much each capability of the client is needed",
        "features": "rule sets that join the steps written in blocks; an id, or an id with its configuration",
        "conditions": "conditions by name, for `condition_ref`",
        "functionDefinitions": "instructions that every step may refer to",
        "assessments": "ratings that steps may ask for",
        "extensionPoints": "slots that a project may bind",
        "recommendedPreferences": "how the author would run it",
        "steps": "what is done, in this order",
    },
    "StepForm": {
        "type": "may be left out",
        "id": "its name in the plan, the log and diagnostics",
        "title": "what it is, in a line; may hold `{{key}}`",
        "prompt": "what to do; may hold `{{key}}`; this or `promptBlocks`",
        "promptBlocks": "the same in parts",
        "promptFragments": "texts that join under a condition",
        "agentRole": "who the agent is in this step",
        "guidance": "rules for this step, shown below its prompt",
        "when": "without it holding, the step is skipped",
        "requireConfirmation": "a person has to confirm the step",
        "confirmWhen": "a person has to confirm it where this holds or cannot be decided",
        "notes": "whether notes must come; required, unless the step has an output contract",
        "outputContract": "the artifact that must come",
        "validationCriteria": "what the notes must hold; a list is joined by `and`",
        "assessmentRefs": "the ratings that must come, by id",
        "assessmentConsequences": "what a rating brings",
        "functionDefinitions": "instructions for this step alone",
        "functionReferences": "functions whose definitions are shown, as `name()`",
        "needs": "context paths without which the step is not handed out",
        "produces": "context keys that must be set when it is reported",
        "set": "context keys that are set once it is done, in order",
        "needsUser": "what the agent has to ask the user for",
        "delegate": "pieces for subagents of the agent's client",
        "capabilities": "what it uses; a capability observation is about the first",
    },
    "PromptBlocksForm": {
        "goal": "what is to be reached",
        "constraints": "what holds while it is done",
        "procedure": "how, in numbered lines",
        "outputRequired": "what has to come out: a list, or texts by name",
        "verify": "what to check before it is reported",
    },
    "ProsePart": {
        "kind": "which of the three it is",
        "text": "of `text`: the text as it stands",
        "refId": "of `ref`: a reference `wr.refs.*`, whose text is inlined",
        "slotId": "of `binding`: a slot; what it is bound to is inlined",
    },
    "PromptFragmentForm": {
        "id": "its name",
        "text": "what joins; may hold `{{key}}`",
        "when": "where it joins; without, always",
    },
    "OutputContractForm": {
        "contractRef": "a contract pack `wr.contracts.*`",
        "required": "whether the artifact must come; one that comes is judged anyhow",
    },
    "CriteriaForm": {
        "type": "what kind of rule it is",
        "value": "of `contains`: the text that must be there, letter for letter",
        "pattern": "of `regex`: an RE2 pattern that must match somewhere",
        "flags": "of `regex`: any of `i`, `m`, `s`",
        "min": "of `length`: so many characters at least",
        "max": "of `length`: so many characters at most",
        "message": "what the agent is told first where the rule is not met",
        "when": "where the rule asks at all",
        "and": "all of these are met",
        "or": "one of these is met",
        "not": "this is not met",
    },
    "ConsequenceForm": {"when": "the rating that brings it", "effect": "what it brings"},
    "ConsequenceWhen": {
        "anyEqualsLevel": "a level that some dimension has",
        "forAssessment": "the assessment that is meant; without, any of the step",
    },
    "ConsequenceEffect": {"kind": "the only effect there is", "guidance": "what to do before rating again"},
    "DelegationForm": {
        "title": "what the piece is",
        "goal": "what the subagent is to do; may hold `{{key}}`",
        "workflowId": "a workflow that says how",
        "when": "where the piece is handed out; without, always",
    },
    "LoopForm": {
        "type": "may be left out",
        "loopId": "its name, which a loop-control artifact may give",
        "title": "what it is, in a line",
        "when": "without it holding, the loop is skipped",
        "maxIterations": "passes at most",
        "while": "a pass begins while this holds",
        "until": "a pass begins while this does not hold",
        "for": "so many passes",
        "forEach": "a pass for each item",
        "iterationVar": "what the body calls the pass, counted from 1",
        "indexVar": "what the body calls the pass, counted from 0",
        "functionDefinitions": "instructions that steps of the body may refer to",
        "body": "the steps of a pass",
    },
    "ForForm": {"count": "the number; this or `countFrom`", "countFrom": "the context path of a whole number"},
    "ForEachForm": {"items": "the context path of a list", "itemVar": "what the body calls the item"},
    "ParallelForm": {
        "type": "may be left out",
        "id": "its name; the barrier is `<id>--join`",
        "title": "what it is, in a line",
        "when": "without it holding, all branches are skipped",
        "branches": "what need not wait for each other",
    },
    "BranchForm": {"steps": "the steps of the branch, in order"},
    "ChooseForm": {
        "type": "may be left out",
        "id": "its name",
        "title": "what is chosen, in a line",
        "when": "without it holding, nothing is chosen",
        "choose": "the ways, in the order in which they are tried",
        "otherwise": "the steps where no way holds; must be there, `[]` for none",
    },
    "ChoiceBranchForm": {"when": "where this way is taken", "steps": "the steps of the way, in order"},
    "TemplateForm": {
        "type": "may be left out",
        "id": "what the ids of the unfolded steps begin with",
        "title": "what it is, in a line; the id, where it is left out",
        "when": "without it holding, all its steps are skipped",
        "templateCall": "what to unfold",
    },
    "TemplateCallForm": {
        "templateId": "a routine `wr.templates.routine.*`; this or `slotId`",
        "slotId": "a slot that is bound to one",
        "args": "what stands for `{name}` in the routine's texts",
    },
    "ConditionForm": {
        "var": "the context path that is compared",
        "equals": "is the same JSON value",
        "notEquals": "is another JSON value",
        "gt": "is greater",
        "gte": "is greater, or the same",
        "lt": "is less",
        "lte": "is less, or the same",
        "in": "is one of these",
        "contains": "a list holds this item, or a text this text",
        "startsWith": "begins with this text",
        "endsWith": "ends with this text",
        "exists": "something stands there (`true`), or nothing (`false`)",
        "and": "all of these hold",
        "or": "one of these holds",
        "not": "this does not hold",
        "kind": "a named condition; or, in `while` alone, what the agent decides",
        "conditionId": "of `condition_ref`: a name of `conditions`",
    },
    "SetAction": {
        "key": "the context key, one of `inputs`",
        "value": "what it is set to; this or `from`; null removes it",
        "from": "the path whose value it is set to",
    },
    "ContextInput": {
        "key": "the context key",
        "description": "what it is, for whoever starts the run",
        "required": "whether a run must be started with it",
        "type": "what kind of value it is",
        "choices": "the values it may have; without, any of its type",
    },
    "UserNeed": {
        "reason": "what only the user can give",
        "ask": "what the agent asks",
        "choiceKind": "of which kind a choice is",
    },
    "Assessment": {
        "id": "its name, for `assessmentRefs` and `assessments.<id>.<dimension>`",
        "purpose": "what is rated",
        "dimensions": "by what it is rated",
    },
    "Dimension": {
        "id": "its name",
        "purpose": "what it says",
        "levels": "the levels there are",
        "required": "whether it must be rated",
    },
    "FunctionDefinition": {
        "name": "its name, without brackets",
        "definition": "what to do where it is used",
        "parameters": "what it is used on; their names are shown",
        "scope": "for readers; where the definition stands decides",
    },
    "Parameter": {
        "name": "its name",
        "type": "for readers",
        "required": "for readers",
        "enum": "for readers",
        "default": "for readers",
        "description": "for readers",
    },
    "FeatureForm": {"id": "a feature `wr.features.*`", "config": "its settings by name"},
    "ExtensionPoint": {
        "slotId": "its name in `.interlock/bindings.json`",
        "purpose": "what is to be bound here",
        "default": "what it is bound to where the project binds nothing",
        "acceptedKinds": "for readers: what may be bound",
    },
    "Reference": {
        "id": "its name",
        "title": "what it is",
        "source": "where it is: a path, an address",
        "purpose": "what it settles",
        "authoritative": "whether it wins over what is found elsewhere",
    },
    "RecommendedPreferences": {
        "recommendedAutonomy": "how far the agent may go on by itself",
        "recommendedRiskPolicy": "how much risk it may take",
    },
}
"""What each key says, by form, in the order in which the page tells them."""


def language_page() -> str:
    """Return the reference page of the native language."""
    from interlock.define.native.forms import WorkflowForm  # noqa: PLC0415 — building the models takes a tenth of a second

    schema = cast("_Schema", WorkflowForm.model_json_schema(by_alias=True))
    forms: dict[str, _Schema] = {"WorkflowForm": schema, **cast("dict[str, _Schema]", schema["$defs"])}
    return "\n\n".join([_INTRO, *(_form(name, forms[name]) for name in _MEANINGS)]) + "\n"


def described_keys() -> dict[str, frozenset[str]]:
    """Return the keys that the page tells of, by form."""
    return {form: frozenset(meanings) for form, meanings in _MEANINGS.items()}


def _form(name: str, schema: _Schema) -> str:
    words = " ".join(str(schema["description"]).split())
    required = cast("list[str]", schema.get("required", []))
    members = cast("Mapping[str, _Schema]", schema["properties"])
    rows = (
        (
            f"`{key}`",
            _type(member),
            "yes" if key in required else "",
            _default(member),
            _MEANINGS[name][key],
        )
        for key, member in members.items()
    )
    return f"## {_title(name)}\n\n{_SOURCE.sub('', words)}\n\n" + _table(
        ("key", "type", "required", "default", "meaning"), rows
    )


def _title(name: str) -> str:
    bare = re.sub(r"Form$", "", name)
    return " ".join(part if at == 0 else part.lower() for at, part in enumerate(re.findall(r"[A-Z][a-z]+", bare)))


def _link(name: str) -> str:
    title = _title(name)
    return f"[{title[0].lower()}{title[1:]}](#{title.lower().replace(' ', '-')})"


def _type(schema: _Schema) -> str:
    """Return what may stand there, in words."""
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
