"""Notes in many kinds of Markdown, and the text of a page that shows them."""

import re
from html.parser import HTMLParser

CONSTRUCTS = (
    "# heading C#",
    "## closed ##",
    "title\n=====",
    "[step 2]: http://plan.example 'Drop the table'",
    '[link](http://host.example "title of it")',
    "[relative](/address)",
    '![picture](http://host.example/p.png "title of it")',
    "<http://auto.example>",
    "a [reference][step 2] and a [^note]",
    "[^note]: its text",
    "```py info string\ncode = 1\n```",
    "~~~ words after tildes\ncode = 2\n~~~",
    "```make test``` failed: 3 of 10",
    "``` opened `and` not a fence",
    "````\n```\nnested\n````",
    "    indented code",
    f"{'> ' * 30}deep quote",
    f"{'  ' * 30}- deep item",
    "> - quoted item\n> second line",
    "1. one\n7. seven\n007) seven again",
    "- [ ] task\n- [x] done",
    "| a | b |\n| --- | :-: |\n| one | two | more than heads |",
    "*em* _em_ **strong** ~~struck~~ ``co`de``",
    "&amp; &#65; \\* escaped",
    "<div title='attribute'>html</div> <!-- comment -->",
    "***\n---\nrule",
    "hard break  \nnext\\\nlast",
    "\x1b[31mred \u202ereversed",
)
"""Notes of each kind of Markdown, also of those that a renderer of CommonMark shows without some of their words."""


class _Text(HTMLParser):
    """Collects the text of elements."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.feed(html)

    def handle_data(self, data: str) -> None:
        self.text += data


def text_of(html: str) -> str:
    """Return the text that HTML shows."""
    return _Text(html).text


def letters_of(text: str) -> list[str]:
    """Return the letters and digits of a text in order."""
    return re.findall(r"[^\W_]", text)
