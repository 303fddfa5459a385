"""A placed chart as SVG: shapes and escaped text, without scripts, styles or fonts of its own."""

from collections.abc import Callable, Iterator, Mapping
from html import escape

from interlock.views.picture.chart import BoxKind, Chart
from interlock.views.picture.layout import BOX_WIDTH, LINE_HEIGHT, Placed, PlacedArrow, PlacedBox, place_chart

_FILLS: Mapping[BoxKind, tuple[str, str]] = {
    "step": ("#2da44e", "0.12"),
    "decision": ("#d4a72c", "0.18"),
    "barrier": ("#218bff", "0.08"),
    "loop": ("#8250df", "0.12"),
    "end": ("#6e7781", "0.18"),
    "refused": ("#cf222e", "0.12"),
    "current": ("#218bff", "0.30"),
    "folded": ("#6e7781", "0.04"),
}
"""The colour and the opacity of each kind of box: visible on a light and on a dark page."""
_TIP = 4
"""Half the width of an arrow's tip."""


LinkOf = Callable[[str], str]
"""Returns the address of a node of a run."""


def render_svg(chart: Chart, *, is_embedded: bool = False, link_of: LinkOf | None = None) -> str:
    """Return a chart as one SVG element; the same chart gives the same text.

    Embedded in a page, it has the page's colours; alone, it has a white background, so that it is readable anywhere.
    With `link_of`, each box of a node is a link.
    """
    placed = place_chart(chart)
    colour = "currentColor" if is_embedded else "#1f2328"
    title = escape(placed.title)
    size = f'width="{placed.width}" height="{placed.height}" viewBox="0 0 {placed.width} {placed.height}"'
    # What is within an image cannot be followed from a keyboard.
    role = "img" if link_of is None else "group"
    root = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="{role}" aria-label="{title}"'
    lines = [f'{root} fill="{colour}" font-family="system-ui, sans-serif" font-size="12">', f"<title>{title}</title>"]
    if not is_embedded:
        lines.append(f'<rect width="{placed.width}" height="{placed.height}" fill="#ffffff"/>')
    return "\n".join([*lines, *_shapes(placed, colour, link_of), "</svg>"])


def _shapes(placed: Placed, colour: str, link_of: LinkOf | None) -> Iterator[str]:
    for frame in placed.frames:
        place = f'x="{frame.x}" y="{frame.y}" width="{frame.width}" height="{frame.height}" rx="8"'
        yield f'<rect {place} fill="#8250df" fill-opacity="0.05" stroke="#8250df" stroke-dasharray="4 3"/>'
    for arrow in placed.arrows:
        yield from _arrow(arrow, colour)
    for box in placed.boxes:
        if link_of is not None and box.box.node is not None:
            node, label = escape(box.box.node), escape(" ".join(box.lines))
            yield f'<a href="{escape(link_of(box.box.node))}" data-node="{node}" aria-label="{label}">'
            yield from _box(box, colour)
            yield "</a>"
        else:
            yield from _box(box, colour)
    for text in placed.texts:
        yield f'<text x="{text.x}" y="{text.y}" font-size="11">{escape(text.text)}</text>'


def _arrow(arrow: PlacedArrow, colour: str) -> Iterator[str]:
    way = " ".join(f"{'L' if number else 'M'}{x} {y}" for number, (x, y) in enumerate(arrow.points))
    dashes = ' stroke-dasharray="5 4"' if arrow.is_dashed else ""
    yield f'<path d="{way}" fill="none" stroke="{colour}"{dashes}/>'
    if arrow.has_tip:
        x, y = arrow.points[-1]
        yield f'<path d="M{x} {y} L{x - _TIP} {y - 2 * _TIP} L{x + _TIP} {y - 2 * _TIP} Z"/>'


def _box(placed: PlacedBox, colour: str) -> Iterator[str]:
    kind = placed.box.kind
    fill, opacity = _FILLS[kind]
    rounding = placed.height // 2 if kind == "end" else 6
    border = ' stroke-dasharray="3 3"' if kind == "folded" else ""
    weight = ' stroke-width="2"' if kind == "current" else ""
    place = f'x="{placed.x}" y="{placed.y}" width="{BOX_WIDTH}" height="{placed.height}" rx="{rounding}"'
    yield f'<rect {place} fill="{fill}" fill-opacity="{opacity}" stroke="{colour}"{border}{weight}/>'
    middle, top = placed.x + BOX_WIDTH // 2, placed.y + (placed.height - len(placed.lines) * LINE_HEIGHT) // 2
    for number, line in enumerate(placed.lines):
        y = top + number * LINE_HEIGHT + LINE_HEIGHT - 4
        yield f'<text x="{middle}" y="{y}" text-anchor="middle">{escape(line)}</text>'
