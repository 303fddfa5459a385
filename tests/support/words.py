"""Long notes that say something: no word twice, and no two notes the same."""

import itertools

_NUMBERS = itertools.count(1)


def many_words(count: int) -> str:
    """Return so many different words."""
    return " ".join(f"word-{number}" for number in range(count))


def fresh_notes(text: str) -> str:
    """Return notes that no step was reported with before."""
    return f"{text} Report {next(_NUMBERS)}."
