"""Read-only queries about the place of a data directory: file system, permissions, free space."""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "glusterfs", "lustre", "davfs", "9p", "drvfs", "vboxsf"}
)
"""File systems of other machines: locks and syncs are not reliable there (DOC-4)."""
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
"""Files that synchronising programs leave at the top of a directory."""
_MOUNTS = Path("/proc/self/mountinfo")


def nearest_directory(path: Path) -> Path:
    """Return a directory, or the nearest parent that exists."""
    return next((one for one in (path, *path.parents) if one.is_dir()), Path(path.anchor))


def free_bytes(path: Path) -> int:
    """Return the free bytes on the disk of a directory."""
    return shutil.disk_usage(nearest_directory(path)).free


def loose_mode(path: Path) -> int | None:
    """Return a directory's mode if others than its user can enter or list it. Without file modes (Windows), None."""
    mode = stat.S_IMODE(path.stat().st_mode)
    return mode if os.name != "nt" and mode & 0o077 else None


def network_file_system(path: Path) -> str | None:
    """Return the kind of the network file system that a directory is on; None if it is local or unknown."""
    kind = _file_system(nearest_directory(path).resolve())
    return kind if kind in NETWORK or (kind or "").startswith(_NETWORK_FUSE) else None


def synchronised_directory(path: Path) -> str | None:
    """Return the directory, or a parent, that seems to be synchronised with other machines; else None."""
    for one in (path, *path.parents):
        if _is_synchronised(one):
            return str(one)
    return None


def _is_synchronised(directory: Path) -> bool:
    name = directory.name.casefold()
    is_named = any(name == known or name.startswith((f"{known} ", f"{known}-")) for known in _SYNCED_NAMES)
    is_placed = any(directory.parts[-2:] == place for place in _SYNCED_PLACES)
    # A mark that cannot be read counts as absent.
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
            yield Path(_decode_octal(fields[4])), after.split(" ")[0]


def _decode_octal(text: str) -> str:
    """Decode a mount point: the list writes spaces and similar characters as octal numbers."""
    for code in ("040", "011", "012"):
        text = text.replace(f"\\{code}", chr(int(code, 8)))
    return text.replace("\\134", "\\")
