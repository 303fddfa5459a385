"""The base types of tools: the published contract, the arguments, and the call that is made of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import TypeAlias

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from interlock.define.schemas import flat_schema
from interlock.engine.answer.model import Answer, HumanInputRequired
from interlock.engine.gates import ApprovalContext
from interlock.engine.published import Published
from interlock.kernel.budgets import ARTIFACT_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.errors import ENVELOPE_SCHEMA, Correction, Refusal
from interlock.kernel.frozen import frozen, positional
from interlock.kernel.ids import SessionId
from interlock.record.events import Actor
from interlock.service.ports import Ports

Outcome: TypeAlias = Answer | Refusal | HumanInputRequired


@frozen
class Caller:
    """The context of a call: default workspace, client, how people can be asked, and the limit of artifacts."""

    workspace: Path | None
    asking: ApprovalContext
    actor: Actor | None = None
    artifact_bytes_max: int = ARTIFACT_BYTES_MAX


@positional
class Fault:
    """Why arguments are refused: the path, what was found, and what to send. The parser adds the tool's name."""

    path: str
    message: str
    suggestion: str
    details: Mapping[str, Json] = field(default_factory=dict[str, Json])
    correction: Correction | None = None


@frozen
class Call:
    """A parsed call: the use case that answers it, and the session that it may append to.

    `session` comes from the token and is not verified yet. Calls of one session run one after another. `begins_run` is
    set if the call may create a session.
    """

    run: Callable[[Ports], Outcome]
    session: SessionId | None = None
    begins_run: bool = False


class ObjectArgument(BaseModel):
    """An argument that is an object with members of its own."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        alias_generator=to_camel,
        validate_by_alias=True,
        validate_by_name=False,
        defer_build=True,
    )


def member_names(model: type[ObjectArgument]) -> list[str]:
    """Return the names of an object's members, as callers send them."""
    return [field.alias or name for name, field in model.model_fields.items()]


class Arguments(ObjectArgument, ABC):
    """The arguments of a tool. Flat, because real clients support no more (SRV-2)."""

    @classmethod
    def required(cls) -> list[str]:
        """Return the names of the arguments without which no call is valid."""
        return [field.alias or name for name, field in cls.model_fields.items() if field.is_required()]

    @classmethod
    def missing(cls, sent: Collection[str]) -> list[str]:
        """Return what a call lacks that has the arguments with these names."""
        return [name for name in cls.required() if name not in sent]

    @abstractmethod
    def faults(self, caller: Caller) -> Iterator[Fault]:
        """Yield the faults that types cannot express. The first one is reported."""

    @abstractmethod
    def call(self, caller: Caller) -> Call:
        """Return the call. The arguments have no fault."""

    def sent(self) -> dict[str, Json]:
        """Return the arguments that were sent, in the order of the schema."""
        return self.model_dump(by_alias=True, exclude_unset=True)


@frozen
class Hints:
    """What clients may assume about a tool. No tool is destructive, and none uses the network."""

    is_read_only: bool
    is_idempotent: bool


READS = Hints(is_read_only=True, is_idempotent=True)


@frozen
class Tool:
    """One tool's contract: the only source of its name, schemas, description and hints (SRV-3)."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    output: type[Published]
    hints: Hints
    is_always_loaded: bool = False
    """Whether a client that loads tools on demand loads this one at once: for the two tools that begin the work."""
    is_for_pages: bool = False
    """Whether only the page in a chat may call it, and no model."""

    @property
    def argument_names(self) -> Mapping[str, str]:
        """The fields by the argument names that callers send."""
        return {field.alias or name: name for name, field in self.arguments.model_fields.items()}

    def answer_schema(self) -> dict[str, Json]:
        """Return the schema of the tool's answers, which is the first alternative of the published output schema."""
        return flat_schema(self.output, "serialization")

    def to_json(self) -> dict[str, Json]:
        """Return the tool as `tools/list` and `tool-schemas/` publish it."""
        published: dict[str, Json] = {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": flat_schema(self.arguments, "validation"),
            "outputSchema": {"type": "object", "anyOf": [self.answer_schema(), dict(ENVELOPE_SCHEMA)]},
            "annotations": {
                "title": self.title,
                "readOnlyHint": self.hints.is_read_only,
                "destructiveHint": False,
                "idempotentHint": self.hints.is_idempotent,
                "openWorldHint": False,
            },
        }
        if self.is_always_loaded:
            published["_meta"] = {"anthropic/alwaysLoad": True}
        if self.is_for_pages:
            published["_meta"] = {"ui": {"visibility": ["app"]}}
        return published


def too_large(
    path: str,
    measured: int,
    limit: int,
    *,
    fix: str = "Write the long part to a file and give its path.",
    correction: Correction | None = None,
) -> Fault:
    """Return the fault of a value above its limit."""
    message = f"It has {measured} UTF-8 bytes; the limit is {limit}."
    return Fault(path, message, fix, {"measuredBytes": measured, "maxBytes": limit}, correction)
