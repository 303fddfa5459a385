"""Select a session by its id or a part of it, a run's label or id, a node, a token, or as the only session."""

import argparse
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from interlock.cli.render.progress import shown_progress
from interlock.cli.screen import StopError, counted, flat, say
from interlock.cli.store import answered_by_store
from interlock.kernel.budgets import CELL_BYTES_MAX, ECHO_BYTES_MAX, NAMED_MAX, OTHERS_NAMED, SHORT_ID_CHARS_MIN
from interlock.kernel.errors import ErrorCode
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import LABEL_CHARS, LABEL_CHARS_ON_CLASH, NodeId, RunId, SessionId
from interlock.kernel.text import one_line
from interlock.service.report.run_list import Row, newest_first, rows_of
from interlock.service.run.plans import Plans
from interlock.service.run.summaries import Listing, Unreadable, read_listing
from interlock.store.ports.definitions import DamagedDefinition
from interlock.store.ports.errors import Health
from interlock.store.ports.store import StoreReader

if TYPE_CHECKING:
    from interlock.cli.session.place import Place
    from interlock.record.tokens import TokenFault
    from interlock.service.run.history import History
    from interlock.views.session import Run, Session

_TOKENS = ("st_", "ack_", "chk_")
_SESSION = (
    "a session id or its first or last characters, a run label or id, a node id, a token, @last (the latest run) or"
    " @waiting (the latest that is blocked or waits)"
)
LATEST_HERE = "the only session, or the latest run of this project"
_PLACES = ("@last", "@waiting")
_LIST = "`interlock session list` lists all sessions; `--data-dir` names another data directory."
_NO_RUN = "No run is recorded in this data directory."
_ONE_OF = "Name one session by its id, or by the last characters of its id; `@last` is the latest run."


def add_session_argument(parser: argparse.ArgumentParser, without: str = "the only session") -> None:
    """Add the optional argument that names a session."""
    parser.add_argument("session", metavar="SESSION", nargs="?", help=f"{_SESSION} (default: {without})")


@frozen
class SelectedSession:
    """A session; with `run`, only that run of it."""

    session: SessionId
    run: RunId | None = None

    def runs(self, session: "Session") -> list[RunId]:
        """Return the selected runs in the order they began."""
        runs = sorted(session.runs.values(), key=lambda run: run.index)
        return [run.run for run in runs if self.run in (None, run.run)]


@frozen
class ReferredNode:
    """The session that a token names, with the run and the node if the session exists and contains them."""

    session: SessionId
    run: RunId | None = None
    node: NodeId | None = None


def referred(store: StoreReader, text: str) -> "ReferredNode | TokenFault":
    """Resolve a token of either format, or return why it is not a token of this data directory.

    Raises:
        SessionUnhealthyError, StoreFailureError: The session of a short token cannot be read.
    """
    # Most names are not tokens and need no keys.
    from interlock.record.short_tokens import ShortRef, decode_token  # noqa: PLC0415 — only a token needs it
    from interlock.record.tokens import TokenFault  # noqa: PLC0415 — only a token needs it
    from interlock.service.tokens.resolve import whole_reference  # noqa: PLC0415 — only a token needs it

    ring = store.keys()
    found = decode_token(text).verify(ring.keys() if ring is not None else ())
    if isinstance(found, TokenFault):
        return found
    if not isinstance(found, ShortRef):
        return ReferredNode(session=found.session, run=found.run, node=found.node)
    session = store.load(found.session)
    whole = whole_reference(session, found) if session is not None else None
    if whole is None:
        return ReferredNode(session=found.session)
    return ReferredNode(session=found.session, run=whole.run, node=whole.node)


def chosen_session(store: StoreReader, plans: Plans, wanted: str | None) -> SelectedSession:
    """Select the session that a name refers to, and the run if it names one.

    Raises:
        StopError: No session or more than one matches.
        StoreFailureError, KeyRingDamagedError: See `answered_by_store`.
    """
    if wanted is None:
        return _select_only_session(store, plans)
    name = wanted.strip().strip("`")
    if not name:
        raise StopError("An argument is empty.", f"Name a session or a run. {_LIST}", exit_code=2)
    if "." in name or name.startswith(_TOKENS):
        return _select_by_token(store, name)
    if name.startswith("@"):
        return _select_by_place(store, plans, name.lower())
    if name.startswith("node_"):
        return _select_by_node(store, NodeId(name))
    return _select_by_name(store, plans, name.lower())


def chosen_or_latest(
    store: StoreReader, plans: Plans, wanted: str | None, here: "Place"
) -> tuple[SelectedSession, str | None]:
    """Select as `chosen_session` does; without a name among several sessions, the latest run of the project of `here`.

    The text says which other runs there are; None if the name or the only session was selected.

    Raises:
        StopError: No session or more than one matches a name, or there is none that can be read.
        StoreFailureError, KeyRingDamagedError: See `answered_by_store`.
    """
    listed = listing(store, plans) if wanted is None and len(store.names()) > 1 else None
    rows = _rows(listed) if listed is not None else []
    if listed is None or not rows:
        return chosen_session(store, plans, wanted), None
    mine = [row for row in rows if here.holds(row.run, is_strict=False)]
    latest = (mine or rows)[0]
    selected = SelectedSession(session=latest.session, run=latest.run.run)
    is_of_project = latest.run.repo is not None and latest.run.repo == here.repo
    others = [row for row in rows if row is not latest]
    return selected, "\n".join(_others_lines(others, listed.unreadable, is_of_project=is_of_project)) or None


def read_history(store: StoreReader, chosen: SelectedSession) -> "History":
    """Load the history of the selected session.

    Raises:
        StopError: It has none.
        SessionUnhealthyError, StoreFailureError: See `answered_by_store`.
    """
    from interlock.service.run.history import history_of  # noqa: PLC0415 — a list needs no history

    history = history_of(store, chosen.session)
    if history is None:
        raise _not_found(f"The session {chosen.session} has no recorded events.")
    return history


def chosen_run(store: StoreReader, plans: Plans, wanted: str | None) -> "tuple[Session, Run]":
    """Select the one run that a name refers to, with its session.

    Raises:
        StopError: No session or run matches, or more than one.
        SessionUnhealthyError, StoreFailureError, KeyRingDamagedError: See `answered_by_store`.
    """
    chosen = chosen_session(store, plans, wanted)
    session = read_history(store, chosen).session
    runs = chosen.runs(session)
    if not runs:
        raise _not_found(f"{chosen.session} has no run.")
    if len(runs) > 1:
        labels = ", ".join(session.label(one) for one in runs[:NAMED_MAX])
        fix = f"Name one of them by its label: {labels}."
        raise StopError(f"{chosen.session} has {len(runs)} runs.", fix, exit_code=2)
    return session, session.runs[runs[0]]


def listing(store: StoreReader, plans: Plans) -> Listing:
    """Load all sessions for a list, with progress on a terminal."""
    with shown_progress("Reading sessions") as show:
        return read_listing(store, plans, show)


def say_unreadable(unreadable: Sequence[Unreadable]) -> None:
    """Print which sessions cannot be read, if there are any."""
    for line in unreadable_lines(unreadable):
        say(line)


def unreadable_lines(unreadable: Sequence[Unreadable]) -> Iterator[str]:
    """Yield which sessions cannot be read, and where to find what to do; nothing if all can."""
    if unreadable:
        named = ", ".join(f"{one.session} ({one.health})" for one in unreadable[:NAMED_MAX])
        more = f" and {len(unreadable) - NAMED_MAX} more" if len(unreadable) > NAMED_MAX else ""
        yield f"{counted(len(unreadable), 'session')} cannot be read: {named}{more}."
        yield "`interlock session list` says what to do about them."


def say_damaged(damaged: Iterable[DamagedDefinition]) -> None:
    """Name the published definitions that cannot be used."""
    for one in damaged:
        say(f"The published definition {one.name} is damaged: {one.found}. `interlock doctor --deep` says what to do.")


def say_incomplete(incomplete: Sequence[Unreadable]) -> None:
    """Print of which sessions content is lost or cannot be read, if there are any."""
    unreadable = [one for one in incomplete if one.health == Health.UNREADABLE]
    damaged = [one for one in incomplete if one.health != Health.UNREADABLE]
    for what, found in (("damaged", damaged), ("cannot be read in full", unreadable)):
        if found:
            named = ", ".join(f"{one.session} ({one.found})" for one in found[:NAMED_MAX])
            more = f" and {len(found) - NAMED_MAX} more" if len(found) > NAMED_MAX else ""
            say(flat(f"{counted(len(found), 'session')} {what}: {named}{more}."))
    if incomplete:
        say("`interlock session verify` lists all that is lost.")


def short_of(sessions: Iterable[SessionId]) -> Callable[[SessionId], str]:
    """Return a function that shortens a session id to its last characters, as few as distinguish these sessions."""
    named = set(sessions)
    chars = SHORT_ID_CHARS_MIN
    while len({session[-chars:] for session in named}) < len(named):
        chars += 1
    return lambda session: session[-chars:]


def _select_only_session(store: StoreReader, plans: Plans) -> SelectedSession:
    sessions = store.sessions()
    if len(sessions) == 1:
        return SelectedSession(session=sessions[0])
    if not sessions:
        raise _not_found("No session is recorded in this data directory.")
    message = f"There are {len(sessions)} sessions. Name one."
    raise _ambiguous(message, _candidates(listing(store, plans), sessions, ()), exit_code=2)


def named_session(store: StoreReader, name: str) -> SessionId:
    """Return the session of a name. A complete id is returned unchanged, even if the session is missing or damaged.

    Raises:
        StopError: It is not an id, and no session or more than one matches.
    """
    if name.startswith("sess_"):
        return SessionId(name)
    with answered_by_store():
        return chosen_session(store, Plans(store), name).session


def named_sessions(store: StoreReader, names: Iterable[str]) -> list[SessionId]:
    """Return the session of each name, as `named_session` does.

    Raises:
        StopError: A name is not an id, and no session or more than one matches.
    """
    return [named_session(store, name) for name in names]


def _select_by_place(store: StoreReader, plans: Plans, name: str) -> SelectedSession:
    """Select the run with the latest activity: of all, or of those that wait for somebody."""
    if name not in _PLACES:
        raise StopError(f"{_quote(name)} names no run.", f"Use {' or '.join(_PLACES)}. {_LIST}", exit_code=2)
    if name == "@last":
        from interlock.service.report.latest_run import read_latest_run  # noqa: PLC0415 — only this name needs it

        latest = read_latest_run(store, plans)
        if latest is None:
            raise _not_found(_NO_RUN)
        return SelectedSession(session=latest.session, run=latest.run.run)
    every = _rows(listing(store, plans))
    waiting = [one for one in every if one.run.waiting or one.run.status == "blocked"]
    if not waiting:
        raise _not_found("No run is blocked or waits." if every else _NO_RUN)
    return SelectedSession(session=waiting[0].session, run=waiting[0].run.run)


def _select_by_token(store: StoreReader, name: str) -> SelectedSession:
    found = referred(store, name)
    if not isinstance(found, ReferredNode):
        raise StopError(
            f"This is not a token of this data directory: {found.found}.",
            f"Copy the complete token. {_LIST}",
            exit_code=1,
        )
    if not store.is_stored(found.session):
        raise _not_found(f"The token belongs to {found.session}, which does not exist any more.")
    return SelectedSession(session=found.session, run=found.run)


def _select_by_node(store: StoreReader, node: NodeId) -> SelectedSession:
    from interlock.service.run.history import session_of_node  # noqa: PLC0415 — a list needs no history

    session = session_of_node(store, node)
    if session is None:
        raise _not_found(f"No readable session contains the node {_quote(node)}.")
    return SelectedSession(session=session.session, run=session.nodes[node].run)


def _select_by_name(store: StoreReader, plans: Plans, name: str) -> SelectedSession:
    if store.is_stored(SessionId(name)):
        return SelectedSession(session=SessionId(name))
    sessions = store.sessions()
    body = name.removeprefix("sess_")
    by_session = [one for one in sessions if _is_part(body, one)]
    if len(by_session) == 1 and not _may_be_label(name):
        return SelectedSession(session=by_session[0])
    listed = listing(store, plans)
    by_run = [row for row in _rows(listed) if name in (row.run.run, row.run.label)]
    if len(by_run) == 1 and {row.session for row in by_run} >= set(by_session):
        return SelectedSession(session=by_run[0].session, run=by_run[0].run.run)
    if len(by_session) == 1 and not by_run:
        return SelectedSession(session=by_session[0])
    if by_session or by_run:
        candidates = _candidates(listed, by_session, by_run)
        raise _ambiguous(f"{_quote(name)} matches {len(candidates)} runs.", candidates, exit_code=1)
    message = f"No session or run in this data directory matches {_quote(name)}."
    if listed.unreadable:
        message += f" {counted(len(listed.unreadable), 'session')} cannot be read, so their runs were not searched."
    raise _not_found(message)


def _others_lines(others: Sequence[Row], unreadable: Sequence[Unreadable], *, is_of_project: bool) -> Iterator[str]:
    """Yield which other runs there are, after the latest one was selected, and which sessions cannot be read."""
    named = [f"{row.run.label} ({one_line(row.run.goal or row.run.workflow_name, CELL_BYTES_MAX)})" for row in others]
    more = f" and {len(named) - OTHERS_NAMED} more" if len(named) > OTHERS_NAMED else ""
    if named:
        yield flat(
            f"This is the latest run{' of this project' if is_of_project else ''}. Other runs:"
            f" {', '.join(named[:OTHERS_NAMED])}{more}. Name one of them; `interlock session list` lists all."
        )
    yield from unreadable_lines(unreadable)


def deleted_meanwhile(session: SessionId) -> StopError:
    """Return the error of a session that was deleted after the command found it (LOCK-10)."""
    return _not_found(f"The session {session} is not there any more: it was deleted meanwhile.")


def _not_found(message: str) -> StopError:
    return StopError(message, _LIST, exit_code=1, code=ErrorCode.SESSION_NOT_FOUND)


def _is_part(body: str, session: SessionId) -> bool:
    whole = session.rpartition("_")[2]
    return bool(body) and (whole.startswith(body) or whole.endswith(body))


def _may_be_label(name: str) -> bool:
    return len(name) in (LABEL_CHARS, LABEL_CHARS_ON_CLASH) or name.startswith("run_")


def _rows(listed: Listing) -> list[Row]:
    return newest_first(row for session in listed.sessions for row in rows_of(session))


def _ambiguous(message: str, candidates: list[str], *, exit_code: int) -> StopError:
    more = len(candidates) - NAMED_MAX
    rest = [f"  and {more} more; `interlock session list` lists them."] if more > 0 else []
    return StopError("\n".join([message, *candidates[:NAMED_MAX], *rest]), _ONE_OF, exit_code=exit_code)


def _candidates(listed: Listing, sessions: Collection[SessionId], runs: Collection[Row]) -> list[str]:
    """Return a line for each of these runs, and for each run of these sessions."""
    known = [_candidate(row) for row in _rows(listed) if row.session in sessions or row in runs]
    return known + [f"  {one.session}  {one.health}" for one in listed.unreadable if one.session in sessions]


def _candidate(row: Row) -> str:
    run = row.run
    what = one_line(run.goal or run.workflow_name, CELL_BYTES_MAX)
    return f"  {row.session}  run {run.label}  {run.status_text}  {flat(what)}"


def _quote(name: str) -> str:
    return f"'{one_line(name, ECHO_BYTES_MAX)}'"
