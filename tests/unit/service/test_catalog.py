"""The catalogue: every source is read on every look, nothing shadows the core, and no file hides another."""

import json
import os
import shutil
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

from interlock.config.settings import BUNDLED
from interlock.define.document import WorkflowDocument
from interlock.define.workflow_ids import classify_id
from interlock.kernel.budgets.workflow import (
    DIAGNOSTICS_FOUND_MAX,
    DOCUMENT_BYTES_MAX,
)
from interlock.kernel.errors import ErrorCode
from interlock.kernel.ids import SourceKind
from interlock.service.workflows import catalog, reading
from interlock.service.workflows.catalog import Catalog, CatalogView, Entry, Pinnable
from interlock.service.workflows.listing import Listing, bundled_listings
from interlock.store.memory.store import MemoryStore
from interlock.store.workflow_files import LocalWorkflowFiles
from interlock.testing.harness import FixedKeyRing, Harness, InlineWorkflows, linear_workflow

CORE = linear_workflow("wr.core", "a", name="The core's")


def viewed(*files: tuple[SourceKind, str, object]) -> CatalogView:
    workflows = InlineWorkflows()
    for kind, ref, document in files:
        workflows.put(document if isinstance(document, bytes) else json.dumps(document).encode(), kind=kind, ref=ref)
    return Catalog(workflows).view(None)


def refused(view: CatalogView) -> list[tuple[str, str, str]]:
    return [(file.source.kind, file.source.ref, file.diagnostics[0].code) for file in view.refused]


@pytest.mark.inv("SRC-3")
@pytest.mark.parametrize("kind", ["user", "project"])
def test_nothing_shadows_the_core_and_the_attempt_is_reported(kind: SourceKind) -> None:
    view = viewed(("bundled", "core.json", CORE), (kind, "mine.json", {**CORE, "name": "Mine"}))
    assert view.entries["wr.core"].listing.name == "The core's"
    assert refused(view) == [(kind, "mine.json", "reserved_namespace")]
    assert refused(viewed((kind, "mine.json", linear_workflow("wr.new", "a")))) == [
        (kind, "mine.json", "reserved_namespace")
    ]


@pytest.mark.inv("SRC-3")
def test_the_nearer_source_wins_and_the_other_is_reported() -> None:
    view = viewed(
        ("user", "theirs.json", linear_workflow("team.deploy", "a", name="User's")),
        ("project", "ours.json", linear_workflow("team.deploy", "a", name="Project's")),
    )
    assert view.entries["team.deploy"].listing.name == "Project's"
    replaced = view.replaced_by(view.entries["team.deploy"])
    assert replaced is not None
    assert (replaced.kind, replaced.ref) == ("user", "theirs.json")
    assert refused(view) == [], "the user's file has no fault"


@pytest.mark.inv("SRC-3")
def test_a_workflow_that_takes_the_place_of_the_users_says_so_in_the_list_and_at_the_start() -> None:
    harness = Harness.in_memory(linear_workflow("team.alone", "a"))
    places: list[tuple[SourceKind, str]] = [("user", "theirs.json"), ("project", "ours.json")]
    for kind, ref in places:
        harness.workflows.put(json.dumps(linear_workflow("team.deploy", "a")).encode(), kind=kind, ref=ref)
    listed = harness.call("list_workflows")
    by_id = {one["workflowId"]: one for one in listed["workflows"]}
    assert by_id["team.deploy"]["replaces"] == {"source": "theirs.json", "sourceKind": "user"}
    assert "(used in place of theirs.json of the user source)" in listed.text
    assert "refused" not in listed.structure
    assert harness.start("team.deploy").warnings == ["WORKFLOW_REPLACED"]
    assert harness.start("team.alone").warnings == []


@pytest.mark.inv("SRC-3")
def test_a_copy_with_a_longer_name_never_takes_the_place_of_the_original() -> None:
    """What file managers, browsers and synchronised folders call a copy often sorts before the original."""
    copies = ["a copy.json", "a (1).json", "a (conflicted copy).json", "a - Copy.json", "Copy of a.json", "a-1.json"]
    files: list[tuple[SourceKind, str, object]] = [
        ("project", ref, linear_workflow("team.deploy", "a", name=ref)) for ref in (*copies, "a.json")
    ]
    view = viewed(*files)
    assert view.entries["team.deploy"].listing.name == "a.json"
    found = {one.source.ref: one.diagnostics[0].message for one in view.refused}
    assert found == {
        ref: f"{ref!r} and 'a.json' of the project source have the same id 'team.deploy'; 'a.json' is used."
        for ref in copies
    }


@pytest.mark.inv("SRC-3")
def test_of_two_files_of_one_source_the_first_by_name_wins() -> None:
    files: list[tuple[SourceKind, str, object]] = [
        ("project", f"{name}.json", linear_workflow("team.deploy", "a", name=name)) for name in ("b", "a", "c")
    ]
    for order in (files, files[::-1]):
        view = viewed(*order)
        assert view.entries["team.deploy"].listing.name == "a"
        assert refused(view) == [("project", "b.json", "id_taken"), ("project", "c.json", "id_taken")]


@pytest.mark.inv("SRC-4")
def test_a_faulty_file_is_reported_and_hides_nothing() -> None:
    view = viewed(
        ("project", "a.json", b"{"),
        ("project", "b.json", linear_workflow("team.b", "a")),
        ("project", "c.yaml", b"a: *x"),
    )
    assert list(view.entries) == ["team.b"]
    assert refused(view) == [("project", "a.json", "not_json"), ("project", "c.yaml", "not_yaml")]


KILLERS = {
    "an integer of 5,000 digits": ("x.json", b'{"id": ' + b"1" * 5_000 + b"}"),
    "an integer of 5,000 digits in yaml": ("x.yaml", b"id: " + b"1" * 5_000),
    "a tag that its text contradicts": ("x.yaml", b"id: !!int abc"),
    "an escape beyond unicode": ("x.yaml", b'id: "\\UFFFFFFFF"'),
    "half a character as a repeated key": ("x.json", b'{"\\ud800": 1, "\\ud800": 2}'),
    "half a character in the id": ("x.json", b'{"id": "\\ud800"}'),
}


@pytest.mark.inv("SRC-4", "ANS-9")
@pytest.mark.parametrize("killer", KILLERS)
def test_no_file_can_keep_the_other_workflows_from_being_listed_and_started(killer: str) -> None:
    harness = Harness.in_memory(linear_workflow("team.good", "a"))
    ref, data = KILLERS[killer]
    harness.workflows.put(data, ref=ref)
    listed = harness.call("list_workflows")
    assert [one["workflowId"] for one in listed["workflows"]] == ["team.good"]
    assert [one["source"] for one in listed["refused"]] == [ref]
    assert not harness.start("team.good").is_error


@pytest.mark.inv("SRC-4")
@pytest.mark.parametrize("checked", [(reading, "parse_document"), (catalog, "compile_workflow")], ids=["read", "start"])
def test_a_file_whose_check_fails_is_refused_and_hides_nothing(
    checked: tuple[ModuleType, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    where, name = checked
    right = getattr(where, name)

    def fail(document: object, *more: object) -> object:
        if "team.bad" in str(document):
            raise TypeError("secret words")
        return right(document, *more)

    monkeypatch.setattr(where, name, fail)
    harness = Harness.in_memory(linear_workflow("team.good", "a"))
    harness.workflows.put(json.dumps(linear_workflow("team.bad", "a")).encode(), ref="bad.json")
    assert "team.good" in [one["workflowId"] for one in harness.call("list_workflows")["workflows"]]
    answer = harness.start("team.bad")
    assert answer.structure["code"] == ErrorCode.WORKFLOW_INVALID
    assert "The check of this file failed." in answer.text
    assert "secret words" not in answer.text
    assert "secret words" in caplog.text
    assert not harness.start("team.good").is_error


def uncompilable(workflow_id: str, **more: object) -> dict[str, object]:
    """Return a document of sound form whose step asks for an assessment that does not exist."""
    step = {"id": "a", "title": "A {{nothing}}", "prompt": "Do a.", "assessmentRefs": ["nope"]}
    return linear_workflow(workflow_id, step, **more)


@pytest.mark.inv("SRC-4")
def test_a_workflow_with_a_fault_that_only_compiling_shows_is_not_offered() -> None:
    harness = Harness.in_memory(linear_workflow("team.good", "a"))
    harness.workflows.put(uncompilable("team.bad"), ref="bad.json")
    listed = harness.call("list_workflows")
    assert [one["workflowId"] for one in listed["workflows"]] == ["team.good"]
    (file,) = listed["refused"]
    assert (file["source"], file["workflowId"], file["diagnostic"]["code"]) == (
        "bad.json",
        "team.bad",
        "unknown_assessment",
    )
    assert harness.start("team.bad").code is ErrorCode.WORKFLOW_INVALID


@pytest.mark.inv("SRC-4", "SRC-7")
def test_why_a_workflow_cannot_run_names_errors_only() -> None:
    harness = Harness.in_memory()
    harness.workflows.put(uncompilable("team.bad"), ref="bad.json")
    (file,) = harness.ports.catalog.view(None).refused
    assert {one.severity for one in file.diagnostics} == {"error", "warning"}, "its author reads both"
    for tool in ("start_workflow", "inspect_workflow"):
        answer = harness.call(tool, {"workflowId": "team.bad"})
        assert [one["code"] for one in answer["details"]["diagnostics"]] == ["unknown_assessment"]
        assert "{{nothing}}" not in answer.text


@pytest.mark.inv("SRC-3", "SRC-4")
@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (("user", "good.json"), ("project", "bad.json")),
        (("project", "good.json"), ("user", "bad.json")),
        (("project", "good.json"), ("project", "bad.json")),
        (("project", "bad.json"), ("project", "good.json")),
    ],
)
def test_a_file_that_does_not_compile_hides_no_file_with_the_same_id(
    good: tuple[SourceKind, str], bad: tuple[SourceKind, str]
) -> None:
    workflows = InlineWorkflows()
    files = {good: linear_workflow("team.deploy", "a", name="Good"), bad: uncompilable("team.deploy", name="Bad")}
    for (kind, ref), document in files.items():
        workflows.put(json.dumps(document).encode(), kind=kind, ref=ref)
    view = Catalog(workflows).view(None)
    entry = view.startable("team.deploy")
    assert entry is not None
    assert entry.listing.name == "Good"
    assert view.entries["team.deploy"] is entry
    assert [(kind, ref) for kind, ref, _ in refused(view)] == [bad]


def shown(*steps: dict[str, object]) -> list[tuple[str, str]]:
    (file,) = viewed(("project", "x.json", linear_workflow("team.x", *steps))).refused
    return [(one.code, one.severity) for one in file.diagnostics]


@pytest.mark.inv("SRC-4")
def test_a_list_of_very_many_faults_ends_by_saying_that_there_are_more() -> None:
    mistyped: list[dict[str, object]] = [{"id": f"s{at}", "title": "T", "promt": "p"} for at in range(300)]
    found = shown(*mistyped)
    assert (len(found), found[-1]) == (DIAGNOSTICS_FOUND_MAX + 1, ("too_many", "error"))
    assert {code for code, _ in shown(*mistyped[:100])} == {"unknown_key", "prompt_missing"}


def test_very_many_warnings_hide_no_error() -> None:
    warned: list[dict[str, object]] = [{"id": f"s{at}", "title": f"{{{{z{at}}}}}", "prompt": "p"} for at in range(300)]
    found = shown(*warned, {"id": "z", "title": "Z", "prompt": "p", "when": {"var": "nothing", "equals": 1}})
    assert found[0] == ("undeclared_key", "error")
    assert (len(found), found[-1]) == (DIAGNOSTICS_FOUND_MAX + 1, ("too_many", "warning"))


@pytest.mark.inv("SRC-4")
def test_a_list_compiles_each_file_once_and_a_start_compiles_only_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    right = catalog.compile_workflow

    def compiling(document: WorkflowDocument, *more: object) -> object:
        compiled.append(document.id)
        return right(document, *more)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(catalog, "compile_workflow", compiling)
    harness = Harness.in_memory(linear_workflow("team.a", "a"), linear_workflow("team.b", "a"))
    assert not harness.start("team.b").is_error
    assert compiled == ["team.b"]
    for _ in range(2):
        harness.call("list_workflows")
        harness.workflows.put(linear_workflow("team.a", "a"))
    assert compiled == ["team.b", "team.a"], "a file whose bytes are the same is not compiled again"


@pytest.mark.inv("SRC-4")
def test_one_list_compiles_so_many_bytes_and_the_next_continues() -> None:
    workflows = InlineWorkflows()
    for number in range(4):
        workflows.put(uncompilable(f"team.w{number}"))
    catalog = Catalog(workflows, checked_bytes_max=1)
    offered = [len(catalog.view(None).entries) for _ in range(5)]
    assert offered == [3, 2, 1, 0, 0]
    assert catalog.view(None) is catalog.view(None)
    assert Catalog(workflows, checked_bytes_max=None).view(None).entries == {}


def hash_of(entry: Entry) -> str:
    assert isinstance(entry.compiled, Pinnable)
    return entry.compiled.workflow_hash


@pytest.mark.inv("SRC-4")
def test_a_file_is_compiled_again_when_it_changed_and_only_then() -> None:
    workflows = InlineWorkflows(linear_workflow("team.a", "a", name="Old"), linear_workflow("team.b", "a"))
    catalog = Catalog(workflows)
    before = catalog.view(None).entries
    workflows.put(linear_workflow("team.a", "a", name="New"))
    after = catalog.view(None).entries
    assert after["team.a"].listing.name == "New"
    assert hash_of(after["team.a"]) != hash_of(before["team.a"])
    assert after["team.b"] is before["team.b"]
    assert after["team.b"].compiled is before["team.b"].compiled
    workflows.remove("team.a.json")
    assert list(catalog.view(None).entries) == ["team.b"]


@pytest.mark.inv("SRC-5")
def test_the_nearest_id_may_be_near_without_its_namespace() -> None:
    view = viewed(("project", "a.json", linear_workflow("team.deploy_all", "a")))
    assert (
        view.nearest("deploy-all")
        == view.nearest("other.deploy_all")
        == view.nearest("team.deploy")
        == view.nearest("TEAM.DEPLOY_ALL")
        == view.nearest("Deploy")
        == "team.deploy_all"
    )
    assert view.nearest("review") is None


@pytest.mark.inv("SRC-2")
def test_an_undotted_id_is_listed_as_legacy_and_gets_a_suggested_id() -> None:
    harness = Harness.in_memory()
    harness.workflows.put(linear_workflow("Old-One", "a"), kind="user")
    harness.workflows.put(linear_workflow("user.old_two", "a"), kind="user")
    harness.workflows.put(linear_workflow("Old-Two", "a"), kind="user")
    listed = {one["workflowId"]: one["idStatus"] for one in harness.call("list_workflows")["workflows"]}
    assert listed == {"Old-One": "legacy", "Old-Two": "legacy", "user.old_two": "namespaced"}
    view = harness.ports.catalog.view(None)
    suggested = {name: view.suggested(entry) for name, entry in view.entries.items()}
    assert (suggested["Old-One"], suggested["user.old_two"]) == ("user.old_one", None)
    assert (suggested["Old-Two"] or "").startswith("user.old_two_")
    assert classify_id(suggested["Old-Two"] or "") == "namespaced"
    assert not harness.start("Old-Two").is_error


@pytest.fixture
def sources(tmp_path: Path) -> LocalWorkflowFiles:
    return LocalWorkflowFiles(core_dirs=(tmp_path / "core",), user_dir=tmp_path / "user")


def write(path: Path, document: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(document if isinstance(document, bytes) else json.dumps(document).encode())


@pytest.mark.inv("SRC-4")
def test_a_source_that_is_missing_is_an_empty_one(sources: LocalWorkflowFiles, tmp_path: Path) -> None:
    assert sources.files(None) == sources.files(tmp_path / "nowhere") == sources.files(Path("/dev/null")) == ()
    assert sources.files(Path("/" + "x" * 5_000)) == ()
    assert not list(tmp_path.iterdir())


@pytest.mark.inv("SRC-4", "ANS-10")
def test_files_are_found_at_any_depth_and_named_relative_to_their_source(
    sources: LocalWorkflowFiles, tmp_path: Path
) -> None:
    write(tmp_path / "core" / "c.json", CORE)
    write(tmp_path / "user" / "deep" / "er" / "u.yml", b"id: team.u\nname: U\nsteps: [{id: a, title: A, prompt: p}]\n")
    write(tmp_path / "space" / ".interlock" / "workflows" / "p.yaml", b"{}")
    write(tmp_path / "user" / "notes.md", b"no workflow")
    write(tmp_path / "user" / "dir.json" / "inner.txt", b"")
    found = [(file.kind, file.ref) for file in sources.files(tmp_path / "space")]
    assert found == [("bundled", "c.json"), ("user", "deep/er/u.yml"), ("project", "p.yaml")]
    view = Catalog(sources).view(tmp_path / "space")
    assert isinstance(view.entries["team.u"].document.content, WorkflowDocument)
    assert str(tmp_path) not in json.dumps([one.to_json() for file in view.refused for one in file.diagnostics])


@pytest.mark.inv("SRC-11")
def test_hidden_files_and_copies_of_editors_are_no_workflow_files(sources: LocalWorkflowFiles, tmp_path: Path) -> None:
    names = ["._a.yaml", ".git/x.json", ".vscode/settings.json", "node_modules/x/package.json", "a.yaml~", "#a.yaml#"]
    for name in (*names, ".#a.yaml", ".a.yaml.swp", "deep/._b.yml"):
        write(tmp_path / "user" / name, b"\0\5\026\7")
        write(tmp_path / "space" / ".interlock" / "workflows" / name, b"\0\5\026\7")
    assert sources.files(tmp_path / "space") == ()


@pytest.mark.inv("SRC-11")
def test_a_link_that_leads_out_of_its_source_is_reported_and_not_followed(
    sources: LocalWorkflowFiles, tmp_path: Path
) -> None:
    write(tmp_path / "secret.json", linear_workflow("team.secret", "a"))
    write(tmp_path / "user" / "inside.json", linear_workflow("team.inside", "a"))
    (tmp_path / "user" / "out.json").symlink_to(tmp_path / "secret.json")
    (tmp_path / "user" / "in.json").symlink_to(tmp_path / "user" / "inside.json")
    (tmp_path / "user" / "nowhere.json").symlink_to(tmp_path / "nowhere")
    write(tmp_path / "elsewhere" / "deep.json", linear_workflow("team.deep", "a"))
    (tmp_path / "user" / "out_dir").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "user" / "in_dir").symlink_to(tmp_path / "user")
    assert [(file.ref, file.is_outside) for file in sources.files(None)] == [
        ("in.json", False),
        ("inside.json", False),
        ("out.json", True),
        ("out_dir", True),
    ]
    found = {one.source.ref: one.faults[0].message for one in Catalog(sources).view(None).refused}
    assert [found[name] for name in ("out.json", "out_dir")] == [
        "It is a link that leads out of its source, so it is not read."
    ] * 2
    (tmp_path / "user" / "out.json").unlink()
    write(tmp_path / "user" / "out.json", linear_workflow("team.out", "a"))
    assert "team.out" in Catalog(sources).view(None).entries


@pytest.mark.inv("SRC-4")
def test_a_file_whose_status_cannot_be_read_is_refused_by_its_name_and_hides_no_other(
    sources: LocalWorkflowFiles, tmp_path: Path
) -> None:
    write(tmp_path / "user" / "good.json", linear_workflow("team.good", "a"))
    (tmp_path / "user" / "aa.json").symlink_to("aa.json")
    catalog = Catalog(sources)
    for _ in range(2):
        view = catalog.view(None)
        assert (list(view.entries), refused(view)) == (["team.good"], [("user", "aa.json", "not_utf8")])
    (tmp_path / "user" / "aa.json").unlink()
    write(tmp_path / "user" / "aa.json", linear_workflow("team.aa", "a"))
    assert sorted(catalog.view(None).entries) == ["team.aa", "team.good"]


def test_no_more_of_a_file_is_read_than_it_takes_to_refuse_it(sources: LocalWorkflowFiles, tmp_path: Path) -> None:
    write(tmp_path / "user" / "big.json", b" " * (DOCUMENT_BYTES_MAX * 2))
    (file,) = sources.files(None)
    assert len(sources.read(file)) == DOCUMENT_BYTES_MAX + 1
    assert refused(Catalog(sources).view(None)) == [("user", "big.json", "too_large")]


def test_a_file_that_vanishes_between_listing_and_reading_is_refused_and_hides_nothing() -> None:
    class Vanishing(InlineWorkflows):
        def read(self, file: object) -> bytes:
            raise FileNotFoundError(str(file))

    view = Catalog(Vanishing(linear_workflow("team.a", "a"))).view(None)
    assert [file.source.ref for file in view.refused] == ["team.a.json"]


@pytest.mark.inv("SRC-4", "ANS-9")
@pytest.mark.parametrize("content", [linear_workflow("team.odd", "a"), {"id": "team.odd"}], ids=["sound", "faulty"])
def test_a_file_whose_name_is_no_text_hides_nothing_and_breaks_no_answer(tmp_path: Path, content: object) -> None:
    """Linux file names are bytes; one that is not UTF-8 cannot be sent as it stands, nor recorded."""
    user = tmp_path / "user"
    write(user / "good.json", linear_workflow("team.good", "a"))
    odd = os.fsencode(user) + b"/odd\xff.json"
    Path(os.fsdecode(odd)).write_bytes(json.dumps(content).encode())
    sources = LocalWorkflowFiles(core_dirs=(tmp_path / "core",), user_dir=user)
    harness = Harness.over(MemoryStore(), keys=FixedKeyRing(), sources=sources)
    listed = harness.call("list_workflows")
    assert "team.good" in [one["workflowId"] for one in listed["workflows"]]
    assert not harness.start("team.good").is_error
    harness.call("inspect_workflow", {"workflowId": "team.odd"})
    assert harness.start("team.odd").code in (None, ErrorCode.WORKFLOW_INVALID, ErrorCode.WORKFLOW_NOT_FOUND)


def test_an_edit_on_disk_is_seen_by_the_next_call(sources: LocalWorkflowFiles, tmp_path: Path) -> None:
    path = tmp_path / "user" / "a.json"
    write(path, linear_workflow("team.a", "a", name="Old"))
    catalog = Catalog(sources)
    assert catalog.view(None).entries["team.a"].listing.name == "Old"
    stamp = path.stat()
    write(path, linear_workflow("team.a", "a", name="Newer"))
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert catalog.view(None).entries["team.a"].listing.name == "Newer"


@pytest.mark.inv("LIM-3")
def test_one_look_checks_so_many_patterns_and_the_next_goes_on_where_it_ended() -> None:
    def with_patterns(name: str, *patterns: str) -> dict[str, object]:
        rules = [{"type": "regex", "pattern": pattern} for pattern in patterns]
        step = {"id": "a", "title": "A", "prompt": "Do a.", "validationCriteria": rules}
        return linear_workflow(f"team.{name}", step)

    workflows = InlineWorkflows(linear_workflow("team.z", "a"))
    for number in range(8):
        large = [rf"\p{{L}}{{1,{40 + number}}}", rf"\pL{{1,{40 + number}}}x"]
        workflows.put(with_patterns(f"a{number}", *large))
    workflows.put(with_patterns("b", "^done$"))
    whole = {f"team.a{number}" for number in range(8)} | {"team.b", "team.z"}
    catalog, seen = Catalog(workflows), list[set[str]]()
    while not seen or seen[-1] != whole:
        view = catalog.view(None)
        seen.append(set(view.entries))
        for file in view.refused:
            assert file.workflow_id in whole
            assert [(one.code, one.fix[:10]) for one in file.diagnostics] == [("bad_pattern", "Call again")]
    assert len(seen) == 2
    assert all(before < after for before, after in pairwise(seen))
    assert all("team.z" in ids for ids in seen), "a file without patterns waits for none"


LARGE = b'{"steps": [{"id": "team.inner", "x": {"id": "y"}}], "id": "team.large", "guidance": ["'
TOO_LARGE = LARGE + b"x" * DOCUMENT_BYTES_MAX + b'"]}'


@pytest.mark.inv("SRC-5")
@pytest.mark.parametrize(
    ("ref", "data", "code"),
    [
        ("large.json", TOO_LARGE, "too_large"),
        ("large.json", LARGE, "not_json"),
        (
            "large.yaml",
            b"steps:\n  - id: team.inner\nid: 'team.large'  # mine\nname: " + b"x" * DOCUMENT_BYTES_MAX,
            "too_large",
        ),
        ("large.yaml", b"id: team.large\r\nname: [\r\n", "not_yaml"),
        ("large.yaml", TOO_LARGE, "too_large"),
    ],
)
def test_the_id_of_a_file_that_cannot_be_parsed_answers_with_its_fault(ref: str, data: bytes, code: str) -> None:
    harness = Harness.in_memory(linear_workflow("team.larger", "a"))
    harness.workflows.put(data, ref=ref)
    refused = harness.start("team.large")
    assert refused.code is ErrorCode.WORKFLOW_INVALID
    assert refused["details"]["source"] == ref
    assert [one["code"] for one in refused["details"]["diagnostics"]] == [code]
    assert harness.start("team.inner").code is ErrorCode.WORKFLOW_NOT_FOUND


@pytest.mark.inv("SRC-5")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b'{"id": 7',
        b'{"id": "',
        b'{"id": "team.x',
        b'{"id": "' + b'\\"' * DOCUMENT_BYTES_MAX,
        b'{"a": "id", "b": "team.x"',
        b'[{"id": "team.x"',
        b'{"id": "a\\u0062"',
        b"\xff",
    ],
)
@pytest.mark.parametrize("ref", ["x.json", "x.yaml"])
def test_a_file_that_states_no_id_has_none(ref: str, data: bytes) -> None:
    assert [file.workflow_id for file in viewed(("project", ref, data)).refused] == [None]


@pytest.mark.inv("SRC-10")
def test_a_list_parses_no_bundled_workflow_and_a_changed_one_is_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = tmp_path / "core"
    shutil.copytree(BUNDLED, core)
    sources = LocalWorkflowFiles(core_dirs=(core,), user_dir=None)
    with monkeypatch.context() as patched:
        patched.setattr(reading, "parse_text", None)
        listed = Catalog(sources).view(None)
    assert len(listed.entries) == len(bundled_listings()) > 10
    assert listed.refused == ()
    for entry in listed.entries.values():
        assert entry.listing == Listing.of(entry.document.content)
        assert isinstance(entry.compiled, Pinnable)
    changed = core / "quick_task.json"
    changed.write_bytes(changed.read_bytes().replace(b'"name": "Quick task"', b'"name": "Short task"'))
    assert Catalog(sources).view(None).entries["wr.quick_task"].listing.name == "Short task"
    changed.write_bytes(changed.read_bytes().replace(b'"name"', b'"nam"', 1))
    assert [one.source.ref for one in Catalog(sources).view(None).refused] == ["quick_task.json"]


@pytest.mark.inv("SRC-10")
def test_the_files_of_the_package_are_listed_once_and_others_at_each_call(tmp_path: Path) -> None:
    package, core = tmp_path / "package", tmp_path / "core"
    sources = LocalWorkflowFiles(package_dir=package, core_dirs=(core,), user_dir=None)
    # A directory that cannot be listed counts as empty, but not for the life of the process.
    assert sources.files(None) == ()
    write(package / "one.json", {})
    write(core / "two.json", {})
    assert [file.ref for file in sources.files(None)] == ["one.json", "two.json"]
    write(package / "three.json", {})
    write(core / "four.json", {})
    assert [file.ref for file in sources.files(None)] == ["one.json", "four.json", "two.json"]


@pytest.mark.inv("SRC-10")
def test_a_file_of_the_package_without_a_status_is_listed_again(tmp_path: Path) -> None:
    package = tmp_path / "package"
    write(package / "one.json", {})
    (package / "two.json").symlink_to("two.json")
    sources = LocalWorkflowFiles(package_dir=package, user_dir=None)
    assert [file.stamp[1] for file in sources.files(None)] == [2, -1]
    (package / "two.json").unlink()
    write(package / "two.json", {})
    assert [file.stamp[1] for file in sources.files(None)] == [2, 2]
