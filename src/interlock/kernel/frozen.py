"""Immutable values: dataclasses that cost little to define, because most of them are not used by one command.

A frozen dataclass of the standard library generates and compiles six methods for each class. With some 400 classes that
was a third of the time in which Interlock's modules are imported. Here five of the six are shared by all values,
`__init__` is generated for a class with many instances, and what the standard library's tools need when they ask.
"""

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import FrozenInstanceError
from operator import attrgetter
from typing import Any, ClassVar, NoReturn, TypeAlias, TypeVar, cast, dataclass_transform, get_origin

from interlock.kernel.budgets import VALUES_BEFORE_GENERATED

_T = TypeVar("_T")
_Field: TypeAlias = "dataclasses.Field[Any]"

_OF_LAYOUT = ("__dict__", "__weakref__")
"""What a class without slots has for its instances."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(dataclasses.field,))
def frozen(cls: type[_T]) -> type[_T]:
    """Make a class an immutable value, as `dataclass(frozen=True, slots=True, kw_only=True)` does.

    `fields`, `asdict` and `field` of `dataclasses` work as usual; `InitVar` and `KW_ONLY` do not. A method that the
    class has is kept.
    """
    return _made(cls, _SHARED_BY_VALUES, is_positional=False)


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def positional(cls: type[_T]) -> type[_T]:
    """Make a class an immutable value whose fields are given and matched in order, else as `frozen` does."""
    return _made(cls, _SHARED_BY_VALUES, is_positional=True)


@dataclass_transform(field_specifiers=(dataclasses.field,))
def mutable(cls: type[_T]) -> type[_T]:
    """Make a class whose fields can be set, as `dataclass(slots=True)` does."""
    return _made(cls, _SHARED_BY_MUTABLE, is_positional=True)


def _made(cls: type[_T], shared: Mapping[str, object], *, is_positional: bool) -> type[_T]:
    own = _own_fields(cls)
    inherited = dict[str, _Field]()
    for base in reversed(cls.__mro__[1:]):
        inherited.update(base.__dict__.get("__value_fields__", {}))
    fields = inherited | own
    written = {name: one for name, one in cls.__dict__.items() if name not in own and name not in _OF_LAYOUT}
    if any(isinstance(one, dataclasses.Field) for one in written.values()):
        raise TypeError(f"a field of {cls.__name__} has no type")
    # A class with `__eq__` alone has None as its `__hash__`.
    members: dict[str, Any] = {**written, **{name: one for name, one in shared.items() if written.get(name) is None}}
    members["__slots__"] = tuple(name for name in own if name not in inherited)
    members["__qualname__"] = cls.__qualname__
    members["__doc__"] = cls.__doc__ or cls.__name__
    members["__value_fields__"] = fields
    members |= _FOR_STANDARD_LIBRARY
    members["__compared__"] = attrgetter(*[name for name, one in fields.items() if one.compare] or ["__class__"])
    if is_positional:
        members["__match_args__"] = tuple(name for name, one in fields.items() if one.init)
    made: Any = type(cls)(cls.__name__, cls.__bases__, members)
    made.__copied__ = _first_copied(made) if "__init__" not in written and not hasattr(made, "__post_init__") else None
    if "__init__" not in written:
        made.__init__ = _first_init(made)
    return made


def _own_fields(cls: type) -> "dict[str, _Field]":
    """Return the fields that a class itself declares, in order.

    Raises:
        ValueError: All instances would share a default that can change.
    """
    fields = dict[str, _Field]()
    for name, kind in inspect.get_annotations(cls).items():
        if kind is ClassVar or get_origin(kind) is ClassVar:
            continue
        given = cls.__dict__.get(name, dataclasses.MISSING)
        is_field = isinstance(given, dataclasses.Field)
        one = cast("_Field", given if is_field else dataclasses.field(default=given))
        if type(one.default).__hash__ is None:
            raise ValueError(f"{cls.__name__}.{name} needs a default_factory: {type(one.default).__name__} can change")
        one.name, one.type = name, kind
        fields[name] = one
    return fields


class _OfStandardLibrary:
    """What the tools of the standard library want to know of one of their dataclasses, made when one of them asks."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, _value: object, owner: Any) -> object:  # noqa: ANN401 — a class
        members = [(name, one.type, one) for name, one in owner.__value_fields__.items()]
        is_by_name = "__match_args__" not in owner.__dict__
        known = dataclasses.make_dataclass(
            owner.__name__, members, init=False, repr=False, eq=False, match_args=False, kw_only=is_by_name
        )
        for name in _FOR_STANDARD_LIBRARY:
            setattr(owner, name, getattr(known, name))
        return getattr(owner, self._name)


_FOR_STANDARD_LIBRARY = {name: _OfStandardLibrary(name) for name in ("__dataclass_fields__", "__dataclass_params__")}


def _first_init(made: Any) -> Callable[..., None]:  # noqa: ANN401 — a class
    """Return the `__init__` of the first instances, which then takes its own place with a generated one.

    Generating it takes as long as many instances, and of most classes a command makes few.
    """
    left, setters = VALUES_BEFORE_GENERATED, cast("Mapping[str, Callable[[object, object], None]]", {})

    def __init__(self: object, *args: object, **values: object) -> None:  # noqa: N807 — the name in messages
        nonlocal left, setters
        left -= 1
        setters = setters or {one.name: getattr(made, one.name).__set__ for one in made.__value_fields__.values()}
        if left < 0 or not _is_set(made, self, setters, args, values):
            made.__init__ = _generated_init(made)
            made.__init__(self, *args, **values)

    return __init__


def _is_set(
    made: Any,  # noqa: ANN401 — a class
    value: object,
    setters: Mapping[str, Callable[[object, object], None]],
    args: tuple[object, ...],
    values: Mapping[str, object],
) -> bool:
    """Set the fields of an instance, and return whether the generated `__init__` would do the same."""
    names = cast("tuple[str, ...]", getattr(made, "__match_args__", ()))
    named: dict[str, object] = dict(zip(names, args, strict=False))
    if len(named) != len(args) or not named.keys().isdisjoint(values) or not setters.keys() >= values.keys():
        return False
    named |= values
    for one in made.__value_fields__.values():
        if not one.init:
            return False
        if one.name in named:
            setters[one.name](value, named[one.name])
        elif one.default is not dataclasses.MISSING:
            setters[one.name](value, one.default)
        elif one.default_factory is not dataclasses.MISSING:
            setters[one.name](value, one.default_factory())
        else:
            return False
    if hasattr(made, "__post_init__"):
        cast("Any", value).__post_init__()
    return True


def _generated_init(made: Any) -> Callable[..., None]:  # noqa: ANN401 — a class
    """Return a function that sets each field of a class: to what is given, its default, or what its factory makes."""
    scope: dict[str, Any] = {"_MISSING": dataclasses.MISSING}
    parameters, lines = list[str](), list[str]()
    for one in made.__value_fields__.values():
        name, given, default = one.name, one.name, ""
        scope[f"_set_{name}"] = getattr(made, name).__set__
        if one.default_factory is not dataclasses.MISSING:
            scope[f"_new_{name}"] = one.default_factory
            default = "_MISSING"
            given = f"_new_{name}() if {name} is _MISSING else {name}"
        elif one.default is not dataclasses.MISSING:
            scope[f"_default_{name}"] = one.default
            default = f"_default_{name}"
        if one.init:
            parameters.append(f"{name}={default}" if default else name)
        elif default:
            lines.append(f" {name} = {default}")
        else:
            continue  # `__post_init__` sets it
        lines.append(f" _set_{name}(self, {given})")
    if hasattr(made, "__post_init__"):
        lines.append(" self.__post_init__()")
    named = f", {'' if hasattr(made, '__match_args__') else '*, '}{', '.join(parameters)}" if parameters else ""
    exec("\n".join([f"def __init__(self{named}):", *lines, " return None"]), scope)  # noqa: S102 — as dataclasses does
    init = cast("Callable[..., None]", scope["__init__"])
    init.__qualname__ = f"{made.__qualname__}.__init__"
    return init


def replace(value: _T, /, **changes: object) -> _T:
    """Return a copy of a value with these fields changed, as `dataclasses.replace` does, in a third of its time.

    Raises:
        TypeError: There is no such field.
    """
    copied: Callable[[_T, Mapping[str, object]], _T] | None = type(value).__dict__.get("__copied__")
    if copied is None:
        return cast("_T", dataclasses.replace(cast("Any", value), **changes))
    return copied(value, changes)


def _first_copied(made: Any) -> Callable[[object, Mapping[str, object]], object]:  # noqa: ANN401 — a class
    """Return the `__copied__` of the first copy, which takes its own place with the generated one."""

    def copied(value: object, changes: Mapping[str, object]) -> object:
        made.__copied__ = _generated_copied(made)
        return made.__copied__(value, changes)

    return copied


def _generated_copied(made: Any) -> Callable[[object, Mapping[str, object]], object]:  # noqa: ANN401 — a class
    """Return a function that copies each field of a value of a class, and then sets those that are changed."""
    setters = {one.name: getattr(made, one.name).__set__ for one in made.__value_fields__.values()}
    scope: dict[str, Any] = {f"_set_{name}": setter for name, setter in setters.items()}
    scope |= {"_new": object.__new__, "_made": made, "_setters": setters}
    source = [
        "def copied(value, changes):",
        " copy = _new(_made)",
        *(f" _set_{name}(copy, value.{name})" for name in setters),
        " for name, changed in changes.items():",
        "  if name not in _setters:",
        "   raise TypeError(f'{_made.__name__} has no field {name!r}')",
        "  _setters[name](copy, changed)",
        " return copy",
    ]
    exec("\n".join(source), scope)  # noqa: S102 — as dataclasses does
    return cast("Callable[[object, Mapping[str, object]], object]", scope["copied"])


def _equal(self: Any, other: object) -> bool:  # noqa: ANN401 — any value
    if other.__class__ is not self.__class__:
        return NotImplemented
    compared: Callable[[object], object] = self.__compared__
    return compared(self) == compared(other)


def _hash(self: Any) -> int:  # noqa: ANN401 — as above
    return hash(self.__compared__(self))


def _repr(self: Any) -> str:  # noqa: ANN401 — as above
    shown = (f"{one.name}={getattr(self, one.name)!r}" for one in self.__value_fields__.values() if one.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _refuse_set(self: object, name: str, new: object) -> NoReturn:  # noqa: ARG001 — the protocol of attributes
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: object, name: str) -> NoReturn:  # noqa: ARG001 — as above
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[object]:  # noqa: ANN401 — as above
    return [getattr(self, one.name) for one in self.__value_fields__.values()]


def _restore(self: Any, state: list[object]) -> None:  # noqa: ANN401 — as above
    for one, held in zip(self.__value_fields__.values(), state, strict=True):
        object.__setattr__(self, one.name, held)


_SHARED_BY_ALL: dict[str, object] = {"__eq__": _equal, "__repr__": _repr}
_SHARED_BY_MUTABLE: dict[str, object] = _SHARED_BY_ALL | {"__hash__": None}
_SHARED_BY_VALUES: dict[str, object] = _SHARED_BY_ALL | {
    "__hash__": _hash,
    "__setattr__": _refuse_set,
    "__delattr__": _refuse_delete,
    "__getstate__": _state,
    "__setstate__": _restore,
}
"""The methods that all values share."""
