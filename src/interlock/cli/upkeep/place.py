"""Where a data directory stands: on what kind of file system, how private, how much is free. Only looks."""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "glusterfs", "lustre", "davfs", "9p", "drvfs", "vboxsf"}
)
"""File systems of other machines: what is locked or synced there is not what it is here (DOC-4)."""
_NETWORK_FUSE = ("fuse.sshfs", "fuse.rclone", "fuse.gvfsd", "fuse.s3fs", "fuse.glusterfs", "fuse.davfs", "fuse.gcsfuse")
_SYNCED_NAMES = (
    "dropbox",
    "onedrive",
    "google drive",
    "googledrive",
    "icloud drive",
    "nextcloud",
    "owncloud",
)
_SYNCED_PLACES = (("Library", "Mobile Documents"), ("Library", "CloudStorage"))
_SYNCED_MARKS = (".dropbox", ".stfolder", ".sync", ".nextcloudsync.log", ".owncloudsync.log")
"""What programs that synchronise a directory leave at its top."""
_MOUNTS = Path("/proc/self/mountinfo")


def nearest(path: Path) -> Path:
    """Return a directory, or the nearest one above it that is there."""
    return next((one for one in (path, *path.parents) if one.is_dir()), Path(path.anchor))


def free_bytes(path: Path) -> int:
    """Return how many bytes may still be written where a directory stands."""
    return shutil.disk_usage(nearest(path)).free


def loose_mode(path: Path) -> int | None:
    """Return a directory's mode if others than its user can enter or list it. Where modes mean nothing, None."""
    mode = stat.S_IMODE(path.stat().st_mode)
    return mode if os.name != "nt" and mode & 0o077 else None


def network_file_system(path: Path) -> str | None:
    """Return the kind of network file system that a directory stands on, as far as the system tells; else None."""
    kind = _file_system(nearest(path).resolve())
    return kind if kind in NETWORK or (kind or "").startswith(_NETWORK_FUSE) else None


def synchronising(path: Path) -> str | None:
    """Return the directory above, or the directory itself, that looks synchronised with other machines; else None."""
    for one in (path, *path.parents):
        if _looks_synchronised(one):
            return str(one)
    return None


def _looks_synchronised(directory: Path) -> bool:
    name = directory.name.casefold()
    is_named = any(name == known or name.startswith((f"{known} ", f"{known}-")) for known in _SYNCED_NAMES)
    is_placed = any(directory.parts[-2:] == place for place in _SYNCED_PLACES)
    # Where others' marks cannot be seen, none is claimed to be there.
    return is_named or is_placed or any(os.path.exists(directory / mark) for mark in _SYNCED_MARKS)  # noqa: PTH110


def _file_system(path: Path) -> str | None:
    """Return the kind of the file system that a path is on: that of the longest mount point above it."""
    best: tuple[int, str] = (-1, "")
    for point, kind in _mounts():
        if path.is_relative_to(point) and len(point.parts) >= best[0]:
            best = (len(point.parts), kind)
    return best[1] or None


def _mounts() -> Iterator[tuple[Path, str]]:
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return
    for line in lines:
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) > 4 and after:  # noqa: PLR2004 — the fifth field is the mount point
            yield Path(_unescaped(fields[4])), after.split(" ")[0]


def _unescaped(text: str) -> str:
    """Return a mount point as it is called: the list writes spaces and the like as octal numbers."""
    for code in ("040", "011", "012"):
        text = text.replace(f"\\{code}", chr(int(code, 8)))
    return text.replace("\\134", "\\")
