"""The first reads of a process may come in several threads at once: msgspec must learn of types in one at a time."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

from interlock.kernel.shape import Reader
from interlock.record.events import NodeScope, RunOrNode

THREADS = 4
SCOPE = b'{"runId":"run_01jgfjjz000000000000000001","nodeId":"node_01jgfjjz000000000000000002"}'


@pytest.mark.inv("EVT-1")
@pytest.mark.parametrize("kind", [NodeScope, RunOrNode], ids=["class", "union"])
def test_decoders_are_built_one_at_a_time(monkeypatch: pytest.MonkeyPatch, kind: object) -> None:
    monkeypatch.setattr("interlock.kernel.shape._PREPARED", set[type]())
    build: Callable[..., object] = msgspec.json.Decoder
    building = most = 0
    counting, begin = threading.Lock(), threading.Barrier(THREADS)

    def slowly(*given: Any, **named: Any) -> object:
        nonlocal building, most
        with counting:
            building += 1
            most = max(most, building)
        time.sleep(0.01)
        built = build(*given, **named)
        with counting:
            building -= 1
        return built

    def read(_: int) -> object:
        begin.wait()
        return Reader[Any](kind).read(SCOPE)

    monkeypatch.setattr(msgspec.json, "Decoder", slowly)
    with ThreadPoolExecutor(THREADS) as threads:
        found = list(threads.map(read, range(THREADS)))
    assert most == 1
    assert {type(one) for one in found} == {NodeScope}
