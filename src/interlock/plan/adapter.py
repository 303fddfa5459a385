"""The adapter manifest of a workflow: its declared context keys, its events and its intents (EFF-10, WORLD-8).

The digest of the manifest is recorded with each captured decision. So it can be seen later which declarations were in
force. A workflow that declares no key has no manifest: files of the WorkRail dialect declare none.
"""

from interlock.define.parts import ContextInput, ListItems, ProducedKey, ValueType
from interlock.kernel.canonical import Json, digest_of
from interlock.kernel.ids import Digest
from interlock.record.base import Record


class AdapterKey(Record):
    """A context key that is declared, and the steps that set it. Every field is written."""

    key: str
    type: ValueType
    required: bool
    choices: tuple[Json, ...]
    items: ListItems | None
    set_by: tuple[str, ...]


class UndeclaredKey(Record):
    """A context key that takes any value, and the steps that set it."""

    key: str
    set_by: tuple[str, ...]


class AdapterEvent(Record):
    """An event that a step waits for."""

    step: str
    event: str
    fields: dict[str, str]
    assurance: str


class AdapterIntent(Record):
    """An intent that a step may send, with the names of its fields, and the context keys that it sets."""

    step: str
    sends: str
    fields: tuple[str, ...]
    mirror: dict[str, str]


class AdapterManifest(Record):
    """What a workflow declares of its context keys, of events from outside and of intents, in plan order."""

    workflow_id: str
    keys: tuple[AdapterKey | UndeclaredKey, ...]
    events: tuple[AdapterEvent, ...] = ()
    intents: tuple[AdapterIntent, ...] = ()

    def digest(self) -> Digest:
        """Return the digest of the manifest."""
        return digest_of(self.to_json())


def adapter_key(name: str, declared: ProducedKey | None, set_by: tuple[str, ...]) -> AdapterKey | UndeclaredKey:
    """Return the entry of a key. A routine that is unfolded may set keys that are not declared."""
    if declared is None:
        return UndeclaredKey(key=name, set_by=set_by)
    return AdapterKey(
        key=name,
        type=declared.type,
        required=isinstance(declared, ContextInput) and declared.required,
        choices=declared.choices,
        items=declared.items,
        set_by=set_by,
    )
