"""What a person decides in the console, by the use cases of the commands and with no rule of its own (CON-1, CON-8)."""

from collections.abc import Callable

from interlock.config.checks import ProjectChecks
from interlock.config.project_checks import allow_project, checks_to_allow, chosen_project
from interlock.config.settings import Settings
from interlock.console.decision_link import LinkedQuestion
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import IntentId, NodeId, RunId, SessionId
from interlock.record.world import APPROVAL, IntentSettled
from interlock.service.outside.dispatch import Dispatcher, Undelivered
from interlock.service.outside.intents import abandon_intent, deliver_intent
from interlock.service.outside.receive import Arrival
from interlock.service.ports import Ports
from interlock.service.run.context import RunContext, load_run_context
from interlock.service.run.evidence.approval import OpenApproval, open_approval
from interlock.service.run.plans import Plans
from interlock.service.run.summaries import Listing
from interlock.service.trust.approve import ApprovalReport, GivenAnswer, answer_approval
from interlock.service.trust.inbox import InboxItem, InboxNow, inbox_of
from interlock.service.trust.word import actor_of, arrival_of
from interlock.store.ports.reader import SessionReader
from interlock.views.session import Session

CONSOLE = "console"
"""What the log calls whoever answers in the console."""


@frozen
class AskedQuestion:
    """A question that is open, with the run that waits for it. `answers` counts those that did not decide it."""

    approval: OpenApproval
    run_context: RunContext
    answers: int


@frozen
class Decisions:
    """The use cases with which people decide.

    `is_of_agent` says whether an agent started this process; None if that is not known. It is asked for each answer,
    because the process that started this one may begin to serve an agent later.
    """

    ports: Ports
    settings: Settings
    is_of_agent: Callable[[], bool | None]

    def level(self, *, is_by_person: bool) -> Arrival:
        """Return how well an answer counts. `is_by_person`: a person admitted the browser that sent it."""
        return arrival_of("console", is_by_person=is_by_person, is_of_agent=self.is_of_agent())

    def inbox(self, found: Listing) -> list[InboxItem]:
        """Return what waits for a person, oldest first, and the sessions of which that is not known.

        Raises:
            StoreFailureError: See `service.failures`.
        """
        read = self.ports.read
        ports, channels = self.ports, self.settings.config.channels
        now_ms = ports.clock.unix_ms()
        now = InboxNow(channels=channels, checks=ports.checks, keys=ports.signing_keys, now_ms=now_ms)
        waiting = inbox_of(read.reader, read.plans, found, now)
        return [*checks_to_allow(self.settings), *waiting]

    def question(self, session_id: SessionId, node_id: NodeId) -> AskedQuestion | None:
        """Return the question that a node waits for; None if it is decided, or the session has no such node.

        Raises:
            StoreFailureError, SessionUnhealthyError, ContentDamagedError: See `service.failures`.
        """
        session, run = self._session(session_id), self._run_of(session_id, node_id)
        read = self.ports.read
        asked = (
            find_question(read.reader, read.plans, session, run) if session is not None and run is not None else None
        )
        return asked if asked is not None and asked.approval.node.node == node_id else None

    def answer(
        self, session_id: SessionId, node_id: NodeId, given: GivenAnswer, *, is_by_person: bool
    ) -> ApprovalReport | Refusal | None:
        """Record an answer to the question of a node; None if the session has no such node.

        Raises:
            StoreFailureError, SessionBusyError, SessionUnhealthyError, ContentDamagedError, KeyRingDamagedError:
                See `service.failures`.
        """
        run = self._run_of(session_id, node_id)
        how = self.level(is_by_person=is_by_person)
        return (
            answer_approval(self.ports, (session_id, run), given, how, actor_of(how, CONSOLE))
            if run is not None
            else None
        )

    def deliver(
        self, session_id: SessionId, intent_id: IntentId, *, is_repeated: bool
    ) -> IntentSettled | Undelivered | None:
        """Send an intent now; None if there is no such intent.

        Raises:
            SessionBusyError, SessionUnhealthyError, StoreFailureError: See `service.failures`.
        """
        session = self._session(session_id)
        if session is None or intent_id not in session.outside.intents:
            return None
        assert isinstance(self.ports.outbox, Dispatcher), "as local ports are built"
        return deliver_intent(self.ports.outbox.sender, session, intent_id, is_repeated=is_repeated)

    def abandon(
        self, session_id: SessionId, intent_id: IntentId, *, is_by_person: bool
    ) -> IntentSettled | Undelivered | None:
        """Record that an intent is not sent any more; None if there is no such session.

        Raises:
            SessionBusyError, SessionUnhealthyError, StoreFailureError: See `service.failures`.
        """
        if self._session(session_id) is None:
            return None
        return abandon_intent(
            self.ports, session_id, intent_id, actor_of(self.level(is_by_person=is_by_person), CONSOLE)
        )

    def project(self) -> ProjectChecks | None:
        """Return the project of the workspace that has checks of its own."""
        return chosen_project(self.settings)

    def allow_checks(self, digest: str, *, is_by_person: bool) -> ProjectChecks | Refusal:
        """Allow the project's own checks, if their file is unchanged since it was shown.

        Raises:
            StoreFailureError: See `service.failures`.
        """
        if self.level(is_by_person=is_by_person).assurance == "claimed":
            fix = "Run `interlock checks allow` in a terminal that no agent controls."
            return _refused("Only a person allows checks, and it is not known that you are one.", fix)
        project = self.project()
        if project is None or project.fault is not None or project.digest != digest:
            return _refused("The file with the checks has changed since it was shown.", "Open the inbox again.")
        allow_project(self.settings, project, is_allowed=True)
        return project

    def _session(self, session_id: SessionId) -> Session | None:
        is_known = session_id in self.ports.read.reader.names()
        return self.ports.read.load(session_id) if is_known else None

    def _run_of(self, session_id: SessionId, node_id: NodeId) -> RunId | None:
        session = self._session(session_id)
        node = session.nodes.get(node_id) if session is not None else None
        return node.run if node is not None else None


def find_question(reader: SessionReader, plans: Plans, session: Session, run: RunId) -> AskedQuestion | None:
    """Return the question that a run waits for; None if it waits for none.

    Raises:
        StoreFailureError, SessionUnhealthyError, ContentDamagedError: See `service.failures`.
    """
    run_context = load_run_context(session, session.runs[run], plans)
    tip = run_context.run.tip
    if tip is None or run_context.run.ended is not None:
        return None
    approval = open_approval(reader, run_context, session.nodes[tip])
    if approval is None:
        return None
    answers = sum(one.node == approval.node.node for one in session.outside.received(run, APPROVAL))
    return AskedQuestion(approval=approval, run_context=run_context, answers=answers)


def linked_question(asked: AskedQuestion, *, is_person: bool) -> LinkedQuestion:
    """Return a question as a link to it is signed."""
    return LinkedQuestion(
        session=asked.run_context.session.session,
        node=asked.approval.node.node,
        shown=asked.approval.digest(),
        answers=asked.answers,
        is_person=is_person,
    )


def _refused(message: str, fix: str) -> Refusal:
    return Refusal(code=ErrorCode.VALIDATION_ERROR, message=f"{message} Nothing was recorded.", suggestion=fix)
