"""Every diagnostic code is reached through the catalogue, from a file, with its path: none is there for show."""

import json
from typing import get_args

import pytest

from interlock.define.diagnostics import Diagnostic, DiagnosticCode
from interlock.kernel.budgets import DOCUMENT_BYTES_MAX
from interlock.kernel.ids import SourceKind
from interlock.service.catalog import Catalog
from interlock.testing.harness import InlineWorkflows, linear_workflow

GOOD = linear_workflow("test.good", "a")
BLOCKS = {"goal": "g", "procedure": ["é" * 1000] * 20}


def steps(*steps: object, **more: object) -> bytes:
    return json.dumps({"id": "test.bad", "name": "Bad", "steps": steps, **more}).encode()


def step(**changes: object) -> dict[str, object]:
    return {"id": "a", "title": "A", "prompt": "p", **changes}


FILES: dict[str, tuple[bytes, str, str]] = {
    "too_large": (b" " * (DOCUMENT_BYTES_MAX + 1), "x.json", ""),
    "not_utf8": (b"\xff", "x.json", ""),
    "not_json": (b"{", "x.json", ""),
    "not_yaml": (b"a: *b", "x.yml", ""),
    "duplicate_key": (b"id: a\nid: b", "x.yaml", "id"),
    "too_deep": (b'{"a":' + b"[" * 80 + b"]" * 80 + b"}", "x.json", ""),
    "not_an_object": (b"[]", "x.json", ""),
    "number_not_exact": (b'{"a": 1e999}', "x.json", "a"),
    "unknown_key": (steps(step(), mode="x"), "x.json", "mode"),
    "missing_key": (b'{"id": "test.bad", "steps": [{"id":"a","title":"A","prompt":"p"}]}', "x.json", "name"),
    "wrong_type": (steps(step(), guidance="g"), "x.json", "guidance"),
    "wrong_value": (steps(step(notes="n")), "x.json", "steps[0].notes"),
    "empty": (steps(), "x.json", "steps"),
    "too_long": (steps(step(prompt=None, promptBlocks=BLOCKS)), "x.json", "steps[0]"),
    "too_many": (steps(step(), guidance=["g"] * 101), "x.json", "guidance"),
    "bad_id": (steps(step(id="A")), "x.json", "steps[0].id"),
    "duplicate_id": (steps(step(), step()), "x.json", "steps[1].id"),
    "reserved_namespace": (json.dumps(linear_workflow("wr.mine", "a")).encode(), "x.json", "id"),
    "id_taken": (json.dumps(GOOD).encode(), "z.json", "id"),
    "prompt_missing": (steps(step(prompt=None)), "x.json", "steps[0]"),
    "prompt_twice": (steps(step(promptBlocks={"goal": "g"})), "x.json", "steps[0]"),
    "legacy_id": (json.dumps(linear_workflow("old", "a")).encode(), "x.json", "id"),
}


def test_the_table_below_is_the_closed_set_of_codes() -> None:
    assert set(FILES) == set(get_args(DiagnosticCode))


def diagnostics_of(data: bytes, ref: str) -> tuple[Diagnostic, ...]:
    kind: SourceKind = "project"
    workflows = InlineWorkflows(GOOD)
    workflows.put(data, kind=kind, ref=ref)
    view = Catalog(workflows).view(None)
    assert "test.good" in view.entries, "no faulty file hides another workflow"
    refused = [one for file in view.refused if file.source_ref == ref for one in file.diagnostics]
    warned = [one for entry in view.entries.values() if entry.source_ref == ref for one in entry.warnings]
    return (*refused, *warned)


@pytest.mark.inv("PLAN-4", "SRC-4")
@pytest.mark.parametrize("code", FILES)
def test_a_file_with_one_fault_gets_that_code_at_its_place_and_nothing_else(code: str) -> None:
    data, ref, path = FILES[code]
    found = diagnostics_of(data, ref)
    assert [(one.code, one.path) for one in found] == [(code, path)]
    assert found[0].severity == ("warning" if code == "legacy_id" else "error")
    assert found[0].message.endswith((".", "?"))
    assert found[0].fix.endswith((".", "?"))
