"""`interlock schemas generate | verify`: the published files, made from the code and held to it (locks 8, 16.2)."""

import argparse
import difflib
from pathlib import Path

from interlock.server.publish import published_files

ROOT = Path(__file__).parent.parent.parent.parent
"""The checkout: generated files lie beside the package, not in it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("action", choices=["generate", "verify"])


def run(options: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    return run_schemas(options.action)


def run_schemas(action: str, root: Path = ROOT) -> int:
    """Write the published files, or compare them byte for byte with a fresh generation; return the exit code."""
    fresh = published_files()
    if not (root / "pyproject.toml").is_file():
        print("interlock schemas works in a checkout of Interlock, where tool-schemas/ lies.")
        return 2
    if action == "generate":
        for name, text in fresh.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        for stale in _stale(fresh, root):
            stale.unlink()
        print(f"wrote {len(fresh)} files")
        return 0
    drifted = [line for name, text in fresh.items() if (line := _drift(root / name, name, text)) is not None]
    drifted += [f"{path.relative_to(root)}: is not generated any more" for path in _stale(fresh, root)]
    if drifted:
        print("\n".join(drifted))
        print("Run `make generate` and commit what it wrote; generated files are never edited by hand.")
        return 1
    print(f"{len(fresh)} generated files are up to date")
    return 0


def _stale(fresh: dict[str, str], root: Path) -> list[Path]:
    found = sorted((root / "tool-schemas").rglob("*.json"))
    return [path for path in found if path.relative_to(root).as_posix() not in fresh]


def _drift(path: Path, name: str, fresh: str) -> str | None:
    """Return which file drifted and at which line first, or None if it is the same."""
    try:
        stored = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return f"{name}: is missing"
    if stored == fresh:
        return None
    changes = difflib.unified_diff(stored.splitlines(), fresh.splitlines(), "committed", "generated", n=0, lineterm="")
    shown = [line for line in changes if not line.startswith(("---", "+++"))][:6]
    return "\n  ".join([f"{name}: differs from what the code generates", *shown])
