"""What an agent without memory needs beside the step: what was done, what there is, where it goes on (REC-1).

The whole is one text within its budget: the notes of a checkpoint first, then what came after the step if it is done,
then the names of what is stored, and the newest notes of the way here in all the room that is left.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from interlock.engine.answer.parts import title_in_code
from interlock.engine.answer.prompt import function_words, visible_functions
from interlock.engine.request import ARTIFACT_CONTENT_TYPE
from interlock.kernel.budgets import (
    ARTIFACT_KIND_BYTES_MAX,
    ARTIFACTS_NAMED_MAX,
    RECAP_BYTES_MAX,
    RECAP_CHECKPOINT_BYTES_MAX,
    RECAP_NAMES_BYTES_MAX,
    RECAP_SINCE_BYTES_MAX,
    SHOWN_DIGEST_CHARS,
)
from interlock.kernel.text import in_code, one_line, quoted, truncated, utf8_bytes
from interlock.plan.records import PlanNode
from interlock.record.payloads import ArtifactPayload
from interlock.record.snapshot import Running
from interlock.service.run.context import RunContext
from interlock.store.ports.reader import SessionReader
from interlock.views.node_position import NodePosition, tip_below
from interlock.views.recap import nodes_above, notes_of_checkpoint, recap
from interlock.views.session import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Recap:
    """A place that is looked at, with what is needed to tell of it."""

    reader: SessionReader
    scene: RunContext
    standing: NodePosition

    def text(self) -> str | None:
        """Return what is told, within the recap's budget; None where there is nothing to tell.

        Raises:
            ContentDamagedError: A snapshot or an artifact is missing or damaged.
        """
        leading, trailing = [*self._of_checkpoint(), *self._since()], list(self._stored())
        room = RECAP_BYTES_MAX - sum(utf8_bytes(one) + 2 for one in (*leading, *trailing))
        done = recap(self.scene.session, self.standing.first, self.scene.title, bytes_max=room)
        return "\n\n".join([*leading, *([done] if done is not None else []), *trailing]) or None

    def _of_checkpoint(self) -> Iterator[str]:
        here = self.standing.last
        notes = notes_of_checkpoint(here)
        if notes is not None and self.standing.passed_to is None:
            head = f"**Notes of the last checkpoint of this step, {title_in_code(self.scene.title(here))}**"
            yield truncated(f"{head}\n{quoted(notes)}", RECAP_CHECKPOINT_BYTES_MAX)

    def _since(self) -> Iterator[str]:
        """Tell what came after a step that is done: on the way to where it stands, and on other branches (REC-1)."""
        if self.standing.passed_to is None:
            return
        session, first = self.scene.session, self.standing.first
        tip = session.nodes[tip_below(session, first)]
        since = recap(session, tip, self.scene.title, above=first, bytes_max=RECAP_SINCE_BYTES_MAX)
        if since is not None:
            yield f"**Done after this step, newest first**\n\n{since}"
        branches = [session.nodes[child] for child in first.children]
        if len(branches) > 1:
            lines = "\n".join(f"- {self._branch(child)}" for child in branches)
            yield truncated(f"**Branches from this step**\n{lines}", RECAP_NAMES_BYTES_MAX)
        functions = self._functions_since(first, tip)
        if functions is not None:
            yield functions

    def _branch(self, child: Node) -> str:
        session = self.scene.session
        tip = session.nodes[tip_below(session, child)]
        is_preferred = session.runs[tip.run].tip == tip.node
        at = self.scene.place(tip)
        place = title_in_code(at.title) if at is not None else "Complete"
        return f"{tip.depth - child.depth + 1} steps, now at: {place}{' (preferred)' if is_preferred else ''}"

    def _functions_since(self, first: Node, tip: Node) -> str | None:
        """Define the functions that the steps told of refer to, beside those of the step that is looked at."""
        session = self.scene.session
        here, steps = tip, list[PlanNode]()
        while here.node != first.node and here.parent is not None:
            here = session.nodes[here.parent]
            steps += self._step(here)
        shown = {name for step in self._step(first) if step.task for name in step.task.functions}
        named = {
            one.name: one
            for step in reversed(steps)
            for one in visible_functions(self.scene.workflow, step)
            if step.task is not None and one.name in step.task.functions and one.name not in shown
        }
        if not named:
            return None
        return function_words(
            "**Functions used since**", [named[name] for name in sorted(named)], RECAP_NAMES_BYTES_MAX
        )

    def _step(self, node: Node) -> list[PlanNode]:
        state = self.scene.snapshot(node).state
        return [self.scene.workflow.steps[state.pending.step.step_id]] if isinstance(state, Running) else []

    def _stored(self) -> Iterator[str]:
        """Name artifacts and context keys, whose values stay where they are (REC-1); the goal is told anyway."""
        artifacts = [f"- {kind} {digest}" for kind, digest in self._artifacts()]
        if artifacts:
            lines = "\n".join(artifacts)
            yield truncated(f"**Stored artifacts, newest first**\n{lines}", RECAP_NAMES_BYTES_MAX)
        keys = sorted(self.scene.session.context(self.standing.last.node).keys() - {"goal"})
        if keys:
            told = ", ".join(map(in_code, keys))
            yield truncated(f"**Context keys that are set**: {told}", RECAP_NAMES_BYTES_MAX)

    def _artifacts(self) -> Iterator[tuple[str, str]]:
        """Yield the kind, in code, and the digest of the artifacts on the way here, the newest first."""
        outputs = (
            output.payload
            for node in nodes_above(self.scene.session, self.standing.last)
            for output in reversed(node.outputs)
        )
        # A retry keeps what a refused attempt brought: each is named once.
        digests = dict.fromkeys(
            payload.sha256
            for payload in outputs
            if isinstance(payload, ArtifactPayload) and payload.content_type == ARTIFACT_CONTENT_TYPE
        )
        for digest in islice(digests, ARTIFACTS_NAMED_MAX):
            kind = json.loads(self.reader.artifact(digest))["kind"]
            yield in_code(one_line(str(kind), ARTIFACT_KIND_BYTES_MAX)), digest[: len("sha256:") + SHOWN_DIGEST_CHARS]
