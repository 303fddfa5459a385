"""Finds the digests in events from which a value could be guessed, because they are over text that holds it (EVD-13).

Digests of stored contents and of requests are not among them: a redaction replaces these where it replaces the text.
Nor are digests over what no record holds, such as the files of a working tree.
"""

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

from interlock.engine.judge.proof import argv_digest
from interlock.kernel.budgets.workflow import CAPTURED_VALUE_BYTES_MAX
from interlock.kernel.canonical import Json, canonical_bytes, digest_of, digest_of_bytes
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import RunId
from interlock.record.content import REDACTED
from interlock.record.events import Event, EventReceivedEvent, NodeScope, ObservationRecordedEvent, RunStartedEvent
from interlock.record.world import APPROVAL, CHECK, RECEIPT
from interlock.service.ports import ReadPorts
from interlock.service.run.context import load_run_context
from interlock.service.run.evidence.approval import open_approval
from interlock.service.transfer.salvage import SoundPrefix
from interlock.views.evolution import evolve
from interlock.views.session import Session, new_session
from interlock.views.summary import path_digest


def guessable_digests(read: ReadPorts, prefix: SoundPrefix, is_in: Callable[[bytes], bool]) -> dict[str, str]:
    """Return each digest from which the value could be guessed, with what to write instead.

    A digest over text of which the log holds only a part is one of them, unless that part shows what it is over.

    Raises:
        ContentDamagedError, StoreFailureError: See `service.failures`.
    """
    search, session = _Search(read=read, is_in=is_in), new_session(prefix.session)
    found, starts = dict[str, str](), dict[RunId, RunStartedEvent]()
    for content in prefix.contents.artifacts.values():
        found |= dict.fromkeys(search.long_values(_parsed(content)), REDACTED)
    for events in prefix.history:
        for event in events:
            if isinstance(event, RunStartedEvent):
                starts[event.scope.run_id] = event
            found |= dict.fromkeys(search.of_event(session, event), REDACTED)
            if isinstance(event, EventReceivedEvent):
                found |= search.of_definition(starts[event.scope.run_id], event)
        session = evolve(session, *events)
    return found


@frozen
class _Search:
    read: ReadPorts
    is_in: Callable[[bytes], bool]

    def of_event(self, before: Session, event: Event) -> Iterator[str]:
        """Yield the digests of an event, and of long values in it, as the record of a decision has them."""
        yield from self.long_values(event.data.to_json())
        match event:
            case ObservationRecordedEvent() if event.data.key == "repo_root":
                yield from self._of_place(event.data.value.value)
            case EventReceivedEvent() if event.data.event == APPROVAL:
                yield from self._of_approval(before, event)
            case EventReceivedEvent() if event.data.event in (CHECK, RECEIPT):
                yield from self._of_command(event)
            case _:
                return

    def of_definition(self, start: RunStartedEvent, event: EventReceivedEvent) -> dict[str, str]:
        """Return the digests of the definition of a check whose command line holds the value."""
        fields = event.data.fields
        if event.data.event != CHECK or not self._is_in_text(fields["command"]):
            return {}
        gone = [one.definition for one in start.data.checks or () if one.name == fields["check"]]
        if start.data.applied_config_hash is not None:
            gone.append(start.data.applied_config_hash)
        return {digest: digest_of({"redacted": [start.event_id, number]}) for number, digest in enumerate(gone)}

    def long_values(self, value: Json) -> Iterator[str]:
        """Yield the digests of the values, and of values inside them, that a captured record has by digest."""
        data = canonical_bytes(value)
        if len(data) <= CAPTURED_VALUE_BYTES_MAX or not self.is_in(data):
            return
        yield digest_of_bytes(data)
        if isinstance(value, dict | list):
            for one in value.values() if isinstance(value, dict) else value:
                yield from self.long_values(one)

    def _of_place(self, path: str) -> Iterator[str]:
        if self._is_in_text(path):
            yield path_digest(path)

    def _of_command(self, event: EventReceivedEvent) -> Iterator[str]:
        """Yield the digests of the output and of the command line, unless they are known to be without the value."""
        fields = event.data.fields
        output, command = str(fields["output"]), str(fields["command"])
        whole = {digest_of_bytes(one.encode("utf-8", "surrogatepass")) for one in (output, f"{output}\n")}
        if self._is_in_text(output) or fields["digest"] not in whole:
            yield str(fields["digest"])
        if event.data.event == CHECK:
            return
        directory = PurePosixPath(str(fields["directory"]))
        for place in (str(fields.get("root", "")), *map(str, (directory, *directory.parents))):
            yield from self._of_place(place)
        if self._is_in_text(command) or fields["argv"] != _argv_digest(command):
            yield str(fields["argv"])

    def _of_approval(self, before: Session, event: EventReceivedEvent) -> Iterator[str]:
        """Yield the digest of what a person was shown, if that is not known to be without the value."""
        assert isinstance(event.scope, NodeScope), "an answer is about the node that waits for it"
        run_context = load_run_context(before, before.runs[event.scope.run_id], self.read.plans)
        shown = open_approval(self.read.reader, run_context, before.nodes[event.scope.node_id])
        digest = str(event.data.fields["shown"])
        if shown is None or digest not in shown.digests or self._is_in_text(shown.text()):
            yield digest

    def _is_in_text(self, text: object) -> bool:
        return self.is_in(str(text).encode("utf-8", "surrogatepass"))


def _argv_digest(command: str) -> str | None:
    """Return the digest of a recorded command line; None if it was cut so that no shell could read it."""
    try:
        return argv_digest(shlex.split(command))
    except ValueError:
        return None


def _parsed(content: bytes) -> Json:
    """Return a JSON value; None for other content, which has no values."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None
