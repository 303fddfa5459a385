"""The command `interlock`: with a client on stdin it serves, in a terminal it helps."""

import argparse
import gc
import signal
import sys
from collections.abc import Sequence
from functools import partial

from interlock.cli.config.command import add_config_commands, run_config
from interlock.cli.edge import run_at_edge
from interlock.cli.output import printing
from interlock.cli.session.command import add_session_commands, run_session
from interlock.cli.upkeep.command import add_upkeep_commands, run_upkeep
from interlock.cli.workflow.command import add_workflow_commands, run_workflow
from interlock.version import VERSION

_GROUPS = {
    "workflow": run_workflow,
    "session": run_session,
    "config": run_config,
    **dict.fromkeys(("gc", "keys", "doctor"), run_upkeep),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    said = sys.argv[1:] if arguments is None else arguments
    parser = _parser(said)
    chosen = parser.parse_args(said)
    if chosen.command == "serve" or (chosen.command is None and not _is_in_terminal()):
        return run_at_edge(partial(_serve, chosen), "serve")
    name, as_json = chosen.command or "help", getattr(chosen, "as_json", False)
    return run_at_edge(partial(printing, partial(_run, parser, chosen)), name, as_json=as_json)


def _is_in_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()  # pyright: ignore[reportUnnecessaryComparison] — it may be closed


def _run(parser: argparse.ArgumentParser, chosen: argparse.Namespace) -> int:
    match chosen.command:
        case "version":
            print(f"interlock {VERSION}")
            return 0
        case name if name in _GROUPS:
            return _GROUPS[chosen.command](chosen)
        case "demo":
            from interlock.cli.demo import run_demo  # noqa: PLC0415 — a server does not pay for it

            return run_demo(keep=chosen.keep)
        case _:
            parser.print_help()
            return 0


def _parser(said: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser. Making one for every command of every group takes longer than some commands."""
    parser = argparse.ArgumentParser(
        prog="interlock",
        description="A durable workflow server for AI agents. Without a command and with a client on stdin, it serves.",
    )
    _add_places(parser)
    commands = parser.add_subparsers(dest="command", metavar="command")
    serve = commands.add_parser("serve", help="serve MCP over stdin and stdout")
    _add_places(serve)
    serve.add_argument("--core-source", help="mount a directory as core, beside what ships (for packagers and tests)")
    demo = commands.add_parser("demo", help="watch a run survive kill -9, then fork and verify it")
    demo.add_argument("--keep", action="store_true", help="keep the demo's data directory and print its path")
    add_workflow_commands(commands.add_parser, said)
    add_session_commands(commands.add_parser, said)
    add_config_commands(commands.add_parser, said)
    add_upkeep_commands(commands.add_parser)
    commands.add_parser("version", help="print the version")
    return parser


def _add_places(parser: argparse.ArgumentParser) -> None:
    # Given before or after the command; a default of the later parser must not undo the earlier one's value.
    parser.add_argument("--data-dir", default=argparse.SUPPRESS, help="where sessions are kept (INTERLOCK_DATA_DIR)")
    parser.add_argument("--workspace", default=argparse.SUPPRESS, help="the project (INTERLOCK_WORKSPACE)")
    parser.add_argument(
        "--workflows-dir", default=argparse.SUPPRESS, help="your own workflow files (INTERLOCK_WORKFLOWS_DIR)"
    )


def _serve(chosen: argparse.Namespace) -> int:
    # Nothing that is imported becomes garbage, and looking for some takes a tenth of the start; `run_server` resumes.
    gc.disable()
    # Until the server listens to signals itself, Ctrl-C ends the process as it ends others: without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from interlock.cli.arguments import place_arguments  # noqa: PLC0415 — the SDK takes half a second; help need not
    from interlock.cli.serve import run_server  # noqa: PLC0415 — see above

    return run_server(place_arguments(chosen))
