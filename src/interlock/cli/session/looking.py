"""The commands that show what was recorded: how they are spelled, and which code runs them. They write nothing."""

# ruff: noqa: PLC0415 — each command is imported when it is chosen
import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from interlock.cli.group import Command

if TYPE_CHECKING:
    from interlock.store.ports import Store

AddAction: TypeAlias = Callable[[str, str], argparse.ArgumentParser]
"""Adds a command of a name, with what it does in words."""

LOOKING = frozenset({"list", "show", "timeline", "graph", "status", "open-gaps", "report"})
_STATUSES = ("in_progress", "blocked", "complete", "complete_with_gaps")
_SESSION = "a session's id, its beginning or its end, a run's label or id, a node's id, or a token"


def add_looking_commands(add_action: AddAction) -> None:
    """Add the commands to their group."""
    _add_list(add_action("list", "list what was worked on, the newest first"))
    show = add_action("show", "show one session: where its runs stand, what was done, what is open")
    _add_session(show)
    show.add_argument("--all", dest="shows_all", action="store_true", help="every step, with its whole notes")
    timeline = add_action("timeline", "tell what happened, in order, in words; --json has the raw events")
    _add_session(timeline)
    timeline.add_argument("--limit", type=int, default=50, metavar="N", help="at most so many entries (50)")
    timeline.add_argument("--after", type=int, default=-1, metavar="INDEX", help="what came after this event")
    timeline.add_argument("--last", type=int, metavar="N", help="the last so many entries instead")
    graph = add_action("graph", "draw runs as they went: branches, refused attempts, checkpoints")
    _add_session(graph)
    graph.add_argument("--format", choices=["terminal", "mermaid", "dot"], default="terminal", help="what to draw for")
    status = add_action("status", "say where each run stands, a line each")
    _add_session(status, "all")
    gaps = add_action("open-gaps", "say what is still open, why, where, and what would resolve it")
    _add_session(gaps, "all")
    report = add_action("report", "write a session as one Markdown or HTML file, for a pull request")
    _add_session(report)
    report.add_argument("--format", choices=["md", "html"], help="the file's form (by its name; else md)")
    report.add_argument("--out", type=Path, metavar="FILE", help="the file to write; without, or as `-`, it is printed")
    report.add_argument("--force", dest="is_forced", action="store_true", help="overwrite the file")


def _add_session(parser: argparse.ArgumentParser, without: str = "the only one there is") -> None:
    parser.add_argument("session", metavar="SESSION", nargs="?", help=f"{_SESSION}; without, {without}")


def _add_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", metavar="WORD", nargs="*", help="words of the goal, the workflow or the last notes")
    parser.add_argument("--status", dest="statuses", action="append", choices=_STATUSES, help="may be repeated")
    parser.add_argument("--workflow", metavar="ID", help="runs of this workflow")
    parser.add_argument("--branch", metavar="NAME", help="runs that began on a git branch of this name or beginning")
    parser.add_argument("--since", metavar="WHEN", help="worked on since a date, a time (UTC), or for a span: 3d, 12h")
    parser.add_argument("--deep", dest="is_deep", action="store_true", help="look for words in the notes of every step")
    parser.add_argument("--limit", type=int, default=30, metavar="N", help="at most so many runs (30)")
    parser.add_argument("--page", type=int, default=1, metavar="N", help="the page to show (1)")


def looking(chosen: argparse.Namespace, store: "Store") -> Command:
    """Import a command of `LOOKING` and return it with its arguments."""
    as_json: bool = chosen.as_json
    match chosen.action:
        case "list":
            return _listing(chosen, store)
        case "show":
            from interlock.cli.session.show import run_show

            return lambda: run_show(store, chosen.session, as_json=as_json, shows_all=chosen.shows_all)
        case "timeline":
            return _timeline(chosen, store)
        case "graph":
            from interlock.cli.session.graph import run_session_graph

            return lambda: run_session_graph(store, chosen.session, chosen.format, as_json=as_json)
        case "status":
            from interlock.cli.session.status import run_status

            return lambda: run_status(store, chosen.session, as_json=as_json)
        case "open-gaps":
            from interlock.cli.session.open_gaps import run_open_gaps

            return lambda: run_open_gaps(store, chosen.session, as_json=as_json)
        case _:
            return _report(chosen, store)


def _listing(chosen: argparse.Namespace, store: "Store") -> Command:
    from interlock.cli.session.list import ListOrder, run_list
    from interlock.service.shell import SystemShell

    order = ListOrder(
        words=chosen.words,
        statuses=chosen.statuses or (),
        workflow=chosen.workflow,
        branch=chosen.branch,
        since=chosen.since,
        limit=chosen.limit,
        page=chosen.page,
        is_deep=chosen.is_deep,
        as_json=chosen.as_json,
    )
    return lambda: run_list(store, order, SystemShell().unix_ms())


def _timeline(chosen: argparse.Namespace, store: "Store") -> Command:
    from interlock.cli.session.timeline import TimelineOrder, run_timeline
    from interlock.service.shell import SystemShell

    order = TimelineOrder(
        session=chosen.session, limit=chosen.limit, after=chosen.after, last=chosen.last, as_json=chosen.as_json
    )
    return lambda: run_timeline(store, order, SystemShell().unix_ms())


def _report(chosen: argparse.Namespace, store: "Store") -> Command:
    from interlock.cli.session.report import ReportOrder, run_report

    order = ReportOrder(
        session=chosen.session,
        form=chosen.format,
        out=chosen.out,
        is_forced=chosen.is_forced,
        as_json=chosen.as_json,
    )
    return lambda: run_report(store, order)
