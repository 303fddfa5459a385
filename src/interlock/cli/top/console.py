"""`interlock console`: pages in a browser that show what runs, what was done and why."""

import argparse
import webbrowser
from importlib.util import find_spec
from typing import TYPE_CHECKING

from interlock.cli.commands import add_places
from interlock.cli.screen import StopError, say
from interlock.cli.session.place import read_place
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.cli.workflow.places import chosen_places
from interlock.kernel.console_budgets import CONSOLE_PORT, CONSOLE_PORT_MAX
from interlock.service.clock import SystemClock

if TYPE_CHECKING:
    from interlock.console.reading import Sources

_NEEDED = ("jinja2", "markdown_it", "nh3")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_places(parser)
    port = f"the port on this machine (default: {CONSOLE_PORT})"
    parser.add_argument("--port", type=int, default=CONSOLE_PORT, help=port)
    parser.add_argument("--no-open", dest="opens", action="store_false", help="open no browser; print the link only")
    link = "print a one-time link for another browser, of the console that runs on this port"
    parser.add_argument("--link", dest="is_link", action="store_true", help=link)


def run(options: argparse.Namespace) -> int:
    """Serve pages until Ctrl-C, or print a link; return the exit code.

    Raises:
        StopError: The extra is not installed, the port is taken, or there is no key to sign a link with.
    """
    lacking = [name for name in _NEEDED if find_spec(name) is None]
    if lacking:
        message = f"The console needs packages that are not installed: {', '.join(lacking)}."
        raise StopError(message, "Install them with: pip install 'interlock[console]'", exit_code=2)
    if not 0 < options.port <= CONSOLE_PORT_MAX:
        fix = f"Use a number from 1 to {CONSOLE_PORT_MAX}, or leave out --port."
        raise StopError(f"--port: {options.port} is not a port.", fix, exit_code=2)
    return _print_link(options) if options.is_link else _serve(options)


def _print_link(options: argparse.Namespace) -> int:
    from interlock.console.access import address_of, make_link  # noqa: PLC0415 — only this command needs the extra

    with answered_by_store():
        ring = open_chosen_reader(options).keys()
    if ring is None:
        fix = "Stop the console and start it again: it prints a link."
        raise StopError("There is no key yet to sign a link with, because no run was started.", fix, exit_code=1)
    say(address_of(options.port, make_link(ring.current, options.port, SystemClock())))
    return 0


def _serve(options: argparse.Namespace) -> int:
    from interlock.console.access import Access, address_of, make_secret  # noqa: PLC0415 — as above
    from interlock.console.serve import bind_port, serve_console  # noqa: PLC0415 — as above

    sources = _open_sources(options)
    try:
        listening = bind_port(options.port)
    except OSError as error:
        link = f"`interlock console --link --port {options.port}` prints a link"
        fix = f"If it is a console of yours, {link}. Else name another --port."
        raise StopError(f"Port {options.port} cannot be used: {error.strerror}.", fix, exit_code=1) from error
    clock = SystemClock()
    link = make_secret(clock)
    address = address_of(options.port, link)
    say(f"The console: {address}")
    say("The link works once. Ctrl-C ends the console.")
    if options.opens:
        webbrowser.open(address)
    serve_console(listening, sources, Access(port=options.port, clock=clock, first_link=link))
    return 0


def _open_sources(options: argparse.Namespace) -> "Sources":
    from interlock.console.reading import Sources  # noqa: PLC0415 — as above

    places = chosen_places(options)
    return Sources(
        store=open_chosen_reader(options),
        catalog=places.catalog,
        workspace=places.workspace,
        repo=read_place(options).repo,
        clock=SystemClock(),
    )
