"""The facts of committed answers, a committed data directory and committed hashes: what this code says today.

`committed.py` says how to write them anew. Until the first tag they may change, each time with a line in the CHANGELOG;
from then on a directory stays for ever, and a new format gets one beside it. The words of the answers are
`test_golden_words.py`'s.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.golden.committed import compare, is_writing
from tests.golden.conversation import RATED, STRUCTURE, WORKFLOW, make_data_dir, rated, scripted
from tests.golden.wording import Piece, take_apart, without_prose

from interlock.config.ports import local_ports
from interlock.config.settings import BUNDLED, Settings
from interlock.kernel.canonical import canonical_bytes, digest_of_bytes
from interlock.kernel.ids import SessionId
from interlock.service.workflows.catalog import Pinnable
from interlock.testing.harness import Harness, ToolResult

HERE = Path(__file__).parent
ANSWERS = HERE / "answers.json"
HASHES = HERE / "workflow-hashes.json"
DATA_DIR = HERE / "data-dir-1"
DATA_ANSWERS = HERE / "data-dir-1.answers.json"


def written(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


@pytest.mark.inv("TOK-1", "ANS-1", "ADV-5")
def test_the_scripted_run_gives_answers_with_the_committed_facts() -> None:
    compare("facts", ANSWERS, written(take_apart(scripted()).facts))


@pytest.mark.inv("PLAN-2")
def test_every_bundled_workflow_has_its_committed_hash(tmp_path: Path) -> None:
    catalog = local_ports(Settings(data_dir=tmp_path, workspace=None, user_workflows=None)).catalog
    entries = sorted(catalog.view(None).entries.items())
    assert len(entries) == len(list(BUNDLED.rglob("*.json"))) >= 3
    golden = Harness.in_memory(WORKFLOW, STRUCTURE).ports.catalog.view(None).entries
    hashes: dict[str, str] = {}
    for name, entry in (*entries, *sorted(golden.items())):
        assert isinstance(entry.compiled, Pinnable)
        hashes[name] = entry.compiled.workflow_hash
    compare("facts", HASHES, written(hashes))


def contents(root: Path) -> dict[str, bytes]:
    """Return the files that are truth: no locks, no caches, no marks of the boot in which a session was written."""
    files = {path.relative_to(root): path for path in sorted(root.rglob("*")) if path.is_file()}
    return {
        name.as_posix(): path.read_bytes()
        for name, path in files.items()
        if name.name != ".lock" and name.parent.name != "cache" and not name.match("sessions/*/settled")
    }


def without_recorded_words(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the files with a mark for the words of each recorded blocker, and manifests that attest to that.

    A directory keeps the words of its day, so only the rest is comparable with what is written today.
    """
    plain = {name: b"".join(map(_without_words, data.splitlines(keepends=True))) for name, data in files.items()}
    for name in [name for name in files if name.endswith("/manifest.jsonl")]:
        directory = name.removesuffix("manifest.jsonl")
        lines = [json.loads(line) for line in files[name].splitlines()]
        for line in lines:
            if line["kind"] == "segment_closed":
                segment = directory + line["segmentRelPath"]
                assert (line["bytes"], line["sha256"]) == (len(files[segment]), digest_of_bytes(files[segment]))
                line |= {"bytes": len(plain[segment]), "sha256": digest_of_bytes(plain[segment])}
        plain[name] = b"".join(canonical_bytes(line) + b"\n" for line in lines)
    return plain


def _without_words(line: bytes) -> bytes:
    if b'"suggestedFix":' not in line:
        return line
    return canonical_bytes(without_prose(json.loads(line))) + b"\n"


@pytest.mark.inv("HOUSE-6", "APP-3")
def test_the_same_calls_write_the_committed_data_directory(tmp_path: Path) -> None:
    answers = make_data_dir(tmp_path / "data")
    if is_writing("facts"):
        shutil.rmtree(DATA_DIR, ignore_errors=True)
        for name, data in contents(tmp_path / "data").items():
            (DATA_DIR / name).parent.mkdir(parents=True, exist_ok=True)
            (DATA_DIR / name).write_bytes(data)
    assert without_recorded_words(contents(tmp_path / "data")) == without_recorded_words(contents(DATA_DIR))
    compare("facts", DATA_ANSWERS, written(take_apart(answers).facts))


@pytest.fixture
def copied(tmp_path: Path) -> Harness:
    """The committed directory in a place where it can be written to, without any workflow file."""
    shutil.copytree(DATA_DIR, tmp_path / "data")
    return Harness.on_disk(tmp_path / "data")


def committed() -> dict[str, ToolResult]:
    """Return the committed answers of the directory, without their words."""
    answers: dict[str, Any] = json.loads(DATA_ANSWERS.read_text(encoding="utf-8"))
    return {name: ToolResult(structure=one["structure"], text="", is_error=False) for name, one in answers.items()}


def texts(answers: dict[str, ToolResult]) -> dict[str, list[Piece]]:
    return {name: places["text"] for name, places in take_apart(answers).words.items()}


@pytest.mark.inv("HOUSE-6", "READ-6")
def test_the_committed_directory_loads_as_healthy_with_all_its_facts(copied: Harness) -> None:
    session = copied.store.load(SessionId(committed()["first"]["run"]["sessionId"]))
    assert session is not None
    assert len(session.runs) == 3
    assert sorted(node.kind for node in session.nodes.values()) == ["blocked_attempt", *["step"] * 7]
    events = copied.events(session.session)
    assert [event.event_index for event in events] == list(range(session.next_index))
    files = {path.read_bytes() for path in (DATA_DIR / "artifacts").iterdir()}
    (capture,) = [data for data in files if b'"kind":"capture"' in data]
    assert files - {capture} == {b'{"kind":"report","n":1}', canonical_bytes(rated("Low"))}
    assert [digest_of_bytes(capture)] == [one for node in session.nodes.values() for one in node.captures]
    branched = [copied.store.snapshot(node.snapshot).state for node in session.nodes.values() if node.captures]
    assert [state.edges_taken.values for state in branched] == [("way>both",)]


@pytest.mark.inv("HOUSE-6", "TOK-7", "ADV-5")
def test_every_call_that_made_the_committed_directory_replays_to_its_committed_answer(
    copied: Harness, tmp_path: Path
) -> None:
    said = committed()
    before = contents(copied.data_dir or DATA_DIR)
    fork = copied.rehydrate(said["first"])["fork"]["ackToken"]
    sent = {"notesMarkdown": "Looked.", "artifacts": [{"n": 1, "kind": "report"}]}
    replayed = {
        "blocked": copied.advance(said["first"], None),
        "second": copied.advance(said["blocked"], None, output=sent),
        "third": copied.advance(said["second"], "Acted.", preferences={"riskPolicy": "balanced"}),
        "branch": copied.advance(said["rate"], None, output=RATED),
    }
    assert {name: without_prose(dict(one.structure)) for name, one in replayed.items()} == {
        name: said[name].structure for name in replayed
    }
    made = make_data_dir(tmp_path / "made")
    assert texts(made | replayed) == texts(made)
    assert fork not in (said["first"].ack, said["forked"].ack)
    assert contents(copied.data_dir or DATA_DIR) == before


@pytest.mark.inv("HOUSE-6", "ADV-8", "ADV-9", "PLAN-3")
def test_the_committed_directory_is_rehydrated_and_goes_on(copied: Harness) -> None:
    said = committed()
    for name in ("third", "forked", "other", "branch"):
        looked = copied.rehydrate(said[name])
        assert without_prose(looked["pending"], ("pending",)) == said[name]["pending"]
        assert looked.ack == said[name].ack
    for name in ("first", "blocked", "second"):
        assert copied.rehydrate(said[name]).warnings == ["STEP_ALREADY_DONE", "WORKFLOW_SOURCE_REMOVED"]
    recap = [line for line in copied.rehydrate(said["third"])["recap"].splitlines() if line[:1] in ("`", ">", "-")]
    assert recap == ["`Act`:", "> Acted.", "`Look at T-1`:", "> Looked.", "- `report` sha256:82278effd28e"]
    assert copied.follow(said["third"])["isComplete"], "a gate that a claim opens"
    assert copied.follow(said["forked"])["pending"]["stepId"] == "ask"
    assert copied.follow(said["other"])["isComplete"]
    assert copied.follow(said["branch"])["pending"]["stepId"] == "two"
    again = Harness.on_disk(copied.data_dir or DATA_DIR).rehydrate(said["third"])
    assert again.warnings == ["STEP_ALREADY_DONE", "WORKFLOW_SOURCE_REMOVED"]
