"""Hold branch coverage: 100 % of the pure rooms and the store, 95 % over all. Reads the data of `coverage run`."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

WHOLE_ROOMS = ("kernel", "record", "define", "plan", "engine", "views", "store")
TOTAL_MIN = 95.0


def measured() -> dict[str, Any]:
    """Return coverage's own JSON report."""
    report = Path(".coverage.json")
    subprocess.run([sys.executable, "-m", "coverage", "json", "-q", "-o", str(report)], check=True)
    return json.loads(report.read_text(encoding="utf-8"))


def room_of(path: str) -> str:
    """Return the room a source file lies in."""
    return path.split("interlock/", 1)[1].split("/", maxsplit=1)[0]


def main() -> int:
    """Print what is missing and return 1 if a floor is not held."""
    report = measured()
    gaps = [
        f"{path}: lines {data['missing_lines']} branches {data['missing_branches']}"
        for path, data in sorted(report["files"].items())
        if room_of(path) in WHOLE_ROOMS and data["summary"]["percent_covered"] < 100  # noqa: PLR2004 — all of it
    ]
    total = report["totals"]["percent_covered"]
    print("\n".join(gaps))
    print(f"{total:.1f} % over all, at least {TOTAL_MIN}; {len(gaps)} files of the whole rooms have gaps")
    return 1 if gaps or total < TOTAL_MIN else 0


if __name__ == "__main__":
    sys.exit(main())
