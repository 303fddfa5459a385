from pathlib import Path

import pytest
from mcp.server.request_state import AESGCMRequestStateCodec

from interlock.engine.gates import Question, QuestionItem
from interlock.record.tokens import SigningKey
from interlock.server.elicitation.seal import Asked, Seal
from interlock.store.local.store import LocalStore
from interlock.store.memory.store import MemoryStore
from interlock.store.ports.keys import KeyRing
from interlock.testing.harness import FixedKeyRing

QUESTION = Question(title="T", asks=(QuestionItem(reason="needs_user_approval", ask="Go?"),))
ASKED = Asked(subject="att_1", question=QUESTION.digest(), unix_ms=1_700_000_000_000)
KEY, OTHER = SigningKey(b"k" * 32), SigningKey(b"o" * 32)


def test_what_was_sealed_is_opened() -> None:
    seal = Seal(FixedKeyRing())
    assert seal.opened(seal.sealed(ASKED)) == ASKED


@pytest.mark.inv("GATE-8")
def test_of_all_texts_within_one_edit_the_sealed_one_alone_opens() -> None:
    seal = Seal(FixedKeyRing(KeyRing(current=KEY, previous=None)))
    text = seal.sealed(ASKED)
    chars = ["", "A", "B", "g", "w", "_", "-", ".", "=", "\n", "ä", "\ud800"]
    edits = {
        text[:at] + char + text[at + dropped :] for at in range(len(text) + 1) for char in chars for dropped in (0, 1)
    }
    assert {edit for edit in edits if seal.opened(edit) is not None} == {text}


def test_a_client_can_read_nothing_of_it() -> None:
    assert "att_1" not in Seal(FixedKeyRing()).sealed(ASKED)


def test_a_rotated_key_opens_until_it_is_shifted_out() -> None:
    store = MemoryStore()
    seal = Seal(store)
    text = seal.sealed(ASKED)
    store.rotate()
    assert seal.opened(text) == ASKED
    store.rotate()
    assert seal.opened(text) is None


def test_another_process_on_the_same_data_directory_opens_it(tmp_path: Path) -> None:
    text = Seal(LocalStore(tmp_path)).sealed(ASKED)
    assert Seal(LocalStore(tmp_path)).opened(text) == ASKED


def test_another_data_directory_does_not_open_it(tmp_path: Path) -> None:
    text = Seal(LocalStore(tmp_path / "a")).sealed(ASKED)
    empty = Seal(LocalStore(tmp_path / "b"))
    assert empty.opened(text) is None
    assert not (tmp_path / "b").exists()
    empty.sealed(ASKED)
    assert empty.opened(text) is None


def test_the_key_that_signs_tokens_does_not_open_it() -> None:
    ring = KeyRing(current=KEY, previous=OTHER)
    forged = AESGCMRequestStateCodec([KEY]).seal(b'{"question":"sha256:00","subject":"att_1","unixMs":1}')
    assert Seal(FixedKeyRing(ring)).opened(forged) is None
