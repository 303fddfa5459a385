"""The pinned requirements install alone, whatever is released later."""

import re
from importlib.metadata import distributions
from pathlib import Path

import pytest

REQUIREMENTS = Path(__file__).parents[3] / "requirements"
WITH_EXTRAS = re.compile(r"([A-Za-z0-9._-]+)\[([a-z0-9, _-]+)\](?!.*extra ==)")


def named(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text).lower()


@pytest.mark.parametrize("name", ["run", "console", "drive", "dev"])
def test_a_package_that_is_demanded_with_extras_is_pinned_with_them(name: str) -> None:
    """Without its extras pip takes the demand for another one, and finds a later version that has no hash."""
    pinned = {
        named(found[1]): found[2] or "" for found in re.finditer(r"(?m)^([\w.-]+)(?:\[(.*?)\])?==", text_of(name))
    }
    demanded = {
        (named(one.metadata["Name"]), named(found[1]), found[2])
        for one in distributions()
        for found in map(WITH_EXTRAS.match, one.requires or ())
        if found is not None
    }
    assert ("mcp", "pyjwt", "crypto") in demanded
    assert {(by, of, extras) for by, of, extras in demanded if by in pinned and pinned.get(of) != extras} == set()


def text_of(name: str) -> str:
    return (REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8")
