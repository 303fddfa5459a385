"""Limits of the context that callers send: size, depth, keys and numbers (CTX-4), and keys that steps set (CTX-11)."""

from collections.abc import Iterator, Mapping
from typing import cast

from interlock.engine.request import repeat_blank
from interlock.kernel.blanks import Blank
from interlock.kernel.budgets import (
    CONTEXT_BYTES_MAX,
    CONTEXT_DEPTH_MAX,
    CONTEXT_KEY_BYTES_MAX,
    ECHO_BYTES_MAX,
    GOAL_BYTES_MAX,
    PATH_BYTES_MAX,
    WORDS_BYTES_MAX,
)
from interlock.kernel.canonical import (
    Json,
    NotCanonicalError,
    canonical_bytes,
    members_of,
    nests_deeper_than,
)
from interlock.kernel.errors import Correction, ErrorCode, Refusal
from interlock.kernel.text import has_surrogate, one_line, utf8_bytes
from interlock.plan.compiled import CompiledWorkflow
from interlock.record.context import RESERVED_KEYS, merge_context
from interlock.record.outcome import BlockerReport, ContextKeyPointer
from interlock.record.snapshot import Complete, Running

_METHOD = "UTF-8 bytes of the canonical JSON (RFC 8785) of the merged context"
_AROUND = "<>`*\"'.: \n"
"""What may be around the words of a blank that were sent back."""
_ASK_AGAIN = Correction(instead={"context": Blank(what="your context, corrected", shape="object")})
"""The correction of a context with a fault inside. Without it, the call would do without the rest of the context."""


def context_refusal(base: Mapping[str, Json], delta: Mapping[str, Json]) -> Refusal | None:
    """Return why a context delta is refused on top of a branch's context, or None if it is not."""
    if not delta:
        return None
    for key, value in delta.items():
        refusal = _key_refusal(key) or _value_refusal(key, value)
        if refusal is not None:
            return refusal
    try:
        canonical_bytes(dict(delta))
        measured = len(canonical_bytes(dict(merge_context(base, delta))))
    except NotCanonicalError as error:
        path = f"context.{error.path}" if error.path else "context"
        return _refusal(path, f"`{path}` holds {error.found}.", "Send it as text.")
    if measured > CONTEXT_BYTES_MAX:
        return Refusal(
            code=ErrorCode.VALIDATION_ERROR,
            message=f"`context` is too large: {measured} bytes, at most {CONTEXT_BYTES_MAX} ({_METHOD}).",
            suggestion="Instead of documents and lists, pass references (paths, ids, links). To remove a key, send it"
            " as null.",
            details={"path": "context", "measuredBytes": measured, "maxBytes": CONTEXT_BYTES_MAX, "method": _METHOD},
            correction=_ASK_AGAIN,
        )
    return None


def fixed_keys(workflow: CompiledWorkflow, base: Mapping[str, Json]) -> frozenset[str]:
    """Return the keys that reports on a branch with this context cannot change freely: the goal, and what steps set."""
    return frozenset((*workflow.set_by, *({"goal"} & base.keys())))


def set_key_refusal(
    workflow: CompiledWorkflow,
    state: Running | Complete,
    base: Mapping[str, Json],
    delta: Mapping[str, Json],
    blockers: BlockerReport | None,
) -> Refusal | None:
    """Return why a report may not change the goal, or a key that a step sets; None if it changes none (CTX-6, CTX-11).

    It may if the pending step produces the key, or if the last attempt was refused because the key is missing.
    """
    if not isinstance(state, Running):
        return None
    task = workflow.steps[state.pending.step.step_id].task
    assert task is not None, "a pending step is a task"
    pointers = [one.pointer for one in blockers.blockers] if blockers is not None else []
    asked = {pointer.key.partition(".")[0] for pointer in pointers if isinstance(pointer, ContextKeyPointer)}
    free = {*task.produces, *asked}
    fixed = fixed_keys(workflow, base) - free
    wrong = [key for key in delta if key in fixed and delta[key] != base.get(key)]
    if not wrong:
        return None
    key = wrong[0]
    if key in workflow.set_by:
        steps = ", ".join(f"`{step_id}`" for step_id in workflow.set_by[key])
        message = f"`context.{key}` cannot be sent here: the workflow sets it itself when a step is done ({steps})."
    else:
        message = f"`context.{key}` cannot be changed: it is the goal of the run."
    rest: dict[str, Json] = {name: value for name, value in delta.items() if name not in wrong}
    return Refusal(
        code=ErrorCode.VALIDATION_ERROR,
        message=one_line(message, WORDS_BYTES_MAX),
        suggestion=f"Call again without `context.{one_line(key, ECHO_BYTES_MAX)}`. Nothing was recorded.",
        details={"path": one_line(f"context.{key}", PATH_BYTES_MAX)},
        correction=Correction(instead={"context": rest or None}),
    )


def _key_refusal(key: str) -> Refusal | None:
    shown = one_line(key, ECHO_BYTES_MAX)
    if has_surrogate(key):
        return _refusal("context", f"A context key ({shown!r}) holds a lone surrogate.", "Send valid Unicode text.")
    if key in RESERVED_KEYS:
        return _refusal(f"context.{key}", f"The context key {key!r} is reserved.", "Give the key another name.")
    if not 0 < utf8_bytes(key) <= CONTEXT_KEY_BYTES_MAX:
        fix = "Shorten the key." if key else "Give the value a name."
        return _refusal("context", f"A context key ({shown!r}) is empty or over {CONTEXT_KEY_BYTES_MAX} bytes.", fix)
    return None


def _value_refusal(key: str, value: Json) -> Refusal | None:
    if nests_deeper_than(value, CONTEXT_DEPTH_MAX):
        return _refusal(
            f"context.{key}",
            f"`context.{key}` nests deeper than {CONTEXT_DEPTH_MAX} levels.",
            "Flatten it, or pass a reference to it.",
        )
    if _holds_reserved(value):
        return _refusal(f"context.{key}", f"`context.{key}` holds a reserved key.", "Rename it.")
    if isinstance(value, str) and value.strip(_AROUND).casefold() == (repeat_blank(key).what or "").casefold():
        return _refusal(f"context.{key}", f"`context.{key}` is sample text, not a value.", "Send the value itself.")
    if key == "goal" and value is not None and not isinstance(value, str):
        return _refusal("context.goal", "`context.goal` is no text.", "Send the goal as text, or leave it out.")
    if key == "goal" and isinstance(value, str) and utf8_bytes(value) > GOAL_BYTES_MAX:
        return Refusal(
            code=ErrorCode.VALIDATION_ERROR,
            message=f"The goal has {utf8_bytes(value)} bytes, at most {GOAL_BYTES_MAX}.",
            suggestion="State the goal in a sentence or a paragraph; pass longer material by reference.",
            details={"path": "goal", "measuredBytes": utf8_bytes(value), "maxBytes": GOAL_BYTES_MAX},
        )
    return None


def _everything_in(value: object) -> Iterator[object]:
    """Yield a JSON value and everything inside it."""
    stack: list[object] = [value]
    while stack:
        item = stack.pop()
        yield item
        stack.extend(members_of(item))


def _holds_reserved(value: object) -> bool:
    return any(
        not RESERVED_KEYS.isdisjoint(cast("Mapping[str, object]", item))
        for item in _everything_in(value)
        if isinstance(item, Mapping)
    )


def _refusal(path: str, message: str, suggestion: str) -> Refusal:
    return Refusal(
        code=ErrorCode.VALIDATION_ERROR,
        message=one_line(message, WORDS_BYTES_MAX),
        suggestion=suggestion,
        details={"path": one_line(path, PATH_BYTES_MAX)},
        correction=_ASK_AGAIN,
    )
