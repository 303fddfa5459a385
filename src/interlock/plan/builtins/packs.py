"""Contract packs: the closed set of evidence that a step may require.

A plan pins the schemas that it refers to (`pack_schemas`), and artifacts are checked against those.
"""

from collections.abc import Mapping
from types import MappingProxyType

from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen
from interlock.plan.builtins.pack_schemas import PACK_SCHEMAS


@frozen
class Pack:
    """A contract. `kind` is that of its artifact, or None if no artifact is sent.

    `lines` tell an agent what to send; the first names the artifact. They are one to four, so that a step's whole
    requirement stays within five.
    """

    contract_ref: str
    title: str
    purpose: str
    kind: str | None = None
    lines: tuple[str, ...] = ()
    version: int = 1

    @property
    def schema(self) -> Mapping[str, Json] | None:
        """The normalised JSON Schema of the artifact or input; None for notes, which are text."""
        return PACK_SCHEMAS.get(self.contract_ref)


def _send(kind: str, fields: str) -> str:
    return f"Send an artifact of kind `{kind}` in `output.artifacts`: {fields}."


_ALL = (
    Pack(
        contract_ref="wr.contracts.assessment",
        title="Assessment",
        purpose="A rating in named dimensions, each with one of its levels.",
        kind="wr.assessment",
        lines=(
            _send("wr.assessment", "`dimensions` maps each dimension to its level, or to `{level, rationale}`"),
            "`assessmentId` where the step asks for more than one; `summary?` says what the ratings come to.",
        ),
    ),
    Pack(
        contract_ref="wr.contracts.block_outputs",
        title="Block outputs",
        purpose="What a reusable block produced, by output port.",
        kind="wr.block_outputs",
        lines=(_send("wr.block_outputs", "`outputs` maps each output port to its value"),),
    ),
    Pack(
        contract_ref="wr.contracts.capability_observation",
        title="Capability observation",
        purpose="Whether the client can do something, found out by trying.",
        kind="wr.capability_observation",
        lines=(
            _send("wr.capability_observation", "`capability`, `status` (available | unavailable | unknown), `detail?`"),
            "Try it before you say so: `unknown` means that it could not be tried.",
        ),
    ),
    Pack(
        contract_ref="wr.contracts.coding_handoff",
        title="Coding handoff",
        purpose="What was built, for whoever reviews or continues it.",
        kind="wr.coding_handoff",
        lines=(
            _send("wr.coding_handoff", "`version` 1, `keyDecisions` (at most 8), `knownLimitations` (at most 6)"),
            (
                "Also `testsAdded` (at most 10) and `filesChanged` (at most 20 paths); `branchName` and"
                " `correctedAssumptions` [{assumed, actual}] where there are any."
            ),
        ),
    ),
    Pack(
        contract_ref="wr.contracts.confirmation",
        title="Confirmation",
        purpose="Who confirmed what, in their words.",
        kind="wr.confirmation",
        lines=(
            _send("wr.confirmation", "`confirmedBy` and `statement`"),
            "Only after a person really said so; quote them in `statement`.",
        ),
    ),
    Pack(
        contract_ref="wr.contracts.coordinator_signal",
        title="Coordinator signal",
        purpose="A message to the coordinator of several runs.",
        kind="wr.coordinator_signal",
        lines=(
            _send(
                "wr.coordinator_signal",
                "`signalKind` (progress | finding | data_needed | approval_needed | blocked) and `payload`, an object",
            ),
            "`payload` holds what the coordinator needs to act on it; `sessionId?` names the session it is about.",
        ),
    ),
    Pack(
        contract_ref="wr.contracts.decision",
        title="Decision",
        purpose="A yes or no to a named question, with the reason.",
        kind="wr.decision",
        lines=(
            _send("wr.decision", "`conditionId`, `result` (true | false), `rationale?`"),
            "`conditionId` names the question that was decided; `rationale` says what decided it.",
        ),
    ),
    Pack(
        contract_ref="wr.contracts.differentiation_handoff",
        title="Differentiation handoff",
        purpose="How something differs from its alternatives.",
        kind="wr.differentiation_handoff",
        lines=(
            _send("wr.differentiation_handoff", "`version` 1, `positioning`, `keyDifferentiators` (at most 8)"),
            "`positioning` says in a sentence for whom it is, what it does for them, and unlike what.",
            (
                "Where known: `targetSegment`, `alternatives` [{name, difference}], `evidence` [{claim, source}],"
                " `risks`."
            ),
        ),
    ),
    Pack(
        contract_ref="wr.contracts.discovery_handoff",
        title="Discovery handoff",
        purpose="The direction that was chosen, for whoever designs it.",
        kind="wr.discovery_handoff",
        lines=(
            _send("wr.discovery_handoff", '`version` 1, `selectedDirection`, `designDocPath` (a path, or "")'),
            "Also `confidenceBand` (high | medium | low) and `keyInvariants` (at most 12, 200 characters each).",
            (
                "Where known: `rejectedDirections` [{direction, reason}], `implementationConstraints`,"
                " `keyCodebaseLocations` [{path, relevance}], `selectionTier`."
            ),
        ),
    ),
    Pack(
        contract_ref="wr.contracts.event",
        title="Event",
        purpose="An event from outside, which a step waits for: it is recorded in the log and not reported.",
        lines=("Nothing to send: the event is recorded when it arrives.",),
    ),
    Pack(
        contract_ref="wr.contracts.gate_verdict",
        title="Gate verdict",
        purpose="Whether a gate opens, and why.",
        kind="wr.gate_verdict",
        lines=(
            _send("wr.gate_verdict", "`version` 1, `verdict` (approved | rejected | uncertain), `confidence`"),
            "`confidence` is high | medium | low; `rationale` says why, in at least 20 characters.",
        ),
    ),
    Pack(
        contract_ref="wr.contracts.loop_control",
        title="Loop control",
        purpose="Whether a loop takes another pass, and why.",
        kind="wr.loop_control",
        lines=(
            _send("wr.loop_control", "`decision` (continue | stop), `loopId?`, `summary?`"),
            "Say `continue` only if another pass has something to do; `summary` says why in a sentence.",
        ),
    ),
    Pack(
        contract_ref="wr.contracts.notes",
        title="Notes",
        purpose="What was done, in the agent's words; the evidence of a plain step.",
        lines=("Send `output.notesMarkdown`: what you did, what you found with its place, what is still open.",),
    ),
    Pack(
        contract_ref="wr.contracts.review_verdict",
        title="Review verdict",
        purpose="What a review comes to, with each finding.",
        kind="wr.review_verdict",
        lines=(
            _send("wr.review_verdict", "`verdict` (clean | minor | blocking), `confidence`, `findings`, `summary`"),
            "`confidence` is high | medium | low.",
            (
                "Each finding: {severity (critical | major | minor | nit), summary, findingCategory?} and what else"
                " helps, such as file and line."
            ),
        ),
    ),
    Pack(
        contract_ref="wr.contracts.shaping_handoff",
        title="Shaping handoff",
        purpose="The shape of the work, for whoever builds it.",
        kind="wr.shaping_handoff",
        lines=(
            _send("wr.shaping_handoff", "`version` 1, `pitchPath`, `selectedShape`, `appetite`"),
            "Also lists: `keyConstraints` (up to 8), `rabbitHoles` (6), `outOfScope` (6), `validationChecklist` (10).",
        ),
    ),
    Pack(
        contract_ref="wr.contracts.step_input",
        title="Step input",
        purpose="The input of a step: its prompt and the context of its branch.",
        lines=("Nothing to send: a step accepts any object.",),
    ),
    Pack(
        contract_ref="wr.contracts.turn",
        title="Turn",
        purpose="What a driver records of one turn of its model: phases, tokens, tools, state, errors.",
        kind="wr.turn",
        lines=(
            _send("wr.turn", "`version` 1, `turn`, `status` (done | about_to_call | waiting), `ids`"),
            "A driver sends it; it is no evidence of a step.",
        ),
    ),
    Pack(
        contract_ref="wr.contracts.verification_report",
        title="Verification report",
        purpose="What was checked, what came of it, and what shows it.",
        kind="wr.verification_report",
        lines=(
            _send("wr.verification_report", "`verdict` (passed | failed | partial), `checks` (1 to 50), `summary`"),
            "Each check: {name, result (passed | failed | skipped), evidence}: the command and what it printed.",
        ),
    ),
    Pack(
        contract_ref="wr.contracts.workflow_divergence",
        title="Workflow divergence",
        purpose="How the work deviated from the workflow on purpose, and why.",
        kind="wr.workflow_divergence",
        lines=(
            _send("wr.workflow_divergence", "`reason` and `summary`, `stepId?`"),
            (
                "`reason` is missing_user_context | capability_unavailable | efficiency_skip | safety_stop |"
                " policy_constraint."
            ),
        ),
    ),
)

PACKS: Mapping[str, Pack] = MappingProxyType({pack.contract_ref: pack for pack in _ALL})
"""Every pack by its reference, in the order of the references."""


def pack_named(contract_ref: str) -> Pack | None:
    """Return the pack of a reference."""
    return PACKS.get(contract_ref)
