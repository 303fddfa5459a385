"""Whether everything that sessions refer to is there and is what its name says."""

from collections.abc import Iterator

from interlock.store.local import layout
from interlock.store.local.content import ContentFiles
from interlock.store.local.files import FileOps
from interlock.store.local.mark import CONTENT_KINDS
from interlock.store.ports import ContentDamagedError
from interlock.store.retention import DamagedContent, Marked


def damaged_content(files: FileOps, marked: Marked) -> Iterator[DamagedContent]:
    """Yield what `StoreInspector.damaged_content` returns."""
    content = ContentFiles(files)
    for name in sorted(frozenset[str]().union(*(one.content for one in marked.sessions))):
        try:
            content.read(name, layout.digest_in(name), CONTENT_KINDS[name.rpartition("/")[0]].value)
        except ContentDamagedError as damage:
            refer = tuple(one.session for one in marked.sessions if name in one.content)
            yield DamagedContent(name=name, found=damage.found, sessions=refer)
