"""Servers behind real clients: a process per era for what needs none of its own, and servers in memory."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.support.server import ABC, FAULTY, OPTIONAL, SHADOW, InMemory, Server, workspace_in
from tests.support.verify import unsound_below

from interlock.testing.harness import ERAS, Era

Maker = Callable[..., InMemory]


@pytest.fixture(scope="package", params=ERAS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One process per era for all behaviours that need no process of their own. Each test has its own session."""
    directory = tmp_path_factory.mktemp(request.param)
    workspace = workspace_in(directory, abc=ABC, optional=OPTIONAL, faulty=FAULTY, shadow=SHADOW, broken="a: *b\n")
    with Server(directory / "data", workspace, request.param) as server:
        yield server
    assert unsound_below(directory) == []


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> Era:
    era: Era = request.param
    return era


@pytest.fixture
def space(tmp_path: Path) -> Path:
    return workspace_in(tmp_path, abc=ABC)


@pytest.fixture
def make(era: Era) -> Iterator[Maker]:
    """Serves documents in memory to a client of either era: `make(document, ...)`."""
    with ExitStack() as exits:
        yield lambda *documents: exits.enter_context(InMemory(*documents, era=era))
