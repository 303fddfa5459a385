"""What an agent reads off an answer when its client shows it one channel and nothing else."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from tests.support.shown import shown_calls

from interlock.testing.harness import ToolResult

Channel: TypeAlias = Literal["structure", "text"]

_PLACE = re.compile(r" · step (\d+) of \d+(?:, pass (\d+) of at most \d+)?: ([^·\n]*)")
_LABEL = re.compile(r" · run `([^`]+)`")
_CANDIDATE = re.compile(r"^\d+\. (\*\*.*?) \(`.*?call `(\w+)`:\n```json\n(.*?)\n```", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One call that an answer shows, ready to fill in."""

    tool: str
    arguments: Mapping[str, Any]
    fill: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one channel of an answer says.

    `label` is of the run that it names, `place` the number of the step and the pass, `call` what to send next, `found`
    the runs of a search by their titles.
    """

    label: str | None = None
    place: tuple[int, int | None] | None = None
    title: str = ""
    prompt: str = ""
    refusal: str = ""
    call: Shown | None = None
    found: tuple[tuple[str, Shown], ...] = ()
    is_error: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to do."""
        return self.call is None and not self.is_error

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments of the call to send next."""
        return self.call.arguments if self.call is not None else {}

    @property
    def wants(self) -> str:
        """All that says what is asked for."""
        return f"{self.prompt}\n{self.refusal}"


def read(answer: ToolResult, channel: Channel) -> Reading:
    """Return what a channel says. The other is not looked at, nor whether both say the same."""
    if channel == "structure":
        return _of_refused(answer.structure) if answer.is_error else _of_structure(answer.structure)
    return _of_text(answer.text, is_error=answer.is_error)


def _of_refused(structure: Mapping[str, Any]) -> Reading:
    call = structure.get("details", {}).get("correctedCall")
    return Reading(refusal=_said(structure), call=_shown(call), is_error=True)


def _said(structure: Mapping[str, Any]) -> str:
    return f"{structure['message']} {structure['suggestion']}"


def _of_structure(structure: Mapping[str, Any]) -> Reading:
    run = cast("Mapping[str, Any]", structure.get("run", {}))
    pending = cast("Mapping[str, Any]", structure.get("pending") or {})
    step = run.get("step")
    blockers = cast("list[Mapping[str, Any]]", structure.get("blockers", []))
    return Reading(
        label=run.get("label"),
        place=(step["number"], step.get("pass")) if step else None,
        title=pending.get("title", ""),
        prompt=pending.get("prompt", ""),
        refusal="\n".join(f"{blocker['message']} {blocker.get('suggestedFix', '')}" for blocker in blockers),
        call=_shown(structure.get("nextCall")),
        found=tuple((one["title"], _called(one["nextCall"])) for one in structure.get("candidates", ())),
    )


def _called(call: Mapping[str, Any]) -> Shown:
    return Shown(tool=call["tool"], arguments=call["arguments"], fill=tuple(call["fill"]))


def _shown(call: Mapping[str, Any] | None) -> Shown | None:
    return None if call is None else _called(call)


def _last_in_text(text: str) -> Shown | None:
    """Return the last call that a text shows."""
    shown = shown_calls(text)
    if not shown:
        return None
    tool, arguments, fill = shown[-1]
    return Shown(tool=tool, arguments=arguments, fill=tuple(fill))


def _of_text(text: str, *, is_error: bool) -> Reading:
    head, _, body = text.partition("\n")
    if is_error:
        return Reading(refusal=text, call=_last_in_text(text), is_error=True)
    found = tuple(
        (title, Shown(tool=tool, arguments=json.loads(arguments)))
        for title, tool, arguments in _CANDIDATE.findall(text)
    )
    label, place = _LABEL.search(head), _PLACE.search(head)
    return Reading(
        label=label[1] if label else None,
        place=(int(place[1]), int(place[2]) if place[2] else None) if place else None,
        title=place[3].strip(" `") if place else "",
        prompt=body,
        refusal=body.partition("**Not accepted yet**")[2].partition("\n\n")[0],
        call=None if found else _last_in_text(text),
        found=found,
    )
