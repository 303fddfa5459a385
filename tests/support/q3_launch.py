"""The example of the operational model: a product launch with two work flows, a sub-contract and two outcomes."""

from interlock.define.operations.blocks import WorkBlock
from interlock.define.operations.builders import ContractBuilder, FlowBuilder, WorkBlockBuilder
from interlock.define.operations.definitions import Definition
from interlock.define.operations.flows import Condition, Flow

_BLOCKS: dict[str, WorkBlock] = {}


def _block(name: str, *outputs: str, inputs: tuple[str, ...] = (), hint: str = "shell") -> WorkBlock:
    builder = WorkBlockBuilder(name).description(f"{name}.").hint(hint)
    for port in inputs:
        builder.input(port, required=False)
    for port in outputs:
        builder.output(port)
    return _BLOCKS.setdefault(name, builder.build())


def _single(name: str, block: WorkBlock, workflow_id: str | None = None) -> Flow:
    builder = FlowBuilder(name).add_block(block, alias="only").entry("only")
    return builder.metadata({"workflow_id": workflow_id} if workflow_id is not None else {}).build(assessment=True)


TRIAGE = _block("Ticket Triage", "route", inputs=("ticket",), hint="issue-tracker")
IMPLEMENTATION = _block("Implementation", "pull_request_url", inputs=("ticket", "route"), hint="codebase-write")
CODE_REVIEW = (
    WorkBlockBuilder("Code Review")
    .description("Review the change against the checklist.")
    .input("pull_request_url", "URL of the change to review")
    .input("review_checklist", "Criteria for approval", required=False)
    .output("verdict", "approved | changes_requested | rejected")
    .output("comments", "Review comments", required=False)
    .hint("github-access")
    .hint("codebase-read")
    .build()
)
SPRINT = (
    FlowBuilder("Engineering Sprint Cycle")
    .add_block(TRIAGE, alias="triage")
    .add_block(IMPLEMENTATION, alias="implement")
    .add_block(CODE_REVIEW, alias="review")
    .add_block(IMPLEMENTATION, alias="fast-track")
    .entry("triage")
    .edge(
        "triage",
        "implement",
        condition=Condition(description="ticket is approved", predicate={"==": [{"var": "route"}, "approved"]}),
    )
    .edge(
        "triage",
        "fast-track",
        condition=Condition(description="ticket is fast-track", predicate={"==": [{"var": "route"}, "fast-track"]}),
    )
    .edge("implement", "review")
    .edge("fast-track", "review")
    .expected_outcome("All sprint tickets implemented and reviewed")
    .build()
)
QA = _single("QA Validation Pipeline", _block("QA Validation", "report"), "q3.qa-validation")
BAU = _single("Infra BAU", _block("Operate Infrastructure", "uptime", hint="ops"))
SMOKE = _single("Smoke Test Suite", _block("Run Smoke Suite", "passed", hint="ci"))
SURVEY = _single("Survey Collection", _block("Collect Surveys", "score"))
RELEASE = (
    FlowBuilder("Release Verification")
    .add_block(_block("Check Deployment Status", "deployed", inputs=("passed", "verdict")), alias="status")
    .add_block(_block("Run Smoke Tests", "passed", inputs=("passed",), hint="ci"), alias="smoke")
    .add_block(_block("Produce Release Verdict", "result", inputs=("passed",)), alias="verdict")
    .entry("status")
    .edge("status", "smoke")
    .edge("smoke", "verdict")
    .expected_outcome("Binary pass/fail on release readiness")
    .build(assessment=True)
)
CSAT = _single("CSAT Evaluator", _block("Evaluate Satisfaction", "result", inputs=("score",)))
UPTIME = _single("Uptime Monitor Assessment", _block("Judge Uptime", "result", inputs=("uptime",)))
INFRASTRUCTURE = (
    ContractBuilder("Infrastructure SLA")
    .work_flow(BAU)
    .required_outcome("99.9% uptime")
    .assess("99.9% uptime", UPTIME)
    .build()
)
LAUNCH = (
    ContractBuilder("Q3 Product Launch")
    .description("Ship feature X, and keep the customers satisfied.")
    .work_flow(SPRINT)
    .work_flow(QA)
    .sub_contract(INFRASTRUCTURE)
    .required_outcome("Feature X shipped to production")
    .required_outcome("Customer satisfaction of at least 4.5")
    .assess("Feature X shipped to production", RELEASE, test_flows=[SMOKE])
    .assess("Customer satisfaction of at least 4.5", CSAT, test_flows=[SURVEY])
    .build()
)


def all_definitions() -> tuple[Definition, ...]:
    """Return every definition of the example: those that the contract refers to, and itself."""
    return (
        *_BLOCKS.values(),
        CODE_REVIEW,
        SPRINT,
        QA,
        BAU,
        SMOKE,
        SURVEY,
        RELEASE,
        CSAT,
        UPTIME,
        INFRASTRUCTURE,
        LAUNCH,
    )
