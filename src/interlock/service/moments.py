"""Recorded times, read. They inform and never order what happened (locks 1); lists for people are sorted by them."""

from datetime import UTC, datetime


def moment_of(text: str | None) -> int | None:
    """Return a recorded time in milliseconds since the epoch; None where there is none, or it is no time.

    A time without a zone is UTC, as all recorded ones are.
    """
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return round((aware - _EPOCH).total_seconds() * 1000)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
