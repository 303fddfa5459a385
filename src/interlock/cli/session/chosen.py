"""Which session a person means: an id or a part of it, a run's label or id, a node, a token, or the only one there."""

import argparse
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from interlock.cli.render.progress import with_progress
from interlock.cli.screen import StopError, flat
from interlock.cli.store import answered_by_store
from interlock.kernel.ids import NodeId, RunId, SessionId
from interlock.kernel.text import one_line
from interlock.record.tokens import TokenFault
from interlock.service.report.run_list import Row, newest_first, rows_of
from interlock.service.run.history import History, history_of, session_of_node
from interlock.service.run.plans import Plans
from interlock.service.run.summaries import Listing, Summaries, Unreadable
from interlock.store.ports import Store
from interlock.views.session import LABEL_CHARS, LABEL_CHARS_ON_CLASH, Session
from interlock.views.status import status_words
from interlock.views.summary import SessionSummary

_TOKENS = ("st_", "ack_", "chk_")
_NAMED_MAX = 10
"""Candidates that a refusal names."""
_ECHO_BYTES_MAX = 80
_WORDS_BYTES_MAX = 60
_SESSION = "a session's id, its beginning or its end, a run's label or id, a node's id, or a token"
_LIST = "`interlock session list` names all that are there; `--data-dir` looks elsewhere."
_ONE_OF = "Name one of them by its session id, or by enough of its end."


def add_session_argument(parser: argparse.ArgumentParser, without: str = "the only one there is") -> None:
    """Add the session that is meant, which may be left out."""
    parser.add_argument("session", metavar="SESSION", nargs="?", help=f"{_SESSION}; without, {without}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A session; `run` where one of its runs was meant, and not all of them."""

    session: SessionId
    run: RunId | None = None

    def runs(self, facts: Session) -> list[RunId]:
        """Return the runs that are meant, in the order they began."""
        runs = sorted(facts.runs.values(), key=lambda run: run.index)
        return [run.run for run in runs if self.run in (None, run.run)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Referred:
    """The session of a token; its run and node where the session is there and holds them."""

    session: SessionId
    run: RunId | None = None
    node: NodeId | None = None


def referred(store: Store, text: str) -> Referred | TokenFault:
    """Return what a token of either format refers to, or why it is none of this data directory.

    Raises:
        SessionUnhealthyError, StoreFailureError: The session of a short one cannot be read.
    """
    # Most names are no tokens, and need no keys.
    from interlock.record.short_tokens import ShortRef, decode_token  # noqa: PLC0415
    from interlock.service.tokens.resolve import whole_reference  # noqa: PLC0415

    ring = store.keys()
    found = decode_token(text).verify(ring.keys() if ring is not None else ())
    if isinstance(found, TokenFault):
        return found
    if not isinstance(found, ShortRef):
        return Referred(session=found.session, run=found.run, node=found.node)
    session = store.load(found.session)
    whole = whole_reference(session, found) if session is not None else None
    if whole is None:
        return Referred(session=found.session)
    return Referred(session=found.session, run=whole.run, node=whole.node)


def chosen_session(store: Store, plans: Plans, wanted: str | None) -> Chosen:
    """Return the session that is meant, and the run where one was named.

    Raises:
        StopError: There is none, or more than one fits.
        StoreFailureError, KeyRingDamagedError: See `answered_by_store`.
    """
    if wanted is None:
        return _only_one(store, plans)
    name = wanted.strip().strip("`")
    if not name:
        raise StopError("An argument is empty.", f"Name a session or a run. {_LIST}", exit_code=2)
    if "." in name or name.startswith(_TOKENS):
        return _of_token(store, name)
    if name.startswith("node_"):
        return _of_node(store, NodeId(name))
    return _of_name(store, plans, name.lower())


def read_history(store: Store, chosen: Chosen) -> History:
    """Return the history of the session that is meant.

    Raises:
        StopError: It has none.
        SessionUnhealthyError, StoreFailureError: See `answered_by_store`.
    """
    history = history_of(store, chosen.session)
    if history is None:
        raise StopError(f"Nothing is recorded in {chosen.session}.", _LIST, exit_code=1)
    return history


def listing(store: Store, plans: Plans) -> Listing:
    """Return all sessions as they are listed, with progress on a terminal."""
    found = tuple(with_progress(Summaries(store, plans).each(), len(store.marks()), "Reading sessions"))
    return Listing(
        sessions=tuple(one for one in found if isinstance(one, SessionSummary)),
        unreadable=tuple(one for one in found if isinstance(one, Unreadable)),
    )


def short_of(sessions: Iterable[SessionId]) -> Callable[[SessionId], str]:
    """Return how each of these sessions is named in short: by the fewest last characters that name it alone."""
    named = set(sessions)
    chars = _SHORT_CHARS_MIN
    while len({session[-chars:] for session in named}) < len(named):
        chars += 1
    return lambda session: session[-chars:]


_SHORT_CHARS_MIN = 6


def _only_one(store: Store, plans: Plans) -> Chosen:
    sessions = store.sessions()
    if len(sessions) == 1:
        return Chosen(session=sessions[0])
    if not sessions:
        raise StopError("No session is recorded in this data directory.", _LIST, exit_code=1)
    message = f"There are {len(sessions)} sessions, so say which."
    raise _several(message, _candidates(listing(store, plans), sessions, ()), exit_code=2)


def named_session(store: Store, name: str) -> SessionId:
    """Return the session of an id, whether it is there and whole or not, or the one that else is meant.

    Raises:
        StopError: It is no id, and names none, or more than one.
    """
    if name.startswith("sess_"):
        return SessionId(name)
    with answered_by_store():
        return chosen_session(store, Plans(store), name).session


def named_sessions(store: Store, names: Iterable[str]) -> list[SessionId]:
    """Return the session of each name, as `named_session` does.

    Raises:
        StopError: One is no id, and names none, or more than one.
    """
    return [named_session(store, name) for name in names]


def _of_token(store: Store, name: str) -> Chosen:
    found = referred(store, name)
    if isinstance(found, TokenFault):
        raise StopError(
            f"This is no token of this data directory: {found.found}.", f"Copy it whole. {_LIST}", exit_code=1
        )
    if found.session not in store.sessions():
        raise StopError(f"The token is of {found.session}, which is not there any more.", _LIST, exit_code=1)
    return Chosen(session=found.session, run=found.run)


def _of_node(store: Store, node: NodeId) -> Chosen:
    session = session_of_node(store, node)
    if session is None:
        raise StopError(f"No session that can be read holds the node {_echoed(node)}.", _LIST, exit_code=1)
    return Chosen(session=session.session, run=session.nodes[node].run)


def _of_name(store: Store, plans: Plans, name: str) -> Chosen:
    sessions = store.sessions()
    if name in sessions:
        return Chosen(session=SessionId(name))
    body = name.removeprefix("sess_")
    by_session = [one for one in sessions if _is_part(body, one)]
    if len(by_session) == 1 and not _may_be_label(name):
        return Chosen(session=by_session[0])
    told = listing(store, plans)
    by_run = [row for row in _rows(told) if name in (row.run.run, row.run.label)]
    if len(by_run) == 1 and {row.session for row in by_run} >= set(by_session):
        return Chosen(session=by_run[0].session, run=by_run[0].run.run)
    if len(by_session) == 1 and not by_run:
        return Chosen(session=by_session[0])
    if by_session or by_run:
        candidates = _candidates(told, by_session, by_run)
        raise _several(f"{_echoed(name)} names {len(candidates)} runs.", candidates, exit_code=1)
    message = f"There is no session and no run {_echoed(name)} in this data directory."
    if told.unreadable:
        message += f" {len(told.unreadable)} sessions cannot be read, so their runs are not known by name."
    raise StopError(message, _LIST, exit_code=1)


def _is_part(body: str, session: SessionId) -> bool:
    whole = session.rpartition("_")[2]
    return bool(body) and (whole.startswith(body) or whole.endswith(body))


def _may_be_label(name: str) -> bool:
    return len(name) in (LABEL_CHARS, LABEL_CHARS_ON_CLASH) or name.startswith("run_")


def _rows(told: Listing) -> list[Row]:
    return newest_first(row for session in told.sessions for row in rows_of(session))


def _several(message: str, candidates: list[str], *, exit_code: int) -> StopError:
    more = len(candidates) - _NAMED_MAX
    rest = [f"  and {more} more; `interlock session list` names them."] if more > 0 else []
    return StopError("\n".join([message, *candidates[:_NAMED_MAX], *rest]), _ONE_OF, exit_code=exit_code)


def _candidates(told: Listing, sessions: Collection[SessionId], runs: Collection[Row]) -> list[str]:
    """Return a line for each of these runs, and for each run of these sessions."""
    known = [_candidate(row) for row in _rows(told) if row.session in sessions or row in runs]
    return known + [f"  {one.session}  {one.health}" for one in told.unreadable if one.session in sessions]


def _candidate(row: Row) -> str:
    run = row.run
    what = one_line(run.goal or run.workflow_name, _WORDS_BYTES_MAX)
    return f"  {row.session}  run {run.label}  {status_words(run.status)}  {flat(what)}"


def _echoed(name: str) -> str:
    return f"'{one_line(name, _ECHO_BYTES_MAX)}'"
