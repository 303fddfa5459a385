"""The command `interlock`, also as `python -m interlock`.

Without arguments it serves a client on stdin, or prints help in a terminal. A client waits for its server at the
beginning of each chat, so a plain `serve` is recognised here, before anything else is imported.
"""

import gc
import sys

from interlock.cli.top.plain_serve import serve_if_plain


def main() -> int:
    """Run the command and return its exit code."""
    exit_code = serve_if_plain(sys.argv[1:])
    if exit_code is not None:
        return exit_code
    from interlock.cli.main import main as run_command_line  # noqa: PLC0415 — a plain `serve` needs none of it

    try:
        return run_command_line()
    finally:
        # The process ends: what is left need not be searched for garbage once more.
        gc.freeze()


if __name__ == "__main__":
    sys.exit(main())
