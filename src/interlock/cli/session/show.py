"""`interlock session show`: one session whole: its runs, where they stand, what was done, what is open."""

import shutil
import sys

from interlock.cli.screen import say, say_json
from interlock.cli.session.account_json import session_json
from interlock.cli.session.chosen import chosen_session, read_history
from interlock.cli.session.store import answered_by_store
from interlock.cli.session.terminal import as_text
from interlock.service.account import Accounts, SessionAccount
from interlock.service.account_page import Look, page_of
from interlock.service.plans import Plans
from interlock.service.words import Scene
from interlock.store.ports import Store

_STEPS_MAX = 5


def run_show(store: Store, wanted: str | None, *, as_json: bool, shows_all: bool) -> int:
    """Print one session, or one run of it; return the exit code.

    Raises:
        StopError: No one session is meant, or the store cannot answer.
    """
    account = account_of(store, wanted, steps_max=None if shows_all else _STEPS_MAX)
    if as_json:
        say_json(session_json(account))
        return 0
    look = Look(newest_first=True, is_whole=shows_all, is_for_others=False, draw=drawn)
    say(as_text(page_of(account, look), shutil.get_terminal_size().columns if sys.stdout.isatty() else None))
    return 0


def drawn(scene: Scene) -> str:
    """Return the tree of a run that branched."""
    from interlock.cli.session.graph import drawn_text  # noqa: PLC0415 — most runs never branch

    return drawn_text(scene)


def account_of(store: Store, wanted: str | None, *, steps_max: int | None = None) -> SessionAccount:
    """Return the account of what is meant.

    Raises:
        StopError: No one session is meant, or the store cannot answer.
    """
    with answered_by_store():
        plans = Plans(store)
        chosen = chosen_session(store, plans, wanted)
        history = read_history(store, chosen)
        return Accounts(store, plans, history).session(chosen.runs(history.facts), steps_max=steps_max)
