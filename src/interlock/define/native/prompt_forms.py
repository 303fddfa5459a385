"""The syntax of prompts in native workflow files: texts, texts in parts, and parts with a condition."""

from typing import Annotated, Literal

from interlock.define.native.condition_forms import ConditionForm
from interlock.define.parts import LongText, Part, SafeId
from interlock.kernel.shape import Alternative, AlternativeBy, described, limits


def text_or_list(value: object) -> str:
    """Return the tag of a text, or of a list of its parts."""
    return "<list>" if isinstance(value, list | tuple) else "<text>"


def object_or_list(value: object) -> str:
    """Return the tag of an object, or of a list."""
    return "<list>" if isinstance(value, list | tuple) else "<object>"


class ProsePart(Part):
    """A part of a prompt: a text, the text of a `wr.refs.*` reference, or the text that a slot is bound to."""

    kind: Annotated[Literal["text", "ref", "binding"], described("the kind of part")]
    text: Annotated[LongText | None, described("of `text`: the text")] = None
    ref_id: Annotated[str | None, described("of `ref`: the reference `wr.refs.*` whose text is inserted")] = None
    slot_id: Annotated[str | None, described("of `binding`: the slot whose bound text is inserted")] = None


Value = Annotated[
    Annotated[LongText, Alternative("<text>")]
    | Annotated[tuple[ProsePart, ...], *limits(min_length=1, max_length=50, strict=False), Alternative("<list>")],
    AlternativeBy(text_or_list),
]
Values = Annotated[tuple[Value, ...], *limits(max_length=100, strict=False)]


class PromptBlocksForm(Part):
    """A prompt in parts; each part becomes a section of the rendered prompt."""

    goal: Annotated[Value | None, described("what to achieve")] = None
    constraints: Annotated[Values, described("rules to follow")] = ()
    procedure: Annotated[Values, described("how to do it, as a numbered list")] = ()
    output_required: Annotated[
        Annotated[
            Annotated[Values, Alternative("<list>")] | Annotated[dict[str, Value], Alternative("<object>")],
            AlternativeBy(object_or_list),
        ],
        described("what to produce: a list, or texts by name"),
    ] = ()
    verify: Annotated[Values, described("what to check before reporting the step")] = ()


class PromptFragmentForm(Part):
    """A text that is added to the prompt if its condition is true when the step is given to the agent."""

    id: Annotated[SafeId, described("its name")]
    text: Annotated[LongText, described("the text to add; may contain `{{key}}`")]
    when: Annotated[ConditionForm | None, described("add it only if this is true; if omitted, always")] = None
    asks_user: Annotated[
        bool,
        described(
            "the text asks the user or waits for an answer; a run that never stops leaves it out and says to"
            " decide instead"
        ),
    ] = False
