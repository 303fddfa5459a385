"""Workflow ids: `namespace.name`, the reserved namespace, and the suggestion for an old id."""

import pytest

from interlock.define.workflow_ids import classify_id, is_reserved, suggest_id
from interlock.kernel.ids import SourceKind


@pytest.mark.inv("SRC-1")
@pytest.mark.parametrize("name", ["a.b", "wr.code_review", "my-team.deploy-2", "a_.b_", f"a.{'b' * 126}"])
def test_two_lower_case_segments_with_one_dot_are_namespaced(name: str) -> None:
    assert classify_id(name) == "namespaced"


@pytest.mark.inv("SRC-2")
@pytest.mark.parametrize("name", ["deploy", "Deploy-It", "v2_final", "9lives", "A", "b" * 128])
def test_an_undotted_id_is_legacy(name: str) -> None:
    assert classify_id(name) == "legacy"


@pytest.mark.inv("SRC-1")
@pytest.mark.parametrize(
    "name",
    [
        *("a.b.c", "a..b", ".a", "a.", ".", "", " ", "a b", "A.b", "a.B", "1a.b", "a.1b", "a.-b", "_a.b", "-a", "_a"),
        *("a.b\n", "a\n", "\na", "wr.Foo", "ä.b", "aé", "a/b", "../a", "a\0", f"a.{'b' * 127}", "b" * 129),
    ],
)
def test_any_other_form_is_no_id(name: str) -> None:
    assert classify_id(name) is None


@pytest.mark.inv("SRC-3")
def test_only_the_namespace_of_the_core_is_reserved() -> None:
    assert is_reserved("wr.anything")
    assert not any(map(is_reserved, ("wrx.a", "wr", "wr_a", "my.wr")))


@pytest.mark.inv("SRC-2")
@pytest.mark.parametrize(
    ("old", "kind", "suggestion"),
    [
        ("deploy", "user", "user.deploy"),
        ("Deploy-It", "project", "project.deploy_it"),
        ("deploy", "remote", "repo.deploy"),
        ("deploy", "plugin", "repo.deploy"),
        ("deploy", "bundled", "wr.deploy"),
        ("9lives", "user", "user.w_9lives"),
    ],
)
def test_the_suggested_id_depends_on_source_and_old_id_alone(old: str, kind: SourceKind, suggestion: str) -> None:
    assert suggest_id(old, kind) == suggestion
    assert classify_id(suggestion) == "namespaced"


@pytest.mark.inv("SRC-2")
def test_a_suggestion_that_is_taken_gets_a_short_suffix_that_is_always_the_same() -> None:
    taken = frozenset({"user.deploy"})
    suggestion = suggest_id("deploy", "user", taken)
    assert suggestion == suggest_id("deploy", "user", taken)
    assert suggestion.startswith("user.deploy_")
    assert len(suggestion) == len("user.deploy_") + 4
    assert classify_id(suggestion) == "namespaced"
    assert suggest_id("Deploy", "user", taken) != suggestion


@pytest.mark.inv("SRC-2")
@pytest.mark.parametrize("old", ["b" * 128, "A" * 128])
def test_the_suggestion_for_the_longest_id_is_an_id(old: str) -> None:
    for taken in (frozenset[str](), frozenset({suggest_id(old, "project")})):
        assert classify_id(suggest_id(old, "project", taken)) == "namespaced"
