"""What the page that edits a workflow needs: the source of one, its diagnostics, and a place to save it (CON-13)."""

from dataclasses import dataclass
from typing import Protocol

from interlock.define.diagnostics import Diagnostics
from interlock.define.source.text_form import TextFormat
from interlock.kernel.errors import Refusal
from interlock.kernel.ids import Digest, SourceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedSource:
    """The source of a workflow as its file has it now. Only files of the user and of the project `is_editable`."""

    kind: SourceKind
    ref: str
    form: TextFormat
    data: bytes
    digest: Digest
    is_editable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedSource:
    """What the compiler says of a source: its diagnostics, and the steps with their prompts if it can run."""

    diagnostics: Diagnostics
    steps: tuple[str, ...]


class Authoring(Protocol):
    """Reads, checks and saves workflow files by the rules of the commands."""

    def open(self, workflow_id: str) -> OpenedSource | None:
        """Return the source of a workflow; None if there is none with this id."""
        ...

    def check(self, opened: OpenedSource, data: bytes) -> CheckedSource:
        """Check a source as if the file had it. Writes nothing."""
        ...

    def save(self, workflow_id: str, data: bytes, opened: Digest) -> Refusal | None:
        """Replace the file of a workflow, if it is unchanged since it was opened and the source can run."""
        ...

    def copy(self, workflow_id: str, new_id: str) -> Refusal | None:
        """Write a copy of a workflow under another id into the project; never overwrites a file."""
        ...
