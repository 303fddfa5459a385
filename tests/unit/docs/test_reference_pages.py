"""The generated pages for authors leave nothing out and say nothing that the code does not."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast, get_args

import interlock
from interlock.define.diagnostics import DiagnosticCode
from interlock.define.native.forms import WorkflowForm
from interlock.kernel.shape.mirror import mirror_of
from publish.diagnostics import described_codes, diagnostics_page
from publish.language import described_keys, language_page
from publish.workflows import DIRECTORY, workflow_pages

SRC = Path(interlock.__file__).parent
CODES = set(get_args(DiagnosticCode))


def test_the_language_page_lists_every_key_of_every_form_and_no_other() -> None:
    schema = mirror_of(WorkflowForm).model_json_schema(by_alias=True)
    forms = {"WorkflowForm": schema, **schema["$defs"]}
    keys = {name: frozenset(form["properties"]) for name, form in forms.items() if "properties" in form}
    assert described_keys() == keys


def test_links_within_the_language_page_lead_to_its_sections() -> None:
    page = language_page()
    sections = {title.lower().replace(" ", "-") for title in re.findall(r"^## (.+)$", page, re.MULTILINE)}
    assert set(re.findall(r"\(#([^)]+)\)", page)) <= sections


def test_the_language_page_shows_types_bounds_and_defaults_as_the_models_have_them() -> None:
    page = language_page()
    assert "| `maxIterations` | whole number (1 to 1000) | yes |  |" in page
    assert "| `itemVar` | name |  | `item` |" in page
    assert "| `notes` | `required` \\| `optional` |" in page
    assert "| `required` | `true` \\| `false` |  | `true` |" in page


def test_each_bundled_workflow_has_a_page_with_its_graph_its_steps_and_where_failure_leads() -> None:
    pages = workflow_pages()
    index = pages.pop(f"{DIRECTORY}/README.md")
    assert len(pages) == len(list((SRC / "workflows").glob("*.json")))
    for path, page in pages.items():
        name = Path(path).name
        assert f"[`wr.{Path(path).stem}`]({name})" in index
        document = json.loads((SRC / "workflows" / name).with_suffix(".json").read_text(encoding="utf-8"))
        assert document["description"] in page
        assert "```mermaid\nflowchart TD\n" in page
        evidence, failure = page.partition("## Evidence")[2].split("## What happens on failure")
        for step in values_of(document, "needsUser"):
            assert all(need["ask"] in failure for need in step)
        for step in values_of(document, "assessmentConsequences"):
            assert all(one["effect"]["guidance"] in failure for one in step)
        for key in values_of(document, "produces"):
            assert all(f"`{one if isinstance(one, str) else one['key']}`" in evidence for one in key)


def values_of(value: object, name: str) -> Iterator[Any]:
    """Yield every value of a key in a document, at any depth."""
    if isinstance(value, dict):
        for key, inner in cast("dict[str, object]", value).items():
            if key == name:
                yield inner
            yield from values_of(inner, name)
    elif isinstance(value, list):
        for inner in cast("list[object]", value):
            yield from values_of(inner, name)


def test_no_page_names_where_in_the_project_a_rule_comes_from() -> None:
    assert not re.search(r"\([A-Z]+-\d+[,)]", language_page() + diagnostics_page())


def test_the_diagnostics_page_lists_every_code_and_no_other() -> None:
    assert set(described_codes()) == CODES
    assert set(re.findall(r"^\| `([a-z0-9_]+)` \|", diagnostics_page(), re.MULTILINE)) == CODES


def test_the_diagnostics_page_says_warning_exactly_where_the_code_warns() -> None:
    warned = {code for code, one in described_codes().items() if one.severity != "error"}
    assert warned == set(codes_of_calls({"warning", "report"}))
    either = {code for code, one in described_codes().items() if one.severity == "either"}
    assert either == warned & set(codes_of_calls({"fault", "report"}))


def codes_of_calls(names: set[str]) -> Iterator[str]:
    """Yield the codes that the code hands to functions of these names."""
    for path in SRC.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
                texts = [one.value for one in node.args if isinstance(one, ast.Constant)]
                yield from (text for text in texts if isinstance(text, str) and text in CODES)
