"""`interlock workflow …`: read, check, draw and begin workflow files. Only `new` writes, and only a new file.

Each command is imported when it is chosen: a server that starts does not pay for them, and a check does not pay for
what draws.
"""

# ruff: noqa: PLC0415 — see above
import argparse
import os
from collections.abc import Collection

from interlock.cli.group import Command, run_in_group
from interlock.cli.parsers import AddParser, add_json, described

_DESCRIPTION = """Work with workflow files. ID is the id of a workflow that some source holds, FILE a path.
With --json stdout holds one JSON value; where a command cannot go on, it is {"error": {"message", "fix"}}.
Exit codes: 0 fine, 1 faults were found or something was refused, 2 the command line is wrong."""


def add_workflow_commands(add_parser: AddParser, said: Collection[str]) -> None:
    """Add the command group to a parser's commands; filled in where it is among the words of the command line."""
    group = add_parser("workflow", help="list, check, draw and begin workflows", description=_DESCRIPTION)
    if "workflow" not in said:
        return
    actions = group.add_subparsers(dest="action", metavar="action", required=True).add_parser
    _add_readers(actions)
    check = _action(actions, "validate", "check workflow files and name every fault with its place")
    check.add_argument("paths", metavar="PATH", nargs="*", help="files or directories; without, the project's own")
    add_json(check)
    new = _action(actions, "new", "write a new workflow file to begin with; never overwrites")
    new.add_argument("workflow_id", metavar="ID", help="namespace.name, such as team.release_notes")
    new.add_argument("--from", dest="origin", metavar="WORKFLOW_ID", help="copy this workflow instead of an example")
    new.add_argument("--dir", dest="directory", help="where to write it (default: .interlock/workflows)")
    new.add_argument("--yaml", dest="is_yaml", action="store_true", help="write YAML with comments instead of JSON")
    actions("schema", help="print the JSON Schema of workflow files")


def _add_readers(actions: AddParser) -> None:
    listing = _action(actions, "list", "show what can be started, and what cannot and why")
    listing.add_argument("--tag", help="only workflows with this tag")
    listing.add_argument("--query", help="only workflows in whose id, name, description and tags all words stand")
    add_json(listing)
    inspect = _action(actions, "inspect", "show a workflow as an agent would see it before a start")
    inspect.add_argument("workflow_id", metavar="ID")
    inspect.add_argument("--detail", choices=["summary", "plan", "source"], default="summary")
    add_json(inspect)
    plan = _action(actions, "plan", "show the typed plan that a run would follow")
    plan.add_argument("workflow", metavar="ID|FILE")
    add_json(plan)
    graph = _action(actions, "graph", "draw the plan")
    graph.add_argument("workflow", metavar="ID|FILE")
    graph.add_argument("--format", dest="form", choices=["terminal", "mermaid", "dot"], default="terminal")


def _action(actions: AddParser, name: str, words: str) -> argparse.ArgumentParser:
    parser = actions(name, help=words, description=described(words))
    # A default here would undo a value that was given before the command.
    parser.add_argument("--workspace", default=argparse.SUPPRESS, help="the project (INTERLOCK_WORKSPACE)")
    parser.add_argument("--data-dir", default=argparse.SUPPRESS, help="whose config.toml holds (INTERLOCK_DATA_DIR)")
    parser.add_argument("--workflows-dir", default=argparse.SUPPRESS, help="your files (INTERLOCK_WORKFLOWS_DIR)")
    parser.add_argument("--core-source", default=argparse.SUPPRESS, help="mount a directory as core (for packagers)")
    return parser


def run_workflow(chosen: argparse.Namespace) -> int:
    """Run one command of the group and return its exit code."""
    return run_in_group("workflow", lambda: _command(chosen), as_json=getattr(chosen, "as_json", False))


def _command(chosen: argparse.Namespace) -> Command:
    """Import a command and return it with its arguments."""
    if chosen.action == "schema":
        from interlock.cli.workflow.new import run_schema

        return run_schema
    from interlock.cli.arguments import place_arguments
    from interlock.cli.workflow.places import places_of

    places = places_of(os.environ, place_arguments(chosen))
    match chosen.action:
        case "validate":
            from interlock.cli.workflow.validate import run_validate

            return lambda: run_validate(places, chosen.paths, as_json=chosen.as_json)
        case "graph":
            from interlock.cli.workflow.draw import run_graph

            return lambda: run_graph(places, chosen.workflow, chosen.form)
        case "plan":
            from interlock.cli.workflow.plan import run_plan

            return lambda: run_plan(places, chosen.workflow, as_json=chosen.as_json)
        case "list":
            from interlock.cli.workflow.list import run_list

            return lambda: run_list(places, tag=chosen.tag, query=chosen.query, as_json=chosen.as_json)
        case "inspect":
            from interlock.cli.workflow.inspect import run_inspect

            return lambda: run_inspect(places, chosen.workflow_id, chosen.detail, as_json=chosen.as_json)
        case _:
            from interlock.cli.workflow.new import NewWorkflow, run_new

            order = NewWorkflow(
                workflow_id=chosen.workflow_id,
                origin=chosen.origin,
                directory=chosen.directory,
                form="yaml" if chosen.is_yaml else "json",
            )
            return lambda: run_new(places, order)
