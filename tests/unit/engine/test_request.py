"""What an agent brings back, within its budgets, and the digest that tells one payload from another."""

import pytest

from interlock.engine.request import NOTES_WORDS, PreferenceDelta, Request
from interlock.kernel.budgets import NOTES_BYTES_MAX
from interlock.kernel.canonical import digest_of_bytes
from interlock.kernel.text import TRUNCATION_MARKER, utf8_bytes
from interlock.record.base import Preferences
from interlock.record.content import WHOLE_NOTES_CONTENT_TYPE

BASE = Preferences(autonomy="guided", risk_policy="conservative")


@pytest.mark.inv("BLK-1")
@pytest.mark.parametrize(
    "notes",
    [
        *(None, "", " ", "\n\t\u00a0", "...", "\u200b", "—", "\ufeff\u202e"),
        *("  <YOUR NOTES>\n", "<your notes>", "Optional."),
        "`Your notesMarkdown, as you sent it.`",
        f"{NOTES_WORDS}.",
    ],
)
def test_nothing_blanks_and_the_sample_text_of_an_answer_are_no_notes(notes: str | None) -> None:
    assert not Request(notes=notes).has_notes()


@pytest.mark.parametrize("notes", ["x", "optional for now", "<done> it", "0"])
def test_anything_else_is_notes(notes: str) -> None:
    assert Request(notes=notes).has_notes()


@pytest.mark.inv("EVT-7")
@pytest.mark.parametrize("char", ["x", "é", "€", "\N{GRINNING FACE}"])
def test_notes_over_the_budget_are_cut_at_a_whole_character_and_marked(char: str) -> None:
    fits = Request(notes=char * (NOTES_BYTES_MAX // utf8_bytes(char)))
    assert fits.stored_notes() == fits.notes
    cut = Request(notes=char * NOTES_BYTES_MAX + "x").stored_notes()
    assert cut.endswith(TRUNCATION_MARKER)
    assert NOTES_BYTES_MAX - 4 < utf8_bytes(cut) <= NOTES_BYTES_MAX
    assert set(cut.removesuffix(TRUNCATION_MARKER)) == {char}


@pytest.mark.inv("EVT-6")
def test_artifacts_are_stored_once_each_in_the_order_of_their_digests() -> None:
    artifacts = tuple({"kind": "k", "n": number} for number in (3, 1, 2, 1))
    stored = Request(artifacts=(*artifacts, {"n": 3, "kind": "k"})).stored_artifacts()
    assert len(stored) == 3
    assert [one.digest for one in stored] == sorted(digest_of_bytes(one.data) for one in stored)


@pytest.mark.inv("EVT-7")
@pytest.mark.parametrize("char", ["a", "é", "😀"])
def test_notes_that_are_cut_are_stored_whole_beside_them(char: str) -> None:
    whole = char * NOTES_BYTES_MAX + "x"
    (stored,) = Request(notes=whole).stored_artifacts()
    assert (stored.content_type, stored.data.decode()) == (WHOLE_NOTES_CONTENT_TYPE, whole)
    assert stored.digest == digest_of_bytes(stored.data)
    assert Request(notes="x" * NOTES_BYTES_MAX).stored_artifacts() == ()


@pytest.mark.inv("ADV-7")
def test_the_digest_is_that_of_the_meaning_and_not_of_the_spelling() -> None:
    one = Request(notes="n", artifacts=({"kind": "k", "a": 1},), context={"x": 1, "y": {"b": 1, "a": 2}})
    same = Request(notes="n", artifacts=({"a": 1, "kind": "k"},), context={"y": {"a": 2, "b": 1}, "x": 1.0})
    assert one.digest() == same.digest()


DIFFERENT = [
    Request(),
    Request(notes="n"),
    Request(notes="n "),
    Request(notes="n", artifacts=({"kind": "k"},)),
    Request(notes="n", artifacts=({"kind": "k"}, {"kind": "l"})),
    Request(notes="n", context={"k": 1}),
    Request(notes="n", context={"k": None}),
    Request(notes="n", preferences=PreferenceDelta(autonomy="guided")),
    Request(notes="n", preferences=PreferenceDelta(risk_policy="balanced")),
]


@pytest.mark.inv("ADV-7")
def test_another_payload_has_another_digest() -> None:
    assert len({request.digest() for request in DIFFERENT}) == len(DIFFERENT)


@pytest.mark.inv("ADV-7")
@pytest.mark.parametrize("notes", ["", " \n", "``", "<your notes>"])
def test_notes_that_say_nothing_make_no_other_payload_for_the_log_does_not_keep_them(notes: str) -> None:
    assert Request(notes=notes).digest() == Request().digest()


@pytest.mark.inv("ADV-7")
def test_neither_the_order_of_artifacts_nor_a_confirmation_makes_another_payload() -> None:
    one, other = {"kind": "k"}, {"kind": "l"}
    said = {"kind": "wr.confirmation", "confirmedBy": "me", "statement": "Yes."}
    digest = Request(artifacts=(one, other)).digest()
    assert Request(artifacts=(other, one, one)).digest() == digest
    assert Request(artifacts=(one, said, other)).digest() == digest


@pytest.mark.inv("CTX-7")
def test_a_preference_that_is_not_sent_stays_as_it_is() -> None:
    assert PreferenceDelta().changes() == {}
    assert PreferenceDelta().over(BASE) == BASE
    changed = PreferenceDelta(risk_policy="aggressive")
    assert changed.changes() == {"riskPolicy": "aggressive"}
    assert changed.over(BASE) == Preferences(autonomy="guided", risk_policy="aggressive")
