"""What waits for a person, in all sessions: questions, checks without a passed result, intents that did not arrive."""

from collections import Counter
from collections.abc import Iterator
from typing import Literal

from interlock.channels.channel import ChannelConfig
from interlock.channels.check import CheckFault
from interlock.engine.gates import asks_of
from interlock.engine.template import with_loop_variables
from interlock.kernel.budgets import CELL_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import SessionId
from interlock.kernel.text import flat, one_line, quoted
from interlock.record.world import APPROVAL
from interlock.service.outside.approvals import way_out
from interlock.service.outside.checks import results_at, unmet_words, waiting_check
from interlock.service.outside.demand import unknown_key_words
from interlock.service.outside.intents import OPEN_STATES, shown_intents
from interlock.service.ports import Checks
from interlock.service.run.context import RunContext, load_run_context
from interlock.service.run.evidence.approval import OpenApproval, open_approval
from interlock.service.run.plans import Plans
from interlock.service.run.summaries import Listing, Unreadable, unreadable_by
from interlock.store.ports.errors import UNUSABLE_SESSION
from interlock.store.ports.reader import SessionReader
from interlock.views.node_position import chain_head
from interlock.views.outside import SigningKeys, has_unknown_key
from interlock.views.session import Node, Session


@frozen
class InboxItem:
    """One thing that waits for a person. `since` is when it began; `text` is its context in full.

    `about` is the id of what waits in the session: the node of a question or a check, or the intent. `commands` are
    alternatives, one for each answer. An `expired` question takes no answer any more; its command says what follows.
    """

    kind: Literal["approval", "expired", "question", "check_failed", "check_to_allow", "intent", "unreadable"]
    title: str
    text: str
    commands: tuple[str, ...]
    label: str | None = None
    since: str | None = None
    session: SessionId | None = None
    about: str | None = None

    def marked_text(self) -> str:
        """Return the text with a mark at each line that others wrote (APPR-7). A question has its marks already."""
        return self.text if self.kind in ("approval", "expired") else quoted(self.text)

    def to_json(self) -> dict[str, Json]:
        """Return it as JSON."""
        return {
            "kind": self.kind,
            "run": self.label,
            "session": self.session,
            "about": self.about,
            "since": self.since,
            "title": self.title,
            "text": self.text,
            "commands": [*self.commands],
        }


@frozen
class InboxNow:
    """What the inbox depends on besides the log: the configuration here, and the time as unix time."""

    channels: tuple[ChannelConfig, ...]
    checks: Checks
    keys: SigningKeys
    now_ms: int


@frozen
class _Known:
    """What the items of all sessions depend on. `repeated` are the labels that more than one run has."""

    now: InboxNow
    repeated: frozenset[str]


def inbox_of(reader: SessionReader, plans: Plans, found: Listing, now: InboxNow) -> list[InboxItem]:
    """Return what waits for a person, oldest first (INBOX-1). Sessions in which nothing can wait are not read.

    A damaged session hides nothing of the others: it is an item of its own, because what waits in it is not known.

    Raises:
        StoreFailureError: The disk failed.
    """
    items: list[InboxItem] = []
    labels = Counter(run.label for summary in found.sessions for run in summary.runs)
    repeated = frozenset(label for label, number in labels.items() if number > 1)
    known = _Known(now=now, repeated=repeated)
    for summary in found.sessions:
        if any(one.status in ("in_progress", "blocked") or one.intents for one in summary.runs):
            try:
                items += _all_of_session(reader, plans, summary.session, known)
            except UNUSABLE_SESSION as error:
                items.append(_unreadable(unreadable_by(summary.session, error)))
    return sorted(items, key=lambda one: one.since or "")


def _all_of_session(reader: SessionReader, plans: Plans, session_id: SessionId, known: _Known) -> list[InboxItem]:
    session = reader.load(session_id)
    if session is None:
        return []
    return [*_of_session(reader, plans, session, known), *_intents(session, known)]


def _unreadable(found: Unreadable) -> InboxItem:
    return InboxItem(
        kind="unreadable",
        title=f"Session {found.session} cannot be read, so it is not known what waits in it",
        text=one_line(f"{found.health}: {found.found}", CELL_BYTES_MAX),
        commands=(f"interlock session verify {found.session}",),
        session=found.session,
    )


def _of_session(reader: SessionReader, plans: Plans, session: Session, known: _Known) -> Iterator[InboxItem]:
    for run in sorted(session.runs.values(), key=lambda one: one.index):
        if run.ended is not None or run.tip is None:
            continue
        run_context, tip = load_run_context(session, run, plans), session.nodes[run.tip]
        run_context = replace(run_context, signing_keys=known.now.keys)
        label = run_context.view(tip).label
        # After an import next to its original, the label names two runs, and the session names one.
        name = session.session if label in known.repeated and len(session.runs) == 1 else label
        yield from _approvals(reader, run_context, (tip, name), known.now.now_ms)
        yield from _failed_checks(run_context, tip, name, known.now.checks)
        yield from _questions(run_context, tip)


def _approvals(
    reader: SessionReader, run_context: RunContext, at: tuple[Node, str], now_ms: int
) -> Iterator[InboxItem]:
    tip, name = at
    approval = open_approval(reader, run_context, tip)
    if approval is None:
        return
    view, earlier = run_context.view(tip), _earlier_answer(run_context, approval)
    is_over = approval.expiry.is_over(now_ms)
    expired = " (expired)" if is_over else ""
    yield InboxItem(
        kind="expired" if is_over else "approval",
        title=f"Run `{view.label}` ({view.workflow_id}): {approval.title}{expired}{earlier.brief}",
        text="\n\n".join([approval.text(), *earlier.whole]),
        commands=(way_out(run_context, tip).words,) if is_over else tuple(_answer_commands(name, approval)),
        label=view.label,
        since=approval.node.at,
        session=run_context.session.session,
        about=approval.node.node,
    )


@frozen
class _EarlierAnswer:
    """The last answer to a question that is still open; both are empty if nobody has answered it."""

    brief: str = ""
    whole: tuple[str, ...] = ()


def _earlier_answer(run_context: RunContext, approval: OpenApproval) -> _EarlierAnswer:
    last = run_context.session.outside.last_about(run_context.run.run, APPROVAL, approval.node.node)
    if last is None:
        return _EarlierAnswer()
    choice, note = flat(str(last.data.fields.get("choice"))), str(last.data.fields.get("note") or "")
    level = run_context.session.describe_level(last.index, last.data, run_context.signing_keys)
    known = f"{level}, via {last.data.via}"
    whole = f"Answered before ({known}): {choice}"
    signer = last.data.signed if has_unknown_key(last.data, run_context.signing_keys) else None
    return _EarlierAnswer(
        brief=f" (answered before: {choice}, {known})",
        whole=(
            "\n".join([whole, quoted(note)] if note else [whole]),
            *([unknown_key_words(signer)] if signer is not None else []),
        ),
    )


def _answer_commands(name: str, approval: OpenApproval) -> Iterator[str]:
    """Yield the command of each choice; the choice is named unless the verb alone says it."""
    sign = " --sign KEYFILE" if approval.assurance == "signed" else ""
    for at, choice in enumerate(approval.ask.choices):
        verb = "reject" if at else "approve"
        named = f" --choice {choice}" if choice != verb or approval.ask.has_several else ""
        note = " --note TEXT" if at and approval.ask.needs_note else ""
        yield f"interlock {verb} {name} --shown {approval.mark}{named}{sign}{note}"


def _failed_checks(run_context: RunContext, tip: Node, name: str, checks: Checks) -> Iterator[InboxItem]:
    """Yield the check that a run waits for if it must not run now, or did not pass."""
    waiting = waiting_check(run_context, tip)
    if waiting is None:
        return
    results, found = results_at(run_context.session, waiting.run, waiting.node), checks.find(waiting)
    last = results[-1] if results else None
    state = unmet_words(run_context.session, last) if last is not None else None
    text = f"{last.data.fields['command']}\n{last.data.fields['output']}" if last is not None else ""
    if isinstance(found, CheckFault):
        state = f"does not run: {found.why}. {found.fix}"
    if state is None:
        return
    view = run_context.view(tip)
    yield InboxItem(
        kind="check_failed",
        title=f"Run `{view.label}` ({view.workflow_id}): the check `{waiting.name}` {state}",
        text=text,
        commands=(f"interlock checks run {name}",),
        label=view.label,
        since=last.at if last is not None else chain_head(run_context.session, tip).at,
        session=run_context.session.session,
        about=waiting.node,
    )


def _questions(run_context: RunContext, tip: Node) -> Iterator[InboxItem]:
    """Yield the questions of a step that a person answers through the agent's client."""
    pending = run_context.pending(tip)
    if pending is None or tip.preferences.never_stops:
        return
    step = run_context.workflow.steps[pending.step_id]
    context = run_context.session.context(tip.node)
    asks = asks_of(step, with_loop_variables(run_context.workflow.graphs, context, run_context.frames(tip)))
    view = run_context.view(tip)
    if asks:
        yield InboxItem(
            kind="question",
            title=f"Run `{view.label}` ({view.workflow_id}): {run_context.title(tip)}",
            text="\n".join(one.ask for one in asks),
            commands=("Answer in the chat of the agent; the run asks when the step is reported.",),
            label=view.label,
            since=chain_head(run_context.session, tip).at,
            session=run_context.session.session,
            about=chain_head(run_context.session, tip).node,
        )


def _intents(session: Session, known: _Known) -> Iterator[InboxItem]:
    for one in shown_intents(session, known.now.channels):
        if one.state in OPEN_STATES:
            where = f" --run {one.session}" if one.label in known.repeated else ""
            yield InboxItem(
                kind="intent",
                title=f"Run `{one.label}`: `{one.intent.sends}` is {one.state}",
                text=one_line(one.why or "", CELL_BYTES_MAX),
                commands=(f"interlock intent deliver {one.intent.intent_id}{where}",),
                label=one.label,
                since=one.intent.at,
                session=one.session,
                about=one.intent.intent_id,
            )
