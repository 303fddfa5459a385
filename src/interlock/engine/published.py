"""What published parts of answers share: one declaration builds them and publishes their schema (TOOLS)."""

from interlock.kernel.canonical import Json
from interlock.record.base import Record


class Published(Record):
    """A part of an answer. Its fields, in their order, are those of the answer and of the published schema.

    An optional field is left out if it is None; a field that must be there may be null. The docstring of a part and
    the descriptions of its fields are published.
    """

    def to_json(self) -> dict[str, Json]:
        """Return the part as answers carry it."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True)
