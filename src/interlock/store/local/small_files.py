"""Small files of a fixed form: read within a bound, and anything that is not of their form is nothing.

They lie in directories that people can write to, so they may hold anything of any size.
"""

from interlock.kernel.budgets.files import SMALL_FILE_BYTES_MAX
from interlock.store.local.files import FileOps


def read_small(files: FileOps, path: str) -> bytes:
    """Return the beginning of a file, which is all of it if it is of its form. Raises as `FileOps.read` does."""
    return files.read(path, bytes_max=SMALL_FILE_BYTES_MAX)
