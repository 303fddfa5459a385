"""No trick passes a demanded proof, except those that the documents name as limits. The judge reads the log."""

from typing import cast

import pytest
from tests.agents.proof_tricks import LIMITS, TRICKS, is_sound, passes, played, played_honestly
from tests.support.modes import NEVER_STOPS, gaps_in, status_of
from tests.support.verify import unsound

from interlock.record.world import Assurance

LEVELS = cast("tuple[Assurance, ...]", ("claimed", "observed"))
SEEDS = [range(2), pytest.param(range(2, 1_002), marks=pytest.mark.soak)]


@pytest.mark.inv("PROOF-2", "PROOF-3", "PROOF-4", "PROOF-6")
@pytest.mark.parametrize("seeds", SEEDS, ids=["few", "many"])
@pytest.mark.parametrize("name", TRICKS)
def test_no_trick_passes_a_demanded_proof(name: str, seeds: range) -> None:
    for seed in seeds:
        world = played(name, LEVELS[seed % 2], seed)
        assert passes(world) == [], seed
        assert world.here.structure["pending"]["stepId"] == "fix", seed
        assert status_of(world.harness, world.start) != "complete"
        if seed % 50 == 0:
            assert unsound(world.harness.store) == []


@pytest.mark.inv("PROOF-2", "PROOF-7")
@pytest.mark.parametrize("name", LIMITS)
def test_a_trick_that_passes_is_reported_with_its_level(name: str) -> None:
    level = LIMITS[name][1]
    world = played(name, level, 1)
    assert [one["level"] for one in passes(world)] == [level]
    above = played(name, "observed", 1)
    assert bool(passes(above)) == (level == "observed")


@pytest.mark.inv("PROOF-2")
@pytest.mark.parametrize("name", TRICKS)
def test_in_a_run_that_never_stops_the_missing_proof_stays_a_critical_gap(name: str) -> None:
    world = played(name, "observed", 3, preferences=NEVER_STOPS)
    assert "critical" in [one.severity for one in gaps_in(world.harness, world.start)]
    assert status_of(world.harness, world.start) != "complete"


@pytest.mark.inv("PROOF-2")
def test_an_honest_agent_needs_few_calls_more() -> None:
    worlds = [played_honestly(LEVELS[seed % 2], seed) for seed in range(30)]
    assert all(is_sound(one, "claimed") for world in worlds for one in passes(world)[-1:])
    assert all(one.here.structure["pending"]["stepId"] == "ship" for one in worlds)
    assert sum(one.calls - 1 for one in worlds) / len(worlds) <= 0.3
