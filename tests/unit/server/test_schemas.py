"""Published schemas hold no keyword that says nothing: clients' checkers take such a one for a mistake."""

from collections.abc import Iterator

import pytest

from interlock.kernel.canonical import Json
from interlock.server.tools import TOOLS, Tool


def below(node: Json) -> Iterator[dict[str, Json]]:
    if isinstance(node, dict):
        yield node
    for value in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from below(value)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_what_may_hold_anything_does_not_say_so(tool: Tool) -> None:
    published = tool.to_json()
    found = [node for key in ("inputSchema", "outputSchema") for node in below(published[key])]
    assert found
    assert [node for node in found if {} in (node.get("additionalProperties"), node.get("items"))] == []
