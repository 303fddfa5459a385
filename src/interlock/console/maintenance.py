"""What commands print about a data directory besides its sessions, as JSON: the console shows the same."""

from collections.abc import Callable, Mapping

from interlock.config.settings import Settings
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen
from interlock.service.retention.lifetime import Kept
from interlock.service.workflows.authoring import WorkflowAuthor


@frozen
class Maintenance:
    """Reads what `keys status`, `gc --dry-run` and `doctor --client` print. Only `authoring` writes: workflow files.

    `kept` returns the sessions that are marked to be kept. `read_settings` reads the configuration again as it is
    now; a text: it has faults, one in each line.
    """

    keys: Callable[[], Mapping[str, Json]]
    collection: Callable[[], Mapping[str, Json]]
    kept: Callable[[], Kept]
    clients: Callable[[], Mapping[str, str]]
    read_settings: Callable[[], Settings | str]
    authoring: WorkflowAuthor
