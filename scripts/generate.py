"""Write every generated file of the checkout: tool schemas, reference pages, the wheel's tools."""

import sys
from pathlib import Path

from publish.drift import stale_files
from publish.files import published_files

ROOT = Path(__file__).parent.parent


def main() -> int:
    """Write the files, remove those that are not generated any more, and return the exit code."""
    fresh = published_files()
    for name, text in fresh.items():
        (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / name).write_text(text, encoding="utf-8", newline="\n")
    for name in stale_files(ROOT, fresh):
        (ROOT / name).unlink()
    print(f"wrote {len(fresh)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
