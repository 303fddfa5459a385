"""The file seam of the laboratory: any operation on any kind of path fails, hangs or lies, once or from then on."""

import errno
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from interlock.store.local.files import FileOps
from interlock.testing.power_cut import CrashDisk

Phase: TypeAlias = Literal["before", "after"]
"""Whether a fault comes before the operation has its effect, or after."""
PATIENCE_S = 30.0
SHORT_BYTES = 40
TEMP = re.compile(r"\.[0-9a-f]{16}\.tmp$")
KINDS = (
    ("manifest", r"sessions/[^/]+/manifest\.jsonl"),
    ("settled mark", r"sessions/[^/]+/settled"),
    ("segment", r"sessions/[^/]+/events/.+"),
    ("segments' directory", r"sessions/[^/]+/events"),
    ("summary", r"sessions/[^/]+/cache(/.+)?"),
    ("lock", r"sessions/[^/]+/\.lock|config/\.lock"),
    ("session's directory", r"sessions/[^/]+"),
    ("sessions' directory", r"sessions"),
    ("snapshot", r"snapshots/.+"),
    ("pinned workflow", r"workflows/pinned/.+"),
    ("artifact", r"artifacts/.+"),
    ("content's directory", r"snapshots|workflows|workflows/pinned|artifacts"),
    ("key ring", r"keys/.+"),
    ("keys' directory", r"keys"),
    ("keep marks", r"config/.+"),
    ("config's directory", r"config"),
    ("trash", r"trash(/.*)?"),
    ("data directory", r""),
)


def kind_of(path: str) -> str:
    """Return what a path below the data directory holds; a temporary file is of the kind that it becomes."""
    stem = TEMP.sub("", path)
    found = next((kind for kind, pattern in KINDS if re.fullmatch(pattern, stem)), "other")
    return found if stem == path else f"temporary {found}"


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One operation on a file: the n-th of its name on its kind of path, counted from 0."""

    name: str
    kind: str
    number: int

    def __str__(self) -> str:
        return f"{self.name} of {self.kind}, number {self.number}"


class Gate:
    """Where an operation hangs: the test sees that it is reached, and opens it."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._opened = threading.Event()

    def open(self) -> None:
        self._opened.set()

    def wait(self) -> None:
        self.reached.set()
        assert self._opened.wait(PATIENCE_S), "the test opens every gate"


@dataclass(kw_only=True)
class Fault:
    """What goes wrong with an operation.

    In phase `before` a failing operation has no effect, in phase `after` it has all of it and fails nevertheless.
    Without an `error` it succeeds in the end: a fault with a `gate` and no error only hangs. With `is_short`, a write
    takes its first bytes alone before it fails. With `is_lasting` every later operation of that name and kind, or with
    `takes_all` every later operation that alters a file, fails as well, without hanging. With `drops_names` a failed
    sync of a directory drops its new names, as one of a file drops its new bytes; else a later sync may write them.
    """

    at: Operation
    phase: Phase = "before"
    error: int | None = errno.EIO
    gate: Gate | None = None
    is_short: bool = False
    is_lasting: bool = False
    takes_all: bool = False
    drops_names: bool = False

    def __str__(self) -> str:
        words = [f"{self.at}: {self.phase} its effect"]
        words += ["hangs"] if self.gate is not None else []
        words += ["writes in part"] if self.is_short else []
        words += [f"fails with {errno.errorcode[self.error]}"] if self.error is not None else ["succeeds"]
        words += ["once" if not self.is_lasting else "with everything later" if self.takes_all else "from then on"]
        return ", ".join(words)


LOOKS = frozenset({"read", "read_with_stat", "stat", "own_stat", "names", "is_link", "boot_id"})
"""The operations that alter nothing."""


@dataclass
class FaultyFiles:
    """Any `FileOps`, with a fault. It passes on whatever the seam has, so a new operation needs nothing here.

    `steps` are the operations in their order, reached or failed. Two of them over one disk are two processes.
    """

    inner: FileOps
    fault: Fault | None = None
    steps: list[Operation] = field(default_factory=list[Operation])
    happened: bool = False

    def seam(self) -> FileOps:
        """Return it as what stores take."""
        return cast("FileOps", self)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        operation = getattr(self.inner, name)

        def faulty(*arguments: Any, **options: Any) -> Any:
            paths = [argument for argument in arguments if isinstance(argument, str)]
            kind = kind_of(paths[-1]) if paths else "data directory"
            number = sum(step.name == name and step.kind == kind for step in self.steps)
            step = Operation(name=name, kind=kind, number=number)
            self.steps.append(step)
            if self.fault is None or not self._concerns(self.fault, step):
                return operation(*arguments, **options)
            return self._with(self.fault, step, operation, arguments, options)

        return faulty

    def _concerns(self, fault: Fault, step: Operation) -> bool:
        if not self.happened:
            return step == fault.at
        if not fault.is_lasting or fault.error is None:
            return False
        return step.name not in LOOKS if fault.takes_all else (step.name, step.kind) == (fault.at.name, fault.at.kind)

    def _with(self, fault: Fault, step: Operation, operation: Callable[..., Any], arguments: Any, options: Any) -> Any:
        """Let an operation meet its fault. The first time it may hang, and others may do anything meanwhile."""
        gate = None if self.happened else fault.gate
        self.happened = True
        if fault.phase == "before" and gate is not None:
            gate.wait()
        if fault.phase == "before" and fault.error is not None:
            self._fail(fault, step, operation, arguments, options)
            raise OSError(fault.error, "made to fail")
        done, exists = None, None
        try:
            done = operation(*arguments, **options)
        except FileExistsError as error:
            exists = error
        if fault.phase == "after" and gate is not None:
            gate.wait()
        if fault.error is not None:
            raise OSError(fault.error, "made to fail")
        if exists is not None:
            raise exists
        return done

    def _fail(self, fault: Fault, step: Operation, operation: Callable[..., Any], arguments: Any, options: Any) -> None:
        """Do what a failing operation leaves: a part of a write, or for a sync the loss of what it should have kept."""
        if fault.is_short:
            operation(*(one[:SHORT_BYTES] if isinstance(one, bytes) else one for one in arguments))
        is_sync = step.name == "sync" or (step.name == "sync_dir" and fault.drops_names)
        if is_sync and isinstance(self.inner, CrashDisk):
            self.inner.drop_unsynced(*arguments, opened=options.get("opened"))
