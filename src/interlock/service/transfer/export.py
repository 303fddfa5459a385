"""Export one session, with all content that it refers to, as a bundle (BND-6). Writes nothing to the store."""

import json
from collections.abc import Sequence

from interlock.kernel.budgets import BUNDLE_BYTES_MAX, BUNDLE_DEPTH_MAX, BUNDLE_VALUES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import SessionId
from interlock.kernel.json_bounds import find_excess
from interlock.record.bundle import (
    BUNDLE_BOUNDS,
    ArtifactText,
    BundleEnvelope,
    Producer,
    SalvageBanner,
    derive_bundle_id,
    seal_bundle,
)
from interlock.record.content import Contents
from interlock.record.events import Event, RunStartedEvent
from interlock.record.manifest import attest_history
from interlock.service.clock import Clock, recorded_at
from interlock.service.transfer.salvage import SoundPrefix, left_out_words, refuse_undecided, sound_prefix
from interlock.store.ports.reader import SessionReader
from interlock.version import VERSION


@frozen
class Exported:
    """The bytes of a bundle and what they contain; `banner` is set if that is not the whole session."""

    data: bytes
    bundle_id: str
    session: SessionId
    events: int
    banner: SalvageBanner | None


def export_session(
    reader: SessionReader, clock: Clock, session: SessionId, *, is_salvage: bool = False
) -> Exported | Refusal:
    """Export a session as a bundle. With `is_salvage`, export the undamaged part of a damaged one, marked by a banner.

    Raises:
        SessionBusyError, UnknownVersionError, StoreFailureError: See `service.failures`.
    """
    prefix = sound_prefix(reader, session)
    if isinstance(prefix, Refusal):
        return prefix
    if prefix.is_undecided and not is_salvage:
        return refuse_undecided(session)
    if prefix.banner is not None and not is_salvage:
        return _refuse_damaged(prefix, prefix.banner)
    size = _size(prefix.contents)
    if size > BUNDLE_BYTES_MAX:
        return _refuse_bytes(session, size)
    events: list[Json] = [event.to_json() for events in prefix.history for event in events]
    envelope = BundleEnvelope(
        bundle_schema_version=1,
        bundle_id=derive_bundle_id(session, events),
        exported_at=recorded_at(clock),
        producer=_producer(prefix),
        **({"salvage": prefix.banner} if prefix.banner is not None else {}),
    )
    data = seal_bundle(envelope, _session(prefix, events))
    if len(data) > BUNDLE_BYTES_MAX:
        return _refuse_bytes(session, len(data))
    if find_excess(data, BUNDLE_BOUNDS) is not None:
        found = f"more than {BUNDLE_VALUES_MAX} values, or values nested deeper than {BUNDLE_DEPTH_MAX} levels"
        return _refuse_size(session, found, {"valuesMax": BUNDLE_VALUES_MAX})
    return Exported(data=data, bundle_id=envelope.bundle_id, session=session, events=len(events), banner=prefix.banner)


def _producer(prefix: SoundPrefix) -> Producer:
    """Return who wrote the bundle, with the configuration under which its newest run began (BND-12)."""
    started = [event.data for events in prefix.history for event in events if isinstance(event, RunStartedEvent)]
    config_hash = started[-1].applied_config_hash if started else None
    return Producer(app_version=VERSION, **({} if config_hash is None else {"applied_config_hash": config_hash}))


def _session(prefix: SoundPrefix, events: list[Json]) -> dict[str, Json]:
    contents = prefix.contents
    return {
        "sessionId": prefix.session,
        "events": events,
        "manifest": _manifest(prefix.session, prefix.history),
        "snapshots": {ref: json.loads(data) for ref, data in contents.snapshots.items()},
        "pinnedWorkflows": {one: json.loads(data) for one, data in contents.workflows.items()},
        "artifacts": {digest: ArtifactText.from_bytes(data).to_json() for digest, data in contents.artifacts.items()},
    }


def _manifest(session: SessionId, history: Sequence[Sequence[Event]]) -> list[Json]:
    """Return the records of the manifest; they follow from the events, so they equal those of the log."""
    return [json.loads(line) for _, group in attest_history(session, history) for line in group.data.splitlines()]


def _size(contents: Contents) -> int:
    parts = (contents.snapshots, contents.workflows, contents.artifacts)
    return sum(len(data) for part in parts for data in part.values())


def _refuse_damaged(prefix: SoundPrefix, banner: SalvageBanner) -> Refusal:
    return Refusal(
        code=ErrorCode.SESSION_NOT_HEALTHY,
        message=f"{prefix.session} is damaged, so it is not exported. Its first {prefix.events} events are undamaged."
        f" Unusable: {left_out_words(banner)}.",
        suggestion="Restore the session from a backup, or export only the undamaged part with `--salvage`. Nothing was"
        " written.",
        details={"salvage": banner.to_json()},
    )


def _refuse_bytes(session: SessionId, size: int) -> Refusal:
    found = f"{size} bytes or more; the limit is {BUNDLE_BYTES_MAX}"
    return _refuse_size(session, found, {"bytes": size, "bytesMax": BUNDLE_BYTES_MAX})


def _refuse_size(session: SessionId, found: str, details: dict[str, Json]) -> Refusal:
    return Refusal(
        code=ErrorCode.VALIDATION_ERROR,
        message=f"A bundle of {session} would have {found}.",
        suggestion="Copy the data directory instead: a copy works anywhere. Nothing was written.",
        details=details,
    )
