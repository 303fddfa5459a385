"""Workflows that demand proof, and receipts as `interlock witness` records them, over a tree that a test changes."""

from dataclasses import dataclass, replace
from pathlib import Path

from tests.support.flow import Document, declared, document, step

from interlock.kernel.canonical import digest_of_bytes
from interlock.kernel.errors import Refusal
from interlock.record.events import Actor
from interlock.record.world import Assurance
from interlock.service.outside.receive import Arrival
from interlock.service.run.context import load_run_context
from interlock.service.trust.receipts import CommandSeen, ReceiptReport, pending_node, record_receipt
from interlock.store.ports.workspace import GitAnchors, WorkTree
from interlock.testing.harness import Harness, ToolResult

TESTS = "make test"
ROOT = "/home/ann/app"
PERSON = Actor(type="human", identifier="command line")
INPUT = declared("test_command", required=False)


@dataclass(slots=True)
class HeldTree:
    """A working tree whose content is one word. None: git cannot describe it."""

    content: str | None = "one"

    def read(self, directory: Path) -> WorkTree:
        """Return its state; see `ReadPorts.tree`."""
        digest = digest_of_bytes(self.content.encode()) if self.content is not None else None
        return WorkTree(root=str(directory), commit="c1", digest=digest)


def proof(**changes: object) -> Document:
    """Return a proof of the input `test_command`."""
    return {"command": {"from": "inputs.test_command"}, "assurance": "claimed", **changes}


def proving(*proofs: Document) -> Document:
    """Return a workflow of three steps whose second one demands proofs."""
    demanded = list(proofs) or [proof()]
    return document(step("plan"), step("fix", proof=demanded), step("ship"), inputs=[INPUT])


def provable(*proofs: Document, tree: HeldTree | None = None) -> Harness:
    """Return a harness with such a workflow, in the repository `ROOT`."""
    return with_tree(Harness.in_memory(proving(*proofs)), tree or HeldTree())


def with_tree(harness: Harness, tree: HeldTree) -> Harness:
    """Return the harness with a working tree in the repository `ROOT`."""

    def anchors(_: Path | None) -> GitAnchors:
        return GitAnchors(repo_root=ROOT, branch="main", head_sha=None)

    read = replace(harness.ports.read, tree=tree.read, anchors=anchors)
    return replace(harness, ports=replace(harness.ports, read=read))


def begun(harness: Harness, command: str | None = TESTS, **arguments: object) -> ToolResult:
    """Start the workflow."""
    context = {"test_command": command} if command is not None else {}
    return harness.start("test.flow", goal="Ship", context=context, **arguments)


def witnessed(
    harness: Harness,
    start: ToolResult,
    *argv: str,
    code: int = 0,
    assurance: Assurance = "claimed",
    root: str = ROOT,
    output: str = "3 passed",
) -> ReceiptReport | Refusal:
    """Record the receipt of a command, by default of the tests."""
    session = harness.store.load(harness.session_of(start))
    assert session is not None
    run = harness.reference_of(start).run
    node = pending_node(load_run_context(session, session.runs[run], harness.ports.read.plans))
    if isinstance(node, Refusal):
        return node
    tree = harness.ports.read.tree(Path(root))
    seen = CommandSeen(
        argv=argv or tuple(TESTS.split()),
        program="/usr/bin/make",
        directory=root,
        exit=code,
        seconds=1.5,
        output=output,
        digest=digest_of_bytes(output.encode()),
        before=tree,
        after=tree,
    )
    how = Arrival(via="command", assurance=assurance)
    return record_receipt(harness.ports, (session.session, run, node), seen, how, PERSON)
