"""The results: one JSON line for each run, kept, so that an evaluation that was ended continues; and their table."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, TypeAlias

import interlock
from evaluation.agent import Channel, Episode

Row: TypeAlias = Mapping[str, Any]
_MEANS = {
    "calls": "calls",
    "refused": "refused",
    "token errors": "token_errors",
    "blanks": "blanks",
    "cut": "cut",
    "prompt tokens": "prompt_tokens",
    "of them new": "fresh_tokens",
}
"""The columns that are means over the runs, each with its field."""
_HEADS = ("arm", "channel", "runs", "done", "with gaps", "advance first", *_MEANS)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Place:
    """The run of an arm to which a result belongs. `state` identifies the product's files."""

    state: str
    arm: str
    channel: Channel
    number: int


def product_state() -> str:
    """Return 12 hex digits over all files of the product and this package: results of another state are not counted."""
    digest = hashlib.sha256()
    for root in (Path(interlock.__file__).parent, Path(__file__).parent):
        for path in sorted(path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
            digest.update(f"{path.relative_to(root).as_posix()}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:12]


class Results:
    """A file of results. Only appended to."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def rows(self) -> list[Row]:
        """Return all results; a last line that was cut off is left out."""
        if not self._path.exists():
            return []
        lines = self._path.read_bytes().split(b"\n")[:-1]
        return [json.loads(line) for line in lines if line]

    def places(self) -> set[Place]:
        """Return the runs that have a result."""
        return {
            Place(state=row["state"], arm=row["arm"], channel=row["channel"], number=row["number"])
            for row in self.rows()
        }

    def append(self, place: Place, episode: Episode) -> None:
        """Add a result. It replaces a last line that was cut off."""
        row = asdict(place) | {"is_done": episode.is_done} | asdict(episode)
        with self._path.open("a+b") as stream:
            stream.seek(0)
            stream.truncate(stream.read().rfind(b"\n") + 1)
            stream.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def table(rows: Iterable[Row]) -> str:
    """Return one line for each arm and channel, as a Markdown table."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["arm"], row["channel"]), []).append(row)
    lines = [_HEADS, ("---",) * len(_HEADS), *_cells(groups)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cells(groups: Mapping[tuple[str, str], list[Row]]) -> Iterator[tuple[str, ...]]:
    for (arm, channel), rows in groups.items():
        # A result of an earlier evaluation does not have every field.
        counted = (sum(row.get(name, False) for row in rows) for name in ("is_done", "has_gaps", "is_first_an_advance"))
        means = (f"{fmean(row.get(name, 0) for row in rows):.1f}".removesuffix(".0") for name in _MEANS.values())
        yield (arm, channel, str(len(rows)), *map(str, counted), *means)
