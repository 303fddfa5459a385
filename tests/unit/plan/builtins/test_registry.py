"""The registry of built-ins: each example meets its schema, and every hole in a text has something to fill it."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast, get_args

import pytest
from jsonschema import Draft202012Validator

from interlock.define.parts import CapabilityName
from interlock.engine.judge.shape import artifact_outline
from interlock.kernel.blanks import Blank
from interlock.kernel.budgets.workflow import (
    REQUIREMENT_LINES_MAX,
    SNIPPET_BYTES_MAX,
)
from interlock.kernel.canonical import members_of
from interlock.plan.builtins.features import FEATURES, ConfigField
from interlock.plan.builtins.pack_schemas import PACK_SCHEMAS
from interlock.plan.builtins.packs import PACKS, Pack, pack_named
from interlock.plan.builtins.references import SNIPPETS
from interlock.plan.builtins.templates import TEMPLATES
from interlock.testing.harness import good_artifact

WITH_ARTIFACT = [pack for pack in PACKS.values() if pack.kind is not None]
HOLE = re.compile(r"{([A-Za-z]+)}")
LINE_LENGTH_MAX = 240


def faults(pack: Pack, artifact: Mapping[str, Any]) -> list[str]:
    assert pack.schema is not None
    return [error.message for error in Draft202012Validator(dict(pack.schema)).iter_errors(dict(artifact))]


def keys_at(value: object) -> set[str]:
    return set(cast("Mapping[str, object]", value)) if isinstance(value, Mapping) else set()


def keys_in(value: object) -> set[str]:
    return keys_at(value) | {key for member in members_of(value) for key in keys_in(member)}


def patterns_in(value: object) -> set[str]:
    own = {str(cast("Mapping[str, object]", value)["pattern"])} if "pattern" in keys_at(value) else set[str]()
    return own | {pattern for member in members_of(value) for pattern in patterns_in(member)}


@pytest.mark.parametrize("pack", WITH_ARTIFACT, ids=lambda pack: pack.contract_ref)
def test_the_smallest_artifact_meets_its_schema_and_lacks_nothing_that_is_required(pack: Pack) -> None:
    assert pack.schema is not None
    Draft202012Validator.check_schema(dict(pack.schema))
    artifact = good_artifact(pack.schema)
    assert faults(pack, artifact) == []
    for name in artifact:
        smaller = {key: value for key, value in artifact.items() if key != name}
        assert faults(pack, smaller), name


@pytest.mark.parametrize("pack", WITH_ARTIFACT, ids=lambda pack: pack.contract_ref)
def test_an_artifact_of_another_kind_does_not_meet_a_pack(pack: Pack) -> None:
    assert pack.schema is not None
    assert faults(pack, {**good_artifact(pack.schema), "kind": "wr.other"})


@pytest.mark.parametrize("pack", WITH_ARTIFACT, ids=lambda pack: pack.contract_ref)
def test_each_field_that_a_caller_writes_says_what_belongs_there(pack: Pack) -> None:
    assert pack.schema is not None
    for name, value in artifact_outline(pack.schema).items():
        if isinstance(value, Blank) and name != "dimensions":
            assert value.what != name, "a field without a description"


def test_schemas_hold_nothing_that_only_a_release_of_a_library_decides() -> None:
    for schema in PACK_SCHEMAS.values():
        assert not keys_in(schema) & {"$ref", "$defs", "$schema", "title", "default", "format"}


def test_the_keys_of_a_schema_stand_in_one_order() -> None:
    assert json.dumps(PACK_SCHEMAS) == json.dumps(PACK_SCHEMAS, sort_keys=True)


def test_the_only_pattern_is_that_of_ids_and_it_never_looks_back() -> None:
    assert {pattern for schema in PACK_SCHEMAS.values() for pattern in patterns_in(schema)} == {"^[a-z0-9_-]+$"}


def test_every_artifact_says_its_kind_and_no_two_contracts_share_one() -> None:
    for pack in WITH_ARTIFACT:
        schema = cast("dict[str, Any]", pack.schema)
        assert schema["properties"]["kind"] == {"const": pack.kind}
        assert "kind" in schema["required"]


def test_notes_are_text_and_what_a_step_takes_in_is_any_object() -> None:
    assert PACKS["wr.contracts.notes"].schema is None
    assert PACKS["wr.contracts.step_input"].schema == {"type": "object"}


def test_what_has_a_schema_is_an_artifact_or_what_a_step_takes_in() -> None:
    assert set(PACK_SCHEMAS) == {pack.contract_ref for pack in WITH_ARTIFACT} | {"wr.contracts.step_input"}


def test_references_kinds_and_ids_are_unique_sorted_and_of_our_namespace() -> None:
    for names, prefix in (
        (PACKS, "wr.contracts."),
        (FEATURES, "wr.features."),
        (SNIPPETS, "wr.refs."),
        (TEMPLATES, "wr.templates.routine."),
    ):
        assert list(names) == sorted(names)
        assert all(name.startswith(prefix) for name in names)
    kinds = [pack.kind for pack in WITH_ARTIFACT]
    assert len(kinds) == len(set(kinds))
    assert pack_named("wr.contracts.notes") is PACKS["wr.contracts.notes"]
    assert pack_named("wr.contracts.other") is None


def test_what_a_pack_tells_an_agent_leaves_room_for_a_line_more() -> None:
    for pack in PACKS.values():
        assert 1 <= len(pack.lines) < REQUIREMENT_LINES_MAX
        assert all(len(line) <= LINE_LENGTH_MAX and "\n" not in line for line in pack.lines)


def test_what_a_pack_tells_an_agent_names_the_kind_and_every_required_field() -> None:
    for pack in WITH_ARTIFACT:
        required = cast("dict[str, Any]", pack.schema)["required"]
        assert f"`{pack.kind}`" in pack.lines[0]
        named = set(re.findall(r"[A-Za-z]+", " ".join(pack.lines)))
        assert set(required) - {"kind"} <= named, pack.contract_ref


def test_a_setting_takes_what_its_type_bounds_and_choices_allow() -> None:
    size = ConfigField(name="size", type="integer", default=2, choices=(2, 4))
    assert [value for value in (1, 2, 4, True, "2") if size.takes(value)] == [2, 4]
    assert size.in_words() == "one of 2, 4"
    floor = ConfigField(name="floor", type="integer", default=2, minimum=1)
    assert [value for value in (0, 1, 99) if floor.takes(value)] == [1, 99]
    assert floor.in_words() == "a whole number from 1"
    tone = ConfigField(name="tone", type="string", default="dry", choices=("dry", "warm"))
    assert [value for value in ("dry", "loud", 1) if tone.takes(value)] == ["dry"]
    loud = ConfigField(name="loud", type="boolean", default=False)
    assert [value for value in (True, False, 0, "true") if loud.takes(value)] == [True, False]
    assert loud.in_words() == "true or false"


def test_every_hole_in_a_feature_is_a_setting_and_every_setting_has_one() -> None:
    for feature in FEATURES.values():
        text = " ".join((*feature.constraints, *feature.procedure, *feature.verify))
        assert set(HOLE.findall(text)) == {field.name for field in feature.config}
        assert all(field.takes(field.default) for field in feature.config)
        assert all(not field.takes(None) and not field.takes(0) for field in feature.config)
        assert all(field.in_words() for field in feature.config)


def test_every_hole_in_a_routine_is_an_argument_and_every_argument_has_one() -> None:
    for template in TEMPLATES.values():
        texts = " ".join(f"{step.title} {step.prompt}" for step in template.steps)
        assert set(HOLE.findall(texts)) == set(template.args)
        ids = [step.step_id for step in template.steps]
        assert len(ids) == len(set(ids))
        assert all(re.fullmatch(r"[a-z0-9-]+", step_id) for step_id in ids)


def test_a_feature_adds_short_lines_and_something_to_check() -> None:
    for feature in FEATURES.values():
        lines = [*feature.constraints, *feature.procedure, *feature.verify]
        assert feature.verify
        assert all(len(line) <= LINE_LENGTH_MAX and "\n" not in line for line in lines)


@pytest.mark.inv("PLAN-14")
def test_subagents_are_started_by_the_client_and_never_as_a_workflow() -> None:
    said = " ".join(FEATURES["wr.features.subagent_guidance"].constraints)
    assert "your client's own subagent tool" in said
    assert "Do not call `start_workflow` for delegated work." in said


def test_a_routine_has_two_to_five_steps_with_short_texts() -> None:
    for template in TEMPLATES.values():
        assert 2 <= len(template.steps) <= 5, template.template_id
        assert all(len(step.title) <= 60 and len(step.prompt) <= 600 for step in template.steps)


def test_a_reference_is_a_short_paragraph() -> None:
    for snippet in SNIPPETS.values():
        assert len(snippet.text.encode()) <= min(1_200, SNIPPET_BYTES_MAX)
        assert "\n" not in snippet.text


def test_no_text_of_the_registry_looks_like_a_template_of_the_run_time() -> None:
    routines = [
        text for template in TEMPLATES.values() for step in template.steps for text in (step.title, step.prompt)
    ]
    features = [line for one in FEATURES.values() for line in (*one.constraints, *one.procedure, *one.verify)]
    snippets = [snippet.text for snippet in SNIPPETS.values()]
    assert not [text for text in (*routines, *features, *snippets) if "{{" in text or "}}" in text]


@pytest.mark.inv("SRV-11", "SRC-41")
def test_the_published_registry_holds_every_built_in_with_all_that_the_compiler_uses() -> None:
    file = Path(__file__).parents[4] / "tool-schemas" / "builtins.json"
    registry = json.loads(file.read_text(encoding="utf-8"))
    ids = {name: [next(iter(one.values())) for one in parts] for name, parts in registry.items()}
    assert ids == {
        "capabilities": list(get_args(CapabilityName)),
        "contractPacks": list(PACKS),
        "features": list(FEATURES),
        "references": list(SNIPPETS),
        "routineTemplates": list(TEMPLATES),
    }
    assert {one["contractRef"]: one["schema"] for one in registry["contractPacks"]} == {
        ref: PACK_SCHEMAS.get(ref) for ref in PACKS
    }
    for shown, template in zip(registry["routineTemplates"], TEMPLATES.values(), strict=True):
        assert [step["prompt"] for step in shown["steps"]] == [step.prompt for step in template.steps]
