"""Renders prompts from prose: sections, features, inlined references and bindings. Each inlined text is recorded."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from interlock.define import document as doc
from interlock.define.diagnostics import Diagnostic, fault, guessed_fix
from interlock.define.parts import ExtensionPoint
from interlock.kernel.budgets.workflow import (
    INJECTED_BYTES_MAX,
)
from interlock.kernel.canonical import Json, digest_of_bytes
from interlock.kernel.frozen import mutable
from interlock.kernel.text import utf8_bytes
from interlock.plan.builtins.features import FEATURES
from interlock.plan.builtins.references import SNIPPETS
from interlock.plan.compiled import AppliedFeature
from interlock.plan.prompt_blocks import ResolvedBlocks, guidance_section, join_blocks
from interlock.plan.records import Injection


@mutable
class Prompts:
    """Renders the prompts of one document. The faults that it finds are added to `faults`."""

    slots: Mapping[str, ExtensionPoint]
    bindings: Mapping[str, str]
    features: tuple[AppliedFeature, ...]
    faults: list[Diagnostic] = field(default_factory=list[Diagnostic])

    def rendered(self, step: doc.AgentStep) -> tuple[str, ResolvedBlocks | None, tuple[Injection, ...]]:
        """Return a step's prompt, its parts if it was written in parts, and what was inlined. Guidance comes last."""
        injections: dict[str, Injection] = {}
        if isinstance(step.prompt, doc.PromptBlocks):
            blocks = self._resolved(step.prompt, step.guidance, injections)
            prompt = join_blocks(blocks)
        else:
            blocks, prompt = None, self._text(step.prompt, injections)
            if step.guidance:
                prompt = f"{prompt}\n\n{guidance_section(step.guidance)}"
        injected = sum(injection.byte_length for injection in injections.values())
        if injected > INJECTED_BYTES_MAX:
            message = f"Built-in texts add {injected} bytes to the prompt; the limit is {INJECTED_BYTES_MAX}."
            self.faults.append(fault(step.at, "too_long", message, "Refer to fewer built-in texts in this step."))
        return prompt, blocks, tuple(injections[ref] for ref in sorted(injections))

    def bound(self, part: doc.BindingPart) -> str | None:
        """Return the text that a slot is bound to: the project's, else its default. None: an unknown slot, a fault."""
        slot = self.slots.get(part.slot_id)
        if slot is None:
            guess = guessed_fix(part.slot_id, self.slots, "Define the slot in `extensionPoints`.")
            self.faults.append(fault(part.at, "unknown_slot", f"There is no slot {part.slot_id!r}.", *guess))
            return None
        return self.bindings.get(part.slot_id, slot.default)

    def _resolved(
        self, prompt: doc.PromptBlocks, guidance: Sequence[str], injections: dict[str, Injection]
    ) -> ResolvedBlocks:
        goal = self._text(prompt.goal, injections) if prompt.goal is not None else None
        return ResolvedBlocks(
            goal=goal,
            constraints=(*self._lines(prompt.constraints, injections), *self._added("constraints", injections)),
            procedure=(*self._lines(prompt.procedure, injections), *self._added("procedure", injections)),
            verify=(*self._lines(prompt.verify, injections), *self._added("verify", injections)),
            output_required=tuple(
                (f"**{name}**: " if name else "") + self._text(prose, injections)
                for name, prose in prompt.output_required
            ),
            guidance=tuple(guidance),
        )

    def _lines(self, proses: Iterable[doc.Prose], injections: dict[str, Injection]) -> list[str]:
        return [self._text(prose, injections) for prose in proses]

    def _added(self, section: str, injections: dict[str, Injection]) -> list[str]:
        """Return what the features add to a section, in the order of their ids."""
        added: list[str] = []
        for feature in self.features:
            lines = [_configured(line, feature.config) for line in getattr(FEATURES[feature.feature_id], section)]
            if lines:
                _account(injections, f"{feature.feature_id}.{section}", "\n".join(lines))
            added += lines
        return added

    def _text(self, prose: doc.Prose, injections: dict[str, Injection]) -> str:
        return "".join(self._part(part, injections) for part in prose)

    def _part(self, part: doc.TextPart | doc.SnippetPart | doc.BindingPart, injections: dict[str, Injection]) -> str:
        match part:
            case doc.TextPart():
                return part.text
            case doc.BindingPart():
                return self.bound(part) or ""
            case doc.SnippetPart():
                snippet = SNIPPETS.get(part.ref_id)
                if snippet is None:
                    guess = guessed_fix(part.ref_id, SNIPPETS, f"Use one of {', '.join(sorted(SNIPPETS))}.")
                    message = f"There is no reference {part.ref_id!r}."
                    self.faults.append(fault(part.at, "unknown_reference", message, *guess))
                    return ""
                _account(injections, part.ref_id, snippet.text)
                return snippet.text


def _account(injections: dict[str, Injection], ref_id: str, text: str) -> None:
    earlier = injections[ref_id].byte_length if ref_id in injections else 0
    injections[ref_id] = Injection(
        ref_id=ref_id, ref_content_hash=digest_of_bytes(text.encode()), byte_length=earlier + utf8_bytes(text)
    )


def _configured(line: str, config: Mapping[str, Json]) -> str:
    for name, value in config.items():
        line = line.replace(f"{{{name}}}", str(value).lower() if isinstance(value, bool) else str(value))
    return line
