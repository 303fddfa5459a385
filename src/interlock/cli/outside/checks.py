"""`interlock checks`: the commands that Interlock runs itself, and the checks of projects that a person allows."""

import argparse
import os
import shlex

from interlock.channels.check_config import CheckConfig
from interlock.cli.options import add_store_options
from interlock.cli.outside.person import require_person
from interlock.cli.outside.writing import command_settings, finish_sending
from interlock.cli.screen import RefusedError, StopError, say, say_json
from interlock.cli.session.chosen import chosen_run
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.config.checks import PROJECT_CHECKS, TAKEN, ProjectChecks
from interlock.config.project_checks import allow_project, chosen_project, project_state
from interlock.config.settings import Settings
from interlock.kernel.errors import Refusal
from interlock.record.world import check_end
from interlock.service.run.context import load_run_context
from interlock.service.run.plans import Plans
from interlock.service.trust.run_check import CheckReport, run_check

_NO_CHECKS = "Write one in `config.toml`, below a line `[checks.NAME]`: `command` and `workspaces`."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of one of the four commands."""
    add_store_options(parser)
    if parser.prog.endswith(" run"):
        parser.add_argument("wanted", metavar="RUN", help="a run label or id, or a node id, that waits for a check")
        parser.add_argument(
            "--after", type=int, metavar="N", help="run it only if it has at most N results (default: in any case)"
        )
        return
    parser.add_argument("--workspace", default=argparse.SUPPRESS, help="directory of the project (INTERLOCK_WORKSPACE)")


def run(options: argparse.Namespace) -> int:
    """Run the chosen command. Return the exit code: 1 if a check did not pass.

    Raises:
        StopError: There is nothing to allow or to run, or the store failed.
    """
    settings = command_settings(options)
    match options.action:
        case "list":
            return _list(settings, as_json=options.as_json)
        case "run":
            return _run(options, settings)
        case _:
            return _allow(options, settings, is_allowed=options.action == "allow")


def _list(settings: Settings, *, as_json: bool) -> int:
    """Print the checks of the configuration, and those of the project with what the user has to do."""
    project = chosen_project(settings)
    state = project_state(settings, project) if project is not None else None
    if as_json:
        own = [_plain(one) for one in settings.config.checks]
        found = None if project is None else {**_described(project), "state": state}
        say_json({"checks": own, "project": found})
        return 0
    for one in settings.config.checks:
        say(f"{one.name}: {shlex.join(one.argv)}\n  in {', '.join(one.workspaces)}")
    if project is not None:
        say(f"{project.directory / PROJECT_CHECKS}: {state}")
        for one in project.checks:
            say(f"{one.name}: {shlex.join(one.argv)}")
    if not settings.config.checks and project is None:
        say(f"No check is defined. {_NO_CHECKS}")
    return 0


def _allow(options: argparse.Namespace, settings: Settings, *, is_allowed: bool) -> int:
    """Show what the project's checks run, and allow their file as it is now; or forget that it was allowed."""
    project = chosen_project(settings)
    if project is None:
        fix = f"Name its directory with `--workspace`. {_NO_CHECKS}"
        raise StopError(f"There is no project with a file `{PROJECT_CHECKS}` here.", fix, exit_code=1)
    if is_allowed and project.fault is not None:
        raise StopError(f"{project.directory / PROJECT_CHECKS}: {project.fault}", "Correct the file.", exit_code=1)
    if is_allowed:
        require_person(options, "allows the checks of a project")
    with answered_by_store():
        allow_project(settings, project, is_allowed=is_allowed)
    if options.as_json:
        say_json({**_described(project), "state": project_state(settings, project)})
        return 0
    for one in project.checks if is_allowed else ():
        say(f"{one.name}: {shlex.join(one.argv)}")
    say(f"{project.directory / PROJECT_CHECKS}: {project_state(settings, project)}")
    return 0


def _run(options: argparse.Namespace, settings: Settings) -> int:
    """Run the check that a run waits for now, and print its result."""
    from interlock.config.ports import local_ports  # noqa: PLC0415 — it reads workflows, and a list does not

    store, ports = open_chosen_reader(options), local_ports(settings)
    with answered_by_store():
        session, chosen = chosen_run(store, Plans(store), options.wanted)
        outcome = run_check(ports, load_run_context(session, chosen, ports.read.plans), options.after)
        finish_sending(ports)
    if isinstance(outcome, Refusal):
        raise RefusedError(outcome)
    if outcome is None:
        fix = "Wait for its result: `interlock session show` prints it."
        # A server that began this process reads its exit code.
        exit_code = 1 if options.after is None else TAKEN
        raise StopError("Another process runs this check, or has just run it.", fix, exit_code=exit_code)
    return _report(outcome, as_json=options.as_json)


def _report(outcome: CheckReport, *, as_json: bool) -> int:
    fields = outcome.result.fields
    if as_json:
        say_json({"run": outcome.waiting.run, **fields, "isAdvanced": outcome.is_advanced})
    else:
        if fields["output"]:
            say(str(fields["output"]))
        word = "passed" if fields["passed"] else f"did not pass ({check_end(fields)})"
        advanced = " The run continued." if outcome.is_advanced else " The run waits for a further result."
        say(f"Run `{outcome.waiting.label}`: the check `{fields['check']}` {word}.{advanced}")
    return 0 if fields["passed"] else 1


def _described(project: ProjectChecks) -> dict[str, object]:
    return {
        "directory": os.fsencode(project.directory).decode("utf-8", "backslashreplace"),
        "digest": project.digest,
        "checks": [_plain(one) for one in project.checks],
    }


def _plain(one: CheckConfig) -> dict[str, object]:
    return {
        "name": one.name,
        "command": list(one.argv),
        "workspaces": list(one.workspaces),
        "timeoutS": one.timeout_s,
        "protect": list(one.protect),
    }
