"""`interlock console`: pages in a browser that show what runs, what was done and why."""

import argparse
import os
import sys
import webbrowser
from functools import partial
from html import escape
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import TYPE_CHECKING

from interlock.cli.commands import add_places
from interlock.cli.options import place_arguments
from interlock.cli.outside.person import is_person, started_by_agent
from interlock.cli.outside.writing import command_settings
from interlock.cli.screen import StopError, say
from interlock.cli.session.chosen import chosen_run
from interlock.cli.session.place import Place
from interlock.cli.store import answered_by_store, kept_sessions, open_chosen_reader
from interlock.cli.upkeep.clients import PLACES, registration, serving_command
from interlock.cli.upkeep.gc import dry_run_json
from interlock.cli.upkeep.keys import read_key_ring_json
from interlock.cli.workflow.places import chosen_places
from interlock.config.model import FaultyConfig
from interlock.config.ports import local_ports
from interlock.config.settings import Settings, read_settings
from interlock.kernel.budgets.console import CONSOLE_PORT, CONSOLE_PORT_MAX
from interlock.kernel.ids import SigningKey
from interlock.service.clock import SystemClock
from interlock.service.run.plans import Plans
from interlock.store.ports.store import StoreReader
from interlock.store.regular_file import WRITE_FLAGS, open_regular

if TYPE_CHECKING:
    from interlock.console.decisions import Decisions
    from interlock.console.maintenance import Maintenance
    from interlock.console.reading import Sources

_NEEDED = ("jinja2", "markdown_it", "nh3")
_ANY_PAGE = ""
"""`--link` without a run."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_places(parser)
    port = f"the port on this machine (default: {CONSOLE_PORT})"
    parser.add_argument("--port", type=int, default=CONSOLE_PORT, help=port)
    parser.add_argument("--no-open", dest="opens", action="store_false", help="open no browser; print the link only")
    link = "print a one-time link for another browser, or with RUN a link that decides only the question of this run"
    parser.add_argument("--link", nargs="?", const=_ANY_PAGE, metavar="RUN", help=link)


def run(options: argparse.Namespace) -> int:
    """Serve pages until Ctrl-C, or print a link; return the exit code.

    Raises:
        StopError: The extra is not installed, the port is taken, or there is no key to sign a link with.
    """
    lacking = [name for name in _NEEDED if find_spec(name) is None]
    if lacking:
        message = f"The console needs packages that are not installed: {', '.join(lacking)}."
        raise StopError(
            message, "Install them with `pip install '.[console]'` in the checkout of Interlock.", exit_code=2
        )
    if not 0 < options.port <= CONSOLE_PORT_MAX:
        fix = f"Use a number from 1 to {CONSOLE_PORT_MAX}, or leave out --port."
        raise StopError(f"--port: {options.port} is not a port.", fix, exit_code=2)
    return _serve(options) if options.link is None else _print_link(options)


def _print_link(options: argparse.Namespace) -> int:
    from interlock.console.access import address_of, make_link  # noqa: PLC0415 — only this command needs the extra

    store, clock, by_person = open_chosen_reader(options), SystemClock(), is_person(options)
    with answered_by_store():
        ring = store.keys()
        if ring is None:
            fix = "Stop the console and start it again: it prints a link."
            raise StopError("There is no key yet to sign a link with, because no run was started.", fix, exit_code=1)
        if options.link != _ANY_PAGE:
            say(_decision_address(options, store, ring.current, is_by_person=by_person))
            return 0
    say(address_of(options.port, make_link(ring.current, options.port, clock, is_person=by_person)))
    return 0


def _decision_address(options: argparse.Namespace, store: StoreReader, key: SigningKey, *, is_by_person: bool) -> str:
    """Return a link that decides the question for which a run waits.

    Raises:
        StopError: There is no such run, or it waits for no answer.
    """
    from interlock.console.decision_link import make_decision_link  # noqa: PLC0415 — as above
    from interlock.console.decisions import find_question, linked_question  # noqa: PLC0415 — as above

    session, chosen = chosen_run(store, Plans(store), options.link)
    assert chosen.tip is not None, "a run has a root"
    asked = find_question(store, Plans(store), session, chosen.run)
    if asked is None:
        fix = "`interlock inbox` lists what waits for a person."
        raise StopError(f"Run {options.link} does not wait for an answer.", fix, exit_code=1)
    question = linked_question(asked, is_person=is_by_person)
    return make_decision_link(key, options.port, question, SystemClock())


def _serve(options: argparse.Namespace) -> int:
    from interlock.console.access import Access, address_of, make_secret  # noqa: PLC0415 — as above
    from interlock.console.app import build_app  # noqa: PLC0415 — as above
    from interlock.console.serve import bind_port, serve_console  # noqa: PLC0415 — as above

    sources, decisions = _open_sources(options), _open_decisions(options)
    maintenance = _open_maintenance(options, decisions.settings)
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
    # Into a pipe the link is printed at once, too.
    sys.stdout.flush()
    with TemporaryDirectory(prefix="interlock-console-") as place:
        page = Path(place) / "open.html"
        if options.opens:
            _open_browser(page, address)
        forget = partial(page.unlink, missing_ok=True)
        access, ending = Access(port=options.port, clock=clock, first_link=link, when_entered=forget), Event()
        serve_console(listening, build_app(sources, decisions, maintenance, access, ending), decisions, ending)
    return 0


def _open_browser(page: Path, address: str) -> None:
    """Open a private file that leads to the address: every user of the machine can read a command line (CON-4)."""
    link = escape(address)
    text = f"""<!doctype html>
<meta charset="utf-8"><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url={link}">
<title>Interlock</title><p><a href="{link}">Open the console</a></p>
"""
    handle, _ = open_regular(page, WRITE_FLAGS | os.O_CREAT | os.O_EXCL)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(text)
    webbrowser.open(page.as_uri())


def _open_sources(options: argparse.Namespace) -> "Sources":
    from interlock.console.reading import Sources  # noqa: PLC0415 — as above

    places = chosen_places(options)
    return Sources(
        store=open_chosen_reader(options),
        catalog=places.catalog,
        workspace=places.workspace,
        repo=Place(options).repo,
        clock=SystemClock(),
        keys=frozenset((one.name, one.public_key) for one in command_settings(options).config.sources),
    )


def _open_decisions(options: argparse.Namespace) -> "Decisions":
    from interlock.console.decisions import Decisions  # noqa: PLC0415 — as above

    settings = command_settings(options)
    return Decisions(ports=local_ports(settings), settings=settings, is_of_agent=partial(started_by_agent, options))


def _open_maintenance(options: argparse.Namespace, settings: Settings) -> "Maintenance":
    from interlock.console.maintenance import Maintenance  # noqa: PLC0415 — as above

    places = place_arguments(options)

    def read_again() -> Settings | str:
        found = read_settings(os.environ, places)
        return "\n".join(found.lines()) if isinstance(found, FaultyConfig) else found

    def clients() -> dict[str, str]:
        command = serving_command(os.environ, places)
        return {name: registration(name, command).in_words() for name in PLACES}

    return Maintenance(
        keys=lambda: read_key_ring_json(settings.data_dir),
        collection=lambda: dry_run_json(settings.data_dir, settings.config.retention_days),
        kept=lambda: kept_sessions(settings.data_dir),
        clients=clients,
        read_settings=read_again,
        authoring=chosen_places(options).author,
    )
