"""Violations with their messages: what was found, and what to send instead (MODE-1).

Each docstring begins with the category and detail of its row in `violations.REASONS`.
"""

from collections.abc import Iterable, Mapping, Sequence

from interlock.decide.evaluate import CONTEXT_SOURCE, EVIDENCE_ROOTS, NOT_SET, Undecided
from interlock.decide.evaluation_pass import PassAborted
from interlock.define.declared import TypeMismatch
from interlock.engine.gates import QuestionItem
from interlock.engine.judge.shape import outline_notation
from interlock.engine.judge.violations import Violation
from interlock.kernel.blanks import Outline
from interlock.kernel.budgets import (
    AUTHORED_BYTES_MAX,
    AUTHORED_SHARE_BYTES_MAX,
    CONTEXT_KEY_BYTES_MAX,
    WANTED_BYTES_MAX,
)
from interlock.kernel.budgets.workflow import WALK_NODES_MAX
from interlock.kernel.canonical import Json, JsonScalar
from interlock.kernel.frozen import replace
from interlock.kernel.text import flat, one_line, truncated
from interlock.plan.records import LOOP_CONTROL_CONTRACT, NOTES_CONTRACT
from interlock.record.outcome import (
    BlockerPointer,
    Capability,
    CapabilityPointer,
    ContextBudgetPointer,
    ContextKeyPointer,
    OutputContractPointer,
    WorkflowStepPointer,
)
from interlock.record.payloads import GapDetail
from interlock.record.world import APPROVAL, check_end

_USE_FRESH = " Use the tokens of this answer, not the earlier ones."
_KEPT = " The other parts that you sent are kept."
_CORRECT_READ = (
    "Correct the context values that it reads. If they are correct, report to the user that the workflow is wrong."
)


NOTES_FIX = (
    "Do the step now. Then make the call that this answer shows, with its result as `output.notesMarkdown`: the text"
    " that was asked for, or what you did, found and decided (files, numbers). 10 to 30 lines, this step only."
)
OWN_WORDS_FIX = (
    "Do the step now, and send its result: the text that was asked for, or what you did, found and decided. A sentence"
    " of the prompt or of this answer is no result."
)


def missing_notes(step_title: str) -> Violation:
    """`contract_violation:missing_required_output` for a step whose evidence is its notes (BLK-1)."""
    return _finding(
        "missing_required_output",
        _contract(NOTES_CONTRACT),
        f"The step {_quoted(step_title)} needs notes: `output.notesMarkdown` is missing, empty, or sample text.",
        NOTES_FIX + _USE_FRESH,
    )


def missing_artifact(
    ref: str,
    kind: str,
    sent: Sequence[str],
    outlines: Iterable[Mapping[str, Outline]],
    details: dict[str, JsonScalar] | None = None,
) -> Violation:
    """`contract_violation:missing_required_output` for a step that needs an artifact.

    `details` distinguish it from other missing artifacts of the same contract.
    """
    found = f"found {_share(', '.join(map(repr, sent)))}" if sent else "no artifact was sent"
    return _finding(
        "missing_required_output",
        _contract(ref),
        f"The step needs an artifact of kind `{kind}` ({ref}); {found}.",
        _shape_words(outlines) + _USE_FRESH,
        details,
    )


def invalid_artifact(
    ref: str,
    kind: str,
    fault: str,
    outlines: Iterable[Mapping[str, Outline]],
    details: dict[str, JsonScalar] | None = None,
) -> Violation:
    """`contract_violation:invalid_required_output` for an artifact that breaks its contract; `details` as above."""
    return _finding(
        "invalid_required_output",
        _contract(ref),
        f"The artifact `{kind}` does not meet {ref}: {truncated(flat(fault), AUTHORED_BYTES_MAX)}.",
        "Correct this and send the artifact again. " + _shape_words(outlines) + _USE_FRESH,
        details,
    )


def copied_notes(found: str) -> Violation:
    """`contract_violation:invalid_required_output` for notes that are no account of work; `found` says why."""
    return _finding(
        "invalid_required_output",
        _contract(NOTES_CONTRACT),
        f"The notes (`output.notesMarkdown`) {found}.",
        OWN_WORDS_FIX + _USE_FRESH,
    )


def notes_sent_again(step_title: str) -> Violation:
    """`contract_violation:invalid_required_output` for notes that an earlier step was reported with."""
    return _finding(
        "invalid_required_output",
        _contract(NOTES_CONTRACT),
        f"The notes (`output.notesMarkdown`) of the step {_quoted(step_title)} are those of the step before.",
        "That text is recorded already. Write another one: only the result of this step. If you send the"
        " same text again, it is accepted, and the run has a gap." + _USE_FRESH,
    )


def unmet_criteria(lacks: Sequence[str]) -> Violation:
    """`contract_violation:invalid_required_output` for notes that do not meet the step's criteria."""
    words = "; ".join(map(_share, lacks))
    return _finding(
        "invalid_required_output",
        _contract(NOTES_CONTRACT),
        f"The notes (`output.notesMarkdown`) are not enough: {truncated(words, AUTHORED_BYTES_MAX)}.",
        "Do what is missing, then send the complete notes again. The same notes are refused again." + _USE_FRESH,
    )


def invalid_divergence(ref: str, kind: str, fault: str, outline: Mapping[str, Outline]) -> Violation:
    """`contract_violation:invalid_required_output` for a deviation that breaks its contract. It may be left out."""
    return _finding(
        "invalid_required_output",
        _contract(ref),
        f"The artifact `{kind}` does not meet {ref}: {_share(fault)}.",
        f"Leave it out: it was not kept, and the step does not need it. Only if you deviated from the step: "
        f"{_shape_words((outline,))}" + _USE_FRESH,
    )


def follow_up(assessment: str, level: str, guidance: str) -> Violation:
    """`contract_violation:invalid_required_output` for a rating that requires more work."""
    short = _share(guidance)
    work = "Do that work." if short == flat(guidance) else truncated(guidance, 2 * AUTHORED_BYTES_MAX)
    return _finding(
        "invalid_required_output",
        _contract("wr.contracts.assessment"),
        f"The assessment {_quoted(assessment)} has the level {_quoted(level)}, which requires more work first: {short}",
        f"{work} Then rate again and send the new assessment." + _USE_FRESH,
        {"assessmentId": assessment, "level": level},
    )


def missing_key(step_title: str, key: str, does: str = "must set") -> Violation:
    """`contract_violation:missing_required_output` for a context key that a step must set, or that it reads."""
    return _finding(
        "missing_required_output",
        _key(key),
        f"The step {_quoted(step_title)} {does} the context key {_named(key)!r}, which is not set.",
        f"Make the call that this answer shows with {_place(key)}." + _KEPT + _USE_FRESH,
        _of_context(key) or None,
    )


def unfit_value(step_title: str, key: str, mismatch: TypeMismatch) -> Violation:
    """`contract_violation:invalid_required_output` for a sent value that its declaration does not allow (CTX-12)."""
    wanted = one_line(mismatch.wanted, WANTED_BYTES_MAX)
    return _finding(
        "invalid_required_output",
        _key(key),
        f"The context key {_named(key)!r}, sent for the step {_quoted(step_title)}, is {_share(mismatch.found)}; it is"
        f" declared as {wanted}.",
        f"Make the call that this answer shows with {_place(key)} ({wanted}). The value that you sent was not taken."
        + _KEPT
        + _USE_FRESH,
        {"found": _share(mismatch.found), "wanted": wanted, **_of_context(key)},
    )


def unfit_key(step_title: str, key: str, source: str, why: Undecided) -> Violation:
    """`contract_violation:invalid_required_output` for a value that does not fit the type of the declared key.

    The pointer names the source of the value, because that is what can be sent again.
    """
    wanted = one_line(why.expected, WANTED_BYTES_MAX)
    return _finding(
        "invalid_required_output",
        _key(source),
        f"The step {_share(step_title)!r} sets the context key {_named(key)!r} from {_named(source)!r}, which is"
        f" {why.found}; {_named(key)!r} is declared as {wanted}.",
        f"Make the call that this answer shows with {_source_place(source)} ({wanted})." + _KEPT + _USE_FRESH,
        {"key": key, "found": why.found, "wanted": wanted},
    )


def unfit_computed(step_id: str, key: str, why: Undecided) -> Violation:
    """`contract_violation:invalid_required_output` for a computed value that does not fit the declared key."""
    wanted = one_line(why.expected, WANTED_BYTES_MAX)
    return _finding(
        "invalid_required_output",
        _step(step_id),
        f"The step sets the context key {_named(key)!r} to a computed value, which is {why.found}; {_named(key)!r} is"
        f" declared as {wanted}.",
        _CORRECT_READ + _USE_FRESH,
        {"key": key, "found": why.found, "wanted": wanted},
    )


def unfit_intent(step_id: str, sends: str, why: Undecided) -> Violation:
    """`contract_violation:invalid_required_output` for a field of an intent that cannot be sent (WORLD-5)."""
    return _finding(
        "invalid_required_output",
        WorkflowStepPointer(step_id=step_id),
        f"The step sends `{sends}`, but found {_share(why.found)}; expected {why.expected}.",
        "Correct the context values or the evidence that the fields read. If they are correct, report to the user that"
        " the workflow is wrong." + _USE_FRESH,
        {"sends": sends, "found": _share(why.found), "wanted": why.expected},
    )


def expired(step_id: str, event: str) -> Violation:
    """`contract_violation:missing_required_output` for an event that did not come in time (WORLD-4)."""
    return _finding(
        "missing_required_output",
        WorkflowStepPointer(step_id=step_id),
        f"The event `{event}` did not arrive before the timeout of its step.",
        "Find out why it did not arrive. Redo the step before it on a new branch to wait again.",
        {"event": event},
    )


def check_failed(step_id: str, check: str, fields: Mapping[str, Json]) -> Violation:
    """`contract_violation:invalid_required_output` for a check that did not pass (CHECK-4)."""
    return _finding(
        "invalid_required_output",
        WorkflowStepPointer(step_id=step_id),
        f"The check `{check}` did not pass: {check_end(fields)}.",
        "Correct what it checks. Redo the step before it on a new branch to run it again.",
        {"check": check},
    )


def not_approved(step_id: str, question: str, fields: Mapping[str, Json]) -> Violation:
    """`contract_violation:missing_required_output` for a question that nobody approved (APPR-3)."""
    return _finding(
        "missing_required_output",
        WorkflowStepPointer(step_id=step_id),
        f"The question {_share(question)!r} was not approved; the run took {fields.get('choice')!r}.",
        "Ask the user. Redo the step before it on a new branch to ask again.",
        {"event": APPROVAL},
    )


def undecided(found: Undecided, what: str, *, is_of_step: bool = False) -> Violation:
    """`contract_violation:*` for a condition that cannot be decided (WALK-4); `what` is the title of its decision.

    Only what a step itself decides (`is_of_step`) can read its evidence; everything else reads the context.
    """
    if found.path is None:
        return _finding(
            "missing_required_output",
            _contract(LOOP_CONTROL_CONTRACT),
            f"{_quoted(what)} depends on an artifact of kind `wr.loop_control`; none was sent for this loop.",
            'Send {"kind": "wr.loop_control", "decision": "stop"}, or "continue", in `output.artifacts`.' + _USE_FRESH,
        )
    place = _source_place(found.path) if is_of_step else _place(found.path)
    fix = f"Make the call that this answer shows with {place} ({found.expected})." + _KEPT
    lack = _undecided(found, what, _key(found.path), fix)
    return lack if is_of_step else replace(lack, details={**(lack.details or {}), **_of_context(found.path)})


def undecided_set(found: Undecided, what: str, step_id: str, source: Undecided | None) -> Violation:
    """`contract_violation:*` for a decision on a key that the step itself sets: to send the key changes nothing.

    `source` is what the key was set from; None if that is a constant or computed.
    """
    if source is None or source.path is None:
        lack, origin = _undecided(found, what, _step(step_id), _CORRECT_READ), "this key itself"
    else:
        fix = f"Make the call that this answer shows with {_source_place(source.path)} ({source.expected})." + _KEPT
        lack, origin = _undecided(found, what, _key(source.path), fix), f"it from {_named(source.path)!r}"
    return replace(lack, message=f"{lack.message} The pending step sets {origin}.")


def _undecided(found: Undecided, what: str, pointer: BlockerPointer, fix: str) -> Violation:
    return _finding(
        "missing_required_output" if found.found == NOT_SET else "invalid_required_output",
        pointer,
        f"{_quoted(what)} depends on the context key {_named(found.path or '')!r}, which is {found.found}; it needs"
        f" {found.expected}.",
        fix + _USE_FRESH,
        {"found": found.found, "wanted": one_line(found.expected, WANTED_BYTES_MAX)},
    )


def loop_limit(loop_id: str, iteration: int, max_iterations: int) -> Violation:
    """`unexpected:invariant_violation` for one more pass of a loop whose passes are used up (WALK-7)."""
    return _finding(
        "invariant_violation",
        _contract(LOOP_CONTROL_CONTRACT),
        f"The loop {loop_id!r} has used all its {max_iterations} passes; the artifact asks for one more.",
        f'Send {{"kind": "wr.loop_control", "loopId": "{loop_id}", "decision": "stop"}} in `output.artifacts`, and say'
        " in `summary` what is left undone." + _USE_FRESH,
        {"loopId": loop_id, "iteration": iteration, "maxIterations": max_iterations},
    )


def aborted(step_id: str, failed: PassAborted) -> Violation:
    """`unexpected:invariant_violation` for a condition or a value whose computation failed: its pass has no effect."""
    name = _named(failed.name)
    what, detail = ("value of the context key", "key") if failed.is_value else ("condition", "conditionId")
    return _finding(
        "invariant_violation",
        _step(step_id),
        f"The {what} {name!r} could not be computed: found {failed.found}, expected"
        f" {failed.expected}. Nothing that you sent was applied.",
        _CORRECT_READ + _USE_FRESH,
        {detail: name},
    )


def endless(node_id: str) -> Violation:
    """`unexpected:invariant_violation` for a walk over more than `WALK_NODES_MAX` nodes: the workflow is wrong."""
    return _finding(
        "invariant_violation",
        _step(node_id),
        f"The run would skip more than {WALK_NODES_MAX} parts of the plan without reaching a step.",
        "Report to the user: the workflow's loops skip all their steps. Other context values may change that."
        + _USE_FRESH,
    )


def context_too_large(measured: int, maximum: int) -> Violation:
    """`unexpected:invariant_violation` for `set` actions that would make the context too large."""
    return _finding(
        "invariant_violation",
        ContextBudgetPointer(),
        f"The values that the step sets would make the context {measured} bytes; the limit is {maximum}.",
        "Remove large keys from the context: send them as null." + _USE_FRESH,
    )


def capability_missing(capability: Capability, status: str) -> Violation:
    """`capability_missing:*` for a capability that the workflow requires (MODE-1)."""
    is_unknown = status == "unknown"
    return _finding(
        "required_capability_unknown" if is_unknown else "required_capability_unavailable",
        CapabilityPointer(capability=capability),
        f"The workflow requires the capability {capability!r}; the probe says it is {status}.",
        "Report this to the user. When the capability works, repeat the probe and send its result: status `available`."
        + _USE_FRESH,
    )


def needs_user(step_id: str, number: int, ask: QuestionItem, *, unheard: str | None = None) -> Violation:
    """`user_only_dependency:*` for a missing answer of a person; `unheard` says why they gave none."""
    words = f" {_share(unheard)}" if unheard else ""
    fix = "Ask the user. After they answer, make the call that this answer shows."
    if unheard:
        fix = (
            "Stop and report the question to the user. Do not repeat the call now. When the user is ready to answer,"
            " make the call that this answer shows."
        )
    return _finding(
        ask.reason,
        _step(step_id),
        f"This step still needs the user's {ask.subject}. Ask: {_share(ask.ask)}{words}",
        fix,
        _ask_details(number, ask),
    )


def not_asked(step_id: str, number: int, ask: QuestionItem) -> Violation:
    """`user_only_dependency:*` in a run that never stops: what the agent decided in the user's place (MODE-8)."""
    return _finding(
        ask.reason,
        _step(step_id),
        f"The run continued without the user's {ask.subject}. The question, which was not asked: {_share(ask.ask)}",
        "Redo the step on a new branch once the user has answered.",
        _ask_details(number, ask),
    )


def declined(step_id: str, ask: QuestionItem, client: str, words: str | None) -> Violation:
    """`user_only_dependency:needs_user_approval`: a person was asked and said no (GATE-4)."""
    comment = f" They said: {_share(words)}" if words else ""
    return _finding(
        "needs_user_approval",
        _step(step_id),
        f"The user was asked (through {_named(client)}) and declined: {_share(ask.ask)}{comment}",
        "Ask the user what to change, and do it. Then make the call that this answer shows; the user is asked again."
        + _USE_FRESH,
    )


def corrupted(where: str, found: str) -> Violation:
    """`unexpected:storage_corruption_detected` for stored data that is damaged.

    It is only answered, and never appended to the damaged log of the session (MODE-6). Its step is `unknown`, because
    the data that names the step is damaged.
    """
    return _finding(
        "storage_corruption_detected",
        _step("unknown"),
        f"The stored data of this run is damaged ({_share(where)}: {_share(found)}), so the run cannot continue.",
        "Report this to the user. To continue the work, start a new run with `start_workflow`.",
    )


def claimed(step_id: str, confirmed_by: str, statement: str) -> Violation:
    """`user_only_dependency:needs_user_approval` that rests on the agent's own word (GATE-6)."""
    return _finding(
        "needs_user_approval",
        _step(step_id),
        f"The agent claims that {_share(confirmed_by)} confirmed: {_share(statement)}",
        "If this is true, confirm it to the agent. If not, redo the step on a new branch.",
        {"claim": True},
    )


def claimed_by_form(step_id: str, client: str) -> Violation:
    """`user_only_dependency:needs_user_approval` that rests on the form of a client of unknown origin (WORLD-9)."""
    return _finding(
        "needs_user_approval",
        _step(step_id),
        f"The client {_share(client)} says that the user answered yes; an agent may have started that client.",
        "If this is true, confirm it to the agent. If not, redo the step on a new branch.",
        {"claim": True},
    )


def overruled(step_id: str, kind: str, word: str) -> Violation:
    """`user_only_dependency:needs_user_approval`: only a claim accepts a failed verdict (MODE-13)."""
    return _finding(
        "needs_user_approval",
        _step(step_id),
        f"The run ends with the verdict {_named(word)} of {_named(kind)}; that a person accepted it is only claimed.",
        "Read the verdict and decide. If the work must continue, redo the step on a new branch.",
        {"artifact": kind, "verdict": word},
    )


def _ask_details(number: int, ask: QuestionItem) -> dict[str, JsonScalar]:
    details: dict[str, JsonScalar] = {"ask": number}
    return details | {"choiceKind": ask.choice_kind} if ask.choice_kind else details


def _place(path: str) -> str:
    """Return where to send a context path: a key by its name, a member as part of its whole key."""
    key, _, member = path.partition(".")
    return f"{_named(key)!r} in `context`" + (f", whole and including {_named(member)!r}" if member else "")


def _source_place(path: str) -> str:
    """Return where to send what a step reads of a path: its evidence, or the context."""
    root, _, member = path.partition(".")
    again = f"the artifact in `output.artifacts` again, with a correct {_named(member)!r}"
    return again if root in EVIDENCE_ROOTS else _place(path)


def _of_context(path: str) -> dict[str, JsonScalar]:
    return {"source": CONTEXT_SOURCE} if path.partition(".")[0] in EVIDENCE_ROOTS else {}


def _shape_words(outlines: Iterable[Mapping[str, Outline]]) -> str:
    shown = ", ".join(map(outline_notation, outlines))
    if not shown:
        return "The step's prompt says what to send."
    return f"Write the artifact yourself, in `output.artifacts`: {truncated(shown, 2 * AUTHORED_BYTES_MAX)}."


def _share(text: str) -> str:
    """Return authored or submitted text on one line, cut to its share of a message (MODE-3)."""
    return truncated(flat(text), AUTHORED_SHARE_BYTES_MAX)


def _quoted(text: str) -> str:
    """Return such a text in quotes, cut to its share after quoting."""
    return _share(repr(text))


def _named(key: str) -> str:
    """Return a key for a message; a blank one in quotes."""
    return one_line(key, CONTEXT_KEY_BYTES_MAX) or repr(key)


def _contract(ref: str) -> OutputContractPointer:
    return OutputContractPointer(contract_ref=ref)


def _step(step_id: str) -> WorkflowStepPointer:
    return WorkflowStepPointer(step_id=step_id)


def _key(key: str) -> ContextKeyPointer:
    return ContextKeyPointer(key=_named(key))


def _finding(
    detail: GapDetail,
    pointer: BlockerPointer,
    message: str,
    fix: str,
    details: dict[str, JsonScalar] | None = None,
) -> Violation:
    return Violation(detail=detail, pointer=pointer, message=message, fix=fix, details=details)
