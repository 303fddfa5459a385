"""`config.toml`: every key takes hold, every fault is reported, and without one a server only looks at the disk."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from interlock.channels.channel import ChannelConfig
from interlock.channels.check_config import CheckConfig
from interlock.config.applied import applied_config_hash, applied_keys
from interlock.config.data_dir import PlaceArguments
from interlock.config.file import read_config
from interlock.config.form import RESTART_MARK, config_schema, key_schemas, parse_config
from interlock.config.model import Config, FaultyConfig
from interlock.config.places import CONFIG_FILE
from interlock.config.ports import local_ports
from interlock.config.settings import Settings, read_settings
from interlock.engine.outside import SourceKey
from interlock.kernel.budgets import (
    ARTIFACT_BYTES_MAX,
    ARTIFACT_BYTES_SETTABLE_MAX,
    ARTIFACT_BYTES_SETTABLE_MIN,
    CONFIG_BYTES_MAX,
    RETENTION_DAYS,
    RETENTION_DAYS_MAX,
)
from interlock.record.base import Preferences

WHOLE = """
[preferences]
preset = "full_auto_never_stop"
autonomy = "guided"
risk_policy = "aggressive"
[gates]
claims = "always"
apps = "never"
[evidence]
artifact_bytes_max = 2_000_000
[observations]
repo_root = true
[proofs]
mode = "shadow"
[tokens]
format = 1
[workflows]
user_dir = "/srv/flows"
[retention]
days = 0
[channels.chat]
kind = "command"
accepts = ["team.notify"]
sources = ["user", "project"]
command = ["/usr/bin/tell", "ops"]
timeout_s = 5
delivery = "at_least_once"
[sources.ci]
public_key = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
kinds = ["ci.finished"]
[checks.tests]
command = ["/usr/bin/make", "test"]
workspaces = ["/srv/app"]
timeout_s = 60
output_kb = 1
sandbox = ["/usr/bin/env", "-i"]
protect = ["Makefile", "tests/**"]
"""
KEY = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"


def config_of(text: str) -> Config:
    found = parse_config(text)
    assert isinstance(found, Config), found
    return found


def settings_of(root: Path, text: str = "", *, environment: dict[str, str] | None = None, **given: str) -> Settings:
    (root / CONFIG_FILE).write_text(text, encoding="utf-8")
    found = read_settings(environment or {}, PlaceArguments(data_dir=str(root), **given))
    assert isinstance(found, Settings), found
    return found


@pytest.mark.inv("CFG-6")
def test_an_empty_file_says_what_no_file_says(tmp_path: Path) -> None:
    assert config_of("") == config_of("# nothing\n[gates]\n") == read_config(tmp_path / CONFIG_FILE) == Config()
    assert Config().baseline == Preferences(autonomy="guided", risk_policy="conservative")
    assert Config().gates_claims == "when_client_cannot_ask"
    assert Config().artifact_bytes_max == ARTIFACT_BYTES_MAX


@pytest.mark.inv("CFG-3")
@pytest.mark.parametrize(
    ("preset", "risk_policy"),
    [
        ("guided", "conservative"),
        ("full_auto_stop_on_user_deps", "balanced"),
        ("full_auto_never_stop", "conservative"),
    ],
)
def test_a_preset_sets_the_autonomy_and_the_risk_policy_that_goes_with_it(preset: str, risk_policy: str) -> None:
    found = config_of(f'preferences.preset = "{preset}"')
    assert found.baseline.to_json() == {"autonomy": preset, "riskPolicy": risk_policy}


@pytest.mark.inv("CFG-3")
@pytest.mark.parametrize(
    ("said", "autonomy", "risk_policy"),
    [
        ('autonomy = "full_auto_stop_on_user_deps"', "full_auto_stop_on_user_deps", "conservative"),
        ('risk_policy = "aggressive"', "guided", "aggressive"),
        ('preset = "full_auto_stop_on_user_deps"\nautonomy = "guided"', "guided", "balanced"),
        (
            'preset = "full_auto_stop_on_user_deps"\nrisk_policy = "conservative"',
            "full_auto_stop_on_user_deps",
            "conservative",
        ),
    ],
)
def test_an_explicit_preference_goes_before_the_preset(said: str, autonomy: str, risk_policy: str) -> None:
    found = config_of(f"[preferences]\n{said}")
    assert found.baseline.to_json() == {"autonomy": autonomy, "riskPolicy": risk_policy}


@pytest.mark.inv("CFG-6")
def test_every_key_takes_hold_and_is_known_to_be_said() -> None:
    found = config_of(WHOLE)
    assert found.said == {key for key, _ in key_schemas()}
    assert found == Config(
        preset="full_auto_never_stop",
        baseline=Preferences(autonomy="guided", risk_policy="aggressive"),
        gates_claims="always",
        gates_apps="never",
        artifact_bytes_max=2_000_000,
        keeps_repo_root=True,
        proofs="shadow",
        token_format=1,
        user_dir=Path("/srv/flows"),
        retention_days=0,
        channels=(
            ChannelConfig(
                name="chat",
                kind="command",
                accepts=("team.notify",),
                sources=("user", "project"),
                command=("/usr/bin/tell", "ops"),
                timeout_s=5,
                delivery="at_least_once",
            ),
        ),
        sources=(SourceKey(name="ci", public_key=KEY, kinds=("ci.finished",)),),
        checks=(
            CheckConfig(
                name="tests",
                command=("/usr/bin/make", "test"),
                workspaces=("/srv/app",),
                timeout_s=60,
                output_kb=1,
                sandbox=("/usr/bin/env", "-i"),
                protect=("Makefile", "tests/**"),
            ),
        ),
        said=found.said,
    )


def test_what_is_configured_reaches_the_ports(tmp_path: Path) -> None:
    ports = local_ports(settings_of(tmp_path, WHOLE))
    assert ports.baseline == Preferences(autonomy="guided", risk_policy="aggressive")
    assert ports.gates_claims == "always"
    assert ports.artifact_bytes_max == 2_000_000
    assert ports.outbox.uncovered("team.notify", "project") is None
    assert ports.outbox.uncovered("team.notify", "bundled") is not None
    assert list(ports.sources) == ["ci"]


CHAT = '[channels.chat]\naccepts = ["team.notify"]\n'
CHANNEL_FAULTS: dict[str, tuple[str, str, str, str]] = {
    "a check in no place": (
        '[checks.tests]\ncommand = ["make"]\nworkspaces = ["app"]',
        "checks.tests.workspaces",
        "app",
        "Write the real path",
    ),
    "a check that protects what lies elsewhere": (
        '[checks.tests]\ncommand = ["make"]\nworkspaces = ["/app"]\nprotect = ["../etc"]',
        "checks.tests.protect",
        "../etc",
        "relative",
    ),
    "a channel without its place": (f'{CHAT}kind = "http"', "channels.chat", "has `url`", "Write `url`"),
    "a channel with another's place": (
        f'{CHAT}kind = "http"\nurl = "http://h/"\npath = "/p"',
        "channels.chat",
        "found path, url",
        "Write `url`",
    ),
    "a channel into a relative path": (
        f'{CHAT}kind = "file"\npath = "log"',
        "channels.chat.path",
        "not an absolute path",
        "Write the whole path",
    ),
    **{
        f"a channel to {name}": (
            f'{CHAT}kind = "http"\nurl = "{url}"',
            "channels.chat.url",
            "names no host, or no port",
            "Write a URL such as",
        )
        for name, url in {
            "a host with an empty part": "http://a..b/",
            "no host": "http:///notify",
            "a host that is too long": f"http://{'a' * 64}.example/",
            "a port that is none": "http://localhost:99999/",
            "half an address": "http://[::1/",
            "a URL with a NUL": "http://localhost/\\u0000",
        }.items()
    },
    "a channel whose argument has a NUL": (
        f'{CHAT}kind = "command"\ncommand = ["echo", "a\\u0000b"]',
        "channels.chat.command",
        "an argument with a NUL",
        "without it",
    ),
    "a channel whose path has a NUL": (
        f'{CHAT}kind = "file"\npath = "/a\\u0000b"',
        "channels.chat.path",
        "not an absolute path",
        "Write the whole path",
    ),
    "a check whose argument has a NUL": (
        '[checks.tests]\ncommand = ["make", "\\u0000"]\nworkspaces = ["/app"]',
        "checks.tests.command",
        "an argument with a NUL",
        "without it",
    ),
    "a source whose key has another spelling": (
        f'[sources.ci]\npublic_key = "{"A" * 42}B"',
        "sources.ci.public_key",
        "not the text of a public key",
        "keys source new",
    ),
    "two channels for one kind and source": (
        f'{CHAT}kind = "file"\npath = "/a"\n[channels.other]\nkind = "file"\npath = "/b"\naccepts = ["team.notify"]',
        "channels.other.accepts",
        "accepted by `chat`, too",
        "exactly one channel",
    ),
}
"""Faults between keys, which no schema shows."""
FAULTS: dict[str, tuple[str, str, str, str]] = {
    "a channel of no kind": (f'{CHAT}kind = "smtp"', "channels.chat.kind", "smtp", "or 'mcp'"),
    "a source with no key": ('[sources.ci]\npublic_key = "abc"', "sources.ci.public_key", "abc", "Write"),
    "an unknown table": ("[prefrences]", "prefrences", "'prefrences' is not known", "Did you mean `preferences`?"),
    "an unknown key": ("[gates]\nclaim = 'never'", "gates.claim", "'claim' is not known", "Did you mean `claims`?"),
    "the spelling of the tools": (
        "[preferences]\nriskPolicy = 'balanced'",
        "preferences.riskPolicy",
        "'riskPolicy' is not known",
        "Did you mean `risk_policy`?",
    ),
    "a key that resembles none": ("[gates]\nxyz = 1", "gates.xyz", "'xyz' is not known", "Remove the key."),
    "a key without its table": ("claims = 'never'", "claims", "is not known", "Write it below a line `[gates]`."),
    "a key of another table": (
        "[gates]\nautonomy = 'guided'",
        "gates.autonomy",
        "is not known",
        "Write it below a line `[preferences]`.",
    ),
    "a value for a table": (
        "gates = 'never'",
        "gates",
        "Found 'never', which has the wrong type.",
        "Write a line `[gates]`, and its keys below it.",
    ),
    "a list of tables": ("[[gates]]", "gates", "Found a list", "Write a line `[gates]`, and its keys below it."),
    "a preset misspelt": (
        "[preferences]\npreset = 'giuded'",
        "preferences.preset",
        "Found 'giuded': input should be 'guided', 'full_auto_stop_on_user_deps' or 'full_auto_never_stop'.",
        "Did you mean `guided`?",
    ),
    "an autonomy that is none": (
        "[preferences]\nautonomy = true",
        "preferences.autonomy",
        "Found true",
        "Write 'guided', 'full_auto_stop_on_user_deps' or 'full_auto_never_stop'.",
    ),
    "a risk policy that is none": (
        "[preferences]\nrisk_policy = 2026-01-31",
        "preferences.risk_policy",
        "Found 2026-01-31",
        "Write 'conservative', 'balanced' or 'aggressive'.",
    ),
    "claims that are none": (
        "[gates]\nclaims = 'sometimes'",
        "gates.claims",
        "Found 'sometimes'",
        "Write 'when_client_cannot_ask', 'always' or 'never'.",
    ),
    "a limit too low": (
        f"[evidence]\nartifact_bytes_max = {ARTIFACT_BYTES_SETTABLE_MIN - 1}",
        "evidence.artifact_bytes_max",
        f"Found {ARTIFACT_BYTES_SETTABLE_MIN - 1}",
        f"Write {ARTIFACT_BYTES_SETTABLE_MIN} or more.",
    ),
    "a limit too high": (
        f"[evidence]\nartifact_bytes_max = {ARTIFACT_BYTES_SETTABLE_MAX + 1}",
        "evidence.artifact_bytes_max",
        f"Found {ARTIFACT_BYTES_SETTABLE_MAX + 1}",
        f"Write {ARTIFACT_BYTES_SETTABLE_MAX} or less.",
    ),
    "a limit with a point": (
        "[evidence]\nartifact_bytes_max = 10000.5",
        "evidence.artifact_bytes_max",
        "Found 10000.5, which has the wrong type.",
        "Write a whole number.",
    ),
    "a limit as text": ("[evidence]\nartifact_bytes_max = '1'", "evidence.artifact_bytes_max", "'1'", "whole number"),
    "a relative path": (
        "[workflows]\nuser_dir = '~/flows'",
        "workflows.user_dir",
        "Found '~/flows', which is not an absolute path.",
        "Write the whole path, without `~`.",
    ),
    "a path with a zero byte": ('[workflows]\nuser_dir = "/a\\u0000"', "workflows.user_dir", "Found", "whole path"),
    "an empty path": ("[workflows]\nuser_dir = ''", "workflows.user_dir", "Found ''", "Write the whole path"),
    "a path that is no text": ("[workflows]\nuser_dir = 1", "workflows.user_dir", "Found 1", "Write a string."),
    "days before the first": ("[retention]\ndays = -1", "retention.days", "Found -1", "Write 0 or more."),
    "more days than a century": (
        f"[retention]\ndays = {RETENTION_DAYS_MAX + 1}",
        "retention.days",
        f"Found {RETENTION_DAYS_MAX + 1}",
        f"Write {RETENTION_DAYS_MAX} or less.",
    ),
    "a date for a path": ("[workflows]\nuser_dir = 2026-01-31", "workflows.user_dir", "2026-01-31", "Write a string."),
}


@pytest.mark.inv("CFG-1")
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_reported_with_its_key_what_was_found_and_what_to_write(name: str) -> None:
    text, key, message, fix = FAULTS[name]
    found = parse_config(text)
    assert isinstance(found, tuple)
    (fault,) = found
    assert fault.key == key
    assert message in fault.message
    assert fix in fault.fix


@pytest.mark.inv("CFG-1")
@pytest.mark.parametrize("name", FAULTS)
def test_the_published_schema_refuses_what_the_server_refuses(name: str) -> None:
    """All but what a schema cannot say of a path: that it is absolute."""
    value: dict[str, Any] = json.loads(json.dumps(tomllib.loads(FAULTS[name][0]), default=lambda _: 0))
    is_path = FAULTS[name][1] == "workflows.user_dir" and isinstance(value["workflows"]["user_dir"], str)
    assert Draft202012Validator(config_schema()).is_valid(value) == is_path


def test_the_published_schema_takes_what_the_server_takes() -> None:
    Draft202012Validator.check_schema(config_schema())
    assert Draft202012Validator(config_schema()).is_valid(tomllib.loads(WHOLE))


def test_all_faults_are_reported_at_once() -> None:
    found = parse_config(
        "[gates]\nclaims = 1\n[evidence]\nlimit = 1\n[workflows]\nuser_dir = 'flows'\n"
        "[channels.a]\nkind = 'file'\naccepts = ['load.sent']\nsources = ['user']\npath = 'here'\n"
        "[channels.b]\nkind = 'none'\n"
        "[checks.tests]\ncommand = ['make']\nworkspaces = ['project']"
    )
    assert isinstance(found, tuple)
    assert {fault.key for fault in found} == {
        "gates.claims",
        "evidence.limit",
        "workflows.user_dir",
        "channels.a.path",
        "channels.b.kind",
        "channels.b.accepts",
        "checks.tests.workspaces",
    }


@pytest.mark.inv("CFG-1")
@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("[gates]\nclaims = never", 2, 10),
        ("[gates]\nclaims = 'never'\n[gates]", 3, 7),
        ("a = [", None, None),
    ],
)
def test_text_that_is_not_toml_is_reported_with_the_place_where_it_breaks_off(
    text: str, line: int | None, column: int | None
) -> None:
    found = parse_config(text)
    assert isinstance(found, tuple)
    assert (found[0].line, found[0].column) == (line, column)
    assert found[0].message.startswith("This is not TOML: ")
    assert "(at " not in found[0].message


@pytest.mark.inv("CFG-1")
@pytest.mark.parametrize(
    ("data", "words"),
    [(b"# \xff", "is not UTF-8: byte 2 is invalid"), (b"#" * (CONFIG_BYTES_MAX + 1), f"more than {CONFIG_BYTES_MAX}")],
)
def test_a_file_that_is_no_text_of_a_sane_size_is_refused(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / CONFIG_FILE
    path.write_bytes(data)
    found = read_config(path)
    assert isinstance(found, FaultyConfig)
    assert found.lines()[0].startswith(f"{path}: ")
    assert words in found.lines()[0]


def test_a_mark_of_the_byte_order_and_windows_line_ends_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / CONFIG_FILE).write_bytes(b"\xef\xbb\xbf[gates]\r\nclaims = 'never'\r\n")
    found = read_config(tmp_path / CONFIG_FILE)
    assert isinstance(found, Config)
    assert found.gates_claims == "never"


@pytest.mark.inv("CFG-1")
def test_what_stands_in_the_files_place_and_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / CONFIG_FILE).mkdir()
    found = read_settings({}, PlaceArguments(data_dir=str(tmp_path)))
    assert isinstance(found, FaultyConfig)
    assert "cannot be read" in found.lines()[0]


@pytest.mark.inv("CFG-1")
def test_a_link_that_leads_nowhere_is_a_fault_and_not_the_defaults(tmp_path: Path) -> None:
    (tmp_path / CONFIG_FILE).symlink_to("gone")
    found = read_config(tmp_path / CONFIG_FILE)
    assert isinstance(found, FaultyConfig)
    assert "a link that leads nowhere" in found.lines()[0]
    (tmp_path / "gone").write_text("[retention]\ndays = 7\n", encoding="utf-8")
    config = read_config(tmp_path / CONFIG_FILE)
    assert isinstance(config, Config)
    assert config.retention_days == 7
    assert read_config(tmp_path / "none" / CONFIG_FILE) == Config()


def test_a_line_names_the_place_where_it_is_known(tmp_path: Path) -> None:
    path = tmp_path / CONFIG_FILE
    path.write_text("[gates]\nclaims = never")
    found = read_config(path)
    assert isinstance(found, FaultyConfig)
    assert found.lines() == [f"{path}:2:10: This is not TOML: Invalid value. Correct the text."]
    assert found.faults[0].to_json() | {"message": ""} == {
        "key": "",
        "message": "",
        "fix": "Correct the text.",
        "line": 2,
        "column": 10,
    }


def test_a_server_without_a_file_does_not_import_what_reads_one(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "import interlock.cli.top.serve, interlock.server.app, interlock.server.transport.stdio\n"
        "from interlock.config.data_dir import PlaceArguments\n"
        "from interlock.config.settings import read_settings\n"
        f"read_settings({{}}, PlaceArguments(data_dir={str(tmp_path)!r}))\n"
        "print(sorted({'tomllib', 'interlock.config.form'} & set(sys.modules)))\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_the_users_workflows_come_from_argument_environment_file_and_platform_in_this_order(tmp_path: Path) -> None:
    environment = {"INTERLOCK_WORKFLOWS_DIR": str(tmp_path / "environment")}
    given = str(tmp_path / "argument")
    ways = [
        settings_of(tmp_path, WHOLE, environment=environment, workflows_dir=given),
        settings_of(tmp_path, WHOLE, environment=environment),
        settings_of(tmp_path, WHOLE),
        settings_of(tmp_path),
    ]
    expected = [tmp_path / "argument", tmp_path / "environment", Path("/srv/flows")]
    assert [one.user_workflows for one in ways[:3]] == expected
    assert [one.user_workflows_origin for one in ways] == ["argument", "environment", "config file", "default"]


def test_every_key_is_reported_with_its_value_and_where_it_comes_from(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, '[preferences]\npreset = "full_auto_stop_on_user_deps"', workflows_dir="/a")
    assert [(one.key, one.value, one.origin) for one in applied_keys(settings)] == [
        ("preferences.preset", "full_auto_stop_on_user_deps", "config file"),
        ("preferences.autonomy", "full_auto_stop_on_user_deps", "config file"),
        ("preferences.risk_policy", "balanced", "config file"),
        ("gates.claims", "when_client_cannot_ask", "default"),
        ("gates.apps", "as_claims", "default"),
        ("evidence.artifact_bytes_max", ARTIFACT_BYTES_MAX, "default"),
        ("observations.repo_root", False, "default"),
        ("proofs.mode", "enforce", "default"),
        ("tokens.format", 2, "default"),
        ("workflows.user_dir", "/a", "argument"),
        ("retention.days", RETENTION_DAYS, "default"),
        ("channels", {}, "default"),
        ("sources", {}, "default"),
        ("checks", {}, "default"),
    ]
    assert [one.key for one in applied_keys(settings)] == [key for key, _ in key_schemas()]


@pytest.mark.inv("WORLD-7")
@pytest.mark.parametrize("fault", CHANNEL_FAULTS)
def test_a_channel_that_contradicts_itself_or_another_is_a_fault(fault: str) -> None:
    text, key, found, fix = CHANNEL_FAULTS[fault]
    faults = parse_config(text)
    assert isinstance(faults, tuple)
    one = faults[0]
    assert (one.key, found in one.message, fix in one.fix) == (key, True, True), one


@pytest.mark.inv("CFG-4")
def test_only_what_alters_the_catalogue_is_restart_required() -> None:
    assert [key for key, schema in key_schemas() if schema[RESTART_MARK]] == ["workflows.user_dir"]


@pytest.mark.inv("CFG-2")
def test_the_hash_is_the_same_for_the_same_values_wherever_they_come_from(tmp_path: Path) -> None:
    by_file = settings_of(tmp_path, "[workflows]\nuser_dir = '/a'\n[gates]\nclaims = 'when_client_cannot_ask'")
    by_argument = settings_of(tmp_path, workflows_dir="/a")
    by_environment = settings_of(tmp_path, environment={"INTERLOCK_WORKFLOWS_DIR": "/a"})
    assert len({applied_config_hash(one) for one in (by_file, by_argument, by_environment)}) == 1
    spelt_out = settings_of(tmp_path, "preferences = {autonomy = 'full_auto_never_stop'}", workflows_dir="/a")
    preset = settings_of(tmp_path, "preferences = {preset = 'full_auto_never_stop'}", workflows_dir="/a")
    assert applied_config_hash(spelt_out) == applied_config_hash(preset)


@pytest.mark.inv("CFG-2")
def test_the_hash_differs_with_every_value(tmp_path: Path) -> None:
    texts = [
        "",
        "[preferences]\nautonomy = 'full_auto_never_stop'",
        "[preferences]\nrisk_policy = 'balanced'",
        "[gates]\nclaims = 'never'",
        "[evidence]\nartifact_bytes_max = 999_999",
        "[workflows]\nuser_dir = '/a'",
        "[retention]\ndays = 0",
    ]
    assert len({applied_config_hash(settings_of(tmp_path, text)) for text in texts}) == len(texts)


@pytest.mark.inv("CFG-2")
def test_a_directory_whose_name_is_no_text_has_a_hash_too(tmp_path: Path) -> None:
    assert applied_config_hash(settings_of(tmp_path, workflows_dir="/a\udcff")).startswith("sha256:")
