import hashlib
import re

import pytest
import rfc8785

from interlock.kernel.ids import (
    ID_BODY_PATTERN,
    NodeId,
    ack_attempt,
    derived_id,
    fork_attempt,
    minted_id,
    node_of_attempt,
)

CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
NODE = NodeId("node_00000000000000000000000001")


def decoded(body: str) -> int:
    """Return the number that a body spells: five bits a character, the highest first."""
    number = 0
    for char in body:
        number = number * 32 + CROCKFORD.index(char)
    return number


def derived(prefix: str, *parts: str | int) -> str:
    """The rule of ID-2, written again: the first 128 bits of sha256 over the canonical bytes of the parts."""
    number = int.from_bytes(hashlib.sha256(rfc8785.dumps(list(parts))).digest()[:16], "big")
    body = ""
    for _ in range(26):
        number, five_bits = divmod(number, 32)
        body = CROCKFORD[five_bits] + body
    return f"{prefix}_{body}"


@pytest.mark.inv("ID-1")
def test_a_minted_id_is_the_lowercase_ulid_of_its_time_and_entropy() -> None:
    number = 0x01563E3AB5D3D6764C61EFB99302BD5B
    minted = minted_id("sess", unix_ms=number >> 80, entropy=(number & (1 << 80) - 1).to_bytes(10, "big"))
    assert minted == "sess_" + "01ARZ3NDEKTSV4RRFFQ69G5FAV".lower()


@pytest.mark.inv("ID-1")
def test_the_smallest_and_the_largest_id_keep_the_form() -> None:
    assert minted_id("run", unix_ms=0, entropy=bytes(10)) == "run_" + "0" * 26
    assert minted_id("run", unix_ms=2**48 - 1, entropy=b"\xff" * 10) == "run_7" + "z" * 25
    assert minted_id("run", unix_ms=2**48, entropy=bytes(10)) == "run_" + "0" * 26


def test_an_id_takes_exactly_ten_bytes_of_entropy() -> None:
    for length in (0, 9, 11, 16):
        with pytest.raises(AssertionError):
            minted_id("run", unix_ms=1, entropy=bytes(length))


@pytest.mark.inv("ID-1")
@pytest.mark.parametrize(
    "made",
    [
        minted_id("evt", unix_ms=1_469_922_850_259, entropy=b"0123456789"),
        derived_id("evt", "a", 1),
        derived_id("evt"),
        derived_id("evt", "\x00\x1f\x7f\"\\/'"),
    ],
)
def test_an_id_is_its_prefix_and_26_lowercase_crockford_characters(made: str) -> None:
    prefix, body = made.split("_")
    assert prefix == "evt"
    assert re.fullmatch(ID_BODY_PATTERN, body)
    assert len(body) == 26
    assert decoded(body) < 2**128


@pytest.mark.inv("ID-1")
@pytest.mark.parametrize("char", ["i", "l", "o", "u", "A", "-", "_", "é"])
def test_the_pattern_of_a_body_admits_no_character_outside_the_alphabet(char: str) -> None:
    assert not re.fullmatch(ID_BODY_PATTERN, "0" * 25 + char)
    assert not re.fullmatch(ID_BODY_PATTERN, char + "0" * 25)


@pytest.mark.inv("ID-1")
@pytest.mark.parametrize("body", ["8" + "0" * 25, "z" * 26, "0" * 25, "0" * 27, ""])
def test_the_pattern_of_a_body_admits_no_other_length_and_no_129th_bit(body: str) -> None:
    assert not re.fullmatch(ID_BODY_PATTERN, body)


@pytest.mark.inv("ID-2")
@pytest.mark.parametrize(
    "parts",
    [(), ("a",), ("a", "b"), ("ab",), ("a", 0), ("a", "0"), ("a", 255), ('"', "\\"), ("\x00\x08\x1f\x7f",), ("é😀",)],
)
def test_a_derived_id_is_the_beginning_of_the_digest_of_its_parts(parts: tuple[str | int, ...]) -> None:
    assert derived_id("x", *parts) == derived("x", *parts)


@pytest.mark.inv("ID-2")
def test_parts_that_differ_in_any_way_give_different_ids() -> None:
    parts: list[tuple[str | int, ...]] = [("a", "b"), ("ab",), ("b", "a"), ("a", 0), ("a", "0"), ("a", 1), ("a,b",)]
    assert len({derived_id("x", *one) for one in parts}) == len(parts)


@pytest.mark.inv("ID-2")
def test_a_node_has_one_ordinary_attempt_and_one_fork_attempt_for_each_number() -> None:
    assert ack_attempt(NODE) == derived("att", NODE, "ack", 0)
    assert [fork_attempt(NODE, k) for k in range(3)] == [derived("att", NODE, "fork", k) for k in range(3)]
    attempts = {ack_attempt(NODE), *(fork_attempt(NODE, k) for k in range(255))}
    assert len(attempts) == 256
    assert ack_attempt(NodeId("node_00000000000000000000000002")) not in attempts


@pytest.mark.inv("ID-2")
def test_the_node_of_an_attempt_follows_from_the_attempt_alone() -> None:
    attempt = ack_attempt(NODE)
    assert node_of_attempt(attempt) == derived("node", attempt, "node")
    assert node_of_attempt(attempt) != node_of_attempt(fork_attempt(NODE, 0))
