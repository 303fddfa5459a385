"""The independent reader finds what was altered, and agrees with the store about everything that was not."""

import ast
import random
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest
from tests.lab.independent_reader import Files, files_of, read_data_dir, read_session
from tests.support.bundles import DOCUMENT, a_session

from interlock.kernel.ids import SessionId
from interlock.record.content import collect_references
from interlock.store.local.store import LocalStore
from interlock.store.ports.errors import ContentDamagedError, SessionUnhealthyError
from interlock.testing.harness import Harness
from interlock.testing.power_cut import CrashDisk, File, ThreadLocks

GOLDEN = Path(__file__).parent.parent / "golden" / "data-dir-1"
NOWHERE = Path("/nowhere")


@cache
def recorded() -> tuple[dict[str, bytes], SessionId]:
    """Return the files of a data directory with a bit of everything, and the session in it."""
    disk = CrashDisk()
    harness = Harness.over(LocalStore(NOWHERE, files=disk, locks=ThreadLocks()), DOCUMENT)
    session = a_session(harness)
    files = {path: disk.files[number].data for path, number in disk.names_now.items() if not disk.files[number].is_dir}
    return {path: data for path, data in files.items() if "/cache/" not in path and "settled" not in path}, session


def damaged(path: str, data: bytes | None) -> dict[str, bytes]:
    """Return the files with one of them altered, or gone."""
    files, _ = recorded()
    rest = {name: bytes_ for name, bytes_ in files.items() if name != path}
    return rest if data is None else rest | {path: data}


def store_over(files: Files) -> LocalStore:
    """Return Interlock's own store over the same files."""
    disk = CrashDisk()
    for path, data in files.items():
        parts = path.split("/")
        for depth in range(1, len(parts)):
            disk.make_dir("/".join(parts[:depth]))
        disk.write(path, data)
        disk.files[disk.names_now[path]] = File(data=data, durable=data)
    return LocalStore(NOWHERE, files=disk, locks=ThreadLocks())


def store_accepts(files: Files) -> int | None:
    """Return how many events Interlock's own store reads; None if it refuses the session."""
    _, session = recorded()
    store = store_over(files)
    try:
        events = [event for events in store.history(session) for event in events]
        named = collect_references(events)
        for snapshot in named.snapshots:
            store.snapshot(snapshot)
        for workflow in named.workflows:
            store.workflow_bytes(workflow)
        for artifact in named.artifacts:
            store.artifact(artifact)
    except (SessionUnhealthyError, ContentDamagedError):
        return None
    return len(events)


def positions(data: bytes, seed: str) -> list[int]:
    """Return where a file is altered: both ends, around each newline, and a sample of the rest."""
    ends = {at + by for at, byte in enumerate(data) if byte == ord("\n") for by in (-1, 0, 1)}
    sample = random.Random(seed).sample(range(len(data)), min(len(data), 60))
    return sorted(at for at in {0, 1, len(data) - 1, *ends, *sample} if 0 <= at < len(data))


def test_it_imports_nothing_of_interlock() -> None:
    tree = ast.parse(Path(__file__).with_name("independent_reader.py").read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {name for name in imported if name.split(".")[0] in {"interlock", "tests"}}


def test_it_reads_the_golden_data_directory_as_the_store_does() -> None:
    reading = read_data_dir(files_of(GOLDEN))
    assert reading.flaws == []
    store = LocalStore(GOLDEN)
    assert sorted(reading.sessions) == sorted(store.sessions())
    for name, found in reading.sessions.items():
        history = store.history(SessionId(name))
        assert [event.to_json() for events in history for event in events] == list(found.events)
    assert len(reading.keys) == 2


def test_it_reads_a_recorded_session_as_the_store_does() -> None:
    files, session = recorded()
    reading = read_data_dir(files)
    assert reading.flaws == []
    found, loaded = reading.sessions[session], store_over(files).load(session)
    assert loaded is not None
    assert set(found.nodes) == set(loaded.nodes)
    assert set(found.runs) == set(loaded.runs)
    assert len(found.advances) == len(set(found.advances)) == len(list(loaded.advances))


FILES = sorted(recorded()[0])
ATTESTED = [path for path in FILES if path.split("/")[0] in {"sessions", "snapshots", "workflows", "artifacts", "keys"}]


@pytest.mark.parametrize("path", [path for path in ATTESTED if not path.endswith(".lock")])
def test_it_finds_a_flipped_byte_in_any_file(path: str) -> None:
    data = recorded()[0][path]
    for at in positions(data, path):
        flipped = damaged(path, data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :])
        assert read_data_dir(flipped).flaws, f"{path}, byte {at}"


@pytest.mark.parametrize("path", [path for path in ATTESTED if not path.endswith("manifest.jsonl")])
def test_it_finds_a_file_that_is_cut_or_gone(path: str) -> None:
    data = recorded()[0][path]
    for size in positions(data, path):
        assert read_data_dir(damaged(path, data[:size])).flaws, f"{path}, cut to {size}"
    # A data directory without a ring is lawful: it is made with the first token.
    assert read_data_dir(damaged(path, None)).flaws or path == "keys/keyring.json"


def test_a_cut_manifest_is_a_shorter_history_without_the_torn_group() -> None:
    _, session = recorded()
    path = f"sessions/{session}/manifest.jsonl"
    data, whole = recorded()[0][path], read_data_dir(recorded()[0]).sessions[session]
    lengths = list[int]()
    for size in range(0, len(data), 3):
        found = read_session(damaged(path, data[:size]), session)
        assert found.damage is None
        assert found.groups == whole.groups[: len(found.groups)]
        assert found.torn_bytes == size - sum(len(group.data) for group in found.groups)
        lengths.append(len(found.groups))
    assert set(lengths) == set(range(len(whole.groups)))


def test_a_torn_group_may_end_in_nuls_but_not_in_a_single_one() -> None:
    _, session = recorded()
    path = f"sessions/{session}/manifest.jsonl"
    data, whole = recorded()[0][path], read_data_dir(recorded()[0]).sessions[session]
    for cut in range(len(data) - len(whole.groups[-1].data), len(data) - 1, 5):
        found = read_session(damaged(path, data[:cut].ljust(len(data), b"\0")), session)
        assert found.damage is None
        assert len(found.groups) == len(whole.groups) - 1
    assert read_session(damaged(path, data[:-1] + b"\0"), session).damage is not None
    assert read_session(damaged(path, data + b"\0\0"), session).damage is not None


def mutations(data: bytes, chance: random.Random) -> Iterator[bytes]:
    """Yield a file with lines or stretches repeated, swapped, removed, overwritten or cut."""
    lines = data.splitlines(keepends=True)
    for _ in range(5):
        start = chance.randrange(len(data))
        end = min(len(data), start + chance.randrange(1, 90))
        one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        swapped = list(lines)
        swapped[one], swapped[other] = swapped[other], swapped[one]
        yield data[:start]
        yield data[:start] + data[end:]
        yield data[:end] + data[start:end] + data[end:]
        yield data[:start] + bytes(end - start) + data[end:]
        yield data[:start] + chance.randbytes(end - start) + data[end:]
        yield b"".join(swapped)
        yield b"".join([*lines[: one + 1], lines[one], *lines[one + 1 :]])
        yield b"".join([*lines[:one], *lines[one + 1 :]])


@pytest.mark.inv("CRASH-7", "SAL-1")
@pytest.mark.parametrize("path", [path for path in FILES if path.split("/")[0] not in {"keys", "config"}])
def test_it_and_the_store_accept_the_same_files_and_read_as_much_of_them(path: str) -> None:
    if path.endswith(".lock"):
        return
    data = recorded()[0][path]
    for number, mutated in enumerate(mutations(data, random.Random(path))):
        files = damaged(path, mutated)
        found = read_session(files, recorded()[1])
        assert (len(found.events) if found.damage is None else None) == store_accepts(files), f"{path}, {number}"


def mark(boot: str, manifest_bytes: int) -> bytes:
    fields = f"2 {sha256(boot.encode()).hexdigest()[:16]} {manifest_bytes:020d}"
    return f"{fields} {sha256(f'{recorded()[1]} {fields}'.encode()).hexdigest()[:32]}\n".encode()


def test_whole_groups_beyond_the_settled_mark_of_this_boot_are_not_there_yet() -> None:
    _, session = recorded()
    data, path = recorded()[0][f"sessions/{session}/manifest.jsonl"], f"sessions/{session}/settled"
    whole = read_session(recorded()[0] | {path: b""}, session)
    before = mark("this boot", len(data) - len(whole.groups[-1].data))
    unsettled = read_session(damaged(path, before), session, boot="this boot")
    assert (unsettled.groups, unsettled.unsettled) == (whole.groups[:-1], whole.groups[-1:])
    unreadable = read_session(damaged(path, before[:-9]), session, boot="this boot")
    assert (unreadable.groups, unreadable.unsettled) == (whole.groups[:-1], whole.groups[-1:])
    nothing = read_session(damaged(path, mark("this boot", 0)), session, boot="this boot")
    assert (nothing.groups, nothing.unsettled) == ([], whole.groups)
    for other in (mark("this boot", len(data)), b"", bytes(len(before)), mark("that boot", len(data) - 1)):
        assert read_session(damaged(path, other), session, boot="this boot").groups == whole.groups
    assert read_session(damaged(path, before), session, boot="the next boot").groups == whole.groups


def test_a_manifest_shorter_than_its_settled_mark_is_damage() -> None:
    _, session = recorded()
    name = f"sessions/{session}/manifest.jsonl"
    data = recorded()[0][name]
    files = damaged(name, data[:-1]) | {f"sessions/{session}/settled": mark("any boot", len(data))}
    assert read_session(files, session).damage is not None
