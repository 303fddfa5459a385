"""Tokens of format 2: short, their run's label in them, good in any process, and as strict as those of format 1."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.kernel.errors import ErrorCode
from interlock.kernel.ids import SessionId, SigningKey, derived_id, tag_of
from interlock.record.short_tokens import ShortKind, ShortRef, decode_short, decode_token, mint_short
from interlock.record.tokens import StateRef, TokenFault
from interlock.service.tokens.mint import Mint
from interlock.store.memory.store import MemoryStore
from interlock.testing.harness import FIXED_KEYS, FixedKeyRing, Harness, ToolResult, linear_workflow
from interlock.views.session import Session

KEY, FOREIGN = SigningKey(b"k" * 32), SigningKey(b"f" * 32)
LETTERS = "ABCXYZabcxyz0189_-"
REFS = st.builds(
    ShortRef,
    kind=st.sampled_from(ShortKind),
    session=st.integers().map(lambda number: SessionId(derived_id("sess", number))),
    label=st.text("0123456789abcdefghjkmnpqrstvwxyz", min_size=4, max_size=4)
    | st.text("0123456789abcdefghjkmnpqrstvwxyz", min_size=6, max_size=6),
    tag=st.integers().map(lambda number: derived_id("node", number)[-8:]),
    number=st.integers(0, 255),
)
unhurried = settings(deadline=None)


def tokens_of(answer: ToolResult) -> dict[str, str]:
    names = ("stateToken", "ackToken", "checkpointToken")
    return {name: answer[name] for name in names if name in answer.structure}


@pytest.mark.inv("TOK-8")
@unhurried
@given(REFS)
def test_a_token_gives_its_reference_and_no_other_token_does(ref: ShortRef) -> None:
    token = mint_short(ref, KEY)
    assert len(token) < 64
    assert decode_short(token).verify([FOREIGN, KEY]) == decode_token(token).verify([KEY]) == ref
    assert decode_token(token).session == ref.session
    assert ref.label in token.partition("_")[2][: len(ref.label)]
    fault = decode_short(token).verify([FOREIGN])
    assert isinstance(fault, TokenFault)
    assert fault.code is ErrorCode.TOKEN_BAD_SIGNATURE


@pytest.mark.inv("TOK-2", "TOK-8")
@unhurried
@given(REFS, st.data())
def test_of_all_texts_within_one_edit_the_token_alone_verifies(ref: ShortRef, data: st.DataObject) -> None:
    token = mint_short(ref, KEY)
    at, letter = data.draw(st.integers(0, len(token) - 1)), data.draw(st.sampled_from(LETTERS))
    near = {token[:at] + token[at + 1 :], token[:at] + letter + token[at:], token[:at] + letter + token[at + 1 :]}
    for text in near - {token}:
        assert isinstance(decode_token(text).verify([KEY]), TokenFault), text


def body_of(token: str, label: str) -> str:
    return token.partition("_")[2].removeprefix(label)


@pytest.mark.inv("TOK-12")
@unhurried
@given(REFS)
def test_tokens_of_different_kinds_differ_in_the_first_character_after_the_label(ref: ShortRef) -> None:
    tokens = {kind: mint_short(replace(ref, kind=kind), KEY) for kind in ShortKind}
    assert len({body_of(token, ref.label)[0] for token in tokens.values()}) == len(ShortKind)


@pytest.mark.inv("TOK-12")
def test_tokens_of_later_nodes_do_not_begin_alike() -> None:
    """The first 21 characters after the label are the MAC: no two of 1,000 tokens of one kind share the first 10."""
    session = SessionId(derived_id("sess", 0))
    tags = (derived_id("node", number)[-8:] for number in range(1_000))
    refs = [ShortRef(kind=ShortKind.ACK, session=session, label="abcd", tag=tag) for tag in tags]
    assert len({mint_short(ref, KEY)[8 : 8 + 10] for ref in refs}) == len(refs)


@pytest.mark.inv("TOK-12")
def test_every_token_of_an_answer_begins_in_its_own_way() -> None:
    harness = Harness.in_memory(linear_workflow("test.abc", "a", "b", "c"))
    for _ in range(30):
        first = harness.start("test.abc")
        blocked = harness.advance(first, None)
        second = harness.advance(blocked)
        for answer in (first, blocked, second, harness.rehydrate(first)):
            tokens = sorted(set(re.findall(r"(?:st|ack|chk)_[\w-]{56}", str(answer.structure))))
            label = answer["run"]["label"]
            assert len(tokens) >= 2
            # Two tokens of one kind, each of another node, may share their first character, but hardly two.
            assert len({body_of(token, label)[:2] for token in tokens}) == len(tokens), tokens


@pytest.mark.inv("TOK-8")
def test_every_token_of_an_answer_is_short_and_bears_the_label(harness: Harness) -> None:
    first = harness.start("test.abc")
    label = first["run"]["label"]
    second = harness.advance(first)
    fork = harness.rehydrate(first)["fork"]["ackToken"]
    for token in (*tokens_of(first).values(), *tokens_of(second).values(), fork):
        assert len(token) < 64
        assert token.partition("_")[2].startswith(label)
    assert [token.partition("_")[0] for token in tokens_of(first).values()] == ["st", "ack", "chk"]
    assert fork.startswith("ack_")
    assert harness.advance(fork, "Anew.").warnings == ["BRANCH_CREATED"]


@pytest.mark.inv("TOK-7", "TOK-8")
def test_any_process_with_the_same_data_directory_takes_it(tmp_path: Path) -> None:
    document = linear_workflow("test.abc", "a", "b", "c")
    second = Harness.on_disk(tmp_path, document).advance(Harness.on_disk(tmp_path, document).start("test.abc"))
    assert Harness.on_disk(tmp_path, document).rehydrate(second)["pending"] == second["pending"]
    kept = Harness.on_disk(tmp_path, document).checkpoint(second)
    assert Harness.on_disk(tmp_path, document).advance(second)["pending"]["stepId"] == "c"
    assert Harness.on_disk(tmp_path, document).checkpoint(second) == kept


@pytest.mark.inv("TOK-8")
def test_both_formats_name_the_same_attempts(harness: Harness) -> None:
    old = harness.in_format(1)
    first = old.start("test.abc")
    assert first.ack.startswith("ack.v1.")
    second = harness.advance(first)
    assert second.ack.startswith("ack_")
    third = old.advance(second)
    assert third.ack.startswith("ack.v1.")
    assert harness.advance(first) == second
    assert harness.rehydrate(third)["pending"] == third["pending"]
    assert harness.advance(third, stateToken=harness.rehydrate(third).state)["isComplete"]


class CountingStore(MemoryStore):
    """Counts how often a session is loaded."""

    loads = 0

    def load(self, session: SessionId, tag: str | None = None, *, since_s: float | None = None) -> Session | None:
        self.loads += 1
        return super().load(session, tag, since_s=since_s)


@pytest.mark.parametrize("tool", ["look", "checkpoint", "advance"])
def test_a_call_loads_its_session_once_although_two_tokens_name_it(tool: str) -> None:
    store = CountingStore()
    harness = Harness.over(store, linear_workflow("test.abc", "a", "b", "c"), keys=FixedKeyRing())
    first = harness.start("test.abc")
    store.loads = 0
    match tool:
        case "look":
            answer = harness.rehydrate(first, run=first["run"]["label"])
        case "checkpoint":
            answer = harness.checkpoint(first, stateToken=first.state)
        case _:
            answer = harness.advance(first, stateToken=first.state)
    assert not answer.is_error
    assert store.loads == 1


@pytest.mark.inv("TOK-5", "TOK-8")
@pytest.mark.parametrize("kind", ShortKind)
def test_what_the_log_does_not_hold_is_lost_history_in_words(kind: ShortKind) -> None:
    harness = Harness.in_memory(linear_workflow("test.abc", "a", "b"))
    first = harness.start("test.abc")
    session, label = harness.session_of(first), str(first["run"]["label"])
    argument = {ShortKind.STATE: "stateToken", ShortKind.CHECKPOINT: "checkpointToken"}.get(kind, "ackToken")
    tool = "checkpoint_workflow" if kind is ShortKind.CHECKPOINT else "continue_workflow"
    gone = ShortRef(kind=kind, session=session, label=label, tag="00000000")
    elsewhere = replace(gone, session=SessionId(derived_id("sess", "gone")))
    for ref in (gone, elsewhere):
        refused = harness.call(tool, {argument: mint_short(ref, FIXED_KEYS.current)})
        assert refused.code is ErrorCode.TOKEN_UNKNOWN_NODE
        assert f"run `{label}`" in refused["message"]
    root = harness.reference_of(first)
    assert isinstance(root, StateRef)
    if kind in (ShortKind.FORK, ShortKind.CHECKPOINT):
        ahead = replace(gone, tag=tag_of(root.node), number=3)
        assert (
            harness.call(tool, {argument: mint_short(ahead, FIXED_KEYS.current)}).code is ErrorCode.TOKEN_UNKNOWN_NODE
        )


@pytest.mark.inv("TOK-4", "TOK-8")
def test_tokens_in_the_wrong_place_name_their_run_and_their_argument(harness: Harness) -> None:
    first = harness.start("test.abc", goal="Ship it")
    for token, argument in (
        (first.ack, "stateToken"),
        (first.state, "ackToken"),
        (first["checkpointToken"], "ackToken"),
    ):
        refused = harness.call("continue_workflow", {argument: token})
        assert refused.code is ErrorCode.TOKEN_SCOPE_MISMATCH
        assert f"run `{first['run']['label']}` (test.abc)" in refused["message"]


def spoilt(token: str) -> dict[str, tuple[str, ErrorCode, str]]:
    """Return texts near a token, each with the code it deserves and what is said of it."""
    shape, bad = ErrorCode.TOKEN_INVALID_FORMAT, ErrorCode.TOKEN_BAD_SIGNATURE
    return {
        "cut by one": (token[:-1], shape, "a whole token has"),
        "cut with an ellipsis": (f"{token[:20]}…", shape, "a character that no token contains"),
        "a space at the end": (f"{token} ", shape, "a character that no token contains"),
        "another version": (f"{token[:29]}A{token[30:]}", ErrorCode.TOKEN_UNSUPPORTED_VERSION, "altered"),
        "another first character": (f"{token[:8]}{'A' if token[8] != 'A' else 'B'}{token[9:]}", bad, "altered"),
        "another last character": (token[:-1] + ("A" if token[-1] != "A" else "B"), bad, "altered"),
        "another prefix": (token.replace("ack_", "chk_"), bad, "another prefix"),
        "another label": (f"ack_zzzz{token[8:]}", bad, "altered"),
    }


@pytest.mark.inv("TOK-3", "TOK-8")
@pytest.mark.parametrize("how", spoilt("ack_" + "x" * 56))
def test_a_spoilt_token_is_refused_for_what_it_is(how: str) -> None:
    harness = Harness.in_memory(linear_workflow("test.abc", "a", "b"))
    text, code, said = spoilt(harness.start("test.abc").ack)[how]
    refused = harness.advance(text)
    assert refused.code is code
    assert said in refused["details"]["found"]
    ways = ("`resume_session`", "the call below shows where the run is")
    assert any(way in refused["suggestion"] for way in ways)


def test_where_two_nodes_bear_one_tag_the_first_keeps_it_and_the_other_gets_a_long_token(harness: Harness) -> None:
    second = harness.advance(harness.start("test.abc"))
    fold = harness.ports.read.reader.load(harness.session_of(harness.rehydrate(second)))
    assert fold is not None
    run = next(iter(fold.runs.values()))
    assert run.tip is not None
    assert run.root is not None
    clash = replace(fold, tags=fold.tags.insert(tag_of(run.tip), run.root))
    ring = FixedKeyRing().keys()
    assert ring is not None
    assert Mint(ring=ring, session=clash, run=run).state(run.tip).startswith("st.v1.")
    assert Mint(ring=ring, session=clash, run=run).ack(run.tip).startswith("ack.v1.")
    assert Mint(ring=ring, session=fold, run=run).ack(run.tip).startswith("ack_")
