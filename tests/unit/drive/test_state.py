"""The state of an agent: atomic turns, savepoints, expiry, and what each isolation level sees."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.drive.agent.profile import IsolationLevel
from interlock.drive.faults import TurnError
from interlock.drive.state import StateStore, TurnState, parse_changes
from interlock.kernel.canonical import Json

LEVELS: tuple[IsolationLevel, ...] = ("read_uncommitted", "read_committed", "repeatable_read", "serializable")


def store_with(values: dict[str, Json] | None = None, clock: Callable[[], int] = lambda: 0) -> StateStore:
    return StateStore(
        clock,
        parse_changes([{"key": key, "operation": "set", "newValue": value} for key, value in (values or {}).items()]),
    )


@pytest.mark.asyncio
@pytest.mark.inv("TURN-6")
async def test_every_operation_reads_its_own_turn() -> None:
    turn = store_with({"a": 1}).begin("serializable")
    await turn.set("b", {"x": 1})
    await turn.append("c", 1)
    await turn.append("c", 2)
    assert await turn.get("a") == 1
    assert await turn.get_many(["a", "b", "c", "d"]) == {"a": 1, "b": {"x": 1}, "c": [1, 2]}
    await turn.delete("a")
    await turn.delete("never")
    assert (await turn.exists("a"), await turn.get("a"), await turn.exists("b")) == (False, None, True)
    with pytest.raises(TurnError, match="no list"):
        await turn.append("b", 1)


@pytest.mark.asyncio
@pytest.mark.inv("TURN-6")
async def test_a_value_with_a_lifetime_is_gone_after_it() -> None:
    now = 0
    store = store_with(clock=lambda: now)
    turn = store.begin("serializable")
    await turn.set("a", 1, ttl_seconds=2)
    turn.commit()
    now = 1_999
    assert store.values() == {"a": 1}
    now = 2_000
    assert store.values() == {}
    assert not await store.begin("serializable").exists("a")


@pytest.mark.asyncio
@pytest.mark.inv("TURN-5")
async def test_a_rollback_undoes_what_came_after_its_savepoint_and_nothing_else() -> None:
    turn = store_with({"a": 0}).begin("serializable")
    await turn.set("early", 1)
    point = await turn.checkpoint()
    await turn.set("a", 5)
    later = await turn.checkpoint()
    await turn.rollback(point)
    assert await turn.get_many(["a", "early"]) == {"a": 0, "early": 1}
    with pytest.raises(TurnError, match="no savepoint"):
        await turn.rollback(later)
    await turn.rollback()
    assert turn.changes() == ()


@pytest.mark.asyncio
@pytest.mark.inv("TURN-4")
async def test_read_uncommitted_has_no_rollback_and_still_commits_nothing_by_itself() -> None:
    store = store_with()
    turn = store.begin("read_uncommitted")
    await turn.set("a", 1)
    with pytest.raises(TurnError, match="no rollback"):
        await turn.rollback()
    turn.discard()
    assert store.values() == {}


@pytest.mark.asyncio
@pytest.mark.inv("TURN-4")
@pytest.mark.parametrize(
    ("level", "while_open", "after_commit", "may_commit"),
    [
        ("read_uncommitted", "new", "new", True),
        ("read_committed", "old", "new", True),
        ("repeatable_read", "old", "old", True),
        ("serializable", "old", "old", False),
    ],
)
async def test_each_level_sees_of_another_turn_what_its_name_says(
    level: IsolationLevel, while_open: str, after_commit: str, *, may_commit: bool
) -> None:
    store = store_with({"a": "old"})
    turn, other = store.begin(level), store.begin("serializable")
    await other.set("a", "new")
    assert await turn.get("a") == while_open
    other.commit()
    assert await turn.get("a") == after_commit
    await turn.set("b", 1)
    if may_commit:
        assert len(turn.changes()) == 1
    else:
        with pytest.raises(TurnError, match="Another turn changed a"):
            turn.changes()


OPERATIONS = st.one_of(
    st.tuples(st.just("set"), st.sampled_from("ab"), st.integers(0, 99)),
    st.tuples(st.just("append"), st.sampled_from("cd"), st.integers(0, 99)),
    st.tuples(st.just("delete"), st.sampled_from("abcd"), st.just(0)),
)


@pytest.mark.inv("TURN-1", "TURN-3")
@given(st.lists(st.tuples(st.lists(OPERATIONS, max_size=5), st.booleans()), max_size=6), st.sampled_from(LEVELS))
def test_the_committed_state_is_that_of_a_dictionary_and_the_fold_of_the_recorded_changes(
    turns: list[tuple[list[tuple[str, str, int]], bool]], level: IsolationLevel
) -> None:
    store, model, recorded = store_with(), dict[str, Any](), list[Json]()
    for operations, is_committed in turns:
        turn, wanted = store.begin(level), dict(model)
        for operation, key, value in operations:
            run_now(turn, operation, key, value)
            match operation:
                case "set":
                    wanted[key] = value
                case "append":
                    wanted[key] = [*wanted.get(key, []), value]
                case _:
                    wanted.pop(key, None)
        if is_committed:
            recorded += [one.to_json() for one in turn.changes()]
            turn.commit()
            model = wanted
        else:
            turn.discard()
        assert store.values() == model
    assert StateStore(lambda: 0, parse_changes(recorded)).values() == model


def run_now(turn: TurnState, operation: str, key: str, value: int) -> None:
    """Run an operation, which waits for nothing, without a loop."""
    call = {"set": turn.set, "append": turn.append}.get(operation)
    coroutine = call(key, value) if call is not None else turn.delete(key)
    with pytest.raises(StopIteration):
        coroutine.send(None)
