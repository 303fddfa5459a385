"""What in a context looks like a secret. The samples are put together here, so that no scanner takes them for real."""

import time
from pathlib import Path
from typing import Any

import pytest

from interlock.cli.top.demo import GOAL, NOTES, OTHER_NOTES
from interlock.config.settings import BUNDLED
from interlock.engine.answer.secret_scanning import lines_with_secrets, secret_warnings, secrets_in
from interlock.kernel.budgets import NOTES_INPUT_BYTES_MAX, SECRETS_NAMED_MAX

RANDOM = "q8Zr2Lw7Xc4Vb9Nm1Kj6Hg3Fd5Sa0PoI"
JWT = ".".join(("ey" + "JhbGciOiJIUzI1NiJ9", "ey" + "JzdWIiOiIxMjM0NTYifQ", "c2lnbmF0dXJl"))
FORMS = [
    "gh" + "p_" + RANDOM,
    "gh" + "s_" + RANDOM,
    "github" + "_pat_" + RANDOM,
    "gl" + "pat-" + RANDOM,
    "sk" + "-proj-" + RANDOM,
    "sk" + "_live_" + RANDOM,
    "xox" + "b-123456789012-" + RANDOM,
    "AK" + "IA" + "Q8ZR2LW7XC4VB9NM",
    "AI" + "za" + RANDOM + "abc",
    "npm" + "_" + RANDOM,
    "h" + "f_" + RANDOM,
    "-----BEGIN " + "PRIVATE KEY-----\nMIIE",
    "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIE",
    JWT,
    "Bearer " + RANDOM,
    "Basic " + "a2ltOmh1bnRlcjI=",
    "postgres://kim:" + "hunter2@db.local/app",
]
NAMES = [
    "password",
    "dbPassword",
    "DB_PASSWORD",
    "passwd",
    "passphrase",
    "secret",
    "clientSecret",
    "client_secret",
    "client-secret",
    "token",
    "githubToken",
    "accesstoken",
    "api_key",
    "apiKey",
    "APIKey",
    "apikey",
    "privateKey",
    "secretAccessKey",
    "credential",
    "credentials",
    "tokenValue",
    "apiKeyProd",
    "token2",
]
INNOCENT_NAMES = [
    "tokenCount",
    "maxTokens",
    "max_tokens",
    "tokenizer",
    "nextPageToken",
    "designTokens",
    "secretary",
    "secretaryName",
    "passwordPolicy",
    "passwordResetFlow",
    "authorizationModel",
    "credentialStore",
    "keyboard",
    "primaryKey",
    "publicKey",
    "cacheKey",
    "monkey",
    "path",
    "author",
    "compass",
    "value",
    "goal",
]
REFERENCES = [
    "$GITHUB_TOKEN",
    "${GITHUB_TOKEN}",
    "${{ secrets.GITHUB_TOKEN }}",
    "$(pass show github)",
    "%GITHUB_TOKEN%",
    "GITHUB_TOKEN",
    "env:GITHUB_TOKEN",
    "vault:secret/data/app#token",
    "vault: secret/app",
    "op://vault/item/field",
    "https://vault.example/app",
    "arn:aws:secretsmanager:eu-west-1:1:secret:app",
    "process.env.GITHUB_TOKEN",
    "/run/secrets/github",
    "~/.ssh/id_ed25519",
    "<your token>",
    "***",
    "xxxx",
    "none",
    "Redacted",
    "",
    "  ",
]


def found(context: dict[str, Any]) -> list[str]:
    return list(secrets_in(context))


@pytest.mark.parametrize("text", FORMS)
def test_a_known_form_of_secret_is_found_under_any_name_and_within_any_text(text: str) -> None:
    assert found({"note": text}) == ["note"]
    assert found({"note": f"Use this: {text} (from Kim)"}) == ["note"]
    assert found({"githubToken": text}) == ["githubToken"]


@pytest.mark.parametrize("name", NAMES)
def test_a_word_under_the_name_of_a_secret_is_found(name: str) -> None:
    assert found({name: "hunter2"}) == [name]


@pytest.mark.parametrize("name", INNOCENT_NAMES)
def test_a_name_that_only_contains_the_word_is_no_alarm(name: str) -> None:
    assert found({name: "hunter2"}) == []


@pytest.mark.parametrize("text", REFERENCES)
@pytest.mark.parametrize("name", ["password", "apiKey", "authorization"])
def test_what_says_where_a_secret_is_kept_is_no_alarm(name: str, text: str) -> None:
    assert found({name: text}) == []


@pytest.mark.parametrize("value", [None, True, False, 0, 1234, 1.5, [], {}])
def test_what_is_no_text_is_no_alarm(value: object) -> None:
    assert found({"password": value, "token": value}) == []


@pytest.mark.parametrize(
    "text",
    [
        "The disk is full and the sk-ip list is empty.",
        "Basic understanding of internationalisation",
        "bearer of bad news, again and again",
        "https://host:8080/packages/@scope/name",
        "git@github.com:owner/name.git",
        "ssh://git@github.com/owner/name",
        "a1b2c3d4e5f60718293a4b5c6d7e8f9001122334",
        "eyJ is how such a token begins",
        "-----BEGIN CERTIFICATE-----",
        "postgres://kim:${DB_PASSWORD}@db.local/app",
        "ask-the-team-2024-about-the-rollout",
    ],
)
def test_ordinary_text_is_no_alarm(text: str) -> None:
    assert found({"note": text}) == []


def test_prose_under_the_name_of_a_token_is_no_alarm_and_under_that_of_a_password_it_is() -> None:
    """A passphrase has spaces, a token has none."""
    assert found({"token": "ask Kim for it", "passphrase": "correct horse battery staple"}) == ["passphrase"]


@pytest.mark.parametrize("name", ["auth", "authorization", "sessionCookie", "tokens"])
def test_under_a_name_that_may_mean_something_else_only_random_text_is_found(name: str) -> None:
    assert found({name: "granted-by-the-manager-of-ops"}) == []
    assert found({name: "oauth2"}) == []
    assert found({name: RANDOM}) == [name]
    assert found({name: "Bearer hunter2"}) == [name]


@pytest.mark.parametrize(
    "token", ["st.v1.eyJub2RlIjoxfQ.c2lnbmF0dXJl", "ack.v1.eyJub2RlIjoxfQ.c2lnbmF0dXJl", f"ack_ab3d{'a' * 52}"]
)
def test_our_own_tokens_are_no_alarm(token: str) -> None:
    assert found({"stateToken": token, "token": token, "note": token}) == []


def test_nested_values_are_named_by_their_dotted_path() -> None:
    context = {
        "db": {"main": {"password": "hunter2", "user": "kim"}, "replicas": [{"token": "abc"}, {"token": "$B"}]},
        "apiKeys": ["abc", "def"],
        "secrets": {"mail": "hunter2"},
        "credentials": {"user": "kim", "password": "hunter2"},
        "token": {"value": "abc", "scope": "repo"},
    }
    assert found(context) == [
        "db.main.password",
        "db.replicas[0].token",
        "apiKeys[0]",
        "apiKeys[1]",
        "secrets.mail",
        "credentials.password",
        "token.value",
    ]


def test_a_key_that_is_a_secret_itself_is_found_and_not_shown() -> None:
    (path,) = found({"seen": {FORMS[0]: True}})
    assert path == "seen.…"
    (message,) = [warned.message for warned in secret_warnings({FORMS[0]: {"password": "hunter2"}}, None)]
    assert RANDOM not in message


@pytest.mark.inv("ANS-20")
def test_the_warning_names_the_keys_and_never_a_value() -> None:
    (warned,) = secret_warnings({"apiKey": RANDOM, "note": FORMS[0], "fine": "text"}, None)
    assert warned.code == "LOOKS_LIKE_SECRET"
    assert warned.message.startswith("`apiKey`, `note` in `context` look like secrets.")
    assert "unencrypted" in warned.message
    assert "environment variable" in warned.message
    assert RANDOM not in warned.message


def test_one_warning_names_only_so_many_keys() -> None:
    (warned,) = secret_warnings({f"token{number}": "abc" for number in range(SECRETS_NAMED_MAX + 3)}, None)
    assert f"`token{SECRETS_NAMED_MAX - 1}` and more" in warned.message
    assert f"`token{SECRETS_NAMED_MAX}`" not in warned.message


@pytest.mark.parametrize("delta", [None, {}, {"goal": "Fix the token counter", "token": None}])
def test_without_a_find_there_is_no_warning(delta: dict[str, Any] | None) -> None:
    assert list(secret_warnings(delta, "Fixed the token counter: 12 tokens.")) == []


GIVEN = [
    "password: hunter2",
    "The password: hunter2.",
    "- **password**: `hunter2`",
    'DB_PASSWORD="hunter2-and-more"',
    "export API_KEY=abc123def456",
    "API key: abc123def456",
    "client_secret = 'a1b2c3d4'",
    f"token={RANDOM}",
]
INNOCENT_LINES = [
    "password: ask Kim for it",
    "Token: none",
    "token: $DEPLOY_TOKEN",
    "password = getpass()",
    'password = os.environ["PW1234"]',
    "token = parse_token1(text)",
    "tokens: 12000 of 200000",
    "primary key: user_id2",
    "cache key: v2-abc123",
    "The key: rotate twice in 2024.",
    "secret: see vault:app/key1",
    "ackToken: ack_ab12…",
    "password: s3cret...",
    "stateToken: st.v1.eyJub2RlIjoxfQ.c2lnbmF0dXJl",
    "commit a1b2c3d4e5f60718293a4b5c6d7e8f9001122334",
    "auth.py:41 reads user_name1",
    "author=kim2024",
]


@pytest.mark.parametrize("line", [*FORMS, *GIVEN])
def test_a_secret_in_a_running_text_is_found_by_its_line(line: str) -> None:
    assert list(lines_with_secrets(f"Did it.\n\n{line}\nAll tests pass.")) == [3]
    assert found({"note": f"Did it.\n{line}"}) == ["note"]


@pytest.mark.parametrize("line", INNOCENT_LINES)
def test_what_names_a_secret_and_gives_none_is_no_alarm(line: str) -> None:
    assert list(lines_with_secrets(line)) == []
    assert found({"note": line}) == []


def test_the_warning_about_notes_names_lines_and_never_a_value() -> None:
    (warned,) = secret_warnings(None, f"a\n{FORMS[0]}\nb\npassword: hunter2")
    assert warned.code == "LOOKS_LIKE_SECRET"
    assert warned.message.startswith("Line 2, line 4 of `output.notesMarkdown` look like secrets.")
    assert RANDOM not in warned.message
    assert "hunter2" not in warned.message
    of_context, of_notes = secret_warnings({"apiKey": RANDOM}, FORMS[1])
    assert (of_context.message.split()[0], of_notes.message.split()[0]) == ("`apiKey`", "Line")


def test_the_warning_about_notes_names_only_so_many_lines() -> None:
    (warned,) = secret_warnings(None, "password: hunter2\n" * (SECRETS_NAMED_MAX + 3))
    assert f"line {SECRETS_NAMED_MAX} and more" in warned.message
    assert f"line {SECRETS_NAMED_MAX + 1}" not in warned.message


@pytest.mark.parametrize(
    "piece",
    ["key ", "key:", "a-", "token**   :   ", "token" + "a" * 60 + " ", "eyJ", "sk-", "://a", "password=a1b2c3 "],
)
def test_scanning_takes_no_longer_than_its_text(piece: str) -> None:
    """A pattern that backtracks would take minutes here."""
    text = piece * (NOTES_INPUT_BYTES_MAX // len(piece))
    began = time.process_time()
    list(lines_with_secrets(text))
    assert time.process_time() - began < 2


ROOT = Path(__file__).parents[3]


def test_nothing_that_ships_and_nothing_of_the_demo_is_an_alarm() -> None:
    documents = [path.read_text(encoding="utf-8") for path in sorted(BUNDLED.rglob("*.json"))]
    pages = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").rglob("*.md"))]
    assert len(documents) >= 3
    assert len(pages) > 10
    for text in [*NOTES.values(), OTHER_NOTES, GOAL, *documents, *pages]:
        assert list(lines_with_secrets(text)) == []


def test_a_long_path_is_cut() -> None:
    context: dict[str, Any] = {"password": "hunter2"}
    for _ in range(60):
        context = {"k" * 1_000: context}
    (path,) = found(context)
    assert len(path) <= 80
