"""Tokens of every wrong kind: each is refused with its own code, in words to act on, and nothing is written."""

import base64
import json
from pathlib import Path
from typing import Any, Literal, cast

import pytest

from interlock.kernel.errors import ErrorCode
from interlock.kernel.ids import (
    AttemptId,
    NodeId,
    RunId,
    SessionId,
    SigningKey,
    WorkflowHash,
    ack_attempt,
    derived_id,
    fork_attempt,
)
from interlock.record.tokens import AttemptRef, StateRef, TokenKind, mint
from interlock.store.memory.store import MemoryStore
from interlock.testing.harness import (
    FIXED_KEYS,
    FIXED_UNIX_MS,
    CounterClock,
    FixedKeyRing,
    Harness,
    ToolResult,
    linear_workflow,
)

Argument = Literal["ackToken", "stateToken"]
ARGUMENTS: tuple[Argument, ...] = ("ackToken", "stateToken")
FOREIGN = SigningKey(b"k" * 32)


@pytest.fixture
def memory() -> Harness:
    """Over the fixed keys and in format 1, so that a test can read a token and mint what no answer holds."""
    documents = linear_workflow("test.abc", "a", "b", "c"), linear_workflow("test.xyz", "x", "y", "z")
    return Harness.in_memory(*documents).in_format(1)


def send(harness: Harness, argument: Argument, token: str, **more: object) -> ToolResult:
    output = {"output": {"notesMarkdown": "Done."}} if argument == "ackToken" else {}
    return harness.call("continue_workflow", {argument: token, **output, **more})


def payload_of(token: str) -> dict[str, Any]:
    text = token.split(".")[2]
    return cast("dict[str, Any]", json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))))


def count_of(harness: Harness, answer: ToolResult) -> int:
    return len(harness.events(harness.session_of(answer)))


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def altered(token: str) -> dict[str, tuple[str, ErrorCode]]:
    """Return spellings near a token, each with the code it deserves."""
    prefix, version, payload, signature = token.split(".")
    other = "st" if prefix == "ack" else "ack"
    bad, shape = ErrorCode.TOKEN_BAD_SIGNATURE, ErrorCode.TOKEN_INVALID_FORMAT
    flipped = ("B" if payload[9] != "B" else "C").join((payload[:9], payload[10:]))
    return {
        "a text": ("hello", shape),
        "nothing but dots": ("...", shape),
        "cut short": (token[:40], shape),
        "the signature left off": (f"{prefix}.{version}.{payload}", shape),
        "a part too many": (f"{token}.x", shape),
        "another prefix": (f"tok.{version}.{payload}.{signature}", shape),
        "an upper-case prefix": (f"{prefix.upper()}.{version}.{payload}.{signature}", shape),
        "an empty payload": (f"{prefix}.{version}..{signature}", shape),
        "an ellipsis": (f"{prefix}.v1…", shape),
        "very long": (f"{prefix}.v1.{'A' * 10_000}.{signature}", shape),
        "the next version": (f"{prefix}.v2.{payload}.{signature}", ErrorCode.TOKEN_UNSUPPORTED_VERSION),
        "version one, misspelt": (f"{prefix}.v01.{payload}.{signature}", ErrorCode.TOKEN_UNSUPPORTED_VERSION),
        "one character of the payload changed": (f"{prefix}.v1.{flipped}.{signature}", bad),
        "one character of the signature changed": (
            f"{prefix}.v1.{payload}.{'B' if signature[0] != 'B' else 'C'}{signature[1:]}",
            bad,
        ),
        "the last character dropped": (token[:-1], bad),
        "padding added": (f"{token}=", bad),
        "a character inserted": (f"{token[:30]}A{token[30:]}", bad),
        "a foreign character inserted": (f"{token[:30]} {token[30:]}", bad),
        "a foreign script inserted": (f"{token[:30]}é{token[30:]}", bad),
        "a newline at the end": (f"{token}\n", bad),
        "prefixes exchanged": (f"{other}.v1.{payload}.{signature}", bad),
        "payload and signature exchanged": (f"{prefix}.v1.{signature}.{payload}", bad),
        "deeply nested json as payload": (f"{prefix}.v1.{b64(b'[' * 2_900)}.{signature}", bad),
        "a list as payload": (f"{prefix}.v1.{b64(b'[1]')}.{signature}", bad),
        "bytes that are no text as payload": (f"{prefix}.v1.{b64(bytes(range(256)))}.{signature}", bad),
    }


SPELLINGS = list(altered("ack.v1.0123456789abcdef.sig"))


@pytest.mark.produces("error:TOKEN_INVALID_FORMAT", "error:TOKEN_UNSUPPORTED_VERSION", "error:TOKEN_BAD_SIGNATURE")
@pytest.mark.inv("TOK-2", "TOK-3", "ANS-2", "ANS-9")
@pytest.mark.parametrize("argument", ARGUMENTS)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_text_near_a_token_is_refused_for_what_it_is(memory: Harness, argument: Argument, spelling: str) -> None:
    first = memory.start("test.abc")
    token, code = altered(first[argument])[spelling]
    refused = send(memory, argument, token)
    assert refused.code is code
    assert f"`{argument}`" in refused["message"]
    assert "last answer" in refused["suggestion"]
    if code is ErrorCode.TOKEN_BAD_SIGNATURE:
        assert "this data directory did not issue it" in refused["message"]
    assert count_of(memory, first) == 4


@pytest.mark.inv("TOK-3")
def test_a_token_of_another_data_directory_does_not_verify(tmp_path: Path) -> None:
    document = linear_workflow("test.abc", "a", "b")
    here, there = Harness.on_disk(tmp_path / "here", document), Harness.on_disk(tmp_path / "there", document)
    first = here.start("test.abc")
    there.start("test.abc")
    for argument in ARGUMENTS:
        assert send(there, argument, first[argument]).code is ErrorCode.TOKEN_BAD_SIGNATURE


@pytest.mark.inv("TOK-3", "READ-1")
def test_in_a_data_directory_without_keys_no_token_verifies_and_none_are_made(tmp_path: Path) -> None:
    document = linear_workflow("test.abc", "a", "b")
    first = Harness.on_disk(tmp_path / "here", document).start("test.abc")
    for argument in ARGUMENTS:
        refused = send(Harness.on_disk(tmp_path / "empty", document), argument, first[argument])
        assert refused.code is ErrorCode.TOKEN_BAD_SIGNATURE
    assert not (tmp_path / "empty").exists()


@pytest.mark.produces("error:TOKEN_SCOPE_MISMATCH")
@pytest.mark.inv("TOK-4")
@pytest.mark.parametrize("argument", ARGUMENTS)
def test_a_token_of_the_other_kind_is_refused_and_the_right_argument_named(memory: Harness, argument: Argument) -> None:
    first = memory.start("test.abc", goal="Ship it")
    wrong: Argument = "stateToken" if argument == "ackToken" else "ackToken"
    refused = send(memory, argument, first[wrong])
    assert refused.code is ErrorCode.TOKEN_SCOPE_MISMATCH
    assert f"`{argument}` holds {'an' if wrong == 'ackToken' else 'a'} `{wrong}`" in refused["message"]
    assert first["run"]["label"] in refused["message"]
    assert refused["suggestion"].startswith(f"The call below has the `{argument}` of the same step.")
    assert not send(memory, argument, refused["details"]["correctedCall"]["arguments"][argument]).is_error


@pytest.mark.inv("ANS-2")
@pytest.mark.parametrize("argument", ARGUMENTS)
def test_a_token_in_the_wrong_place_names_its_run_in_words(memory: Harness, argument: Argument) -> None:
    """ANS-2: the run in words is its workflow, goal and label; a label alone is what agents mix up."""
    first = memory.start("test.abc", goal="Ship it")
    refused = send(memory, argument, first["stateToken" if argument == "ackToken" else "ackToken"])
    assert "test.abc" in refused["message"]
    assert refused["details"]["run"]["workflowId"] == "test.abc"


@pytest.mark.inv("TOK-4")
@pytest.mark.parametrize("argument", ARGUMENTS)
def test_a_checkpoint_token_is_no_token_of_continue(memory: Harness, argument: Argument) -> None:
    first = memory.start("test.abc")
    fields = payload_of(first.ack)
    checkpoint = mint(
        AttemptRef(
            kind=TokenKind.CHECKPOINT,
            session=fields["sessionId"],
            run=fields["runId"],
            node=fields["nodeId"],
            attempt=fields["attemptId"],
        ),
        FIXED_KEYS.current,
    )
    assert send(memory, argument, checkpoint).code is ErrorCode.TOKEN_SCOPE_MISMATCH


@pytest.mark.produces("error:TOKEN_WORKFLOW_HASH_MISMATCH")
@pytest.mark.inv("TOK-4", "ANS-2")
def test_a_state_token_that_pins_another_workflow_is_refused(memory: Harness) -> None:
    first = memory.start("test.abc")
    fields = payload_of(first.state)
    ref = StateRef(
        session=fields["sessionId"],
        run=fields["runId"],
        node=fields["nodeId"],
        workflow_hash=cast("WorkflowHash", "sha256:" + "0" * 64),
    )
    refused = send(memory, "stateToken", mint(ref, FIXED_KEYS.current))
    assert refused.code is ErrorCode.TOKEN_WORKFLOW_HASH_MISMATCH
    assert first["run"]["label"] in refused["message"]


def attempt_on(token: str, key: SigningKey = FIXED_KEYS.current, **changes: str) -> str:
    fields = payload_of(token) | changes
    ref = AttemptRef(
        kind=TokenKind.ACK,
        session=SessionId(fields["sessionId"]),
        run=RunId(fields["runId"]),
        node=NodeId(fields["nodeId"]),
        attempt=AttemptId(fields["attemptId"]),
    )
    return mint(ref, key)


def look_at(token: str, **changes: str) -> str:
    fields = payload_of(token) | changes
    ref = StateRef(
        session=SessionId(fields["sessionId"]),
        run=RunId(fields["runId"]),
        node=NodeId(fields["nodeId"]),
        workflow_hash=cast("WorkflowHash", fields["workflowHash"]),
    )
    return mint(ref, FIXED_KEYS.current)


LOST = {
    "sessionId": derived_id("sess", "lost"),
    "runId": derived_id("run", "lost"),
    "nodeId": derived_id("node", "lost"),
}


@pytest.mark.produces("error:TOKEN_UNKNOWN_NODE")
@pytest.mark.inv("TOK-5")
@pytest.mark.parametrize("field", LOST)
def test_a_reference_that_the_log_does_not_hold_is_lost_history(memory: Harness, field: str) -> None:
    first = memory.start("test.abc")
    for argument, token in (
        ("ackToken", attempt_on(first.ack, FIXED_KEYS.current, **{field: LOST[field]})),
        ("stateToken", look_at(first.state, **{field: LOST[field]})),
    ):
        refused = send(memory, cast("Argument", argument), token)
        assert refused.code is ErrorCode.TOKEN_UNKNOWN_NODE
        assert "backup" in refused["suggestion"]
    assert count_of(memory, first) == 4


@pytest.mark.inv("ANS-2", "TOK-5")
@pytest.mark.parametrize("field", LOST)
def test_lost_history_names_the_run_that_the_token_belongs_to(memory: Harness, field: str) -> None:
    """The token verifies, so its run is known at least by its label (ANS-2)."""
    first = memory.start("test.abc")
    refused = send(memory, "stateToken", look_at(first.state, **{field: LOST[field]}))
    label = (LOST["runId"] if field == "runId" else first["run"]["runId"])[-4:]
    assert f"`{label}`" in refused["message"]


@pytest.mark.inv("TOK-3", "KEY-1")
def test_a_token_forged_under_a_foreign_key_is_refused_and_one_of_the_previous_key_is_not(memory: Harness) -> None:
    first = memory.start("test.abc")
    assert attempt_on(first.ack) == first.ack
    assert memory.advance(attempt_on(first.ack, FOREIGN)).code is ErrorCode.TOKEN_BAD_SIGNATURE
    assert count_of(memory, first) == 4
    assert FIXED_KEYS.previous is not None
    assert memory.advance(attempt_on(first.ack, FIXED_KEYS.previous))["pending"]["stepId"] == "b"


@pytest.mark.inv("TOK-5")
def test_an_attempt_that_no_recorded_history_leads_to_is_lost_history(memory: Harness) -> None:
    first = memory.start("test.abc")
    node = NodeId(payload_of(first.ack)["nodeId"])
    for attempt in (fork_attempt(node, 1), fork_attempt(node, 255), AttemptId(derived_id("att", "other"))):
        refused = memory.advance(attempt_on(first.ack, attemptId=attempt))
        assert refused.code is ErrorCode.TOKEN_UNKNOWN_NODE
        assert first["run"]["label"] in refused["message"]
    assert count_of(memory, first) == 4


@pytest.mark.inv("TOK-5")
def test_an_ack_of_a_complete_node_is_refused(memory: Harness) -> None:
    first = memory.start("test.abc")
    last = memory.advance(memory.advance(memory.advance(first)))
    node = NodeId(payload_of(last.state)["nodeId"])
    refused = memory.advance(attempt_on(first.ack, nodeId=node, attemptId=ack_attempt(node)))
    assert refused.code is ErrorCode.TOKEN_UNKNOWN_NODE


@pytest.mark.inv("TOK-5")
def test_a_node_of_another_run_of_the_session_is_refused(memory: Harness) -> None:
    first = memory.start("test.abc")
    other = memory.start("test.xyz", sessionId=memory.session_of(first))
    for token, argument in (
        (attempt_on(first.ack, runId=other["run"]["runId"]), "ackToken"),
        (look_at(first.state, runId=other["run"]["runId"]), "stateToken"),
    ):
        assert send(memory, cast("Argument", argument), token).code is ErrorCode.TOKEN_UNKNOWN_NODE


@pytest.mark.inv("TOK-5")
def test_a_restored_backup_refuses_the_tokens_it_has_not_issued_yet(tmp_path: Path) -> None:
    """The log is shorter than the tokens know: nothing is guessed, and the older tokens go on."""
    import shutil  # noqa: PLC0415 — this one test

    document = linear_workflow("test.abc", "a", "b", "c")
    first = Harness.on_disk(tmp_path / "data", document).start("test.abc", goal="G")
    shutil.copytree(tmp_path / "data", tmp_path / "backup")
    harness = Harness.on_disk(tmp_path / "data", document, clock=CounterClock(100))
    second = harness.advance(first)
    third = harness.advance(second)
    shutil.rmtree(tmp_path / "data")
    shutil.copytree(tmp_path / "backup", tmp_path / "data")
    for answer in (second, third):
        assert harness.advance(answer).code is ErrorCode.TOKEN_UNKNOWN_NODE
        assert harness.rehydrate(answer).code is ErrorCode.TOKEN_UNKNOWN_NODE
        assert first["run"]["label"] in harness.rehydrate(answer)["message"]
    assert harness.advance(first)["pending"]["stepId"] == "b"


@pytest.mark.inv("TOK-6")
def test_an_ack_token_suffices_and_a_state_token_beside_it_must_be_of_the_same_step(memory: Harness) -> None:
    first = memory.start("test.abc", goal="Ship it")
    second = memory.advance(first, stateToken=first.state, run=first["run"]["label"])
    assert second["pending"]["stepId"] == "b"
    refused = memory.advance(second, stateToken=first.state)
    assert refused.code is ErrorCode.TOKEN_SCOPE_MISMATCH
    assert "different steps" in refused["message"]


@pytest.mark.inv("TOK-6")
def test_an_ack_token_that_is_sent_as_state_token_too_counts_once(memory: Harness) -> None:
    first = memory.start("test.abc")
    ack = first["nextCall"]["arguments"]["ackToken"]
    saved = memory.call(
        "checkpoint_workflow", {"ackToken": ack, "stateToken": ack, "output": {"notesMarkdown": "So far."}}
    )
    assert not saved.is_error
    second = memory.advance(first, stateToken=ack)
    assert second["pending"]["stepId"] == "b"
    # As the only token it is still of the wrong kind, and another step's is refused.
    assert memory.call("continue_workflow", {"stateToken": ack}).code is ErrorCode.TOKEN_SCOPE_MISMATCH
    assert memory.advance(second, stateToken=ack).code is ErrorCode.TOKEN_SCOPE_MISMATCH


@pytest.mark.inv("TOK-6", "ANS-2", "ANS-4")
def test_tokens_of_two_runs_are_refused_and_both_runs_named_in_words(memory: Harness) -> None:
    first = memory.start("test.abc", goal="Ship it")
    for other in (
        memory.start("test.xyz", goal="Sink it"),
        memory.start("test.xyz", goal="Sink it", sessionId=memory.session_of(first)),
    ):
        refused = memory.advance(first, stateToken=other.state)
        assert refused.code is ErrorCode.TOKEN_SCOPE_MISMATCH
        for words in (first["run"]["label"], "test.abc", "Ship it", other["run"]["label"], "test.xyz", "Sink it"):
            assert words in refused["message"]
        assert memory.rehydrate(first)["pending"]["stepId"] == "a"
        assert memory.rehydrate(other)["pending"]["stepId"] == "x"


@pytest.mark.inv("TOK-6", "ANS-4")
@pytest.mark.parametrize("argument", ARGUMENTS)
def test_the_label_of_another_run_beside_a_token_is_refused(memory: Harness, argument: Argument) -> None:
    first, other = memory.start("test.abc", goal="Ship it"), memory.start("test.xyz", goal="Sink it")
    refused = send(memory, argument, first[argument], run=other["run"]["label"])
    assert refused.code is ErrorCode.TOKEN_SCOPE_MISMATCH
    assert first["run"]["label"] in refused["message"]
    assert other["run"]["label"] in refused["message"]
    assert "test.abc" in refused["message"]
    assert count_of(memory, first) == 5


@pytest.mark.inv("TOK-6")
@pytest.mark.parametrize("length", [4, 6, 26])
def test_any_long_enough_ending_of_the_run_id_names_the_run(memory: Harness, length: int) -> None:
    first = memory.start("test.abc")
    assert not memory.rehydrate(first, run=first["run"]["runId"][-length:]).is_error
    assert memory.rehydrate(first, run=first["run"]["runId"][-3:]).code is ErrorCode.TOKEN_SCOPE_MISMATCH


@pytest.mark.inv("ANS-6", "ANS-9")
def test_a_huge_label_is_not_repeated_in_the_refusal(memory: Harness) -> None:
    refused = memory.rehydrate(memory.start("test.abc"), run="x" * 100_000)
    assert refused.code is ErrorCode.TOKEN_SCOPE_MISMATCH
    assert len(refused.text) < 2_000
    assert len(json.dumps(dict(refused.structure))) < 4_000


@pytest.mark.inv("KEY-1", "KEY-4")
def test_tokens_verify_until_their_key_is_shifted_out(tmp_path: Path) -> None:
    document = linear_workflow("test.abc", "a", "b", "c")
    running, other = Harness.on_disk(tmp_path, document), Harness.on_disk(tmp_path, document)
    first = running.start("test.abc")
    other.store.rotate()
    second = running.advance(first)
    assert second["pending"]["stepId"] == "b"
    other.store.rotate()
    assert running.rehydrate(first).code is ErrorCode.TOKEN_BAD_SIGNATURE
    assert running.rehydrate(second)["pending"]["stepId"] == "b"


@pytest.mark.inv("KEY-4")
def test_a_rotation_in_memory_holds_at_once() -> None:
    harness = Harness.over(MemoryStore(), linear_workflow("test.abc", "a", "b"))
    first = harness.start("test.abc")
    harness.store.rotate()
    assert harness.advance(first)["pending"]["stepId"] == "b"
    harness.store.rotate()
    assert harness.rehydrate(first).code is ErrorCode.TOKEN_BAD_SIGNATURE


def test_the_deterministic_harness_mints_the_same_tokens_every_time() -> None:
    def once() -> ToolResult:
        return Harness.over(MemoryStore(), linear_workflow("test.abc", "a"), keys=FixedKeyRing()).start("test.abc")

    assert once() == once()
    assert CounterClock().unix_ms() == FIXED_UNIX_MS


@pytest.mark.inv("TOK-5", "ANS-10")
def test_a_token_of_a_session_that_was_deleted_is_answered_with_that(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path, linear_workflow("test.abc", "a", "b"))
    first = harness.start("test.abc")
    session = harness.session_of(first)
    (tmp_path / "sessions" / session).rename(tmp_path / "gone")
    for server in (harness, Harness.on_disk(tmp_path, linear_workflow("test.abc", "a", "b"))):
        for refused in (server.advance(first), server.rehydrate(first)):
            assert refused.code is ErrorCode.TOKEN_UNKNOWN_NODE
            assert "no session of this data directory holds run" in refused["message"]
            assert session in refused["message"]
            assert "shorter" not in refused["message"]
            assert "an earlier answer" not in refused["suggestion"]
