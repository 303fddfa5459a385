"""Reads the profile of an agent: our own form, or a manifest of the form `apiVersion: ossa/…`, `kind: Agent`.

A manifest says much that a driver has no use for. It loads all the same, and each field is listed with what becomes
of it, so nobody believes a limit to be in effect that is not.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_camel

from interlock.drive.agent.profile import MODEL_PARAMETERS, Profile, ToolEntry
from interlock.drive.faults import Fault, TurnError
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen

FieldFate = Literal["used", "ignored", "unknown"]
_KNOWN_UNUSED = frozenset(
    {
        "taxonomy",
        "collaboration",
        "deployment",
        "reasoning",
        "knowledge_graph",
        "runtimes",
        "extensions",
        "capabilities",
        "llm.fallback_models",
        "llm.retry_config",
        "llm.cost_tracking",
        "llm.profile",
        "constraints.cost",
        "constraints.performance",
        "constraints.resources",
        "observability.tracing",
        "observability.metrics",
        "observability.logging",
        "autonomy",
        "state.context_window",
        "tools.server",
        "tools.config",
        "tools.auth",
        "tools.handler",
        "tools.namespace",
        "tools.source",
        "tools.output",
        "tools.capability",
        "security.encryption",
        "security.authentication",
        "safety.guardrails",
        "reliability.health_check",
    }
)
"""Fields of manifests that a driver knows and has no use for; each stands for the fields below it."""
_FREE = frozenset({"parameters", "input_schema", "env", "permissions", "custom_context", "fallback", "fallback_value"})
"""Fields whose members are the author's own names."""
_USED_OUTSIDE: Mapping[str, FieldFate] = dict.fromkeys(
    ("api_version", "kind", "metadata.name", "metadata.version"), "used"
)
"""Fields of manifests outside of `spec` that say what the file is and which agent it describes."""


@frozen
class FieldReport:
    """What becomes of one field."""

    path: str
    fate: FieldFate

    def to_json(self) -> dict[str, Json]:
        """Return the field as `agent validate --json` prints it."""
        return {"path": self.path, "fate": self.fate}


@frozen
class LoadedProfile:
    """A profile, what became of each field of its file, and whether the file is a manifest."""

    profile: Profile
    fields: tuple[FieldReport, ...]
    is_manifest: bool


def load_profile(document: Mapping[str, Json]) -> LoadedProfile:
    """Return the profile that a document states.

    Raises:
        TurnError: A field that is used has another form, or a profile of our own form has an unknown field.
    """
    is_manifest = "apiVersion" in document or "kind" in document
    spec = _spec_of(document) if is_manifest else document
    prefix = "spec." if is_manifest else ""
    used, fields = _select(_settled(spec, is_manifest=is_manifest), Profile, "", "")
    reports = tuple(FieldReport(path=f"{prefix}{one.path}", fate=one.fate) for one in fields)
    unknown = [one.path for one in reports if one.fate == "unknown"]
    if unknown and not is_manifest:
        message = f"Unknown: {', '.join(unknown)}. `interlock agent show` prints the fields with their values."
        raise TurnError(Fault(code="VALIDATION_ERROR", message=message))
    if is_manifest:
        reports = tuple(_as_written("", dict(document), _fates_of(reports, spec)))
        used.setdefault("identity", _identity(document))
        used.setdefault("role", "")
    try:
        profile = Profile.model_validate(used)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        path = ".".join(str(part) for part in first["loc"])
        raise TurnError(Fault(code="VALIDATION_ERROR", message=f"`{prefix}{path}`: {first['msg']}.")) from error
    return LoadedProfile(profile=profile, fields=reports, is_manifest=is_manifest)


def _fates_of(reports: Iterable[FieldReport], spec: Mapping[str, Json]) -> dict[str, FieldFate]:
    """Return what becomes of fields by their paths in one spelling, with what was stated in another way."""
    fates: dict[str, FieldFate] = {_snake_path(one.path): one.fate for one in reports}
    prompts = spec.get("prompts")
    if isinstance(prompts, dict) and isinstance(prompts.get("system"), dict):
        fates["spec.prompts.system.template"] = fates.pop("spec.prompts.system", "used")
    for name in MODEL_PARAMETERS:
        fates[f"spec.llm.{name}"] = "used"
    return {**fates, **_USED_OUTSIDE}


def _as_written(path: str, value: Json, fates: Mapping[str, FieldFate]) -> Iterator[FieldReport]:
    """Yield what becomes of each field that a document really states. What no rule names is ignored."""
    known = _snake_path(path)
    inside = any(one.startswith((f"{known}.", f"{known}[")) for one in fates) if path else True
    if known in fates or not inside or not isinstance(value, dict | list):
        yield FieldReport(path=path, fate=fates.get(known, "used" if inside else "ignored"))
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _as_written(f"{path}.{key}" if path else key, inner, fates)
    else:
        for at, inner in enumerate(value):
            yield from _as_written(f"{path}[{at}]", inner, fates)


def _spec_of(document: Mapping[str, Json]) -> Mapping[str, Json]:
    spec = document.get("spec")
    if document.get("kind") != "Agent" or not isinstance(spec, dict):
        message = "A manifest has `kind: Agent` and an object `spec`."
        raise TurnError(Fault(code="VALIDATION_ERROR", message=message))
    return spec


def _identity(document: Mapping[str, Json]) -> dict[str, Json]:
    found = document.get("metadata")
    metadata = found if isinstance(found, dict) else {}
    name = metadata.get("name")
    identity: dict[str, Json] = {"id": name if isinstance(name, str) else "agent"}
    version = metadata.get("version")
    return {**identity, "name": identity["id"], "version": version if isinstance(version, str) else None}


def _settled(spec: Mapping[str, Json], *, is_manifest: bool) -> dict[str, Json]:
    """Return a specification in which what manifests state in several ways is stated in one."""
    settled = {_snake(key): value for key, value in spec.items()}
    llm = settled.get("llm")
    if isinstance(llm, dict):
        by_name = {_snake(key): value for key, value in llm.items()}
        given = by_name.get("parameters")
        stated: dict[str, Json] = {name: by_name.pop(name) for name in MODEL_PARAMETERS if name in by_name}
        by_name["parameters"] = {**stated, **(given if isinstance(given, dict) else {})}
        settled["llm"] = by_name
    prompts = settled.get("prompts")
    if is_manifest and isinstance(prompts, dict):
        system = prompts.get("system")
        # A manifest may state a template with its variables; a driver has no values for them.
        settled["prompts"] = {**prompts, "system": system.get("template")} if isinstance(system, dict) else prompts
    tools = settled.get("tools")
    if is_manifest and isinstance(tools, list):
        settled["tools"] = [_settled_tool(one) for one in tools]
    state = settled.get("state")
    if is_manifest and isinstance(state, dict):
        modes = {"stateless": "none", "long_running": "persistent"}
        mode = state.get("mode")
        # A driver keeps its state in the log, whatever storage a manifest names.
        kept = {key: value for key, value in state.items() if key != "storage"}
        settled["state"] = {**kept, "mode": modes.get(str(mode), mode)} if mode is not None else kept
    return settled


def _settled_tool(tool: Json) -> Json:
    """Return the entry of a tool: a name alone is one, and a kind that no driver knows is a function."""
    if isinstance(tool, str):
        return {"name": tool, "type": "function"}
    if not isinstance(tool, dict):
        return tool
    entry = dict(tool)
    kinds = get_args(ToolEntry.model_fields["type"].annotation)
    entry["type"] = entry.get("type") if entry.get("type") in kinds else "function"
    server = entry.get("server")
    entry.setdefault("name", server if isinstance(server, str) else "tool")
    command, capabilities = entry.get("command"), entry.get("capabilities")
    if isinstance(command, str):
        entry["command"] = [command]
    if isinstance(capabilities, list):
        entry["capabilities"] = [str(one.get("name")) if isinstance(one, dict) else one for one in capabilities]
    return entry


def _select(
    stated: Mapping[str, Json], model: type[BaseModel], path: str, known: str
) -> tuple[dict[str, Json], list[FieldReport]]:
    """Return the fields of a document that a model has, and what becomes of each field."""
    names = _names_of(model)
    used: dict[str, Json] = {}
    reports: list[FieldReport] = []
    for key, value in stated.items():
        here, general = f"{path}{key}", f"{known}{_snake(key)}"
        name = names.get(key)
        is_unfit = name == "autonomy" and not isinstance(value, str)
        if name is None or is_unfit or (name == "capabilities" and model is Profile):
            reports.append(FieldReport(path=here, fate="ignored" if general in _KNOWN_UNUSED else "unknown"))
            continue
        used[name], below = _selected_value(value, model, name, (here, general))
        reports += below or [FieldReport(path=here, fate="used")]
    return used, reports


def _selected_value(
    value: Json, model: type[BaseModel], name: str, paths: tuple[str, str]
) -> tuple[Json, list[FieldReport]]:
    inner, (here, general) = _model_of(model.model_fields[name].annotation), paths
    if inner is None or name in _FREE:
        return value, []
    if isinstance(value, dict):
        selected, reports = _select(value, inner, f"{here}.", f"{general}.")
        return selected, reports
    if not isinstance(value, list):
        return value, []
    items: list[Json] = []
    reports = list[FieldReport]()
    for at, one in enumerate(value):
        if isinstance(one, dict):
            selected, below = _select(one, inner, f"{here}[{at}].", f"{general}.")
            items.append(selected)
            reports += below
        else:
            items.append(one)
    return items, reports


def _names_of(model: type[BaseModel]) -> dict[str, str]:
    """Return the field of a model for each spelling of its name."""
    names: dict[str, str] = {}
    for name, field in model.model_fields.items():
        alias = field.validation_alias
        choices = cast("list[object]", getattr(alias, "choices", [])) if alias is not None else []
        for spelling in (name, to_camel(name), *(one for one in choices if isinstance(one, str))):
            names[spelling] = name
    return names


def _model_of(annotation: object) -> type[BaseModel] | None:
    """Return the model that an annotation holds, alone, as an option or in a tuple."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if isinstance(annotation, type) or get_origin(annotation) is dict:
        return None
    return next(_models(annotation), None)


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    for inner in get_args(annotation):
        found = _model_of(inner)
        if found is not None:
            yield found


def _snake_path(path: str) -> str:
    return ".".join(_snake(part) for part in path.split("."))


def _snake(name: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name)
