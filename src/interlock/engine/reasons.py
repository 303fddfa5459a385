"""One table from reason to blocker (locks 3): what was found, and what to send instead."""

import json
from collections.abc import Iterable, Mapping, Sequence

from interlock.decide.evaluate import Undecided
from interlock.define.declared import Misfit
from interlock.define.parts import EVIDENCE_ROOTS
from interlock.kernel.budgets import (
    BLOCKER_FIX_BYTES_MAX,
    BLOCKER_MESSAGE_BYTES_MAX,
    CONTEXT_KEY_BYTES_MAX,
    WALK_NODES_MAX,
)
from interlock.kernel.canonical import Json, JsonScalar
from interlock.kernel.text import one_line, truncated
from interlock.plan.records import LOOP_CONTROL_CONTRACT, NOTES_CONTRACT
from interlock.record.outcome import (
    Blocker,
    BlockerCode,
    BlockerPointer,
    Capability,
    CapabilityPointer,
    ContextBudgetPointer,
    ContextKeyPointer,
    OutputContractPointer,
    WorkflowStepPointer,
)

_USE_FRESH = " Use the tokens of this answer, not the earlier ones."
_WANTED_BYTES_MAX = 300
"""What is wanted may be a long list of choices."""
_KEPT = " What you sent besides is kept and need not be sent again."


def missing_notes(step_title: str) -> Blocker:
    """`contract_violation:missing_required_output` for a step whose evidence is its notes (D20)."""
    return _blocker(
        "MISSING_REQUIRED_OUTPUT",
        _contract(NOTES_CONTRACT),
        f"The step {step_title!r} needs notes, and none came: `output.notesMarkdown` was absent or empty.",
        "Do the step, then send the call of `nextCall` with `output.notesMarkdown` filled in: what you did and"
        " decided, what you produced (files, numbers), anything notable. 10 to 30 lines, this step only." + _USE_FRESH,
    )


def missing_artifact(ref: str, kind: str, sent: Sequence[str], examples: Iterable[Mapping[str, Json]]) -> Blocker:
    """`contract_violation:missing_required_output` for a step that needs an artifact."""
    found = f"found {', '.join(map(repr, sent))}" if sent else "no artifact came"
    return _blocker(
        "MISSING_REQUIRED_OUTPUT",
        _contract(ref),
        f"The step needs an artifact of kind `{kind}` ({ref}); {found}.",
        _example_words(examples) + _USE_FRESH,
    )


def invalid_artifact(ref: str, kind: str, fault: str, examples: Iterable[Mapping[str, Json]]) -> Blocker:
    """`contract_violation:invalid_required_output` for an artifact that breaks its contract."""
    return _blocker(
        "INVALID_REQUIRED_OUTPUT",
        _contract(ref),
        f"The artifact `{kind}` does not meet {ref}: {fault}.",
        "Correct exactly that and send the artifact again. " + _example_words(examples) + _USE_FRESH,
    )


def unmet_criteria(lacks: Sequence[str]) -> Blocker:
    """`contract_violation:invalid_required_output` for notes that do not meet the step's criteria."""
    return _blocker(
        "INVALID_REQUIRED_OUTPUT",
        _contract(NOTES_CONTRACT),
        f"The notes (`output.notesMarkdown`) are not enough: {'; '.join(lacks)}.",
        f"Do what is missing, then send the notes again, whole: {'; '.join(lacks)}." + _USE_FRESH,
    )


def follow_up(assessment: str, level: str, guidance: str) -> Blocker:
    """`contract_violation:invalid_required_output` for a rating that calls for more work."""
    return _blocker(
        "INVALID_REQUIRED_OUTPUT",
        _contract("wr.contracts.assessment"),
        f"The assessment {assessment!r} says {level!r}, which calls for more work first: {guidance}",
        f"{guidance} Then rate again and send the new assessment." + _USE_FRESH,
        {"assessmentId": assessment, "level": level},
    )


def missing_key(step_title: str, key: str) -> Blocker:
    """`contract_violation:missing_required_output` for a context key that a step must bring."""
    return _blocker(
        "MISSING_REQUIRED_OUTPUT",
        _key(key),
        f"The step {step_title!r} must set the context key {key!r}, and it is not set.",
        f"Send the call of `nextCall` with {_place(key)}." + _KEPT + _USE_FRESH,
    )


def unfit_key(step_title: str, key: str, source: str, unfit: Misfit) -> Blocker:
    """`contract_violation:invalid_required_output` for what a step would set and the declared key does not take.

    The pointer is where the value came from: that is what can be sent again.
    """
    wanted = one_line(unfit.wanted, _WANTED_BYTES_MAX)
    return _blocker(
        "INVALID_REQUIRED_OUTPUT",
        _key(source),
        f"The step {step_title!r} sets the context key {key!r} from {source!r}, which is {unfit.found}; {key!r} is"
        f" declared as {wanted}.",
        f"Send the call of `nextCall` with {_place(source)} ({wanted})." + _KEPT + _USE_FRESH,
        {"key": key, "found": unfit.found, "wanted": wanted},
    )


def undecided(found: Undecided, what: str) -> Blocker:
    """Refuse what leads to a decision that cannot be made (D22); `what` names the part of the plan."""
    if found.path is None:
        return _blocker(
            "MISSING_REQUIRED_OUTPUT",
            _contract(LOOP_CONTROL_CONTRACT),
            f"{what!r} turns on an artifact of kind `wr.loop_control`, and none for this loop came.",
            'Send {"kind": "wr.loop_control", "decision": "stop"} in `output.artifacts`, or "continue".' + _USE_FRESH,
        )
    is_missing = found.found == "not set"
    return _blocker(
        "MISSING_REQUIRED_OUTPUT" if is_missing else "INVALID_REQUIRED_OUTPUT",
        _key(found.path),
        f"{what!r} turns on the context key {found.path!r}, which is {found.found}; it needs {found.wanted}.",
        f"Send the call of `nextCall` with {_place(found.path)} ({found.wanted})." + _KEPT + _USE_FRESH,
    )


def loop_limit(loop_id: str, iteration: int, max_iterations: int) -> Blocker:
    """Refuse to go on with a loop whose passes are used up (D23, locks 9)."""
    return _blocker(
        "INVARIANT_VIOLATION",
        _contract(LOOP_CONTROL_CONTRACT),
        f"The loop {loop_id!r} had all its {max_iterations} passes; the artifact asks for one more.",
        f'Send {{"kind": "wr.loop_control", "loopId": "{loop_id}", "decision": "stop"}} in `output.artifacts`, and say'
        " in `summary` what is left undone." + _USE_FRESH,
        {"loopId": loop_id, "iteration": iteration, "maxIterations": max_iterations},
    )


def endless(node_id: str) -> Blocker:
    """Refuse what would resolve more of the plan in one go than any sensible workflow has."""
    return _blocker(
        "INVARIANT_VIOLATION",
        WorkflowStepPointer(kind="workflow_step", step_id=node_id),
        f"More than {WALK_NODES_MAX} parts of the plan would be passed over without asking anybody.",
        "Tell the user: the workflow's loops skip all their steps. Other context keys may lead elsewhere." + _USE_FRESH,
    )


def context_too_large(measured: int, maximum: int) -> Blocker:
    """Refuse an advance whose `set` actions would make the context too large."""
    return _blocker(
        "INVARIANT_VIOLATION",
        ContextBudgetPointer(kind="context_budget"),
        f"With what the step sets, the context would have {measured} bytes, at most {maximum}.",
        "Remove large keys from the context: send them as null." + _USE_FRESH,
    )


def capability_missing(capability: Capability, status: str) -> Blocker:
    """`capability_missing:*` for a capability that the workflow requires (locks 3)."""
    is_unknown = status == "unknown"
    return _blocker(
        "REQUIRED_CAPABILITY_UNKNOWN" if is_unknown else "REQUIRED_CAPABILITY_UNAVAILABLE",
        CapabilityPointer(kind="capability", capability=capability),
        f"The workflow requires the capability {capability!r}; the probe says it is {status}.",
        "Tell the user. Once it works, repeat the probe and send its result with status `available`." + _USE_FRESH,
    )


def _place(path: str) -> str:
    """Return where a context path is sent: a key by its name, a member within its whole key."""
    key, _, member = path.partition(".")
    if key in EVIDENCE_ROOTS:
        return f"the artifact in `output.artifacts` again, with {member!r} right"
    return f"`context` holding {key!r}" + (f" whole, with {member!r} in it" if member else "")


def _example_words(examples: Iterable[Mapping[str, Json]]) -> str:
    shown = ", ".join(json.dumps(example, ensure_ascii=False) for example in examples)
    return f"Put this into `output.artifacts`, with your own values: {shown}." if shown else "See the step's prompt."


def _contract(ref: str) -> OutputContractPointer:
    return OutputContractPointer(kind="output_contract", contract_ref=ref)


def _key(key: str) -> ContextKeyPointer:
    return ContextKeyPointer(kind="context_key", key=one_line(key, CONTEXT_KEY_BYTES_MAX))


def _blocker(
    code: BlockerCode,
    pointer: BlockerPointer,
    message: str,
    fix: str,
    details: dict[str, JsonScalar] | None = None,
) -> Blocker:
    fields: dict[str, object] = {} if details is None else {"details": details}
    return Blocker.model_validate(
        {
            "code": code,
            "pointer": pointer,
            "message": truncated(message, BLOCKER_MESSAGE_BYTES_MAX, "…"),
            "suggested_fix": truncated(fix, BLOCKER_FIX_BYTES_MAX, "…"),
            **fields,
        }
    )
