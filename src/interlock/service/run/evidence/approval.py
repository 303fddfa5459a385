"""The question that a step waits for, with all that a person is shown, as it is now (APPR-1)."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta

from interlock.decide.evaluate import ABSENT, value_at
from interlock.define.parts import ApprovalAsk, AwaitEvent
from interlock.engine.template import ValueRoom, rendered_line, with_loop_variables
from interlock.kernel.budgets import APPROVAL_MARK_CHARS
from interlock.kernel.canonical import Json, digest_of
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import Digest
from interlock.kernel.text import flat, quoted
from interlock.record.world import CHECK, EXPIRED, Assurance, exit_words
from interlock.service.run.context import RunContext
from interlock.service.run.evidence.sent import evidence_sent
from interlock.store.ports.reader import SessionReader
from interlock.views.node_position import chain_head
from interlock.views.outside import Received
from interlock.views.session import Node


@frozen
class Expiry:
    """When a question expires, in unix time; None if it never does. `is_recorded`: the log says that it has."""

    at_ms: int | None
    is_recorded: bool

    def is_over(self, now_ms: int | None) -> bool:
        """Say whether no answer counts any more (APPR-9). With None, only the log is asked, not a clock."""
        return self.is_recorded or (self.at_ms is not None and now_ms is not None and now_ms >= self.at_ms)


@frozen
class OpenApproval:
    """A question that a step waits for. `shown` is what the person sees, by heading.

    `digests` are those of the question with all that is shown with it: as it is now, and as it was before an import
    marked results of checks in it as imported. An answer is one to this question if it names one of them.
    """

    ask: ApprovalAsk
    node: Node
    title: str
    question: str
    shown: tuple[tuple[str, str], ...]
    assurance: Assurance
    digests: frozenset[Digest]
    expiry: Expiry

    def digest(self) -> Digest:
        """Return the digest of the question with all that is shown with it."""
        return _digest(self.question, self.shown)

    @property
    def mark(self) -> str:
        """The beginning of the digest, by which a command names what its user saw."""
        return self.digest().removeprefix("sha256:")[:APPROVAL_MARK_CHARS]

    def text(self) -> str:
        """Render the question with what is shown, for a person. Each line of what is shown has a mark (APPR-7)."""
        parts = [f"{flat(name)}:\n{quoted(text)}" for name, text in self.shown]
        return "\n\n".join([f"Question: {flat(self.question)}", *parts])


def open_approval(reader: SessionReader, run_context: RunContext, node: Node) -> OpenApproval | None:
    """Return the question that the pending step of a node waits for; None if it waits for none.

    Raises:
        ContentDamagedError: A snapshot or an artifact is missing or damaged.
    """
    pending = run_context.pending(node)
    step = run_context.workflow.steps[pending.step_id] if pending is not None else None
    awaits = step.task.awaits if step is not None and step.task is not None else None
    if step is None or awaits is None or awaits.approval is None:
        return None
    head = chain_head(run_context.session, node)
    context = run_context.session.context(node.node)
    seen = with_loop_variables(run_context.workflow.graphs, context, run_context.frames(node))
    question = rendered_line(awaits.approval.question, seen, ValueRoom())
    parts = [_shown(reader, run_context, head, path) for path in awaits.approval.show]
    imported = run_context.session.imported
    return OpenApproval(
        ask=awaits.approval,
        node=head,
        title=run_context.title(node),
        question=question,
        shown=_marked(parts, imported),
        assurance=awaits.assurance,
        digests=frozenset(_digest(question, _marked(parts, one)) for one in _imports(parts, imported)),
        expiry=expiry_of_question(run_context, node, awaits),
    )


def expiry_of_question(run_context: RunContext, node: Node, awaits: AwaitEvent) -> Expiry:
    """Return when the question expires that the step of a node waits with."""
    since, head = waiting_since(run_context, node), chain_head(run_context.session, node).node
    over = run_context.session.outside.last_about(node.run, EXPIRED, head)
    at_ms = None
    if since is not None and awaits.timeout_s is not None:
        at_ms = int((since + timedelta(seconds=awaits.timeout_s)).timestamp() * 1000)
    return Expiry(at_ms=at_ms, is_recorded=over is not None and over.index >= run_context.session.trusted_from)


@frozen
class _Part:
    """One part of what is shown. `result` is the event whose result it is, if it is the result of a check."""

    path: str
    text: str
    result: Received | None = None


def _shown(reader: SessionReader, run_context: RunContext, node: Node, path: str) -> _Part:
    """Return what a path of `show` refers to, in full."""
    part, _, step_id = path.partition(".")
    if part not in ("notes", "artifact", "check") or not step_id:
        value = value_at(run_context.session.context(node.node), path)
        if value is ABSENT:
            return _Part(path=path, text="(not set)")
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        return _Part(path=path, text=text)
    made = _report_of(run_context, node, step_id)
    if made is None:
        return _Part(path=path, text="(the step was not done)")
    if part == "check":
        last = run_context.session.outside.last_about(made.run, CHECK, made.parent) if made.parent is not None else None
        if last is None:
            return _Part(path=path, text="(no result)")
        fields = last.data.fields
        return _Part(path=path, text=f"{fields.get('command')}\n{fields.get('output')}", result=last)
    sent = evidence_sent(reader, made)
    if part == "notes":
        return _Part(path=path, text=sent.notes or "(no notes)")
    artifacts = "\n".join(json.dumps(dict(one), ensure_ascii=False, indent=2) for one in sent.evidence)
    return _Part(path=path, text=artifacts or "(no artifact)")


def _marked(parts: list[_Part], imported: int) -> tuple[tuple[str, str], ...]:
    """Return the parts as they are shown after an import of so many events: a heading of Interlock, text of others.

    Whether a check passed is in the heading, which no output can imitate (WORLD-11).
    """
    return tuple((_heading(one.path, one.result, imported), one.text) for one in parts)


def _heading(path: str, result: Received | None, imported: int) -> str:
    if result is None:
        return path
    fields, mark = result.data.fields, ", imported" if result.index < imported else ""
    return f"{path} ({'passed' if fields.get('passed') else 'did not pass'}, {exit_words(fields)}{mark})"


def _imports(parts: list[_Part], imported: int) -> Iterator[int]:
    """Yield for each way to mark the parts a number of imported events that leads to it; the last import is known."""
    yield from (0, imported)
    yield from (one.result.index + 1 for one in parts if one.result is not None and one.result.index < imported)


def _digest(question: str, shown: tuple[tuple[str, str], ...]) -> Digest:
    parts: list[Json] = [[name, text] for name, text in shown]
    return digest_of({"question": question, "shown": parts})


def _report_of(run_context: RunContext, node: Node, step_id: str) -> Node | None:
    """Return the node that the last report of a step made on the branch of a node."""
    here = chain_head(run_context.session, node)
    while here.parent is not None:
        parent = run_context.session.nodes[here.parent]
        pending = run_context.pending(parent)
        if pending is not None and pending.step_id == step_id:
            return here
        here = chain_head(run_context.session, parent)
    return None


def waiting_since(run_context: RunContext, node: Node) -> datetime | None:
    """Return when the step of a node became pending; None if the log does not say."""
    at = chain_head(run_context.session, node).at
    try:
        return datetime.fromisoformat(at) if at is not None else None
    except ValueError:
        return None
