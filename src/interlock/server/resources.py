"""Resources: the whole plan of each workflow, for what is too long for one answer. Reading one writes nothing."""

from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from interlock.kernel.budgets import RESOURCES_MAX
from interlock.kernel.errors import Refusal
from interlock.service.catalog import Catalog
from interlock.service.inspect_workflow import plan_link, plan_text

_MARKDOWN = "text/markdown"
_TEMPLATE = plan_link("{workflowId}")


class Resources:
    """Serves the plans of one server's workflows."""

    def __init__(self, catalog: Catalog, workspace: Path | None) -> None:
        self._catalog = catalog
        self._workspace = workspace

    async def list_resources(
        self, _context: ServerRequestContext[Any, Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Answer `resources/list`: the plan of each workflow that can be started."""
        view = await anyio.to_thread.run_sync(self._catalog.view, self._workspace)
        listed = sorted(view.entries.items())[:RESOURCES_MAX]
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    uri=plan_link(workflow_id),
                    name=workflow_id,
                    title=f"Plan of {entry.document.name}",
                    mime_type=_MARKDOWN,
                )
                for workflow_id, entry in listed
            ]
        )

    async def list_templates(
        self, _context: ServerRequestContext[Any, Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Answer `resources/templates/list`."""
        template = types.ResourceTemplate(
            uri_template=_TEMPLATE, name="workflow plan", title="What a workflow will run", mime_type=_MARKDOWN
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(
        self, _context: ServerRequestContext[Any, Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Answer `resources/read`.

        Raises:
            MCPError: There is no such resource.
        """
        head, tail = _TEMPLATE.split("{workflowId}")
        uri = str(params.uri)
        text: str | Refusal | None = None
        if uri.startswith(head) and uri.endswith(tail):
            workflow_id = uri[len(head) : len(uri) - len(tail)]
            text = await anyio.to_thread.run_sync(partial(plan_text, self._catalog, workflow_id, self._workspace))
        if not isinstance(text, str):
            found = text.message if text is not None else f"There is no resource {uri!r}; read {_TEMPLATE}."
            raise MCPError(types.INVALID_PARAMS, found, data={"uri": uri})
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=_MARKDOWN, text=text)])
