"""JSON objects that are shown, in answers and by `--json`: the class that builds one is its only declaration."""

from interlock.record.base import Record


class Published(Record):
    """A JSON object that is shown. Its fields, in their order, are those of the object and of a published schema.

    A field that has its default is left out; a field without one may be null. The docstring of a part of an answer and
    the descriptions of its fields are published.
    """
