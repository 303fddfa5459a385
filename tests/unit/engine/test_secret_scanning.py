"""What in a context looks like a secret. The samples are put together here, so that no scanner takes them for real."""

from typing import Any

import pytest

from interlock.engine.secret_scanning import secret_warnings, secrets_in
from interlock.kernel.budgets import SECRETS_NAMED_MAX

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
    (message,) = [warned.message for warned in secret_warnings({FORMS[0]: {"password": "hunter2"}})]
    assert RANDOM not in message


def test_the_warning_names_the_keys_and_never_a_value() -> None:
    (warned,) = secret_warnings({"apiKey": RANDOM, "note": FORMS[0], "fine": "text"})
    assert warned.code == "LOOKS_LIKE_SECRET"
    assert warned.message.startswith("`apiKey`, `note` in `context` look like secrets.")
    assert "not encrypted" in warned.message
    assert "environment variable" in warned.message
    assert RANDOM not in warned.message


def test_one_warning_names_only_so_many_keys() -> None:
    (warned,) = secret_warnings({f"token{number}": "abc" for number in range(SECRETS_NAMED_MAX + 3)})
    assert f"`token{SECRETS_NAMED_MAX - 1}` and more" in warned.message
    assert f"`token{SECRETS_NAMED_MAX}`" not in warned.message


@pytest.mark.parametrize("delta", [None, {}, {"goal": "Fix the token counter", "token": None}])
def test_without_a_find_there_is_no_warning(delta: dict[str, Any] | None) -> None:
    assert secret_warnings(delta) == ()


def test_a_long_path_is_cut() -> None:
    context: dict[str, Any] = {"password": "hunter2"}
    for _ in range(60):
        context = {"k" * 1_000: context}
    (path,) = found(context)
    assert len(path) <= 80
