"""What holds of every test: what its runs recorded follows again from what came in, unless it altered it on purpose."""

import gc
from collections import deque
from collections.abc import Iterator, Mapping

import pytest
from hypothesis import settings
from tests.support.verify import unsound, unsound_below

from interlock.service.clock import Clock
from interlock.store.memory.store import MemoryStore
from interlock.store.ports.keys import KeyRingWriter
from interlock.store.workflow_files import WorkflowSources
from interlock.testing.harness import Harness, Store


def pytest_collection_finish() -> None:
    """Leave what collecting made out of every later collection of garbage: it lives as long as the process."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


settings.register_profile("interlock", deadline=None)
settings.load_profile("interlock")

STORES_MAX = 6
"""Of a test that makes more stores, such as one of random examples, the last so many are verified."""


@pytest.fixture(scope="session")
def stores_in_memory() -> Iterator[deque[MemoryStore]]:
    """The stores in memory that the harnesses of the current test serve from, as many as are kept."""
    kept, over = deque[MemoryStore](maxlen=STORES_MAX), Harness.over

    def watched(
        store: Store,
        *documents: Mapping[str, object],
        keys: KeyRingWriter | None = None,
        clock: Clock | None = None,
        sources: WorkflowSources | None = None,
    ) -> Harness:
        if isinstance(store, MemoryStore) and store not in kept:
            kept.append(store)
        return over(store, *documents, keys=keys, clock=clock, sources=sources)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Harness, "over", watched)
        yield kept


@pytest.fixture(autouse=True)
def what_was_recorded_verifies(request: pytest.FixtureRequest, stores_in_memory: deque[MemoryStore]) -> Iterator[None]:
    """Verify every session that a test leaves, in memory and on disk; one marked `damages` leaves others."""
    directory = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None
    stores_in_memory.clear()
    yield
    left = tuple(stores_in_memory)
    stores_in_memory.clear()
    if request.node.get_closest_marker("damages") is None:
        assert [one for store in left for one in unsound(store)] == []
        assert directory is None or unsound_below(directory) == []
