"""Only valid events are read back: checked exhaustively for every place in an event of every kind."""

import re
from collections.abc import Iterator, Sequence
from typing import cast, get_args

import pytest
from tests.support.record import (
    ATTEMPT,
    BINDING,
    CHANGE,
    CHILD,
    CONTEXT,
    KINDS,
    NODE,
    OUTPUT,
    RUN,
    SESSION,
    numbered,
    sample,
)

from interlock.kernel.budgets import WORK_NOTE_BYTES_MAX, WORK_REF_BYTES_MAX, WORK_REFS_MAX
from interlock.kernel.canonical import Json, canonical_bytes, digest_of
from interlock.kernel.errors import InterlockError
from interlock.kernel.shape.plain import encode_plain
from interlock.kernel.uuids import derived_uuid
from interlock.record.errors import MalformedRecordError, UnknownVersionError
from interlock.record.events import (
    EVENT_CLASSES,
    NodeCreatedEvent,
    build_dedupe_key,
    event_class_of,
    event_kind,
    is_key_event,
    parse_event,
)
from interlock.record.outcome import Blocker, build_report
from interlock.record.payloads import SessionCreated, WorkReason

Path = tuple[str | int, ...]
Container = dict[str | int, Json]

FREE_FORM = {"fields", "context", "metadata", "details"}
"""Objects whose members are the caller's own."""
OPTIONAL = {
    *("recordedAt", "actor", "metadata", "supersedesOutputId", "suggestedFix", "details"),
    *("evidenceRefs", "relatedStepId", "refs", "note", "answerRef"),
    *("definitions", "parent"),
}
ID = re.compile(r"(sess|run|node|evt|att|out|ctx|prefchg)_[0-9]{26}")

# The variants of a payload that the full samples leave out: kind, path, value.
VARIANTS: list[tuple[str, Path, Json]] = [
    *(
        ("edge_created", ("data", "cause", "kind"), cause)
        for cause in ("intentional_fork", "checkpoint_created", "non_tip_advance", "idempotent_replay")
    ),
    ("node_created", ("data", "nodeKind"), "step"),
    ("node_created", ("data", "nodeKind"), "blocked_attempt"),
    ("node_created", ("data", "parentNodeId"), None),
    ("advance_recorded", ("data", "outcome"), {"kind": "advanced", "toNodeId": CHILD}),
    *(
        ("advance_recorded", ("data", "outcome", "blockers", "blockers", 0, "pointer"), cast("Json", pointer))
        for pointer in (
            {"kind": "context_key", "key": "camelCase and more"},
            {"kind": "context_budget"},
            {"kind": "capability", "capability": "delegation"},
            {"kind": "workflow_step", "stepId": "a_step-1"},
        )
    ),
    ("node_output_appended", ("data", "payload"), {"payloadKind": "notes", "notesMarkdown": "# Done\n\u0001 é 😀"}),
    ("context_set", ("data", "context"), {}),
    ("context_set", ("data", "source"), "initial"),
    ("context_set", ("data", "source"), "merge"),
    ("preferences_changed", ("data", "delta"), [{"key": "riskPolicy", "value": "conservative"}]),
    (
        "capability_observed",
        ("data", "provenance"),
        {
            "kind": "probe_step",
            "enforcementGrade": "strong",
            "detail": {"probeTemplateId": "wr.t", "probeStepId": "probe", "result": "success"},
        },
    ),
    (
        "capability_observed",
        ("data", "provenance"),
        {
            "kind": "manual_claim",
            "enforcementGrade": "weak",
            "detail": {"claimedBy": "user", "claim": "available"},
        },
    ),
    ("gap_recorded", ("data", "resolution"), {"kind": "unresolved"}),
    ("session_created", ("actor", "type"), "human"),
    *(("work_recorded", ("data", "reason"), reason) for reason in cast("tuple[str, ...]", get_args(WorkReason))),
    ("work_recorded", ("data", "work"), "failed"),
    ("work_recorded", ("data", "note"), "é" * (WORK_NOTE_BYTES_MAX // 2)),
    ("work_recorded", ("data", "refs"), [cast("Json", "é" * (WORK_REF_BYTES_MAX // 2))] * WORK_REFS_MAX),
]


def places(value: Json, here: Path = ()) -> Iterator[Path]:
    """Yield the place of every member and item of a record; free-form objects are not entered."""
    if here and here[-1] in FREE_FORM:
        return
    children: list[tuple[str | int, Json]] = []
    if isinstance(value, dict):
        children = list(value.items())
    elif isinstance(value, list):
        children = list(enumerate(value))
    for key, child in children:
        yield (*here, key)
        yield from places(child, (*here, key))


def found_at(value: Json, path: Path) -> Json:
    for key in path:
        value = cast("Container", value)[key]
    return value


def with_value(kind: str, path: Path, value: Json) -> dict[str, Json]:
    event = sample(kind)
    cast("Container", found_at(event, path[:-1]))[path[-1]] = value
    return event


def without(kind: str, path: Path) -> dict[str, Json]:
    event = sample(kind)
    del cast("Container", found_at(event, path[:-1]))[path[-1]]
    if (kind, path[-1]) == ("event_received", "nodeId"):
        event["dedupeKey"] = str(event["dedupeKey"]).replace(f":{NODE}", "")
    return event


EVERY_PLACE = [(kind, path) for kind in KINDS for path in places(sample(kind))]
MEMBERS = [(kind, path) for kind, path in EVERY_PLACE if isinstance(path[-1], str)]
OPTIONAL_OF_KIND = {
    ("node_created", "requestDigest"),
    ("event_received", "intentId"),
    ("event_received", "nodeId"),
    ("intent_settled", "channel"),
    ("run_started", "binding"),
    ("run_started", "appliedConfigHash"),
}
OPTIONAL_MEMBERS = [
    (kind, path) for kind, path in MEMBERS if path[-1] in OPTIONAL or (kind, path[-1]) in OPTIONAL_OF_KIND
]
SCOPE_NODE: Path = ("scope", "nodeId")
"""Whether it is there says what the scope is."""
OBJECTS = [
    (kind, path)
    for kind in KINDS
    for path in [(), *places(sample(kind))]
    if isinstance(found_at(sample(kind), path), dict) and (not path or path[-1] not in FREE_FORM)
]
IDS = [(kind, path) for kind, path in EVERY_PLACE if ID.fullmatch(str(found_at(sample(kind), path)))]
DIGESTS = [(kind, path) for kind, path in EVERY_PLACE if str(found_at(sample(kind), path)).startswith("sha256:")]


def spelled(place: object) -> str | None:
    """Name a place in a test's id as a person would write it."""
    return ".".join(map(str, cast("Path", place))) if isinstance(place, tuple) else None


def assert_survives(event: dict[str, Json]) -> None:
    stored = canonical_bytes(event)
    parsed = parse_event(stored)
    assert parsed.kind == event["kind"]
    assert parsed.to_bytes() == stored
    assert parse_event(parsed.to_bytes()) == parsed


def refusal_of(event: dict[str, Json] | bytes) -> type[InterlockError] | None:
    try:
        parse_event(event if isinstance(event, bytes) else canonical_bytes(event))
    except InterlockError as refused:
        return type(refused)
    return None


def places_of(kind: str, places: Sequence[tuple[str, Path]]) -> list[Path]:
    """Return the places of one kind of event: one test for all of them costs a tenth of one test for each."""
    return [path for other, path in places if other == kind]


# What is stored is read back.


@pytest.mark.inv("EVT-1")
def test_the_kinds_are_the_closed_set() -> None:
    assert {event_kind(event_class) for event_class in EVENT_CLASSES} == set(KINDS)
    assert len(KINDS) == len(EVENT_CLASSES) == 19
    assert event_kind(event_class_of(SessionCreated)) == "session_created"


@pytest.mark.inv("EVT-1")
@pytest.mark.parametrize("kind", KINDS)
def test_an_event_read_and_written_again_is_the_same_bytes(kind: str) -> None:
    assert_survives(sample(kind))


@pytest.mark.inv("EVT-1")
@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"context_set", "advance_recorded"}))
def test_an_event_whose_sample_holds_no_float_and_no_strange_key_is_written_in_one_pass(kind: str) -> None:
    stored = canonical_bytes(sample(kind) | {"recordedAt": "2026-01-02T03:04:05.678Z"})
    assert encode_plain(parse_event(stored)) == stored


@pytest.mark.inv("EVT-1", "BLK-7")
@pytest.mark.parametrize(("kind", "path", "value"), VARIANTS, ids=spelled)
def test_each_variant_of_a_payload_survives_too(kind: str, path: Path, value: Json) -> None:
    assert_survives(with_value(kind, path, value))


@pytest.mark.inv("EVT-1")
@pytest.mark.parametrize(("kind", "path"), [one for one in OPTIONAL_MEMBERS if one[1] != SCOPE_NODE], ids=spelled)
def test_an_optional_field_that_is_null_is_read_as_one_that_is_absent(kind: str, path: Path) -> None:
    absent = parse_event(canonical_bytes(without(kind, path)))
    null = parse_event(canonical_bytes(with_value(kind, path, None)))
    assert null == absent
    assert null.to_bytes() == absent.to_bytes()


@pytest.mark.inv("EVT-1")
@pytest.mark.parametrize(("kind", "path"), OPTIONAL_MEMBERS, ids=spelled)
def test_an_event_without_an_optional_field_survives_without_it(kind: str, path: Path) -> None:
    assert_survives(without(kind, path))


@pytest.mark.inv("EVT-1")
@pytest.mark.parametrize("kind", KINDS)
def test_a_parsed_event_cannot_be_altered(kind: str) -> None:
    event = parse_event(canonical_bytes(sample(kind)))
    with pytest.raises(AttributeError, match="immutable"):
        event.event_index = 0  # pyright: ignore[reportAttributeAccessIssue] — refused at run time too


def test_an_event_may_be_of_the_session_and_still_be_an_observation() -> None:
    event = without("observation_recorded", ("scope",))
    value: Json = {"type": "short_string", "value": "main"}
    event["dedupeKey"] = f"observation_recorded:{SESSION}:session:git_branch:{digest_of(value)}"
    assert_survives(event)


@pytest.mark.inv("OBS-6")
def test_an_observation_at_a_node_has_a_key_of_its_own_there() -> None:
    event = with_value("observation_recorded", ("scope", "nodeId"), NODE)
    assert refusal_of(event) is not None
    event["dedupeKey"] = KEYS["observation_recorded"].replace(RUN, NODE)
    assert_survives(event)


# How work ended.


def work_on_a_node(work: str, **more: Json) -> dict[str, Json]:
    """Return a record of how the work on a step was left."""
    event = sample("work_recorded")
    event["scope"] = {"runId": RUN, "nodeId": NODE}
    event["data"] = {"work": work, "reason": "handoff", **more}
    event["dedupeKey"] = f"work_recorded:{SESSION}:{RUN}:{NODE}"
    return event


@pytest.mark.inv("EVT-1", "EVT-4", "EVT-5", "END-1")
def test_a_run_fails_or_is_cancelled_and_the_work_on_a_node_fails_or_is_released() -> None:
    for work in ("failed", "released"):
        assert_survives(work_on_a_node(work, note="Half of it.", refs=["a.md"]))
    assert refusal_of(work_on_a_node("cancelled")) is MalformedRecordError
    assert refusal_of(with_value("work_recorded", ("data", "work"), "released")) is MalformedRecordError
    assert refusal_of(work_on_a_node("released", answerRef="sha256:" + "0" * 64)) is MalformedRecordError


@pytest.mark.inv("END-1")
@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("note", "é" * (WORK_NOTE_BYTES_MAX // 2) + "a"),
        ("note", ""),
        ("refs", ["é" * (WORK_REF_BYTES_MAX // 2) + "a"]),
        ("refs", ["a"] * (WORK_REFS_MAX + 1)),
        ("refs", []),
        ("refs", [""]),
    ],
    ids=["a long note", "an empty note", "a long reference", "many references", "no reference", "an empty reference"],
)
def test_what_explains_an_end_is_within_its_budgets(member: str, value: Json) -> None:
    assert refusal_of(with_value("work_recorded", ("data", member), value)) is MalformedRecordError


# Dedupe keys.

KEYS = {
    "session_created": f"session_created:{SESSION}",
    "observation_recorded": f"observation_recorded:{SESSION}:{RUN}:git_branch:"
    "sha256:d1db3007e77766b240c927825eae7abc7f3f71e7a4bb4003c7b890a9a9e85d95",
    "run_started": f"run_started:{SESSION}:{RUN}",
    "node_created": f"node_created:{SESSION}:{RUN}:{NODE}",
    "edge_created": f"edge_created:{SESSION}:{RUN}:{NODE}->{CHILD}:acked_step",
    "advance_recorded": f"advance_recorded:{SESSION}:{NODE}:{ATTEMPT}",
    "node_output_appended": f"node_output_appended:{SESSION}:{OUTPUT}",
    "context_set": f"context_set:{SESSION}:{CONTEXT}",
    "preferences_changed": f"preferences_changed:{SESSION}:{CHANGE}",
    "capability_observed": f"capability_observed:{SESSION}:{numbered('capobs', 1)}",
    "gap_recorded": f"gap_recorded:{SESSION}:{numbered('gap', 1)}",
    "divergence_recorded": f"divergence_recorded:{SESSION}:{numbered('div', 1)}",
    "decision_trace_appended": f"decision_trace_appended:{SESSION}:{numbered('trace', 1)}",
    "work_recorded": f"work_recorded:{SESSION}:{RUN}",
    "event_received": f"event_received:{SESSION}:{RUN}:{NODE}:signed:"
    "sha256:25b799a105bd7fecd33e662a615ee75819010fd02fab54dfcb7d845f6d176490",
    "intent_recorded": f"intent_recorded:{SESSION}:{numbered('intent', 1)}",
    "intent_settled": f"intent_settled:{SESSION}:{numbered('intent', 1)}:1:claim",
    "contract_bound": f"contract_bound:{SESSION}:{BINDING}",
    "execution_claimed": f"execution_claimed:{SESSION}:{BINDING}:work:0:{derived_uuid('execution')}",
}


@pytest.mark.inv("EVT-5")
@pytest.mark.parametrize("kind", KINDS)
def test_a_dedupe_key_follows_the_recipe_of_its_kind(kind: str) -> None:
    event = parse_event(canonical_bytes(sample(kind)))
    assert build_dedupe_key(event) == event.dedupe_key == KEYS[kind]
    assert re.fullmatch(r"[a-z0-9_:>-]{1,256}", KEYS[kind])


@pytest.mark.inv("EVT-5")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("path", [("eventId",), ("eventIndex",), ("recordedAt",), ("actor",)], ids=spelled)
def test_a_dedupe_key_does_not_depend_on_what_differs_per_call(kind: str, path: Path) -> None:
    other: dict[Path, Json] = {("eventId",): numbered("evt", 99), ("eventIndex",): 99}
    event = with_value(kind, path, other[path]) if path in other else without(kind, path)
    assert parse_event(canonical_bytes(event)).dedupe_key == KEYS[kind]


@pytest.mark.inv("EVT-5")
@pytest.mark.parametrize("kind", KINDS)
def test_an_event_whose_key_is_not_its_recipe_is_malformed(kind: str) -> None:
    key = KEYS[kind]
    wrong = [
        *(f"{key}x", key[:-1], f"{kind}:", key.replace(SESSION, numbered("sess", 2)), KEYS["gap_recorded"][::-1]),
        *(key.upper(), key.replace("_", "-", 1), key.replace("_", " ", 1), f"{key}\n", f"{key}é", ""),
    ]
    for text in wrong:
        assert refusal_of(with_value(kind, ("dedupeKey",), text)) is MalformedRecordError


@pytest.mark.inv("EVT-5")
@pytest.mark.parametrize("identity", ["gap_UPPER", "gap with space", "gap/1", "gap.1", "gäp"])
def test_an_identity_that_a_dedupe_key_cannot_carry_is_refused_with_it(identity: str) -> None:
    event = with_value("gap_recorded", ("data", "gapId"), identity)
    event["dedupeKey"] = f"gap_recorded:{SESSION}:{identity}"
    assert refusal_of(event) is MalformedRecordError


@pytest.mark.inv("APP-4")
def test_only_the_key_events_decide_that_a_plan_is_a_replay() -> None:
    events = {kind: parse_event(canonical_bytes(sample(kind))) for kind in KINDS}
    assert {kind for kind in KINDS if is_key_event(events[kind])} == {
        "run_started",
        "advance_recorded",
        "node_created",
        "work_recorded",
        "event_received",
        "intent_settled",
        "execution_claimed",
    }
    whole = parse_event(canonical_bytes(without("contract_bound", ("data", "parent"))))
    assert is_key_event(whole)
    assert not is_key_event(parse_event(canonical_bytes(work_on_a_node("released"))))
    for node_kind in ("step", "blocked_attempt"):
        node = parse_event(canonical_bytes(with_value("node_created", ("data", "nodeKind"), node_kind)))
        assert isinstance(node, NodeCreatedEvent)
        assert not is_key_event(node)


# What a newer Interlock wrote is lawful, and not understood.


@pytest.mark.inv("EVT-2")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", [2, 99, 0])
def test_another_version_is_newer_whatever_else_the_event_holds(kind: str, version: int) -> None:
    assert refusal_of(with_value(kind, ("v",), version)) is UnknownVersionError
    assert refusal_of({"v": version, "kind": kind}) is UnknownVersionError
    assert refusal_of({"v": version}) is UnknownVersionError
    assert refusal_of(with_value(kind, ("v",), version) | {"kind": "new_kind", "data": []}) is UnknownVersionError


@pytest.mark.inv("EVT-2")
def test_another_kind_is_newer() -> None:
    assert refusal_of(with_value("run_started", ("kind",), "run_paused")) is UnknownVersionError


@pytest.mark.inv("EVT-2")
@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_field_anywhere_in_an_event_is_newer(kind: str) -> None:
    for path in places_of(kind, OBJECTS):
        assert refusal_of(with_value(kind, (*path, "fromTheFuture"), 1)) is UnknownVersionError, path


CLOSED_SETS: list[tuple[str, Path]] = [
    ("session_created", ("actor", "type")),
    ("observation_recorded", ("data", "confidence")),
    ("run_started", ("data", "workflowSourceKind")),
    ("node_created", ("data", "nodeKind")),
    ("edge_created", ("data", "cause", "kind")),
    ("advance_recorded", ("data", "intent")),
    ("advance_recorded", ("data", "outcome", "kind")),
    ("advance_recorded", ("data", "outcome", "blockers", "blockers", 0, "code")),
    ("advance_recorded", ("data", "outcome", "blockers", "blockers", 0, "pointer", "kind")),
    ("node_output_appended", ("data", "outputChannel")),
    ("node_output_appended", ("data", "payload", "payloadKind")),
    ("context_set", ("data", "source")),
    ("preferences_changed", ("data", "source")),
    ("preferences_changed", ("data", "effective", "autonomy")),
    ("preferences_changed", ("data", "delta", 0, "key")),
    ("capability_observed", ("data", "status")),
    ("capability_observed", ("data", "provenance", "kind")),
    ("capability_observed", ("data", "provenance", "detail", "failureCode")),
    ("gap_recorded", ("data", "severity")),
    ("gap_recorded", ("data", "reason", "detail")),
    ("gap_recorded", ("data", "resolution", "kind")),
    ("divergence_recorded", ("data", "reason")),
    ("work_recorded", ("data", "work")),
    ("work_recorded", ("data", "reason")),
    ("event_received", ("data", "assurance")),
    ("event_received", ("data", "via")),
    ("intent_settled", ("data", "state")),
    ("decision_trace_appended", ("data", "entries", 0, "kind")),
    ("decision_trace_appended", ("data", "entries", 0, "refs", 0, "kind")),
]


@pytest.mark.inv("EVT-2")
@pytest.mark.parametrize(("kind", "path"), CLOSED_SETS, ids=spelled)
def test_an_unknown_member_of_a_closed_set_is_newer(kind: str, path: Path) -> None:
    assert refusal_of(with_value(kind, path, "from_the_future")) is UnknownVersionError


@pytest.mark.inv("EVT-2")
def test_an_event_that_is_broken_as_well_as_unknown_is_malformed() -> None:
    assert refusal_of(with_value("run_started", ("eventIndex",), -1) | {"new": 1}) is MalformedRecordError


# What is no event is malformed.


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_of_another_type_anywhere_is_malformed(kind: str) -> None:
    for path in places_of(kind, EVERY_PLACE):
        current = found_at(sample(kind), path)
        others: list[Json] = [{"a": "b"}, ["b"], 1.5, True, False]
        others += [5] if not isinstance(current, int) else ["5"]
        for other in others:
            if type(other) is not type(current) and (path, other) != (("v",), True):
                assert refusal_of(with_value(kind, path, other)) is MalformedRecordError, (path, other)


@pytest.mark.parametrize("kind", KINDS)
def test_an_event_without_a_required_field_is_malformed(kind: str) -> None:
    for path in places_of(kind, [place for place in MEMBERS if place not in OPTIONAL_MEMBERS]):
        assert refusal_of(without(kind, path)) is MalformedRecordError, path


@pytest.mark.inv("ID-1")
@pytest.mark.parametrize(("kind", "path"), IDS, ids=spelled)
def test_an_id_in_another_form_is_malformed(kind: str, path: Path) -> None:
    text = str(found_at(sample(kind), path))
    prefix, body = text.split("_")
    wrong = [
        *(text.upper(), f"{prefix.upper()}_{body}", f"x{text}", f"{prefix}{body}", body, f"other_{body}", f"{prefix}_"),
        *(f"{text}0", text[:-1], f"{text}\n", f" {text}", f"{text} ", f"{prefix}_8{body[1:]}", ""),
        *(f"{text[:-1]}{char}" for char in "iloué-A"),
    ]
    for other in wrong:
        assert refusal_of(with_value(kind, path, other)) is MalformedRecordError


@pytest.mark.inv("ID-3")
@pytest.mark.parametrize(("kind", "path"), DIGESTS, ids=spelled)
def test_a_digest_in_another_form_is_malformed(kind: str, path: Path) -> None:
    text = str(found_at(sample(kind), path))
    for other in (text.upper(), text[:-1], f"{text}0", f"{text}\n", text[7:], f"sha1:{text[7:]}", f"{text[:-1]}g"):
        assert refusal_of(with_value(kind, path, other)) is MalformedRecordError


@pytest.mark.inv("EVT-3")
def test_an_index_below_zero_is_malformed() -> None:
    assert refusal_of(with_value("run_started", ("eventIndex",), -1)) is MalformedRecordError


@pytest.mark.inv("EVT-4")
@pytest.mark.parametrize("kind", KINDS)
def test_an_event_with_the_scope_of_another_kind_is_refused(kind: str) -> None:
    own: list[Json] = [sample(kind).get("scope")]
    if kind in ("observation_recorded", "event_received"):
        own.append({"runId": RUN})
        own.append({"runId": RUN, "nodeId": NODE})
    scopes: list[Json] = [{"runId": RUN}, {"runId": RUN, "nodeId": NODE}, {"nodeId": NODE}, {}, None]
    for scope in scopes:
        if scope not in own:
            assert refusal_of(with_value(kind, ("scope",), scope)) is not None, scope


@pytest.mark.inv("CTX-8")
@pytest.mark.parametrize(
    "delta",
    [
        [],
        [{"key": "autonomy", "value": "full_auto_never_stop"}] * 2,
        [{"key": "autonomy", "value": "guided"}],
        [{"key": "riskPolicy", "value": "full_auto_never_stop"}],
        [{"key": "autonomy", "value": "full_auto_never_stop"}, {"key": "riskPolicy", "value": "balanced"}],
    ],
)
def test_a_preference_change_that_is_empty_or_doubled_or_untrue_is_malformed(delta: list[Json]) -> None:
    assert refusal_of(with_value("preferences_changed", ("data", "delta"), delta)) is MalformedRecordError


def test_a_list_beyond_its_locked_length_is_malformed() -> None:
    blockers: Path = ("data", "outcome", "blockers", "blockers")
    entries: Path = ("data", "entries")
    refs: Path = ("data", "entries", 0, "refs")
    for kind, path, most in (
        ("advance_recorded", blockers, 10),
        ("decision_trace_appended", entries, 25),
        ("decision_trace_appended", refs, 10),
    ):
        items = found_at(sample(kind), path)
        assert isinstance(items, list)
        assert_survives(with_value(kind, path, items[:1] * most))
        assert refusal_of(with_value(kind, path, items[:1] * (most + 1))) is MalformedRecordError
        if path != refs:
            assert refusal_of(with_value(kind, path, [])) is MalformedRecordError


# Reports of blockers.


def blocker(code: str, pointer: dict[str, Json], message: str = "Found.", fix: str | None = None) -> Blocker:
    return Blocker.of_json({"code": code, "pointer": pointer, "message": message, "suggestedFix": fix})


@pytest.mark.inv("BLK-6")
def test_a_report_is_in_the_order_of_code_then_pointer_kind_then_pointer_fields() -> None:
    ordered = [
        blocker("INVALID_REQUIRED_OUTPUT", {"kind": "workflow_step", "stepId": "a"}),
        blocker("MISSING_REQUIRED_OUTPUT", {"kind": "context_budget"}),
        blocker("MISSING_REQUIRED_OUTPUT", {"kind": "context_key", "key": "A"}),
        blocker("MISSING_REQUIRED_OUTPUT", {"kind": "context_key", "key": "a"}),
        blocker("MISSING_REQUIRED_OUTPUT", {"kind": "output_contract", "contractRef": "a"}),
        blocker("USER_ONLY_DEPENDENCY", {"kind": "capability", "capability": "delegation"}),
    ]
    for turn in range(len(ordered)):
        assert list(build_report([*ordered[turn:], *ordered[:turn]][::-1]).blockers) == ordered


@pytest.mark.inv("BLK-6")
def test_a_report_has_between_one_and_ten_blockers_and_none_above_a_budget_of_bytes() -> None:
    pointer: dict[str, Json] = {"kind": "context_budget"}
    full = blocker("INVARIANT_VIOLATION", pointer, "é" * 256, "é" * 512)
    assert len(build_report([full] * 10).blockers) == 10
    for blockers in ([], [full] * 11):
        with pytest.raises(AssertionError, match="blockers"):
            build_report(blockers)
    with pytest.raises(AssertionError, match="message"):
        build_report([blocker("INVARIANT_VIOLATION", pointer, "é" * 256 + "a")])
    with pytest.raises(AssertionError, match="fix"):
        build_report([blocker("INVARIANT_VIOLATION", pointer, "a", "é" * 512 + "a")])


@pytest.mark.parametrize(
    "line",
    [
        *(b"", b"null", b"1", b'"text"', b"[]", b"{}", b"{", b"nonsense", b"\xff\xfe", b"\x00" * 64, b'{"v":1}'),
        canonical_bytes(sample("run_started"))[:-1],
        canonical_bytes(sample("run_started")) + b"}",
        canonical_bytes(sample("run_started")) * 2,
        canonical_bytes(sample("run_started")).replace(b"project", b"\xffroject"),
        canonical_bytes(sample("run_started")).replace(b"project", b"\\ud800"),
        b'{"v":' + b"9" * 5_000 + b"}",
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ],
    ids=lambda line: f"{line[:12]!r}-{len(line)}",
)
def test_bytes_that_are_no_event_are_malformed(line: bytes) -> None:
    assert refusal_of(line) is MalformedRecordError


@pytest.mark.parametrize("kind", KINDS)
def test_fields_spelled_as_python_spells_them_are_refused(kind: str) -> None:
    event = sample(kind)
    event["event_id"] = event.pop("eventId")
    assert refusal_of(event) is MalformedRecordError
