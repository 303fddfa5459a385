"""Intents that a killed process did not try to send: the next server here sends them, and no copy does."""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.flow import Document, document, step
from tests.support.modes import session_of
from tests.support.outside import into_file, sender_of

from interlock.channels.channel import ChannelConfig
from interlock.kernel.ids import SessionId
from interlock.service.outside.dispatch import Dispatcher
from interlock.store.opening import open_untried
from interlock.testing.harness import Harness, ToolResult

NOTIFY: Document = {"kind": "team.notify", "fields": {"text": {"value": "Built"}}}
FLOW = document({**step("a"), "emit": [NOTIFY]}, {**step("b"), "emit": [NOTIFY]}, step("c"))

pytestmark = [
    pytest.mark.inv("WORLD-13"),
    pytest.mark.skipif(os.name == "nt", reason="Windows does not keep when the status of a file changed"),
]


def outbox_over(data: Path, channel: ChannelConfig) -> tuple[Harness, Dispatcher]:
    """Return a harness over a data directory, and the dispatcher that sends what it records."""
    harness = Harness.on_disk(data, FLOW)
    outbox = Dispatcher(sender=sender_of(harness, channel), untried=open_untried(data))
    return replace(harness, ports=replace(harness.ports, outbox=outbox)), outbox


def killed_before_dispatch(data: Path, channel: ChannelConfig) -> tuple[Harness, ToolResult, ToolResult]:
    """Let a process record an intent that it tries no more; return its first answer and the one after the intent."""
    harness, outbox = outbox_over(data, channel)
    outbox.close()
    first = harness.start("test.flow", goal="Ship")
    return harness, first, harness.advance(first)


def resumed(data: Path, *channels: ChannelConfig) -> None:
    """Do what servers do after their start; all of them look before one sends."""
    outboxes = [outbox_over(data, one)[1] for one in channels]
    for one in outboxes:
        one.resume()
    for one in outboxes:
        one.drain()


def lines(out: Path) -> int:
    return len(out.read_text().splitlines()) if out.exists() else 0


@pytest.mark.parametrize("servers", [1, 2])
def test_the_next_server_sends_once_what_a_killed_one_did_not_try(tmp_path: Path, servers: int) -> None:
    data, channel = tmp_path / "data", into_file(tmp_path / "out")
    harness, first, _ = killed_before_dispatch(data, channel)
    assert lines(tmp_path / "out") == 0
    resumed(data, *[channel] * servers)
    resumed(data, channel)
    assert lines(tmp_path / "out") == 1
    assert [one.state for one in session_of(harness, first).outside.intents.values()] == ["delivered"]
    assert list((data / "outbox").iterdir()) == []


def test_a_later_report_of_the_same_process_keeps_what_it_has_not_tried(tmp_path: Path) -> None:
    data, channel = tmp_path / "data", into_file(tmp_path / "out")
    harness, _, answer = killed_before_dispatch(data, channel)
    harness.advance(harness.advance(answer, "Did b too, with care."), "Did c too, with care.")
    resumed(data, channel)
    assert lines(tmp_path / "out") == 2


def copied(data: Path, _session: SessionId) -> None:
    moved = data.rename(data.with_name("original"))
    shutil.copytree(moved, data)


def linked(data: Path, _session: SessionId) -> None:
    moved = data.rename(data.with_name("original"))
    shutil.copytree(moved, data, copy_function=os.link)


def restored(data: Path, session: SessionId) -> None:
    """Put a copy of the manifest in its place, with the times of the original."""
    manifest = data / "sessions" / session / "manifest.jsonl"
    shutil.copy2(manifest, data / "copy")
    (data / "copy").rename(manifest)


def rewritten(data: Path, session: SessionId) -> None:
    """Write the same bytes into the same file, and set its times back."""
    manifest = data / "sessions" / session / "manifest.jsonl"
    before = manifest.stat()
    with manifest.open("r+b") as file:
        data_bytes = file.read()
        file.seek(0)
        file.write(data_bytes)
    os.utime(manifest, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("change", [copied, linked, restored, rewritten])
def test_a_copy_or_a_restored_session_sends_nothing(tmp_path: Path, change: Callable[[Path, SessionId], None]) -> None:
    data, channel = tmp_path / "data", into_file(tmp_path / "out")
    harness, first, _ = killed_before_dispatch(data, channel)
    change(data, harness.session_of(first))
    resumed(data, channel)
    assert lines(tmp_path / "out") == 0
    assert list((data / "outbox").iterdir()) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"intents": 3, "manifest": null}'])
def test_a_file_of_another_form_sends_nothing(tmp_path: Path, text: str) -> None:
    data, channel = tmp_path / "data", into_file(tmp_path / "out")
    killed_before_dispatch(data, channel)
    [file] = (data / "outbox").iterdir()
    file.write_text(text)
    resumed(data, channel)
    assert (lines(tmp_path / "out"), file.exists()) == (0, False)
