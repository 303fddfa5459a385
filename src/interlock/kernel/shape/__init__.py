"""Shapes: values with declared fields that are read from JSON and written as JSON (EVT-1, EVT-2).

A shape is a `msgspec.Struct`, which costs a fraction of a pydantic model to define, to read and to write. Its
constructor checks no types, because the type checker does. What is read is checked. If bytes are refused, and for what
authors and agents send, `interlock.kernel.shape.mirror` checks with pydantic, which says what is wrong and where.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    Never,
    Self,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    dataclass_transform,
)

import msgspec

from interlock.kernel.budgets.files import RECORD_DEPTH_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import positional
from interlock.kernel.json_bounds import JsonBounds, find_excess

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

_T = TypeVar("_T")
ReadFault: TypeAlias = Mapping[str, Any]
"""One fault of a value, as pydantic describes it: `type`, `loc`, `msg`, `input`, and maybe `ctx`."""

_BOUNDS = JsonBounds(values_max=2**62, depth_max=RECORD_DEPTH_MAX)


class ShapeError(ValueError):
    """A value does not have its shape. `faults` lists every fault."""

    def __init__(self, faults: Sequence[ReadFault]) -> None:
        super().__init__("; ".join(f"{'.'.join(map(str, one['loc'])) or '(root)'}: {one['msg']}" for one in faults))
        self.faults = tuple(faults)


class RefusedError(ValueError):
    """Bytes do not hold a value of a shape. `Reader.faults` says why."""


class Rule:
    """What pydantic has to know of a type: limits, a check, and what is published. It is read like a `Field`."""

    __is_annotated_types_grouped_metadata__: ClassVar[Literal[True]] = True

    def __init__(
        self,
        limits: Mapping[str, object] | None = None,
        *,
        description: str | None = None,
        check: Callable[[Any], Any] | None = None,
        schema: Mapping[str, Json] | None = None,
    ) -> None:
        self.limits, self.description, self.check, self.schema = limits or {}, description, check, schema

    def __iter__(self) -> Iterator[object]:
        """Yield the rule in pydantic's terms."""
        from pydantic import AfterValidator, Field, WithJsonSchema  # noqa: PLC0415 — see the module

        yield from Field(**cast("dict[str, Any]", dict(self.limits))).metadata
        if self.check is not None:
            yield AfterValidator(self.check)
        if self.schema is not None:
            yield WithJsonSchema(dict(self.schema))


class Limits(TypedDict, total=False):
    """The limits of a type; a description is published. `strict=False` makes a form accept a list for a tuple."""

    pattern: str
    min_length: int
    max_length: int
    ge: int
    le: int
    strict: bool
    description: str


def limits(**given: Unpack[Limits]) -> tuple[msgspec.Meta, Rule]:
    """Return the limits of a type as `Annotated[str, *limits(max_length=3)]` needs them: for both readers."""
    present: dict[str, Any] = dict(given)
    description = present.pop("description", None)
    rule = Rule(dict(present), description=description)
    present.pop("strict", None)
    pattern = present.get("pattern", "")
    if pattern.endswith("$"):
        # In Python, `$` also matches before a newline at the end.
        present["pattern"] = pattern[:-1] + r"\Z"
    return msgspec.Meta(**present), rule


def described(description: str) -> Rule:
    """Return the mark that publishes this text with a field."""
    return Rule(description=description)


@positional
class Alternative:
    """Names one member of a union: `Annotated[str, Alternative("<text>")]`. The name is in the places of faults."""

    name: str


@positional
class AlternativeBy:
    """Says of a union of alternatives which one a value belongs to: `of` returns its name."""

    of: Callable[[Any], str]


class Written(Generic[_T]):
    """A default that is written too: `checked: str = msgspec.field(default_factory=Written("before_pass"))`."""

    def __init__(self, default: _T) -> None:
        self._default = default

    def __call__(self) -> _T:
        """Return the default."""
        return self._default


EMPTY: Written[tuple[Never, ...]] = Written(())
"""The default of a list that is written although it is empty."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class _ShapeMeta(msgspec.StructMeta):
    """Makes every field of every shape one of keywords: for msgspec, that is said of each class alone."""

    def __new__(mcs, name: str, bases: tuple[type, ...], members: dict[str, Any], **config: Any) -> Any:  # noqa: ANN401 — msgspec's
        return super().__new__(mcs, name, bases, members, **cast("Any", {"kw_only": True} | config))


class Shape(
    msgspec.Struct,
    metaclass=_ShapeMeta,
    frozen=True,
    rename="camel",
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """A value with declared fields: camelCase in JSON, snake_case in code, no coercion, no unknown fields.

    A field that has its default is not written. What fields must have in common is checked in `__post_init__`, which
    raises ValueError; what is checked only when a value is read, in `check_read`.
    """

    is_described: ClassVar[bool] = True
    """Whether the schema of the shape holds the descriptions of its fields."""

    def changed(self, **fields: object) -> Self:
        """Return a copy with other values of these fields."""
        return msgspec.structs.replace(self, **fields)

    def check_read(self) -> None:
        """Check what holds by construction for a value that was not read.

        Raises:
            ValueError: It does not hold.
        """

    def to_json(self) -> dict[str, Json]:
        """Return the JSON object."""
        return cast("dict[str, Json]", _with_lists(msgspec.to_builtins(self)))

    @classmethod
    def of_json(cls, value: object) -> Self:
        """Return the value of a JSON object, in which parts may also be values already.

        Raises:
            ShapeError: It does not have this shape.
        """
        from interlock.kernel.shape.mirror import validated  # noqa: PLC0415 — see the module

        return validated(cls, value)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: "GetCoreSchemaHandler") -> "CoreSchema":
        """Return how pydantic reads the shape, as a part of a form."""
        from interlock.kernel.shape.mirror import core_schema_of  # noqa: PLC0415 — see the module

        return core_schema_of(cls, handler)


def _with_lists(value: object) -> object:
    """Return a JSON value with a list for every tuple."""
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        return {name: one if type(one) is str else _with_lists(one) for name, one in members.items()}
    if isinstance(value, list | tuple):
        return list(map(_with_lists, cast("Sequence[object]", value)))
    return value


class _ChoiceMeta(type):
    def __instancecheck__(cls, value: object) -> bool:
        """Accept what `_choose` returns: msgspec asks."""
        return isinstance(value, Shape)


class Choice(metaclass=_ChoiceMeta):
    """A closed union that has no tag of its own: the class of a value follows from its members.

    It stands for the union at run time. `members` are its classes; `pick` returns the class of some members;
    `union` is the union in pydantic's terms.
    """

    @classmethod
    def members(cls) -> tuple[type[Shape], ...]:
        """Return the classes of the union."""
        raise NotImplementedError

    @classmethod
    def pick(cls, members: Mapping[str, object]) -> type[Shape]:
        """Return the class of a value.

        Raises:
            ValueError: It belongs to none.
        """
        raise NotImplementedError

    @classmethod
    def union(cls) -> object:
        """Return the union in pydantic's terms."""
        raise NotImplementedError

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: "GetCoreSchemaHandler") -> "CoreSchema":
        """Return how pydantic reads the union."""
        return handler.generate_schema(cls.union())


def _choose(kind: type, value: object) -> object:
    """Return the value of a `Choice`: the hook of the decoders."""
    if issubclass(kind, Choice) and isinstance(value, kind.members()):
        return value
    if not issubclass(kind, Choice) or not isinstance(value, dict):
        raise ValueError("not an object")  # noqa: TRY004 — msgspec's contract
    chosen = kind.pick(cast("dict[str, object]", value))
    _prepare(chosen)
    return msgspec.convert(value, chosen, dec_hook=_choose)


_BUILDING = threading.Lock()
_PREPARED = set[object]()


def _prepare(kind: object) -> None:
    """Let msgspec collect, once, what `convert` needs of a class."""
    if kind not in _PREPARED:
        _build_decoder(kind)
        _PREPARED.add(kind)


def _build_decoder(kind: object) -> "msgspec.json.Decoder[Any]":
    """Return a decoder. What msgspec collects of classes meanwhile must not be seen by another thread that builds one.

    It would use what is not complete, and crash the process.
    """
    with _BUILDING:
        return msgspec.json.Decoder(cast("Any", kind), dec_hook=_choose)


class Reader(Generic[_T]):
    """Reads the values of one type from JSON bytes. What it needs is built when it is used first."""

    def __init__(self, kind: object) -> None:
        self.kind = kind
        self._decode: Callable[[bytes], _T] | None = None

    def read(self, data: bytes) -> _T:
        """Return the value that some bytes hold.

        Raises:
            RefusedError: They hold no such value.
        """
        if self._decode is None:
            self._decode = cast("msgspec.json.Decoder[_T]", _build_decoder(self.kind)).decode
        try:
            value = self._decode(data)
            cast("Shape", value).check_read()
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise RefusedError(str(error)) from None
        if data.count(b"[") + data.count(b"{") > RECORD_DEPTH_MAX and find_excess(data, _BOUNDS) is not None:
            raise RefusedError("nested too deep")
        return value

    def of_json(self, value: object) -> _T:
        """Return the value that a JSON value holds, in which parts may also be values already.

        The JSON value has canonical bytes and is at most as deep as a record, as every file that was parsed, and no
        type in the shape has the check of a `Rule`.

        Raises:
            ShapeError: It does not have the shape.
        """
        _prepare(self.kind)
        try:
            return msgspec.convert(value, cast("type[_T]", self.kind), dec_hook=_choose)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            from interlock.kernel.shape.mirror import validated  # noqa: PLC0415 — see the module

            return validated(cast("Any", self.kind), value)

    def faults(self, data: bytes) -> tuple[ReadFault, ...]:
        """Return why some bytes hold no such value; nothing if only `read` refuses them."""
        from interlock.kernel.shape.mirror import faults_of_bytes  # noqa: PLC0415 — see the module

        return faults_of_bytes(self.kind, data)


def required_members(shape: type[Shape]) -> tuple[str, ...]:
    """Return the members that a value of a shape must have, as they are written."""
    return tuple(field.encode_name for field in msgspec.structs.fields(shape) if field.required)
