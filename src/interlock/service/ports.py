"""The ports of the use cases, in one value that a surface (server or command line) builds once."""

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from interlock.channels.channel import ChannelSource
from interlock.channels.check import CheckFault, PlacedCheck
from interlock.engine.gates import AppAnswers, GateClaims
from interlock.engine.outside import SourceKey
from interlock.kernel.budgets import ARTIFACT_BYTES_MAX, SUMMARY_RUNS_MAX
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import Digest, IntentId, NodeId, RunId, SessionId
from interlock.kernel.progress import Progress, report_nothing
from interlock.record.append_plan import AppendPlan, Stamps
from interlock.record.base import SHORT, Preferences, TokenFormat
from interlock.record.errors import UnknownVersionError
from interlock.record.events import Actor
from interlock.record.world import PinnedCheck, ProofMode
from interlock.service.clock import Clock, NoTrace, SystemClock, Trace, mint_event, recorded_at
from interlock.service.run.plans import Plans
from interlock.service.run.summaries import Listing, Summaries
from interlock.service.run.summarize import LateSummaries, summary_of
from interlock.service.unanswered import UnansweredStarts
from interlock.store.ports.errors import ContentDamagedError, SessionBusyError, StoreFailureError
from interlock.store.ports.keys import KeyRingReader, KeyRingWriter
from interlock.store.ports.reader import SessionReader
from interlock.store.ports.workspace import NO_TREE, NOWHERE, GitAnchors, WorkTree
from interlock.store.ports.writer import SessionLock, SessionWriter
from interlock.views.outside import Intent, SigningKeys
from interlock.views.session import BASELINE, Session

if TYPE_CHECKING:
    # Importing it loads the compiler, which read-only commands do not need.
    from interlock.service.workflows.catalog import Catalog


class Outbox(Protocol):
    """Sends intents after they are recorded: through channels that only the user configures (WORLD-6)."""

    def uncovered(self, sends: str, source: ChannelSource) -> str | None:
        """Return why no single channel takes intents of this kind from this kind of source; None if one does."""
        ...

    def offer(self, session: SessionId, intents: Sequence[Intent]) -> None:
        """Take intents that this process recorded, to send them. Returns at once."""
        ...

    def resume(self) -> None:
        """Offer what processes recorded and did not try to send before they ended (WORLD-13). Servers do this once."""
        ...

    def close(self) -> None:
        """Wait a short time for what is being sent, then send nothing more and end what can be ended."""
        ...


class Untried(Protocol):
    """Remembers intents that no process has tried to send, until then. It never raises (WORLD-13)."""

    def note(self, session: SessionId, intents: Collection[IntentId]) -> None:
        """Remember exactly these intents of a session, which this process recorded."""
        ...

    def left(self) -> Iterable[tuple[SessionId, Collection[IntentId]]]:
        """Return what is remembered of sessions that nobody changed since. Forget the others."""
        ...


class NothingUntried:
    """Remembers nothing."""

    def note(self, session: SessionId, intents: Collection[IntentId]) -> None:
        """See `Untried`."""

    def left(self) -> Iterable[tuple[SessionId, Collection[IntentId]]]:
        """See `Untried`."""
        return ()


class NoOutbox:
    """No channel: nothing is sent, and no workflow that sends anything can start."""

    def uncovered(self, sends: str, source: ChannelSource) -> str | None:
        """See `Outbox`."""
        return f"no channel is configured (for `{sends}`, of a workflow of the source `{source}`)"

    def offer(self, session: SessionId, intents: Sequence[Intent]) -> None:
        """See `Outbox`: what is recorded stays undelivered."""

    def resume(self) -> None:
        """See `Outbox`."""

    def close(self) -> None:
        """See `Outbox`."""


@frozen
class WaitingCheck:
    """A check that a step waits for. `node` is the one where the step became pending, `results` counts those it has.

    `pinned` identifies the check that the run began with; None if the run has no such check.
    """

    session: SessionId
    run: RunId
    label: str
    node: NodeId
    name: str
    pinned: PinnedCheck | None
    results: int = 0


class HeldCheck(Protocol):
    """The held right to run the check of a node."""

    descriptor: int
    """Holds the right as long as a process has it open; a command inherits it."""
    unfinished: int | None
    """The number of the run that an earlier holder began and did not settle; None if there is none."""

    def mark(self, run: int) -> None:
        """Write down that the run of a number begins.

        Raises:
            StoreFailureError: The disk failed.
        """
        ...


class Checks(Protocol):
    """Runs the checks that the user's configuration defines, each in a process of its own (CHECK-3)."""

    def pin(self, name: str, workspace: Path | None) -> PinnedCheck | CheckFault:
        """Return what identifies a check of a run in a workspace, or why it cannot run there."""
        ...

    def find(self, waiting: WaitingCheck) -> PlacedCheck | CheckFault:
        """Return the check that a step waits for with the state of its protected files, or why it must not run now."""
        ...

    def begin(self, waiting: WaitingCheck) -> CheckFault | None:
        """Let another process run a check, unless one does; return why it must not run. Returns at once."""
        ...

    def hold(self, node: NodeId) -> AbstractContextManager[HeldCheck | None]:
        """Hold the right to run the check of a node; gives None if another process has it."""
        ...

    def is_unfinished(self, waiting: WaitingCheck) -> bool:
        """Say whether the next run of a check seems to have ended without a result; only a holder knows it."""
        ...

    def exit_of(self, waiting: WaitingCheck) -> int | None:
        """Return how the process ended that was begun here for the next run of a check; None if that is unknown.

        The process may have ended because another one runs the check: that is unknown, too.
        """
        ...


class NoChecks:
    """No check is defined: a workflow with one does not start."""

    def pin(self, name: str, workspace: Path | None) -> PinnedCheck | CheckFault:  # noqa: ARG002 — it has none
        """See `Checks`."""
        return undefined_check(name)

    def find(self, waiting: WaitingCheck) -> PlacedCheck | CheckFault:
        """See `Checks`."""
        return undefined_check(waiting.name)

    def begin(self, waiting: WaitingCheck) -> CheckFault | None:
        """See `Checks`."""
        return undefined_check(waiting.name)

    def hold(self, node: NodeId) -> AbstractContextManager[HeldCheck | None]:  # noqa: ARG002 — it has none
        """See `Checks`."""
        return nullcontext(None)

    def is_unfinished(self, waiting: WaitingCheck) -> bool:  # noqa: ARG002 — it has none
        """See `Checks`."""
        return False

    def exit_of(self, waiting: WaitingCheck) -> int | None:  # noqa: ARG002 — it has none
        """See `Checks`."""
        return None


def undefined_check(name: str) -> CheckFault:
    """Return the fault of a check that nobody has defined."""
    return CheckFault(
        why=f"the check `{name}` is not defined",
        fix=f"Only the user can define it: in `config.toml`, below a line `[checks.{name}]`, with `command` and"
        " `workspaces`. `interlock checks list` lists those that are defined.",
    )


def nowhere(_workspace: Path | None) -> GitAnchors:
    """Return an empty git position: the default of a surface that does not read git."""
    return NOWHERE


def no_tree(_directory: Path) -> WorkTree:
    """Return an unknown working tree: the default of a surface that does not read git."""
    return NO_TREE


def unknown_client() -> bool | None:
    """Return that nothing is known of the client's process: the default of a surface that no server announces."""
    return None


@frozen
class ReadPorts:
    """The ports of read-only use cases: none of them appends to a session or makes a key (READ-1).

    `anchors` finds the git position of a workspace. `anchors_again` does so at the cost of a few small reads if it is
    the last one found. `tree` reads the state of a working tree.
    `token_format` is the format of new tokens. `summaries` is a cache that all calls share. Two
    fields belong to one call: `since_s`, its arrival by `time.monotonic`, from which waits for locks are measured; and
    `progress`, which receives how much is read.
    """

    reader: SessionReader
    key_ring: KeyRingReader
    plans: Plans
    trace: Trace = field(default_factory=NoTrace)
    anchors: Callable[[Path | None], GitAnchors] = nowhere
    tree: Callable[[Path], WorkTree] = no_tree
    anchors_again: Callable[[Path | None], GitAnchors] = nowhere
    token_format: TokenFormat = SHORT
    summaries: Summaries = field(default_factory=Summaries)
    since_s: float | None = None
    progress: Progress = report_nothing

    def load(self, session: SessionId, tag: str | None = None) -> Session | None:
        """Return a session's fold, as `SessionReader.load` does.

        Raises:
            SessionUnhealthyError, SessionBusyError, StoreFailureError: As there.
        """
        return self.reader.load(session, tag, since_s=self.since_s)

    def listing(self, *, checks_files: bool = True) -> Listing:
        """Return all sessions, by id, as `Summaries.listing` does. Writes nothing.

        Raises:
            StoreFailureError: The disk failed.
        """
        return self.summaries.listing(self.reader, self.plans, self.progress, checks_files=checks_files)

    @classmethod
    def over(cls, reader: SessionReader, key_ring: KeyRingReader) -> Self:
        """Build the ports over a store. This reads nothing."""
        return cls(reader=reader, key_ring=key_ring, plans=Plans(reader))


@frozen
class AppendPorts:
    """The ports of a use case that appends to a session that exists.

    Without `late_summaries`, a summary is cached before an append returns.
    """

    read: ReadPorts
    writer: SessionWriter
    clock: Clock = field(default_factory=SystemClock)
    late_summaries: LateSummaries | None = None

    @contextmanager
    def hold(self, session: SessionId, *, label: str | None = None) -> Generator[SessionLock]:
        """Hold the session's lock, as `SessionWriter.hold` does. A refusal names the run by `label` (LOCK-9)."""
        try:
            with self.writer.hold(session, since_s=self.read.since_s) as lock:
                yield lock
        except SessionBusyError as error:
            error.label = error.label or label
            raise

    def append(self, lock: SessionLock, plan: AppendPlan, actor: Actor | None) -> Session:
        """Append a plan, and cache the session's new summary, by which it is found later, or offer it (RES-4, RES-12).

        The cache is optional: readers can rebuild it.

        Raises:
            StoreFailureError, BrokenHistoryError: As `SessionWriter.append` says.
        """
        with self.read.trace.span("append"):
            session = self.writer.append(lock, plan, self.stamps(actor))
        if self.late_summaries is not None:
            self.late_summaries.offer(session.session)
            return session
        try:
            self.cache_summary(lock, session)
        except (ContentDamagedError, UnknownVersionError, StoreFailureError):
            # The append is done; a reader that finds no summary makes one.
            return session
        return session

    def stamps(self, actor: Actor | None) -> Stamps:
        """Return what turns drafts of an actor into events that happen now."""
        return Stamps(mint_event_id=lambda: mint_event(self.clock), recorded_at=recorded_at(self.clock), actor=actor)

    def cache_summary(self, lock: SessionLock, session: Session) -> None:
        """Cache the summary of a session, unless it has too many runs for one. The session is that of the lock.

        Raises:
            ContentDamagedError, UnknownVersionError: The summary cannot be made.
            StoreFailureError: The disk failed.
        """
        if len(session.runs) <= SUMMARY_RUNS_MAX:
            self.writer.cache_summary(lock, summary_of(session, self.read.plans).to_bytes())


@frozen
class Ports(AppendPorts):
    """The ports of all use cases: those that write, the configuration, and the starts whose answers were lost.

    `is_client_of_agent` says whether an agent started the client of this server; None if it cannot be known (WORLD-9).
    Without `begins_checks`, a call takes the result of a check if there is one, and begins no process that makes one.
    """

    key_ring: KeyRingWriter
    catalog: "Catalog"
    baseline: Preferences = BASELINE
    gates_claims: GateClaims = "when_client_cannot_ask"
    gates_apps: AppAnswers = "as_claims"
    artifact_bytes_max: int = ARTIFACT_BYTES_MAX
    keeps_repo_root: bool = False
    outbox: Outbox = field(default_factory=NoOutbox)
    checks: Checks = field(default_factory=NoChecks)
    begins_checks: bool = True
    sources: Mapping[str, SourceKey] = field(default_factory=dict[str, SourceKey])
    config_hash: Digest | None = None
    proofs: ProofMode = "enforce"
    unanswered: UnansweredStarts = field(default_factory=UnansweredStarts)
    is_client_of_agent: Callable[[], bool | None] = unknown_client

    @property
    def signing_keys(self) -> SigningKeys:
        """The keys whose signatures count for a step that demands one (WORLD-10)."""
        return frozenset((one.name, one.public_key) for one in self.sources.values())

    def for_call(self, since_s: float, progress: Progress, *, begins_checks: bool = True) -> "Ports":
        """Return the ports for one call; see `ReadPorts`. Caches are shared with the other calls."""
        read = replace(self.read, since_s=since_s, progress=progress)
        return replace(self, read=read, begins_checks=begins_checks)
