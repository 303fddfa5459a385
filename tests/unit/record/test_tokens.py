"""Tokens of format 1: each has exactly one valid spelling, and every other text gets the right error code."""

import base64
import hashlib
import hmac
import json
from dataclasses import dataclass, replace

import pytest
from tests.support.record import ATTEMPT, DIGEST, NODE, RUN, SESSION, WORKFLOW_HASH
from tests.support.shares import share_of

from interlock.kernel.canonical import canonical_bytes
from interlock.kernel.errors import ErrorCode
from interlock.kernel.ids import AttemptId, NodeId, RunId, SessionId, SigningKey, WorkflowHash
from interlock.record.tokens import AttemptRef, StateRef, TokenFault, TokenKind, TokenRef, decode_long, mint, token_kind

CURRENT, PREVIOUS, OLDER = (SigningKey(bytes([number]) * 32) for number in (1, 2, 3))
BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
STATE = StateRef(session=SESSION, run=RUN, node=NODE, workflow_hash=WORKFLOW_HASH)
ACK = AttemptRef(kind=TokenKind.ACK, session=SESSION, run=RUN, node=NODE, attempt=ATTEMPT)
CHECKPOINT = replace(ACK, kind=TokenKind.CHECKPOINT)
REFS: list[TokenRef] = [STATE, ACK, CHECKPOINT]
PREFIX = {TokenKind.STATE: "st", TokenKind.ACK: "ack", TokenKind.CHECKPOINT: "chk"}

every_kind = pytest.mark.parametrize("ref", REFS, ids=lambda ref: token_kind(ref).value)


@dataclass(frozen=True, kw_only=True)
class Parts:
    """A token taken apart; `text` puts it together again."""

    prefix: str
    version: str
    payload: str
    signature: str

    @property
    def text(self) -> str:
        return f"{self.prefix}.{self.version}.{self.payload}.{self.signature}"


def parts_of(token: str) -> Parts:
    prefix, version, payload, signature = token.split(".")
    return Parts(prefix=prefix, version=version, payload=payload, signature=signature)


def payload_of(token: str) -> bytes:
    text = parts_of(token).payload
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def code_of(text: str, *keys: SigningKey) -> ErrorCode | None:
    found = decode_long(text).verify(keys or (CURRENT,))
    return found.code if isinstance(found, TokenFault) else None


@pytest.mark.inv("TOK-1")
@every_kind
def test_a_token_verifies_as_what_it_was_minted_for(ref: TokenRef) -> None:
    assert decode_long(mint(ref, CURRENT)).verify([CURRENT]) == ref


@pytest.mark.inv("TOK-1")
@every_kind
def test_a_token_is_built_as_locked(ref: TokenRef) -> None:
    """Prefix, version, canonical JSON of exactly the locked fields, HMAC-SHA256 over those bytes."""
    token = mint(ref, CURRENT)
    fields = {
        "tokenVersion": 1,
        "tokenKind": token_kind(ref).value,
        "sessionId": SESSION,
        "runId": RUN,
        "nodeId": NODE,
        **({"workflowHash": WORKFLOW_HASH} if isinstance(ref, StateRef) else {"attemptId": ATTEMPT}),
    }
    payload = payload_of(token)
    assert payload == canonical_bytes(fields)
    signature = hmac.digest(CURRENT, payload, hashlib.sha256)
    assert token == f"{PREFIX[token_kind(ref)]}.v1.{encoded(payload)}.{encoded(signature)}"
    assert "=" not in token


@pytest.mark.inv("TOK-1")
@every_kind
def test_the_same_reference_and_key_give_the_same_token(ref: TokenRef) -> None:
    assert mint(ref, CURRENT) == mint(ref, CURRENT) != mint(ref, PREVIOUS)


def edits(text: str) -> set[str]:
    """Return every text that is one edit away: a character replaced, inserted or dropped."""
    return {
        text[:at] + char + text[at + dropped :]
        for at in range(len(text) + 1)
        for char in ("", ".", "=", *BASE64URL)
        for dropped in (0, 1)
    }


@pytest.mark.exhaustive
@pytest.mark.inv("TOK-2")
@pytest.mark.parametrize("remainder", [0, 1, 2])
@every_kind
def test_of_all_texts_within_one_edit_of_a_token_the_token_alone_verifies(ref: TokenRef, remainder: int) -> None:
    """At each base64 remainder: stray bits hide in the last character of a part."""
    token = next(
        token
        for more in ("", "0", "00")
        if len(payload_of(token := mint(replace(ref, session=SessionId(SESSION + more)), CURRENT))) % 3 == remainder
    )
    tried = {token, *share_of(sorted(edits(token)), 5)}
    accepted = {edit for edit in tried if not isinstance(decode_long(edit).verify([CURRENT]), TokenFault)}
    assert accepted == {token}


@pytest.mark.inv("TOK-2")
@every_kind
def test_no_other_spelling_of_the_last_characters_verifies(ref: TokenRef) -> None:
    """Two characters at once at the end of each part, where stray bits and padding meet."""
    parts = parts_of(mint(ref, CURRENT))
    accepted = {
        text
        for one in ("", "=", *BASE64URL)
        for two in ("", "=", *BASE64URL)
        for text in (
            replace(parts, payload=parts.payload[:-2] + one + two).text,
            replace(parts, signature=parts.signature[:-2] + one + two).text,
        )
        if code_of(text) is None
    }
    assert accepted == {parts.text}


@pytest.mark.inv("TOK-2")
@every_kind
def test_no_beginning_and_no_end_of_a_token_verifies(ref: TokenRef) -> None:
    token = mint(ref, CURRENT)
    for at in range(1, len(token)):
        assert code_of(token[:at]) is not None
        assert code_of(token[at:]) is not None


@pytest.mark.inv("TOK-3")
@every_kind
def test_white_space_padding_and_the_other_base64_alphabet_are_refused(ref: TokenRef) -> None:
    token = mint(ref, CURRENT)
    parts = parts_of(token)
    wrong = [
        *(f" {token}", f"{token} ", f"{token}\n", f"`{token}`", f'"{token}"', token.upper()),
        *(f"{token}=", f"{token}==", replace(parts, payload=parts.payload + "==").text),
        replace(parts, payload=f"{parts.payload[:40]}\n{parts.payload[40:]}").text,
        replace(parts, payload=f"{parts.payload[:40]}é{parts.payload[40:]}").text,
        replace(parts, signature=base64.b64encode(b"\xff" * 32).decode().rstrip("=")).text,
    ]
    assert all(code_of(text) is not None for text in wrong)


@every_kind
def test_a_token_verifies_until_its_key_is_rotated_out(ref: TokenRef) -> None:
    token = mint(ref, OLDER)
    assert code_of(token, OLDER) is None
    assert code_of(token, PREVIOUS, OLDER) is None
    assert code_of(token, CURRENT, PREVIOUS) is ErrorCode.TOKEN_BAD_SIGNATURE
    assert isinstance(decode_long(token).verify([]), TokenFault)


@pytest.mark.inv("TOK-3")
@every_kind
def test_another_key_is_a_bad_signature_even_if_one_bit_differs(ref: TokenRef) -> None:
    token = mint(ref, CURRENT)
    for bit in range(256):
        other = SigningKey((int.from_bytes(CURRENT, "big") ^ 1 << bit).to_bytes(32, "big"))
        assert code_of(token, other) is ErrorCode.TOKEN_BAD_SIGNATURE


@pytest.mark.inv("TOK-3")
@every_kind
def test_an_altered_payload_is_a_bad_signature(ref: TokenRef) -> None:
    parts = parts_of(mint(ref, CURRENT))
    payload = payload_of(parts.text)
    for at in range(len(payload)):
        altered = payload[:at] + bytes([payload[at] ^ 1]) + payload[at + 1 :]
        assert code_of(replace(parts, payload=encoded(altered)).text) is ErrorCode.TOKEN_BAD_SIGNATURE


@pytest.mark.inv("TOK-3")
@every_kind
def test_the_same_fields_in_another_spelling_are_a_bad_signature(ref: TokenRef) -> None:
    parts = parts_of(mint(ref, CURRENT))
    fields = json.loads(payload_of(parts.text))
    for spelling in (json.dumps(fields), json.dumps(dict(reversed(fields.items())), separators=(",", ":"))):
        assert code_of(replace(parts, payload=encoded(spelling.encode())).text) is ErrorCode.TOKEN_BAD_SIGNATURE


@pytest.mark.inv("TOK-3")
def test_a_signature_is_of_one_payload_only() -> None:
    state, ack = parts_of(mint(STATE, CURRENT)), parts_of(mint(ACK, CURRENT))
    assert code_of(replace(state, signature=ack.signature).text) is ErrorCode.TOKEN_BAD_SIGNATURE
    short = encoded(base64.urlsafe_b64decode(state.signature + "=")[:16])
    assert code_of(replace(state, signature=short).text) is ErrorCode.TOKEN_BAD_SIGNATURE


@pytest.mark.inv("TOK-3")
@every_kind
def test_a_token_under_the_prefix_of_another_kind_is_a_bad_signature(ref: TokenRef) -> None:
    parts = parts_of(mint(ref, CURRENT))
    for prefix in PREFIX.values():
        expected = None if prefix == parts.prefix else ErrorCode.TOKEN_BAD_SIGNATURE
        assert code_of(replace(parts, prefix=prefix).text) is expected


@pytest.mark.inv("TOK-3")
@every_kind
@pytest.mark.parametrize("prefix", ["", "tok", "ST", "State", "ackToken", "st_", "fork", "é"])
def test_a_foreign_prefix_is_no_token(ref: TokenRef, prefix: str) -> None:
    assert code_of(replace(parts_of(mint(ref, CURRENT)), prefix=prefix).text) is ErrorCode.TOKEN_INVALID_FORMAT


@pytest.mark.inv("TOK-3")
@every_kind
@pytest.mark.parametrize("version", ["v2", "v9", "v0", "v10", "v", "V1", "1", "v01", "latest" * 20])
def test_another_format_is_an_unsupported_version(ref: TokenRef, version: str) -> None:
    fault = decode_long(replace(parts_of(mint(ref, CURRENT)), version=version).text).verify([CURRENT])
    assert isinstance(fault, TokenFault)
    assert fault.code is ErrorCode.TOKEN_UNSUPPORTED_VERSION
    assert len(fault.found) < 20


@pytest.mark.inv("TOK-3")
@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "...", "st", "st.v1", "st.v1.", "st.v1..", "st.v1.YQ", "st.v1.YQ.", "st.v1..YQ", "st..YQ.YQ"),
        *(".v1.YQ.YQ", "st.v1.YQ.YQ.YQ", "nonsense", SESSION, "\x00", "é.v1.YQ.YQ"),
    ],
)
def test_a_text_without_the_four_parts_of_a_token_is_no_token(text: str) -> None:
    assert code_of(text) is ErrorCode.TOKEN_INVALID_FORMAT
    assert decode_long(text).session is None


@pytest.mark.inv("TOK-3")
@every_kind
def test_a_text_that_is_too_long_is_no_token_and_is_not_quoted(ref: TokenRef) -> None:
    token = mint(ref, CURRENT)
    for text in (token + "A" * 4_096, "x" * 4_097, "." * 5_000_000):
        fault = decode_long(text).verify([CURRENT])
        assert fault == TokenFault(code=ErrorCode.TOKEN_INVALID_FORMAT, found=f"{len(text)} characters")
        assert decode_long(text).session is None
    longest = token + "A" * (4_096 - len(token))
    assert code_of(longest) is ErrorCode.TOKEN_BAD_SIGNATURE


def signed(payload: bytes, prefix: str) -> str:
    return f"{prefix}.v1.{encoded(payload)}.{encoded(hmac.digest(CURRENT, payload, hashlib.sha256))}"


@pytest.mark.inv("TOK-9")
@every_kind
def test_a_signed_payload_verifies_only_if_it_is_the_one_that_a_mint_signs(ref: TokenRef) -> None:
    payload, prefix = payload_of(mint(ref, CURRENT)), PREFIX[token_kind(ref)]
    fields = json.loads(payload)
    assert code_of(signed(payload, prefix)) is None
    others = [
        *(canonical_bytes(fields | {"tokenVersion": version}) for version in (0, 2, "1")),
        *(canonical_bytes({key: value for key, value in fields.items() if key != name}) for name in fields),
        *(canonical_bytes(fields | {name: None}) for name in fields),
        *(canonical_bytes(fields | {name: [1]}) for name in fields),
        canonical_bytes(fields | {"more": 1}),
        json.dumps(fields).encode(),
        json.dumps(dict(reversed(fields.items())), separators=(",", ":")).encode(),
        payload.replace(b"{", b'{"nodeId":"node_other",', 1),
        payload.replace(b'"sess_', b'"\\ud800'),
        payload.replace(b'"sess_', b'"\\u0073ess_'),
        *(b"{}", b"[]", b"null", b"\xff", b"[" * 3_000),
    ]
    assert [other for other in others if code_of(signed(other, prefix)) is not ErrorCode.TOKEN_BAD_SIGNATURE] == []


@every_kind
def test_a_fault_does_not_quote_what_is_secret(ref: TokenRef) -> None:
    fault = decode_long(mint(ref, CURRENT)[:-1]).verify([PREVIOUS])
    assert isinstance(fault, TokenFault)
    assert fault.found == "a signature of another data directory, or altered text"


@every_kind
def test_a_token_hints_at_its_session_without_a_key(ref: TokenRef) -> None:
    token = mint(ref, CURRENT)
    assert decode_long(token).session == SESSION
    assert decode_long(replace(parts_of(token), signature="forged").text).session == SESSION


@pytest.mark.parametrize(
    "payload",
    [
        *(b"x", b"null", b"[]", b"5", b"{}", b"\xff\xfe", b"\x00\x00\x00", b'{"sessionId":5}', b'{"sessionId":null}'),
        *(b"[" * 3_000, b'{"a":' * 500, b"9" * 3_000),
    ],
    ids=lambda payload: f"{payload[:12]!r}-{len(payload)}",
)
def test_a_payload_that_names_no_session_gives_no_hint_and_never_an_exception(payload: bytes) -> None:
    text = f"ack.v1.{encoded(payload)}.AA"
    assert decode_long(text).session is None
    assert code_of(text) is ErrorCode.TOKEN_BAD_SIGNATURE


def test_two_references_that_differ_in_one_field_have_different_tokens() -> None:
    others: list[TokenRef] = [
        *REFS,
        *(replace(ref, session=SessionId("sess_other")) for ref in REFS),
        *(replace(ref, run=RunId("run_other")) for ref in REFS),
        *(replace(ref, node=NodeId("node_other")) for ref in REFS),
        replace(STATE, workflow_hash=WorkflowHash(DIGEST)),
        replace(ACK, attempt=AttemptId("att_other")),
        replace(CHECKPOINT, attempt=AttemptId("att_other")),
    ]
    assert len({mint(ref, CURRENT) for ref in others}) == len(others)
