"""Profiles and manifests: both spellings, and a report on each field."""

from typing import Any

import pytest

from interlock.drive.agent.manifest import load_profile
from interlock.drive.faults import TurnError

MANIFEST: dict[str, Any] = {
    "apiVersion": "ossa/v0.2.9",
    "kind": "Agent",
    "metadata": {"name": "tester", "version": "1.2.0"},
    "spec": {
        "role": "You test.",
        "taxonomy": {"domain": "quality"},
        "llm": {"provider": "anthropic", "model": "claude", "temperature": 0.1, "maxTokens": 100},
        "tools": [
            {"type": "mcp", "server": "files", "name": "files", "capabilities": ["read", {"name": "list"}]},
            {"type": "kubernetes", "name": "pods"},
            {"type": "something", "name": "odd", "parallel": True},
            "by_name",
        ],
        "constraints": {"max_turns": 7, "maxTokens": 500, "timeoutSeconds": 9, "cost": {"max": 1}},
        "state": {"mode": "long_running", "isolation_level": "read_committed"},
        "prompts": {"few_shot_examples": [{"input": "a", "output": "b"}], "system": {"template": "Be brief."}},
        "reliability": {"retry": {"maxRetries": 2}},
        "safety": {"content_filtering": {"redact": ["x"]}},
        "security": {"output_filtering": {"block": ["y"]}},
        "monitoring": {"alerting": True},
    },
}


def test_a_manifest_loads_and_states_what_a_driver_uses_in_either_spelling() -> None:
    loaded = load_profile(MANIFEST)
    profile = loaded.profile
    assert loaded.is_manifest
    assert (profile.identity.id, profile.identity.version, profile.role) == ("tester", "1.2.0", "You test.")
    assert (profile.llm.provider, profile.llm.parameters) == ("anthropic", {"temperature": 0.1, "max_tokens": 100})
    assert (profile.constraints.max_turns, profile.constraints.max_tokens, profile.constraints.timeout_seconds) == (
        7,
        500,
        9,
    )
    assert [(tool.name, tool.type) for tool in profile.tools] == [
        ("files", "mcp"),
        ("pods", "kubernetes"),
        ("odd", "function"),
        ("by_name", "function"),
    ]
    assert profile.tools[0].capabilities == ("read", "list")
    assert profile.tools[2].parallel
    assert (profile.state.mode, profile.state.isolation_level) == ("persistent", "read_committed")
    assert (profile.prompts.system, profile.prompts.few_shot_examples[0].assistant) == ("Be brief.", "b")
    assert profile.reliability.retry is not None
    assert profile.reliability.retry.max_retries == 2
    assert (profile.safety.content_filtering.redact, profile.security.output_filtering.block) == (("x",), ("y",))


def test_each_field_of_a_manifest_is_said_to_be_used_ignored_or_unknown() -> None:
    fates = {one.path: one.fate for one in load_profile(MANIFEST).fields}
    assert fates["spec.constraints.max_turns"] == "used"
    assert fates["spec.constraints.timeoutSeconds"] == "used"
    assert fates["spec.taxonomy"] == "ignored"
    assert fates["spec.constraints.cost"] == "ignored"
    assert fates["spec.tools[0].server"] == "ignored"
    assert fates["spec.monitoring"] == "unknown"
    assert set(fates.values()) == {"used", "ignored", "unknown"}


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ({"role": "x", "constraint": {}}, "constraint"),
        ({"role": "x", "constraints": {"max_turn": 1}}, "constraints.max_turn"),
        ({"role": "x", "constraints": {"max_turns": 0}}, "constraints.max_turns"),
        ({"role": "x", "constraints": {"max_turns": "5"}}, "constraints.max_turns"),
        ({"role": "x", "state": {"mode": "redis"}}, "state.mode"),
        ({"constraints": {}}, "role"),
        ({"kind": "Agent"}, "spec"),
    ],
)
def test_a_profile_with_a_mistake_is_refused_and_the_field_is_named(document: dict[str, Any], named: str) -> None:
    with pytest.raises(TurnError, match=named):
        load_profile(document)


def test_a_profile_without_anything_but_a_role_has_the_defaults_of_the_specification() -> None:
    profile = load_profile({"role": "x"}).profile
    assert (profile.turn_chain.continue_on_tool_use, profile.turn_chain.max_tool_turns) == (True, 10)
    assert not profile.turn_chain.confirm_between_turns
    assert (profile.memory.window_size, profile.memory.max_history_tokens) == (20, 4000)
    assert profile.state.isolation_level == "serializable"
    breaker = profile.reliability.circuit_breaker
    assert (breaker.failure_threshold, breaker.timeout_seconds, breaker.half_open_requests) == (5, 60, 3)
