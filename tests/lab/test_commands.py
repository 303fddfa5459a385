"""Every command that writes, with every failing file operation: no sentence that the disk contradicts.

The ordinary run takes one fault of some commands: the operation after the last one that states something fails, with
all that follow. The long run takes all faults of all commands.
"""

import re
from collections.abc import Iterator

import pytest
from tests.lab.commands import (
    Fault,
    Stage,
    broken_by_rival,
    deleted,
    faults_of,
    operations,
    run_command,
    staged,
    trial,
    without_fault,
)

COMMANDS = (
    *("approve", "reject", "event send", "witness", "cancel", "fail", "intent deliver", "intent abandon", "delete"),
    *("redact", "keep", "unkeep", "import", "repair", "gc", "keys rotate"),
    *("contract publish", "contract start", "contract assess"),
)
READING = ("session show", "session search", "session turns", "session timeline", "session report", "contract graph")
OF_NO_SESSION = {"keys rotate", "contract publish", "contract start"}
OVER_A_SESSION = tuple(name for name in (*COMMANDS, *READING) if name not in OF_NO_SESSION)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    place = tmp_path_factory.mktemp("stage")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(place)
        patched.setenv("INTERLOCK_WORKFLOWS_DIR", str(place / "none"))
        patched.delenv("INTERLOCK_DESCENDANT", raising=False)
        found = staged(place)
        assert set(COMMANDS) | set(READING) == set(found.commands)
        yield found


def later_fault(made: list[str]) -> Fault:
    """Return the fault that begins after the last operation that states something."""
    stating = [at for at, one in enumerate(made) if one.split()[0] in {"append", "rename", "remove_dir"}]
    return Fault(at=min(len(made) - 1, stating[-1] + 1), is_lasting=True)


@pytest.mark.inv("FAIL-1", "FAIL-6")
@pytest.mark.parametrize("name", ["approve", "event send", "intent deliver", "delete", "keep", "contract publish"])
def test_what_a_command_says_after_a_failed_operation_is_what_the_disk_holds(stage: Stage, name: str) -> None:
    said, whole, made = without_fault(stage, name)
    assert whole, said.text
    assert trial(stage, name, later_fault(made), (said, whole)).broken is None


@pytest.mark.soak
@pytest.mark.inv("FAIL-1", "FAIL-6")
@pytest.mark.parametrize("name", COMMANDS)
def test_what_a_command_says_after_any_failed_operation_is_what_the_disk_holds(stage: Stage, name: str) -> None:
    said, whole, made = without_fault(stage, name)
    assert whole, said.text
    broken = [trial(stage, name, one, (said, whole)).broken for one in faults_of(made)]
    assert [one for one in broken if one is not None] == []


@pytest.mark.inv("PROOF-8")
def test_without_its_receipt_a_command_keeps_its_result_and_nothing_says_to_run_it_again(stage: Stage) -> None:
    said, whole, made = without_fault(stage, "witness")
    first = next(at for at, one in enumerate(made) if "manifest" in one)
    written = next(at for at, one in enumerate(made) if one.startswith("append"))
    texts: list[str] = []
    faults = Fault(at=first, is_lasting=True), Fault(at=written, is_lasting=True)
    for fault in (*faults, Fault(at=written, when="after", is_lasting=True)):
        found = trial(stage, "witness", fault, (said, whole))
        assert found.broken is None
        assert found.said.code == 0
        texts.append(" ".join(found.said.text.split()))
    for text in texts:
        assert "The command ran and ended with exit code 0. Its receipt " in text
        assert "Do not run it again for the receipt: say in the report of the step that it ran." in text
        assert not re.search("again: that is safe|the same call|try again|run this command again", text, re.IGNORECASE)
    assert ["may be recorded; `interlock session timeline` shows whether it is" in one for one in texts] == [
        False,
        False,
        True,
    ]


RIVALS = {"approve": "reject", "intent deliver": "intent abandon", "keep": "delete", "cancel": "approve", "gc": "keep"}
"""What another process does meanwhile; of each other command, it does the same."""
ONCE = frozenset({"approve", "cancel", "fail", "event send", "intent deliver", "intent abandon"})
"""What is recorded once, whoever comes first."""


@pytest.mark.inv("FAIL-1", "FAIL-6")
@pytest.mark.parametrize("name", ["approve", "event send", "intent deliver"])
def test_what_two_processes_say_of_one_command_is_what_the_disk_holds(stage: Stage, name: str) -> None:
    _, whole, made = without_fault(stage, name)
    numbers = sorted({0, len(made) // 3, len(made) // 2})
    assert [one for number in numbers if (one := broken_by_rival(stage, (name, name), number, whole))] == []


@pytest.mark.soak
@pytest.mark.inv("FAIL-1", "FAIL-6")
@pytest.mark.parametrize("name", COMMANDS)
def test_what_two_processes_say_is_what_the_disk_holds_whenever_the_other_one_comes(stage: Stage, name: str) -> None:
    _, whole, made = without_fault(stage, name)
    found = list[str | None]()
    for rival in sorted({name, RIVALS.get(name, name)}):
        once = whole if rival == name and name in ONCE else None
        found += [broken_by_rival(stage, (name, rival), number, once) for number in range(len(made))]
    assert [one for one in found if one is not None] == []


def breaks_when_deleted(stage: Stage, name: str, number: int) -> str | None:
    """Return what a command prints that breaks because its session is deleted before an operation of it; else None."""
    root = stage.copied(name)

    def delete() -> None:
        deleted(root, stage.session_of(name))

    with pytest.MonkeyPatch.context() as patched, operations(patched, meanwhile=(number, delete)):
        try:
            said = run_command(root, stage.commands[name])
        except Exception as error:  # noqa: BLE001 — the test reports it
            return f"operation {number}: {type(error).__name__}: {error}"
    if "Traceback" in said.text or "INTERNAL_ERROR" in said.text:
        return f"operation {number}: {said.text}"
    if name == "witness" and said.code != 0:
        return f"operation {number}: the exit code of the command is lost: {said.code}"
    return None


@pytest.mark.inv("LOCK-10")
@pytest.mark.parametrize("name", ["approve", "witness", "session search", "session turns"])
def test_a_session_that_is_deleted_before_its_lock_is_answered_as_missing(stage: Stage, name: str) -> None:
    made = without_fault(stage, name)[2]
    target = f"sessions/{stage.session_of(name)}/"
    reads = [at for at, one in enumerate(made) if target in one]
    # The command has read its session then, and has not yet locked it or read it again.
    numbers = {reads[len(reads) // 3], reads[len(reads) // 2]}
    assert [one for number in numbers if (one := breaks_when_deleted(stage, name, number))] == []


@pytest.mark.soak
@pytest.mark.inv("LOCK-10")
@pytest.mark.parametrize("name", OVER_A_SESSION)
def test_a_session_that_is_deleted_at_any_operation_breaks_no_command(stage: Stage, name: str) -> None:
    made = without_fault(stage, name)[2]
    found = [breaks_when_deleted(stage, name, number) for number in range(len(made))]
    assert [one for one in found if one is not None] == []
