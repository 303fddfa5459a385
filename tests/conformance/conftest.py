"""The rule of this directory, enforced: everything here is local and deterministic (docs/conformance.md)."""

import socket
from pathlib import Path
from typing import Any, NoReturn

import pytest

from interlock.service.clock import SystemClock

_HERE = Path(__file__).parent


class RuleBrokenError(AssertionError):
    """A conformance test reached for the network, a clock or chance."""


class _NoSocket(socket.socket):
    """Opens nothing. What an event loop wraps around a descriptor that stands is its own pipe, no network."""

    def __init__(self, family: int = -1, type: int = -1, proto: int = -1, fileno: int | None = None) -> None:  # noqa: A002 — the standard library's names
        if fileno is None:
            raise RuleBrokenError("a conformance test opened a socket")
        super().__init__(family, type, proto, fileno)


def _varies(*_: Any) -> NoReturn:
    raise RuleBrokenError("clock and entropy of a conformance test come from `CounterClock`")


@pytest.fixture(autouse=True)
def _local_and_deterministic(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction] — autouse
    """Take the network, the real clock and real entropy away from every test of this directory."""
    monkeypatch.setattr(socket, "socket", _NoSocket)
    monkeypatch.setattr(SystemClock, "unix_ms", _varies)
    monkeypatch.setattr(SystemClock, "entropy", _varies)


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", "conformance: local, deterministic tests of what the plan and its runs promise")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies here, so that `-m conformance` runs it and nothing else."""
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker("conformance")
