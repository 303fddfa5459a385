"""What the models of a drive have used: one account for all agents and turns, whatever became of the work (DRIVE-8)."""

from interlock.drive.models.protocol import Usage


class Account:
    """The usage of one drive. Limits and sums are read from it.

    `unrecorded` is what no record of a turn states yet: failed turns, and work that was discarded. The next record
    states it.
    """

    def __init__(self, whole: "Account | None" = None) -> None:
        self._whole = whole
        self._before: dict[str, Usage] = {}
        self._spent = Usage()
        self.unrecorded = Usage()

    def part(self) -> "Account":
        """Return the account of a draft: its usage counts here at once, and is recorded with the draft."""
        return Account(self)

    def begin_run(self, run: str, recorded: Usage) -> None:
        """Count what a run had used before this drive. Its later records are of this drive, so they change nothing."""
        self._before.setdefault(run, recorded)

    def add(self, usage: Usage) -> None:
        """Count an answer of a model."""
        self.unrecorded += usage
        self._count(usage)

    def close_record(self) -> None:
        """Say that a record states what was not recorded."""
        self.unrecorded = Usage()

    @property
    def total(self) -> Usage:
        """What the runs had used before, and what this drive used."""
        return self._whole.total if self._whole is not None else sum(self._before.values(), self._spent)

    def _count(self, usage: Usage) -> None:
        self._spent += usage
        if self._whole is not None:
            self._whole._count(usage)  # noqa: SLF001 — the account of the whole is of the same class
