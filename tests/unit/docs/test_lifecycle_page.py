"""The page on the lifecycle names every kind of event, every kind of node, every fault and every obstacle."""

import re
from pathlib import Path
from typing import get_args

import pytest

from interlock.plan.records import NodeKind
from interlock.views.lifecycle.conformance import FaultCode
from interlock.views.lifecycle.events import LifecycleKind
from interlock.views.lifecycle.state import Obstacle, State

PAGE = (Path(__file__).parents[3] / "docs" / "lifecycle.md").read_text(encoding="utf-8")
WORDS = {"fan_in": "barrier", "fan_out": "fan-out"}


@pytest.mark.inv("LIFE-6")
@pytest.mark.parametrize("kind", get_args(NodeKind))
def test_each_kind_of_node_has_its_row(kind: str) -> None:
    table = PAGE.split("## From plan nodes to events")[1].split("##")[0]
    assert re.search(rf"^\|[^|]*\b{WORDS.get(kind, kind)}\b", table, re.MULTILINE)


@pytest.mark.inv("LIFE-6")
@pytest.mark.parametrize(
    "name", [*get_args(LifecycleKind), *get_args(FaultCode), *get_args(Obstacle), *get_args(State)]
)
def test_each_name_of_the_closed_sets_is_explained(name: str) -> None:
    assert f"`{name}`" in PAGE
