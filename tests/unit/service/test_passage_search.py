"""A search of everything recorded finds what reading every text would find, and reads little."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import pytest

from interlock.cli.frame import processes
from interlock.decide.pattern_match import has_match
from interlock.kernel.canonical import canonical_bytes, readable_json
from interlock.kernel.ids import SessionId
from interlock.kernel.matching import (
    Closeness,
    Words,
    bound_of_record,
    match_texts,
    near_count,
    near_pattern,
    plain_record,
    word_closeness,
)
from interlock.service.report.search.passage_search import Scanned, search_passages
from interlock.service.report.search.passages import passages
from interlock.store.memory.store import MemoryStore
from interlock.store.ports.reader import StoredLog
from interlock.testing.harness import FixedKeyRing, Harness, linear_workflow

SHIP = linear_workflow("team.ship", "a", "b", "c")
NOTES = (
    "Raised the retry limit.\nnode of the cache",
    "The cache layer; nothing else",
    "retrying, caches and LIMITS",
    "Größe der Straße, Ｃａｃｈｅ",  # noqa: RUF001 — full width, as NFKC reads it
    "リリースを発行する",
    'a "quoted\\path" in snake_case',
)
QUERIES = (
    "retry limit", "cache", "cach", "limt", "cahce layre", "strasse", "発行", "quoted path", "snake", "case retry",
    "elephant", "node", "etry", "grosse", "retry elephant", "retrying caches limits", "ru", "notes", "...",
)  # fmt: skip


@pytest.fixture(scope="module")
def harness() -> Harness:
    harness = Harness.in_memory(SHIP)
    for number, notes in enumerate(NOTES):
        first = harness.start("team.ship", goal=f"Goal {number}")
        artifact = {"kind": "t.note", "says": NOTES[-1 - number]}
        harness.advance(first, None, output={"notesMarkdown": notes, "artifacts": [artifact]})
    return harness


def sessions_of(harness: Harness) -> list[SessionId]:
    return sorted(harness.store.sessions(), reverse=True)


def in_two_processes(work: Callable[[SessionId], Scanned], sessions: Sequence[SessionId]) -> Iterator[Scanned]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "_processors", lambda: 2)
        patch.setattr(processes, "ITEMS_BEFORE_PROCESSES", 1)
        patch.setattr(processes, "ITEMS_PER_BATCH", 1)
        yield from processes.map_in_processes(work, sessions)


@pytest.mark.inv("EVD-12", "EVD-7")
@pytest.mark.parametrize("query", QUERIES)
def test_a_search_finds_what_reading_every_text_finds(harness: Harness, query: str) -> None:
    every = [(session, one) for session in sessions_of(harness) for one in passages(harness.store, session)]
    found = match_texts(Words.of(query), [passage.text for _, passage in every])
    best = min((one for one in found if one is not None), default=None)
    expected = [place for place, one in zip(every, found, strict=True) if one is not None and one is best]
    sessions = sessions_of(harness)
    whole = search_passages(harness.store, sessions, Words.of(query), 1_000)
    assert ([(hit.session, hit.passage) for hit in whole.hits], whole.closeness) == (expected, best)
    assert whole.is_whole
    assert search_passages(harness.store, sessions, Words.of(query), 1_000, in_two_processes) == whole
    short = search_passages(harness.store, sessions, Words.of(query), 1)
    assert [(hit.session, hit.passage) for hit in short.hits[:1]] == expected[:1]
    assert short.closeness is best
    assert len(short.hits) == len(expected) or len(short.hits) > 1


@pytest.mark.inv("EVD-12")
def test_no_record_is_passed_over_that_has_a_match() -> None:
    chance = random.Random(7)
    letters = ("a", "b", "é", "n", "t", "-", "_", " ", "\n", '"', "\\", "発")
    for _ in range(300):
        text = "".join(chance.choices(letters, k=chance.randint(1, 12)))
        query = Words.of("".join(chance.choices(letters, k=chance.randint(1, 8))))
        record = canonical_bytes({"data": [text], "kind": "b"}).decode()
        closeness = word_closeness(query, text) if query else None
        bound = bound_of_record(query, record)
        assert closeness is None or (bound is not None and bound <= closeness), (query, text)
        near = sum(has_match(near_pattern(word), "i", plain_record(record).encode()) for word in query.words)
        if record.isascii():
            assert near == sum(has_match(near_pattern(word), "i", record.encode()) for word in query.words)
        assert near >= near_count(query, text), (query, text)


def test_a_record_with_the_words_only_inside_others_is_passed_over() -> None:
    assert bound_of_record(Words.of("etry"), '{"a":"retry"}') is None
    assert bound_of_record(Words.of("retr"), '{"a":"retry"}') is Closeness.BEGINNINGS
    assert bound_of_record(Words.of("retry"), '{"a":"x\\nretry"}') is Closeness.WORDS


NUMBERS = (1e-07, 1.5e-05, -2.5e300, 0.1, 1e21)


@pytest.mark.inv("EVD-12")
def test_a_number_is_found_as_it_is_printed() -> None:
    harness = Harness.in_memory(SHIP)
    measured = [{"kind": "t.number", "measured": number, "in": [number]} for number in NUMBERS]
    harness.advance(harness.start("team.ship"), None, output={"notesMarkdown": "Done.", "artifacts": measured})
    for number in NUMBERS:
        printed = readable_json(number)
        hits = search_passages(harness.store, sessions_of(harness), Words.of(printed), 20).hits
        assert any(f'"in": [{printed}]' in hit.passage.text for hit in hits), printed


class CountingStore(MemoryStore):
    """Counts how often the log of each session is read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = Counter[SessionId]()

    def stored_log(self, session: SessionId) -> StoredLog:
        """Return the log after counting it."""
        self.reads[session] += 1
        return super().stored_log(session)


@pytest.mark.inv("EVD-12")
@pytest.mark.parametrize("query", ["zebra", "retrry limiit", "zebra elephant"])
def test_a_search_that_finds_nothing_reads_each_session_once(query: str) -> None:
    store = CountingStore()
    harness = Harness.over(store, SHIP, keys=FixedKeyRing())
    for number in range(3):
        harness.advance(harness.start("team.ship", goal=f"Goal {number}"), None, output={"notesMarkdown": "Done."})
    assert not search_passages(store, sessions_of(harness), Words.of(query), 20).hits
    assert set(store.reads) == set(store.sessions())
    assert set(store.reads.values()) == {1}
