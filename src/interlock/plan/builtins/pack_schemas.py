"""The schemas of the contract packs: the one place where the fields of their artifacts are written down.

A plan pins the schemas that it refers to, so a change alters the hash of every workflow that uses the pack. They hold
no title, default or description, and their keys are sorted.
"""

from interlock.kernel.canonical import Json

PACK_SCHEMAS: dict[str, dict[str, Json]] = {
    "wr.contracts.assessment": {
        "additionalProperties": False,
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
                    ],
                },
                "type": "object",
            },
            "kind": {"const": "wr.assessment"},
            "summary": {"maxLength": 1024, "type": "string"},
        },
        "required": ["dimensions", "kind"],
        "type": "object",
    },
    "wr.contracts.block_outputs": {
        "properties": {"kind": {"const": "wr.block_outputs"}, "outputs": {"type": "object"}},
        "required": ["kind", "outputs"],
        "type": "object",
    },
    "wr.contracts.capability_observation": {
        "additionalProperties": False,
        "properties": {
            "capability": {"enum": ["delegation", "web_browsing"], "type": "string"},
            "detail": {"maxLength": 1024, "type": "string"},
            "kind": {"const": "wr.capability_observation"},
            "status": {"enum": ["available", "unavailable", "unknown"], "type": "string"},
        },
        "required": ["capability", "kind", "status"],
        "type": "object",
    },
    "wr.contracts.coding_handoff": {
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
            "filesChanged": {"items": {"maxLength": 300, "type": "string"}, "maxItems": 20, "type": "array"},
            "keyDecisions": {"items": {"type": "string"}, "maxItems": 8, "type": "array"},
            "kind": {"const": "wr.coding_handoff"},
            "knownLimitations": {"items": {"type": "string"}, "maxItems": 6, "type": "array"},
            "testsAdded": {"items": {"type": "string"}, "maxItems": 10, "type": "array"},
            "version": {"const": 1, "type": "integer"},
        },
        "required": ["filesChanged", "keyDecisions", "kind", "knownLimitations", "testsAdded", "version"],
        "type": "object",
    },
    "wr.contracts.confirmation": {
        "additionalProperties": False,
        "properties": {
            "confirmedBy": {"minLength": 1, "type": "string"},
            "kind": {"const": "wr.confirmation"},
            "statement": {"minLength": 1, "type": "string"},
        },
        "required": ["confirmedBy", "kind", "statement"],
        "type": "object",
    },
    "wr.contracts.coordinator_signal": {
        "additionalProperties": False,
        "properties": {
            "kind": {"const": "wr.coordinator_signal"},
            "payload": {"type": "object"},
            "sessionId": {"minLength": 1, "type": "string"},
            "signalKind": {
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
            "conditionId": {"minLength": 1, "type": "string"},
            "kind": {"const": "wr.decision"},
            "rationale": {"maxLength": 2048, "type": "string"},
            "result": {"type": "boolean"},
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
            "keyDifferentiators": {"items": {"minLength": 1, "type": "string"}, "maxItems": 8, "type": "array"},
            "kind": {"const": "wr.differentiation_handoff"},
            "positioning": {"minLength": 1, "type": "string"},
            "risks": {"items": {"minLength": 1, "type": "string"}, "maxItems": 8, "type": "array"},
            "targetSegment": {"minLength": 1, "type": "string"},
            "version": {"const": 1, "type": "integer"},
        },
        "required": ["keyDifferentiators", "kind", "positioning", "version"],
        "type": "object",
    },
    "wr.contracts.discovery_handoff": {
        "properties": {
            "confidenceBand": {"enum": ["high", "medium", "low"], "type": "string"},
            "designDocPath": {"type": "string"},
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
            "keyInvariants": {"items": {"maxLength": 200, "type": "string"}, "maxItems": 12, "type": "array"},
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
            "selectedDirection": {"minLength": 1, "type": "string"},
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
        "properties": {
            "confidence": {"enum": ["high", "medium", "low"], "type": "string"},
            "kind": {"const": "wr.gate_verdict"},
            "rationale": {"minLength": 20, "type": "string"},
            "verdict": {"enum": ["approved", "rejected", "uncertain"], "type": "string"},
            "version": {"const": 1, "type": "integer"},
        },
        "required": ["confidence", "kind", "rationale", "verdict", "version"],
        "type": "object",
    },
    "wr.contracts.loop_control": {
        "additionalProperties": False,
        "properties": {
            "decision": {"enum": ["continue", "stop"], "type": "string"},
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
            "summary": {"maxLength": 1024, "type": "string"},
        },
        "required": ["decision", "kind"],
        "type": "object",
    },
    "wr.contracts.review_verdict": {
        "additionalProperties": False,
        "properties": {
            "confidence": {"enum": ["high", "medium", "low"], "type": "string"},
            "findings": {
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
            "summary": {"minLength": 1, "type": "string"},
            "verdict": {"enum": ["clean", "minor", "blocking"], "type": "string"},
        },
        "required": ["confidence", "findings", "kind", "summary", "verdict"],
        "type": "object",
    },
    "wr.contracts.shaping_handoff": {
        "properties": {
            "appetite": {"maxLength": 100, "minLength": 1, "type": "string"},
            "keyConstraints": {"items": {"type": "string"}, "maxItems": 8, "type": "array"},
            "kind": {"const": "wr.shaping_handoff"},
            "outOfScope": {"items": {"type": "string"}, "maxItems": 6, "type": "array"},
            "pitchPath": {"minLength": 1, "type": "string"},
            "rabbitHoles": {"items": {"type": "string"}, "maxItems": 6, "type": "array"},
            "selectedShape": {"maxLength": 200, "minLength": 1, "type": "string"},
            "validationChecklist": {"items": {"type": "string"}, "maxItems": 10, "type": "array"},
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
    "wr.contracts.verification_report": {
        "additionalProperties": False,
        "properties": {
            "checks": {
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
            "summary": {"minLength": 1, "type": "string"},
            "verdict": {"enum": ["passed", "failed", "partial"], "type": "string"},
        },
        "required": ["checks", "kind", "summary", "verdict"],
        "type": "object",
    },
    "wr.contracts.workflow_divergence": {
        "additionalProperties": False,
        "properties": {
            "kind": {"const": "wr.workflow_divergence"},
            "reason": {
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
            "summary": {"maxLength": 1024, "minLength": 1, "type": "string"},
        },
        "required": ["kind", "reason", "summary"],
        "type": "object",
    },
}
