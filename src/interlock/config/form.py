"""The form of `config.toml`: a closed set of keys, each with its meaning, its default and its restart mark.

A value is applied when a server or a command starts. A key is restart-required if a change alters the tools and
workflows that clients receive when they connect (CFG-4). All other keys are runtime-safe.
"""

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, cast
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from interlock.channels.channel import DEFAULT_SOURCES, ChannelConfig, ChannelKind, ChannelSource, Delivery
from interlock.channels.check_config import CheckConfig
from interlock.config.bounds import find_costly
from interlock.config.model import Config, ConfigFault
from interlock.define.diagnostics import Diagnostic
from interlock.define.faults import diagnose_faults, find_value
from interlock.define.schemas import flat_schema
from interlock.engine.gates import AppAnswers, GateClaims
from interlock.engine.outside import SourceKey, decoded_key
from interlock.kernel.budgets import (
    ARTIFACT_BYTES_MAX,
    ARTIFACT_BYTES_SETTABLE_MAX,
    ARTIFACT_BYTES_SETTABLE_MIN,
    CHANNEL_TIMEOUT_S,
    CHANNEL_TIMEOUT_S_MAX,
    CHANNELS_MAX,
    CHECK_OUTPUT_KIB,
    CHECK_OUTPUT_KIB_MAX,
    CHECK_TIMEOUT_S,
    CHECK_TIMEOUT_S_MAX,
    EVENT_TEXT_CHARS_MAX,
    RETENTION_DAYS,
    RETENTION_DAYS_MAX,
)
from interlock.kernel.canonical import Json
from interlock.kernel.shape.mirror import faults_of
from interlock.record.base import Autonomy, Preferences, RiskPolicy, TokenFormat
from interlock.record.world import OutsideKind, ProofMode

PRESETS: Mapping[Autonomy, RiskPolicy] = MappingProxyType(
    {
        "guided": "conservative",
        "full_auto_stop_on_user_deps": "balanced",
        "full_auto_never_stop": "conservative",
    }
)
"""The risk policy that goes with each autonomy (CFG-3)."""
RESTART_MARK = "x-restartRequired"
"""The schema keyword that marks a key whose change needs a restart."""

_PLACE = re.compile(r"^(.*?) \(at (?:line (\d+), column (\d+)|end of document)\)$", re.DOTALL)
"""A message of `tomllib`: the fault and its position."""
_SAFE = Field(json_schema_extra={RESTART_MARK: False})
_RESTART = Field(json_schema_extra={RESTART_MARK: True})


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class PreferencesForm(_Form):
    """Defaults for runs. The start of a run or its session can override them."""

    preset: Annotated[Autonomy, _SAFE] = Field(
        default="guided",
        description="how much runs do without a person: sets `autonomy` and the matching `risk_policy`",
    )
    autonomy: Annotated[Autonomy | None, _SAFE] = Field(
        default=None, description="when a run stops for a person; overrides the preset"
    )
    risk_policy: Annotated[RiskPolicy | None, _SAFE] = Field(
        default=None, description="how cautious a run is if several ways are correct; overrides the preset"
    )


class GatesForm(_Form):
    """Confirmations that a workflow asks a person for."""

    claims: Annotated[GateClaims, _SAFE] = Field(
        default="when_client_cannot_ask",
        description="when an agent's own statement that a person confirmed is accepted; it is marked as a claim",
    )
    apps: Annotated[AppAnswers, _SAFE] = Field(
        default="as_claims",
        description="when an answer from the page that a chat shows is accepted; it is recorded as claimed",
    )


class EvidenceForm(_Form):
    """The evidence that agents send for a step."""

    artifact_bytes_max: Annotated[int, _SAFE] = Field(
        default=ARTIFACT_BYTES_MAX,
        ge=ARTIFACT_BYTES_SETTABLE_MIN,
        le=ARTIFACT_BYTES_SETTABLE_MAX,
        description="the largest artifact that is accepted, in bytes of canonical JSON; larger ones are refused",
    )


class ProofsForm(_Form):
    """Proofs that steps demand: receipts of `interlock witness`."""

    mode: Annotated[ProofMode, _SAFE] = Field(
        default="enforce",
        description="what a missing proof does in runs that start from then on: it refuses the report, it is recorded"
        " as what would have been refused (`shadow`), or nobody looks for it (`off`)",
    )


class TokensForm(_Form):
    """The tokens in answers."""

    format: Annotated[TokenFormat, _SAFE] = Field(
        default=2, description="the format of new tokens: 2 is short, 1 is self-describing; both stay valid"
    )


class WorkflowsForm(_Form):
    """Where workflow files are read from."""

    user_dir: Annotated[str | None, _RESTART] = Field(
        default=None,
        description="absolute path of the directory with your own workflow files; `--workflows-dir` and"
        " `INTERLOCK_WORKFLOWS_DIR` override it",
    )


class ObservationsForm(_Form):
    """What is recorded about a workspace when a run starts in it."""

    repo_root: Annotated[bool, _SAFE] = Field(
        default=False, description="whether the path of the repository is recorded; its digest is always recorded"
    )


class RetentionForm(_Form):
    """How long sessions are kept."""

    days: Annotated[int, _SAFE] = Field(
        default=RETENTION_DAYS,
        ge=0,
        le=RETENTION_DAYS_MAX,
        description="`interlock gc` deletes a session this many days after its last event; with 0, it deletes none"
        " because of its age. Nothing is deleted automatically. Sessions marked by `interlock session keep` are kept",
    )


_Key = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{43}$")]
SOURCE_NAME = re.compile(rf"[A-Za-z0-9_.-]{{1,{EVENT_TEXT_CHARS_MAX}}}")
"""The name of a source, a channel or a check."""
_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$", max_length=EVENT_TEXT_CHARS_MAX)]
_Argv = Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]
_Kinds = Annotated[list[OutsideKind], Field(max_length=CHANNELS_MAX)]


class ChannelForm(_Form):
    """Where intents of some kinds are sent. A kind needs exactly one channel."""

    kind: ChannelKind = Field(description="`command`, `http`, `file` or `mcp`")
    accepts: Annotated[_Kinds, Field(min_length=1)] = Field(description="the kinds of intents that it sends")
    sources: Annotated[list[ChannelSource], Field(min_length=1)] = Field(
        default=list(DEFAULT_SOURCES),
        description="the sources whose workflows reach it; name `project` only if you trust the files of your"
        " projects, and `imported` only if every session that you import may send",
    )
    command: _Argv | None = Field(
        default=None, description="of `command` and `mcp`: the program and its arguments; there is no shell"
    )
    url: Annotated[str, Field(pattern=r"^https?://[^\s]+$")] | None = Field(
        default=None, description="of `http`: where to post"
    )
    path: str | None = Field(default=None, description="of `file`: the absolute path of a file")
    tool: Annotated[str, Field(min_length=1)] | None = Field(default=None, description="of `mcp`: the tool to call")
    timeout_s: int = Field(
        default=CHANNEL_TIMEOUT_S, ge=1, le=CHANNEL_TIMEOUT_S_MAX, description="how long one try may take"
    )
    delivery: Delivery = Field(
        default="at_most_once", description="`at_least_once` only if the receiver recognises an id that it got before"
    )


class SourceForm(_Form):
    """A source whose signed events are believed."""

    public_key: _Key = Field(description="its public key, as `interlock keys source new` prints it")
    kinds: _Kinds = Field(default=[], description="the kinds that it may sign; if empty, every kind")


class CheckForm(_Form):
    """A command that Interlock runs when a step of `type: check` waits for it."""

    command: _Argv = Field(description="the program and its arguments; there is no shell")
    workspaces: Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1, max_length=CHANNELS_MAX)] = (
        Field(description="the real paths of the directories that it may run in; a run in one of them, or below it")
    )
    timeout_s: int = Field(default=CHECK_TIMEOUT_S, ge=1, le=CHECK_TIMEOUT_S_MAX, description="how long it may take")
    output_kb: int = Field(
        default=CHECK_OUTPUT_KIB, ge=1, le=CHECK_OUTPUT_KIB_MAX, description="how much of the end of its output is kept"
    )
    sandbox: _Argv | None = Field(default=None, description="a program and arguments that run the command, if any")
    protect: Annotated[list[Annotated[str, Field(min_length=1)]], Field(max_length=CHANNELS_MAX)] = Field(
        default=[],
        description="patterns of files below the directory, such as `Makefile` or `tests/**`; if one of them changes"
        " during a run, the check does not run",
    )


class ConfigForm(_Form):
    """A whole `config.toml`. Every table and every key is optional."""

    preferences: PreferencesForm = Field(default_factory=PreferencesForm)
    gates: GatesForm = Field(default_factory=GatesForm)
    evidence: EvidenceForm = Field(default_factory=EvidenceForm)
    observations: ObservationsForm = Field(default_factory=ObservationsForm)
    proofs: ProofsForm = Field(default_factory=ProofsForm)
    tokens: TokensForm = Field(default_factory=TokensForm)
    workflows: WorkflowsForm = Field(default_factory=WorkflowsForm)
    retention: RetentionForm = Field(default_factory=RetentionForm)
    channels: Annotated[dict[_Name, ChannelForm], Field(max_length=CHANNELS_MAX), _SAFE] = Field(
        default_factory=dict, description="where intents are sent, by name"
    )
    sources: Annotated[dict[_Name, SourceForm], Field(max_length=CHANNELS_MAX), _SAFE] = Field(
        default_factory=dict, description="sources whose signed events are believed, by name"
    )
    checks: Annotated[dict[_Name, CheckForm], Field(max_length=CHANNELS_MAX), _SAFE] = Field(
        default_factory=dict, description="commands that Interlock runs for steps of `type: check`, by name"
    )


_NAMED = ("channels", "sources", "checks")
"""Tables whose keys are names that the user chooses."""
_TABLES = {
    name: cast("type[BaseModel]", field.annotation)
    for name, field in ConfigForm.model_fields.items()
    if name not in _NAMED
}


def parse_config(text: str) -> Config | tuple[ConfigFault, ...]:
    """Parse the text of a configuration file. Returns every fault if it has any."""
    costly = find_costly(text)
    if costly is not None:
        return (costly,)
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return (_not_toml(error),)
    return _parse_value(value)


def _parse_value(value: Mapping[str, Json]) -> Config | tuple[ConfigFault, ...]:
    shapes: tuple[ConfigFault, ...] = ()
    try:
        form = ConfigForm.model_validate(value)
    except ValidationError as error:
        shapes = tuple(map(_fault, diagnose_faults(faults_of(error), value, ConfigForm)))
        form = ConfigForm.model_validate(_without_faults(value, error))
    others = (*_path_faults(value), *_channel_faults(form), *_source_faults(form), *_check_faults(form))
    return (*shapes, *others) or _config(form)


def _without_faults(value: Mapping[str, Json], error: ValidationError) -> dict[str, Json]:
    """Return a configuration without the tables that have a fault; of named ones, without those of their entries."""
    places = {tuple(one["loc"][: 2 if one["loc"][0] in _NAMED else 1]) for one in error.errors(include_url=False)}
    return {
        table: {name: one for name, one in entries.items() if (table, name) not in places}
        if isinstance(entries, dict)
        else entries
        for table, entries in value.items()
        if (table,) not in places
    }


def parse_project_checks(text: str, directory: str) -> tuple[CheckConfig, ...] | str:
    """Parse a project's own checks: tables `[checks.NAME]` as in `config.toml`, without `workspaces`.

    Returns the first fault if it has one.
    """
    costly = find_costly(text)
    if costly is not None:
        return costly.message
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return _not_toml(error).message
    checks: Json = value.get("checks")
    if set(value) - {"checks"} or not isinstance(checks, dict):
        return "It may have tables `[checks.NAME]` and nothing else."
    tables = {name: one for name, one in checks.items() if isinstance(one, dict)}
    if len(tables) < len(checks) or any("workspaces" in one for one in tables.values()):
        return "Each check is a table without `workspaces`: it runs in the directory of the project."
    found = _parse_value({"checks": {name: {**one, "workspaces": [directory]} for name, one in tables.items()}})
    return found.checks if isinstance(found, Config) else f"{found[0].key}: {found[0].message}"


def config_schema() -> dict[str, Json]:
    """Return the JSON Schema of `config.toml`, for editors."""
    return flat_schema(ConfigForm, "validation")


def key_schemas() -> Iterator[tuple[str, dict[str, Json]]]:
    """Yield each key, such as `gates.claims`, with its schema, in the order of the form."""
    tables = cast("dict[str, dict[str, dict[str, dict[str, Json]]]]", config_schema()["properties"])
    for table, schema in tables.items():
        if table in _NAMED:
            yield table, cast("dict[str, Json]", schema)
            continue
        for key, member in schema["properties"].items():
            yield f"{table}.{key}", member


def restart_marks() -> dict[str, bool]:
    """Return each key, and whether a change of it needs a restart."""
    return {key: schema[RESTART_MARK] is True for key, schema in key_schemas()}


def _config(form: ConfigForm) -> Config:
    preferences = form.preferences
    autonomy = preferences.autonomy or preferences.preset
    return Config(
        preset=preferences.preset,
        baseline=Preferences(autonomy=autonomy, risk_policy=preferences.risk_policy or PRESETS[preferences.preset]),
        gates_claims=form.gates.claims,
        gates_apps=form.gates.apps,
        artifact_bytes_max=form.evidence.artifact_bytes_max,
        keeps_repo_root=form.observations.repo_root,
        proofs=form.proofs.mode,
        token_format=form.tokens.format,
        user_dir=None if form.workflows.user_dir is None else Path(form.workflows.user_dir),
        retention_days=form.retention.days,
        said=frozenset(
            f"{table}.{key}" for table in _TABLES for key in cast("BaseModel", getattr(form, table)).model_fields_set
        )
        | (form.model_fields_set & frozenset(_NAMED)),
        channels=tuple(_channel(name, one) for name, one in sorted(form.channels.items())),
        sources=tuple(
            SourceKey(name=name, public_key=one.public_key, kinds=tuple(one.kinds))
            for name, one in sorted(form.sources.items())
        ),
        checks=tuple(_check(name, one) for name, one in sorted(form.checks.items())),
    )


def _check(name: str, form: CheckForm) -> CheckConfig:
    return CheckConfig(
        name=name,
        command=tuple(form.command),
        workspaces=tuple(form.workspaces),
        timeout_s=form.timeout_s,
        output_kb=form.output_kb,
        sandbox=tuple(form.sandbox or ()),
        protect=tuple(form.protect),
    )


def _check_faults(form: ConfigForm) -> Iterator[ConfigFault]:
    """Yield each workspace that is no absolute path, and each pattern that leads out of the directory of its check."""
    for name, one in sorted(form.checks.items()):
        yield from _nul_faults(f"checks.{name}.command", (*one.command, *(one.sandbox or ())))
        for path in one.workspaces:
            if not Path(path).is_absolute() or "\0" in path or os.path.normpath(path) != path:
                message = f"Found {path!r}, which is no absolute path without `.`, `..` and a `/` at its end."
                fix = "Write the real path of a directory."
                yield ConfigFault(key=f"checks.{name}.workspaces", message=message, fix=fix)
        for pattern in one.protect:
            if Path(pattern).is_absolute() or ".." in Path(pattern).parts or "\0" in pattern:
                message = f"Found {pattern!r}, which leads out of the directory of the check."
                fix = "Write a pattern relative to it, such as `Makefile` or `tests/**`."
                yield ConfigFault(key=f"checks.{name}.protect", message=message, fix=fix)


def _channel(name: str, form: ChannelForm) -> ChannelConfig:
    return ChannelConfig(
        name=name,
        kind=form.kind,
        accepts=tuple(form.accepts),
        sources=tuple(form.sources),
        command=tuple(form.command or ()),
        url=form.url,
        path=form.path,
        tool=form.tool,
        timeout_s=form.timeout_s,
        delivery=form.delivery,
    )


_MEMBERS: Mapping[ChannelKind, frozenset[str]] = MappingProxyType(
    {
        "command": frozenset({"command"}),
        "http": frozenset({"url"}),
        "file": frozenset({"path"}),
        "mcp": frozenset({"command", "tool"}),
    }
)
"""What each kind of channel needs, and no other kind may have."""


_ALL_MEMBERS = frozenset[str]().union(*_MEMBERS.values())


def _channel_faults(form: ConfigForm) -> Iterator[ConfigFault]:
    """Yield each channel whose members are not those of its kind, and each kind of intent that two channels accept."""
    owners: dict[tuple[str, str], str] = {}
    for name, one in sorted(form.channels.items()):
        needed, given = _MEMBERS[one.kind], frozenset(one.model_fields_set & _ALL_MEMBERS)
        if given != needed:
            listed = " and ".join(f"`{member}`" for member in sorted(needed))
            message = f"A channel of the kind `{one.kind}` has {listed}; found {', '.join(sorted(given)) or 'none'}."
            yield ConfigFault(
                key=f"channels.{name}", message=message, fix=f"Write {listed} and no other of these keys."
            )
        if one.path is not None and (not Path(one.path).is_absolute() or "\0" in one.path):
            message = f"Found {one.path!r}, which is not an absolute path."
            yield ConfigFault(key=f"channels.{name}.path", message=message, fix="Write the whole path, without `~`.")
        yield from _nul_faults(f"channels.{name}.command", one.command or ())
        if one.url is not None:
            yield from _url_faults(f"channels.{name}.url", one.url)
        for sends in one.accepts:
            for source in one.sources:
                other = owners.setdefault((sends, source), name)
                if other != name:
                    message = f"`{sends}` from workflows of the source `{source}` is accepted by `{other}`, too."
                    fix = "Let exactly one channel accept each kind from each source."
                    yield ConfigFault(key=f"channels.{name}.accepts", message=message, fix=fix)


def _nul_faults(key: str, argv: Iterable[str]) -> Iterator[ConfigFault]:
    for one in argv:
        if "\0" in one:
            message = f"Found {one!r}; no program can get an argument with a NUL."
            yield ConfigFault(key=key, message=message, fix="Write the argument without it.")


def _url_faults(key: str, url: str) -> Iterator[ConfigFault]:
    """Yield why nothing can be posted to a URL: it has no host, or one that no name system has."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
        is_host = bool(host) and ("[" in parts.netloc or bool(host.encode("idna")))
    except ValueError:
        is_host = False
    if not is_host or not url.isprintable():
        message = f"Found {url!r}, which names no host, or no port, that a request can be sent to."
        yield ConfigFault(key=key, message=message, fix="Write a URL such as `http://127.0.0.1:8099/notify`.")


def _source_faults(form: ConfigForm) -> Iterator[ConfigFault]:
    """Yield each public key that is spelled as no tool writes it: no signature would ever count."""
    for name, one in sorted(form.sources.items()):
        if decoded_key(one.public_key) is None:
            message = f"Found {one.public_key!r}, which is not the text of a public key."
            fix = "Copy the line that `interlock keys source new` printed."
            yield ConfigFault(key=f"sources.{name}.public_key", message=message, fix=fix)


def _not_toml(error: tomllib.TOMLDecodeError) -> ConfigFault:
    place = _PLACE.match(str(error))
    fault = ConfigFault(key="", message=f"This is not TOML: {place[1] if place else error}.", fix="Correct the text.")
    return fault.changed(line=int(place[2]), column=int(place[3])) if place and place[2] else fault


def _path_faults(value: Mapping[str, Json]) -> Iterator[ConfigFault]:
    found = find_value(value, ("workflows", "user_dir"))
    if isinstance(found, str) and (not Path(found).is_absolute() or "\0" in found):
        yield ConfigFault(
            key="workflows.user_dir",
            message=f"Found {found!r}, which is not an absolute path.",
            fix="Write the whole path, without `~`.",
        )


def _fault(one: Diagnostic) -> ConfigFault:
    fix = one.fix
    key = one.path.rpartition(".")[2]
    owner = next((table for table, form in _TABLES.items() if key in form.model_fields), None)
    if one.code == "wrong_type" and one.path in _TABLES:
        fix = f"Write a line `[{one.path}]`, and its keys below it."
    elif one.code == "unknown_key" and owner is not None:
        fix = f"Write it below a line `[{owner}]`."
    return ConfigFault(key=one.path, message=one.message, fix=fix)
