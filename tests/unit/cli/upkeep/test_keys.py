"""`interlock keys …`: what works after a rotation is said and true, and no key is ever shown."""

import base64
import errno
import json
import os

import pytest
from tests.support.server import tree
from tests.unit.cli.upkeep.conftest import Site

from interlock.cli.screen import StopError
from interlock.cli.upkeep.keys import rotate_and_report
from interlock.kernel.errors import ErrorCode
from interlock.store.local.files import OsFiles
from interlock.store.local.store import LocalStore
from interlock.testing.harness import Harness, linear_workflow

DOCUMENT = linear_workflow("test.abc", "a", "b", "c")


def test_a_data_directory_that_is_none_is_refused_by_both_commands(site: Site) -> None:
    site.data_dir.symlink_to("nowhere")
    for command in ("status", "rotate"):
        assert "is not a directory" in site.complained("keys", command, code=2)


def test_before_the_first_run_there_is_nothing_to_see_or_to_rotate(site: Site) -> None:
    assert site.json("keys", "status") == {"keys": 0}
    assert "no keys yet" in site.said("keys", "status")
    assert "no keys to rotate" in site.complained("keys", "rotate")
    assert not site.data_dir.exists()


@pytest.mark.inv("KEY-1", "KEY-5")
def test_a_rotation_says_which_tokens_still_work_and_that_is_so(site: Site) -> None:
    _, first = site.session()
    assert site.said("keys", "status").startswith("One key, created today. It was never rotated")
    assert "Older tokens work until the next rotation" in site.said("keys", "rotate")
    harness = Harness.on_disk(site.data_dir, DOCUMENT)
    second = harness.rehydrate(first.state)
    assert second.code is None
    said = site.said("keys", "rotate")
    assert "Tokens from before the last rotation no longer work" in said
    assert harness.rehydrate(first.state).code is ErrorCode.TOKEN_BAD_SIGNATURE
    third = harness.rehydrate(second.state)
    assert third.code is None
    result = {"rotated": True, "keys": 2, "previousKeyDropped": True, "finishedEarlierRotation": False}
    assert site.json("keys", "rotate") == result
    assert harness.rehydrate(third.state).code is None
    assert harness.rehydrate(second.state).code is ErrorCode.TOKEN_BAD_SIGNATURE


@pytest.mark.inv("KEY-3", "DOC-1")
def test_a_missing_key_ring_is_named_and_the_advice_makes_a_new_one(site: Site) -> None:
    _, first = site.session()
    (site.data_dir / "keys" / "keyring.json").write_bytes(b"x")
    harness = Harness.on_disk(site.data_dir, DOCUMENT)
    advice = "run `interlock keys rotate`"
    assert advice in harness.resume()["suggestion"]
    assert advice in site.complained("keys", "rotate")
    (site.data_dir / "keys" / "keyring.json").unlink()
    refused = harness.resume()
    assert (refused.code, advice in refused["suggestion"]) == (ErrorCode.KEYRING_DAMAGED, True)
    assert ("missing" in refused["message"], "remove" in refused["suggestion"]) == (True, False)
    assert "the key ring is missing" in site.said("doctor", code=1)
    assert "the key ring is missing" in site.said("keys", "status", code=1)
    assert "A new one was made" in site.said("keys", "rotate")
    assert len(harness.resume()["candidates"]) == 1
    assert harness.rehydrate(first.state).code is ErrorCode.TOKEN_BAD_SIGNATURE
    assert site.json("keys", "status")["keys"] == 2
    site.said("doctor")


@pytest.mark.inv("KEY-5", "DOC-1")
def test_status_and_doctor_change_nothing_and_show_no_key(site: Site) -> None:
    site.session()
    site.said("keys", "rotate")
    ring = site.data_dir / "keys" / "keyring.json"
    before = tree(site.data_dir)
    said = site.said("keys", "status") + site.said("doctor") + site.said("doctor", "--deep")
    result = site.json("keys", "status")
    assert tree(site.data_dir) == before
    modes = {"mode": "0600", "directoryMode": "0700", "isPrivate": True}
    assert result == {"keys": 2, "ageDays": 0, **modes, "hasUnfinishedRotation": False}
    keys = json.loads(ring.read_text())
    for key in (keys["current"], keys["previous"]):
        for spelling in (key, base64.b64decode(key).hex(), key.rstrip("=")):
            assert spelling not in said + json.dumps(result)


@pytest.mark.inv("KEY-2", "KEY-5")
def test_keys_that_others_can_reach_are_reported_with_the_remedy(site: Site) -> None:
    site.session()
    ring = site.data_dir / "keys" / "keyring.json"
    ring.chmod(0o644)
    assert "has mode 0644" in site.said("keys", "status", code=1)
    assert "chmod 600 keys/keyring.json" in site.said("doctor", code=1)
    ring.chmod(0o600)
    assert "Only you can read them." in site.said("keys", "status")
    ring.parent.chmod(0o755)
    assert site.json("keys", "status", code=1)["isPrivate"] is False


@pytest.mark.inv("KEY-3")
def test_a_damaged_ring_is_neither_shown_nor_rotated(site: Site) -> None:
    site.session()
    ring = site.data_dir / "keys" / "keyring.json"
    ring.write_bytes(ring.read_bytes()[:-3])
    damaged = ring.read_bytes()
    for action in ("status", "rotate"):
        assert "key ring" in site.complained("keys", action)
    assert "keys: The key ring" in site.said("doctor", code=1)
    assert ring.read_bytes() == damaged


def test_the_age_of_the_ring_is_that_of_its_last_change(site: Site) -> None:
    site.session()
    ring = site.data_dir / "keys" / "keyring.json"
    site.make_old(ring, 1.5)
    assert "created a day ago" in site.said("keys", "status")
    site.make_old(ring, 40)
    assert "created 40 days ago" in site.said("keys", "status")
    site.said("keys", "rotate")
    assert "rotated today" in site.said("keys", "status")
    os.utime(ring, (2**33, 2**33))
    assert site.json("keys", "status")["ageDays"] == 0


class Confirming(OsFiles):
    """A disk that does not confirm the name of a new key ring while `is_failing`."""

    is_failing = True

    def sync_dir(self, path: str, *, full: bool = False) -> None:
        if self.is_failing and path == "keys":
            raise OSError(errno.EIO, "made to fail", str(path))
        super().sync_dir(path, full=full)


@pytest.mark.inv("KEY-7")
def test_a_rotation_that_the_disk_did_not_confirm_is_reported_and_a_repeat_finishes_it(site: Site) -> None:
    _, first = site.session()
    files = Confirming(site.data_dir)
    store = LocalStore(site.data_dir, files=files)
    with pytest.raises(StopError) as stopped:
        rotate_and_report(store, store, as_json=False)
    assert "the disk did not confirm it" in stopped.value.message
    assert "EIO" in stopped.value.message
    assert "`interlock keys rotate` again" in stopped.value.fix
    assert str(site.data_dir) not in str(stopped.value)
    assert site.json("keys", "status", code=1)["hasUnfinishedRotation"] is True
    said = site.said("keys", "status", code=1)
    assert "A rotation is not finished" in said
    assert "A rotation is not finished" in site.said("doctor", code=1)
    harness = Harness.on_disk(site.data_dir, DOCUMENT)
    assert harness.rehydrate(first.state).state == first.state, "the key before it still signs"
    assert "finished an earlier rotation" in site.said("keys", "rotate")
    assert site.said("keys", "status").startswith("Two keys")
    second = harness.rehydrate(first.state)
    assert second.code is None
    assert second.state != first.state
    site.said("keys", "rotate")
    assert harness.rehydrate(first.state).code is ErrorCode.TOKEN_BAD_SIGNATURE


def test_a_rotation_that_failed_before_anything_changed_says_so(site: Site) -> None:
    site.session()
    ring = (site.data_dir / "keys" / "keyring.json").read_bytes()
    (site.data_dir / "config" / ".lock").unlink()
    (site.data_dir / "config" / ".lock").mkdir()
    assert "nothing was recorded" in site.complained("keys", "rotate")
    assert (site.data_dir / "keys" / "keyring.json").read_bytes() == ring
    assert site.json("keys", "status")["hasUnfinishedRotation"] is False
