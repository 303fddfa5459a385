"""The commands that write, each with any failing file operation: what they say, and what the disk holds then."""

import contextlib
import errno
import fcntl
import io
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pytest
from tests.lab.faulty_files import LOOKS
from tests.lab.independent_reader import ReadSession, read_data_dir
from tests.support.approvals import ASK
from tests.support.flow import step
from tests.support.outside import AWAIT, STATUS, HeldOutbox, into_file
from tests.support.q3_launch import all_definitions

from interlock.cli.main import main
from interlock.define.operations.files import to_file_json
from interlock.store.local import locks
from interlock.store.local.files import OsFiles
from interlock.testing.harness import Harness, linear_workflow

When: TypeAlias = Literal["before", "after"]
OPERATIONS = [name for name in vars(OsFiles) if not name.startswith("_") and name not in {"is_link", "boot_id"}]
SYNCS = frozenset({"sync", "sync_dir"})
NOT_COUNTED = re.compile(
    r"sessions/[^/]+/(\.lock|settled|cache/.*)|.*\.tmp|.*/\.lock|live/.*|config\.toml|(snapshots|artifacts|workflows)/.*"
    r"|sessions/.*|keys/.*|config/keep\.json"
)
OLD_S = 1_700_000_000
"""When everything was written that a collection finds."""
"""Files that state nothing by themselves; sessions, keys and pins are read by the independent reader."""
NOTHING = re.compile(r"nothing (was|is|has been) \w+|(was|were) not (recorded|deleted|imported|changed)", re.IGNORECASE)
SOMETHING = re.compile(r"(is|was) (recorded|in the trash)|the channel says|this run ended early|^\\{", re.IGNORECASE)
PERHAPS = re.compile(r"\bmay (be|have)\b|it is not known|did not confirm it", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class State:
    """What a data directory states: the appends of each session, the trash, the keys, the pins, and other files."""

    appends: dict[str, list[str]]
    trash: frozenset[str]
    keys: tuple[bytes, ...]
    kept: tuple[str, ...]
    others: dict[str, bytes]

    def since(self, before: "State") -> Counter[str]:
        """Return what was added, and what is gone, without ids that differ from call to call."""
        found: Counter[str] = Counter()
        for name, appends in self.appends.items():
            known = before.appends.get(name)
            where = "a new session" if known is None else name
            found.update(f"{where}: {kinds}" for kinds in appends[len(known or ()) :])
        found.update(f"gone: {name}" for name in before.appends if name not in self.appends)
        found.update(f"in the trash: {name}" for name in self.trash - before.trash)
        found.update(["other keys"] if self.keys != before.keys else [])
        found.update(f"pin: {name}" for name in set(self.kept) ^ set(before.kept))
        changed = {name for name in {*self.others, *before.others} if self.others.get(name) != before.others.get(name)}
        found.update(f"file: {name}" for name in changed)
        return found


def state_of(root: Path) -> State:
    """Read what a data directory states, with the groups that nobody settled."""
    files = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    reading = read_data_dir({name: data for name, data in files.items() if not name.startswith("trash/")})

    def appends(session: ReadSession) -> list[str]:
        return [" ".join(event["kind"] for event in group.events) for group in (*session.groups, *session.unsettled)]

    return State(
        appends={name: appends(one) for name, one in reading.sessions.items()},
        trash=frozenset(name.split("/")[1] for name in files if name.startswith("trash/")),
        keys=reading.keys,
        kept=tuple(sorted(reading.kept)),
        others={
            name: data
            for name, data in files.items()
            if not NOT_COUNTED.fullmatch(name) and not name.startswith("trash/")
        },
    )


@dataclass(frozen=True, kw_only=True)
class Fault:
    """The operation of this number fails, before or after its effect; with `is_lasting` each later one that writes."""

    at: int
    when: When = "before"
    is_lasting: bool = False

    def __str__(self) -> str:
        return f"{self.at}, {self.when} its effect, {'and all later' if self.is_lasting else 'once'}"


@dataclass
class Operations:
    """Every operation on files of this process, counted; with a fault, some of them fail."""

    fault: Fault | None = None
    made: list[str] = field(default_factory=list[str])
    meanwhile: tuple[int, Callable[[], object]] | None = None
    """What another process does before the operation of a number."""

    def run(self, name: str, operation: Callable[..., Any], files: OsFiles, arguments: Any, options: Any) -> Any:
        number, fault = len(self.made), self.fault
        if self.meanwhile is not None and self.meanwhile[0] == number:
            # Only this process lets another one work: not that one again, which is its copy.
            (_, act), self.meanwhile = self.meanwhile, None
            act()
        paths = [one for one in arguments if isinstance(one, str)]
        self.made.append(f"{name} {paths[-1] if paths else ''}")
        is_hit = fault is not None and (
            number == fault.at or (fault.is_lasting and number > fault.at and name not in LOOKS)
        )
        if name in SYNCS and not is_hit:
            return None  # nothing here depends on what a power loss leaves, and a sync costs the most
        if not is_hit or fault is None:
            return operation(files, *arguments, **options)
        if fault.when == "after" and number == fault.at:
            with contextlib.suppress(FileExistsError):
                operation(files, *arguments, **options)
        raise OSError(errno.EIO, "made to fail")


@contextmanager
def operations(
    monkeypatch: pytest.MonkeyPatch,
    fault: Fault | None = None,
    meanwhile: tuple[int, Callable[[], object]] | None = None,
) -> Generator[Operations]:
    """Count the operations on files within; some of them fail, and before one something else happens."""
    found = Operations(fault, meanwhile=meanwhile)

    def counted(name: str, operation: Callable[..., Any]) -> Callable[..., Any]:
        def run(files: OsFiles, *arguments: Any, **options: Any) -> Any:
            return found.run(name, operation, files, arguments, options)

        return run

    with monkeypatch.context() as patched:
        for name in OPERATIONS:
            patched.setattr(OsFiles, name, counted(name, getattr(OsFiles, name)))
        yield found


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return f"{self.out} {self.err}"

    @property
    def says_nothing(self) -> bool:
        return NOTHING.search(self.text) is not None

    @property
    def says_perhaps(self) -> bool:
        return PERHAPS.search(self.text) is not None


def run_command(root: Path, words: tuple[str, ...]) -> Said:
    """Run a command over a data directory in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*words, "--data-dir", str(root)] if "--" not in words else [*before_command(words, root)])
    return Said(code=code, out=out.getvalue(), err=err.getvalue())


def before_command(words: tuple[str, ...], root: Path) -> Iterator[str]:
    """Yield the words with the data directory before all that names a command to run."""
    yield from (words[0], "--data-dir", str(root), *words[1:])


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A data directory with something for each command, and the words of the commands by name."""

    root: Path
    commands: dict[str, tuple[str, ...]]
    sessions: dict[str, str]
    """The session that each command is about."""
    broken: Path
    """The file whose damage only `session repair` meets: it ends other commands."""

    def session_of(self, name: str) -> str:
        """Return the session that a command is about."""
        return self.sessions[name]

    def copied(self, name: str) -> Path:
        """Return a copy for one command. What `gc` finds is old."""
        to = self.root.parent / "copy"
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(self.root, to)
        if name == "repair":
            segment = to / self.broken
            segment.write_bytes(segment.read_bytes()[:-20])
        if name == "contract publish":
            shutil.rmtree(to / "definitions")
        if name == "gc":
            for path in to.rglob("*"):
                os.utime(path, (OLD_S, OLD_S))
        return to


def staged(place: Path) -> Stage:
    """Make the stage. The current directory is its project."""
    root = place / "data"
    root.mkdir()
    channel = into_file(place / "out.jsonl")
    (root / "config.toml").write_text(
        f'[channels.log]\nkind = "file"\naccepts = ["team.notify"]\nsources = ["project"]\npath = "{channel.path}"\n'
    )
    operations_dir = place / ".interlock" / "operations"
    operations_dir.mkdir(parents=True)
    for one in all_definitions():
        (operations_dir / f"{one.id}.json").write_text(json.dumps(to_file_json(one)), encoding="utf-8")
    emit = [{"kind": "team.notify", "fields": {"text": {"value": "Built"}}}]
    asks = {**linear_workflow("team.ask", "a", {**ASK, "assurance": "claimed"}, "b")}
    waits = linear_workflow(
        "team.wait", {**step("a"), "emit": emit}, {**AWAIT, "assurance": "claimed"}, "b", inputs=[STATUS]
    )
    plain = linear_workflow("team.plain", "a", "b")
    served = Harness.on_disk(root, asks, waits, plain)
    harness = replace(served, ports=replace(served.ports, outbox=HeldOutbox(channels=(channel,))))
    asked, waiting, kept, old, secret, broken = (
        harness.start(one, goal=f"Goal {at}")
        for at, one in enumerate(("team.ask", "team.wait", "team.plain", "team.plain", "team.plain", "team.plain"))
    )
    for one in (asked, waiting, kept, old, secret, broken):
        harness.advance(one, "Did it with hunter2-secret.")
    session = harness.session_of
    loaded = harness.store.load(session(waiting))
    assert loaded is not None
    [intent] = loaded.outside.intents
    run_command(root, ("session", "keep", session(kept)))
    started = json.loads(run_command(root, ("contract", "start", "Q3 Product Launch", "--json")).out)["session"]
    bundle = place / "bundle.json"
    run_command(root, ("session", "export", session(secret), "--out", str(bundle)))
    [*_, segment] = sorted((root / "sessions" / session(broken) / "events").iterdir())
    label, waits_at = asked["run"]["label"], waiting["run"]["label"]
    about = {
        "approve": asked,
        "reject": asked,
        "cancel": asked,
        "fail": asked,
        "event send": waiting,
        "witness": waiting,
        "intent deliver": waiting,
        "intent abandon": waiting,
        "delete": old,
        "keep": old,
        "gc": old,
        "unkeep": kept,
        "redact": secret,
        "import": secret,
        "repair": broken,
        "session show": waiting,
        "session search": waiting,
        "session turns": waiting,
        "session timeline": waiting,
        "session report": waiting,
    }
    return Stage(
        root=root,
        broken=segment.relative_to(root),
        sessions={
            **{name: session(one) for name, one in about.items()},
            "contract assess": started,
            "contract graph": started,
        },
        commands={
            "session show": ("session", "show", waits_at),
            "session search": ("session", "search", "Goal"),
            "session turns": ("session", "turns", waits_at),
            "session timeline": ("session", "timeline", waits_at),
            "session report": ("session", "report", waits_at),
            "contract graph": ("contract", "graph", started),
            "approve": ("approve", label, "--json"),
            "reject": ("reject", label, "--note", "No."),
            "event send": (
                "event",
                "send",
                "ci.finished",
                "--run",
                waits_at,
                "--id",
                "1",
                "--fields",
                '{"status": "x"}',
            ),
            "witness": ("witness", waits_at, "--", "true"),
            "cancel": ("session", "cancel", label, "--reason", "duplicate"),
            "fail": ("session", "fail", label, "--reason", "gave_up", "--json"),
            "intent deliver": ("intent", "deliver", intent),
            "intent abandon": ("intent", "abandon", intent, "--json"),
            "delete": ("session", "delete", session(old), "--yes"),
            "redact": ("session", "redact", session(secret), "--value", "hunter2-secret"),
            "keep": ("session", "keep", session(old)),
            "unkeep": ("session", "unkeep", session(kept), "--json"),
            "import": ("session", "import", str(bundle)),
            "repair": ("session", "repair", session(broken)),
            "gc": ("gc",),
            "keys rotate": ("keys", "rotate"),
            "contract publish": ("contract", "publish", "Infrastructure SLA"),
            "contract start": ("contract", "start", "Q3 Product Launch", "--json"),
            "contract assess": ("contract", "assess", started, "Feature X shipped to production"),
        },
    )


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A command with a fault: what it said, and what it changed."""

    name: str
    fault: Fault
    operation: str
    said: Said
    changed: Counter[str]
    whole: Counter[str]
    is_ok: bool

    @property
    def broken(self) -> str | None:
        """Return which of its sentences the disk contradicts; None if all are true."""
        said = " ".join(self.said.text.split())
        where = f"{self.name}, operation {self.fault} ({self.operation}): exit {self.said.code}: {said!r}"
        where = f"{where}: {dict(self.changed)}"
        if "Traceback" in said or "INTERNAL_ERROR" in said:
            return f"it broke: {where}"
        if self.is_ok:
            return None if self.changed == self.whole else f"it succeeded, and not all is there: {where}"
        if self.said.says_perhaps:
            return None
        if self.changed and self.said.says_nothing:
            return f"it says that nothing was recorded: {where}"
        if self.changed and not SOMETHING.search(said):
            return f"it does not say what was recorded: {where}"
        return None


def trial(stage: Stage, name: str, fault: Fault, whole: tuple[Said, Counter[str]]) -> Trial:
    """Run a command with a fault over a copy of the stage."""
    root = stage.copied(name)
    before = state_of(root)
    with pytest.MonkeyPatch.context() as patched, operations(patched, fault) as made:
        said = run_command(root, stage.commands[name])
    operation = made.made[fault.at] if fault.at < len(made.made) else "not reached"
    return Trial(
        name=name,
        fault=fault,
        operation=operation,
        said=said,
        changed=state_of(root).since(before),
        whole=whole[1],
        is_ok=said.code == whole[0].code and "STORE_" not in said.text and "error" not in said.text,
    )


def without_fault(stage: Stage, name: str) -> tuple[Said, Counter[str], list[str]]:
    """Run a command without a fault; return what it said, what it changed, and its operations."""
    root = stage.copied(name)
    before = state_of(root)
    with pytest.MonkeyPatch.context() as patched, operations(patched) as made:
        said = run_command(root, stage.commands[name])
    return said, state_of(root).since(before), made.made


def beside(root: Path, words: tuple[str, ...]) -> Callable[[], Said]:
    """Return a function that runs a command in another process, to its end. It waits for no lock."""

    def run() -> Said:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            _run_and_exit(root, words, writing)
        os.close(writing)
        with os.fdopen(reading, encoding="utf-8") as stream:
            said = Said(**json.loads(stream.read()))
        os.waitpid(child, 0)
        return said

    return run


def _wait_for_nothing(_wait_ms_max: int, _since_s: float | None) -> tuple[float, float]:
    return 0.0, 0.0


def _run_and_exit(root: Path, words: tuple[str, ...], writing: int) -> None:
    """Run a command in a child process, and write what it said. No handler of the parent runs there."""
    try:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(locks, "wait_window", _wait_for_nothing)
            said = run_command(root, words)
    except BaseException as error:  # noqa: BLE001 — the parent reports it
        said = Said(code=-1, out="", err=f"Traceback: {type(error).__name__}: {error}")
    with os.fdopen(writing, "w", encoding="utf-8") as stream:
        json.dump(asdict(said), stream)
    os._exit(0)


def broken_by_rival(stage: Stage, names: tuple[str, str], number: int, once: Counter[str] | None) -> str | None:
    """Run a command, and before an operation of it a rival in another process; return what the disk contradicts.

    `once` is what both change together, where that is known.
    """
    name, rival = names
    root = stage.copied(name)
    before, others = state_of(root), list[Said]()
    run_rival = beside(root, stage.commands[rival])
    with (
        pytest.MonkeyPatch.context() as patched,
        operations(patched, meanwhile=(number, lambda: others.append(run_rival()))),
    ):
        own = run_command(root, stage.commands[name])
    changed = state_of(root).since(before)
    texts = [" ".join(said.text.split()) for said in (own, *others)]
    where = f"operation {number}: {[said.code for said in (own, *others)]} {texts}: {dict(changed)}"
    if once is not None and changed != once:
        return f"not recorded once: {where}"
    if any("Traceback" in text or "INTERNAL_ERROR" in text for text in texts):
        return f"it broke: {where}"
    if others and all(said.says_nothing and not said.says_perhaps for said in (own, *others)) and changed:
        return f"both say that nothing was recorded: {where}"
    if not changed and any(said.code == 0 for said in (own, *others)):
        return f"one says that it succeeded, and nothing is there: {where}"
    return None


def faults_of(made: list[str]) -> Iterator[Fault]:
    """Yield the faults of a command: each operation fails, once or with all that follow, before or after its effect."""
    for at, operation in enumerate(made):
        is_look = operation.split()[0] in LOOKS
        for when in ("before",) if is_look else ("before", "after"):
            yield from (Fault(at=at, when=when, is_lasting=lasting) for lasting in (False, True))


def deleted(root: Path, session: str) -> bool:
    """Move a session out of a data directory as `session delete` does; say if it is there and nobody holds its lock."""
    directory = root / "sessions" / session
    if not (directory / ".lock").exists():
        return False
    with (directory / ".lock").open("rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        shutil.rmtree(root.parent / "elsewhere", ignore_errors=True)
        shutil.move(directory, root.parent / "elsewhere")
    return True
