"""The index of the decision records, made from what each record says: its title, its date, its status."""

import re
from pathlib import Path

RECORDS = Path(__file__).parent.parent.parent / "docs" / "decisions"
INDEX = "docs/decisions/README.md"
_STATUS = r"(Accepted|Superseded by \[(\d{4})\]\(\S+\)|Withdrawn)"
_RECORD = re.compile(rf"# (\d{{4}})\. (.+)\n\n(\d{{4}}-\d\d-\d\d)\. {_STATUS}\.\n")
_INTRO = """# Decisions

Each record says what was decided, and which options were rejected and why. Below its title are the day on which it was
made and its status. A record that was superseded or withdrawn stays as history.

| record | decided | decision | status |
|---|---|---|---|
"""


def decisions_index() -> str:
    """Return the index page. A number that no record has is a row of its own.

    Raises:
        ValueError: A record does not begin with its title, its date and its status.
    """
    rows = dict[int, str]()
    for path in sorted(RECORDS.glob("[0-9]*.md")):
        found = _RECORD.match(path.read_text(encoding="utf-8"))
        if found is None or not path.name.startswith(found[1]):
            raise ValueError(f"{path.name}: its first lines are not `# NNNN. Title`, and `YYYY-MM-DD. Accepted.`")
        number, title, day, status, successor = found.groups()
        state = f"superseded by {successor}" if successor else status.lower()
        rows[int(number)] = f"| [{number}]({path.name}) | {day} | {title} | {state} |"
    numbers = range(1, max(rows) + 1)
    return _INTRO + "\n".join(rows.get(one, f"| {one:04} | | number not used | |") for one in numbers) + "\n"
