"""A server behind the SDK's client, as `Server`, whose process is forked and therefore imports nothing."""

from collections.abc import Mapping
from pathlib import Path

from mcp import StdioServerParameters
from tests.support.forkserver import forking_python
from tests.support.server import NOTHING, Declared, Server

from interlock.testing.harness import Era

RUN = """
import os, runpy, sys
with open(sys.argv.pop(1), "w") as file:
    file.write(str(os.getpid()))
runpy.run_module("interlock", run_name="__main__", alter_sys=True)
"""
"""Writes the id of the process that it is, and becomes the server."""


class ForkedServer(Server):
    """A server in a process of its own, over stdio. One that is to lose its capabilities is a plain `Server`."""

    def __init__(
        self,
        data_dir: Path,
        workspace: Path,
        era: Era = "auto",
        *,
        environment: Mapping[str, str] | None = None,
        declared: Declared = NOTHING,
    ) -> None:
        super().__init__(data_dir, workspace, era, environment=environment, declared=declared)
        plain = self._server
        assert isinstance(plain, StdioServerParameters)
        places = ["--data-dir", str(data_dir), "--workspace", str(workspace)]
        arguments = ["-c", RUN, str(self._pid_file), *places]
        self._server = plain.model_copy(update={"command": forking_python(), "args": arguments})
