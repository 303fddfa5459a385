"""Where golden files are compared with what the code says today, or written anew.

`INTERLOCK_WRITE_GOLDENS=facts python -m pytest tests/golden` writes the facts, `INTERLOCK_WRITE_GOLDENS=words` the
words. One run writes one of them: whoever rewords a message cannot change a fact by it.
"""

import os
from difflib import unified_diff
from pathlib import Path
from typing import Literal, TypeAlias

SWITCH = "INTERLOCK_WRITE_GOLDENS"
Kind: TypeAlias = Literal["facts", "words"]


def is_writing(kind: Kind) -> bool:
    """Return whether this run writes the golden files of a kind."""
    asked = os.environ.get(SWITCH, "")
    assert asked in ("", "facts", "words"), f"{SWITCH} is facts or words, not {asked!r}"
    return asked == kind


def compare(kind: Kind, path: Path, text: str) -> None:
    """Compare a text with the committed one, or commit it in a run that writes its kind."""
    if is_writing(kind):
        path.write_text(text, encoding="utf-8")
    committed = path.read_text(encoding="utf-8").split("\n")
    changed = "\n".join(unified_diff(committed, text.split("\n"), "committed", "today", n=0, lineterm=""))
    assert not changed, f"{path.name} differs; {SWITCH}={kind} writes it anew\n{changed}"
