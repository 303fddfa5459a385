"""An Interlock in the caller's own process: the server's code over a chosen store, repeatable to the byte.

For tests of Interlock, and of whatever is built on it. A test is a few lines:

    harness = Harness.in_memory(linear_workflow("test.demo", "a", "b"))
    first = harness.start("test.demo", goal="Show it")
    second = harness.advance(first, "Did a.")
    assert second["pending"]["stepId"] == "b"

Calls go through the server's own parsing, use cases and rendering, and each answer is validated against its published
schema. The harness omits only the transport; `Harness.client` adds the SDK's client in both protocol eras. A fault of
Interlock itself is raised here with its traceback, where the server would answer `INTERNAL_ERROR`.
"""

import itertools
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import field
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Self, TypeAlias, cast

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match  # pyright: ignore[reportUnknownVariableType] — untyped
from jsonschema.protocols import Validator
from mcp import Client

from interlock.define.source.text_form import TextFormat
from interlock.engine.answer.model import HumanInputRequired
from interlock.engine.answer.structure import NextCall
from interlock.engine.gates import NO_APPROVAL, ApprovalContext
from interlock.engine.judge.shape import artifact_outline
from interlock.kernel.blanks import fill_in
from interlock.kernel.budgets.workflow import (
    DOCUMENT_BYTES_MAX,
)
from interlock.kernel.canonical import Json
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import SessionId, SigningKey, SourceKind
from interlock.record.base import TokenFormat
from interlock.record.events import Event, parse_event
from interlock.record.short_tokens import decode_token
from interlock.record.tokens import TokenRef
from interlock.server.app import build_server
from interlock.server.arguments.corrected import with_corrected_call
from interlock.server.arguments.parse import parse_arguments
from interlock.server.calls import refusal_text, run_call
from interlock.server.tools import tool_named
from interlock.server.tools.contract import Caller
from interlock.service.clock import Clock
from interlock.service.ports import Ports, ReadPorts
from interlock.service.tokens.resolve import ResolvedToken, SentTokens, resolve_token
from interlock.service.tools.rehydrate import look_up_report
from interlock.service.workflows.catalog import Catalog
from interlock.store.local.store import LocalStore
from interlock.store.memory.store import MemoryStore
from interlock.store.ports.keys import KeyRing, KeyRingWriter
from interlock.store.workflow_files import WorkflowFile, WorkflowSources

Store: TypeAlias = MemoryStore | LocalStore
Arguments: TypeAlias = Mapping[str, object]
Era: TypeAlias = Literal["auto", "legacy"]
"""`auto` is 2026-07-28, `legacy` the handshake of 2025-11-25."""

ERAS: tuple[Era, ...] = ("auto", "legacy")
FIXED_UNIX_MS = 1_735_689_600_000
"""2025-01-01T00:00:00Z, the only moment a `CounterClock` knows."""
FIXED_KEYS = KeyRing(current=SigningKey(bytes(range(32))), previous=SigningKey(bytes(range(32, 64))))
"""Keys for tests that need the same tokens in each run. They are public, so use them for nothing else."""

_INLINE = Path("/inline")
"""The directory that the paths of files in memory begin with."""
_ORDER: tuple[SourceKind, ...] = ("bundled", "user", "project", "remote", "plugin")


class CounterClock:
    """A `Clock` with entropy that counts, so that two runs mint the same ids. Only a test moves its time."""

    def __init__(self, first: int = 1) -> None:
        self._counter = itertools.count(first)
        self._skipped_ms = 0

    def unix_ms(self) -> int:
        """See `Clock.unix_ms`."""
        return FIXED_UNIX_MS + self._skipped_ms

    def skip_ms(self, duration_ms: int) -> None:
        """Let this much time pass."""
        self._skipped_ms += duration_ms

    def entropy(self) -> bytes:
        """See `Clock.entropy`."""
        return next(self._counter).to_bytes(10, "big")


class FixedKeyRing:
    """A key ring that exists from the start and never changes."""

    def __init__(self, ring: KeyRing = FIXED_KEYS) -> None:
        self._ring = ring

    def keys(self, *, fresh: bool = False) -> KeyRing | None:  # noqa: ARG002 — it is always fresh
        """See `KeyRingReader.keys`."""
        return self._ring

    def ensure_keys(self) -> KeyRing:
        """See `KeyRingWriter.ensure_keys`."""
        return self._ring


class InlineWorkflows:
    """Workflow files that a test holds in memory: documents, or the raw bytes of files, by source and name."""

    def __init__(self, *documents: Mapping[str, object]) -> None:
        self._files: dict[tuple[SourceKind, str], bytes] = {}
        self._stamps: dict[tuple[SourceKind, str], int] = {}
        self._clock = itertools.count(1)
        for document in documents:
            self.put(document)

    def put(
        self, content: Mapping[str, object] | bytes, *, kind: SourceKind = "project", ref: str | None = None
    ) -> None:
        """Add or replace a file. A document is written as JSON and, without a `ref`, named after its id."""
        id_ = content.get("id", content.get("workflowId")) if isinstance(content, Mapping) else "workflow"
        name = ref or f"{id_}.json"
        data = content if isinstance(content, bytes) else json.dumps(content).encode("utf-8", "surrogatepass")
        self._files[kind, name] = data
        self._stamps[kind, name] = next(self._clock)

    def remove(self, ref: str, *, kind: SourceKind = "project") -> None:
        """Remove a file."""
        del self._files[kind, ref]

    def files(self, workspace: Path | None) -> tuple[WorkflowFile, ...]:  # noqa: ARG002 — the same for every workspace
        """See `WorkflowSources.files`."""
        return tuple(
            WorkflowFile(
                kind=kind,
                ref=ref,
                form=_form_of(ref),
                location=str(_INLINE / kind / ref),
                stamp=(self._stamps[kind, ref], len(self._files[kind, ref]), 0),
            )
            for kind, ref in sorted(self._files, key=lambda name: (_ORDER.index(name[0]), name[1]))
        )

    def read(self, file: WorkflowFile) -> bytes:
        """See `WorkflowSources.read`."""
        return self._files[file.kind, file.ref][: DOCUMENT_BYTES_MAX + 1]

    def bindings(self, workspace: Path | None) -> Mapping[str, Json]:  # noqa: ARG002 — see above
        """See `WorkflowSources.bindings`."""
        return self.bound

    bound: Mapping[str, Json] = MappingProxyType({})
    """What the project binds extension points to."""


def linear_workflow(workflow_id: str, *steps: str | Mapping[str, object], **more: object) -> dict[str, object]:
    """Return a document with these steps, one after the other; a name stands for a step that needs notes."""
    return {
        "id": workflow_id,
        "name": f"Workflow {workflow_id}",
        "steps": [_step(step) if isinstance(step, str) else dict(step) for step in steps],
        **more,
    }


@frozen
class ToolResult:
    """The result of a call, in both channels, as a client would read it."""

    structure: Mapping[str, Any]
    text: str
    is_error: bool

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401 — a JSON value, read by a caller that knows its schema
        return self.structure[key]

    @property
    def ack(self) -> str:
        """The `ackToken` that reports the answer's step; an ordinary advance has it in its `nextCall` alone."""
        found = self.structure.get("ackToken")
        return str(self.structure["nextCall"]["arguments"]["ackToken"] if found is None else found)

    @property
    def state(self) -> str:
        """The answer's `stateToken`."""
        return str(self.structure["stateToken"])

    @property
    def code(self) -> ErrorCode | None:
        """The error's code; None if the call succeeded."""
        return ErrorCode(self.structure["code"]) if self.is_error else None

    @property
    def warnings(self) -> list[str]:
        """The codes of the answer's warnings."""
        return [warned["code"] for warned in self.structure.get("warnings", ())]


@frozen
class Harness:
    """Interlock's use cases behind the tools that agents call. Each of the `ports` may be replaced.

    `asking` says how the client can ask people, and holds the reply that they give to the next question.
    """

    ports: Ports
    store: Store
    workflows: InlineWorkflows = field(default_factory=InlineWorkflows)
    workspace: Path | None = None
    data_dir: Path | None = None
    asking: ApprovalContext = NO_APPROVAL

    @classmethod
    def in_memory(cls, *documents: Mapping[str, object]) -> Self:
        """Return a harness that keeps everything in memory, under the fixed keys."""
        return cls.over(MemoryStore(), *documents, keys=FixedKeyRing())

    @classmethod
    def on_disk(cls, root: Path, *documents: Mapping[str, object], clock: Clock | None = None) -> Self:
        """Return a harness over a data directory, with the key ring in it, which is created if it is missing.

        Without a clock its ids continue from those in the directory. Harnesses that start runs in one directory
        concurrently need a `CounterClock` each, far apart: otherwise they mint the same ids.
        """
        return replace(cls.over(LocalStore(root), *documents, clock=clock or _counting_on(root)), data_dir=root)

    @classmethod
    def over(
        cls,
        store: Store,
        *documents: Mapping[str, object],
        keys: KeyRingWriter | None = None,
        clock: Clock | None = None,
        sources: WorkflowSources | None = None,
    ) -> Self:
        """Return a harness over a store. `sources` replaces the inline workflows, for example by files on a disk."""
        workflows = InlineWorkflows(*documents)
        ports = Ports(
            read=ReadPorts.over(store, keys or store),
            writer=store,
            key_ring=keys or store,
            catalog=Catalog(sources or workflows),
            clock=clock or CounterClock(),
            is_client_of_agent=_of_person,
        )
        return cls(ports=ports, store=store, workflows=workflows)

    def in_format(self, token_format: TokenFormat) -> Self:
        """Return the same harness with another token format."""
        read = replace(self.ports.read, token_format=token_format)
        return replace(self, ports=replace(self.ports, read=read))

    def call(self, tool_name: str, arguments: Arguments | None = None) -> ToolResult:
        """Call a tool as a client would, without a transport.

        Raises:
            AssertionError: The answer or the refusal breaks the tool's published schema, or cannot be sent as JSON.
            Exception: Any fault that the server would answer with `INTERNAL_ERROR`.
        """
        tool = tool_named(tool_name)
        assert tool is not None, f"there is no tool {tool_name!r}"
        sent = cast("Mapping[str, Json]", dict(arguments or {}))
        caller = Caller(workspace=self.workspace, asking=self.asking, artifact_bytes_max=self.ports.artifact_bytes_max)
        parsed = parse_arguments(tool, sent, caller)
        outcome = parsed if isinstance(parsed, Refusal) else run_call(self.ports, parsed.call(caller))
        outcome = outcome.answer if isinstance(outcome, HumanInputRequired) else outcome
        if isinstance(outcome, Refusal):
            look_up = partial(look_up_report, self.ports.read, asking=self.asking)
            refusal = with_corrected_call(outcome, tool, sent, look_up)
            envelope = _sendable(refusal.envelope())
            assert_conforms(tool_name, envelope)
            return ToolResult(structure=envelope, text=refusal_text(refusal), is_error=True)
        structure = _sendable(outcome.structure)
        assert_conforms(tool_name, structure)
        return ToolResult(structure=structure, text=outcome.text, is_error=False)

    def start(self, workflow_id: str, **arguments: object) -> ToolResult:
        """Call `start_workflow`."""
        return self.call("start_workflow", {"workflowId": workflow_id, **arguments})

    def advance(self, answer: ToolResult | str, notes: str | None = "Done.", **arguments: object) -> ToolResult:
        """Ack an answer, or an `ackToken`, with notes unless they are None."""
        token = answer if isinstance(answer, str) else answer.ack
        sent = {"ackToken": token, **arguments}
        if notes is not None:
            sent.setdefault("output", {"notesMarkdown": notes})
        return self.call("continue_workflow", sent)

    def rehydrate(self, answer: ToolResult | str, **arguments: object) -> ToolResult:
        """Rehydrate an answer, or a `stateToken`."""
        token = answer if isinstance(answer, str) else answer.state
        return self.call("continue_workflow", {"stateToken": token, **arguments})

    def follow(self, answer: ToolResult, notes: str = "Done.") -> ToolResult:
        """Send an answer's `nextCall` with only the notes filled in."""
        return self.call(answer["nextCall"]["tool"], filled_in(answer, notes))

    def checkpoint(self, answer: ToolResult | str, notes: str | None = "Half done.", **arguments: object) -> ToolResult:
        """Save a checkpoint with an answer, or a `checkpointToken`, and with notes unless they are None."""
        token = answer if isinstance(answer, str) else answer.structure.get("checkpointToken")
        named = {"checkpointToken": token} if isinstance(token, str) else {"ackToken": cast("ToolResult", answer).ack}
        sent = {**named, **arguments}
        if notes is not None:
            sent.setdefault("output", {"notesMarkdown": notes})
        return self.call("checkpoint_workflow", sent)

    def resume(self, query: str | None = None, **arguments: object) -> ToolResult:
        """Call `resume_session`, with a query if there is one."""
        return self.call("resume_session", {**arguments, **({} if query is None else {"query": query})})

    def session_of(self, answer: ToolResult) -> SessionId:
        """Return the session that a start or a rehydrate names."""
        return SessionId(answer["run"]["sessionId"])

    def reference_of(self, answer: ToolResult) -> TokenRef:
        """Return what an answer's `stateToken` refers to."""
        tokens = SentTokens(argument="stateToken", token=decode_token(answer.state))
        found = resolve_token(self.ports.read, tokens)
        assert isinstance(found, ResolvedToken), "an answer's token verifies"
        return found.ref

    def events(self, session: SessionId) -> list[Event]:
        """Return a session's events as they are stored, oldest first."""
        return [parse_event(line) for segment in self._segments(session) for line in segment.splitlines()]

    @asynccontextmanager
    async def client(self, era: Era = "auto") -> AsyncGenerator[Client]:
        """Connect the SDK's client to the real MCP server over these ports, in memory."""
        async with Client(build_server(self.ports, self.workspace), mode=era) as client:
            yield client

    def _segments(self, session: SessionId) -> tuple[bytes, ...]:
        if isinstance(self.store, MemoryStore):
            return self.store.stored_log(session).segments
        assert self.data_dir is not None, "a harness over a local store knows its directory"
        directory = self.data_dir / "sessions" / session / "events"
        return tuple(path.read_bytes() for path in sorted(directory.glob("*.jsonl")))


async def call_through(client: Client, tool_name: str, arguments: Arguments | None = None) -> ToolResult:
    """Call a tool through a connected SDK client, and validate the answer against the tool's published schema."""
    result = await client.call_tool(tool_name, dict(arguments or {}))
    text = "".join(block.text for block in result.content if block.type == "text")
    structure = cast("dict[str, Any]", result.structured_content or {})
    assert_conforms(tool_name, structure)
    return ToolResult(structure=structure, text=text, is_error=bool(result.is_error))


def _of_person() -> bool:
    """Return that no agent started the client: a test speaks for a person unless it says otherwise."""
    return False


def filled_in(answer: ToolResult, notes: str) -> dict[str, Any]:
    """Return the arguments of an answer's `nextCall`, with the notes and a good value for each other blank."""
    return filled_call(answer["nextCall"], notes)


def filled_call(call: Mapping[str, Any], notes: str = "Filled in.") -> dict[str, Any]:
    """Return the arguments of a call that an answer shows, with a value of its kind for each blank."""

    def supply(blank: Mapping[str, Json]) -> Json:
        return notes if blank["path"] == "output.notesMarkdown" else good_value(blank)

    return fill_in(call["arguments"], call["fill"], supply)


def good_artifact(schema: Mapping[str, Json]) -> dict[str, Any]:
    """Return the smallest artifact of a contract's schema, with good values."""
    return cast("dict[str, Any]", filled_call(NextCall.of("", {"it": artifact_outline(schema)}).to_json())["it"])


_GOOD = ("passed", "clean", "approved", "available", "stop", "high", "true")
"""Choices that let a run continue."""


def good_value(blank: Mapping[str, Json]) -> Json:
    """Return a value for a blank: a choice that lets the run continue, else one of its shape (see `shape_of`)."""
    choices = cast("list[Json]", blank.get("choices", []))
    if choices:
        return _good_choice(choices)
    shape, words = str(blank.get("shape", "text")), f"Filled in: {blank.get('what', blank['path'])}"
    return _of_shape(shape, words)


def _good_choice(choices: Sequence[Json]) -> Json:
    return next((choice for choice in choices if str(choice).lower() in _GOOD), choices[0])


def _of_shape(shape: str, words: str) -> Json:
    if shape.startswith("list of "):
        return [_of_shape(shape.removeprefix("list of "), words)] if "(at least" in shape else []
    if shape.startswith("{"):
        inner = shape[1 : shape.index("}")]
        members = [member.partition(": ") for member in inner.split(", ") if "?" not in member.partition(":")[0]]
        return {name: _of_shape(kind or "text", f"{words}: {name}") for name, _, kind in members}
    if " | " in shape:
        return _good_choice(shape.split(" | "))
    of_type: dict[str, Json] = {"list": [], "object": {}, "number": 1, "whole number": 1}
    return of_type.get(shape, words)


def assert_conforms(tool_name: str, structure: Mapping[str, Any]) -> None:
    """Validate the structure of an answer or a refusal against the output schema that its tool publishes.

    Raises:
        AssertionError: It does not conform; the message names the place.
    """
    faults = _schema_of(tool_name).iter_errors(dict(structure))
    fault = cast("ValidationError | None", best_match(faults))
    assert fault is None, f"{tool_name}: {fault.json_path}: {fault.message}"


@lru_cache
def _schema_of(tool_name: str) -> Validator:
    tool = tool_named(tool_name)
    assert tool is not None, f"there is no tool {tool_name!r}"
    return Draft202012Validator(cast("dict[str, Any]", tool.to_json()["outputSchema"]))


def _sendable(structure: Mapping[str, Json]) -> dict[str, Any]:
    """Return what a client would parse. The bytes are UTF-8, so a lone surrogate raises here."""
    return cast("dict[str, Any]", json.loads(json.dumps(dict(structure), ensure_ascii=False).encode("utf-8")))


def _counting_on(root: Path) -> CounterClock:
    return CounterClock(1 + 1_000 * sum(1 for _ in root.glob("sessions/*/events/*.jsonl")))


def _form_of(ref: str) -> TextFormat:
    return "yaml" if ref.endswith((".yaml", ".yml")) else "json"


def _step(name: str) -> dict[str, object]:
    return {"id": name, "title": f"Step {name}", "prompt": f"Do {name}."}
