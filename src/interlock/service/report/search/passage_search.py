"""Finds words in everything that was recorded, the latest session first, without reading every session whole.

A stored record that cannot match is passed over by its bytes. What matches is shown only from a log that was verified.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from interlock.decide.pattern_match import has_match
from interlock.kernel.ids import SessionId
from interlock.kernel.matching import (
    Closeness,
    Words,
    bound_of_record,
    closeness_of_count,
    near_count,
    near_pattern,
    plain_record,
    word_closeness,
)
from interlock.record.errors import UnknownVersionError
from interlock.service.report.search.stored_records import check_content, stored_records
from interlock.service.run.summaries import Unreadable, unreadable_by
from interlock.store.ports.errors import ContentDamagedError, SessionUnhealthyError
from interlock.store.ports.reader import SessionReader

if TYPE_CHECKING:
    from interlock.service.report.search.passages import Passage


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A passage that matches, and its session."""

    session: SessionId
    passage: "Passage"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The best matches, the latest session first. Unless `is_whole`, older sessions may have more of them.

    `unreadable` are sessions of which nothing was searched, `incomplete` those of which some content is lost.
    """

    hits: tuple[Hit, ...]
    closeness: Closeness | None
    is_whole: bool
    unreadable: tuple[Unreadable, ...]
    incomplete: tuple[Unreadable, ...]


@dataclass(slots=True)
class _Search:
    reader: SessionReader
    query: Words
    hits_max: int
    patterns: Sequence[str]
    sound: set[str] = field(default_factory=set[str])
    unreadable: dict[SessionId, Unreadable] = field(default_factory=dict[SessionId, Unreadable])
    incomplete: dict[SessionId, Unreadable] = field(default_factory=dict[SessionId, Unreadable])

    def best(self, sessions: Iterable[SessionId]) -> tuple[list[Hit], Closeness | None, bool]:
        """Return the passages that match best, from one reading of each session: all words, beginnings, slips, some."""
        found: dict[Closeness, list[Hit]] = {Closeness.WORDS: [], Closeness.BEGINNINGS: []}
        counts = dict[SessionId, int]()
        wanted = Closeness.BEGINNINGS
        for session in sessions:
            records = self._records(session)
            count = self._bound(records)
            if count == len(self.query.words):
                self._add_words(session, records, wanted, found)
            if len(found[Closeness.WORDS]) > self.hits_max:
                return found[Closeness.WORDS], Closeness.WORDS, False
            if len(found[Closeness.BEGINNINGS]) > self.hits_max:
                wanted = Closeness.WORDS
            if count and not any(found.values()):
                # No record has more of the words than all of them together.
                counts[session] = count if count == 1 else max(self._count(record) for record in records)
        best = next((one for one in found if found[one]), None)
        if best is not None:
            return found[best], best, best is Closeness.WORDS or wanted is Closeness.BEGINNINGS
        return self._by_slips(counts)

    def _add_words(
        self, session: SessionId, records: Sequence[bytes], wanted: Closeness, found: Mapping[Closeness, list[Hit]]
    ) -> None:
        """Add the passages of a session that have all words or, if these are wanted, their beginnings."""

        def may_match(record: bytes) -> bool:
            bound = bound_of_record(self.query, record.decode("utf-8", "replace"))
            return bound is not None and bound <= wanted

        if not may_match(b"\n".join(records)):
            return
        for passage in self._verified(session, may_match, self._has_words):
            closeness = word_closeness(self.query, passage.text)
            if closeness is not None:
                found[closeness].append(Hit(session=session, passage=passage))

    def _has_words(self, text: str) -> bool:
        return word_closeness(self.query, text) is not None

    def _by_slips(self, counts: Mapping[SessionId, int]) -> tuple[list[Hit], Closeness | None, bool]:
        """Return the passages that have the most of the words, each at best with a slip; `counts` are upper bounds."""
        for count in range(max(counts.values(), default=0), 0, -1):
            closeness = closeness_of_count(self.query, count)
            if closeness is None:
                break
            found = list[Hit]()
            for session in (one for one, bound in counts.items() if bound >= count):
                have = self._verified(
                    session,
                    lambda record, least=count: self._count(_plain_bytes(record)) >= least,
                    lambda text, exact=count: near_count(self.query, text) == exact,
                )
                found += (Hit(session=session, passage=passage) for passage in have)
                if len(found) > self.hits_max:
                    return found, closeness, False
            if found:
                return found, closeness, True
        return [], None, True

    def _records(self, session: SessionId) -> list[bytes]:
        """Return the stored records of a session; keep what of it cannot be read."""

        def lost(error: ContentDamagedError) -> None:
            self.incomplete.setdefault(session, unreadable_by(session, error))

        log = self.reader.stored_log(session)
        if not log.is_attested:
            try:
                self.reader.load(session)
            except (SessionUnhealthyError, UnknownVersionError) as error:
                self.unreadable[session] = unreadable_by(session, error)
                return []
        check_content(self.reader, log, self.sound, lost)
        return [_plain_bytes(record) for record in stored_records(self.reader, log, lost)]

    def _bound(self, records: Sequence[bytes]) -> int:
        """Return how many of the words the records may have together, each at best with a slip."""
        return self._count(b"\n".join(records))

    def _count(self, record: bytes) -> int:
        """Return how many of the words a record may have, each at best with a slip."""
        return sum(has_match(one, "i", record) for one in self.patterns)

    def _verified(
        self, session: SessionId, may_match: Callable[[bytes], bool], is_match: Callable[[str], bool]
    ) -> "list[Passage]":
        """Return the matching passages of a session, from its verified log."""
        from interlock.service.report.search.passages import passages, passages_in_records  # noqa: PLC0415 — for matches

        try:
            if not any(map(is_match, passages_in_records(self.reader, session, may_match))):
                return []
            return [passage for passage in passages(self.reader, session) if is_match(passage.text)]
        except (SessionUnhealthyError, UnknownVersionError, ContentDamagedError) as error:
            self.unreadable[session] = unreadable_by(session, error)
            return []


def _plain_bytes(record: bytes) -> bytes:
    """Return a record as patterns that ignore case read it. ASCII, as most records are, needs no work."""
    return record if record.isascii() else plain_record(record.decode("utf-8", "replace")).encode()


def search_passages(reader: SessionReader, sessions: Iterable[SessionId], query: Words, hits_max: int) -> SearchResult:
    """Return the passages of these sessions that match a query best; stop after more than `hits_max`.

    Raises:
        StoreFailureError: The disk failed.
    """
    search = _Search(reader, query, hits_max, [near_pattern(word) for word in query.words])
    hits, closeness, is_whole = search.best(sessions) if query else ([], None, True)
    return SearchResult(
        hits=tuple(hits),
        closeness=closeness,
        is_whole=is_whole,
        unreadable=tuple(search.unreadable.values()),
        incomplete=tuple(one for one in search.incomplete.values() if one.session not in search.unreadable),
    )
