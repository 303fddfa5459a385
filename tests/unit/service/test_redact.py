"""A session is copied without a value: nothing of the copy holds it, and the old session is unchanged."""

import json

import pytest
from tests.support.bundles import DOCUMENT, a_session, exported, restoring
from tests.support.history import appended
from tests.support.modes import with_artifacts

from interlock.kernel.canonical import digest_of_bytes
from interlock.kernel.errors import Refusal
from interlock.kernel.ids import SessionId
from interlock.record.append_plan import EventDraft
from interlock.record.payloads import ObservationRecorded, ObservationValue
from interlock.service.audit.proof import prove_session
from interlock.service.audit.verify import not_compared, verify_session, verify_with_words
from interlock.service.transfer.redact import Redacted, redact_session
from interlock.testing.harness import Harness, linear_workflow

SECRET = 'tok-"92\n81'
SHIP = linear_workflow("team.ship", "a", "b", "c")


@pytest.fixture
def harness() -> Harness:
    return Harness.in_memory(SHIP, DOCUMENT)


def with_a_secret(harness: Harness) -> SessionId:
    """Record a session with the secret in its goal, context, notes, artifacts and in a refused attempt."""
    first = harness.start("team.ship", goal=f"Use {SECRET}", context={"key": SECRET, "list": [{"of": SECRET}]})
    refused = harness.advance(first, None, output=with_artifacts({"kind": "mine", "says": SECRET}, notes=None))
    artifact = {"kind": "mine", "says": f"in text {json.dumps(SECRET)}", SECRET: 1}
    harness.advance(refused, None, output=with_artifacts(artifact, notes=f"Called with {SECRET}."))
    return harness.session_of(first)


def redacted(harness: Harness, session: SessionId, value: str = SECRET) -> Redacted:
    found = redact_session(restoring(harness), session, value)
    assert isinstance(found, Redacted), found
    return found


@pytest.mark.inv("EVD-13")
def test_a_redacted_copy_holds_the_value_nowhere_and_says_what_it_is_a_copy_of(harness: Harness) -> None:
    session = with_a_secret(harness)
    before = exported(harness, session).data
    found = redacted(harness, session)
    copy = found.restored.session
    after = exported(harness, copy).data.decode()
    for spelling in ("tok-", "9281", json.dumps(SECRET)[1:-1]):
        assert spelling not in after
    assert after.count("[redacted]") == found.texts == 7
    assert harness.store.stored_log(session).segments
    assert json.loads(exported(harness, session).data)["session"] == json.loads(before)["session"]
    loaded = harness.store.load(copy)
    assert loaded is not None
    assert loaded.redacted_from == session


@pytest.mark.inv("EVD-13")
def test_a_redacted_copy_verifies_and_its_run_goes_on(harness: Harness) -> None:
    copy = redacted(harness, with_a_secret(harness)).restored
    assert verify_session(harness.ports.read.reader, harness.ports.read.plans, copy.session) == ()
    (way,) = copy.ways_on
    answer = harness.call(way.next_call.tool, dict(way.next_call.arguments))
    assert answer["pending"]["stepId"] == "b"
    assert "tok-" not in answer.text
    assert harness.advance(answer, "Did b.")["pending"]["stepId"] == "c"


@pytest.mark.inv("EVD-13")
def test_a_digest_of_what_held_the_value_is_gone(harness: Harness) -> None:
    session = with_a_secret(harness)
    old = json.loads(exported(harness, session).data)["session"]
    digests = [one["data"]["requestDigest"] for one in old["events"] if one["kind"] == "advance_recorded"]
    digests += [name for name, held in old["artifacts"].items() if "tok-" in held["data"]]
    after = exported(harness, redacted(harness, session).restored.session).data.decode()
    assert len(digests) >= 3
    assert not [digest for digest in digests if digest in after]


@pytest.mark.inv("EVD-13")
def test_the_proof_of_a_redacted_copy_counts_what_it_does_not_compare(harness: Harness) -> None:
    session = with_a_secret(harness)
    copy = redacted(harness, session).restored.session
    store, plans = harness.store, harness.ports.read.plans
    whole, part = prove_session(store, plans, session), prove_session(store, plans, copy)
    assert (whole.redacted, part.mismatches) == (None, ())
    assert whole.examined is not None
    assert part.examined is not None
    assert part.examined.decisions < whole.examined.decisions
    skipped = not_compared(store, copy, store.appends(copy))
    assert f"may differ: {len(skipped)} in all. Each signature is checked." in str(part.redacted)


def test_loops_forks_and_gaps_survive_a_redaction(harness: Harness) -> None:
    copy = redacted(harness, a_session(harness), "Grüße").restored
    exported_again = exported(harness, copy.session).data
    assert "Grüße" not in exported_again.decode()
    assert verify_session(harness.ports.read.reader, harness.ports.read.plans, copy.session) == ()
    assert digest_of_bytes(exported_again)


@pytest.mark.inv("EVD-13")
@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("abc", "shorter than 4"),
        ("elephant", "does not contain"),
        ("Workflow team.ship", "pinned contains the value"),
        ("advanced", "a name in the records"),
    ],
)
def test_what_cannot_be_redacted_is_refused_and_nothing_is_written(harness: Harness, value: str, says: str) -> None:
    session = with_a_secret(harness)
    before = harness.store.sessions()
    found = redact_session(restoring(harness), session, value)
    assert isinstance(found, Refusal)
    assert says in found.message
    assert "Nothing was written." in (found.suggestion or "")
    assert harness.store.sessions() == before


@pytest.mark.damages
@pytest.mark.inv("EVD-13")
def test_only_what_is_said_of_the_session_makes_it_a_redacted_copy(harness: Harness) -> None:
    first = harness.start("team.ship", goal="Use [redacted]")
    harness.advance(first, "Done.")
    value = ObservationValue(type="short_string", value=harness.session_of(first))
    observed = ObservationRecorded(key="redacted_from", value=value, confidence="high")
    appended(harness, first, EventDraft(data=observed, run=harness.reference_of(first).run))
    reader, session = harness.store, harness.session_of(first)
    assert verify_with_words(reader, harness.ports.read.plans, session).redacted is None
    assert not_compared(reader, session, reader.appends(session)) == frozenset()
