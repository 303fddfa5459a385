"""Rules on the length of notes that no notes can meet."""

from collections.abc import Iterator

from interlock.decide.criteria import Length
from interlock.define.diagnostics import Diagnostic, fault
from interlock.kernel.budgets import NOTES_INPUT_BYTES_MAX


def length_faults(rule: Length, at: str, *, is_negated: bool) -> Iterator[Diagnostic]:
    """Yield why no notes meet a rule; `is_negated` says whether it is one that notes must not meet."""
    if rule.min is not None and rule.max is not None and rule.min > rule.max:
        message = f"No notes have at least {rule.min} and at most {rule.max} characters."
        yield fault(f"{at}.max", "wrong_value", message, f"Write {rule.min} or more, or a smaller `min`.")
    if is_negated:
        return
    if rule.max == 0:
        message = "No notes have 0 characters: empty ones count as missing."
        yield fault(f"{at}.max", "wrong_value", message, 'Write 1 or more, or `notes: "optional"` without this rule.')
    if rule.min is not None and rule.min > NOTES_INPUT_BYTES_MAX:
        message = f"No notes have {rule.min} characters: at most {NOTES_INPUT_BYTES_MAX} bytes are taken."
        yield fault(f"{at}.min", "wrong_value", message, "Write less; point at long material instead.")
