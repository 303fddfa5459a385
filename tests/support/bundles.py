"""Sessions to carry about: one with a bit of everything, its bundle, and all that any view says of it."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from tests.support.flow import IS_FAST, choose, deciding, document, loop, step
from tests.support.modes import NEVER_STOPS, with_artifacts
from tests.support.tampering import stamped

from interlock.kernel.canonical import Json, canonical_bytes, digest_of_bytes
from interlock.kernel.errors import Refusal
from interlock.kernel.ids import SessionId
from interlock.record.events import mark_imported
from interlock.record.manifest import attest_history
from interlock.service.audit.explain import explain
from interlock.service.audit.verify import verify_session
from interlock.service.tokens.mint import Mint
from interlock.service.transfer.export import Exported, export_session
from interlock.service.transfer.import_ import Imported, import_session
from interlock.service.transfer.repair import Repaired, repair_session
from interlock.service.transfer.restore import Restoring
from interlock.testing.harness import Harness
from interlock.views.run_graph import run_graph

DOCUMENT = document(
    step("a"),
    step("b", when=IS_FAST),
    choose("way", ({"var": "level", "exists": True}, [step("deep")])),
    loop("turn", deciding("again"), **{"while": {"kind": "loop_control"}, "maxIterations": 2}),
    step("end", requireConfirmation=True),
)
_IMPORTED_WORDS = " The run was imported: the levels of its steps before the import are those of the bundle."
_TOKEN = re.compile(r"(?:st|ack|chk)(?:\.v1\.[\w-]+\.[\w-]+|_[\w-]{56,58})")


def a_session(harness: Harness) -> SessionId:
    """Record a session: a refused attempt, artifacts, decisions, a fork, and a second run that discloses a gap."""
    first = harness.start("test.flow", goal="Grüße & <b>", context={"mode": "fast", "level": 1.5})
    refused = harness.advance(first, None, output=with_artifacts({"kind": "mine", "rows": [1, "zwei"]}, notes=None))
    second = harness.advance(refused, "Did a.")
    harness.advance(second, "Did b.", context={"level": None, "note": "ünicode"})
    harness.call(
        "continue_workflow", {"ackToken": harness.rehydrate(first)["fork"]["ackToken"], "output": with_artifacts()}
    )
    session = harness.session_of(first)
    harness.start("test.flow", sessionId=session, context={"mode": "slow"}, preferences=NEVER_STOPS)
    unsure = harness.start("test.flow", sessionId=session, preferences=NEVER_STOPS, goal="Never stop")
    harness.advance(unsure, "Went on without knowing the mode.")
    return session


def restoring(harness: Harness) -> Restoring:
    ports = harness.ports
    return Restoring(read=ports.read, writer=ports.writer, key_ring=ports.key_ring, clock=ports.clock)


def exported(harness: Harness, session: SessionId, *, is_salvage: bool = False) -> Exported:
    found = export_session(harness.ports.read.reader, harness.ports.clock, session, is_salvage=is_salvage)
    assert isinstance(found, Exported), found
    return found


def imported(harness: Harness, data: bytes) -> Imported:
    found = import_session(restoring(harness), data)
    assert isinstance(found, Imported), found
    return found


def refused(harness: Harness, data: bytes) -> Refusal:
    found = import_session(restoring(harness), data)
    assert isinstance(found, Refusal), found
    return found


def repaired(harness: Harness, session: SessionId) -> Repaired:
    found = repair_session(restoring(harness), session)
    assert isinstance(found, Repaired), found
    return found


@cache
def a_bundle() -> bytes:
    harness = Harness.in_memory(DOCUMENT)
    return exported(harness, a_session(harness)).data


def value_of(data: bytes) -> dict[str, Any]:
    return json.loads(data)


def resealed(value: Mapping[str, Any]) -> bytes:
    """Return a bundle's value as somebody would write it who also writes its integrity anew."""
    parts = {"envelope": {key: part for key, part in value.items() if key not in {"integrity", "session"}}}
    for key, part in value["session"].items():
        if key in {"snapshots", "pinnedWorkflows", "artifacts"}:
            parts |= {f"session/{key}/{name}": member for name, member in part.items()}
        else:
            parts[f"session/{key}"] = part
    entries = [
        {"path": path, "sha256": digest_of_bytes(canonical_bytes(part)), "bytes": len(canonical_bytes(part))}
        for path, part in sorted(parts.items())
    ]
    return canonical_bytes({**value, "integrity": {"kind": "sha256_manifest_v1", "entries": entries}})


def reattested(value: Mapping[str, Any]) -> bytes:
    """Return a bundle's value as somebody would write it who also writes the manifest of its events anew."""
    session = value["session"]
    bounds = [record["lastEventIndex"] + 1 for record in session["manifest"] if record["kind"] == "segment_closed"]
    events = [stamped(event, index) for index, event in enumerate(session["events"])]
    history = [events[start:end] for start, end in zip([0, *bounds], bounds, strict=False)]
    groups = [group.data for _, group in attest_history(session["sessionId"], history)]
    manifest = [json.loads(line) for group in groups for line in group.splitlines()]
    stamps = [event.to_json() for event in events]
    return resealed({**value, "session": {**session, "events": stamps, "manifest": manifest}})


def changed(change: Callable[[dict[str, Any]], object], data: bytes | None = None) -> bytes:
    """Return a bundle whose value was changed, with an integrity that says so."""
    value = value_of(a_bundle() if data is None else data)
    change(value)
    return resealed(value)


def views(harness: Harness, session: SessionId) -> dict[str, Any]:
    """Return all that the views say of a session, without tokens and without its id."""
    ports = harness.ports.read
    fold = ports.reader.load(session)
    assert fold is not None
    result: dict[str, Any] = {
        "fold": replace(fold, session=SessionId(""), dedupe_keys=type(fold.dedupe_keys)(), imported=0),
        "history": [
            [_anonymous(mark_imported(event, 1).to_json(), session) for event in plan]
            for plan in ports.reader.history(session)
        ],
        "graphs": {run: run_graph(fold, run) for run in fold.runs},
        "sound": verify_session(ports.reader, ports.plans, session),
    }
    for node in fold.nodes.values():
        mint = Mint(ring=harness.ports.key_ring.ensure_keys(), session=fold, run=fold.runs[node.run])
        looked = harness.rehydrate(mint.state(node.node))
        assert not looked.is_error, looked.text
        answer = _anonymous({"structure": dict(looked.structure), "text": looked.text}, session)
        why = explain(ports.reader, ports.plans, fold, node).changed(session=SessionId(""))
        result[node.node] = (answer, why)
    return result


def _anonymous(value: dict[str, Json], session: SessionId) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    # The copy alone says that it was imported.
    text = text.replace('"imported": true, ', "").replace(_IMPORTED_WORDS, "")
    return _TOKEN.sub("TOKEN", text).replace(session, "SESSION")
