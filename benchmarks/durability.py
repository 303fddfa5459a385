"""What one advance asks of the disk: rounds of syncs, bytes, and the size of its snapshot. Counted, not timed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.support.load import Heard, Sent, Site, linear_workflow

from benchmarks.table import Figure, at_most, noted
from benchmarks.wire import start, temporary_site
from interlock.engine.answer.model import Answer
from interlock.engine.gates import NO_APPROVAL
from interlock.kernel.errors import Refusal
from interlock.server.arguments.parse import parse_arguments
from interlock.server.calls import run_call
from interlock.server.tools import tool_named
from interlock.server.tools.contract import Caller
from interlock.service.ports import Ports, ReadPorts
from interlock.service.workflows.catalog import Catalog
from interlock.store.local.files import OpenedFile, OsFiles
from interlock.store.local.store import LocalStore
from interlock.store.workflow_files import LocalWorkflowFiles

ROUNDS_MAX = 2
GROWTH_MAX = 1.1
"""Flat: the indexes in the records grow by a digit or two, nothing else does."""
SHORT, LONG = "bench.short", "bench.long"

SyncKind = Literal["file", "directory"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one call did."""

    syncs: tuple[SyncKind, ...]
    rounds: int
    """How many times it waits: syncs with no write between them are one round."""
    bytes_written: int
    snapshot_bytes: int


class CountingFiles(OsFiles):
    """The real disk, with what was asked of it since the last look. Its syncs are counted and not made."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._syncs: list[SyncKind] = []
        self._rounds: set[int] = set()
        self._writes = 0
        self._written: dict[str, int] = {}
        self._snapshot = 0

    def taken(self) -> Cost:
        """Return the cost since the last look, and begin anew."""
        cost = Cost(
            syncs=tuple(self._syncs),
            rounds=len(self._rounds),
            bytes_written=sum(self._written.values()),
            snapshot_bytes=self._snapshot,
        )
        self._syncs, self._rounds, self._written = [], set(), {}
        return cost

    def read(self, path: str, offset: int = 0, bytes_max: int | None = None) -> bytes:
        """See `FileOps.read`. A snapshot that is stored already is read, to be verified, instead of written."""
        data = super().read(path, offset, bytes_max)
        self._note_snapshot(path, data)
        return data

    def create(self, path: str, data: bytes) -> OpenedFile:
        """See `FileOps.create`."""
        self._writes += 1
        self._written[path] = len(data)
        self._note_snapshot(path, data)
        return super().create(path, data)

    def append(self, path: str, data: bytes) -> OpenedFile:
        """See `FileOps.append`."""
        self._writes += 1
        self._written[path] = len(data)
        return super().append(path, data)

    def rename(self, source: str, target: str) -> None:
        """See `FileOps.rename`."""
        self._writes += 1
        super().rename(source, target)

    def sync(self, path: str, *, full: bool = False, opened: OpenedFile | None = None) -> None:  # noqa: ARG002
        """See `FileOps.sync`."""
        self._note_sync("file")

    def sync_dir(self, path: str, *, full: bool = False) -> None:  # noqa: ARG002 — the seam's signature
        """See `FileOps.sync_dir`."""
        self._note_sync("directory")

    def _note_sync(self, kind: SyncKind) -> None:
        self._syncs.append(kind)
        self._rounds.add(self._writes)

    def _note_snapshot(self, path: str, data: bytes) -> None:
        if path.startswith("snapshots/"):
            self._snapshot = len(data)


class Bench:
    """The use cases over one data directory in this process, without a server."""

    def __init__(self, site: Site) -> None:
        self.files = CountingFiles(site.data_dir)
        store = LocalStore(site.data_dir, files=self.files)
        self._caller = Caller(workspace=site.root, asking=NO_APPROVAL)
        self._ports = Ports(
            read=ReadPorts.over(store, store),
            key_ring=store,
            writer=store,
            catalog=Catalog(LocalWorkflowFiles(core_dirs=(site.root / "none",), user_dir=None)),
        )

    def call(self, call: Sent) -> Heard:
        """Run one call that starts or continues a run."""
        tool = tool_named(call.tool)
        assert tool is not None, "it is one of ours"
        arguments = parse_arguments(tool, call.arguments, self._caller)
        assert not isinstance(arguments, Refusal), f"a lawful call has lawful arguments: {arguments}"
        answer = run_call(self._ports, arguments.call(self._caller))
        assert isinstance(answer, Answer), f"a lawful call is answered: {answer}"
        return Heard(call=call, structure=answer.structure, text=answer.text)

    def costs(self, workflow_id: str, steps: int) -> list[Cost]:
        """Return what each of so many advances in one new session costs."""
        answer = self.call(start(workflow_id))
        run = answer.structure["run"]
        assert isinstance(run, dict), "an answer names its run"
        costs: list[Cost] = []
        while len(costs) < steps:
            call = answer.next_call() or start(workflow_id, str(run["sessionId"]))
            self.files.taken()
            answer = self.call(call)
            if call.tool == "continue_workflow":
                costs.append(self.files.taken())
        return costs


def figures(*, is_quick: bool) -> list[Figure]:
    """Count over both shapes of history."""
    steps = 200 if is_quick else 1_000
    with temporary_site() as site:
        site.add_workflow(linear_workflow(SHORT, 10))
        site.add_workflow(linear_workflow(LONG, steps + 1))
        bench = Bench(site)
        short, long = bench.costs(SHORT, steps), bench.costs(LONG, steps)
    most = max([*short, *long], key=lambda cost: (cost.rounds, len(cost.syncs)))
    return [
        at_most("fsync rounds in sequence per advance", most.rounds, ROUNDS_MAX),
        noted("fsync calls per advance, made one after another", f"{len(most.syncs)}: {', '.join(most.syncs)}"),
        *_sizes(short, "one session, runs of 10 steps"),
        *_sizes(long, f"one linear run of {steps} steps; a snapshot is bounded by its plan (SNAP-5)", is_flat=False),
    ]


def _sizes(costs: list[Cost], shape: str, *, is_flat: bool = True) -> list[Figure]:
    """Compare the runs at the beginning with those at the end."""
    found: list[Figure] = []
    for what, sizes in (
        ("snapshot bytes", [cost.snapshot_bytes for cost in costs]),
        ("bytes written per advance", [cost.bytes_written for cost in costs]),
    ):
        young, old = sum(sizes[5:15]) / 10, sum(sizes[-10:]) / 10
        beside = f"{young:.0f} at 10, {old:.0f} at {len(costs)}"
        if is_flat:
            found.append(at_most(f"{what}, last / first, {shape}", old / young, GROWTH_MAX, beside=beside))
        else:
            found.append(noted(f"{what}, {shape}", beside))
    return found
