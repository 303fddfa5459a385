"""Opening a data directory: it touches nothing, and the files of a session are where the log says."""

from pathlib import Path

import pytest

from interlock.kernel.canonical import digest_of_bytes
from interlock.store.opening import open_session_files, open_store
from interlock.testing.harness import Harness, linear_workflow


@pytest.mark.inv("HOUSE-2")
def test_opening_a_directory_that_is_missing_makes_nothing(tmp_path: Path) -> None:
    root = tmp_path / "data"
    assert open_store(root).sessions() == ()
    assert open_store(root).key_ring_status() is None
    assert open_store(root).upkeep.overview().attested == ()
    assert open_store(root).upkeep.retention_pins.kept() == frozenset()
    assert not root.exists()


@pytest.mark.inv("HOUSE-2")
def test_what_is_opened_reads_what_a_server_recorded(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path, linear_workflow("team.ship", "a", "b"))
    session = harness.session_of(harness.start("team.ship"))
    assert open_store(tmp_path).sessions() == open_store(tmp_path).upkeep.overview().attested == (session,)
    status = open_store(tmp_path).key_ring_status()
    assert status is not None
    assert status.keys == 1


def test_the_files_of_a_session_hold_the_bytes_that_its_log_and_its_references_name(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path, linear_workflow("team.ship", "a", "b"))
    first = harness.start("team.ship")
    harness.advance(first, "Done.")
    files = open_session_files(tmp_path, harness.session_of(first))
    before = files.log_bytes()
    assert [digest_of_bytes(path.read_bytes()) for _, path in files.segments()] == [
        record.sha256 for record, _ in files.segments()
    ]
    status = open_store(tmp_path).load(files.session)
    assert status is not None
    assert sum(path.read_bytes().count(b"\n") for _, path in files.segments()) == status.next_index
    for node in status.nodes.values():
        assert digest_of_bytes(files.snapshot(node.snapshot).read_bytes()) == node.snapshot
    for run in status.runs.values():
        assert digest_of_bytes(files.pinned_workflow(run.workflow_hash).read_bytes()) == run.workflow_hash
    harness.start("team.ship", sessionId=files.session)
    assert files.log_bytes() > before > 0
    assert open_session_files(tmp_path / "none", files.session).log_bytes() == 0
