"""Verify that what is published is what the code generates: the checkout, a wheel built from it, a running server.

Files are compared byte for byte, the `tools/list` of a server as parsed JSON in both protocol eras. Each difference is
printed with its file and its line.
"""

import sys
import tempfile
from pathlib import Path

from publish.drift import build_wheel, file_drift, installed_server, server_drift, wheel_drift
from publish.files import published_files

ROOT = Path(__file__).parent.parent


def main() -> int:
    """Compare everything and return the exit code: 1 if anything differs."""
    fresh = published_files()
    drifted = list(file_drift(ROOT, fresh))
    with tempfile.TemporaryDirectory() as directory:
        wheel = build_wheel(ROOT, Path(directory))
        drifted += wheel_drift(wheel, fresh)
        drifted += server_drift(*installed_server(wheel, Path(directory)), fresh)
    if drifted:
        print("\n".join(drifted))
        print("Run `make generate` and commit what it wrote; generated files are never edited by hand.")
        return 1
    print(f"{len(fresh)} generated files, the wheel and a running server agree with the code")
    return 0


if __name__ == "__main__":
    sys.exit(main())
