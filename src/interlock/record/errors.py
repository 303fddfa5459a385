"""The errors of reading a stored record. Importing them builds no record model, which a list of runs does not need."""

from interlock.kernel.errors import InterlockError


class UnknownVersionError(InterlockError):
    """A newer Interlock wrote this record. It may be valid, but this version cannot read it (EVT-2)."""

    def __init__(self, what: str, found: str) -> None:
        super().__init__(f"{what}: {found}; written by a newer Interlock")
        self.what = what
        self.found = found


class MalformedRecordError(InterlockError):
    """A stored record does not match its schema."""

    def __init__(self, what: str, found: str) -> None:
        super().__init__(f"{what}: {found}")
        self.what = what
        self.found = found
