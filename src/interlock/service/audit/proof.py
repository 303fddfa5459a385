"""Proves a session: what differs, how much was examined, and whether each run conforms to its plan (VERIFY-1)."""

from interlock.kernel.frozen import frozen
from interlock.kernel.ids import SessionId
from interlock.service.audit.verify import (
    Examined,
    Mismatch,
    OtherWords,
    unfinished_note,
    verify_with_words,
)
from interlock.service.run.context import load_run_context
from interlock.service.run.lifecycle import read_lifecycle
from interlock.service.run.plans import Plans
from interlock.store.ports.errors import ContentDamagedError, SessionUnhealthyError
from interlock.store.ports.reader import SessionReader
from interlock.views.lifecycle.conformance import faults_of


@frozen
class RunConformance:
    """Whether the lifecycle of a run's preferred branch is a possible history of its plan; None: it is not complete."""

    label: str
    run: str
    faults: int | None


@frozen
class Proof:
    """What differs in a session, how much was examined, and the conformance of each run.

    `examined` is None, and there is no conformance, if the log cannot be read. `redacted` is set for a redacted copy:
    what a sound one does not prove.
    """

    mismatches: tuple[Mismatch, ...]
    words: tuple[OtherWords, ...]
    examined: Examined | None
    conformance: tuple[RunConformance, ...]
    note: str | None
    redacted: str | None


def prove_session(store: SessionReader, plans: Plans, session: SessionId) -> Proof:
    """Verify a session as `verify_session` does, and say what that covered.

    Raises:
        StoreFailureError: The disk failed.
    """
    verified = verify_with_words(store, plans, session)
    return Proof(
        mismatches=verified.mismatches,
        words=verified.words,
        examined=verified.examined,
        conformance=_conformance(store, plans, session),
        note=unfinished_note(store, session),
        redacted=verified.redacted,
    )


def _conformance(store: SessionReader, plans: Plans, session: SessionId) -> tuple[RunConformance, ...]:
    try:
        loaded = store.load(session)
        if loaded is None:
            return ()
        found: list[RunConformance] = []
        for run in loaded.runs.values():
            context = load_run_context(loaded, run, plans)
            assert run.tip is not None, "a run begins with its root"
            lifecycle = read_lifecycle(store, context, loaded.nodes[run.tip])
            events = (event.to_json() for event in lifecycle.events)
            faults = None if lifecycle.partial else len(faults_of(events, context.workflow.plan))
            found.append(RunConformance(label=loaded.label(run.run), run=run.run, faults=faults))
        return tuple(found)
    except (SessionUnhealthyError, ContentDamagedError):
        return ()
