"""Views of the session that a command line names, of its sound beginning if it is damaged (HIS-8)."""

from collections.abc import Callable
from typing import TypeVar

from interlock.cli.screen import RefusedError
from interlock.cli.session.chosen import SelectedSession
from interlock.kernel.errors import Refusal
from interlock.service.audit.damage import Damage, Viewed
from interlock.service.audit.damage import view_session as view_any_session
from interlock.service.run.history import History
from interlock.service.run.plans import Plans
from interlock.store.ports.store import StoreReader

__all__ = ["Damage", "Viewed", "view_session"]

_View = TypeVar("_View")


def view_session(
    store: StoreReader, plans: Plans, chosen: SelectedSession, view: Callable[[History], _View]
) -> Viewed[_View]:
    """Make a view of a session, of its sound beginning if it is damaged.

    Raises:
        RefusedError: No part of it can be used.
        SessionUnhealthyError, ContentDamagedError: The view needs something that is lost.
        StoreFailureError, UnknownVersionError: See `answered_by_store`, in which the caller is.
    """
    viewed = view_any_session(store, plans, chosen.session, view)
    if isinstance(viewed, Refusal):
        raise RefusedError(viewed)
    return viewed
