"""`interlock session context`: what the context of a run holds, and which step set each key."""

import argparse

from interlock.cli.options import add_store_options
from interlock.cli.render.phrases import place_words
from interlock.cli.render.report_json import context_json
from interlock.cli.render.terminal import as_text, terminal_columns
from interlock.cli.screen import say, say_json
from interlock.cli.session.chosen import add_session_argument
from interlock.cli.session.evidence.show import account_of
from interlock.cli.store import open_chosen_reader
from interlock.kernel.canonical import Json, readable_json
from interlock.service.report.document import Block, Heading, Paragraph, Table, UntrustedText
from interlock.service.report.session_report import ContextEntry, RunReport


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    add_session_argument(parser)


def run(options: argparse.Namespace) -> int:
    """Print the context at the preferred tip of each selected run; return the exit code.

    Raises:
        StopError: The name fits no session or several, or the store cannot answer.
    """
    viewed = account_of(open_chosen_reader(options), options.session, steps_max=1)
    report = viewed.view
    if options.as_json:
        runs: list[Json] = [_json(run) for run in report.runs]
        say_json(viewed.with_damage({"session": report.session, "runs": runs}))
        return viewed.exit_code
    page = (*viewed.banner, *(block for run in report.runs for block in _blocks(run)))
    say(as_text(page, terminal_columns()))
    return viewed.exit_code


def _blocks(run: RunReport) -> tuple[Block, ...]:
    head = Heading(level=1, line=(UntrustedText(run.summary.workflow_name), f": context of run {run.summary.label}"))
    if not run.context:
        return head, Paragraph(("The context is empty.",))
    rows = tuple(
        ((UntrustedText(one.key),), (UntrustedText(_value(one.value)),), (UntrustedText(_origin(one)),))
        for one in run.context
    )
    return head, Table(heads=("Key", "value", "set in"), rows=rows)


def _value(value: Json) -> str:
    return value if isinstance(value, str) else readable_json(value)


def _origin(entry: ContextEntry) -> str:
    if entry.step is None:
        return "the start"
    by = "by the plan, from the evidence" if entry.is_computed else "by the report"
    return f"{place_words(entry.step)}, {by}"


def _json(run: RunReport) -> dict[str, Json]:
    context: list[Json] = [context_json(one) for one in run.context]
    return {"run": run.summary.run, "label": run.summary.label, "context": context}
