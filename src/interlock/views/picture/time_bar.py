"""A step of a run over time, for a picture and for the text of a report."""

from interlock.kernel.frozen import frozen
from interlock.kernel.text import duration_words


@frozen
class TimeBar:
    """A step: when it became pending, when it was done (None: not yet), and when attempts were refused.

    Times are in milliseconds since the epoch.
    """

    title: str
    node: str
    since: int
    until: int | None
    refused: tuple[int, ...] = ()

    @property
    def words(self) -> str:
        """Return how long it took, and how many attempts were refused."""
        lasted = duration_words(self.until - self.since) if self.until is not None else "not done"
        return f"{lasted}, {len(self.refused)} refused" if self.refused else lasted
