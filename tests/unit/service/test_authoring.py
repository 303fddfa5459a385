"""Workflow files are written whole or not at all, and what cannot run is not written."""

import errno
import json
import os
from pathlib import Path

import pytest
from tests.support.definitions import BLOCK
from tests.support.flows import WORK

from interlock.cli.workflow.places import WorkflowLocations
from interlock.define.operations.builders import FlowBuilder
from interlock.define.operations.files import to_file_json
from interlock.kernel.frozen import replace
from interlock.service.workflows.authoring import NewFile, NotWritten, WorkflowAuthor
from interlock.service.workflows.catalog import Entry, RefusedFile, Source
from interlock.testing.harness import linear_workflow

SHIP = json.dumps(linear_workflow("team.ship", "a")).encode()
OTHER = json.dumps(linear_workflow("team.ship", "a", "b")).encode()


@pytest.fixture
def author(tmp_path: Path) -> WorkflowAuthor:
    return WorkflowLocations(workspace=tmp_path, user_dir=tmp_path / "user", core_source=None).author


def new_file(author: WorkflowAuthor, data: bytes) -> NewFile:
    path = author.workspace / ".interlock" / "workflows" / "ship.json"
    return NewFile(path=path, ref="ship.json", form="json", data=data)


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)


@pytest.mark.inv("CON-13")
@pytest.mark.usefixtures("full_disk")
def test_a_new_file_that_cannot_be_written_whole_does_not_exist(author: WorkflowAuthor) -> None:
    found = author.create(new_file(author, SHIP))
    assert isinstance(found, NotWritten)
    assert "ship.json cannot be written: No space left on device." in found.message
    assert "--dir" in found.fix
    assert list(new_file(author, SHIP).path.parent.iterdir()) == []


@pytest.mark.inv("CON-13")
def test_a_file_that_cannot_be_replaced_is_unchanged(author: WorkflowAuthor, request: pytest.FixtureRequest) -> None:
    assert author.create(new_file(author, SHIP)) is None
    opened = author.open("team.ship")
    assert opened is not None
    request.getfixturevalue("full_disk")
    assert isinstance(author.save("team.ship", OTHER, opened.digest), NotWritten)
    (kept,) = new_file(author, SHIP).path.parent.iterdir()
    assert kept.read_bytes() == SHIP


@pytest.mark.inv("CON-13")
def test_a_new_file_with_faults_is_not_written_and_its_faults_are_named(author: WorkflowAuthor) -> None:
    found = author.create(new_file(author, b'{"id": "team.ship"}'))
    assert isinstance(found, NotWritten)
    assert found.faults
    assert (
        found.refusal.message.count("Nothing was written") + found.refusal.suggestion.count("Nothing was written") == 1
    )
    assert not new_file(author, SHIP).path.parent.exists()


@pytest.mark.inv("CON-13")
def test_a_copy_of_what_is_no_workflow_is_refused(author: WorkflowAuthor) -> None:
    found = author.copy("team.nothing", "team.mine")
    assert isinstance(found, NotWritten)
    assert "'team.nothing' is no workflow that can run." in found.message
    assert not new_file(author, SHIP).path.parent.exists()


@pytest.mark.inv("CON-13")
def test_the_file_of_a_workflow_is_opened_and_replaced_although_another_directory_has_its_name(
    author: WorkflowAuthor,
) -> None:
    block = json.dumps(BLOCK).encode()
    other, own = (author.workspace / ".interlock" / one / "ship.json" for one in ("workflows", "operations"))
    for path, data in ((other, block), (own, SHIP)):
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
    opened = author.open("team.ship")
    assert opened is not None
    assert opened.data == SHIP
    assert author.save("team.ship", OTHER, opened.digest) is None
    assert (other.read_bytes(), own.read_bytes()) == (block, OTHER)


@pytest.mark.inv("CON-13")
def test_a_workflow_is_not_saved_over_a_flow_and_a_flow_not_over_a_workflow(author: WorkflowAuthor) -> None:
    named = FlowBuilder("Ship").metadata({"workflow_id": "team.ship"}).add_block(WORK, "do").entry("do").build()
    flow = json.dumps(to_file_json(named)).encode()
    path, work = (author.workspace / ".interlock" / "operations" / one for one in ("ship.json", "work.json"))
    path.parent.mkdir(parents=True)
    work.write_text(json.dumps(to_file_json(WORK)))
    for old, new, words in ((flow, SHIP, "holds a flow"), (SHIP, flow, "holds a workflow")):
        path.write_bytes(old)
        opened = author.open("team.ship")
        assert opened is not None
        refused = author.save("team.ship", new, opened.digest)
        assert isinstance(refused, NotWritten)
        assert words in refused.message
        assert path.read_bytes() == old
        assert author.save("team.ship", old + b"\n", opened.digest) is None


@pytest.mark.inv("CON-13")
def test_a_page_that_was_opened_before_the_id_moved_to_another_file_replaces_nothing(author: WorkflowAuthor) -> None:
    assert author.create(new_file(author, SHIP)) is None
    opened, first = author.open("team.ship"), new_file(author, SHIP).path
    assert opened is not None
    second = author.workspace / ".interlock" / "operations" / first.name
    second.parent.mkdir()
    second.write_bytes(OTHER)
    first.write_bytes(json.dumps(BLOCK).encode())
    assert isinstance(author.save("team.ship", SHIP, opened.digest), NotWritten)
    assert second.read_bytes() == OTHER


def test_a_source_that_is_saved_is_parsed_and_compiled_once(author: WorkflowAuthor) -> None:
    assert author.create(new_file(author, SHIP)) is None
    opened = author.open("team.ship")
    assert opened is not None
    seen = list[Source]()

    def counted(source: Source) -> Entry | RefusedFile:
        seen.append(source)
        return author.entry_in(source)

    assert replace(author, entry_in=counted).save("team.ship", OTHER, opened.digest) is None
    assert [one.data for one in seen] == [OTHER]
