"""What a run ought to do, written a second time and simply.

The model shares nothing with the engine. It reads the document as an author wrote it, keeps what the language promises
in plain values, and takes evidence by looking at it. It leaves out routines, and artifacts that tests do not send.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hypothesis.vendor.pretty import RepresentationPrinter
from tests.support.model_language import (
    ABSENT,
    CONTRACTS,
    Context,
    Document,
    Owed,
    Pass,
    Place,
    Steps,
    StuckError,
    Walk,
    at,
    invalid,
    is_met,
    is_number,
    merged,
    missing,
    sees,
    truth,
)

from interlock.plan.builtins.packs import PACKS
from interlock.testing.harness import good_artifact

NEVER_STOPS = "full_auto_never_stop"
AUTONOMIES = ("guided", "full_auto_stop_on_user_deps", NEVER_STOPS)
REFUSALS_MAX = 9
"""Refused attempts in a row that are recorded."""
LOOP_CONTROL = "wr.loop_control"
CLAIM = "wr.confirmation"
TURN = "wr.turn"


# Evidence.


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What is sent with an attempt, and what a person answers: `nobody` is there, or there is no way to ask (None)."""

    notes: str | None = None
    artifacts: tuple[Document, ...] = ()
    context: Context = field(default_factory=dict[str, Any])
    autonomy: str | None = None
    risk: str | None = None
    answer: Literal["accept", "decline", "cancel", "nobody"] | None = None

    @property
    def has_notes(self) -> bool:
        return bool((self.notes or "").strip()) and not (self.notes or "").startswith("<")


def example_of(ref: str) -> Document:
    """Return a sound artifact of a contract."""
    return good_artifact(PACKS[ref].schema or {})


def kept_under(artifact: Document) -> str:
    """Return what an artifact stands for. Workflows here rate one thing at most, so a rating need not name it."""
    return str(artifact["kind"])


def judged(step: Document, report: Report, artifacts: Mapping[str, Document], seen: Context) -> set[Owed]:
    """Return what the evidence of a step lacks."""
    owed: set[Owed] = set()
    contract = step.get("outputContract")
    if contract is not None:
        owed |= _contracted(step, contract, artifacts)
    if "assessmentRefs" in step:
        owed |= _rated(step, artifacts.get("wr.assessment"))
    criteria = step.get("validationCriteria")
    wants_notes = step.get("notes", "optional" if contract else "required") == "required"
    if wants_notes and not report.has_notes:
        owed.add(missing(f"{CONTRACTS}notes"))
    elif criteria and is_met({"and": criteria}, report.notes or "", seen) is False:
        owed.add(invalid(f"{CONTRACTS}notes"))
    return owed | {missing(key) for key in step.get("produces", ()) if key not in seen}


def _contracted(step: Document, contract: Document, artifacts: Mapping[str, Document]) -> set[Owed]:
    ref = contract["contractRef"]
    artifact = artifacts.get(str(PACKS[ref].kind))
    if artifact is None:
        return {missing(ref)} if contract.get("required", True) else set()
    if artifact["kind"] == LOOP_CONTROL and artifact.get("decision") in ("continue", "stop"):
        is_other = step.get("decides") is not None and artifact.get("loopId", step["decides"]) != step["decides"]
        return {invalid(ref)} if is_other else set()
    if artifact["kind"] == "wr.capability_observation" and "status" in artifact:
        is_there = artifact["status"] == "available" or not step.get("is_probe")
        return set() if is_there else {Owed(f"required_capability_{artifact['status']}", artifact["capability"])}
    return set() if artifact == example_of(ref) else {invalid(ref)}


def _completed(step: Document, artifact: Document, refused: Document) -> Document:
    """Return an artifact of the step's evidence with the required fields that it leaves out, as they were refused."""
    refs = [step["outputContract"]["contractRef"]] if "outputContract" in step else []
    refs += [f"{CONTRACTS}assessment"] if "assessmentRefs" in step else []
    required: Any = next(
        ((PACKS[ref].schema or {})["required"] for ref in refs if PACKS[ref].kind == artifact["kind"]), ()
    )
    return {name: refused[name] for name in required if name in refused} | artifact


def levels_of(artifact: Document) -> dict[str, str]:
    return {name: str(level).strip().lower() for name, level in artifact.get("dimensions", {}).items()}


_LEVELS = {"low", "middle", "high"}


def _rated(step: Document, artifact: Document | None) -> set[Owed]:
    ref = f"{CONTRACTS}assessment"
    if artifact is None:
        return {missing(ref)}
    levels = levels_of(artifact)
    # Ratings here have no reason but the summary, which a refused rating does not lend: not every rating needs one.
    if not {"clear", "summary"} <= levels.keys() | artifact.keys() or not set(levels.values()) <= _LEVELS:
        return {invalid(ref)}
    called_for = [one for one in step.get("assessmentConsequences", ()) if "low" in levels.values()]
    return {invalid(ref, "quality", one["when"]["anyEqualsLevel"]) for one in called_for}


# Runs.


@dataclass(slots=True, eq=False, kw_only=True)
class Node:
    """A node of a run, with what hangs on it. `step` is None at the end; `gaps` are open, with their severity."""

    run: "Run"
    parent: "Node | None"
    kind: str
    place: Place
    step: Document | None
    context: Context
    autonomy: str
    risk: str
    refusals: int = 0
    notes: str | None = None
    artifacts: Mapping[str, Document] = field(default_factory=dict[str, Document])
    owed: frozenset[Owed] = frozenset()
    gaps: dict[Owed, str] = field(default_factory=dict[Owed, str])
    warnings: frozenset[str] = frozenset()
    ack: "Node | None" = None
    forks: "list[Node]" = field(default_factory=list["Node"])

    def __repr__(self) -> str:
        """Say which node this is, for whoever reads a failure."""
        return f"<{self.kind} {self.run.nodes.index(self)} at {self.step['id'] if self.step else 'the end'}>"

    def _repr_pretty_(self, printer: RepresentationPrinter, _is_cycle: bool) -> None:  # noqa: FBT001
        """Print the short form: the fields of a node lead to every other node of its run, by very many ways."""
        printer.text(repr(self))

    @property
    def loop(self) -> Pass | None:
        return next((one for one in reversed(self.place) if isinstance(one, Pass)), None)

    @property
    def seen(self) -> Context:
        return sees(self.context, self.place)

    @property
    def head(self) -> "Node":
        """The step that a chain of refused attempts begins with."""
        return self if self.kind == "step" or self.parent is None else self.parent.head

    @property
    def last(self) -> "Node":
        """Where this node stands: the last refused attempt of its own chain."""
        return self.ack.last if self.ack is not None and self.ack.kind == "blocked_attempt" else self

    @property
    def is_passed(self) -> bool:
        return self.last.ack is not None

    @property
    def is_used_up(self) -> bool:
        return not self.is_passed and self.last.refusals >= REFUSALS_MAX

    @property
    def attempted(self) -> "list[Node]":
        return ([self.ack] if self.ack is not None else []) + self.forks

    def made_by_attempts(self) -> "Iterator[Node]":
        """Yield every node that attempts on this step made, on its chains of refused attempts too."""
        for made in self.attempted:
            yield made
            if made.kind == "blocked_attempt":
                yield from made.made_by_attempts()

    def is_above(self, other: "Node") -> bool:
        return other is self or (other.parent is not None and self.is_above(other.parent))

    @property
    def is_of_a_branch(self) -> bool:
        """Say whether the attempt that made this node, or the first of the refused ones before it, was a fork."""
        return self.parent is not None and (
            self in self.parent.forks or (self.parent.kind == "blocked_attempt" and self.parent.is_of_a_branch)
        )


@dataclass(slots=True, eq=False)
class Run:
    """A run: its nodes, oldest first. The newest is the preferred tip."""

    nodes: list[Node] = field(default_factory=list[Node])

    @property
    def tip(self) -> Node:
        return self.nodes[-1]

    @property
    def critical(self) -> int:
        return sum(severity == "critical" for node in self.nodes for severity in node.gaps.values())

    @property
    def status(self) -> str:
        tip = self.tip
        if tip.step is None:
            return "complete_with_gaps" if self.critical else "complete"
        is_blocked = tip.autonomy != NEVER_STOPS and tip.kind == "blocked_attempt"
        return "blocked" if is_blocked else "in_progress"

    def has_open_gap_above(self, node: Node | None) -> bool:
        """Say whether a critical gap is open on the way to a node, itself included."""
        while node is not None:
            if "critical" in node.gaps.values():
                return True
            node = node.parent
        return False

    def tip_below(self, node: Node) -> Node:
        return [one for one in self.nodes if node.is_above(one)][-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of an attempt: `advanced`, `blocked`, `awaiting` a person, or `limit`. The last two record nothing."""

    kind: str
    owed: frozenset[Owed] = frozenset()
    node: Node | None = None


class Model:
    """All runs of one document. Each method does what a call does, or says that nothing comes of it."""

    def __init__(self, document: Document) -> None:
        self.inputs: list[Document] = document["inputs"]
        self.named: Mapping[str, Document] = document["conditions"]
        self.steps = tuple(_probes(document)) + tuple(_marked(document["steps"], None))
        self.runs: list[Run] = []

    def start(self, context: Context, autonomy: str, risk: str) -> Node | None:
        """Begin a run; None where what it is started with does not do."""
        if any(_is_unfit(declared, context.get(declared["key"])) for declared in self.inputs):
            return None
        walk = Walk(self.named, merged({}, context), autonomy == NEVER_STOPS)
        try:
            step, place = walk.go((Steps(self.steps),))
        except StuckError:
            return None
        run = Run()
        self.runs.append(run)
        root = Node(
            run=run,
            parent=None,
            kind="step",
            place=place,
            step=step,
            context=walk.context,
            autonomy=autonomy,
            risk=risk,
            gaps=dict.fromkeys(walk.owed, "critical"),
            warnings=frozenset({"GAP_RECORDED"} if walk.owed else ()),
        )
        run.nodes.append(root)
        return root

    def report(self, node: Node, report: Report, *, is_fork: bool = False) -> Outcome:
        """Attempt to advance a node that was not attempted yet; or a fork of it."""
        assert node.step is not None, "the end is not attempted"
        attempt = _Attempt(self, node, report)
        outcome = attempt.outcome()
        if outcome.node is not None:
            made = outcome.node
            if is_fork:
                node.forks.append(made)
            else:
                node.ack = made
            node.run.nodes.append(made)
            made.warnings |= {"BRANCH_CREATED"} if made.kind == "step" and made.is_of_a_branch else set()
            made.warnings |= {"COMPLETE_WITH_GAPS"} if made.step is None and node.run.critical else set()
        return outcome


class _Attempt:
    """An attempt as it is judged."""

    def __init__(self, model: Model, node: Node, report: Report) -> None:
        self.model, self.node, self.report = model, node, report
        is_retry = node.kind == "blocked_attempt"
        notes = report.notes if report.has_notes else node.notes if is_retry else None
        self.evidence = Report(notes=notes)
        sent = {kept_under(artifact): artifact for artifact in report.artifacts}
        refused: Mapping[str, Document] = node.artifacts if is_retry else {}
        completed = {kind: _completed(node.step or {}, one, refused.get(kind, {})) for kind, one in sent.items()}
        # The record of a turn belongs to the attempt that it came with.
        evidence = {kind: one for kind, one in refused.items() if kind != TURN}
        self.artifacts = evidence | completed
        kept = (self.artifacts[kind].items() >= one.items() for kind, one in evidence.items() if kind != CLAIM)
        is_other = any(key in node.context and node.context[key] != value for key, value in report.context.items())
        if CLAIM not in sent and (is_other or not all(kept)):
            # A person confirmed something else.
            self.artifacts.pop(CLAIM, None)
        unfit = [one for one in model.inputs if one["key"] in report.context and _is_unfit(one, self.said(one))]
        self.unfit = {invalid(one["key"]) for one in unfit}
        fitting = {key: value for key, value in report.context.items() if key not in {one["key"] for one in unfit}}
        self.context = merged(node.context, fitting)
        self.never_stops = node.autonomy == NEVER_STOPS
        self.autonomy = report.autonomy or node.autonomy
        self.risk = report.risk or node.risk

    def said(self, declared: Document) -> Any:
        """Return what the report says for a declared key."""
        return self.report.context.get(declared["key"])

    def outcome(self) -> Outcome:
        node, step = self.node, self.node.step
        assert step is not None, "as the caller says"
        seen = sees(self.context, node.place)
        owed = judged(step, self.evidence, self.artifacts, seen) | self.unfit
        if owed and not self.never_stops:
            return self.refused(owed)
        effects, unset = self.effects(step, seen)
        owed |= unset
        if owed and not self.never_stops:
            return self.refused(owed)
        control = self.artifacts.get(LOOP_CONTROL, {})
        decisions = [control] if control.get("decision") in ("continue", "stop") else []
        walk = Walk(self.model.named, merged(self.context, effects), self.never_stops, decisions)
        try:
            following, place = walk.go(node.place)
        except StuckError as stuck:
            return self.refused({stuck.owed})
        shut, claims = self.gate(step, seen)
        if shut and not self.never_stops:
            is_answered = self.report.answer == "decline"
            return self.refused(shut) if is_answered else Outcome(kind="awaiting", owed=frozenset(shut))
        return self.advanced(walk, (following, place), owed | walk.owed | shut, claims)

    def effects(self, step: Document, seen: Context) -> tuple[Context, set[Owed]]:
        """Return what a step sets, and what is not there to be copied. No action sees what another sets."""
        effects: dict[str, Any] = {}
        unset: set[Owed] = set()
        for action in step.get("set", ()):
            path = action.get("from", "")
            is_of_evidence = path.partition(".")[0] in ("artifact", "assessments")
            source = self.evidence_values() if is_of_evidence else dict(seen)
            found = at(source, path) if path else action["value"]
            if found is ABSENT and is_of_evidence:
                continue
            if found is ABSENT:
                unset.add(missing(action["from"]))
            else:
                effects[action["key"]] = found
        return effects, unset

    def evidence_values(self) -> Document:
        """Return what a sound rating says, as far as it may be copied."""
        rating = self.artifacts.get("wr.assessment", {})
        return {} if _rated({}, rating or None) else {"assessments": {"quality": levels_of(rating)}}

    def gate(self, step: Document, seen: Context) -> tuple[set[Owed], set[Owed]]:
        """Return what a person still has to say, and what an agent only claims that one said."""
        asked = [need["reason"] for need in step.get("needsUser", ())]
        when = step.get("confirmWhen")
        if step.get("requireConfirmation") or (when and truth(when, seen, self.model.named) is not False):
            asked.insert(0, "needs_user_approval")
        if self.asks_for_autonomy:
            asked.append("needs_user_approval")
        if not asked or self.report.answer == "accept":
            return set(), set()
        claim = self.artifacts.get(CLAIM, {})
        if self.report.answer is None and claim.get("confirmedBy") and not claim["confirmedBy"].startswith("<"):
            return set(), {Owed("needs_user_approval", step["id"], ("claim",))}
        if self.report.answer == "decline" and not self.never_stops:
            return {Owed("needs_user_approval", step["id"])}, set()
        return {Owed(reason, step["id"], (number,)) for number, reason in enumerate(asked, start=1)}, set()

    @property
    def asks_for_autonomy(self) -> bool:
        """Say whether somebody who can be asked has to grant what the report wants."""
        is_raised = AUTONOMIES.index(self.autonomy) > AUTONOMIES.index(self.node.autonomy)
        return is_raised and self.report.answer is not None

    def refused(self, owed: set[Owed]) -> Outcome:
        if self.node.refusals == REFUSALS_MAX:
            return Outcome(kind="limit", owed=frozenset(owed))
        self.autonomy = self.node.autonomy if self.asks_for_autonomy else self.autonomy
        made = self._made("blocked_attempt", self.node.step, self.node.place, self.context)
        made.refusals, made.owed = self.node.refusals + 1, frozenset(owed)
        return Outcome(kind="blocked", owed=frozenset(owed), node=made)

    def advanced(
        self, walk: Walk, reached: tuple[Document | None, Place], owed: set[Owed], claims: set[Owed]
    ) -> Outcome:
        made = self._made("step", *reached, walk.context)
        left = dict.fromkeys(owed, "critical") | dict.fromkeys(claims, "warning")
        for earlier in self.node.head.made_by_attempts():
            earlier.gaps = {gap: severity for gap, severity in earlier.gaps.items() if gap in left}
        made.gaps = left
        warned = {
            "GAP_RECORDED": bool(owed),
            "CLAIMED_FACT": bool(claims) and self.risk != "aggressive",
            "LOOP_LIMIT_REACHED": bool(walk.used_up),
            "LEVEL_NORMALISED": self._is_read_otherwise(),
        }
        made.warnings = frozenset(code for code, is_due in warned.items() if is_due)
        return Outcome(kind="advanced", node=made)

    def _is_read_otherwise(self) -> bool:
        rating = self.artifacts.get("wr.assessment", {})
        step = self.node.step or {}
        is_sound = "assessmentRefs" in step and not _rated({}, rating or None)
        return is_sound and levels_of(rating) != rating["dimensions"]

    def _made(self, kind: str, step: Document | None, place: Place, context: Context) -> Node:
        return Node(
            run=self.node.run,
            parent=self.node,
            kind=kind,
            place=place,
            step=step,
            context=context,
            autonomy=self.autonomy,
            risk=self.risk,
            notes=self.evidence.notes,
            artifacts=self.artifacts,
        )


def _is_unfit(declared: Document, value: Any) -> bool:
    if value is None:
        return bool(declared.get("required"))
    kinds = {"string": str, "boolean": bool, "list": list, "object": dict}
    is_kind = is_number(value) if declared["type"] == "number" else isinstance(value, kinds[declared["type"]])
    return not is_kind or ("choices" in declared and value not in declared["choices"])


def _probes(document: Document) -> Iterator[Document]:
    """Yield the steps that stand before the author's: what the client must be able to do is tried first."""
    for name, need in document.get("capabilities", {}).items():
        if need == "required":
            contract = {"contractRef": f"{CONTRACTS}capability_observation"}
            yield {"id": f"probe--{name}", "promptBlocks": {}, "outputContract": contract, "is_probe": True}


def _marked(steps: Iterable[Document], decided: str | None) -> Iterator[Document]:
    """Yield steps as they are; those that turn an innermost loop by what the agent says know which."""
    for step in steps:
        inner: Document = {}
        if "body" in step:
            loop = step["loopId"] if step.get("while") == {"kind": "loop_control"} else None
            inner["body"] = list(_marked(step["body"], loop))
        for key in ("choose", "branches"):
            if key in step:
                inner[key] = [branch | {"steps": list(_marked(branch["steps"], decided))} for branch in step[key]]
        if "choose" in step:
            inner["otherwise"] = list(_marked(step["otherwise"], decided))
        yield step | {"decides": decided} | inner
