"""The integrity of a bundle: a change of any byte, and an added or removed part, is detected."""

import json
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.bundles import a_bundle, changed, exported, resealed, value_of
from tests.support.shares import share_of

from interlock.kernel.budgets import BUNDLE_BYTES_MAX
from interlock.kernel.canonical import Json, canonical_bytes, digest_of_bytes
from interlock.kernel.errors import ErrorCode
from interlock.record.bundle import ArtifactText, Bundle, BundleError, parse_bundle
from interlock.service.transfer.bundle_check import checked_bundle
from interlock.testing.harness import Harness, linear_workflow


@cache
def a_small_bundle() -> bytes:
    harness = Harness.in_memory(linear_workflow("test.one", "only"))
    return exported(harness, harness.session_of(harness.start("test.one"))).data


def code_of(data: bytes) -> ErrorCode:
    with pytest.raises(BundleError) as error:
        checked_bundle(data)
    return error.value.code


def others(byte: int) -> set[int]:
    """Return what a byte may be taken for: a bit flipped, another letter, digit, quote or bracket, nothing."""
    return {byte ^ 1, byte ^ 0x20, byte ^ 0x80, 0, ord("0"), ord("a"), ord('"'), ord(" "), ord("]")} - {byte}


@pytest.mark.exhaustive
@pytest.mark.inv("BND-1")
def test_every_single_byte_that_differs_is_refused_with_a_code_of_bundles() -> None:
    data = a_small_bundle()
    checked_bundle(data)
    codes = {
        code_of(data[:at] + bytes((other,)) + data[at + 1 :])
        for at, byte in share_of(enumerate(data), 9)
        for other in others(byte)
    }
    assert codes == {
        ErrorCode.BUNDLE_INVALID_FORMAT,
        ErrorCode.BUNDLE_UNSUPPORTED_VERSION,
        ErrorCode.BUNDLE_INTEGRITY_FAILED,
    }


@pytest.mark.exhaustive
@pytest.mark.inv("BND-1")
def test_a_byte_too_few_or_too_many_anywhere_is_refused() -> None:
    data = a_small_bundle()
    for at in share_of(range(len(data) + 1), 7):
        assert code_of(data[:at] + b" " + data[at:])
        if at < len(data):
            assert code_of(data[:at] + data[at + 1 :])
            assert code_of(data[:at]) is ErrorCode.BUNDLE_INVALID_FORMAT


@pytest.mark.inv("BND-1")
@given(st.data())
def test_bytes_that_change_places_or_are_exchanged_are_refused(data: st.DataObject) -> None:
    good = a_bundle()
    first, last = sorted(data.draw(st.tuples(st.integers(0, len(good)), st.integers(0, len(good)))))
    put = data.draw(st.one_of(st.binary(max_size=8), st.just(good[last : last + 40])))
    bad = good[:first] + put + good[last:]
    if bad != good:
        assert code_of(bad).startswith("BUNDLE_")


@pytest.mark.inv("BND-1")
def test_the_same_value_in_another_spelling_is_refused() -> None:
    value = value_of(a_bundle())
    spellings = {
        json.dumps(value),
        json.dumps(value, sort_keys=True, separators=(",", ":")),
        a_bundle().decode() + "\n",
        "\ufeff" + a_bundle().decode(),
        a_bundle().decode().replace('"v":1', '"v":1.0', 1),
        a_bundle().decode().replace('"v":1', '"v":1,"v":1', 1),
        a_bundle().decode().replace("&", "\\u0026", 1),
    }
    assert a_bundle().decode() not in spellings
    for text in spellings:
        assert code_of(text.encode()) is ErrorCode.BUNDLE_INVALID_FORMAT


@pytest.mark.inv("BND-2")
def test_each_part_has_one_entry_over_its_canonical_bytes_in_the_order_of_paths() -> None:
    bundle, value = parse_bundle(a_bundle()), value_of(a_bundle())
    entries = {entry.path: entry for entry in bundle.integrity.entries}
    assert len(entries) == len(bundle.integrity.entries)
    assert all(one < other for one, other in pairwise(entries))
    session = value["session"]
    parts = {
        "envelope": {key: part for key, part in value.items() if key not in {"integrity", "session"}},
        "session/sessionId": session["sessionId"],
        "session/events": session["events"],
        "session/manifest": session["manifest"],
    }
    for name in ("snapshots", "pinnedWorkflows", "artifacts"):
        assert session[name]
        parts |= {f"session/{name}/{digest}": part for digest, part in session[name].items()}
    assert set(entries) == set(parts)
    for path, part in parts.items():
        data = canonical_bytes(part)
        assert (entries[path].sha256, entries[path].bytes) == (digest_of_bytes(data), len(data))
    assert resealed(value) == a_bundle()


@pytest.mark.inv("BND-2")
@pytest.mark.produces("error:BUNDLE_INTEGRITY_FAILED")
@pytest.mark.parametrize("at", range(len(parse_bundle(a_bundle()).integrity.entries)))
@pytest.mark.parametrize("how", ["gone", "twice", "another digest", "no digest", "another length", "another path"])
def test_an_entry_that_is_not_its_parts_is_refused_and_its_path_named(at: int, how: str) -> None:
    value = value_of(a_bundle())
    entries = value["integrity"]["entries"]
    path, digest = entries[at]["path"], entries[at]["sha256"]
    match how:
        case "gone":
            del entries[at]
        case "twice":
            entries.insert(at, entries[at])
        case "another digest":
            entries[at]["sha256"] = digest[:-1] + ("0" if digest[-1] != "0" else "1")
        case "no digest":
            entries[at]["sha256"] = "sha256:g"
        case "another length":
            entries[at]["bytes"] += 1
        case _:
            entries[at]["path"] += "x"
    with pytest.raises(BundleError) as error:
        parse_bundle(canonical_bytes(value))
    assert error.value.code is ErrorCode.BUNDLE_INTEGRITY_FAILED
    assert error.value.where == (path if how != "twice" else "integrity")


@pytest.mark.inv("BND-2")
def test_a_part_that_was_taken_away_or_added_without_its_entry_is_refused() -> None:
    for name in ("snapshots", "pinnedWorkflows", "artifacts"):
        value = value_of(a_bundle())
        value["session"][name].popitem()
        assert code_of(canonical_bytes(value)) is ErrorCode.BUNDLE_INTEGRITY_FAILED
        value["session"][name] = {"more": {}}
        assert code_of(canonical_bytes(value)) is ErrorCode.BUNDLE_INTEGRITY_FAILED
    value = value_of(a_bundle())
    value["comment"] = "mine"
    assert code_of(canonical_bytes(value)) is ErrorCode.BUNDLE_INTEGRITY_FAILED


@pytest.mark.produces("error:BUNDLE_INVALID_FORMAT")
@pytest.mark.inv("BND-1")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff",
        b"[" * 200_000,
        b'{"integrity":{}}',
        b'{"integrity":{"entries":[],"kind":"sha256_manifest_v1"},"session":NaN}',
        b'{"x":"\\ud800"}',
    ],
)
def test_a_file_that_is_not_a_bundle_is_refused_for_its_format(data: bytes) -> None:
    assert code_of(data) is ErrorCode.BUNDLE_INVALID_FORMAT


@pytest.mark.inv("BND-1")
def test_a_file_beyond_the_limit_is_refused_before_it_is_read() -> None:
    with pytest.raises(BundleError, match=f"more than {BUNDLE_BYTES_MAX} bytes"):
        parse_bundle(b"[" * (BUNDLE_BYTES_MAX + 1))


@pytest.mark.inv("BND-3")
@pytest.mark.produces("error:BUNDLE_UNSUPPORTED_VERSION")
def test_a_record_of_a_newer_interlock_is_not_reported_as_malformed() -> None:
    newer = [
        changed(lambda value: value.update(bundleSchemaVersion=2, anything="new")),
        changed(lambda value: value.update(anything="new")),
        changed(lambda value: value["session"]["events"][3].update(v=2)),
        changed(lambda value: value["session"]["events"][3].update(kind="run_ended")),
        changed(lambda value: value["session"]["manifest"][1].update(more=1)),
        changed(lambda value: next(iter(value["session"]["snapshots"].values())).update(v=2)),
    ]
    for data in newer:
        assert code_of(data) is ErrorCode.BUNDLE_UNSUPPORTED_VERSION
    value = value_of(a_bundle())
    value["integrity"]["kind"] = "sha256_manifest_v2"
    assert code_of(canonical_bytes(value)) is ErrorCode.BUNDLE_UNSUPPORTED_VERSION
    broken = [
        changed(lambda value: value.update(bundleSchemaVersion="1")),
        changed(lambda value: value.update(bundleId="bundle_x")),
        changed(lambda value: value.pop("producer")),
        changed(lambda value: value["session"].pop("artifacts")),
        changed(lambda value: value["session"].update(events=[])),
        changed(lambda value: value["session"].update(sessionId="sess_x")),
        changed(lambda value: value["session"]["events"][3].pop("data")),
        changed(lambda value: value["session"]["events"][3].update(dedupeKey="other")),
        changed(lambda value: value["session"]["artifacts"].update({"sha256:x": {"encoding": "utf-8", "data": ""}})),
    ]
    for data in broken:
        assert code_of(data) is ErrorCode.BUNDLE_INVALID_FORMAT


@pytest.mark.inv("BND-3")
@pytest.mark.parametrize("kind", [[], {}, 1, 1.5, True, None])
def test_a_kind_that_is_no_text_is_malformed_and_not_newer(kind: Json) -> None:
    damaged = [
        changed(lambda value: value["session"]["events"][3].update(kind=kind)),
        changed(lambda value: value["session"]["manifest"][1].update(kind=kind)),
        changed(lambda value: next(iter(value["session"]["snapshots"].values())).update(kind=kind)),
    ]
    value = value_of(a_bundle())
    value["integrity"]["kind"] = kind
    for data in (*damaged, canonical_bytes(value)):
        assert code_of(data) is ErrorCode.BUNDLE_INVALID_FORMAT


def test_a_bundle_reads_as_its_record_and_writes_the_same_bytes() -> None:
    bundle = parse_bundle(a_bundle())
    assert isinstance(bundle, Bundle)
    assert canonical_bytes(bundle.to_json()) == a_bundle()


@given(st.binary())
def test_an_artifact_has_one_text_which_gives_its_bytes_back(data: bytes) -> None:
    text = ArtifactText.from_bytes(data)
    assert text.content() == data
    assert canonical_bytes(text.to_json())
