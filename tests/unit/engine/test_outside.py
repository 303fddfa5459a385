"""A malformed event is refused with what was found, where, and what to send."""

from typing import Any

import pytest

from interlock.engine.outside import SentEvent, parse_event_artifact
from interlock.engine.request import MemberFault

GOOD: dict[str, Any] = {"kind": "wr.event", "event": "ci.finished", "id": "1", "fields": {"a": 1}}
FAULTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "a kind without a namespace": ({"event": "finished"}, "event", 'Found "finished".'),
    "a kind in capitals": ({"event": "Ci.Finished"}, "event", 'Found "Ci.Finished".'),
    "a number for the kind": ({"event": 1}, "event", "Found a number."),
    "an empty id": ({"id": ""}, "id", "Found an empty text."),
    "a number for the id": ({"id": 7}, "id", "Found a number."),
    "an id of bytes that are no text": ({"id": "\ud800"}, "id", 'Found "?".'),
    "a list for the fields": ({"fields": []}, "fields", "Found a list."),
    "a field without a value": ({"fields": {"a": None}}, "fields.a", "Found null."),
    "a field with a list": ({"fields": {"b": "x", "a": [1]}}, "fields.a", "Found a list."),
    "a field with a large number": ({"fields": {"a": 2**60}}, "fields.a", "Found an integer of 2^53 or beyond."),
    "a field that is no number": ({"fields": {"a": float("nan")}}, "fields.a", "Found a number that is not finite."),
    "a field that is no text": ({"fields": {"a": "\ud800"}}, "fields.a", "Found a text that is not valid Unicode."),
    "a field with a blank": ({"fields": {"a b": 1}}, "fields.a b", '"a b" is no name of a field.'),
    "large fields": ({"fields": {"a": "x" * 9_000}}, "fields", "The fields have more than 8192 bytes."),
    "no node": ({"node": "ci"}, "node", 'Found "ci".'),
    "a number for a signature": ({"signed": {"source": "ci", "signature": 1}}, "signed.signature", "Found a number."),
    "half a signature": ({"signed": {"source": "ci"}}, "signed.signature", "The member is missing."),
    "a member that is not known": ({"run": "0001"}, "run", "There is no such member."),
    "a member of the signature": ({"signed": {"source": "c", "signature": "s", "by": 1}}, "signed.by", "There is no"),
}


@pytest.mark.inv("WORLD-3")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_malformed_event_is_refused_with_what_was_found_where_and_what_to_send(fault: str) -> None:
    changes, member, found = FAULTS[fault]
    refused = parse_event_artifact({**GOOD, **changes})
    assert isinstance(refused, MemberFault)
    assert refused.member == member
    assert refused.found.startswith(found)
    assert refused.fix
    # No word of the library that parses it.
    assert not any(word in refused.found + refused.fix for word in ("_type", "pattern", "value error", "extra_forb"))


def test_a_member_that_is_missing_is_named() -> None:
    refused = parse_event_artifact({"kind": "wr.event", "event": "ci.finished"})
    assert isinstance(refused, MemberFault)
    assert (refused.member, refused.found) == ("id", "The member is missing.")
    assert isinstance(parse_event_artifact({"kind": "wr.event", "event": "ci.finished", "id": "1"}), SentEvent)
