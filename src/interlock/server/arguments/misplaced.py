"""Moves unknown arguments to where they belong: out of another value, or to the argument of a similar name (ANS-12)."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias, cast

from interlock.define.diagnostics import suggest_name
from interlock.define.faults import find_value
from interlock.kernel.budgets import MOVED_ARGUMENTS_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.errors import Correction
from interlock.server.arguments.clean import clean, fitted, with_listed_artifact
from interlock.server.arguments.json_text import parse_object
from interlock.server.tools import TOOLS
from interlock.server.tools.contract import Tool, member_names
from interlock.server.tools.evidence import NESTED, members_of_kind
from interlock.service.tokens.mint import PREFIXES

Location: TypeAlias = tuple[int | str, ...]
Accepts: TypeAlias = Callable[[str, Json], bool]
"""Says whether an argument, or a member of one, takes a value."""

_WRAPPER = "arguments"
"""The member of a shown call that holds the arguments."""
_OTHER_NAMES = {
    "id": "workflowId",
    "inputs": "context",
    "variables": "context",
    "run": "query",
    "label": "query",
}
"""Other names of arguments that no letters show: workflows declare `inputs`, and `context` carries their values.

A run's label is found by a `query`.
"""
_POSITION = re.compile(r"[0-9]{1,9}")
_PATH = re.compile(rf"\w+(\.\w+|\[{_POSITION.pattern}\])+")
"""The path of a value in a call, as answers show it."""
_LIKE_A_TOKEN = re.compile(rf"\W*({'|'.join(PREFIXES.values())})", re.IGNORECASE)
"""The beginning of a token, also of one that was copied with quotes or in upper case."""
_AT_THE_END = "9" * 8
"""The first digits of positions after every one that a path names."""
_ARGUMENTS_OF_ALL_TOOLS = frozenset(name for tool in TOOLS for name in tool.argument_names)
"""The names of all arguments. An unknown argument with one of these names is not misplaced evidence."""


_WRAPPERS = frozenset((_WRAPPER, "args", "input", "params", "parameters"))
"""Names under which calls of other protocols and libraries hold their arguments."""


def wrapped_arguments(tool: Tool, sent: Mapping[str, Json], loc: Location) -> dict[str, Json]:
    """Return what is at a place if it wraps arguments of the tool, as a shown call does; an empty value otherwise.

    A wrapper inside it is one of the values that it holds. Under a name of wrappers, one argument of the tool is
    enough, also a misspelled one; under any other name, or in an artifact with a kind, it may be an ordinary value.
    """
    value = find_value(sent, loc)
    held = _wrapped(tool, value)
    is_of_artifact = isinstance(find_value(sent, (*loc[:-1], "kind")), str)
    if held or loc[-1] not in _WRAPPERS or is_of_artifact:
        return held
    named = parse_object(value) if isinstance(value, str) else value
    members = cast("dict[str, Json]", named) if isinstance(named, dict) else {}
    is_wrapper = _shaped_place(tool, members) is None and any(
        key in tool.argument_names or _similar_place(tool, (key,)) for key in members
    )
    return members if is_wrapper else {}


def _wrapped(tool: Tool, value: object) -> dict[str, Json]:
    """Return what an object holds if its members show that it wraps arguments of the tool."""
    if isinstance(value, str):
        value = parse_object(value)
    if not isinstance(value, dict):
        return {}
    held, known = cast("dict[str, Json]", value), tool.argument_names
    if _wrapped(tool, held.get(_WRAPPER)):
        return held
    names = {*tool.arguments.required(), *PREFIXES} & known.keys()
    return held if names & held.keys() or held.keys() <= known.keys() else {}


def find_place(tool: Tool, arguments: Mapping[str, Json], loc: Location, accepts: Accepts) -> str | None:
    """Return the argument, or the member of one, that an unknown argument is meant for; None if there is none."""
    value = cast("Json", find_value(arguments, loc))
    place = _token_argument(tool, value) or _similar_place(tool, loc) or _shaped_place(tool, value)
    if place is None or place.rpartition(".")[2] == loc[-1]:
        return place
    if place in PREFIXES and not _is_token(place, str(loc[-1]), value):
        return None
    return place if accepts(place, fitted(place, value)) else None


def _is_token(argument: str, name: str, value: Json) -> bool:
    """Say whether a value is meant as a token: by its beginning, or by the letters of its name."""
    is_spelled_otherwise = re.sub(r"[\W_]", "", name).lower() == argument.lower()
    return is_spelled_otherwise or (isinstance(value, str) and _LIKE_A_TOKEN.match(value) is not None)


def find_path(tool: Tool, loc: Location) -> tuple[str, ...] | None:
    """Return the names and numbers of a path that was sent as the name of an argument, or of a member; else None."""
    *holder, key = map(str, loc)
    for path in (key, ".".join([*holder, key])):
        if _PATH.fullmatch(path) is None:
            continue
        name, member, *inner = re.findall(r"\w+", path)
        is_member = name in NESTED and member in member_names(NESTED[name])
        if name in tool.argument_names and (is_member or name == "context"):
            return (name, member, *inner)
    return None


def loose_artifacts(
    tool: Tool, arguments: Mapping[str, Json], unknown: Sequence[Location], accepts: Accepts
) -> list[list[Location]]:
    """Return the places of the members of each artifact that was sent beside, or as, the `output`: it has a kind.

    What has a place of its own is no member of it, unless the contract of the kind declares a member of that name.
    """
    if "output" not in tool.argument_names:
        return []
    kinds = [loc for loc in unknown if loc in (("kind",), ("output", "kind"))]
    kinds = [loc for loc in kinds if isinstance(find_value(arguments, loc), str)]
    return [_members_beside(tool, arguments, kind, unknown, accepts) for kind in kinds]


def _members_beside(
    tool: Tool, arguments: Mapping[str, Json], kind: Location, unknown: Sequence[Location], accepts: Accepts
) -> list[Location]:
    """Return the places of the members of one loose artifact, of which the place of its kind is given."""
    declared = members_of_kind(str(find_value(arguments, kind)))
    beside = [loc for loc in unknown if loc[:-1] == kind[:-1] and loc != kind][: MOVED_ARGUMENTS_MAX - 1]
    own = (loc for loc in beside if loc[-1] in declared or not _has_own_place(tool, arguments, loc, accepts))
    return [kind, *own]


def _has_own_place(tool: Tool, arguments: Mapping[str, Json], loc: Location, accepts: Accepts) -> bool:
    """Say whether an unknown argument beside the kind of an artifact is something else than a member of it."""
    return (
        loc[-1] in _ARGUMENTS_OF_ALL_TOOLS
        or bool(wrapped_arguments(tool, arguments, loc))
        or find_path(tool, loc) is not None
        or find_place(tool, arguments, loc, accepts) is not None
    )


def place_unknown(tool: Tool, sent: Mapping[str, Json], unknown: Sequence[Location], accepts: Accepts) -> Correction:
    """Return the call in which each unknown argument is at its place or left out. What is at its place stays.

    Wrappers are opened first, so what they hold is placed as if it had been sent without them. Two different tokens for
    one argument are both left out, and the label of a run with them: they may be of two runs (ANS-4). If a report has
    no evidence without those that are left out, its `output` is asked for.
    """
    contested = set[str]()
    arguments, waiting = _unwrapped(tool, sent, unknown, contested)
    is_evidence = any(loc not in waiting for loc in unknown)
    loose = loose_artifacts(tool, arguments, waiting, accepts)
    for at, members in enumerate(loose):
        artifact: dict[str, Json] = {}
        for loc in members:
            arguments, artifact[str(loc[-1])] = _take(arguments, loc)
        arguments = _put(arguments, ("output", "artifacts", f"{_AT_THE_END}{at}"), artifact)
    waiting = [loc for loc in waiting if not any(loc in members for members in loose)]
    for loc in waiting[:MOVED_ARGUMENTS_MAX]:
        path = find_path(tool, loc)
        if path is not None:
            arguments, value = _take(arguments, loc)
            arguments = _put(arguments, path, value)
            continue
        place = find_place(tool, arguments, loc, accepts)
        is_evidence |= place is None and not _ARGUMENTS_OF_ALL_TOOLS.issuperset(loc)
        arguments, value = _take(arguments, loc)
        moved = {} if place is None else _nest(place, fitted(place, value))
        contested |= _contested_tokens(arguments, moved)
        arguments = _merge(arguments, moved)
    if contested:
        arguments.pop("run", None)
    arguments = {name: _closed(arguments[name]) for name in tool.argument_names if name in arguments}
    is_report = "output" in tool.argument_names and ("ackToken" in arguments or "checkpointToken" in arguments)
    lacks_evidence = is_evidence and is_report and not arguments.get("output")
    wrong = [*sorted(contested), *(["output"] if lacks_evidence else [])]
    return Correction(wrong=tuple((name,) for name in wrong), understood=arguments)


def _unwrapped(
    tool: Tool, sent: Mapping[str, Json], unknown: Sequence[Location], contested: set[str]
) -> tuple[dict[str, Json], list[Location]]:
    """Return the arguments without wrappers, and the places of those that do not exist. Add the contested tokens."""
    arguments, waiting = with_listed_artifact(sent), list(unknown)
    for _ in range(MOVED_ARGUMENTS_MAX):
        wrappers = ((loc, inner) for loc in waiting if (inner := wrapped_arguments(tool, arguments, loc)))
        wrapper = next(wrappers, None)
        if wrapper is None:
            break
        loc, inner = wrapper
        held = with_listed_artifact(clean(tool, inner)[0])
        arguments, _ = _take(arguments, loc)
        waiting.remove(loc)
        contested |= _contested_tokens(arguments, held)
        arguments = _merge(arguments, held)
        waiting += [one for one in _unknown_places(tool, held) if one not in waiting]
    return arguments, waiting


def unknown_names(tool: Tool, sent: Mapping[str, Json]) -> set[str]:
    """Return the names of what was sent as an argument, or as a member of one, and does not exist, also in wrappers."""
    _, places = _unwrapped(tool, sent, list(_unknown_places(tool, sent)), set())
    return {str(loc[-1]) for loc in places}


def _unknown_places(tool: Tool, arguments: Mapping[str, Json]) -> Iterator[Location]:
    """Yield the places of the arguments that do not exist, and of such members of arguments."""
    for name, value in arguments.items():
        if name not in tool.argument_names:
            yield (name,)
        elif name in NESTED and isinstance(value, dict):
            yield from ((name, member) for member in value if member not in member_names(NESTED[name]))


def _contested_tokens(arguments: Mapping[str, Json], moved: Mapping[str, Json]) -> set[str]:
    """Return the arguments for which both hold a token, and not the same one."""
    return {
        name
        for name, start in PREFIXES.items()
        if arguments.get(name) != moved.get(name)
        and all(isinstance(token := held.get(name), str) and token.startswith(start) for held in (arguments, moved))
    }


def _token_argument(tool: Tool, value: Json) -> str | None:
    """Return the argument for a token that was sent under another name. Its prefix shows its kind."""
    if not isinstance(value, str):
        return None
    return next(
        (name for name, start in PREFIXES.items() if value.startswith(start) and name in tool.argument_names), None
    )


def _similar_place(tool: Tool, loc: Location) -> str | None:
    """Return the known argument that is most similar to an unknown one: at the same level, or at another one."""
    known, sent = tool.argument_names, str(loc[-1])
    wrong = _OTHER_NAMES[sent] if _OTHER_NAMES.get(sent) in known else sent
    if len(loc) > 1:
        holder = str(loc[0])
        guess = suggest_name(wrong, member_names(NESTED[holder])) if holder in NESTED and wrong not in known else None
        return f"{holder}.{guess}" if guess else wrong if wrong in known else None
    places = {member: f"{name}.{member}" for name in NESTED if name in known for member in member_names(NESTED[name])}
    if wrong in places:
        return places[wrong]
    guess = suggest_name(wrong, known)
    if guess is not None:
        return guess
    member = suggest_name(wrong, places)
    return places[member] if member is not None else None


def _shaped_place(tool: Tool, value: Json) -> str | None:
    """Return the argument whose members an object under another name holds, and nothing else."""
    held = value.keys() if isinstance(value, dict) else ()
    known = [name for name in NESTED if name in tool.argument_names]
    return next((name for name in known if held and held <= set(member_names(NESTED[name]))), None)


def _take(arguments: dict[str, Json], loc: Location) -> tuple[dict[str, Json], Json]:
    """Return the arguments without one of them, or without a member of one, and its value."""
    name, *inner = map(str, loc)
    others, holder = {key: value for key, value in arguments.items() if key != name}, arguments.get(name)
    if not inner or not isinstance(holder, dict):
        return others, holder
    kept: dict[str, Json] = {key: value for key, value in holder.items() if key != inner[0]}
    return {**others, name: kept} if kept else others, holder.get(inner[0])


class _Building(dict[int, Json]):
    """A list under construction: its items by the positions that paths name, in any order."""


def _put(arguments: Mapping[str, Json], path: Sequence[str], value: Json) -> dict[str, Json]:
    """Return the arguments with a value at a path. What is already there is kept, and `_closed` makes the lists."""
    return cast("dict[str, Json]", _with_value(dict(arguments), path, value))


def _with_value(holder: Json | _Building, path: Sequence[str], value: Json) -> Json:
    if not path:
        return value if holder is None else cast("Json", holder)
    name, *inner = path
    if _POSITION.fullmatch(name) and isinstance(holder, _Building | list | None):
        items = holder if isinstance(holder, _Building) else _Building(enumerate(holder or []))
        at = int(name)
        return cast("Json", _Building({**items, at: _with_value(items.get(at), inner, value)}))
    if isinstance(holder, dict | None) and not isinstance(holder, _Building):
        members: dict[str, Json] = holder or {}
        return {**members, name: _with_value(members.get(name), inner, value)}
    return cast("Json", holder)


def _closed(value: Json | _Building) -> Json:
    """Return a value whose lists are built: in the order of the positions, without gaps."""
    if isinstance(value, _Building):
        return [_closed(item) for _, item in sorted(value.items())]
    return {name: _closed(one) for name, one in value.items()} if isinstance(value, dict) else value


def _nest(place: str, value: Json) -> dict[str, Json]:
    """Return a value as an argument, or as a member of one."""
    name, _, member = place.partition(".")
    return {name: {member: value} if member else value}


def _merge(arguments: Mapping[str, Json], moved: Mapping[str, Json]) -> dict[str, Json]:
    """Return the arguments with those that were moved to them. A value that is already there is kept."""
    merged = {**moved, **arguments}
    for name in {"context", *NESTED} & moved.keys() & arguments.keys():
        own, more = arguments[name], moved[name]
        if isinstance(more, dict):
            merged[name] = {**more, **(own if isinstance(own, dict) else {})}
    return merged
