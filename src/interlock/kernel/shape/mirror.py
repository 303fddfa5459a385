"""Shapes in pydantic's terms: it says what is wrong with a value and where, and writes JSON schemas.

Only what authors, agents and configurations send is read like this, and bytes that the fast reader refused. So this
module is imported when it is needed: pydantic takes long to import.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin

import msgspec
from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    Strict,
    Tag,
    TypeAdapter,
    ValidationError,
    create_model,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, core_schema

from interlock.kernel.shape import Alternative, AlternativeBy, ReadFault, Rule, Shape, ShapeError, Written

_ShapeT = TypeVar("_ShapeT", bound=Shape)


def _drop_descriptions(schema: dict[str, Any]) -> None:
    """Remove field descriptions from a JSON schema. They are only for the reference page."""
    for member in schema.get("properties", {}).values():
        member.pop("description", None)


class Form(BaseModel):
    """A value that is read with pydantic: strict, frozen, without unknown keys."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        alias_generator=to_camel,
        validate_by_name=False,
        validate_by_alias=True,
        allow_inf_nan=False,
        defer_build=True,
        json_schema_extra=_drop_descriptions,
    )


class _DescribedForm(Form):
    model_config = ConfigDict(json_schema_extra=None)


def model_of(form: "type[BaseModel | Shape]") -> type[BaseModel]:
    """Return the model of a form: itself, or the mirror of a shape."""
    return mirror_of(form) if issubclass(form, Shape) else form


@cache
def mirror_of(shape: type[Shape]) -> type[BaseModel]:
    """Return the model with the fields, the limits and the docstring of a shape."""
    config = shape.__struct_config__
    inherited = set(cast("type[Shape]", shape.__base__).__struct_fields__)
    fields: dict[str, Any] = {}
    for one in msgspec.structs.fields(shape):
        if config.tag is not None and config.tag_field not in fields and one.name not in inherited:
            fields[cast("str", config.tag_field)] = _tag(config.tag)
        fields[one.name] = (_in_pydantic(one.type), _field(one))
    if config.tag is not None:
        fields.setdefault(cast("str", config.tag_field), _tag(config.tag))
    return create_model(
        shape.__name__,
        __base__=_DescribedForm if shape.is_described else Form,
        __doc__=shape.__doc__,
        __module__=shape.__module__,
        **fields,
    )


def _tag(tag: object) -> Any:  # noqa: ANN401 — a field, as pydantic is given it
    return (Literal[tag], ...)  # pyright: ignore[reportInvalidTypeForm] — at run time


def _field(one: msgspec.structs.FieldInfo) -> Any:  # noqa: ANN401 — pydantic's
    given: dict[str, Any] = {"alias": one.encode_name}
    written = cast("object", one.default_factory()) if isinstance(one.default_factory, Written) else None
    if written is not None and not isinstance(written, Shape):
        # A schema shows such a default. It cannot show a shape.
        given["default"] = written
    elif one.default_factory is not msgspec.NODEFAULT:
        given["default_factory"] = one.default_factory
    elif one.default is msgspec.UNSET:
        given["default"] = None
    elif one.default is not msgspec.NODEFAULT:
        given["default"] = one.default
    described = [mark.description for mark in _marks(one.type) if isinstance(mark, Rule) and mark.description]
    return Field(**given, description=described[-1] if described else None)


def _marks(kind: object) -> tuple[object, ...]:
    return get_args(kind)[1:] if get_origin(kind) is Annotated else ()


def _in_pydantic(kind: object) -> Any:  # noqa: ANN401 — a type
    """Return a type as pydantic needs it: a list is accepted for a tuple, and a union has its discriminator."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        marks = tuple(_mark(one) for one in arguments[1:] if not isinstance(one, msgspec.Meta))
        return Annotated[(_in_pydantic(arguments[0]), *marks)]  # pyright: ignore[reportInvalidTypeForm] — at run time
    if origin in (Union, UnionType):
        return _union(arguments)
    if origin is tuple:
        items = tuple(one if one is Ellipsis else _in_pydantic(one) for one in arguments)
        return Annotated[tuple[items], Strict(strict=False)]  # pyright: ignore[reportInvalidTypeForm] — at run time
    if origin in (dict, list):
        return cast("Any", origin)[tuple(map(_in_pydantic, arguments))]
    return kind


def _mark(mark: object) -> object:
    match mark:
        case Alternative():
            return Tag(mark.name)
        case AlternativeBy():
            return Discriminator(mark.of)
        case _:
            return mark


def alternatives(members: Mapping[str, type[Shape]], name_of: Callable[[Any], str]) -> object:
    """Return a union of shapes, whose names are in the places of faults. `name_of` returns the name for a value."""
    named = tuple(Annotated[one, Tag(name)] for name, one in members.items())
    return Annotated[Union[named], Discriminator(name_of)]  # noqa: UP007 — made at run time


def _union(members: tuple[object, ...]) -> object:
    members = tuple(one for one in members if one is not msgspec.UnsetType)
    tagged = [one for one in members if isinstance(one, type) and issubclass(one, Shape) and one.__struct_config__.tag]
    if len(tagged) < 2:  # noqa: PLR2004 — one needs no discriminator
        return Union[tuple(map(_in_pydantic, members))]  # noqa: UP007 — made at run time
    by = tagged[0].__struct_config__.tag_field
    others = [_in_pydantic(one) for one in members if one not in set[object](tagged)]
    return Union[(Annotated[Union[tuple(tagged)], Field(discriminator=by)], *others)]  # noqa: UP007 — as above


def core_schema_of(shape: type[Shape], handler: GetCoreSchemaHandler) -> CoreSchema:
    """Return how pydantic reads a shape: it checks the fields, and the value is made of them."""
    inner = handler.generate_schema(mirror_of(shape))
    return core_schema.no_info_wrap_validator_function(partial(_build, shape), inner)


def _build(shape: type[Shape], value: object, check: Callable[[object], BaseModel]) -> Shape:
    if isinstance(value, shape):
        return value
    model = check(value)
    given = {name: getattr(model, name) for name in model.model_fields_set if name in shape.__struct_fields__}
    built = cast("Callable[..., Shape]", shape)(**_without_defaults(shape, given))
    built.check_read()
    return built


def _without_defaults(shape: type[Shape], given: dict[str, object]) -> dict[str, object]:
    """Return fields without those that equal their default: it means the same as an absent field."""
    defaults = {one.name: one.default for one in msgspec.structs.fields(shape)}
    return {name: one for name, one in given.items() if type(one) is not type(defaults[name]) or one != defaults[name]}


@cache
def adapter_of(kind: Any) -> TypeAdapter[Any]:  # noqa: ANN401 — a type
    """Return pydantic's reader of a type that is made of shapes."""
    return TypeAdapter(_in_pydantic(kind), config=None)


def faults_of(error: ValidationError) -> tuple[ReadFault, ...]:
    """Return the faults that a validation error lists."""
    return cast("tuple[ReadFault, ...]", tuple(error.errors(include_url=False)))


def faults_of_bytes(kind: object, data: bytes) -> tuple[ReadFault, ...]:
    """Return why some bytes hold no value of a type; nothing if they do."""
    try:
        adapter_of(kind).validate_json(data)
    except ValidationError as error:
        return faults_of(error)
    return ()


def validated(shape: type[_ShapeT], value: object) -> _ShapeT:
    """Return the shape of a value.

    Raises:
        ShapeError: It does not have this shape.
    """
    try:
        return adapter_of(shape).validate_python(value)
    except ValidationError as error:
        raise ShapeError(faults_of(error)) from None


def schema_of_type(kind: object) -> dict[str, Any]:
    """Return the JSON schema of a type."""
    return adapter_of(kind).json_schema(by_alias=True)
