"""Import a bundle as a session, under its own id if that is free (BND-7, BND-8)."""

from interlock.kernel.budgets import FOUND_BYTES_MAX
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import SessionId
from interlock.kernel.text import one_line
from interlock.record.bundle import BundleError, SalvageBanner
from interlock.record.events import mark_imported
from interlock.service.transfer.bundle_check import checked_bundle
from interlock.service.transfer.restore import Restored, Restoring
from interlock.store.ports.errors import FailureKind, StoreFailureError

_AGAIN = "Export the session again, and transfer the file as binary, unchanged: not through an editor."
_FIXES = {
    ErrorCode.BUNDLE_INVALID_FORMAT: "A bundle is the file that `interlock session export` writes, byte for byte."
    f" {_AGAIN}",
    ErrorCode.BUNDLE_UNSUPPORTED_VERSION: "A newer Interlock wrote it. Use that version or a newer one.",
    ErrorCode.BUNDLE_INTEGRITY_FAILED: f"It was changed or damaged after the export. {_AGAIN}",
}


@frozen
class Imported:
    """The imported session, the session id in the bundle (`source`), and a warning if it is incomplete."""

    restored: Restored
    source: SessionId
    banner: SalvageBanner | None


def import_session(ports: Restoring, data: bytes) -> Imported | Refusal:
    """Make a session from the bytes of a bundle. All of it is checked before any of it is stored.

    The session is marked as imported: its runs reach no channel that does not name this source (WORLD-7), and no step
    that still waits believes the levels of events that came with the bundle (WORLD-11).

    Raises:
        SessionBusyError, StoreFailureError, KeyRingDamagedError: See `service.failures`; nothing was recorded.
        UnansweredError: The session may be recorded.
    """
    try:
        bundle = checked_bundle(data)
    except BundleError as error:
        return _refused(error)
    except MemoryError as error:
        raise StoreFailureError(FailureKind.NO_MEMORY, "ENOMEM") from error
    count = sum(map(len, bundle.history))
    history = [[mark_imported(event, count) for event in events] for events in bundle.history]
    restored = ports.restored(bundle.session, history, bundle.contents)
    return Imported(restored=restored, source=bundle.session, banner=bundle.banner)


def _refused(error: BundleError) -> Refusal:
    return Refusal(
        code=error.code,
        message=f"The bundle is refused: {error.where}: {one_line(error.found, FOUND_BYTES_MAX)}.",
        suggestion=f"{_FIXES.get(error.code, _AGAIN)} Nothing was stored.",
        details={"where": error.where, "found": one_line(error.found, FOUND_BYTES_MAX)},
    )
