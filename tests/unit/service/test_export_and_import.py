"""A session that was exported and imported is the same session to every view, and goes on."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.bundles import (
    DOCUMENT,
    a_bundle,
    a_session,
    exported,
    imported,
    refused,
    restoring,
    value_of,
    views,
)
from tests.support.modes import files_below

from interlock.kernel.budgets import BUNDLE_BYTES_MAX, BUNDLE_DEPTH_MAX, BUNDLE_VALUES_MAX
from interlock.kernel.canonical import digest_of_bytes
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.ids import SessionId, derived_id
from interlock.kernel.json_bounds import JsonBounds
from interlock.record.bundle import parse_bundle
from interlock.record.events import Event, mark_imported
from interlock.service.audit.verify import verify_session
from interlock.service.transfer import export as exporting
from interlock.service.transfer.export import export_session
from interlock.service.transfer.import_ import import_session
from interlock.store.ports.errors import Health, SessionUnhealthyError
from interlock.testing.harness import CounterClock, Harness, linear_workflow

GOLDEN = Path(__file__).parents[2] / "golden" / "data-dir-1"


@pytest.fixture(params=["memory", "disk"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Harness]:
    """Fresh harnesses one after the other, each with a store and a key ring of its own."""

    def fresh() -> Iterator[Harness]:
        number = 0
        while True:
            number += 1
            clock = CounterClock(number * 1_000_000)
            if request.param == "disk":
                yield Harness.on_disk(tmp_path / str(number), DOCUMENT, clock=clock)
            else:
                harness = Harness.in_memory(DOCUMENT)
                read = replace(harness.ports.read, key_ring=harness.store)
                yield replace(harness, ports=replace(harness.ports, read=read, key_ring=harness.store, clock=clock))

    return fresh()


@pytest.mark.inv("BND-6")
def test_every_view_of_an_imported_session_is_that_of_the_exported_one(places: Iterator[Harness]) -> None:
    here, there = next(places), next(places)
    session = a_session(here)
    before = views(here, session)
    assert before["sound"] == ()
    outcome = imported(there, exported(here, session).data)
    assert (outcome.restored.session, outcome.source, outcome.banner) == (session, session, None)
    assert views(there, session) == before == views(here, session)
    assert there.store.history(session) == marked(here.store.history(session))


@pytest.mark.inv("BND-6")
def test_a_real_data_directory_of_many_features_comes_over_whole(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN, tmp_path / "here")
    here, there = Harness.on_disk(tmp_path / "here"), Harness.on_disk(tmp_path / "there")
    (session,) = here.store.sessions()
    imported(there, exported(here, session).data)
    assert views(there, session) == views(here, session)
    # The mark of the import is in the first segment; all later ones are stored as they were.
    first = f"sessions/{session}/events/00000000"
    left = {path: data for path, data in files_below(tmp_path / "here").items() if not path.startswith("keys/")}
    found = files_below(tmp_path / "there")
    assert found.keys() >= left.keys()
    is_marked = {path for path in left if found[path] != left[path]}
    assert {path.removeprefix(first) for path in is_marked} <= {
        path.removeprefix(first)
        for path in left
        if path.startswith(first) or path.endswith(("manifest.jsonl", "settled", "summary"))
    }


@pytest.mark.inv("BND-7")
def test_the_old_tokens_do_not_work_elsewhere_and_the_fresh_ones_go_on_in_each_run(places: Iterator[Harness]) -> None:
    here, there = next(places), next(places)
    first = here.start("test.flow", goal="Carry on", context={"mode": "fast"})
    second = here.advance(first)
    session = here.session_of(first)
    here.start("test.flow", sessionId=session, context={"mode": "slow"})
    bundle = exported(here, session).data
    for token in (first.ack, first.state, second.ack, second.state):
        assert token.encode() not in bundle
    outcome = imported(there, bundle)
    assert there.advance(second).code is ErrorCode.TOKEN_BAD_SIGNATURE
    assert there.rehydrate(first).code is ErrorCode.TOKEN_BAD_SIGNATURE
    ways = outcome.restored.ways_on
    assert [(way.run.label, way.run.goal, way.status) for way in ways] == [
        (first["run"]["label"], "Carry on", "in_progress"),
        (ways[1].run.label, None, "in_progress"),
    ]
    call = ways[0].next_call
    looked = there.call(call.tool, call.arguments)
    assert looked["pending"]["stepId"] == "b"
    assert there.follow(looked)["pending"] == here.advance(second)["pending"]


@pytest.mark.inv("BND-7")
def test_a_complete_run_is_reported_as_complete() -> None:
    here, there = (Harness.in_memory(linear_workflow("test.one", "only")) for _ in range(2))
    first = here.start("test.one")
    here.advance(first)
    (way,) = imported(there, exported(here, here.session_of(first)).data).restored.ways_on
    assert way.status == "complete"


@pytest.mark.inv("BND-8")
def test_a_taken_id_makes_a_session_of_its_own_that_differs_in_its_id_alone(places: Iterator[Harness]) -> None:
    here = next(places)
    session = a_session(here)
    before, bundle = views(here, session), exported(here, session).data
    first, second = imported(here, bundle).restored, imported(here, bundle).restored
    one, other = first.session, second.session
    assert len({session, one, other}) == 3
    assert set(here.store.sessions()) == {session, one, other}
    history = here.store.history(session)
    for copy in (one, other):
        assert views(here, copy) == before
        for events, moved in zip(history, here.store.history(copy), strict=True):
            for event, copied in zip(events, moved, strict=True):
                text = mark_imported(event, sum(map(len, history))).to_bytes()
                kind, _, rest = event.dedupe_key.partition(f":{session}")
                assert copied.dedupe_key == f"{kind}:{copy}{rest}"
                assert copied.to_bytes() == text.replace(session.encode(), copy.encode())
                assert text.count(session.encode()) == 2
    looked = here.call("continue_workflow", first.ways_on[0].next_call.arguments)
    assert here.session_of(looked) == one
    assert not here.follow(looked).is_error
    assert views(here, one) != before
    assert views(here, session) == before == views(here, other)


@pytest.mark.inv("BND-8")
@pytest.mark.damages
def test_an_id_that_a_damaged_session_has_is_taken_and_the_damaged_one_stays(tmp_path: Path) -> None:
    here = Harness.on_disk(tmp_path, DOCUMENT)
    session = a_session(here)
    bundle, before = exported(here, session).data, views(here, session)
    segment = min((tmp_path / "sessions" / session / "events").iterdir())
    segment.write_bytes(b"x" + segment.read_bytes()[1:])
    damaged = files_below(tmp_path / "sessions" / session)
    again = Harness.on_disk(tmp_path, DOCUMENT)
    copy = imported(again, bundle).restored.session
    assert copy != session
    assert views(again, copy) == before
    assert files_below(tmp_path / "sessions" / session) == damaged
    with pytest.raises(SessionUnhealthyError):
        again.store.load(session)


class Late:
    """A reader that looks before somebody else has stored the same session."""

    def __init__(self, there: Harness, session: SessionId, store: Callable[[], object]) -> None:
        self._there, self._session, self._store = there, session, store

    def __getattr__(self, name: str) -> object:
        return getattr(self._there.store, name)

    def load(self, wanted: SessionId) -> None:
        if wanted == self._session and not self._there.store.sessions():
            self._store()


def marked(history: tuple[tuple[Event, ...], ...]) -> tuple[tuple[Event, ...], ...]:
    """Return a history as an import stores it."""
    count = sum(map(len, history))
    return tuple(tuple(mark_imported(event, count) for event in events) for events in history)


def imported_late(there: Harness, session: SessionId, bundle: bytes, store: Callable[[], object]) -> SessionId:
    """Return the session that an import gives if something is stored between its look and its lock."""
    ports, late = restoring(there), Late(there, session, store)
    read = replace(ports.read, reader=late)  # pyright: ignore[reportArgumentType] — the rest is the store's
    outcome = import_session(replace(ports, read=read), bundle)
    assert not isinstance(outcome, Refusal)
    return outcome.restored.session


@pytest.mark.inv("BND-8")
def test_another_session_that_takes_the_id_meanwhile_is_left_alone() -> None:
    here, there = Harness.in_memory(DOCUMENT), Harness.in_memory(DOCUMENT)
    first = here.start("test.flow", context={"mode": "fast"})
    session = here.session_of(first)
    earlier = exported(here, session).data
    here.advance(first)
    made = imported_late(there, session, exported(here, session).data, lambda: imported(there, earlier))
    assert made != session
    assert there.store.history(session) == marked(here.store.history(session)[:1])


@pytest.mark.inv("BND-8", "FAIL-3")
def test_an_import_that_counts_only_once_its_session_is_locked_again_is_not_copied() -> None:
    """As after an import whose last write failed: no reader counts it, and the lock decides (decision 0032)."""
    here, there = Harness.in_memory(DOCUMENT), Harness.in_memory(DOCUMENT)
    session = a_session(here)
    bundle = exported(here, session).data
    assert imported_late(there, session, bundle, lambda: imported(there, bundle)) == session
    assert there.store.sessions() == (session,)
    assert there.store.history(session) == marked(here.store.history(session))


@pytest.mark.inv("BND-6")
def test_two_exports_of_one_state_differ_in_their_time_alone() -> None:
    here = Harness.in_memory(DOCUMENT)
    session = a_session(here)

    class Later(CounterClock):
        def unix_ms(self) -> int:
            return 1_800_000_000_000

    one = value_of(exported(here, session).data)
    later = exported(replace(here, ports=replace(here.ports, clock=Later())), session)
    other = value_of(later.data)
    assert one["bundleId"] == other["bundleId"] == later.bundle_id
    assert one["session"] == other["session"]
    assert {key for key in one if one[key] != other[key]} == {"exportedAt", "integrity"}
    assert len({exported(here, copy).bundle_id for copy in (session, imported(here, later.data).restored.session)}) == 2


@pytest.mark.inv("BND-6")
def test_exporting_reads_and_writes_nothing(tmp_path: Path) -> None:
    here = Harness.on_disk(tmp_path, DOCUMENT)
    session = a_session(here)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    files = files_below(tmp_path)
    exported(Harness.on_disk(tmp_path, DOCUMENT), session)
    assert files_below(tmp_path) == files
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.mark.inv("BND-9")
@pytest.mark.parametrize("what", ["snapshots", "workflows/pinned", "artifacts"])
@pytest.mark.parametrize("how", ["missing", "wrong bytes"])
def test_a_session_whose_content_is_lost_is_refused_by_its_name(tmp_path: Path, what: str, how: str) -> None:
    here = Harness.on_disk(tmp_path, DOCUMENT)
    session = a_session(here)
    for path in (tmp_path / what).iterdir():
        good = path.read_bytes()
        path.unlink() if how == "missing" else path.write_bytes(b"x" + good[1:])
        again = Harness.on_disk(tmp_path, DOCUMENT)
        result = export_session(again.store, again.ports.clock, session)
        assert isinstance(result, Refusal)
        assert result.code is ErrorCode.SESSION_NOT_HEALTHY
        assert f"sha256:{path.name.removesuffix('.json')}" in result.message
        assert how in result.message
        assert "PARTIAL_DATA" in str(result.details)
        path.write_bytes(good)
    exported(Harness.on_disk(tmp_path, DOCUMENT), session)


@pytest.mark.inv("BND-9")
@pytest.mark.damages
def test_a_damaged_session_is_exported_only_when_asked_for_and_says_so_ever_after(tmp_path: Path) -> None:
    here = Harness.on_disk(tmp_path / "here", DOCUMENT)
    session = a_session(here)
    history = here.store.history(session)
    (tmp_path / "here" / "sessions" / session / "events").joinpath(_name(history, 3)).unlink()
    here = Harness.on_disk(tmp_path / "here", DOCUMENT)
    result = export_session(here.store, here.ports.clock, session)
    assert isinstance(result, Refusal)
    assert result.code is ErrorCode.SESSION_NOT_HEALTHY
    assert "--salvage" in result.suggestion
    salvaged = exported(here, session, is_salvage=True)
    banner = salvaged.banner
    assert banner is not None
    assert (banner.code, banner.health) == ("SALVAGED_PREFIX", "corrupt_tail")
    assert (banner.where, banner.found) == (f"events/{_name(history, 3)}", "missing")
    assert (banner.groups_left_out, banner.is_count_known) == (len(history) - 3, True)
    assert banner.events_left_out == sum(map(len, history[3:]))
    assert parse_bundle(salvaged.data).salvage == banner
    there = Harness.on_disk(tmp_path / "there", DOCUMENT)
    outcome = imported(there, salvaged.data)
    assert outcome.banner == banner
    assert there.store.history(session) == marked(history[:3])
    assert verify_session(there.store, there.ports.read.plans, session) == ()


def _name(history: tuple[tuple[object, ...], ...], at: int) -> str:
    first = sum(map(len, history[:at]))
    return f"{first:08d}-{first + len(history[at]) - 1:08d}.jsonl"


@pytest.mark.inv("BND-9")
def test_a_whole_session_has_no_banner_even_if_salvage_is_asked_for() -> None:
    here = Harness.in_memory(DOCUMENT)
    session = a_session(here)
    assert exported(here, session, is_salvage=True).data == exported(here, session).data == a_bundle()


@pytest.mark.inv("BND-10")
@pytest.mark.parametrize("limit", [100, 20_000])
def test_a_bundle_that_no_import_would_take_is_not_written(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    here = Harness.in_memory(DOCUMENT)
    session = a_session(here)
    monkeypatch.setattr(exporting, "BUNDLE_BYTES_MAX", limit)
    result = export_session(here.store, here.ports.clock, session)
    assert isinstance(result, Refusal)
    assert (result.code, result.details["bytesMax"]) == (ErrorCode.VALIDATION_ERROR, limit)
    assert "Copy the data directory" in result.suggestion
    assert refused(here, b" " * (BUNDLE_BYTES_MAX + 1)).code is ErrorCode.BUNDLE_INVALID_FORMAT


@pytest.mark.inv("BND-10")
def test_a_bundle_of_more_values_than_an_import_takes_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    here = Harness.in_memory(DOCUMENT)
    session = a_session(here)
    monkeypatch.setattr(exporting, "BUNDLE_BOUNDS", JsonBounds(values_max=50, depth_max=100))
    refusal = export_session(here.store, here.ports.clock, session)
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.details["valuesMax"]) == (ErrorCode.VALIDATION_ERROR, BUNDLE_VALUES_MAX)
    assert "Copy the data directory" in refusal.suggestion


@pytest.mark.inv("BND-10")
@pytest.mark.inv("LIM-1")
@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"[" + b"[]," * (BUNDLE_VALUES_MAX // 2) + b"[]]", f"more than {BUNDLE_VALUES_MAX} values"),
        (b"[" * BUNDLE_DEPTH_MAX + b"]" * BUNDLE_DEPTH_MAX, f"deeper than {BUNDLE_DEPTH_MAX} levels"),
        (b"9" * 5000, "digits"),
    ],
)
def test_a_file_that_costs_more_to_parse_than_any_bundle_is_not_parsed(value: bytes, words: str) -> None:
    refusal = refused(Harness.in_memory(DOCUMENT), b'{"bundleId":' + value + b"}")
    assert refusal.code is ErrorCode.BUNDLE_INVALID_FORMAT
    assert words in refusal.message


@pytest.mark.parametrize("session", ["sess_" + "0" * 26, "", ".", "..", "../sessions", derived_id("sess", "x")])
def test_a_session_that_is_not_there_is_not_exported(tmp_path: Path, session: str) -> None:
    here = Harness.on_disk(tmp_path, DOCUMENT)
    a_session(here)
    result = export_session(here.store, here.ports.clock, SessionId(session))
    assert isinstance(result, Refusal)
    assert result.code is ErrorCode.SESSION_NOT_FOUND


@pytest.mark.inv("SAL-4")
@pytest.mark.parametrize("kind", ["segment_closed", "snapshot_pinned"])
@pytest.mark.damages
def test_what_a_newer_interlock_wrote_is_neither_exported_nor_called_damaged(tmp_path: Path, kind: str) -> None:
    here = Harness.on_disk(tmp_path, DOCUMENT)
    session = a_session(here)
    manifest = tmp_path / "sessions" / session / "manifest.jsonl"
    lines = manifest.read_bytes().splitlines(keepends=True)
    at = max(number for number, line in enumerate(lines) if kind.encode() in line)
    lines[at] = lines[at].replace(b'"v":1', b'"v":2')
    manifest.write_bytes(b"".join(lines))
    again = Harness.on_disk(tmp_path, DOCUMENT)
    result = export_session(again.store, again.ports.clock, session, is_salvage=True)
    assert isinstance(result, Refusal)
    assert result.details["health"] == Health.UNKNOWN_VERSION
    assert "newer Interlock" in result.message


@pytest.mark.inv("BND-12")
def test_a_bundle_names_the_configuration_of_its_newest_run() -> None:
    here = Harness.in_memory(DOCUMENT)
    first = here.start("test.flow", context={"mode": "fast"})
    session = here.session_of(first)
    assert "appliedConfigHash" not in value_of(exported(here, session).data)["producer"]
    configured = replace(here, ports=replace(here.ports, config_hash=digest_of_bytes(b"a configuration")))
    configured.start("test.flow", context={"mode": "fast"}, sessionId=session)
    data = exported(here, session).data
    assert value_of(data)["producer"]["appliedConfigHash"] == digest_of_bytes(b"a configuration")
    assert imported(Harness.in_memory(DOCUMENT), data).restored.session


@pytest.mark.inv("BND-10")
def test_a_session_reaches_the_limit_of_bytes_before_that_of_values(tmp_path: Path) -> None:
    """Measured on a session whose reports are short, so that it has as many values for its bytes as any.

    Its bundle is imported into an empty data directory.
    """
    here = Harness.in_memory(linear_workflow("test.many", *(f"s{number}" for number in range(40))))
    answer = here.start("test.many")
    session = here.session_of(answer)
    while not answer["isComplete"]:
        answer = here.advance(answer, "Ok.")
    data = exported(here, session).data
    assert BUNDLE_BYTES_MAX // BUNDLE_VALUES_MAX <= 16
    values = data.count(b",") + data.count(b"[") + data.count(b"{")
    assert len(data) / values > 20
    there = Harness.on_disk(tmp_path / "there")
    assert imported(there, data).restored.session == session
    assert there.store.history(session) == marked(here.store.history(session))
    assert verify_session(there.store, there.ports.read.plans, session) == ()
