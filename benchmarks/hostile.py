"""Hostile inputs, each to a fresh process: the time above a harmless input to the same process, and the peak memory.

The figures include the processor time: on a machine that others use, it says more than the clock.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.load import Site

from benchmarks.spent import Spent, run_measured
from benchmarks.table import Figure
from benchmarks.wire import Wire, temporary_site

SECONDS_MAX = 1.0
PEAK_MIB_MAX = 200.0
MB = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An input, how it is put into its place, and what the answer says of it."""

    what: str
    put: Callable[[Path], None]
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """What reads inputs from one place, the harmless input to it, and the hostile ones."""

    what: str
    place: str
    run: Callable[[Site, Path], Spent]
    harmless: Case
    hostile: tuple[Case, ...] = field(repr=False)


def figures(*, is_quick: bool) -> list[Figure]:
    """Give every input to fresh processes, by turns with the harmless one of its kind; the least of each counts."""
    rounds = 2 if is_quick else 5
    return [figure for reader in _READERS for figure in _figures(reader, rounds)]


def _figures(reader: Reader, rounds: int) -> Iterator[Figure]:
    _spent(reader, reader.harmless)  # The first writes the byte code that the others find.
    for case in reader.hostile:
        pairs = [(_spent(reader, reader.harmless), _spent(reader, case)) for _ in range(rounds)]
        idle, found = (min((pair[side] for pair in pairs), key=lambda one: one.seconds) for side in (0, 1))
        above, cpu = found.seconds - idle.seconds, found.cpu_seconds - idle.cpu_seconds
        peak = max(pair[1].peak_mib for pair in pairs)
        yield Figure(
            what=f"{reader.what}: {case.what}",
            found=f"{above:+.2f} s, {peak:.0f} MiB (idle {idle.seconds:.2f} s, {idle.peak_mib:.0f} MiB;"
            f" processor {cpu:+.2f} s)",
            budget=f"<= {SECONDS_MAX:g} s, {PEAK_MIB_MAX:g} MiB",
            holds=above <= SECONDS_MAX and peak <= PEAK_MIB_MAX,
        )


def _spent(reader: Reader, case: Case) -> Spent:
    with temporary_site() as site:
        path = site.root / reader.place
        path.parent.mkdir(parents=True, exist_ok=True)
        case.put(path)
        spent = reader.run(site, path)
        assert case.says in spent.said, f"{reader.what}, {case.what}: {spent.said[:400]}"
        assert not [*site.data_dir.glob("sessions/*")], "a refused input stores no session"
        return spent


def _command(*arguments: str) -> Callable[[Site, Path], Spent]:
    def run(site: Site, path: Path) -> Spent:
        filled = [str(path) if one == "FILE" else one for one in arguments]
        command = [sys.executable, "-m", "interlock", *filled, "--data-dir", str(site.data_dir)]
        return run_measured(command, directory=site.root, extra=site.environment(), fails_at=128)

    return run


def _line(site: Site, path: Path) -> Spent:
    """Send a file's bytes as one line to a server that was greeted."""
    with Wire(site.command(), era="2025-11-25", extra=site.environment()) as wire:
        wire.hello()
        with path.open("rb") as stream:
            wire.send_bytes(iter(lambda: stream.read(64 * 1024), b""))
        answer = wire.receive_line()
        seconds = time.perf_counter() - wire.begun
        peak, cpu = wire.memory_kib("VmHWM") / 1024, wire.cpu_seconds()
        return Spent(seconds=seconds, cpu_seconds=cpu, peak_mib=peak, said=answer.decode())


def _listing(site: Site, _: Path) -> Spent:
    """Ask a fresh server for its workflows, of which the file is one."""
    line = site.root / "line"
    _call("list_workflows", b"{}")(line)
    return _line(site, line)


def _written(*parts: bytes) -> Callable[[Path], None]:
    def put(path: Path) -> None:
        with path.open("wb") as stream:
            stream.writelines(parts)

    return put


def _filled(begin: bytes, unit: bytes, end: bytes, size: int) -> Callable[[Path], None]:
    return _written(begin, *[unit * 1_000] * (size // len(unit) // 1_000), end)


def _call(tool: str, *arguments: bytes) -> Callable[[Path], None]:
    return _written(*_around(tool, *arguments))


def _around(tool: str, *arguments: bytes) -> tuple[bytes, ...]:
    begin = b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"%s","arguments":' % tool.encode()
    return (begin, *arguments, b'},"id":77}\n')


def _started(begin: bytes, unit: bytes, end: bytes, size: int) -> Callable[[Path], None]:
    before, after = _around("start_workflow", b"")[::2]
    head = before + b'{"workflowId":"wr.none","goal":"x","context":'
    return _filled(head + begin, unit, end + b"}" + after, size)


def _with_patterns(*patterns: str) -> Callable[[Path], None]:
    rules = [{"type": "regex", "pattern": pattern} for pattern in patterns]
    step = {"id": "a", "title": "A", "prompt": "Do a.", "validationCriteria": {"and": rules}}
    value = {"id": "bench.patterns", "name": "Patterns", "steps": [step]}
    return _written(json.dumps(value).encode())


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


_WITHIN = [rf"\p{{L}}{{1,{times}}}x" for times in range(40, 66)]
_READERS = (
    Reader(
        what="import",
        place="bundle.json",
        run=_command("session", "import", "FILE"),
        harmless=Case(what="", put=_written(b"{}"), says="BUNDLE_INVALID_FORMAT"),
        hostile=(
            Case(what="57 MB of []", put=_filled(b"[", b"[],", b"[]]", 57 * MB), says="BUNDLE_INVALID_FORMAT"),
            Case(what="57 MB of [] in an object", put=_filled(b'{"a":[', b"[],", b"[]]}", 57 * MB), says="values"),
            Case(what="57 MB of brackets", put=_filled(b'{"a":', b"[", b"", 57 * MB), says="nested deeper"),
            Case(what="57 MB of quotes", put=_filled(b'{"a":', b'"', b"", 57 * MB), says="values"),
            Case(
                what="2 million values", put=_filled(b'{"a":[', b"[],", b"[]]}", 2_990_000), says="no list of entries"
            ),
            Case(what="a pipe", put=_pipe, says="Not a regular file"),
            Case(what="an endless device", put=_endless, says="Not a regular file"),
        ),
    ),
    Reader(
        what="config check",
        place="data/config.toml",
        run=_command("config", "check"),
        harmless=Case(what="", put=_written(b""), says="no faults"),
        hostile=(
            Case(what="60,000 digits", put=_filled(b"x = ", b"1", b"\n", 60_000), says="60000 characters"),
            Case(what="a key of 30,000 parts", put=_filled(b"", b"a.", b"a = 1\n", 60_000), says="16 parts"),
            Case(what="60,000 brackets", put=_filled(b"x = ", b"[", b"\n", 60_000), says="16 levels"),
            Case(what="a pipe", put=_pipe, says="Not a regular file"),
        ),
    ),
    Reader(
        what="serve",
        place="data/config.toml",
        run=_command("serve"),
        harmless=Case(what="", put=_written(b"x = 1\n"), says="not known"),
        hostile=(
            Case(what="60,000 digits", put=_filled(b"x = ", b"1", b"\n", 60_000), says="60000 characters"),
            Case(what="a key of 30,000 parts", put=_filled(b"", b"a.", b"a = 1\n", 60_000), says="16 parts"),
            Case(what="an endless device", put=_endless, says="Not a regular file"),
        ),
    ),
    Reader(
        what="call",
        place="call",
        run=_line,
        harmless=Case(what="", put=_call("start_workflow", b'{"workflowId":"wr.none"}'), says="WORKFLOW_NOT_FOUND"),
        hostile=(
            Case(what="15 MB of []", put=_started(b'{"a":[', b"[],", b"[]]}", 15 * MB), says='"id":77,"error"'),
            Case(
                what="15 MB of objects", put=_started(b'{"a":[', b'{"a":0},', b"0]}", 15 * MB), says='"id":77,"error"'
            ),
            Case(
                what="15 MB of [] as text",
                put=_started(b'"{\\"a\\":[', b"[],", b'[]]}"', 15 * MB),
                says="string of JSON",
            ),
            Case(what="15 MB of brackets", put=_started(b"", b"[", b"", 15 * MB), says='"id":77,"error"'),
            Case(what="15 MB of digits", put=_started(b"", b"9", b"", 15 * MB), says='"id":77,"error"'),
            Case(what="15 MB of long numbers", put=_started(b"[", b"9" * 4_000 + b",", b"1]", 15 * MB), says='"id":77'),
            Case(
                what="half a million values in objects",
                put=_started(b'{"a":[', b'{"a":0},', b"0]}", 1_990_000),
                says='"id":77,"result"',
            ),
            Case(
                what="half a million values as texts",
                put=_started(b'{"a":[', b'"ab",', b"0]}", 2_490_000),
                says='"id":77,"result"',
            ),
        ),
    ),
    Reader(
        what="first listing",
        place=".interlock/workflows/hostile.json",
        run=_listing,
        harmless=Case(what="", put=_with_patterns("^done$"), says="bench.patterns"),
        hostile=(
            Case(what="400 large patterns", put=_with_patterns(*[r"[\p{L}\p{N}]{1,900}"] * 400), says="compiles to"),
            Case(what="many patterns of the largest size", put=_with_patterns(*_WITHIN), says="patterns of the file"),
            Case(what="1 MB of []", put=_filled(b'{"a":[', b"[],", b"[]]}", 999_000), says="100000 values"),
            Case(what="an endless device", put=_endless, says="wr."),
        ),
    ),
    Reader(
        what="first listing",
        place=".interlock/workflows/hostile.yaml",
        run=_listing,
        harmless=Case(what="", put=_written(b"id: bench.one\nname: One\nsteps: []\n"), says="bench.one"),
        hostile=(
            Case(what="500 kB of [] in YAML", put=_filled(b"a: [", b"[],", b"]", 499_000), says="100000 values"),
            Case(what="500 kB of one-letter keys", put=_filled(b"", b"a: 1\n", b"", 499_000), says="values"),
        ),
    ),
)
