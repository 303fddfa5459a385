"""`interlock watch`: what happens in a run, while it happens, until the run ends."""

import argparse
import shutil
import sys
import time
from collections.abc import Iterator

from interlock.cli.options import add_store_options
from interlock.cli.render.phrases import ago, step_words
from interlock.cli.screen import StopError, flat, printable, say, say_json
from interlock.cli.session.chosen import LATEST_HERE, SelectedSession, add_session_argument, chosen_or_latest
from interlock.cli.session.evidence.configured import known_keys
from interlock.cli.session.evidence.timeline import StepTitles, entry_lines, run_of
from interlock.cli.session.place import Place
from interlock.cli.store import answered_by_store, open_chosen_reader
from interlock.kernel.budgets import CELL_BYTES_MAX, WATCH_STEP_S, WATCHED_ENTRIES
from interlock.kernel.text import one_line
from interlock.service.clock import SystemClock
from interlock.service.run.history import History, history_of
from interlock.service.run.plans import Plans
from interlock.service.run.summarize import summary_of
from interlock.store.ports.store import StoreReader
from interlock.views.summary import RunSummary, run_json
from interlock.views.timeline import Entry, entry_of, parts_of

_ERASE = "\r\x1b[K"
_LIST = "`interlock session list` lists all runs."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    add_session_argument(parser, LATEST_HERE)
    parser.add_argument("--workspace", default=argparse.SUPPRESS, help="directory of the project (INTERLOCK_WORKSPACE)")


def run(options: argparse.Namespace) -> int:
    """Print each append to a run until the run ends or Ctrl-C; return the exit code. With `--json`, print the end only.

    Raises:
        StopError: The name fits no run or several, or the store cannot answer.
    """
    here, store = Place(options), open_chosen_reader(options)
    with answered_by_store():
        plans = Plans(store)
        chosen, others = chosen_or_latest(store, plans, options.session, here)
        watched = _Watched(store, plans, chosen, options)
        if others is not None and not options.as_json:
            say(others)
        try:
            for history in watched.changes():
                if not options.as_json:
                    watched.say(history)
        except KeyboardInterrupt:
            watched.erase()
    if options.as_json:
        say_json(run_json(watched.summary))
    return 0


def pause() -> None:
    """Wait until the next look."""
    time.sleep(WATCH_STEP_S)


class _Watched:
    """One run that is watched, and how much of it was printed."""

    def __init__(self, store: StoreReader, plans: Plans, chosen: SelectedSession, options: argparse.Namespace) -> None:
        self._options = options
        self._store, self._plans, self._chosen = store, plans, chosen
        self._printed = -1
        self._is_live = sys.stdout.isatty()
        self._history, self.summary = self._load()

    def changes(self) -> Iterator[History]:
        """Yield the history now, and again whenever the session has changed, until the run has ended."""
        yield self._history
        while not (self.summary.is_complete or self.summary.is_ended):
            pause()
            found = self._store.load(self._chosen.session)
            if found is not None and found.next_index == self._history.session.next_index:
                self._show_status()
                continue
            self._history, self.summary = self._load()
            yield self._history

    def say(self, history: History) -> None:
        """Print what was not printed yet, and where the run is."""
        self.erase()
        parts = (part for plan in history.appended for part in parts_of(plan))
        about = [part for part in parts if self.summary.run in map(run_of, part)]
        titles = StepTitles(history.session, self._plans)
        due = [part for part in about if part[0].event_index > self._printed]
        if self._printed < 0:
            run = self.summary
            say(flat(f"Run {run.label} of {run.workflow_id}: {one_line(run.goal or '-', CELL_BYTES_MAX)}"))
            due = due[-WATCHED_ENTRIES:]
        keys = known_keys(self._options, history.session) if due else None
        for part in due:
            entry = entry_of(history.session, part, titles.title_of, keys)
            say("\n".join(entry_lines(history.session, entry, _when(entry))))
        if about:
            self._printed = about[-1][-1].event_index
        if self.summary.is_complete or self.summary.is_ended:
            say(f"Run {self.summary.label}: {self.summary.status_text}")
        else:
            self._show_status()

    def erase(self) -> None:
        """Remove the line that says where the run is."""
        if self._is_live:
            sys.stdout.write(_ERASE)
            sys.stdout.flush()

    def _show_status(self) -> None:
        if self._is_live:
            run = self.summary
            title = f", {run.step}" if run.step is not None else ""
            since = ago(run.last_at, SystemClock().unix_ms())
            columns = shutil.get_terminal_size().columns
            line = one_line(f"{run.status_text}: step {step_words(run)}{title}; last worked on {since}", columns - 1)
            sys.stdout.write(_ERASE + printable(flat(line)))
        sys.stdout.flush()

    def _load(self) -> tuple[History, RunSummary]:
        """Load the session and the run: the selected one, or the run of the session with the latest event."""
        history = history_of(self._store, self._chosen.session)
        runs = summary_of(history.session, self._plans).runs if history is not None else ()
        found = [run for run in runs if self._chosen.run in (None, run.run)]
        if history is None:
            raise StopError(f"The session {self._chosen.session} is gone.", _LIST, exit_code=1)
        if not found:
            message = f"The session {self._chosen.session} has no run to watch."
            raise StopError(message, _LIST, exit_code=1)
        latest = max(found, key=lambda run: run.last_index)
        self._chosen = SelectedSession(session=self._chosen.session, run=latest.run)
        return history, latest


def _when(entry: Entry) -> str:
    return entry.at or "unknown"
