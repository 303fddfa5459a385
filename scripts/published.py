"""Generate the published files, or verify that they are what the code generates: `published.py generate | verify`."""

import sys
from pathlib import Path

from interlock.cli.schemas import run_schemas

if __name__ == "__main__":
    sys.exit(run_schemas(sys.argv[1], root=Path(__file__).parent.parent))
