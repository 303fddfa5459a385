"""Reads what was sent with recorded attempts: notes, artifacts and answers of people, from the stored content."""

from collections.abc import Iterator, Mapping
from contextlib import suppress

from interlock.engine.gates import Answered
from interlock.engine.request import ARTIFACT_CONTENT_TYPE, REPLY_CONTENT_TYPE, TURN_CONTENT_TYPE, Request
from interlock.kernel.canonical import Json, parse_object
from interlock.kernel.ids import AttemptId, Digest, SessionId
from interlock.kernel.shape import ShapeError
from interlock.record.content import WHOLE_NOTES_CONTENT_TYPE, output_id_of
from interlock.record.payloads import ArtifactPayload, NotesPayload
from interlock.store.ports.errors import ContentDamagedError
from interlock.store.ports.reader import SessionReader
from interlock.views.recap import notes_of_attempt
from interlock.views.session import Node


def evidence_sent(reader: SessionReader, node: Node) -> Request:
    """Read the evidence of the attempt that made a node.

    Raises:
        ContentDamagedError: An artifact is missing or damaged.
    """
    notes, artifacts = notes_of_attempt(node), list[Mapping[str, Json]]()
    for content_type, digest in _files(node, {WHOLE_NOTES_CONTENT_TYPE, ARTIFACT_CONTENT_TYPE, TURN_CONTENT_TYPE}):
        if content_type == WHOLE_NOTES_CONTENT_TYPE:
            notes = reader.artifact(digest).decode("utf-8", "replace")
        else:
            artifacts.append(stored_object(reader, digest))
    return Request(notes=notes, artifacts=tuple(artifacts))


def evidence_refused(reader: SessionReader, node: Node, session: SessionId) -> Request | None:
    """Read the evidence of a refused attempt, which the next attempt completes; None if no such attempt made the node.

    Raises:
        ContentDamagedError: An artifact is missing or damaged. The next attempt cannot leave it out: a later proof,
            with the file restored, would find that it did.
    """
    if node.kind != "blocked_attempt":
        return None
    try:
        return evidence_sent(reader, node)
    except ContentDamagedError as error:
        error.session = session
        raise


def whole_notes(reader: SessionReader, node: Node, attempt: AttemptId) -> str | None:
    """Return the full notes of an attempt, which are outputs of the node; the shortened ones if these are damaged."""
    notes: str | None = None
    for output in node.outputs:
        payload = output.payload
        if output.output_id != output_id_of(attempt, payload):
            continue
        if isinstance(payload, NotesPayload):
            notes = payload.notes_markdown
        elif payload.content_type == WHOLE_NOTES_CONTENT_TYPE:
            with suppress(ContentDamagedError):
                notes = reader.artifact(payload.sha256).decode("utf-8", "replace")
    return notes


def answered_at(reader: SessionReader, node: Node) -> Answered | None:
    """Return the answer that a person gave before the run came to a node; None if no person was asked.

    Raises:
        ContentDamagedError: The record is missing or damaged, or its bytes are intact but not a reply.
    """
    for _, digest in _files(node, {REPLY_CONTENT_TYPE}):
        return reply_stored(reader, digest)
    return None


def reply_stored(reader: SessionReader, digest: Digest) -> Answered:
    """Load the answer of a person that is stored under a digest.

    Raises:
        ContentDamagedError: The record is missing or damaged, or its bytes are intact but not a reply.
    """
    try:
        return Answered.of_json(stored_object(reader, digest))
    except ShapeError as error:
        raise ContentDamagedError(what="artifact", digest=digest, found="no reply of a person") from error


def stored_object(reader: SessionReader, digest: Digest) -> dict[str, Json]:
    """Load the JSON object that is stored under a digest.

    Raises:
        ContentDamagedError: It is missing or damaged, or its bytes are intact but not a JSON object.
    """
    value = parse_object(reader.artifact(digest))
    if value is None:
        raise ContentDamagedError(what="artifact", digest=digest, found="no JSON object")
    return value


def _files(node: Node, wanted: set[str]) -> Iterator[tuple[str, Digest]]:
    for output in node.outputs:
        if output.is_of_checkpoint:
            continue
        if isinstance(output.payload, ArtifactPayload) and output.payload.content_type in wanted:
            yield output.payload.content_type, output.payload.sha256
