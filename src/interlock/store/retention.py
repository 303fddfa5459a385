"""The pure rule of what a sweep takes. Every collector and every dry run use it (locks 2.2, D33)."""

from collections.abc import Collection

from interlock.kernel.ids import SessionId
from interlock.store.ports.maintenance import Due, Item, Kind, Marked, Retention


def due(marked: Marked, retention: Retention, spared: Collection[SessionId] = ()) -> Due:
    """Return what may go. `spared` sessions stay."""
    assert not marked.unsound, "nothing goes while any session is unsound (locks 2.2)"
    gone = {one.session for one in marked.sessions if retention.has_expired(one) and one.session not in spared}
    roots = roots_of(marked, gone)
    return Due(
        sessions=tuple(one for one in marked.sessions if one.session in gone),
        items=tuple(
            item
            for item in marked.items
            if item.session not in gone and item.session not in spared and _is_due(item, roots, retention)
        ),
    )


def roots_of(marked: Marked, gone: Collection[SessionId]) -> frozenset[str]:
    """Return the names of the content that sessions refer to, those that go aside."""
    return frozenset[str]().union(*(one.content for one in marked.sessions if one.session not in gone))


def _is_due(item: Item, roots: frozenset[str], retention: Retention) -> bool:
    if item.kind is Kind.TRASH and item.content is None:
        return True  # it was old when it went there
    name = item.content if item.kind is Kind.TRASH else item.name
    return name not in roots and retention.is_old(item.modified_s)
