"""Minting and verifying are inverse to each other, for any reference and any key."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.kernel.canonical import digest_of_bytes
from interlock.kernel.errors import ErrorCode
from interlock.kernel.ids import AttemptId, NodeId, RunId, SessionId, SigningKey, WorkflowHash, minted_id
from interlock.record.tokens import AttemptRef, StateRef, TokenFault, TokenKind, TokenRef, decode_long, mint

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A loaded machine is no fault of ours."""


def ids(prefix: str) -> st.SearchStrategy[str]:
    return st.builds(
        minted_id, st.just(prefix), unix_ms=st.integers(0, 2**48 - 1), entropy=st.binary(min_size=10, max_size=10)
    )


SESSIONS, RUNS, NODES = ids("sess").map(SessionId), ids("run").map(RunId), ids("node").map(NodeId)
KEYS = st.binary(min_size=32, max_size=32).map(SigningKey)
STATES = st.builds(
    StateRef,
    session=SESSIONS,
    run=RUNS,
    node=NODES,
    workflow_hash=st.binary().map(lambda data: WorkflowHash(digest_of_bytes(data))),
)
ATTEMPTS = st.builds(
    AttemptRef,
    kind=st.sampled_from([TokenKind.ACK, TokenKind.CHECKPOINT]),
    session=SESSIONS,
    run=RUNS,
    node=NODES,
    attempt=ids("att").map(AttemptId),
)
REFS: st.SearchStrategy[TokenRef] = STATES | ATTEMPTS


@pytest.mark.inv("TOK-1")
@unhurried
@given(REFS, KEYS)
def test_verifying_what_was_minted_gives_the_reference_and_minting_that_gives_the_token(
    ref: TokenRef, key: SigningKey
) -> None:
    token = mint(ref, key)
    found = decode_long(token).verify([key])
    assert found == ref
    assert not isinstance(found, TokenFault)
    assert mint(found, key) == token
    assert decode_long(token).session == ref.session


@pytest.mark.inv("TOK-1")
@unhurried
@given(REFS, REFS, KEYS)
def test_tokens_are_equal_exactly_if_their_references_are(one: TokenRef, two: TokenRef, key: SigningKey) -> None:
    assert (mint(one, key) == mint(two, key)) == (one == two)


@pytest.mark.inv("TOK-3")
@unhurried
@given(REFS, st.lists(KEYS, min_size=1, max_size=3, unique=True))
def test_a_token_verifies_under_exactly_the_rings_that_hold_its_key(ref: TokenRef, keys: list[SigningKey]) -> None:
    token = mint(ref, keys[0])
    assert decode_long(token).verify(keys[::-1]) == ref
    fault = decode_long(token).verify(keys[1:])
    assert isinstance(fault, TokenFault)
    assert fault.code is ErrorCode.TOKEN_BAD_SIGNATURE


@pytest.mark.inv("TOK-3")
@settings(unhurried, max_examples=300)
@given(st.text() | st.lists(st.text(), min_size=4, max_size=4).map(".".join), KEYS)
def test_no_other_text_verifies_or_raises(text: str, key: SigningKey) -> None:
    assert isinstance(decode_long(text).verify([key]), TokenFault)
