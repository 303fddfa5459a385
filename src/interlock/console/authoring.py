"""What the page that edits a workflow needs: the source of one, its diagnostics, and a place to save it (CON-13)."""

from dataclasses import dataclass
from typing import Protocol

from interlock.define.diagnostics import Diagnostics
from interlock.kernel.errors import Refusal
from interlock.kernel.ids import Digest, SourceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedSource:
    """The source of a workflow as its file has it now. Only files of the user and of the project `is_editable`."""

    kind: SourceKind
    ref: str
    data: bytes
    digest: Digest
    is_editable: bool


class Authoring(Protocol):
    """Reads, checks and saves workflow files by the rules of the commands."""

    def open(self, workflow_id: str) -> OpenedSource | None:
        """Return the source of a workflow; None if there is none with this id."""
        ...

    def check(self, opened: OpenedSource, data: bytes) -> Diagnostics:
        """Return the diagnostics of a source as if the file had it. Writes nothing."""
        ...

    def save(self, workflow_id: str, data: bytes, opened: Digest) -> Refusal | None:
        """Replace the file of a workflow, if it is unchanged since it was opened and the source can run."""
        ...

    def copy(self, workflow_id: str, new_id: str) -> Refusal | None:
        """Write a copy of a workflow under another id into the project; never overwrites a file."""
        ...
