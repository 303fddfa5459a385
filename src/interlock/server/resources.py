"""Resources: the catalogue, plans, the records of sessions and parts of them. Reading writes nothing (SRV-8)."""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from interlock.engine.answer.links import (
    CATALOG_LINK,
    artifact_link,
    context_link,
    lifecycle_link,
    plan_link,
    session_link,
    step_link,
    turns_link,
)
from interlock.kernel.budgets import (
    ECHO_BYTES_MAX,
    HEADER_GOAL_BYTES_MAX,
    HEADER_TITLE_BYTES_MAX,
    LIST_ENTRIES_MAX,
    RESOURCES_MAX,
)
from interlock.kernel.errors import Refusal
from interlock.kernel.ids import ID_BODY_PATTERN, SessionId
from interlock.kernel.text import one_line
from interlock.server.apps.extension import PAGE_LINK, page_resource, read_page, shows_pages
from interlock.server.threads import run_read
from interlock.service.failures import refusal_of
from interlock.service.ports import Ports
from interlock.service.tools.inspect_workflow import plan_text
from interlock.service.tools.list_workflows import ListCommand, list_workflows
from interlock.service.tools.session_parts import (
    SessionPart,
    read_artifact,
    read_context,
    read_run_lifecycle,
    read_step,
    read_turns,
)
from interlock.store.ports.errors import UNUSABLE_SESSION
from interlock.views.summary import SessionSummary, status_words

PLAN_TEMPLATE = plan_link("{workflowId}")
SESSION_TEMPLATE = session_link("{sessionId}")
ARTIFACT_TEMPLATE = artifact_link("{sessionId}", "{digest}")
CONTEXT_TEMPLATE = context_link("{sessionId}", "{label}")
LIFECYCLE_TEMPLATE = lifecycle_link("{sessionId}", "{label}")
TURNS_TEMPLATE = turns_link("{sessionId}", "{label}")
STEP_TEMPLATE = step_link("{sessionId}", "{label}", "{stepId}")
_MARKDOWN = "text/markdown"
_PLAN = re.compile(plan_link("(?P<id>[^/]+)"))
_ANY_SESSION = f"(?P<id>sess_{ID_BODY_PATTERN})"
_SESSION = re.compile(session_link(_ANY_SESSION))
_PARTS = (
    re.compile(artifact_link(_ANY_SESSION, "(?P<digest>[^/]+)")),
    re.compile(context_link(_ANY_SESSION, "(?P<label>[^/]+)")),
    re.compile(lifecycle_link(_ANY_SESSION, "(?P<events_of>[^/]+)")),
    re.compile(turns_link(_ANY_SESSION, "(?P<turns_of>[^/]+)")),
    re.compile(step_link(_ANY_SESSION, "(?P<label>[^/]+)", "(?P<step>[^/]+)")),
)


def is_served(uri: str) -> bool:
    """Say whether a resource can have an address, whether or not there is one at it now."""
    patterns = (_PLAN, _SESSION, *_PARTS)
    return uri in (CATALOG_LINK, PAGE_LINK) or any(one.fullmatch(uri) for one in patterns)


_PART_TEMPLATES = (
    (
        ARTIFACT_TEMPLATE,
        "artifact",
        "Artifact of a session",
        "What an agent sent as evidence, by its digest.",
        "application/json",
    ),
    (
        CONTEXT_TEMPLATE,
        "run context",
        "Context of a run",
        "The current context of a run, without what looks like a secret.",
        "application/json",
    ),
    (
        LIFECYCLE_TEMPLATE,
        "run lifecycle",
        "Lifecycle of a run",
        "The events of a run, from its start to its end: ids, codes and digests, no text.",
        "application/json",
    ),
    (
        TURNS_TEMPLATE,
        "run turns",
        "Turns of a run",
        "What a driver recorded of each turn: model, tokens, messages, tools, state, errors.",
        "application/json",
    ),
    (
        STEP_TEMPLATE,
        "step of a run",
        "Step of a run",
        "A step as an agent would receive it now, also one that is not pending, such as a parallel one.",
        _MARKDOWN,
    ),
)

Context = ServerRequestContext[Any, Any]
ListParams = types.PaginatedRequestParams | None


class Resources:
    """Serves what people and agents can read through one server."""

    def __init__(self, ports: Ports, workspace: Path | None) -> None:
        self._ports = ports
        self._workspace = workspace

    async def list_resources(self, context: Context, _params: ListParams) -> types.ListResourcesResult:
        """Answer `resources/list`: the catalogue, the latest sessions, the plans, the page in a chat."""
        page = [page_resource()] if shows_pages(context) else []
        return types.ListResourcesResult(resources=[*await run_read(self._listed), *page])

    async def list_templates(self, _context: Context, _params: ListParams) -> types.ListResourceTemplatesResult:
        """Answer `resources/templates/list`."""
        plan = types.ResourceTemplate(
            uri_template=PLAN_TEMPLATE, name="workflow plan", title="Plan of a workflow", mime_type=_MARKDOWN
        )
        session = types.ResourceTemplate(
            uri_template=SESSION_TEMPLATE,
            name="session record",
            title="Record of a session",
            description="The progress of its runs, the notes of each step, and what is open.",
            mime_type=_MARKDOWN,
        )
        parts = [
            types.ResourceTemplate(uri_template=uri, name=name, title=title, description=description, mime_type=kind)
            for uri, name, title, description, kind in _PART_TEMPLATES
        ]
        return types.ListResourceTemplatesResult(resource_templates=[plan, session, *parts])

    async def read_resource(
        self, _context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Answer `resources/read`.

        Raises:
            MCPError: There is no such resource, or the disk failed.
        """
        uri = str(params.uri)
        if uri == PAGE_LINK:
            return types.ReadResourceResult(contents=[await run_read(read_page)])
        text = await run_read(partial(self._text, uri))
        if isinstance(text, Refusal):
            raise MCPError(types.INVALID_PARAMS, f"{text.message} {text.suggestion}", data={"uri": uri})
        part = SessionPart(text=text) if isinstance(text, str) else text
        content = types.TextResourceContents(uri=uri, mime_type=part.mime_type, text=part.text)
        return types.ReadResourceResult(contents=[content])

    def _listed(self) -> list[types.Resource]:
        entries = sorted(self._ports.catalog.view(self._workspace).entries.items())[:RESOURCES_MAX]
        catalogue = types.Resource(
            uri=CATALOG_LINK,
            name="workflows",
            title="Workflows",
            description="Workflows that can be started, and files that cannot run, with the reason.",
            mime_type=_MARKDOWN,
        )
        plans = [
            types.Resource(
                uri=plan_link(workflow_id),
                name=workflow_id,
                title=f"Plan of {one_line(entry.listing.name, HEADER_TITLE_BYTES_MAX)}",
                mime_type=_MARKDOWN,
            )
            for workflow_id, entry in entries
        ]
        sessions = [one for one in self._ports.read.listing().newest_first() if one.runs]
        return [catalogue, *map(_session, sessions[:LIST_ENTRIES_MAX]), *plans]

    def _text(self, uri: str) -> str | SessionPart | Refusal:
        if uri == CATALOG_LINK:
            command = ListCommand(workspace=self._workspace)
            listed = list_workflows(self._ports.catalog, command, entries_max=RESOURCES_MAX).text
            return f"{listed}\n\nThe whole plan of a workflow: resource `{PLAN_TEMPLATE}`."
        if found := _PLAN.fullmatch(uri):
            return plan_text(self._ports.catalog, found["id"], self._workspace)
        if found := _SESSION.fullmatch(uri):
            return self._record(SessionId(found["id"]))
        if found := next((match for part in _PARTS if (match := part.fullmatch(uri))), None):
            return self._part(SessionId(found["id"]), found.groupdict())
        raise no_resource(uri)

    def _part(self, session: SessionId, names: Mapping[str, str]) -> SessionPart | Refusal:
        """Return a part of a session by the names in its address. For damage, return the fault and what to do."""
        ports = self._ports.read
        try:
            if "digest" in names:
                return read_artifact(ports, session, names["digest"])
            if "events_of" in names:
                return read_run_lifecycle(ports, session, names["events_of"])
            if "turns_of" in names:
                return read_turns(ports, session, names["turns_of"])
            if "step" in names:
                return read_step(ports, session, names["label"], names["step"])
            return read_context(ports, session, names["label"])
        except UNUSABLE_SESSION as error:
            return refusal_of(error)

    def _record(self, session: SessionId) -> str | Refusal:
        """Return a session's record. For a damaged session, return only the fault and what to do."""
        from interlock.service.report.resource import session_record  # noqa: PLC0415 — a start does not read records

        try:
            return session_record(self._ports.read, session, self._ports.signing_keys)
        except UNUSABLE_SESSION as error:
            refusal = refusal_of(error)
            return f"# Session {session}\n\n**{refusal.code}.** {refusal.message}\n\n{refusal.suggestion}\n"


def no_resource(uri: str) -> MCPError:
    """Return the error of an address that no resource can have."""
    return MCPError(
        types.INVALID_PARAMS,
        f"There is no resource {one_line(uri, 2 * ECHO_BYTES_MAX)!r}. Read {CATALOG_LINK}, {PLAN_TEMPLATE} or"
        f" {SESSION_TEMPLATE}.",
        data={"uri": uri},
    )


def _session(summary: SessionSummary) -> types.Resource:
    run = max(summary.runs, key=lambda one: one.last_index)
    name = one_line(run.workflow_name, HEADER_TITLE_BYTES_MAX)
    at = f", step {run.number} of {run.total}" if run.number is not None else ""
    more = f"; {len(summary.runs)} runs" if len(summary.runs) > 1 else ""
    return types.Resource(
        uri=session_link(summary.session),
        name=summary.session,
        title=f"{name}: {one_line(run.goal, HEADER_GOAL_BYTES_MAX)}" if run.goal else name,
        description=f"Run {run.label}, {status_words(run.status, run.waiting)}{at}{more}",
        mime_type=_MARKDOWN,
        annotations=types.Annotations(last_modified=summary.last_at) if summary.last_at is not None else None,
    )
