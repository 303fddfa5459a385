"""`python -m interlock` is the command `interlock`."""

import sys

from interlock.cli.main import main

sys.exit(main())
