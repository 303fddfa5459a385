"""Views of a damaged session: its sound beginning, or all of a sound log, under a banner that says what is lost."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Generic, TypeVar

from interlock.kernel.budgets import NAMED_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.errors import Refusal
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import SessionId
from interlock.service.report.document import Block, Bullets, Line, Paragraph, UntrustedText
from interlock.service.run.advice import ACCESS, advise, advise_undecided
from interlock.service.run.history import History, history_of
from interlock.service.run.plans import Plans
from interlock.service.transfer.salvage import SoundPrefix, left_out_words, readable_prefix
from interlock.store.ports.errors import ContentDamagedError, SessionUnhealthyError
from interlock.store.ports.reader import SessionReader
from interlock.views.evolution import evolve
from interlock.views.session import new_session

if TYPE_CHECKING:
    from interlock.record.bundle import SalvageBanner
    from interlock.service.audit.verify import Mismatch

_View = TypeVar("_View")


@frozen
class Damage:
    """What is lost of a session; `found` is of `verify`. Unless `is_log_shown`, the view ends where the banner says.

    With a sound log, only content is lost: calls that do not need it still work (READ-9).
    With `is_undecided`, nothing is lost: it is not known whether the last append counts (`Salvaged.is_undecided`).
    With `is_unreadable`, content cannot be read, and is not known to be damaged.
    """

    banner: "SalvageBanner"
    is_log_sound: bool
    is_log_shown: bool
    found: "tuple[Mismatch, ...]"
    advice: str
    is_undecided: bool = False
    is_unreadable: bool = False

    def lines(self) -> Iterator[Line]:
        """Yield what is lost, and what to do. The first line names the code."""
        banner, what = self.banner, "cannot be read in full" if self.is_unreadable else "damaged"
        if self.is_log_shown:
            yield (f"{banner.code}: {what}. Every event is shown, but what some refer to cannot be read.",)
        elif self.is_undecided:
            yield (f"{banner.code}: the settled mark cannot be read, so the last append is not shown. {self.advice}",)
            yield "not shown: ", UntrustedText(left_out_words(banner))
            return
        else:
            before = "before that" if self.is_unreadable else "before the damage"
            yield (f"{banner.code}: {what}. Only what was recorded {before} is shown.",)
            yield "left out: ", UntrustedText(left_out_words(banner))
        for one in self.found[:NAMED_MAX]:
            yield (
                f"{one.code} at {one.node or 'the session'}, ",
                UntrustedText(one.where),
                ": ",
                UntrustedText(one.found),
            )
        if len(self.found) > NAMED_MAX:
            yield (f"{len(self.found) - NAMED_MAX} more; `interlock session verify` lists them.",)
        if self.is_log_sound:
            yield (f"Calls that do not need what is lost still work. {self.advice}",)
        else:
            yield (f"Nothing of it can be continued. {self.advice}",)

    def blocks(self) -> tuple[Block, ...]:
        """Return the banner as blocks of a page."""
        first, *rest = self.lines()
        return Paragraph(first), Bullets(tuple(rest))

    def to_json(self) -> dict[str, Json]:
        """Return the banner as `--json` prints it."""
        found: list[Json] = [one.to_json() for one in self.found]
        return {**self.banner.to_json(), "isLogShown": self.is_log_shown, "mismatches": found}


@frozen
class Viewed(Generic[_View]):
    """A view of a session, and what is lost of the session; None if nothing is."""

    view: _View
    damage: Damage | None

    @property
    def exit_code(self) -> int:
        """The exit code of a command that shows it."""
        return 0 if self.damage is None else 1

    @property
    def banner(self) -> tuple[Block, ...]:
        """The banner of a damaged session as blocks of a page."""
        return self.damage.blocks() if self.damage is not None else ()

    def with_damage(self, value: dict[str, Json]) -> dict[str, Json]:
        """Return the view as JSON, with what is lost."""
        return value if self.damage is None else {**value, "damage": self.damage.to_json()}


def view_session(
    store: SessionReader, plans: Plans, session: SessionId, view: Callable[[History], _View]
) -> Viewed[_View] | Refusal:
    """Make a view of a session, of its sound beginning if it is damaged. A refusal: no part of it can be used.

    Raises:
        SessionUnhealthyError, ContentDamagedError: The view needs something that is lost.
        StoreFailureError, UnknownVersionError: See `service.failures`.
    """
    prefix = readable_prefix(store, session)
    if isinstance(prefix, Refusal):
        what = "The stored session is damaged. " if "salvage" in prefix.details else ""
        details = {"sessionId": session, **prefix.details}
        return replace(prefix, message=f"{what}{prefix.message}", details=details)
    if prefix.banner is None:
        return Viewed(view=view(_whole(store, prefix)), damage=None)
    if prefix.is_undecided:
        damage = Damage(
            banner=prefix.banner,
            is_log_sound=False,
            is_log_shown=False,
            found=(),
            advice=advise_undecided(session),
            is_undecided=True,
        )
        return Viewed(view=view(_history(prefix)), damage=damage)
    from interlock.service.audit.verify import verify_session  # noqa: PLC0415 — a sound session needs no audit

    found = verify_session(store, plans, session)
    is_unreadable = prefix.unreadable is not None
    damage = Damage(
        banner=prefix.banner,
        is_log_sound=True,
        is_log_shown=True,
        found=found,
        advice=ACCESS if is_unreadable else advise(session, has_sound_part=True),
        is_unreadable=is_unreadable,
    )
    try:
        # Lost artifacts are reported where they belong, so the rest of the run can be shown.
        return Viewed(view=view(_whole(store, prefix)), damage=damage)
    except (SessionUnhealthyError, ContentDamagedError) as error:
        cut = replace(damage, is_log_sound=isinstance(error, ContentDamagedError), is_log_shown=False)
        return Viewed(view=view(_history(prefix)), damage=cut)


def _whole(store: SessionReader, prefix: SoundPrefix) -> History:
    """Return the history of a session whose log is sound; the sound prefix was read a moment ago.

    Its events are not read again, unless another process has appended since.

    Raises:
        SessionUnhealthyError, StoreFailureError: See `history_of`.
    """
    state = store.load(prefix.session)
    if state is not None and state.next_index == prefix.events:
        return History(session=state, appended=prefix.history)
    return history_of(store, prefix.session) or _history(prefix)


def _history(prefix: SoundPrefix) -> History:
    events = [event for appended in prefix.history for event in appended]
    return History(session=evolve(new_session(prefix.session), *events), appended=prefix.history)
