"""Whether everything that sessions refer to is there and is what its name says."""

from collections.abc import Iterator
from dataclasses import dataclass

from interlock.kernel.ids import SessionId
from interlock.store.local import layout
from interlock.store.local.content import ContentFiles
from interlock.store.local.files import FileOps
from interlock.store.local.mark import CONTENT_KINDS
from interlock.store.ports import ContentDamagedError
from interlock.store.retention import Marked


@dataclass(frozen=True, slots=True, kw_only=True)
class DamagedContent:
    """A content file that is missing or not what its name says, and the sessions that refer to it."""

    name: str
    found: str
    sessions: tuple[SessionId, ...]


def damaged_content(files: FileOps, marked: Marked) -> Iterator[DamagedContent]:
    """Yield the content that is not as it was written, by name. Each file is read once.

    Raises:
        StoreFailureError: The disk failed.
    """
    content = ContentFiles(files)
    for name in sorted(frozenset[str]().union(*(one.content for one in marked.sessions))):
        try:
            content.read(name, layout.digest_in(name), CONTENT_KINDS[name.rpartition("/")[0]].value)
        except ContentDamagedError as damage:
            refer = tuple(one.session for one in marked.sessions if name in one.content)
            yield DamagedContent(name=name, found=damage.found, sessions=refer)
