"""The adapter manifest: what a workflow declares of its context keys."""

import pytest
from tests.support.flow import compiled, compiled_dialect, declared, step

from interlock.kernel.canonical import digest_of


@pytest.mark.inv("EFF-10")
def test_the_manifest_names_each_declared_key_with_its_declaration_and_the_steps_that_set_it() -> None:
    inputs = [declared("mode", choices=["fast", "slow"], required=True), declared("count", "number")]
    flow = compiled(step("a", set=[{"key": "count", "value": 1}]), step("b"), inputs=inputs)
    manifest = flow.adapter
    assert manifest is not None
    assert manifest.to_json() == {
        "workflowId": "test.flow",
        "keys": [
            {"key": "count", "type": "number", "required": False, "choices": [], "items": None, "setBy": ["a"]},
            {
                "key": "mode",
                "type": "string",
                "required": True,
                "choices": ["fast", "slow"],
                "items": None,
                "setBy": [],
            },
        ],
    }
    assert flow.adapter_digest == digest_of(manifest.to_json())


@pytest.mark.inv("EFF-10")
def test_the_digest_follows_the_declarations_and_nothing_else() -> None:
    one = compiled(step("a"), inputs=[declared("mode")]).adapter_digest
    assert compiled(step("a", prompt="Another."), step("b"), inputs=[declared("mode")]).adapter_digest == one
    assert compiled(step("a"), inputs=[declared("mode", "number")]).adapter_digest != one


@pytest.mark.inv("EFF-10")
def test_a_workflow_that_declares_no_key_has_no_manifest() -> None:
    assert compiled(step("a"), inputs=[]).adapter_digest is None
    assert compiled_dialect({"id": "d", "title": "S", "prompt": "Do it."}).adapter is None
