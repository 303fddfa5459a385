"""`interlock inbox`: everything that waits for a person, oldest first, each with the command that answers it."""

import argparse

from interlock.cli.options import add_store_options
from interlock.cli.outside.writing import command_settings
from interlock.cli.screen import counted, say, say_json
from interlock.cli.session.chosen import listing, say_unreadable
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.config.checks import PROJECT_CHECKS, project_above, project_checks
from interlock.config.settings import Settings
from interlock.service.run.plans import Plans
from interlock.service.trust.inbox import InboxItem, inbox_of
from interlock.store.opening import open_check_files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_store_options(parser)
    parser.add_argument("--workspace", default=argparse.SUPPRESS, help="directory of the project (INTERLOCK_WORKSPACE)")


def run(options: argparse.Namespace) -> int:
    """Print what waits for a person and return the exit code.

    Raises:
        StopError: The configuration has faults, or the store failed.
    """
    settings, store = command_settings(options), open_chosen_reader(options)
    with answered_by_store():
        plans = Plans(store)
        found = listing(store, plans)
        say_unreadable(found.unreadable)
        items = [*_checks_to_allow(settings), *inbox_of(store, plans, found, settings.config.channels)]
    if options.as_json:
        say_json({"items": [one.to_json() for one in items]})
        return 0
    for one in items:
        say(f"{one.title}\n{one.text}\n  {one.command}\n")
    say(f"{counted(len(items), 'thing')} waiting for a person." if items else "Nothing waits for a person.")
    return 0


def _checks_to_allow(settings: Settings) -> list[InboxItem]:
    """Return the project's file with checks of its own, if it is not allowed as it is."""
    directory = project_above(settings.workspace) if settings.workspace is not None else None
    project = project_checks(directory) if directory is not None else None
    if project is None or open_check_files(settings.data_dir).allowed().get(str(project.directory)) == project.digest:
        return []
    names = ", ".join(one.name for one in project.checks) or project.fault or "no check"
    return [
        InboxItem(
            kind="check_to_allow",
            title=f"The project's own checks ({PROJECT_CHECKS}) are not allowed as they are.",
            text=names,
            command=f"interlock checks allow --workspace {project.directory}",
        )
    ]
