"""Judges whether a report has the receipts that its step demands (PROOF-2, PROOF-3). Pure.

A receipt counts if it is about this step: recorded on this branch after the step was given, for the same command, at
the demanded level. The latest of these decides.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from interlock.define.parts import INPUTS, Proof
from interlock.engine.judge.violations import Violation
from interlock.kernel.budgets import AUTHORED_SHARE_BYTES_MAX
from interlock.kernel.canonical import Json, digest_of
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import Digest, EventId
from interlock.kernel.text import one_line
from interlock.plan.records import PlanNode
from interlock.record.context import Context
from interlock.record.outcome import PROOF_DETAIL, WorkflowStepPointer
from interlock.record.world import ASSURANCES, Assurance, ProofMode

UNKNOWN = "unknown"
"""The digest of a tree that git could not describe."""
_SHELL = re.compile(r"[|&;<>()$`*?\[\]{}~#\n]")

ReceiptPlace = Literal["here", "earlier", "branch", "run"]
"""Whether a receipt is about the pending step, an earlier one, one of another branch, or one of another run."""


_ELSEWHERE: Mapping[ReceiptPlace, tuple[str, str]] = {
    "earlier": ("older", "its receipt is older than the step"),
    "branch": ("branch", "its receipt is of another branch"),
    "run": ("run", "its receipt is of another run"),
}


@frozen
class Receipt:
    """A receipt as it is judged. `is_of_workspace` is False if it ran elsewhere than the run."""

    event_id: EventId
    place: ReceiptPlace
    argv: str
    command: str
    exit: int
    tree: str
    assurance: Assurance
    is_of_workspace: bool = True


@frozen
class ProofContext:
    """What proofs are judged by. `receipts` are the newest first; `inputs` is the context that the run began with.

    `tree` is the working tree when the step was reported; None if nothing demanded to know it.
    """

    label: str = ""
    mode: ProofMode = "enforce"
    inputs: Context | None = None
    receipts: Sequence[Receipt] = ()
    tree: str | None = None


@frozen
class ProofJudgement:
    """The violations of missing proofs, and the receipts that prove the others.

    `disclosed` are the violations for which no report is refused, because the run only records them (PROOF-5).
    """

    findings: tuple[Violation, ...] = ()
    disclosed: tuple[Violation, ...] = ()
    took: tuple[EventId, ...] = ()


def argv_of(command: str) -> tuple[str, ...]:
    """Return what runs a command line: its words, or a shell if it needs one."""
    try:
        words = tuple(shlex.split(command))
    except ValueError:
        words = ()
    if not words or _SHELL.search(command) or "=" in words[0]:
        return ("sh", "-c", command)
    return words


def argv_digest(argv: Sequence[str]) -> Digest:
    """Return the digest by which receipts of the same command are known. Arguments need not be valid Unicode."""
    words: list[Json] = [one.encode("utf-8", "backslashreplace").decode("utf-8") for one in argv]
    return digest_of(words)


def command_of(proof: Proof, inputs: Context) -> str | None:
    """Return the command that a proof demands; None if its input has no value, so that nothing is demanded."""
    if proof.command.value is not None:
        return proof.command.value
    found = inputs.get((proof.command.source or "").removeprefix(INPUTS))
    return found.strip() or None if isinstance(found, str) else None


def verdict_in(values: Mapping[str, Json]) -> str | None:
    """Return the verdict of the valid artifact of a report; None if it has none."""
    artifact = values.get("artifact")
    verdict = artifact.get("verdict") if isinstance(artifact, dict) else None
    return verdict if isinstance(verdict, str) else None


def witness_line(label: str, command: str) -> str:
    """Return the command line with which a receipt of a command is made."""
    return f"interlock witness {label} -- {shlex.join(argv_of(command))}"


def judge_proofs(node: PlanNode, context: ProofContext, verdict: str | None) -> ProofJudgement:
    """Judge the report of a step by the receipts of its run. If the mode is `off`, it demands none.

    `verdict` is that of the reported artifact: who reports a failure needs no proof of success.
    """
    assert node.task is not None, "a pending step is a task"
    findings: list[Violation] = []
    took: list[EventId] = []
    for number, proof in enumerate(node.task.proofs if context.mode != "off" else (), start=1):
        command = command_of(proof, context.inputs or {})
        if command is None or proof.verdict not in (None, verdict):
            continue
        demand = _Demand(step_id=node.node_id, number=number, proof=proof, command=command, context=context)
        found = demand.judge()
        if isinstance(found, Violation):
            findings.append(found)
        else:
            took.append(found)
    missing = {"findings" if context.mode == "enforce" else "disclosed": tuple(findings)}
    return ProofJudgement(took=tuple(dict.fromkeys(took)), **missing)


@frozen
class _Demand:
    """One proof that a step demands, with the command that it is about."""

    step_id: str
    number: int
    proof: Proof
    command: str
    context: ProofContext

    def judge(self) -> EventId | Violation:
        """Return the receipt that proves it, or why there is none."""
        same = [one for one in self.context.receipts if one.argv == argv_digest(argv_of(self.command))]
        here = [one for one in same if one.place == "here"]
        level = ASSURANCES.index(self.proof.assurance)
        known = [one for one in here if ASSURANCES.index(one.assurance) >= level]
        if known:
            fault = next(self._faults(known[0]), None)
            return known[0].event_id if fault is None else self._violation(*fault)
        return self._violation(*self._absent(same, here))

    def _faults(self, receipt: Receipt) -> Iterator[tuple[str, str]]:
        if not receipt.is_of_workspace:
            yield "workspace", "its receipt is from outside the repository or the workspace of the run"
        if receipt.exit != self.proof.exit:
            yield "exit", f"the command ended with {receipt.exit}, and the step demands {self.proof.exit}"
        if self.proof.tree is None:
            return
        if UNKNOWN in (receipt.tree, self.context.tree) or self.context.tree is None:
            yield "tree", "git could not describe the working tree, so nobody knows whether files have changed since"
        elif receipt.tree != self.context.tree:
            yield "tree", "its receipt is of another tree: files have changed since the command ran"

    def _absent(self, same: list[Receipt], here: list[Receipt]) -> tuple[str, str]:
        """Return why no receipt counts, with the nearest one."""
        if here:
            return "level", f"its receipt is only {here[0].assurance}, and the step demands {self.proof.assurance}"
        others = [one for one in self.context.receipts if one.place == "here"]
        if others:
            return "command", f"the receipt of this step is of another command: {_share(others[0].command)!r}"
        return _ELSEWHERE[same[0].place] if same else ("missing", "there is no receipt")

    def _violation(self, reason: str, why: str) -> Violation:
        line = witness_line(self.context.label, self.command)
        if self.proof.assurance == "claimed":
            how = f"Run `{line}` in the workspace of the run."
        else:
            how = (
                f"Ask the user to run `{line}` in the workspace of the run, in a terminal of their own: a command that"
                " an agent started counts as claimed."
            )
        otherwise = " Otherwise send the artifact with another verdict." if self.proof.verdict is not None else ""
        return Violation(
            detail="missing_required_output",
            pointer=WorkflowStepPointer(step_id=self.step_id),
            message=f"The step demands proof that `{_share(self.command)}` ended with {self.proof.exit}: {why}.",
            fix=f"{how} If it ends with {self.proof.exit}, make the call that this answer shows, and change no file"
            f" in between.{otherwise}",
            details={PROOF_DETAIL: self.number, "reason": reason},
        )


def _share(text: str) -> str:
    return one_line(text, AUTHORED_SHARE_BYTES_MAX)
