from pathlib import Path

import pytest
from mcp.server.request_state import AESGCMRequestStateCodec

from interlock.engine.gates import Origin, Question, QuestionItem
from interlock.kernel.ids import SigningKey
from interlock.server.elicitation.seal import Asked, QuestionSealer
from interlock.store.local.store import LocalStore
from interlock.store.memory.store import MemoryStore
from interlock.store.ports.keys import KeyRing
from interlock.testing.harness import FixedKeyRing

QUESTION = Question(title="T", asks=(QuestionItem(reason="needs_user_approval", ask="Go?"),))
ORIGIN = Origin(unix_ms=1_700_000_000_000, entropy=bytes(range(10)))
ASKED = Asked(subject="att_1", question=QUESTION.digest(), origin=ORIGIN)
KEY, OTHER = SigningKey(b"k" * 32), SigningKey(b"o" * 32)


def test_what_was_sealed_is_opened() -> None:
    sealer = QuestionSealer(FixedKeyRing())
    assert sealer.unseal(sealer.seal(ASKED)) == ASKED


@pytest.mark.inv("GATE-8")
def test_of_all_texts_within_one_edit_the_sealed_one_alone_opens() -> None:
    sealer = QuestionSealer(FixedKeyRing(KeyRing(current=KEY, previous=None)))
    text = sealer.seal(ASKED)
    chars = ["", "A", "B", "g", "w", "_", "-", ".", "=", "\n", "ä", "\ud800"]
    edits = {
        text[:at] + char + text[at + dropped :] for at in range(len(text) + 1) for char in chars for dropped in (0, 1)
    }
    assert {edit for edit in edits if sealer.unseal(edit) is not None} == {text}


def test_a_client_can_read_nothing_of_it() -> None:
    assert "att_1" not in QuestionSealer(FixedKeyRing()).seal(ASKED)


def test_a_rotated_key_opens_until_it_is_shifted_out() -> None:
    store = MemoryStore()
    sealer = QuestionSealer(store)
    text = sealer.seal(ASKED)
    store.rotate()
    assert sealer.unseal(text) == ASKED
    store.rotate()
    assert sealer.unseal(text) is None


def test_another_process_on_the_same_data_directory_opens_it(tmp_path: Path) -> None:
    text = QuestionSealer(LocalStore(tmp_path)).seal(ASKED)
    assert QuestionSealer(LocalStore(tmp_path)).unseal(text) == ASKED


def test_another_data_directory_does_not_open_it(tmp_path: Path) -> None:
    text = QuestionSealer(LocalStore(tmp_path / "a")).seal(ASKED)
    empty = QuestionSealer(LocalStore(tmp_path / "b"))
    assert empty.unseal(text) is None
    assert not (tmp_path / "b").exists()
    empty.seal(ASKED)
    assert empty.unseal(text) is None


def test_the_key_that_signs_tokens_does_not_open_it() -> None:
    ring = KeyRing(current=KEY, previous=OTHER)
    forged = AESGCMRequestStateCodec([KEY]).seal(b'{"question":"sha256:00","subject":"att_1","unixMs":1}')
    assert QuestionSealer(FixedKeyRing(ring)).unseal(forged) is None
