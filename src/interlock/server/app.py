"""The MCP server, put together: one low-level server for both protocol eras (D30)."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mcp import types
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from interlock.server.arguments import Caller
from interlock.server.calls import Calls
from interlock.server.resources import Resources
from interlock.server.tools import INSTRUCTIONS, TOOLS
from interlock.service.catalog import Catalog
from interlock.service.plans import Plans
from interlock.service.ports import Ports, ReadPorts
from interlock.service.shell import NoTrace, StderrTrace
from interlock.store.local.store import LocalStore
from interlock.store.workflow_files import LocalWorkflowFiles
from interlock.version import VERSION

BUNDLED = Path(__file__).parent.parent / "workflows"
"""The workflows that ship with the package."""
_CACHED = CacheHint(3_600_000, "public")
"""The tool list does not change while a server runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where a server reads and writes. All paths are absolute."""

    data_dir: Path
    workspace: Path | None
    user_workflows: Path | None
    core_source: Path | None = None
    is_traced: bool = False


def settings_from(
    environment: Mapping[str, str],
    *,
    data_dir: str | None = None,
    workspace: str | None = None,
    core_source: str | None = None,
) -> Settings:
    """Return the settings that arguments, the environment and the platform give, in this order of precedence.

    `core_source`, a directory that is mounted as core, comes from arguments alone: neither the environment nor a
    project may say what ships.
    """
    data = data_dir or environment.get("INTERLOCK_DATA_DIR")
    space = workspace or environment.get("INTERLOCK_WORKSPACE") or environment.get("CLAUDE_PROJECT_DIR") or os.getcwd()  # noqa: PTH109 — a text like its siblings
    user = environment.get("INTERLOCK_WORKFLOWS_DIR")
    return Settings(
        data_dir=Path(data).absolute() if data else _platform_data_dir(),
        workspace=Path(space).absolute(),
        user_workflows=Path(user).absolute() if user else _platform_config_dir() / "workflows",
        core_source=Path(core_source).absolute() if core_source else None,
        is_traced=environment.get("INTERLOCK_TRACE") == "1",
    )


def _platform_data_dir() -> Path:
    from platformdirs import user_data_path  # noqa: PLC0415 — needed only without a chosen directory

    return user_data_path("interlock", appauthor=False)


def _platform_config_dir() -> Path:
    from platformdirs import user_config_path  # noqa: PLC0415 — see above

    return user_config_path("interlock", appauthor=False)


def local_ports(settings: Settings) -> Ports:
    """Return the ports over a local data directory. Touches nothing yet."""
    store = LocalStore(settings.data_dir)
    trace = StderrTrace() if settings.is_traced else NoTrace()
    return Ports(
        read=ReadPorts(reader=store, key_ring=store, plans=Plans(store), trace=trace),
        writer=store,
        catalog=Catalog(workflow_sources(settings)),
    )


def workflow_sources(settings: Settings) -> LocalWorkflowFiles:
    """Return the sources of workflow files: what ships first, then what is mounted as core, then the user's."""
    mounted = (settings.core_source,) if settings.core_source is not None else ()
    return LocalWorkflowFiles(core_dirs=(BUNDLED, *mounted), user_dir=settings.user_workflows)


@cache
def _published_tools() -> list[types.Tool]:
    """Return the tools as they are listed: made on the first listing, and the same for every later one."""
    return [types.Tool.model_validate(tool.to_json()) for tool in TOOLS]


def build_server(ports: Ports, workspace: Path | None) -> Server[Any]:
    """Return the MCP server over these ports."""
    calls = Calls(ports, Caller(workspace=workspace))
    resources = Resources(ports.catalog, workspace)

    async def list_tools(
        _context: ServerRequestContext[Any, Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=_published_tools())

    return Server(
        "interlock",
        version=VERSION,
        title="Interlock",
        instructions=INSTRUCTIONS,
        cache_hints={"tools/list": _CACHED, "server/discover": _CACHED},
        on_list_tools=list_tools,
        on_call_tool=calls.call,
        on_list_resources=resources.list_resources,
        on_list_resource_templates=resources.list_templates,
        on_read_resource=resources.read_resource,
    )
