"""Profiles and manifests: both spellings, and a report on each field."""

from collections.abc import Iterator
from typing import Any

import pytest

from interlock.drive.agent.manifest import load_profile
from interlock.drive.faults import TurnError
from interlock.kernel.canonical import Json

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


def with_llm(**llm: Json) -> dict[str, Any]:
    return {**MANIFEST, "spec": {"role": "You help.", "llm": llm}}


@pytest.mark.parametrize(
    ("llm", "said"),
    [
        ({"model": "${MODEL:-small}"}, "`spec.llm.model`: It has the variable `${MODEL:-small}`, which a driver"),
        ({"model": "${MODEL:-small}"}, "Write the value, for example `small`."),
        ({"provider": "${PROVIDER}"}, "`spec.llm.provider`: It has the variable `${PROVIDER}`"),
        ({"provider": "${PROVIDER}"}, "Write the value."),
        ({"base_url": "http://${HOST:-here}/v1"}, "for example `here`"),
        ({"temperature": "${TEMP:-0.3}"}, "Its `temperature` has the variable `${TEMP:-0.3}`"),
    ],
)
def test_a_variable_where_a_driver_needs_the_value_is_refused_with_what_to_write(llm: Any, said: str) -> None:
    with pytest.raises(TurnError) as refused:
        load_profile(with_llm(**llm))
    assert said in refused.value.fault.message


def test_a_text_for_the_model_may_have_what_looks_like_a_variable() -> None:
    document = with_llm(model="small", stop=["${END}"])
    document["spec"]["role"] = "Explain what ${HOME} is."
    assert load_profile(document).profile.role == "Explain what ${HOME} is."


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("temperature", value) for value in ("hot", [1], True, -3)),
        *(("max_tokens", value) for value in (0, 1.5, True, "100")),
        *(("top_p", value) for value in (1.1, -0.1, "1")),
        ("frequency_penalty", "low"),
        ("presence_penalty", {}),
        *(("stop", value) for value in (1, ["a", 1])),
        *(("seed", value) for value in (1.5, "1")),
    ],
)
def test_a_parameter_of_the_model_with_another_type_is_refused(name: str, value: Json) -> None:
    with pytest.raises(TurnError, match=f"Its `{name}` is no "):
        load_profile(with_llm(model="small", **{name: value}))


def test_the_usual_parameters_of_a_model_are_taken() -> None:
    parameters: dict[str, Json] = {
        "temperature": 0,
        "max_tokens": 1,
        "top_p": 0.5,
        "frequency_penalty": -1,
        "presence_penalty": 0.5,
        "stop": "END",
        "seed": 7,
        "of_one_provider": "fast",
    }
    loaded = load_profile(with_llm(model="small", parameters={**parameters, "top_k": None}))
    assert loaded.profile.llm.parameters == {**parameters, "top_k": None}


def test_a_profile_without_anything_but_a_role_has_the_defaults_of_the_specification() -> None:
    profile = load_profile({"role": "x"}).profile
    assert (profile.turn_chain.continue_on_tool_use, profile.turn_chain.max_tool_turns) == (True, 10)
    assert not profile.turn_chain.confirm_between_turns
    assert (profile.memory.window_size, profile.memory.max_history_tokens) == (20, 4000)
    assert profile.state.isolation_level == "serializable"
    breaker = profile.reliability.circuit_breaker
    assert (breaker.failure_threshold, breaker.timeout_seconds, breaker.half_open_requests) == (5, 60, 3)


SHAPES: dict[str, dict[str, Any]] = {
    "reasoning": {
        "taxonomy": {"domain": "writing", "capability": "editing"},
        "role": "You edit texts.",
        "llm": {"provider": "anthropic", "model": "large", "parameters": {"temperature": 0.2, "max_tokens": 900}},
        "reasoning": {"strategy": "plan", "max_steps": 4, "self_reflection": {"enabled": False}},
        "prompts": {
            "system": {"template": "Edit with care.", "version": "3", "variables": {"tone": "dry"}},
            "few_shot_examples": [{"input": "teh", "output": "the"}],
        },
        "knowledge_graph": {"enabled": True, "connection": {"endpoint": "bolt://graph.test"}},
        "tools": [
            {
                "name": "find_word",
                "description": "Finds a word.",
                "source": {"type": "mcp", "uri": "mcp://words/find"},
                "input": {"type": "object", "properties": {"word": {"type": "string"}}},
            }
        ],
        "autonomy": {"level": "supervised", "escalation": {"enabled": True}},
        "observability": {"tracing": {"enabled": True}, "metrics": {"custom": [{"name": "words"}]}, "logging": {}},
        "constraints": {"max_turns": 12, "timeout_seconds": 60, "max_tokens_per_turn": 500},
    },
    "limits and costs": {
        "role": "You count.",
        "llm": {"model": "small", "temperature": 0, "maxTokens": 50, "fallback_models": [{"model": "tiny"}]},
        "constraints": {
            "cost": {"max_tokens_per_day": 1000, "currency": "EUR"},
            "performance": {"max_latency_seconds": 5},
            "resources": {"cpu": "1"},
        },
        "state": {"mode": "stateless", "storage": {"type": "memory"}, "context_window": {"max_messages": 8}},
        "reliability": {"retry": {"maxRetries": 1, "initialDelayMs": 5}, "circuitBreaker": {"failureThreshold": 2}},
    },
    "tools of many kinds": {
        "role": "You look after a cluster.",
        "tools": [
            {"type": "mcp", "server": "files", "namespace": "home", "capabilities": ["read", {"name": "write"}]},
            {"type": "kubernetes", "name": "pods", "config": {"verbs": ["get"]}, "auth": {"type": "serviceaccount"}},
            {"type": "http", "name": "status", "endpoint": "http://127.0.0.1:9/status", "auth": {"type": "none"}},
            {"type": "function", "name": "add", "handler": {"runtime": "node", "capability": "add"}},
            "by_name",
        ],
        "safety": {"content_filtering": {"enabled": True}, "guardrails": {"enabled": True, "policies": []}},
        "security": {"authentication": {"type": "oauth2"}, "output_filtering": {"redact": ["k-[0-9]+"]}},
    },
    "a worker among others": {
        "type": "worker",
        "subtype": "records",
        "role": "",
        "capabilities": {"domains": ["records"], "operations": ["sort"]},
        "protocols": {"supported": [{"name": "rest", "tls": True}]},
        "processing": {"maxConcurrentTasks": 2, "retryPolicy": {"maxAttempts": 2}},
        "collaboration": {"pattern": "supervisor", "peers": ["reader"]},
        "deployment": {"platform": "cluster", "replicas": {"min": 1}},
        "runtimes": ["python"],
        "extensions": {"house": {"colour": "blue"}},
        "monitoring": {"healthChecks": True},
    },
}
"""Specifications in the shapes of published manifests: which members they have, and of what types."""
NOT_USED: dict[str, dict[str, str]] = {
    "reasoning": {
        "spec.taxonomy": "ignored",
        "spec.reasoning": "ignored",
        "spec.prompts.system.version": "ignored",
        "spec.prompts.system.variables": "ignored",
        "spec.knowledge_graph": "ignored",
        "spec.tools[0].source": "ignored",
        "spec.autonomy": "ignored",
        "spec.observability.tracing": "ignored",
        "spec.observability.metrics": "ignored",
        "spec.observability.logging": "ignored",
        "spec.constraints.max_tokens_per_turn": "unknown",
    },
    "limits and costs": {
        "spec.llm.fallback_models": "ignored",
        "spec.constraints.cost": "ignored",
        "spec.constraints.performance": "ignored",
        "spec.constraints.resources": "ignored",
        "spec.state.storage": "ignored",
        "spec.state.context_window": "ignored",
    },
    "tools of many kinds": {
        "spec.tools[0].server": "ignored",
        "spec.tools[0].namespace": "ignored",
        "spec.tools[1].config": "ignored",
        "spec.tools[1].auth": "ignored",
        "spec.tools[2].auth": "ignored",
        "spec.tools[3].handler": "ignored",
        "spec.safety.guardrails": "ignored",
        "spec.security.authentication": "ignored",
    },
    "a worker among others": {
        "spec.type": "unknown",
        "spec.subtype": "unknown",
        "spec.capabilities": "ignored",
        "spec.protocols": "unknown",
        "spec.processing": "unknown",
        "spec.collaboration": "ignored",
        "spec.deployment": "ignored",
        "spec.runtimes": "ignored",
        "spec.extensions": "ignored",
        "spec.monitoring": "unknown",
    },
}


def leaves(value: Json, path: str = "") -> Iterator[str]:
    """Yield the path of each value that holds no other one."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for at, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{at}]")
    else:
        yield path


@pytest.mark.parametrize("shape", SHAPES)
def test_a_manifest_of_each_published_shape_loads_and_every_field_that_no_driver_uses_is_named(shape: str) -> None:
    metadata = {"name": "tester", "version": "1.0.0", "description": "A test.", "labels": {"a": "b"}}
    document: dict[str, Any] = {
        "apiVersion": "ossa/v0.2.9",
        "kind": "Agent",
        "metadata": metadata,
        "spec": SHAPES[shape],
    }
    fates = {one.path: one.fate for one in load_profile(document).fields}
    named = {"metadata.description": "ignored", "metadata.labels": "ignored", **NOT_USED[shape]}
    assert {path: fate for path, fate in fates.items() if fate != "used"} == named
    # No field is left out: each value is reported, or a part that holds it.
    for leaf in leaves(document):
        assert [path for path in fates if leaf == path or leaf.startswith((f"{path}.", f"{path}["))], leaf


def test_what_a_manifest_states_in_another_way_takes_effect() -> None:
    profile = load_profile({"kind": "Agent", "spec": SHAPES["limits and costs"]}).profile
    assert profile.llm.parameters == {"temperature": 0, "max_tokens": 50}
    assert (profile.state.mode, profile.state.storage) == ("none", "log")
    assert profile.reliability.circuit_breaker.failure_threshold == 2
    reasoning = load_profile({"kind": "Agent", "spec": SHAPES["reasoning"]}).profile
    assert (reasoning.prompts.system, reasoning.constraints.max_turns) == ("Edit with care.", 12)


@pytest.mark.parametrize(
    ("member", "place"),
    [
        ({"llm": {"model": "cmd:a\0b"}}, "llm.model"),
        ({"delegation": [{"type": "handoff", "target_agent": "a\0b"}]}, "delegation.0.target_agent"),
        ({"observability": {"activity_stream": {"file": "a\0b"}}}, "observability.activity_stream.file"),
    ],
    ids=["model", "agent", "events"],
)
def test_a_name_with_a_nul_character_is_refused_at_its_place(member: dict[str, Json], place: str) -> None:
    with pytest.raises(TurnError) as raised:
        load_profile({"role": "You test.", **member})
    assert raised.value.fault.message.startswith(f"`{place}`: It has a NUL character")


@pytest.mark.parametrize("limit", [True, 0, -1, 1.5, "500"])
def test_a_limit_of_tokens_that_is_no_whole_number_is_refused(limit: Json) -> None:
    """A model's service takes true for 1, and a text not at all."""
    stated: tuple[dict[str, Json], ...] = ({"max_tokens": limit}, {"parameters": {"max_tokens": limit}})
    for llm in stated:
        with pytest.raises(TurnError, match=r"`spec.llm.parameters`: Its `max_tokens` is no whole number"):
            load_profile({"kind": "Agent", "spec": {"role": "You test.", "llm": llm}})


def test_a_limit_of_tokens_may_be_left_to_the_model() -> None:
    profile = load_profile({"role": "You test.", "llm": {"parameters": {"max_tokens": None}}}).profile
    assert profile.llm.parameters == {"max_tokens": None}
