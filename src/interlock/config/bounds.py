"""Limits that are checked before a `config.toml` is parsed, because a hostile file could stall or crash the parser.

The parser's time grows with the square of the number of a key's parts, and it recurses at every bracket.
"""

import re

from interlock.config.model import ConfigFault
from interlock.kernel.budgets import CONFIG_DEPTH_MAX, CONFIG_KEY_PARTS_MAX, CONFIG_WORD_CHARS_MAX

_TOKEN = re.compile(
    r'''
      (?P<text>"""(?:[^"\\]|\\.|"(?!""))*+"{0,5} | \'\'\'(?:[^']|'(?!''))*+'{0,5} | "(?:[^"\\\n]|\\.)*+"? | '[^'\n]*'?)
    | (?P<comment>\#[^\n]*)
    | (?P<line>\n)
    | (?P<dot>\.)
    | (?P<opening>[\[{])
    | (?P<closing>[\]}])
    | (?P<word>[^\s"'\#.,=\[\]{}]+)
    ''',
    re.VERBOSE | re.DOTALL,
)


def find_costly(text: str) -> ConfigFault | None:
    """Return the fault of the first place that exceeds a limit, or None."""
    dots = depth = 0
    for token in _TOKEN.finditer(text):
        match token.lastgroup:
            case "line":
                dots = 0
            case "dot":
                dots += 1
                if dots >= CONFIG_KEY_PARTS_MAX:
                    return _fault(text, token, f"This line has a key with more than {CONFIG_KEY_PARTS_MAX} parts.")
            case "opening":
                depth += 1
                if depth > CONFIG_DEPTH_MAX:
                    return _fault(text, token, f"Values are nested deeper than {CONFIG_DEPTH_MAX} levels.")
            case "closing":
                depth -= 1
            case "word" if len(token[0]) > CONFIG_WORD_CHARS_MAX:
                found = f"A key or number has {len(token[0])} characters; the limit is {CONFIG_WORD_CHARS_MAX}."
                return _fault(text, token, found)
            case _:
                pass
    return None


def _fault(text: str, token: re.Match[str], message: str) -> ConfigFault:
    at = token.start()
    return ConfigFault(
        key="",
        message=message,
        fix="Remove it, or put text in quotes. `interlock config schema` lists the allowed keys.",
        line=text.count("\n", 0, at) + 1,
        column=at - text.rfind("\n", 0, at),
    )
