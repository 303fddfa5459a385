"""The schemas of the contract packs: the one place where the fields of their artifacts are written down.

A plan pins the schemas that it refers to, so a change alters the hash of every workflow that uses the pack. The
`description` of a field says what the caller writes there. A contradiction inside an artifact, such as a verdict
`passed` with a failed check, is a condition of its schema (`allOf`, `if`, `then`). Keys are sorted.
"""

from interlock.kernel.canonical import Json


def _rule(field: str, known: dict[str, Json], others: dict[str, Json]) -> Json:
    """Return the condition that other fields must meet if a field is as known."""
    return {"if": {"properties": {field: known}, "required": [field]}, "then": {"properties": others}}


def _some(field: str, value: dict[str, Json]) -> dict[str, Json]:
    """Return that at least one item of a list has a field with such a value."""
    return {"contains": {"properties": {field: value}}}


def _every(field: str, value: dict[str, Json]) -> dict[str, Json]:
    """Return that each item of a list has a field with such a value."""
    return {"items": {"properties": {field: value}}}


PACK_SCHEMAS: dict[str, dict[str, Json]] = {
    "wr.contracts.assessment": {
        "additionalProperties": False,
        "anyOf": [
            {"description": "a `summary` with the reason", "required": ["summary"]},
            {
                "description": "each dimension as {level, rationale}",
                "properties": {"dimensions": {"additionalProperties": {"required": ["rationale"], "type": "object"}}},
            },
        ],
        "properties": {
            "assessmentId": {"minLength": 1, "type": "string"},
            "dimensions": {
                "additionalProperties": {
                    "anyOf": [
                        {"minLength": 1, "type": "string"},
                        {
                            "additionalProperties": False,
                            "properties": {
                                "level": {"minLength": 1, "type": "string"},
                                "rationale": {"maxLength": 512, "type": "string"},
                            },
                            "required": ["level"],
                            "type": "object",
                        },
                    ]
                },
                "type": "object",
            },
            "kind": {"const": "wr.assessment"},
            "summary": {
                "description": "what you rated, and why the levels are right",
                "maxLength": 1024,
                "minLength": 1,
                "type": "string",
            },
        },
        "required": ["dimensions", "kind"],
        "type": "object",
    },
    "wr.contracts.block_outputs": {
        "properties": {
            "kind": {"const": "wr.block_outputs"},
            "outputs": {"description": "each output port with its value", "type": "object"},
        },
        "required": ["kind", "outputs"],
        "type": "object",
    },
    "wr.contracts.capability_observation": {
        "additionalProperties": False,
        "properties": {
            "capability": {"description": "what you tried", "enum": ["delegation", "web_browsing"], "type": "string"},
            "detail": {"maxLength": 1024, "type": "string"},
            "kind": {"const": "wr.capability_observation"},
            "status": {
                "description": "what your attempt showed; unknown if you could not try",
                "enum": ["available", "unavailable", "unknown"],
                "type": "string",
            },
        },
        "required": ["capability", "kind", "status"],
        "type": "object",
    },
    "wr.contracts.coding_handoff": {
        "allOf": [_rule("testsAdded", {"minItems": 1}, {"filesChanged": {"minItems": 1}})],
        "properties": {
            "branchName": {"type": "string"},
            "correctedAssumptions": {
                "items": {
                    "properties": {
                        "actual": {"minLength": 1, "type": "string"},
                        "assumed": {"minLength": 1, "type": "string"},
                    },
                    "required": ["actual", "assumed"],
                    "type": "object",
                },
                "maxItems": 6,
                "type": "array",
            },
            "filesChanged": {
                "description": "the paths you changed",
                "items": {"maxLength": 300, "type": "string"},
                "maxItems": 20,
                "type": "array",
            },
            "keyDecisions": {
                "description": "what you decided, and why",
                "items": {"type": "string"},
                "maxItems": 8,
                "type": "array",
            },
            "kind": {"const": "wr.coding_handoff"},
            "knownLimitations": {
                "description": "what does not work or was left out",
                "items": {"type": "string"},
                "maxItems": 6,
                "type": "array",
            },
            "testsAdded": {
                "description": "the tests you added",
                "items": {"type": "string"},
                "maxItems": 10,
                "type": "array",
            },
            "version": {"const": 1, "type": "integer"},
        },
        "required": ["filesChanged", "keyDecisions", "kind", "knownLimitations", "testsAdded", "version"],
        "type": "object",
    },
    "wr.contracts.confirmation": {
        "additionalProperties": False,
        "properties": {
            "confirmedBy": {"description": "who confirmed", "minLength": 1, "type": "string"},
            "kind": {"const": "wr.confirmation"},
            "statement": {"description": "their yes, in their own words", "minLength": 1, "type": "string"},
        },
        "required": ["confirmedBy", "kind", "statement"],
        "type": "object",
    },
    "wr.contracts.coordinator_signal": {
        "additionalProperties": False,
        "properties": {
            "kind": {"const": "wr.coordinator_signal"},
            "payload": {"description": "what the coordinator needs in order to act", "type": "object"},
            "sessionId": {"minLength": 1, "type": "string"},
            "signalKind": {
                "description": "what the signal is",
                "enum": ["progress", "finding", "data_needed", "approval_needed", "blocked"],
                "type": "string",
            },
        },
        "required": ["kind", "payload", "signalKind"],
        "type": "object",
    },
    "wr.contracts.decision": {
        "additionalProperties": False,
        "properties": {
            "conditionId": {"description": "the question that you decided", "minLength": 1, "type": "string"},
            "kind": {"const": "wr.decision"},
            "rationale": {"maxLength": 2048, "type": "string"},
            "result": {"description": "your decision", "type": "boolean"},
        },
        "required": ["conditionId", "kind", "result"],
        "type": "object",
    },
    "wr.contracts.differentiation_handoff": {
        "properties": {
            "alternatives": {
                "items": {
                    "properties": {
                        "difference": {"minLength": 1, "type": "string"},
                        "name": {"minLength": 1, "type": "string"},
                    },
                    "required": ["difference", "name"],
                    "type": "object",
                },
                "maxItems": 10,
                "type": "array",
            },
            "evidence": {
                "items": {
                    "properties": {
                        "claim": {"minLength": 1, "type": "string"},
                        "source": {"minLength": 1, "type": "string"},
                    },
                    "required": ["claim", "source"],
                    "type": "object",
                },
                "maxItems": 10,
                "type": "array",
            },
            "keyDifferentiators": {
                "description": "what makes it different",
                "items": {"minLength": 1, "type": "string"},
                "maxItems": 8,
                "type": "array",
            },
            "kind": {"const": "wr.differentiation_handoff"},
            "positioning": {
                "description": "for whom it is, what it does for them, unlike what",
                "minLength": 1,
                "type": "string",
            },
            "risks": {"items": {"minLength": 1, "type": "string"}, "maxItems": 8, "type": "array"},
            "targetSegment": {"minLength": 1, "type": "string"},
            "version": {"const": 1, "type": "integer"},
        },
        "required": ["keyDifferentiators", "kind", "positioning", "version"],
        "type": "object",
    },
    "wr.contracts.discovery_handoff": {
        "allOf": [
            _rule(
                "selectionTier", {"const": "strong_recommendation"}, {"confidenceBand": {"enum": ["high", "medium"]}}
            ),
            _rule("selectionTier", {"const": "insufficient_signal"}, {"confidenceBand": {"enum": ["low"]}}),
        ],
        "properties": {
            "confidenceBand": {"description": "how sure you are", "enum": ["high", "medium", "low"], "type": "string"},
            "designDocPath": {"description": "the path of the design document, or an empty string", "type": "string"},
            "implementationConstraints": {"items": {"type": "string"}, "maxItems": 8, "type": "array"},
            "keyCodebaseLocations": {
                "items": {
                    "properties": {
                        "path": {"minLength": 1, "type": "string"},
                        "relevance": {"minLength": 1, "type": "string"},
                    },
                    "required": ["path", "relevance"],
                    "type": "object",
                },
                "maxItems": 10,
                "type": "array",
            },
            "keyInvariants": {
                "description": "what must stay true",
                "items": {"maxLength": 200, "type": "string"},
                "maxItems": 12,
                "type": "array",
            },
            "kind": {"const": "wr.discovery_handoff"},
            "rejectedDirections": {
                "items": {
                    "properties": {
                        "direction": {"minLength": 1, "type": "string"},
                        "reason": {"minLength": 1, "type": "string"},
                    },
                    "required": ["direction", "reason"],
                    "type": "object",
                },
                "maxItems": 5,
                "type": "array",
            },
            "selectedDirection": {"description": "the direction in one sentence", "minLength": 1, "type": "string"},
            "selectionTier": {
                "enum": ["strong_recommendation", "provisional_recommendation", "insufficient_signal"],
                "type": "string",
            },
            "version": {"const": 1, "type": "integer"},
        },
        "required": ["confidenceBand", "designDocPath", "keyInvariants", "kind", "selectedDirection", "version"],
        "type": "object",
    },
    "wr.contracts.gate_verdict": {
        "allOf": [_rule("verdict", {"const": "approved"}, {"confidence": {"enum": ["high", "medium"]}})],
        "properties": {
            "confidence": {"description": "how sure you are", "enum": ["high", "medium", "low"], "type": "string"},
            "kind": {"const": "wr.gate_verdict"},
            "rationale": {"description": "what you examined, and what it showed", "minLength": 20, "type": "string"},
            "verdict": {
                "description": "your verdict: not `approved` if your confidence is low",
                "enum": ["approved", "rejected", "uncertain"],
                "type": "string",
            },
            "version": {"const": 1, "type": "integer"},
        },
        "required": ["confidence", "kind", "rationale", "verdict", "version"],
        "type": "object",
    },
    "wr.contracts.loop_control": {
        "additionalProperties": False,
        "allOf": [
            {
                "if": {"properties": {"decision": {"const": "stop"}}, "required": ["decision"]},
                "then": {"required": ["summary"]},
            }
        ],
        "properties": {
            "decision": {
                "description": "continue only if another pass has something to do",
                "enum": ["continue", "stop"],
                "type": "string",
            },
            "kind": {"const": "wr.loop_control"},
            "loopId": {"maxLength": 300, "pattern": "^[a-z0-9_-]+$", "type": "string"},
            "metadata": {
                "additionalProperties": False,
                "properties": {
                    "confidence": {"maximum": 100, "minimum": 0, "type": "number"},
                    "issuesFound": {"type": "integer"},
                    "iterationIndex": {"type": "integer"},
                    "reason": {"maxLength": 1024, "type": "string"},
                },
                "type": "object",
            },
            "summary": {
                "description": "why the loop continues or stops",
                "maxLength": 1024,
                "minLength": 1,
                "type": "string",
            },
        },
        "required": ["decision", "kind"],
        "type": "object",
    },
    "wr.contracts.review_verdict": {
        "additionalProperties": False,
        "allOf": [
            _rule("verdict", {"const": "clean"}, {"findings": {"maxItems": 0}}),
            _rule("verdict", {"const": "minor"}, {"findings": {"minItems": 1}}),
            _rule("verdict", {"const": "minor"}, {"findings": _every("severity", {"enum": ["minor", "nit"]})}),
            _rule("verdict", {"const": "blocking"}, {"findings": _some("severity", {"enum": ["critical", "major"]})}),
        ],
        "properties": {
            "confidence": {"description": "how sure you are", "enum": ["high", "medium", "low"], "type": "string"},
            "findings": {
                "description": "every finding; an empty list if there is none",
                "items": {
                    "properties": {
                        "findingCategory": {
                            "enum": [
                                "correctness",
                                "security",
                                "architecture",
                                "ux",
                                "performance",
                                "testing",
                                "style",
                            ],
                            "type": "string",
                        },
                        "severity": {"enum": ["critical", "major", "minor", "nit"], "type": "string"},
                        "summary": {"minLength": 1, "type": "string"},
                    },
                    "required": ["severity", "summary"],
                    "type": "object",
                },
                "type": "array",
            },
            "kind": {"const": "wr.review_verdict"},
            "summary": {"description": "what you reviewed, and the result", "minLength": 1, "type": "string"},
            "verdict": {
                "description": "`clean` if `findings` is empty, `blocking` if one is critical or major, else `minor`",
                "enum": ["clean", "minor", "blocking"],
                "type": "string",
            },
        },
        "required": ["confidence", "findings", "kind", "summary", "verdict"],
        "type": "object",
    },
    "wr.contracts.shaping_handoff": {
        "properties": {
            "appetite": {
                "description": "how much time it is worth",
                "maxLength": 100,
                "minLength": 1,
                "type": "string",
            },
            "keyConstraints": {
                "description": "what limits the shape",
                "items": {"type": "string"},
                "maxItems": 8,
                "type": "array",
            },
            "kind": {"const": "wr.shaping_handoff"},
            "outOfScope": {
                "description": "what is not part of it",
                "items": {"type": "string"},
                "maxItems": 6,
                "type": "array",
            },
            "pitchPath": {"description": "the path of the pitch", "minLength": 1, "type": "string"},
            "rabbitHoles": {
                "description": "what could take too long",
                "items": {"type": "string"},
                "maxItems": 6,
                "type": "array",
            },
            "selectedShape": {
                "description": "the shape in one sentence",
                "maxLength": 200,
                "minLength": 1,
                "type": "string",
            },
            "validationChecklist": {
                "description": "how to see that it works",
                "items": {"type": "string"},
                "maxItems": 10,
                "type": "array",
            },
            "version": {"const": 1, "type": "integer"},
        },
        "required": [
            "appetite",
            "keyConstraints",
            "kind",
            "outOfScope",
            "pitchPath",
            "rabbitHoles",
            "selectedShape",
            "validationChecklist",
            "version",
        ],
        "type": "object",
    },
    "wr.contracts.step_input": {"type": "object"},
    "wr.contracts.turn": {
        "properties": {
            "ids": {"description": "the ids of the turn", "type": "object"},
            "kind": {"const": "wr.turn"},
            "status": {
                "description": "how far the turn is",
                "enum": ["done", "about_to_call", "waiting"],
                "type": "string",
            },
            "turn": {"description": "the number of the turn, from 1", "minimum": 1, "type": "integer"},
            "version": {"const": 1, "type": "integer"},
        },
        "required": ["ids", "kind", "status", "turn", "version"],
        "type": "object",
    },
    "wr.contracts.verification_report": {
        "additionalProperties": False,
        "allOf": [
            _rule("verdict", {"const": "passed"}, {"checks": _some("result", {"const": "passed"})}),
            _rule("verdict", {"const": "passed"}, {"checks": _every("result", {"enum": ["passed", "skipped"]})}),
            _rule("verdict", {"const": "failed"}, {"checks": _some("result", {"const": "failed"})}),
            _rule("verdict", {"const": "partial"}, {"checks": _some("result", {"const": "skipped"})}),
            _rule("verdict", {"const": "partial"}, {"checks": _every("result", {"enum": ["passed", "skipped"]})}),
        ],
        "properties": {
            "checks": {
                "description": "every check that you ran, with its command and output",
                "items": {
                    "additionalProperties": False,
                    "properties": {
                        "evidence": {"minLength": 1, "type": "string"},
                        "name": {"minLength": 1, "type": "string"},
                        "result": {"enum": ["passed", "failed", "skipped"], "type": "string"},
                    },
                    "required": ["evidence", "name", "result"],
                    "type": "object",
                },
                "maxItems": 50,
                "minItems": 1,
                "type": "array",
            },
            "kind": {"const": "wr.verification_report"},
            "summary": {"description": "what you checked, and the result", "minLength": 1, "type": "string"},
            "verdict": {
                "description": "what the checks show: `passed` only if none failed, `failed` only if one did",
                "enum": ["passed", "failed", "partial"],
                "type": "string",
            },
        },
        "required": ["checks", "kind", "summary", "verdict"],
        "type": "object",
    },
    "wr.contracts.workflow_divergence": {
        "additionalProperties": False,
        "properties": {
            "kind": {"const": "wr.workflow_divergence"},
            "reason": {
                "description": "the kind of reason",
                "enum": [
                    "missing_user_context",
                    "capability_unavailable",
                    "efficiency_skip",
                    "safety_stop",
                    "policy_constraint",
                ],
                "type": "string",
            },
            "relatedStepId": {"maxLength": 300, "pattern": "^[a-z0-9_-]+$", "type": "string"},
            "stepId": {"maxLength": 300, "pattern": "^[a-z0-9_-]+$", "type": "string"},
            "summary": {
                "description": "what was left out or done instead, and why",
                "maxLength": 1024,
                "minLength": 1,
                "type": "string",
            },
        },
        "required": ["kind", "reason", "summary"],
        "type": "object",
    },
}
