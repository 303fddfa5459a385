"""The records of a session as bytes, for searches that pass over most of them without parsing them."""

import re
from collections.abc import Callable, Iterator
from functools import partial

from interlock.kernel.ids import Digest, WorkflowHash
from interlock.store.ports.errors import ContentDamagedError
from interlock.store.ports.reader import SessionReader, StoredLog

Lost = Callable[[ContentDamagedError], None]
"""Takes the error of an artifact that cannot be searched."""
_REFERENCE = b'"artifact_ref"'
_STARTED = b'"run_started"'
_WORKFLOW = re.compile(rb'"workflowHash":"(sha256:[0-9a-f]{64})"')
_ARTIFACT = re.compile(rb'"sha256":"(sha256:[0-9a-f]{64})"')


def stored_records(reader: SessionReader, log: StoredLog, lost: Lost) -> Iterator[bytes]:
    """Yield the appends of a log and the artifacts that they name. An artifact that cannot be read goes to `lost`.

    Raises:
        StoreFailureError: The disk failed.
    """
    for segment in log.segments:
        yield segment
        yield from (artifact for _, artifact in named_artifacts(reader, segment, lost))


def check_content(reader: SessionReader, log: StoredLog, sound: set[str], lost: Lost) -> None:
    """Verify the snapshots and workflows that a log names; what is damaged goes to `lost`.

    Sessions share them, so those in `sound` are not read again, and those found sound are added to it.

    Raises:
        StoreFailureError: The disk failed.
    """
    workflows = {
        WorkflowHash(Digest(found.decode()))
        for segment in log.segments
        if _STARTED in segment
        for found in _WORKFLOW.findall(segment)
    }
    checks = [(ref, partial(reader.check_snapshot, ref)) for ref in log.snapshots if ref not in sound]
    checks += [(one, partial(_check_workflow, reader, one)) for one in workflows if one not in sound]
    for name, check in checks:
        try:
            check()
        except ContentDamagedError as error:
            lost(error)
        else:
            sound.add(name)


def _check_workflow(reader: SessionReader, workflow_hash: WorkflowHash) -> None:
    reader.workflow_bytes(workflow_hash)


def named_artifacts(
    reader: SessionReader, segment: bytes, lost: Lost = lambda _: None
) -> Iterator[tuple[bytes, bytes]]:
    """Yield the artifacts that an append names, each with its digest, verified against it.

    Raises:
        StoreFailureError: The disk failed.
    """
    for digest in digests_of_artifacts(segment) if _REFERENCE in segment else ():
        try:
            yield digest, reader.artifact(Digest(digest.decode()))
        except ContentDamagedError as error:
            lost(error)


def digests_of_artifacts(record: bytes) -> list[bytes]:
    """Return the digests of the artifacts that a record names."""
    return _ARTIFACT.findall(record)
