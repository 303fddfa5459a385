"""The parts of a prompt that was written in parts, with all texts inlined: joined, they are the prompt (PLAN-17)."""

from collections.abc import Iterator, Sequence

from interlock.record.base import Record


class ResolvedBlocks(Record):
    """The resolved parts of a prompt. No step needs them to run: they are for people and programs that show a plan."""

    goal: str | None = None
    constraints: tuple[str, ...] = ()
    procedure: tuple[str, ...] = ()
    output_required: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    guidance: tuple[str, ...] = ()


def join_blocks(blocks: ResolvedBlocks) -> str:
    """Return the prompt of these parts: a section for each that is not empty, guidance last."""
    return "\n\n".join(_sections(blocks))


def guidance_section(lines: Sequence[str]) -> str:
    """Return the section with which the guidance of a step ends its prompt."""
    return _section("Guidance", _bullets(lines))


def _sections(blocks: ResolvedBlocks) -> Iterator[str]:
    if blocks.goal is not None:
        yield blocks.goal
    if blocks.constraints:
        yield _section("Constraints", _bullets(blocks.constraints))
    if blocks.procedure:
        numbered = "\n".join(f"{number}. {line}" for number, line in enumerate(blocks.procedure, start=1))
        yield _section("Procedure", numbered)
    if blocks.output_required:
        yield _section("Output required", _bullets(blocks.output_required))
    if blocks.verify:
        yield _section("Check before you send", _bullets(blocks.verify))
    if blocks.guidance:
        yield guidance_section(blocks.guidance)


def _section(title: str, body: str) -> str:
    return f"**{title}**\n{body}"


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
