"""Small files of a fixed form: read within a bound, and anything that is not of their form is nothing.

They lie in directories that people can write to, so they may hold anything of any size.
"""

from interlock.kernel.budgets.files import SMALL_FILE_BYTES_MAX
from interlock.kernel.canonical import digest_of_bytes
from interlock.store.local.files import FileOps


def read_small(files: FileOps, path: str) -> bytes:
    """Return the beginning of a file, which is all of it if it is of its form. Raises as `FileOps.read` does."""
    return files.read(path, bytes_max=SMALL_FILE_BYTES_MAX)


def settled_mark(data: bytes) -> bytes:
    """Return what the settled mark of a small file holds: the digest of the bytes that are known to be durable."""
    return f"{digest_of_bytes(data)}\n".encode("ascii")
