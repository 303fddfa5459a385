"""A document with faults of form, mended so that what is left of it can still be judged: every fault in one pass."""

import copy
import re
from collections.abc import Iterable, Mapping
from typing import cast

from interlock.define.diagnostics import Diagnostic
from interlock.define.faults import make_safe_id
from interlock.kernel.canonical import Json

_TOKEN = re.compile(r"[^.\[\]]+|\[\d+\]")
_STEP_LISTS = frozenset({"steps", "body", "otherwise"})


def recover_document(
    value: Mapping[str, Json], faults: Iterable[Diagnostic], required: Mapping[str, Json]
) -> dict[str, Json]:
    """Return a document without what is at fault: a step with a fault becomes a stand-in, another key goes.

    Args:
        value: The document as it was written.
        faults: What its form refused.
        required: What stands for required keys of the document that are missing or at fault.
    """
    whole = copy.deepcopy(dict(value))
    for found in faults:
        _remove_fault(whole, _TOKEN.findall(found.path))
    return whole | {key: given for key, given in required.items() if key not in whole}


def _remove_fault(whole: dict[str, Json], tokens: list[str]) -> None:
    """Replace the innermost step on the way to a fault, or else remove the key of the document that leads to it."""
    holder: object = whole
    step: tuple[list[Json], int] | None = None
    before = ""
    for token in tokens:
        if token.startswith("["):
            at = int(token[1:-1])
            if not isinstance(holder, list) or at >= len(cast("list[Json]", holder)):
                break
            items = cast("list[Json]", holder)
            if before in _STEP_LISTS:
                step = (items, at)
            holder = items[at]
        elif isinstance(holder, dict):
            holder = cast("dict[str, object]", holder).get(token)
        else:
            break
        before = token
    if step is not None:
        items, at = step
        items[at] = _build_stand_in(items[at])
    elif tokens:
        whole.pop(tokens[0], None)


def _build_stand_in(step: Json) -> Json:
    """Return a lawful step in the place of one at fault, with what others may refer to."""
    members = step if isinstance(step, dict) else {}
    kept: dict[str, Json] = {
        "id": make_safe_id(str(members.get("id") or members.get("loopId"))),
        "title": "-",
        "prompt": "-",
    }
    contract = members.get("outputContract")
    if isinstance(contract, dict) and contract.get("contractRef") == "wr.contracts.loop_control":
        # A loop may turn on it.
        kept["outputContract"] = {"contractRef": "wr.contracts.loop_control"}
    return kept
