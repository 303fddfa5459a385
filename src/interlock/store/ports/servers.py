"""The servers that work on a store, and the configuration that each of them applied."""

from interlock.kernel.frozen import frozen
from interlock.kernel.ids import Digest


@frozen
class AppliedConfig:
    """The configuration of a server: the digest of its values in effect, and of the values that its file alone says.

    Arguments and the environment of a server change the first and not the second. So the second shows whether the file
    has changed since.
    """

    values: Digest
    file: Digest


@frozen
class RunningServer:
    """A server that runs now: its process, that of its client, and what it applied; None for what is not known."""

    pid: int
    client: int | None
    applied: AppliedConfig | None
