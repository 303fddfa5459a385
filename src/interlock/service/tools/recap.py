"""The recap for an agent without memory: what was done, what is stored, and what came later (REC-1).

One text within a byte budget. The notes of a checkpoint, the later work if the step is done, and the names of stored
values have their own limits; the newest notes on the path to the node fill the rest.
"""

from collections.abc import Iterable, Iterator
from dataclasses import field
from itertools import islice

from interlock.engine.answer.prompt import function_words, visible_functions
from interlock.engine.request import ARTIFACT_CONTENT_TYPE
from interlock.engine.template import title_in_code
from interlock.kernel.budgets import (
    ARTIFACT_KIND_BYTES_MAX,
    ARTIFACTS_NAMED_MAX,
    RECAP_BYTES_MAX,
    RECAP_CHECKPOINT_BYTES_MAX,
    RECAP_NAMES_BYTES_MAX,
    RECAP_SINCE_BYTES_MAX,
    SHOWN_DIGEST_CHARS,
)
from interlock.kernel.canonical import parse_object
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import Digest
from interlock.kernel.text import in_code, one_line, quoted, truncated, utf8_bytes
from interlock.plan.records import PlanNode
from interlock.record.payloads import ArtifactPayload
from interlock.service.run.context import RunContext
from interlock.store.ports.errors import ContentDamagedError
from interlock.store.ports.reader import SessionReader
from interlock.views.node_position import NodePosition, tip_below
from interlock.views.recap import (
    RecapPart,
    nodes_with_artifacts,
    notes_of_checkpoint,
    recap,
    recap_part,
    recap_parts,
)
from interlock.views.session import Node

DONE_SO_FAR = "**Done so far, newest first**\n\n"
"""The heading of the notes on the path to a node."""


@frozen
class Recap:
    """Builds the text that summarizes a run up to a node. `lost` collects stored content that cannot be read."""

    reader: SessionReader
    run_context: RunContext
    position: NodePosition
    lost: dict[Digest, ContentDamagedError] = field(default_factory=dict[Digest, ContentDamagedError])

    def text(self) -> str | None:
        """Return the recap, within its budget; None if there is nothing to say. It names content that cannot be read.

        Raises:
            ContentDamagedError: The snapshot at which a branch ends is missing or damaged.
        """
        leading, trailing = [*self._checkpoint_notes(), *self._later_work()], list(self._stored_names())
        room = RECAP_BYTES_MAX - sum(utf8_bytes(one) + 2 for one in (*leading, *trailing))
        done = self._done(room)
        if self.lost:
            done = self._done(room - RECAP_NAMES_BYTES_MAX - 2)
        return "\n\n".join([*self._lost(), *leading, *([done] if done is not None else []), *trailing]) or None

    def _done(self, room: int) -> str | None:
        """Return the notes on the path to the node. Those above its parent are kept for the next node's recap."""
        session, first, plans = self.run_context.session, self.position.first, self.run_context.plans
        taken = list[RecapPart | None]()
        parts = recap_parts(session, first, self._part, known=plans.recap_of)
        done = recap(_noting(parts, taken), room - len(DONE_SO_FAR))
        newest, *rest = taken or (None,)
        if newest is not None and newest.above == first.parent:
            plans.keep_recap(session.nodes[newest.above], rest)
        return DONE_SO_FAR + done if done is not None else None

    def _part(self, at: Node, notes: str) -> tuple[str, bool]:
        """Return the part of a step and its notes, and whether it is fixed.

        A lost snapshot leaves the notes of its step readable (READ-9).
        """
        try:
            return recap_part(self.run_context.title(at), notes), self.run_context.has_fixed_title(at)
        except ContentDamagedError as error:
            self.lost[error.digest] = error
            return recap_part("a step whose snapshot cannot be read", notes), False

    def _lost(self) -> Iterator[str]:
        """Yield which content cannot be read, as the other parts found."""
        if not self.lost:
            return
        lines = "\n".join(f"- {error.what} {_short(digest)}: {error.found}" for digest, error in self.lost.items())
        head = "**Stored content that cannot be read.** Report it; `interlock doctor --deep` names the files."
        yield truncated(f"{head}\n{lines}", RECAP_NAMES_BYTES_MAX)

    def _checkpoint_notes(self) -> Iterator[str]:
        here = self.position.last
        notes = notes_of_checkpoint(here)
        if notes is not None and self.position.passed_to is None:
            head = f"**Notes of the last checkpoint of this step, {title_in_code(self.run_context.title(here))}**"
            yield truncated(f"{head}\n{quoted(notes)}", RECAP_CHECKPOINT_BYTES_MAX)

    def _later_work(self) -> Iterator[str]:
        """Yield what came after a finished step: on the path to the tip, and on other branches (REC-1)."""
        if self.position.passed_to is None:
            return
        session, first = self.run_context.session, self.position.first
        tip = session.nodes[tip_below(session, first)]
        since = recap(recap_parts(session, tip, self._part, above=first), RECAP_SINCE_BYTES_MAX)
        if since is not None:
            yield f"**Done from this step on, newest first**\n\n{since}"
        branches = [session.nodes[child] for child in first.children]
        if len(branches) > 1:
            lines = "\n".join(f"- {self._branch(child)}" for child in branches)
            yield truncated(f"**Branches from this step**\n{lines}", RECAP_NAMES_BYTES_MAX)
        functions = self._functions_since(first, tip)
        if functions is not None:
            yield functions

    def _branch(self, child: Node) -> str:
        session = self.run_context.session
        tip = session.nodes[tip_below(session, child)]
        is_preferred = session.runs[tip.run].tip == tip.node
        at = self.run_context.place(tip)
        place = title_in_code(at.title) if at is not None else "Complete"
        return f"{tip.depth - child.depth + 1} steps, now at: {place}{' (continued last)' if is_preferred else ''}"

    def _functions_since(self, first: Node, tip: Node) -> str | None:
        """Define the functions that the later steps use, except those of the shown step."""
        session = self.run_context.session
        here, steps = tip, list[PlanNode]()
        while here.node != first.node and here.parent is not None:
            here = session.nodes[here.parent]
            steps += self._step(here)
        shown = {name for step in self._step(first) if step.task for name in step.task.functions}
        named = {
            one.name: one
            for step in reversed(steps)
            for one in visible_functions(self.run_context.workflow, step)
            if step.task is not None and one.name in step.task.functions and one.name not in shown
        }
        if not named:
            return None
        return function_words(
            "**Functions used since**", [named[name] for name in sorted(named)], RECAP_NAMES_BYTES_MAX
        )

    def _step(self, node: Node) -> list[PlanNode]:
        try:
            pending = self.run_context.pending(node)
        except ContentDamagedError as error:
            self.lost[error.digest] = error
            return []
        return [self.run_context.workflow.steps[pending.step_id]] if pending is not None else []

    def _stored_names(self) -> Iterator[str]:
        """Yield the names of artifacts and context keys, without values (REC-1). The goal has its own place."""
        artifacts = [f"- {kind} {digest}" for kind, digest in self._artifacts()]
        if artifacts:
            lines = "\n".join(artifacts)
            yield truncated(f"**Stored artifacts, newest first**\n{lines}", RECAP_NAMES_BYTES_MAX)
        keys = sorted(self.run_context.session.context(self.position.last.node).keys() - {"goal"})
        if keys:
            key_names = ", ".join(map(in_code, keys))
            yield truncated(f"**Context keys that are set**: {key_names}", RECAP_NAMES_BYTES_MAX)

    def _artifacts(self) -> Iterator[tuple[str, str]]:
        """Yield the kind (in code) and the short digest of the artifacts on the path to the node, newest first."""
        # A retry stores the artifacts of a refused attempt again: name each once.
        digests = dict[Digest, None]()
        for node in nodes_with_artifacts(self.run_context.session, self.position.last):
            for output in reversed(node.outputs):
                payload = output.payload
                if isinstance(payload, ArtifactPayload) and payload.content_type == ARTIFACT_CONTENT_TYPE:
                    digests[payload.sha256] = None
        for digest in islice(digests, ARTIFACTS_NAMED_MAX):
            try:
                # A bundle can hold anything as an artifact.
                held = parse_object(self.reader.artifact(digest)) or {}
            except ContentDamagedError as error:
                self.lost[digest] = error
            else:
                yield in_code(one_line(str(held.get("kind", "artifact")), ARTIFACT_KIND_BYTES_MAX)), _short(digest)


def _noting(parts: Iterable[RecapPart | None], taken: list[RecapPart | None]) -> Iterator[RecapPart | None]:
    """Yield parts, and add each to a list as it is taken."""
    for part in parts:
        taken.append(part)
        yield part


def _short(digest: Digest) -> str:
    return digest[: len("sha256:") + SHOWN_DIGEST_CHARS]
