"""Work blocks: the units of work, with the ports that data enters and leaves by (OPS-4, OPS-5)."""

from typing import Annotated

from pydantic import Field

from interlock.define.operations.base import Entity, Metadata, PortName, Text, Value
from interlock.define.parts import Hints
from interlock.kernel.budgets.operations import PORTS_MAX
from interlock.kernel.canonical import Json


class PortDescriptor(Value):
    """One input or output of a block.

    `required` says that an input must be supplied, or that an output is always produced. `schema` is a JSON Schema for
    readers: nothing enforces it.
    """

    name: PortName
    description: Text = ""
    required: bool = True
    json_schema: Annotated[dict[str, Json] | None, Field(alias="schema")] = None
    metadata: Metadata = Field(default_factory=dict[str, Json])

    @property
    def schema(self) -> dict[str, Json] | None:  # pyright: ignore[reportIncompatibleMethodOverride] — the port's own field replaces a deprecated method of pydantic
        """The JSON Schema of the data on this port, if there is one."""
        return self.json_schema


Ports = Annotated[tuple[PortDescriptor, ...], Field(max_length=PORTS_MAX, strict=False)]


class WorkBlock(Entity):
    """A unit of work: what is to be done, never how or by whom.

    `execution_hints` name capabilities, such as `sql-access`. They never name an executor.
    """

    inputs: Ports = ()
    outputs: Ports = ()
    execution_hints: Hints = ()
    metadata: Metadata = Field(default_factory=dict[str, Json])
