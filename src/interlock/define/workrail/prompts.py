"""Lowers prompts of the WorkRail dialect to prose. A placeholder for a slot becomes a separate part."""

import re
from collections.abc import Iterator

from interlock.define import document as doc
from interlock.define.diagnostics import Diagnostic, fault
from interlock.define.workrail import forms
from interlock.define.workrail.conditions import ConditionLowering

_PLACEHOLDER = re.compile(r"\{\{\s*wr\.([^{}]*)(\}\})?")
"""A placeholder `{{wr.…}}` of the dialect. It also matches without its end, so that a broken one is reported."""
_SLOT = re.compile(r"bindings\.([a-z][a-z0-9_]*)\s*")


class PromptLowering:
    """Lowers the texts of one document. Faults are added to `faults`."""

    def __init__(self, faults: list[Diagnostic], conditions: ConditionLowering) -> None:
        self._faults = faults
        self._conditions = conditions

    def lower_prose(self, text: str, at: str) -> doc.Prose:
        """Lower a text to prose. Each `{{wr.bindings.<slot>}}` becomes a separate part."""
        parts: list[doc.TextPart | doc.BindingPart] = []
        end = 0
        for found in _PLACEHOLDER.finditer(text):
            slot = _SLOT.fullmatch(found.group(1)) if found.group(2) else None
            if slot is None:
                self._report_placeholder(found.group(0), at, "Use only `{{wr.bindings.<slot>}}` in a prompt.")
                continue
            parts += [doc.TextPart(text=text[end : found.start()])] if found.start() > end else []
            parts.append(doc.BindingPart(slot_id=slot.group(1), at=at))
            end = found.end()
        return (*parts, doc.TextPart(text=text[end:])) if end < len(text) or not parts else tuple(parts)

    def check_plain(self, text: str, at: str) -> str:
        """Return a text unchanged. Report every placeholder of the dialect in it, because this text is not rendered."""
        for found in _PLACEHOLDER.finditer(text):
            self._report_placeholder(found.group(0), at, "Write the text itself instead of the placeholder.")
        return text

    def _report_placeholder(self, placeholder: str, at: str, fix: str) -> None:
        self._faults.append(
            fault(at, "wrong_value", f"The placeholder `{placeholder}` has no value in this text.", fix)
        )

    def lower_blocks(self, form: forms.PromptBlocksForm, at: str) -> doc.PromptBlocks:
        """Lower a prompt in parts."""
        # Ordered by name, because the order of an object's members has no meaning.
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
        key, other = ("text", form.ref_id) if form.kind == "text" else ("refId", form.text)
        content = form.text if form.kind == "text" else form.ref_id
        if content is None or other is not None:
            message = f"A part of kind {form.kind!r} must have `{key}` and no other key."
            self._faults.append(fault(at, "wrong_value", message, f"Write `kind` and `{key}`, and no other key."))
            return ()
        if form.kind == "ref":
            return (doc.SnippetPart(ref_id=content, at=f"{at}.refId"),)
        return self.lower_prose(content, f"{at}.text")

    def lower_fragments(self, fragments: tuple[forms.PromptFragmentForm, ...], at: str) -> Iterator[doc.PromptFragment]:
        """Yield the lowered fragments of a step. `at` is the path of the list."""
        for number, form in enumerate(fragments):
            here = f"{at}[{number}]"
            yield doc.PromptFragment(
                fragment_id=form.id,
                text=self.check_plain(form.text, f"{here}.text"),
                when=self._conditions.lower_guard(form.when, f"{here}.when"),
            )
