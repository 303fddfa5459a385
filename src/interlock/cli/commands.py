"""Every command: its name, its module and its line of help.

A command is one module with `add_arguments` and `run`, and one row here. Only modules
whose command is named on the command line are imported, so that no command waits for the imports of another.
"""

import argparse
import sys
from collections.abc import Callable, Collection, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol, TypeAlias, cast

from interlock.cli.frame.running import NOT_PRINTED, printing
from interlock.version import VERSION

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


class CommandModule(Protocol):
    """The interface of a command's module."""

    def add_arguments(self, parser: argparse.ArgumentParser, /) -> None:
        """Add the command's arguments to its parser."""
        ...

    def run(self, options: argparse.Namespace, /) -> int:
        """Run the command and return its exit code.

        Raises:
            StopError: It cannot continue.
        """
        ...


class Command(NamedTuple):
    """A command. `module` is a name below `interlock.cli`; if it is empty, `main` runs the command."""

    name: str
    help: str
    module: str = ""


class Group(NamedTuple):
    """Commands with a common first word, such as `session list`."""

    name: str
    help: str
    description: str
    commands: tuple[Command, ...]


_CONTRACT = "contract"

WORKFLOW = Group(
    "workflow",
    "list, check, draw and create workflows",
    """Work with workflow files. ID is the id of a workflow from any source; FILE is a path.
With --json, a command prints one JSON value; if it fails, {"error": {"code", "message", "retry", "suggestion"}}.
Exit codes: 0 success, 1 faults found or request refused, 2 wrong command line.""",
    (
        Command("list", "list workflows, and each workflow file that has faults with its first fault", "workflow.list"),
        Command("inspect", "show a workflow as an agent can inspect it before it starts a run", "workflow.inspect"),
        Command("plan", "show the compiled plan of a workflow", "workflow.plan"),
        Command("builtins", "list the built-in contracts, routines, features and texts", "workflow.builtins"),
        Command("adapter", "show the context keys that a workflow declares and sets", "workflow.adapter"),
        Command("decide", "show what a step would set and decide with a context; record nothing", "workflow.decide"),
        Command("graph", "draw the plan of a workflow", "workflow.graph"),
        Command("validate", "check workflow files and report every fault with its line", "workflow.validate"),
        Command("new", "write a new workflow file from an example; never overwrite a file", "workflow.new"),
        Command("schema", "print the JSON Schema of workflow files, or of plan files", "workflow.schema"),
    ),
)
SESSION = Group(
    "session",
    "inspect, end, export, import and repair recorded sessions and runs",
    """Inspect recorded sessions, end runs, protect sessions from deletion, export, import and repair them.
Exit codes: 0 success, 1 a check failed or a session was not found, 2 wrong command line.""",
    (
        Command("list", "list runs, the newest first", "session.list"),
        Command("show", "show one session: its runs, their steps, evidence and open gaps", "session.evidence.show"),
        Command("plan", "show the plan that a run follows, as it is pinned", "session.evidence.plan"),
        Command("diff", "compare two runs or two branches, step by step", "session.evidence.diff"),
        Command("search", "find words in everything that was recorded", "session.evidence.search"),
        Command(
            "context",
            "show the context of a run, and the step that set each key",
            "session.evidence.context",
        ),
        Command(
            "timeline",
            "list what happened in a session, oldest first",
            "session.evidence.timeline",
        ),
        Command("graph", "draw runs with their branches, refused attempts and checkpoints", "session.evidence.graph"),
        Command("status", "print the status of each run in one line", "session.status"),
        Command("lifecycle", "print the events of a run, from its start to its end", "session.lifecycle.events"),
        Command("state", "show the state of each step of a run, and where to resume", "session.lifecycle.state"),
        Command(
            "executions", "show a run as executions of blocks, with who worked on each", "session.lifecycle.executions"
        ),
        Command(
            "conformance", "check that runs or a file of events follow their plan", "session.lifecycle.conformance"
        ),
        Command("open-gaps", "list open gaps: the reason, the step and how to resolve each", "session.open_gaps"),
        Command("report", "write a session as one Markdown or HTML file for a reviewer", "session.evidence.report"),
        Command("turns", "list the turns of a run: model, tokens, money, tools, errors", "session.lifecycle.turns"),
        Command("verify", "compute every recorded decision again and report those that differ", "session.verify"),
        Command("explain", "show why a run is at a step: conditions, inputs, the path taken", "session.explain"),
        Command("export", "write a session and everything that it refers to into one file", "session.export"),
        Command("import", "create a session from an exported file", "session.import_"),
        Command("repair", "copy the intact part of a damaged session into a new session", "session.repair"),
        Command("redact", "copy a session into a new one without a value, such as a secret", "session.redact"),
        Command("cancel", "end a run that nobody wants finished", "session.lifecycle.end"),
        Command("fail", "end a run that cannot be finished", "session.lifecycle.end"),
        Command("delete", "delete a session that should never have been written", "session.lifecycle.delete"),
        Command("keep", "mark sessions so that `gc` keeps them whatever their age", "session.keep"),
        Command("unkeep", "remove the protection of `keep`, so that sessions expire again", "session.keep"),
    ),
)
CONTRACT = Group(
    "contract",
    "check, publish, start and assess contracts",
    """Work with blocks, flows and contracts: what work is, what it must achieve, and whether it did.
Exit codes: 0 success, 1 faults found or request refused, 2 wrong command line.""",
    (
        Command(
            "validate", "check files of blocks, flows and contracts, and report every fault", f"{_CONTRACT}.validate"
        ),
        Command("schema", "print the JSON Schema of files of blocks, flows and contracts", f"{_CONTRACT}.schema"),
        Command("publish", "keep a contract and its parts for ever, under their versions", f"{_CONTRACT}.publish"),
        Command("list", "list contracts, and the sessions that execute one", f"{_CONTRACT}.list"),
        Command("show", "show a contract: its work and its outcomes", f"{_CONTRACT}.show"),
        Command("graph", "draw a contract: its work side, its outcome side and their state", f"{_CONTRACT}.graph"),
        Command("start", "execute a contract in a new session", f"{_CONTRACT}.start"),
        Command("resume", "begin the runs that an interrupted start did not begin", f"{_CONTRACT}.resume"),
        Command("status", "show the work and the goals of a contract", f"{_CONTRACT}.status"),
        Command("assess", "begin the test flows and the assessments of outcomes", f"{_CONTRACT}.assess"),
        Command("claim", "let a run that has ended count for a contract too", f"{_CONTRACT}.claim"),
    ),
)
CONFIG = Group(
    "config",
    "show and check the configuration",
    """Show and check config.toml of the data directory. Interlock never writes this file.
Exit codes: 0 success, 1 faults found, 2 wrong command line.""",
    (
        Command("show", "show the settings in effect, their origins and their hash", "config.show"),
        Command("check", "check a configuration file and report every fault", "config.check"),
        Command("schema", "print the JSON Schema of config.toml, for editors", "config.schema"),
    ),
)
KEYS = Group(
    "keys",
    "show and rotate the keys that sign tokens",
    """Show and rotate the keys that sign tokens. No key is ever printed.
Exit codes: 0 success, 1 the key ring cannot be used, 2 wrong command line.""",
    (
        Command("status", "show how many keys there are, how old they are, and who can read them", "upkeep.keys"),
        Command(
            "rotate",
            "sign tokens with a new key; tokens of the old key stay valid until the next rotation",
            "upkeep.keys",
        ),
        Command("source", "make a key with which a source signs its events", "upkeep.keys"),
    ),
)
EVENT = Group(
    "event",
    "tell a run that something happened outside",
    """Record events from outside: a run that waits for one continues.
Exit codes: 0 success, 1 refused or not found, 2 wrong command line.""",
    (
        Command("send", "record an event of a run, and let the run continue if it waits for it", "outside.event"),
        Command("sign", "print an event with the signature of a source, to send it elsewhere", "outside.event"),
    ),
)
INTENT = Group(
    "intent",
    "show and deliver what runs send outside",
    """Show what runs were to send outside, and what became of it. Only `deliver` sends anything.
Exit codes: 0 success, 1 not delivered or not found, 2 wrong command line.""",
    (
        Command("list", "list intents with their state", "outside.intent"),
        Command("show", "show one intent with its fields", "outside.intent"),
        Command("deliver", "send intents that did not arrive", "outside.intent"),
        Command("abandon", "record that intents are not sent any more", "outside.intent"),
    ),
)
CHECKS = Group(
    "checks",
    "show, allow and run the checks that Interlock runs itself",
    """Checks are commands of your `config.toml`; a step of `type: check` waits for the result of one.
Exit codes: 0 success, 1 not passed, not allowed or not found, 2 wrong command line.""",
    (
        Command("list", "list the checks of the configuration and of the project", "outside.checks"),
        Command("allow", "show what the project's own checks run, and allow them as they are now", "outside.checks"),
        Command("forget", "allow the project's own checks no more", "outside.checks"),
        Command("run", "run the check that a run waits for now", "outside.checks"),
    ),
)
AGENT = Group(
    "agent",
    "check, show and create profiles of agents for `drive`",
    """Work with profiles of agents, which `interlock drive` runs. FILE is a path.
Exit codes: 0 success, 1 faults found, 2 wrong command line.""",
    (
        Command("validate", "check a profile or manifest; list each field as used, ignored or unknown", "drive.agent"),
        Command("show", "print a profile with all its values, also those that it does not state", "drive.agent"),
        Command("new", "write a new profile; never overwrite a file", "drive.agent"),
        Command("schema", "print the JSON Schema of profiles, for editors", "drive.agent_schema"),
    ),
)
COMMANDS: tuple[Command | Group, ...] = (
    Command("serve", "serve MCP over stdin and stdout", "top.serve"),
    Command("drive", "work a run to its end with a model, without a client", "drive.drive"),
    Command("console", "open pages in a browser that show runs, and prove them", "top.console"),
    AGENT,
    Command("demo", "play a run that survives kill -9 of its server, then fork and verify it", "top.demo"),
    WORKFLOW,
    SESSION,
    EVENT,
    INTENT,
    CHECKS,
    CONTRACT,
    CONFIG,
    Command("inbox", "list what waits for a person, oldest first, with the command for each", "outside.inbox"),
    Command("approve", "approve what a run asks before it continues", "outside.approve"),
    Command("reject", "reject what a run asks before it continues", "outside.approve"),
    Command("witness", "run a command unchanged, and record for a run how it ended", "outside.witness"),
    Command("gc", "delete expired and unreferenced data", "upkeep.gc"),
    KEYS,
    Command("doctor", "check the installation and the recorded data", "upkeep.doctor"),
    Command("watch", "show what happens in a run while it happens, until it ends", "top.watch"),
    Command("completion", "print a script that completes commands in a shell", "top.completion"),
    Command("version", "print the version"),
    Command("help", "print the help of Interlock or of a command", "top.help"),
)

_AddParser: TypeAlias = Callable[..., argparse.ArgumentParser]
"""The `add_parser` method of the object that `add_subparsers` returns."""


def _print(say: Callable[[], None]) -> bool:
    """Return whether what was printed got out; otherwise the reason is on standard error output."""

    def command() -> int:
        say()
        return 0

    return printing(command) == 0


class _Formatter(argparse.HelpFormatter):
    """Asks for the width of the terminal when it prints: argparse makes a formatter for each argument that is added."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=80)

    def format_help(self) -> str:
        """Return the help, as wide as the terminal."""
        found = argparse.HelpFormatter(self._prog)
        self._width, self._max_help_position = found._width, found._max_help_position  # noqa: SLF001 — of its class
        return super().format_help()


class _Parser(argparse.ArgumentParser):
    """A parser that suggests a command for a mistyped one. Subparsers have the same class."""

    is_json: bool = False
    """Whether the command line holds `--json`: then a wrong one is also reported as JSON (ANS-17)."""

    def __init__(self, *, is_named: bool = True, **options: Any) -> None:  # noqa: ANN401 — those of argparse
        """Make a parser; that of a command which no word names parses nothing, and has no description or options."""
        if is_named:
            super().__init__(**options, formatter_class=_Formatter)
        else:
            super().__init__(prog=options["prog"], add_help=False)

    def error(self, message: str) -> NoReturn:
        """Print the usage and the message, and end with 2."""
        if self.is_json:
            from interlock.cli.screen import StopError, say_json  # noqa: PLC0415 — only a mistake pays for it

            fix = f"`{self.prog} --help` lists the arguments."
            said = StopError(message, fix, exit_code=2).to_json()
            _print(partial(say_json, said))
        super().error(message)

    def _print_message(self, message: str, file: "SupportsWrite[str] | None" = None) -> None:
        """Print the help or the version; end with 1 if it does not get out, which argparse ignores."""
        if file is not sys.stdout:
            super()._print_message(message, file)
        elif not _print(partial(print, message, end="")):
            self.exit(NOT_PRINTED)

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride] — argparse has overloads
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse the words of this command; refuse those that it does not know here, where its options are known."""
        found, unknown = super().parse_known_args(args, namespace or argparse.Namespace())
        if unknown:
            self._refuse_words(unknown)
        return found, []

    def _refuse_words(self, unknown: list[str]) -> NoReturn:
        from interlock.define.diagnostics import suggest_name  # noqa: PLC0415 — only a mistake pays for it

        known = [name for action in self._actions for name in action.option_strings if name.startswith("--")]
        option = next((word.partition("=")[0] for word in unknown if word.startswith("--")), None)
        near = suggest_name(option, known) if option is not None else None
        suggestion = f" Did you mean {near}?" if near is not None else ""
        named = ", ".join(map(repr, unknown))
        self.error(f"Unknown arguments: {named}.{suggestion} `{self.prog} --help` lists the arguments.")

    def _check_value(self, action: argparse.Action, value: object) -> None:
        is_command = action.dest in {"command", "action"} and action.choices is not None
        if is_command and value not in (choices := list(action.choices or ())):
            self._refuse(str(value), choices)
        super()._check_value(action, value)

    def _refuse(self, name: str, commands: list[str]) -> NoReturn:
        from interlock.define.diagnostics import suggest_name  # noqa: PLC0415 — only a mistake pays for it

        near = suggest_name(name, commands)
        suggestion = f" Did you mean {near}?" if near is not None else ""
        self.error(f"There is no command {name!r}.{suggestion} `{self.prog} --help` lists the commands.")


def command_line(words: Collection[str]) -> argparse.ArgumentParser:
    """Build the parser for these words: with all commands, and the arguments of those that the words name."""

    class Parser(_Parser):
        is_json = "--json" in words

    parser = Parser(
        prog="interlock",
        description="A durable workflow server for AI agents. Without a command, it serves MCP on stdin and stdout.",
    )
    parser.add_argument("-V", "--version", action="version", version=f"interlock {VERSION}", help="print the version")
    add_places(parser)
    add_parser = parser.add_subparsers(dest="command", metavar="command", prog=parser.prog).add_parser
    for row in COMMANDS:
        if isinstance(row, Group):
            _add_group(add_parser, row, words)
        else:
            _add_command(add_parser, row, words)
    return parser


def add_places(parser: argparse.ArgumentParser) -> None:
    """Add the options for the directories of a server."""
    # These options may precede or follow the command: a default of the later parser would overwrite the earlier value.
    parser.add_argument("--data-dir", default=argparse.SUPPRESS, help="directory of the sessions (INTERLOCK_DATA_DIR)")
    parser.add_argument("--workspace", default=argparse.SUPPRESS, help="directory of the project (INTERLOCK_WORKSPACE)")
    parser.add_argument(
        "--workflows-dir",
        default=argparse.SUPPRESS,
        help="directory of your own workflow files (INTERLOCK_WORKFLOWS_DIR)",
    )


def _add_group(add_parser: _AddParser, group: Group, words: Collection[str]) -> None:
    is_named = group.name in words
    parser = add_parser(group.name, help=group.help, description=group.description, is_named=is_named)
    if not is_named:
        return
    parser.set_defaults(run=partial(_print_help, parser))
    add_action = parser.add_subparsers(dest="action", metavar="action", prog=parser.prog).add_parser
    for command in group.commands:
        _add_command(add_action, command, words)


def _print_help(parser: argparse.ArgumentParser, _: argparse.Namespace) -> int:
    """Print the help of a group that was named without an action."""
    parser.print_help()
    return 0


def _add_command(add_parser: _AddParser, command: Command, words: Collection[str]) -> None:
    """Add a parser for a command if the words name it, else its line of help alone."""
    sentence = f"{command.help[0].upper()}{command.help[1:]}."
    is_named = command.name in words
    parser = add_parser(command.name, help=command.help, description=sentence, is_named=is_named)
    if is_named and command.module:
        module = cast("CommandModule", import_module(f"interlock.cli.{command.module}"))
        module.add_arguments(parser)
        parser.set_defaults(run=module.run)
