"""List, inspect and rehydrate leave the data directory as it was, to the byte and to the nanosecond."""

import os
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import cast, get_type_hints

import pytest

from interlock.kernel.errors import ErrorCode
from interlock.service.ports import ReadPorts
from interlock.store.ports.definitions import DefinitionReader
from interlock.store.ports.keys import KeyRingReader
from interlock.store.ports.reader import SessionReader
from interlock.store.ports.store import Store, StoreReader
from interlock.testing.harness import Harness, ToolResult, linear_workflow

Look = Callable[[Harness, ToolResult], ToolResult]
LOOKS: dict[str, Look] = {
    "list": lambda harness, _: harness.call("list_workflows"),
    "inspect": lambda harness, _: harness.call("inspect_workflow", {"workflowId": "test.abc", "detail": "plan"}),
    "rehydrate of the tip": lambda harness, answer: harness.rehydrate(answer),
    "rehydrate with its label": lambda harness, answer: harness.rehydrate(answer, run=answer["run"]["label"]),
    "resume by words": lambda harness, _: harness.resume("abc"),
    "resume of everything": lambda harness, _: harness.resume(),
    "resume of an unknown run": lambda harness, _: harness.resume(runId="run_" + "0" * 26),
    "a token that does not verify": lambda harness, answer: harness.rehydrate(answer.state[:-1]),
    "a token of another kind": lambda harness, answer: harness.rehydrate(answer.ack),
    "an unknown workflow": lambda harness, _: harness.start("test.nope"),
    "an ack with a bad context": lambda harness, answer: harness.advance(answer, context={"__proto__": 1}),
    "an ack with the wrong label": lambda harness, answer: harness.advance(answer, run="zzzz"),
}
DOCUMENT = linear_workflow("test.abc", "a", "b", "c")


def tree(root: Path) -> dict[str, tuple[int, ...] | tuple[tuple[int, ...], bytes]]:
    """Return all that a write could change: names, bytes, sizes, modes, and every time but that of access."""
    found: dict[str, tuple[int, ...] | tuple[tuple[int, ...], bytes]] = {}
    for path in sorted([root, *root.rglob("*")]):
        stat = path.lstat()
        times = (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_mode, stat.st_ino, stat.st_size)
        found[path.relative_to(root).as_posix()] = (times, path.read_bytes()) if path.is_file() else times
    return found


@pytest.mark.inv("READ-1")
@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("is_known", [True, False], ids=["to the process that wrote it", "to a fresh process"])
def test_a_look_changes_nothing_in_the_data_directory(tmp_path: Path, look: str, *, is_known: bool) -> None:
    writer = Harness.on_disk(tmp_path, DOCUMENT)
    second = writer.advance(writer.start("test.abc", goal="G"), None, output={"artifacts": [{"kind": "k"}]})
    looker = writer if is_known else Harness.on_disk(tmp_path, DOCUMENT)
    before = tree(tmp_path)
    for _ in range(2):
        LOOKS[look](looker, second)
    assert tree(tmp_path) == before


@pytest.mark.inv("READ-1")
@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("is_there", [True, False], ids=["empty", "missing"])
def test_a_look_changes_nothing_where_there_is_nothing(tmp_path: Path, look: str, *, is_there: bool) -> None:
    first = Harness.on_disk(tmp_path / "elsewhere", DOCUMENT).start("test.abc")
    root = tmp_path / "data"
    if is_there:
        root.mkdir()
        before = tree(root)
        LOOKS[look](Harness.on_disk(root, DOCUMENT), first)
        assert tree(root) == before
    else:
        LOOKS[look](Harness.on_disk(root, DOCUMENT), first)
        assert not root.exists()


@pytest.mark.inv("READ-1", "ADV-5")
def test_a_replay_changes_nothing_either(tmp_path: Path) -> None:
    writer = Harness.on_disk(tmp_path, DOCUMENT)
    first = writer.start("test.abc")
    blocked = writer.advance(first, None)
    writer.advance(blocked)
    before = tree(tmp_path)
    for harness in (writer, Harness.on_disk(tmp_path, DOCUMENT)):
        harness.advance(first, None)
        harness.advance(blocked)
        harness.advance(blocked, "Something else.")
    assert tree(tmp_path) == before


READS = {name for name in dir(StoreReader) if not name.startswith("_")}
"""What the ports that read can do."""


@pytest.mark.inv("READ-1")
def test_what_reads_is_given_no_port_that_appends_or_makes_a_key() -> None:
    readers = (SessionReader, KeyRingReader, DefinitionReader)
    assert {name for port in readers for name in dir(port) if not name.startswith("_")} == READS
    writes = {"append", "hold", "restore", "cache_summary", "ensure_keys", "rotate", "publish"}
    assert writes <= {*dir(Store)}
    assert READS.isdisjoint(writes)
    ports = {name: port for name, port in get_type_hints(ReadPorts).items() if name in {"reader", "key_ring"}}
    assert ports == {"reader": SessionReader, "key_ring": KeyRingReader}
    rest = {"plans", "summaries", "trace", "anchors", "anchors_again", "tree", "token_format", "since_s", "progress"}
    assert {field.name for field in fields(ReadPorts)} == {*ports, *rest}


class OnlyReads:
    """A store of which only the ports that read can be reached."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> object:
        assert name in READS, f"a use case that reads asked for {name}"
        return getattr(self._store, name)


@pytest.mark.inv("READ-1")
@pytest.mark.parametrize("look", LOOKS)
def test_a_store_that_can_do_nothing_but_read_gives_the_same_answers(tmp_path: Path, look: str) -> None:
    whole = Harness.on_disk(tmp_path, DOCUMENT)
    second = whole.advance(whole.start("test.abc", goal="G"))
    reads = cast("StoreReader", OnlyReads(whole.store))
    read = ReadPorts.over(reads, reads)
    limited = replace(whole, ports=replace(whole.ports, read=read))
    assert LOOKS[look](limited, second) == LOOKS[look](whole, second)


@pytest.mark.inv("READ-1", "HOUSE-4")
@pytest.mark.skipif(not hasattr(os, "getuid"), reason="modes are POSIX")
def test_what_is_written_is_private_to_the_user_and_has_no_colon_in_its_name(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path / "data", DOCUMENT)
    harness.advance(harness.start("test.abc"), None, output={"artifacts": [{"kind": "k"}]})
    for path in [tmp_path / "data", *(tmp_path / "data").rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path
        assert ":" not in path.name
    found = {path.relative_to(tmp_path / "data").parts[0] for path in (tmp_path / "data").rglob("*")}
    assert found == {"sessions", "snapshots", "workflows", "artifacts", "keys", "config", "trash"}


@pytest.mark.inv("HOUSE-4", "TOK-7")
def test_a_copied_data_directory_works_elsewhere_and_holds_no_path_of_its_own(tmp_path: Path) -> None:
    import shutil  # noqa: PLC0415 — this one test

    writer = Harness.on_disk(tmp_path / "here", DOCUMENT)
    second = writer.advance(writer.start("test.abc"))
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    shutil.rmtree(tmp_path / "here")
    assert Harness.on_disk(tmp_path / "there", DOCUMENT).advance(second)["pending"]["stepId"] == "c"
    for path in (tmp_path / "there").rglob("*"):
        assert not path.is_file() or str(tmp_path).encode() not in path.read_bytes()


@pytest.mark.inv("READ-1")
def test_looking_at_a_session_whose_directory_is_empty_is_lost_history_and_makes_nothing(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path, DOCUMENT)
    first = harness.start("test.abc")
    directory = tmp_path / "sessions" / harness.session_of(first)
    (directory / "manifest.jsonl").unlink()
    (directory / "settled").unlink()
    (directory / "cache" / "summary").unlink()
    before = tree(tmp_path)
    fresh = Harness.on_disk(tmp_path, DOCUMENT)
    assert fresh.rehydrate(first).code is ErrorCode.TOKEN_UNKNOWN_NODE
    assert tree(tmp_path) == before
