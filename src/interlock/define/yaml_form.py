"""YAML, restricted to what JSON can say: the core schema's scalars, no aliases, no tags, no duplicate keys."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast

import yaml

from interlock.kernel.budgets import DOCUMENT_DEPTH_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlFault:
    """Why a text is not YAML of this kind."""

    path: str
    code: Literal["not_yaml", "duplicate_key", "too_deep"]
    message: str
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlValue:
    """What a text holds."""

    value: object


class _Loader(yaml.SafeLoader):
    """Reads scalars as YAML 1.2 does: `yes`, `on`, dates and octal-looking numbers are text."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 — the library's own attribute


for _tag, _pattern, _first in (
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("int", r"^[-+]?(?:0|[1-9][0-9]*)$", list("-+0123456789")),
    ("float", r"^[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$", list("-+.0123456789")),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), _first)


def load_yaml(text: str) -> YamlValue | YamlFault:
    """Return the value that a text holds, or why it holds none. Aliases are refused: they can grow without bound."""
    try:
        refused = _refused_event(text)
        if refused is not None:
            return refused
        node = cast("yaml.Node | None", yaml.compose(text, Loader=_Loader))
        return YamlValue(value=None) if node is None else _value(node, "")
    except yaml.YAMLError as error:
        return YamlFault(path="", code="not_yaml", message=_words(error), fix="Correct the YAML.")


def _refused_event(text: str) -> YamlFault | None:
    """Find what is refused while the text is read, so that nothing behind it costs anything."""
    depth = 0
    for event in cast("Iterator[yaml.Event]", yaml.parse(text, Loader=_Loader)):
        line = cast("yaml.Mark", event.start_mark).line + 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            return _not_yaml(f"Line {line} uses an anchor or alias.", "Write the value out.")
        if getattr(event, "tag", None):
            return _not_yaml(f"Line {line} uses a tag.", "Remove the tag.")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DOCUMENT_DEPTH_MAX:
            message = f"Line {line} nests deeper than {DOCUMENT_DEPTH_MAX} levels."
            return YamlFault(path="", code="too_deep", message=message, fix="Flatten the document.")
    return None


def _not_yaml(message: str, fix: str) -> YamlFault:
    return YamlFault(path="", code="not_yaml", message=message, fix=fix)


def _value(node: yaml.Node, path: str) -> YamlValue | YamlFault:
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path)
    if isinstance(node, yaml.SequenceNode):
        values: list[object] = []
        for at, item in enumerate(cast("list[yaml.Node]", node.value)):
            found = _value(item, f"{path}[{at}]")
            if isinstance(found, YamlFault):
                return found
            values.append(found.value)
        return YamlValue(value=values)
    return YamlValue(value=_scalar(cast("yaml.ScalarNode", node)))


def _mapping(node: yaml.MappingNode, path: str) -> YamlValue | YamlFault:
    result: dict[str, object] = {}
    for key_node, value_node in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
        key = cast("str", key_node.value) if isinstance(key_node, yaml.ScalarNode) else None
        where = f"{path}.{key}" if path else str(key)
        if key is None:
            return YamlFault(path=path, code="not_yaml", message="A key is not a plain text.", fix="Use a text as key.")
        if key in result:
            return YamlFault(
                path=where, code="duplicate_key", message=f"The key {key!r} stands twice.", fix="Keep one of them."
            )
        found = _value(value_node, where)
        if isinstance(found, YamlFault):
            return found
        result[key] = found.value
    return YamlValue(value=result)


def _scalar(node: yaml.ScalarNode) -> object:
    text = cast("str", node.value)
    match node.tag.removeprefix("tag:yaml.org,2002:"):
        case "bool":
            return text.lower() == "true"
        case "null":
            return None
        case "int":
            return int(text)
        case "float":
            return float(text)
        case _:
            return text


def _words(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"Line {error.problem_mark.line + 1}, column {error.problem_mark.column + 1}: {error.problem}."
    return "The text is not YAML."
