import json
from typing import Any, cast

import pytest
from jsonschema import Draft202012Validator

from interlock.kernel.budgets import LOCK_RETRY_AFTER_MS
from interlock.kernel.canonical import Json, canonical_bytes
from interlock.kernel.errors import CODES, ENVELOPE_SCHEMA, ErrorCode, InterlockError, Owner, Refusal, RetryKind
from interlock.kernel.frozen import replace

# The closed set (ANS-8).
CLOSED = [
    "VALIDATION_ERROR",
    "WORKFLOW_NOT_FOUND",
    "WORKFLOW_INVALID",
    "TOKEN_INVALID_FORMAT",
    "TOKEN_UNSUPPORTED_VERSION",
    "TOKEN_BAD_SIGNATURE",
    "TOKEN_SCOPE_MISMATCH",
    "TOKEN_UNKNOWN_NODE",
    "TOKEN_WORKFLOW_HASH_MISMATCH",
    "TOKEN_SESSION_LOCKED",
    "SESSION_NOT_FOUND",
    "SESSION_NOT_HEALTHY",
    "SESSION_LOCKED",
    "STORE_READ_ONLY",
    "STORE_FULL",
    "STORE_FAILED",
    "KEYRING_DAMAGED",
    "ATTEMPT_LIMIT_REACHED",
    "RUN_ENDED",
    "EFFECT_UNCOVERED",
    "BUNDLE_INVALID_FORMAT",
    "BUNDLE_UNSUPPORTED_VERSION",
    "BUNDLE_INTEGRITY_FAILED",
    "BUNDLE_MISSING_SNAPSHOT",
    "BUNDLE_MISSING_PINNED_WORKFLOW",
    "BUNDLE_EVENT_ORDER_INVALID",
    "BUNDLE_MANIFEST_ORDER_INVALID",
    "INTERNAL_ERROR",
]


def refusal(code: ErrorCode, **details: Json) -> Refusal:
    return Refusal(code=code, message="What is wrong.", suggestion="What to send.", details=details)


def test_the_codes_are_the_closed_set_and_each_has_a_rule() -> None:
    assert [code.value for code in ErrorCode] == CLOSED
    assert set(CODES) == set(ErrorCode)
    assert all(rule.meaning.endswith(".") for rule in CODES.values())


def test_only_a_locked_session_is_worth_waiting_for_and_only_a_disk_worth_trying_again() -> None:
    after = {code for code, rule in CODES.items() if rule.retry is RetryKind.RETRYABLE_AFTER_MS}
    at_once = {code for code, rule in CODES.items() if rule.retry is RetryKind.RETRYABLE_IMMEDIATE}
    assert after == {ErrorCode.TOKEN_SESSION_LOCKED, ErrorCode.SESSION_LOCKED}
    assert at_once == {ErrorCode.STORE_FAILED}


def test_a_time_to_wait_stands_exactly_where_waiting_is_advised() -> None:
    for rule in CODES.values():
        assert rule.after_ms == (LOCK_RETRY_AFTER_MS if rule.retry is RetryKind.RETRYABLE_AFTER_MS else None)


def test_token_faults_are_answered_by_tools_and_bundle_faults_by_commands() -> None:
    for code, rule in CODES.items():
        if code.startswith("TOKEN_"):
            assert rule.owner is Owner.TOOL
        if code.startswith("BUNDLE_"):
            assert rule.owner is Owner.COMMAND


@pytest.mark.parametrize("code", ErrorCode)
def test_every_code_gives_an_envelope_with_the_retry_advice_of_the_table(code: ErrorCode) -> None:
    rule = CODES[code]
    retry: dict[str, Json] = {"kind": rule.retry.value}
    if rule.after_ms is not None:
        retry["afterMs"] = rule.after_ms
    assert refusal(code, path="a.b", found=[1]).envelope() == {
        "code": code.value,
        "message": "What is wrong.",
        "retry": retry,
        "suggestion": "What to send.",
        "details": {"path": "a.b", "found": [1]},
    }
    assert canonical_bytes(refusal(code).envelope())


@pytest.mark.inv("ANS-7")
def test_the_schema_of_the_envelope_takes_each_envelope_and_no_other_object() -> None:
    schema = Draft202012Validator(cast("dict[str, Any]", json.loads(json.dumps(dict(ENVELOPE_SCHEMA)))))
    for code in ErrorCode:
        for kind in (None, *RetryKind):
            for one in (refusal(code), refusal(code, path="a")):
                envelope = replace(one, retry=kind).envelope()
                assert schema.is_valid(envelope)
                assert not schema.is_valid(envelope | {"kind": "ok"})
                for name in envelope.keys() - {"details"}:
                    assert not schema.is_valid({key: value for key, value in envelope.items() if key != name})


def test_an_envelope_without_details_has_no_such_field() -> None:
    assert list(refusal(ErrorCode.STORE_FULL).envelope()) == ["code", "message", "retry", "suggestion"]


def test_altering_an_envelope_leaves_the_refusal_alone() -> None:
    one = refusal(ErrorCode.VALIDATION_ERROR, path="a")
    details = one.envelope()["details"]
    assert isinstance(details, dict)
    details["path"] = "b"
    assert one.details == {"path": "a"}


def test_the_exceptions_of_interlock_have_one_root_that_is_no_refusal() -> None:
    assert issubclass(InterlockError, Exception)
    assert not issubclass(InterlockError, ValueError | OSError)
