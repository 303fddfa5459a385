"""The syntax of prompts in native workflow files: texts, texts in parts, and parts with a condition."""

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from interlock.define.native.condition_forms import ConditionForm
from interlock.define.parts import LongText, SafeId
from interlock.kernel.shape.mirror import Form


def text_or_list(value: object) -> str:
    """Return the tag of a text, or of a list of its parts."""
    return "<list>" if isinstance(value, list | tuple) else "<text>"


def object_or_list(value: object) -> str:
    """Return the tag of an object, or of a list."""
    return "<list>" if isinstance(value, list | tuple) else "<object>"


class ProsePart(Form):
    """A part of a prompt: a text, the text of a `wr.refs.*` reference, or the text that a slot is bound to."""

    kind: Literal["text", "ref", "binding"] = Field(description="the kind of part")
    text: LongText | None = Field(default=None, description="of `text`: the text")
    ref_id: str | None = Field(default=None, description="of `ref`: the reference `wr.refs.*` whose text is inserted")
    slot_id: str | None = Field(default=None, description="of `binding`: the slot whose bound text is inserted")


Value = Annotated[
    Annotated[LongText, Tag("<text>")]
    | Annotated[tuple[ProsePart, ...], Field(min_length=1, max_length=50, strict=False), Tag("<list>")],
    Discriminator(text_or_list),
]
Values = Annotated[tuple[Value, ...], Field(max_length=100, strict=False)]


class PromptBlocksForm(Form):
    """A prompt in parts; each part becomes a section of the rendered prompt."""

    goal: Value | None = Field(default=None, description="what to achieve")
    constraints: Values = Field(default=(), description="rules to follow")
    procedure: Values = Field(default=(), description="how to do it, as a numbered list")
    output_required: Annotated[
        Annotated[Values, Tag("<list>")] | Annotated[dict[str, Value], Tag("<object>")],
        Discriminator(object_or_list),
    ] = Field(default=(), description="what to produce: a list, or texts by name")
    verify: Values = Field(default=(), description="what to check before reporting the step")


class PromptFragmentForm(Form):
    """A text that is added to the prompt if its condition is true when the step is given to the agent."""

    id: SafeId = Field(description="its name")
    text: LongText = Field(description="the text to add; may contain `{{key}}`")
    when: ConditionForm | None = Field(default=None, description="add it only if this is true; if omitted, always")
    asks_user: Literal[True] | None = Field(
        default=None,
        description="the text asks the user or waits for an answer; a run that never stops leaves it out and says to"
        " decide instead",
    )
