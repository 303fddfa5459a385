"""Prompts of the WorkRail dialect, lowered to prose: what a slot is bound to is split out of the text around it."""

import re
from collections.abc import Iterator

from interlock.define import document as doc
from interlock.define.diagnostics import Diagnostic, fault
from interlock.define.workrail import forms
from interlock.define.workrail.conditions import ConditionLowering

_PLACEHOLDER = re.compile(r"\{\{\s*wr\.([^{}]*)(\}\})?")
"""What stands for something of the dialect's own; closed or not, so that none stays in a text unseen."""
_SLOT = re.compile(r"bindings\.([a-z][a-z0-9_]*)\s*")


class PromptLowering:
    """Lowers the texts of one document; what it finds is added to `faults`."""

    def __init__(self, faults: list[Diagnostic], conditions: ConditionLowering) -> None:
        self._faults = faults
        self._conditions = conditions

    def lower_prose(self, text: str, at: str) -> doc.Prose:
        """Return a text as prose, each `{{wr.bindings.slot}}` as a part of its own."""
        parts: list[doc.TextPart | doc.BindingPart] = []
        end = 0
        for hole in _PLACEHOLDER.finditer(text):
            slot = _SLOT.fullmatch(hole.group(1)) if hole.group(2) else None
            if slot is None:
                self._report_placeholder(hole.group(0), at, "Only `{{wr.bindings.<slot>}}` may stand in a prompt.")
                continue
            parts += [doc.TextPart(text=text[end : hole.start()])] if hole.start() > end else []
            parts.append(doc.BindingPart(slot_id=slot.group(1), at=at))
            end = hole.end()
        return (*parts, doc.TextPart(text=text[end:])) if end < len(text) or not parts else tuple(parts)

    def check_plain(self, text: str, at: str) -> str:
        """Return a text as it stands, where nothing of the dialect's own can be filled in."""
        for hole in _PLACEHOLDER.finditer(text):
            self._report_placeholder(hole.group(0), at, "Write out what it stands for.")
        return text

    def _report_placeholder(self, hole: str, at: str, fix: str) -> None:
        self._faults.append(fault(at, "wrong_value", f"`{hole}` cannot be filled in here.", fix))

    def lower_blocks(self, form: forms.PromptBlocksForm, at: str) -> doc.PromptBlocks:
        """Return a prompt in parts."""
        # In the order of their names: how an object's members are ordered means nothing.
        outputs = sorted(form.output_required.items())
        return doc.PromptBlocks(
            goal=self._lower_value(form.goal, f"{at}.goal") if form.goal is not None else None,
            constraints=self._lower_values(form.constraints, f"{at}.constraints"),
            procedure=self._lower_values(form.procedure, f"{at}.procedure"),
            output_required=tuple(
                (name, self._lower_value(said, f"{at}.outputRequired.{name}")) for name, said in outputs
            ),
            verify=self._lower_values(form.verify, f"{at}.verify"),
        )

    def _lower_values(self, values: forms.Values, at: str) -> tuple[doc.Prose, ...]:
        return tuple(self._lower_value(value, f"{at}[{number}]") for number, value in enumerate(values))

    def _lower_value(self, value: forms.Value, at: str) -> doc.Prose:
        if isinstance(value, str):
            return self.lower_prose(value, at)
        return tuple(part for number, form in enumerate(value) for part in self._lower_part(form, f"{at}[{number}]"))

    def _lower_part(self, form: forms.ProsePart, at: str) -> doc.Prose:
        wanted, other = ("text", form.ref_id) if form.kind == "text" else ("refId", form.text)
        content = form.text if form.kind == "text" else form.ref_id
        if content is None or other is not None:
            message = f"A part of kind {form.kind!r} has `{wanted}` and nothing else."
            self._faults.append(fault(at, "wrong_value", message, f"Write `{wanted}` only."))
            return ()
        if form.kind == "ref":
            return (doc.SnippetPart(ref_id=content, at=f"{at}.refId"),)
        return self.lower_prose(content, f"{at}.text")

    def lower_fragments(self, fragments: tuple[forms.PromptFragmentForm, ...], at: str) -> Iterator[doc.PromptFragment]:
        """Yield the fragments of a step; `at` is where their list stands."""
        for number, form in enumerate(fragments):
            here = f"{at}[{number}]"
            yield doc.PromptFragment(
                fragment_id=form.id,
                text=self.check_plain(form.text, f"{here}.text"),
                when=self._conditions.lower_guard(form.when, f"{here}.when"),
            )
