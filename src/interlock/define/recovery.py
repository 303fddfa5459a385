"""Recovery from faults of form: removes the faulty parts, so that the rest of the document can still be checked."""

import copy
import re
from collections.abc import Iterable, Mapping
from typing import cast

from interlock.define.diagnostics import Diagnostic
from interlock.define.faults import make_safe_id
from interlock.kernel.canonical import Json

_TOKEN = re.compile(r"[^.\[\]]+|\[\d+\]")
_STEP_ID = re.compile(r"\b(steps|body|otherwise)\[\d+\]\.(id|loopId)\Z")
_STEP_LISTS = frozenset({"steps", "body", "otherwise"})


def recover_document(
    value: Mapping[str, Json], faults: Iterable[Diagnostic], required: Mapping[str, Json]
) -> dict[str, Json]:
    """Return a copy of a document without its faulty parts.

    A step whose id has a fault receives a valid one. A step with another fault is replaced by a stand-in. Any other
    top-level key with a fault is removed.

    Args:
        value: The document that the author wrote.
        faults: The faults of its form.
        required: Values for required keys that are missing or were removed.
    """
    whole = copy.deepcopy(dict(value))
    for found in faults:
        _remove_fault(whole, found.path)
    return whole | {key: given for key, given in required.items() if key not in whole}


def is_step_id(path: str) -> bool:
    """Say whether a path is that of a step's id: a fault there says nothing about what the step contains (PLAN-19)."""
    return _STEP_ID.search(path) is not None


def _remove_fault(whole: dict[str, Json], path: str) -> None:
    """Repair the innermost step on the path to a fault. If there is none, remove the top-level key of the path."""
    tokens = _TOKEN.findall(path)
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
        found = items[at]
        if is_step_id(path) and isinstance(found, dict):
            key = path.rpartition(".")[2]
            found[key] = make_safe_id(str(found.get(key)))
        else:
            items[at] = _build_stand_in(found)
    elif tokens:
        whole.pop(tokens[0], None)


def _build_stand_in(step: Json) -> Json:
    """Build a valid step to replace a faulty one. It keeps the id and the loop control that other parts refer to."""
    members = step if isinstance(step, dict) else {}
    kept: dict[str, Json] = {
        "id": make_safe_id(str(members.get("id") or members.get("loopId"))),
        "title": "-",
        "prompt": "-",
    }
    contract = members.get("outputContract")
    if isinstance(contract, dict) and contract.get("contractRef") == "wr.contracts.loop_control":
        # A loop may depend on this step to decide whether it continues.
        kept["outputContract"] = {"contractRef": "wr.contracts.loop_control"}
    return kept
