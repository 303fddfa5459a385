"""Finds words in everything that was recorded, the latest session first, without reading every session whole.

A stored record that cannot match is passed over by its bytes. What matches is shown only from a log that was verified.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from interlock.decide.pattern_match import has_match
from interlock.kernel.frozen import frozen, mutable
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
from interlock.store.ports.errors import UNUSABLE_SESSION, ContentDamagedError, SessionUnhealthyError
from interlock.store.ports.reader import SessionReader

if TYPE_CHECKING:
    from interlock.service.report.search.passages import Passage


@frozen
class Hit:
    """A passage that matches, and its session."""

    session: SessionId
    passage: "Passage"


@frozen
class SearchResult:
    """The best matches, the latest session first. Unless `is_whole`, older sessions may have more of them.

    `unreadable` are sessions of which nothing was searched, `incomplete` those of which some content is lost.
    """

    hits: tuple[Hit, ...]
    closeness: Closeness | None
    is_whole: bool
    unreadable: tuple[Unreadable, ...]
    incomplete: tuple[Unreadable, ...]


class Scan(Protocol):
    """Applies a function to each item and yields the results in order, as `map` does."""

    def __call__(self, work: "Callable[[SessionId], Scanned]", items: Sequence[SessionId], /) -> "Iterable[Scanned]":
        """Return the results."""
        ...


@frozen
class Scanned:
    """What the records of a session can match at best, from one reading of them.

    `bound` is the closeness of all words or their beginnings in one record, and `count` how many of the words one
    record may have, each at best with a slip.
    """

    session: SessionId
    bound: Closeness | None
    count: int
    unreadable: Unreadable | None
    incomplete: Unreadable | None


@mutable
class _Scanner:
    reader: SessionReader
    query: Words
    patterns: Sequence[str]
    sound: set[str] = field(default_factory=set[str])

    def scan(self, session: SessionId) -> Scanned:
        """Read the records of a session; keep the first part of it that cannot be read."""
        lost = list[Unreadable]()
        try:
            log = self.reader.stored_log(session)
            if not log.is_attested:
                self.reader.load(session)
        except (SessionUnhealthyError, UnknownVersionError) as error:
            unreadable = unreadable_by(session, error)
            return Scanned(session=session, bound=None, count=0, unreadable=unreadable, incomplete=None)

        def lose(error: ContentDamagedError) -> None:
            lost.append(unreadable_by(session, error))

        check_content(self.reader, log, self.sound, lose)
        records = [_plain_bytes(record) for record in stored_records(self.reader, log, lose)]
        bound, count = self._bound(records), self.count(b"\n".join(records))
        if bound is None and count > 1:
            # No record has more of the words than all of them together.
            count = max(map(self.count, records))
        return Scanned(session=session, bound=bound, count=count, unreadable=None, incomplete=lost[0] if lost else None)

    def count(self, record: bytes) -> int:
        """Return how many of the words a record may have, each at best with a slip."""
        return sum(has_match(one, "i", record) for one in self.patterns)

    def bound(self, record: bytes) -> Closeness | None:
        """Return the best closeness that a text in a record may have."""
        return bound_of_record(self.query, record.decode("utf-8", "replace"))

    def _bound(self, records: Sequence[bytes]) -> Closeness | None:
        if self.bound(b"\n".join(records)) is None:
            return None
        return min((found for one in records if (found := self.bound(one)) is not None), default=None)


@mutable
class _Search:
    reader: SessionReader
    query: Words
    hits_max: int
    scanner: _Scanner
    unreadable: dict[SessionId, Unreadable] = field(default_factory=dict[SessionId, Unreadable])
    incomplete: dict[SessionId, Unreadable] = field(default_factory=dict[SessionId, Unreadable])

    def best(self, sessions: Iterable[Scanned]) -> tuple[list[Hit], Closeness | None, bool]:
        """Return the passages that match best, from one reading of each session: all words, beginnings, slips, some."""
        found: dict[Closeness, list[Hit]] = {Closeness.WORDS: [], Closeness.BEGINNINGS: []}
        counts = dict[SessionId, int]()
        wanted = Closeness.BEGINNINGS
        for one in sessions:
            self._keep_lost(one)
            if one.bound is not None and one.bound <= wanted:
                self._add_words(one.session, wanted, found)
            if len(found[Closeness.WORDS]) > self.hits_max:
                return found[Closeness.WORDS], Closeness.WORDS, False
            if len(found[Closeness.BEGINNINGS]) > self.hits_max:
                wanted = Closeness.WORDS
            if one.count:
                counts[one.session] = one.count
        best = next((one for one in found if found[one]), None)
        if best is not None:
            return found[best], best, best is Closeness.WORDS or wanted is Closeness.BEGINNINGS
        return self._by_slips(counts)

    def _keep_lost(self, scanned: Scanned) -> None:
        if scanned.unreadable is not None:
            self.unreadable[scanned.session] = scanned.unreadable
        if scanned.incomplete is not None:
            self.incomplete[scanned.session] = scanned.incomplete

    def _add_words(self, session: SessionId, wanted: Closeness, found: Mapping[Closeness, list[Hit]]) -> None:
        """Add the passages of a session that have all words or, if these are wanted, their beginnings."""

        def may_match(record: bytes) -> bool:
            bound = self.scanner.bound(_plain_bytes(record))
            return bound is not None and bound <= wanted

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
                    lambda record, least=count: self.scanner.count(_plain_bytes(record)) >= least,
                    lambda text, exact=count: near_count(self.query, text) == exact,
                )
                found += (Hit(session=session, passage=passage) for passage in have)
                if len(found) > self.hits_max:
                    return found, closeness, False
            if found:
                return found, closeness, True
        return [], None, True

    def _verified(
        self, session: SessionId, may_match: Callable[[bytes], bool], is_match: Callable[[str], bool]
    ) -> "list[Passage]":
        """Return the matching passages of a session, from its verified log."""
        from interlock.service.report.search.passages import passages, passages_in_records  # noqa: PLC0415 — for matches

        try:
            if not any(map(is_match, passages_in_records(self.reader, session, may_match))):
                return []
            return [passage for passage in passages(self.reader, session) if is_match(passage.text)]
        except UNUSABLE_SESSION as error:
            self.unreadable[session] = unreadable_by(session, error)
            return []


def _plain_bytes(record: bytes) -> bytes:
    """Return a record as patterns that ignore case read it. ASCII, as most records are, needs no work."""
    return record if record.isascii() else plain_record(record.decode("utf-8", "replace")).encode()


def search_passages(
    reader: SessionReader, sessions: Sequence[SessionId], query: Words, hits_max: int, scan: Scan = map
) -> SearchResult:
    """Return the passages of these sessions that match a query best; stop after more than `hits_max`.

    Args:
        reader: The stored sessions.
        sessions: Those to search, the latest first.
        query: What to search for.
        hits_max: The number of passages after which the search may stop.
        scan: Applies the first reading to the sessions, so that several processes can share it.

    Raises:
        StoreFailureError: The disk failed.
    """
    scanner = _Scanner(reader, query, [near_pattern(word) for word in query.words])
    search = _Search(reader, query, hits_max, scanner)
    hits, closeness, is_whole = search.best(scan(scanner.scan, sessions)) if query else ([], None, True)
    return SearchResult(
        hits=tuple(hits),
        closeness=closeness,
        is_whole=is_whole,
        unreadable=tuple(search.unreadable.values()),
        incomplete=tuple(one for one in search.incomplete.values() if one.session not in search.unreadable),
    )
