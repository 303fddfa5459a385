"""Finds words in everything that was recorded, the latest session first, without reading every session whole.

A stored record that cannot match is passed over by its bytes. What matches is shown only from a log that was verified.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from interlock.decide.criteria import has_match
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
from interlock.record.base import UnknownVersionError
from interlock.service.report.search import Passage, passages, passages_in_records, stored_records
from interlock.service.run.summaries import Unreadable, unreadable_by
from interlock.store.ports.errors import ContentDamagedError, SessionUnhealthyError
from interlock.store.ports.reader import SessionReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A passage that matches, and its session."""

    session: SessionId
    passage: Passage


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The best matches, the latest session first. Unless `is_whole`, older sessions may have more of them.

    `unreadable` are sessions of which nothing was searched, `incomplete` those of which something is lost.
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
    unreadable: dict[SessionId, Unreadable] = field(default_factory=dict[SessionId, Unreadable])
    incomplete: dict[SessionId, Unreadable] = field(default_factory=dict[SessionId, Unreadable])

    def by_words(self, sessions: Iterable[SessionId]) -> tuple[list[Hit], Closeness | None, bool]:
        """Return the passages with all words; if there are none, those with their beginnings."""
        found: dict[Closeness, list[Hit]] = {Closeness.WORDS: [], Closeness.BEGINNINGS: []}
        wanted = Closeness.BEGINNINGS
        for session in sessions:
            limit = wanted

            def may_match(record: str, limit: Closeness = limit) -> bool:
                bound = bound_of_record(self.query, record)
                return bound is not None and bound <= limit

            for passage in self._verified(session, may_match, self._has_words):
                closeness = word_closeness(self.query, passage.text)
                if closeness is not None:
                    found[closeness].append(Hit(session=session, passage=passage))
            if len(found[Closeness.WORDS]) > self.hits_max:
                return found[Closeness.WORDS], Closeness.WORDS, False
            if len(found[Closeness.BEGINNINGS]) > self.hits_max:
                wanted = Closeness.WORDS
        best = next((one for one in found if found[one]), None)
        is_whole = best is Closeness.WORDS or wanted is Closeness.BEGINNINGS
        return (found[best] if best is not None else []), best, is_whole

    def _has_words(self, text: str) -> bool:
        return word_closeness(self.query, text) is not None

    def by_slips(self, sessions: Sequence[SessionId]) -> tuple[list[Hit], Closeness | None, bool]:
        """Return the passages that have the most of the words, each at best with a slip."""
        patterns = [near_pattern(word) for word in self.query.words]

        def bound(record: str) -> int:
            plain = plain_record(record)
            return sum(has_match(one, "", plain) for one in patterns)

        def bound_of_session(session: SessionId) -> int:
            records = list(stored_records(self.reader, session))
            # No record has more of the words than all of them together, and most sessions have none.
            whole = bound("\n".join(records))
            return whole if whole <= 1 else max(map(bound, records))

        bounds = {one: bound_of_session(one) for one in sessions}
        for count in range(max(bounds.values(), default=0), 0, -1):
            closeness = closeness_of_count(self.query, count)
            if closeness is None:
                break
            found = list[Hit]()
            for session in sessions:
                if bounds[session] < count:
                    continue
                have = self._verified(
                    session,
                    lambda record, least=count: bound(record) >= least,
                    lambda text, exact=count: near_count(self.query, text) == exact,
                )
                found += (Hit(session=session, passage=passage) for passage in have)
                if len(found) > self.hits_max:
                    return found, closeness, False
            if found:
                return found, closeness, True
        return [], None, True

    def _verified(
        self, session: SessionId, may_match: Callable[[str], bool], is_match: Callable[[str], bool]
    ) -> list[Passage]:
        """Return the matching passages of a session, from its verified log."""

        def lost(error: ContentDamagedError) -> None:
            self.incomplete.setdefault(session, unreadable_by(session, error))

        try:
            # All are read, so that all that is lost is noticed.
            texts = list(passages_in_records(self.reader, session, may_match, lost))
            if not any(map(is_match, texts)):
                return []
            return [passage for passage in passages(self.reader, session) if is_match(passage.text)]
        except (SessionUnhealthyError, UnknownVersionError, ContentDamagedError) as error:
            self.unreadable[session] = unreadable_by(session, error)
            return []


def search_passages(
    reader: SessionReader, sessions: Sequence[SessionId], query: Words, hits_max: int, shown: Iterable[SessionId]
) -> SearchResult:
    """Return the passages of these sessions that match a query best; stop after more than `hits_max`.

    `shown` is the same sessions, perhaps with progress.

    Raises:
        StoreFailureError: The disk failed.
    """
    search = _Search(reader, query, hits_max)
    hits, closeness, is_whole = search.by_words(shown)
    if not hits:
        hits, closeness, is_whole = search.by_slips(sessions)
    return SearchResult(
        hits=tuple(hits),
        closeness=closeness,
        is_whole=is_whole,
        unreadable=tuple(search.unreadable.values()),
        incomplete=tuple(one for one in search.incomplete.values() if one.session not in search.unreadable),
    )
