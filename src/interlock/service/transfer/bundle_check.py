"""All checks of a bundle, made before any of it is stored (BND-4, BND-5)."""

import re
from collections.abc import Iterable
from typing import NoReturn

from interlock.define.patterns import PatternChecker
from interlock.kernel.canonical import canonical_bytes, digest_of_bytes
from interlock.kernel.errors import ErrorCode
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import Digest, SessionId, SnapshotRef, WorkflowHash
from interlock.plan.check.pack_form import find_foreign
from interlock.plan.compiled import CompiledWorkflow, parse_compiled
from interlock.plan.fit import snapshot_fault
from interlock.record.bundle import Bundle, BundledSession, BundleError, SalvageBanner, parse_bundle
from interlock.record.content import Contents, References, collect_references
from interlock.record.errors import MalformedRecordError, UnknownVersionError
from interlock.record.events import Event
from interlock.record.manifest import ManifestRecord, SegmentClosed, attest_history
from interlock.views.appends import BrokenChainError, recorded_plan
from interlock.views.evolution import evolve
from interlock.views.outside import false_signatures
from interlock.views.session import BrokenHistoryError, Session, new_session

_NODE = re.compile(r"plan\.nodes\[(\d+)\]")
"""How the path of a fault names a node."""


@frozen
class CheckedBundle:
    """A bundle that passed all checks and can be stored."""

    session: SessionId
    history: tuple[tuple[Event, ...], ...]
    contents: Contents
    banner: SalvageBanner | None


def checked_bundle(data: bytes) -> CheckedBundle:
    """Parse and check the bytes of a bundle.

    Raises:
        BundleError: It cannot be imported; the code says why.
    """
    bundle = parse_bundle(data)
    folded = _fold(bundle)
    history = _history(bundle.session)
    _check_appends(folded.session, history)
    _check_signatures(bundle)
    named = collect_references(bundle.session.events)
    contents = Contents(
        snapshots=_snapshots(bundle.session, named),
        workflows=_workflows(bundle.session, named),
        artifacts=_artifacts(bundle.session, named),
    )
    _check_fit(bundle.session, folded, contents)
    return CheckedBundle(session=folded.session, history=history, contents=contents, banner=bundle.salvage)


def _fold(bundle: Bundle) -> Session:
    """Fold the events into a session, which checks their order."""
    folded = new_session(bundle.session.session_id)
    for at, event in enumerate(bundle.session.events):
        try:
            folded = evolve(folded, event)
        except BrokenHistoryError as error:
            _refuse(ErrorCode.BUNDLE_EVENT_ORDER_INVALID, f"session.events[{at}]", str(error))
    return folded


def _check_appends(session: SessionId, history: Iterable[tuple[Event, ...]]) -> None:
    """Check that each append holds what Interlock appends together, so that no step is done without an attempt."""
    before = new_session(session)
    for events in history:
        after = evolve(before, *events)
        try:
            recorded_plan(before, after, events)
        except BrokenChainError as error:
            where = f"session.events[{events[0].event_index}]"
            _refuse(ErrorCode.BUNDLE_EVENT_ORDER_INVALID, where, str(error))
        before = after


def _check_signatures(bundle: Bundle) -> None:
    """Check each signature of an event, because views show it and later steps may rest on it (WORLD-11)."""
    for event, found in false_signatures(bundle.session.events):
        _refuse(ErrorCode.BUNDLE_INTEGRITY_FAILED, f"session.events[{event.event_index}]", found)


def _history(session: BundledSession) -> tuple[tuple[Event, ...], ...]:
    """Group the events as the manifest says. The manifest must be exactly what these events produce."""
    history, at = list[tuple[Event, ...]](), 0
    for record in session.manifest:
        if isinstance(record, SegmentClosed):
            end = record.last_event_index + 1
            if record.first_event_index != at or not at < end <= len(session.events):
                _refuse_manifest(record, "its events are out of sequence")
            history.append(session.events[at:end])
            at = end
    if at != len(session.events):
        _refuse(ErrorCode.BUNDLE_MANIFEST_ORDER_INVALID, "session.manifest", f"covers only the first {at} events")
    expected = [line for _, group in attest_history(session.session_id, history) for line in group.data.splitlines()]
    for record, line in zip(session.manifest, expected, strict=False):
        if record.to_bytes() != line:
            _refuse_manifest(record, "does not match the events")
    if len(session.manifest) != len(expected):
        found = f"{len(session.manifest)} records, but the events need {len(expected)}"
        _refuse(ErrorCode.BUNDLE_MANIFEST_ORDER_INVALID, "session.manifest", found)
    return tuple(history)


def _snapshots(session: BundledSession, named: References) -> dict[SnapshotRef, bytes]:
    code = ErrorCode.BUNDLE_MISSING_SNAPSHOT
    _check_names("snapshots", named.snapshots, session.snapshots, code)
    found = {ref: snapshot.to_bytes() for ref, snapshot in session.snapshots.items()}
    for ref, data in found.items():
        _check_digest("snapshots", ref, data)
    return found


def _workflows(session: BundledSession, named: References) -> dict[WorkflowHash, bytes]:
    code = ErrorCode.BUNDLE_MISSING_PINNED_WORKFLOW
    _check_names("pinnedWorkflows", named.workflows, session.pinned_workflows, code)
    found = {one: canonical_bytes(value) for one, value in session.pinned_workflows.items()}
    for workflow_hash, data in found.items():
        _check_digest("pinnedWorkflows", workflow_hash, data)
    return found


def _artifacts(session: BundledSession, named: References) -> dict[Digest, bytes]:
    _check_names("artifacts", named.artifacts, session.artifacts, ErrorCode.BUNDLE_INTEGRITY_FAILED)
    found: dict[Digest, bytes] = {}
    for digest, text in session.artifacts.items():
        try:
            found[digest] = text.content()
        except ValueError:
            _refuse(ErrorCode.BUNDLE_INVALID_FORMAT, f"session.artifacts.{digest}", f"not valid {text.encoding}")
        _check_digest("artifacts", digest, found[digest])
    return found


def _check_names(part: str, named: Iterable[str], held: Iterable[str], missing: ErrorCode) -> None:
    """Check that a map contains exactly what the events refer to."""
    referenced, present = set(named), set(held)
    for name in sorted(referenced - present):
        _refuse(missing, f"session.{part}.{name}", "missing, but events refer to it")
    for name in sorted(present - referenced):
        _refuse(ErrorCode.BUNDLE_INVALID_FORMAT, f"session.{part}.{name}", "no event refers to it")


def _check_digest(part: str, name: Digest, data: bytes) -> None:
    if digest_of_bytes(data) != name:
        _refuse(ErrorCode.BUNDLE_INTEGRITY_FAILED, f"session.{part}.{name}", "its content does not match its digest")


def _check_fit(session: BundledSession, folded: Session, contents: Contents) -> None:
    """Check that every pinned workflow can be read, and that every node's state is possible in its run's plan."""
    plans = {one: _plan(one, data) for one, data in contents.workflows.items()}
    pairs = {(node.snapshot, folded.runs[node.run].workflow_hash): None for node in folded.nodes.values()}
    for ref, workflow_hash in pairs:
        snapshot = session.snapshots[ref]
        is_of_plan = snapshot.workflow_hash == workflow_hash
        fault = snapshot_fault(snapshot, plans[workflow_hash]) if is_of_plan else "it pins another workflow"
        if fault is not None:
            _refuse(ErrorCode.BUNDLE_INVALID_FORMAT, f"session.snapshots.{ref}", fault)


def _plan(workflow_hash: WorkflowHash, data: bytes) -> CompiledWorkflow:
    where = f"session.pinnedWorkflows.{workflow_hash}"
    try:
        workflow = parse_compiled(data)
    except UnknownVersionError as error:
        _refuse(ErrorCode.BUNDLE_UNSUPPORTED_VERSION, where, error.found)
    except MalformedRecordError as error:
        _refuse(ErrorCode.BUNDLE_INVALID_FORMAT, where, error.found)
    _check_plan(workflow, where)
    return workflow


def _check_plan(workflow: CompiledWorkflow, where: str) -> None:
    """Check a plan as one in a workflow file, because a pinned workflow is not checked again when it runs."""
    from interlock.plan.check.plan_file import plan_faults  # noqa: PLC0415 — it reads forms, and a look needs none

    for number, pack in enumerate(workflow.contracts):
        foreign = find_foreign(pack.artifact_schema) if pack.artifact_schema is not None else None
        if foreign is not None:
            place = f"{where}, contracts[{number}].{foreign}"
            _refuse(ErrorCode.BUNDLE_INVALID_FORMAT, place, "no contract of Interlock has this")
    faults = plan_faults(workflow, PatternChecker(), workflow.packs)
    for one in faults:
        if one.severity == "error":
            at = _NODE.match(one.path)
            place = one.path if at is None else f"step {workflow.plan.nodes[int(at[1])].node_id}"
            _refuse(ErrorCode.BUNDLE_INVALID_FORMAT, f"{where}, {place}", one.message)


def _refuse_manifest(record: ManifestRecord, found: str) -> NoReturn:
    where = f"session.manifest, record {record.manifest_index}"
    _refuse(ErrorCode.BUNDLE_MANIFEST_ORDER_INVALID, where, found)


def _refuse(code: ErrorCode, where: str, found: str) -> NoReturn:
    raise BundleError(code, where, found)
