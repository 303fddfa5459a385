"""Completions of workflow and session ids, in prompts and in the addresses of resources."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from mcp import types
from mcp.server.context import ServerRequestContext

from interlock.kernel.budgets import COMPLETIONS_MAX
from interlock.server.resources import PLAN_TEMPLATE, SESSION_TEMPLATE
from interlock.server.threads import run_read
from interlock.service.ports import Ports
from interlock.views.summary import SessionSummary

Choice: TypeAlias = tuple[str, str]
"""A value, and other words that find it."""
_OF_WORKFLOWS = {("start", "workflowId"), (PLAN_TEMPLATE, "workflowId")}
_OF_SESSIONS = (SESSION_TEMPLATE, "sessionId")
_WORD = re.compile(r"[^\W_]+")


class Completions:
    """Completes what people type, for one server."""

    def __init__(self, ports: Ports, workspace: Path | None) -> None:
        self._ports = ports
        self._workspace = workspace

    async def complete(
        self, _context: ServerRequestContext[Any, Any], params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        """Answer `completion/complete`. An argument without completions gets an empty list, not an error."""
        ref = params.ref
        about = (ref.name if isinstance(ref, types.PromptReference) else ref.uri, params.argument.name)
        if about in _OF_WORKFLOWS:
            choices = await run_read(self._workflows)
        elif about == _OF_SESSIONS:
            choices = await run_read(self._sessions)
        else:
            choices = []
        values = completed(params.argument.value, choices)
        return types.CompleteResult(
            completion=types.Completion(
                values=values[:COMPLETIONS_MAX], total=len(values), has_more=len(values) > COMPLETIONS_MAX
            )
        )

    def _workflows(self) -> list[Choice]:
        entries = sorted(self._ports.catalog.view(self._workspace).entries.items())
        return [(name, f"{name} {one.listing.name} {' '.join(one.listing.tags)}") for name, one in entries]

    def _sessions(self) -> list[Choice]:
        return [(one.session, _words_about(one)) for one in self._ports.read.listing().newest_first()]


def completed(typed: str, choices: Iterable[Choice]) -> list[str]:
    """Return the values that begin with the typed text, then those in which any word begins with it, in their order."""
    wanted, beginnings = _words(typed), typed.strip().lower()
    beginning: list[str] = []
    by_word: list[str] = []
    for value, words in choices:
        if value.lower().startswith(beginnings):
            beginning.append(value)
        elif wanted and _match_all(_words(words), wanted):
            by_word.append(value)
    return beginning + by_word


def _words_about(summary: SessionSummary) -> str:
    return " ".join(f"{run.label} {run.workflow_id} {run.workflow_name} {run.goal or ''}" for run in summary.runs)


def _match_all(words: Sequence[str], wanted: Sequence[str]) -> bool:
    return all(any(word.startswith(one) for word in words) for one in wanted)


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).lower())
