"""The files of published definitions: their names bind what they hold."""

import errno
from pathlib import Path

import pytest
from tests.support.crash import opened
from tests.support.sweep import DAY_S, dated_disk, swept

from interlock.kernel.canonical import canonical_bytes, digest_of_bytes
from interlock.kernel.uuids import derived_uuid
from interlock.store.local import layout
from interlock.store.local.store import LocalStore
from interlock.store.ports.errors import DefinitionDamagedError, DefinitionTakenError, StoreFailureError
from interlock.testing.power_cut import InjectedFault

KEY = (derived_uuid("definition", 1), 1)
OTHER = (derived_uuid("definition", 2), 1)
DATA = canonical_bytes({"id": KEY[0], "version": 1, "name": "first"})


def unbound(root: Path, data: bytes) -> Path:
    """Write a definition under a name without its digest, as earlier versions did."""
    path = root / layout.DEFINITIONS / f"{KEY[0]}.{KEY[1]}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@pytest.mark.inv("OPS-21")
def test_a_file_without_a_digest_in_its_name_is_read_and_bound_when_it_is_published_again(tmp_path: Path) -> None:
    path, store = unbound(tmp_path, DATA), LocalStore(tmp_path)
    assert store.published() == {KEY: DATA}
    with pytest.raises(DefinitionTakenError):
        store.publish({KEY: DATA + b" "})
    store.publish({KEY: DATA})
    path.write_bytes(b"{}")
    assert (store.published(), store.damaged_definitions()) == ({KEY: DATA}, {})


@pytest.mark.damages
@pytest.mark.inv("OPS-21")
@pytest.mark.parametrize("data", [b"", DATA[:-1], DATA.replace(b'"version":1', b'"version":2'), b"\0" * len(DATA)])
def test_a_file_that_does_not_hold_what_its_name_says_is_damaged(tmp_path: Path, data: bytes) -> None:
    unbound(tmp_path, data)
    store = LocalStore(tmp_path)
    assert store.published() == {}
    assert [one.name for one in store.damaged_definitions().values()] == [f"definitions/{KEY[0]}.1.json"]
    store.publish({KEY: DATA})
    assert (store.published(), store.damaged_definitions()) == ({KEY: DATA}, {})


@pytest.mark.damages
@pytest.mark.inv("OPS-21")
def test_a_directory_in_the_place_of_a_definition_is_named_and_not_replaced(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.publish({KEY: DATA})
    (path,) = (tmp_path / layout.DEFINITIONS).iterdir()
    path.unlink()
    path.mkdir()
    for _ in range(2):
        with pytest.raises(DefinitionDamagedError, match=path.name):
            store.publish({KEY: DATA})
        # Content under a name of earlier versions can be used, and does not hide the directory.
        unbound(tmp_path, DATA)
    assert store.published() == {KEY: DATA}
    path.rmdir()
    store.publish({KEY: DATA})
    assert store.published() == {KEY: DATA}


@pytest.mark.damages
@pytest.mark.inv("OPS-3", "OPS-21")
def test_no_other_content_is_published_under_the_version_of_a_damaged_file(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.publish({KEY: DATA})
    (path,) = (tmp_path / layout.DEFINITIONS).iterdir()
    path.write_bytes(DATA + b" ")
    assert store.published() == {}
    with pytest.raises(DefinitionTakenError):
        store.publish({KEY: DATA + b" ", OTHER: b"other"})
    store.publish({KEY: DATA})
    assert store.published() == {KEY: DATA}


@pytest.mark.inv("OPS-3", "OPS-21")
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_publishing_that_fails_anywhere_leaves_each_definition_whole_or_missing(error: int) -> None:
    probe = dated_disk()
    opened(probe).publish({KEY: DATA, OTHER: b"other"})
    for at in range(len(probe.steps)):
        disk = dated_disk()
        disk.fault = InjectedFault(at=at, error=error)
        with pytest.raises(StoreFailureError):
            opened(disk).publish({KEY: DATA, OTHER: b"other"})
        disk.fault = None
        assert opened(disk).damaged_definitions() == {}
        assert opened(disk).published().items() <= {KEY: DATA, OTHER: b"other"}.items()
        opened(disk).publish({KEY: DATA, OTHER: b"other"})
        assert opened(disk).published() == {KEY: DATA, OTHER: b"other"}


@pytest.mark.inv("GC-5")
def test_a_temporary_file_of_a_definition_is_swept() -> None:
    disk = dated_disk()
    opened(disk).publish({KEY: DATA})
    temp = layout.temp(f"{layout.DEFINITIONS}/x.json", "0" * 16)
    disk.write(temp, b"{")
    disk.now_s += 2 * DAY_S
    assert [item.name for item in swept(disk).taken.items] == [temp]
    assert opened(disk).published() == {KEY: DATA}


@pytest.mark.damages
@pytest.mark.inv("OPS-21")
@pytest.mark.parametrize("value", [b"1" * 40, b"NaN", b'"\\ud800"'])
def test_a_value_that_has_no_canonical_form_is_damage(tmp_path: Path, value: bytes) -> None:
    unbound(tmp_path, DATA[:-1] + b',"z":' + value + b"}")
    store = LocalStore(tmp_path)
    assert (store.published(), len(store.damaged_definitions())) == ({}, 1)


@pytest.mark.damages
@pytest.mark.inv("OPS-3", "OPS-21")
def test_two_contents_under_one_version_are_named_and_neither_is_used(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.publish({KEY: DATA})
    other = DATA.replace(b"{", b"{ ", 1)
    digest = digest_of_bytes(other).removeprefix("sha256:")
    directory = tmp_path / layout.DEFINITIONS
    (directory / f"{KEY[0]}.1.{digest}.json").write_bytes(other)
    whole = {f"{layout.DEFINITIONS}/{one.name}" for one in directory.iterdir()}
    # A damaged file is no content of this version, also if its name comes first.
    (directory / f"{KEY[0]}.1.{'0' * 64}.json").write_bytes(b"{}")
    assert store.published() == {}
    (damaged,) = store.damaged_definitions().values()
    assert "under one id and version" in damaged.found
    assert {one for one in whole if one in f"{damaged.name} {damaged.found}"} == whole
    with pytest.raises(DefinitionTakenError):
        store.publish({KEY: DATA + b"  "})
