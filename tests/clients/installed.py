"""The clients that `make clients` installs, and how a test runs one of them.

A test is skipped if its package is not installed, and says what to run. Nothing here reaches the network: the
clients are started with an empty home, talk to a server that they start themselves, and send no telemetry.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES: dict[str, Any] = json.loads(Path(__file__).with_name("package.json").read_text(encoding="utf-8"))
PATIENCE_S = 120
"""Nothing takes a tenth of it; a client that hangs must not hang the suite."""

QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "MCP_INSPECTOR_SECRET_STORE": "file",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a client's command ended."""

    code: int
    out: str
    err: str

    @property
    def output(self) -> str:
        """The exit code and everything printed, for a failing assertion."""
        return f"exit code {self.code}\n{self.out}\n{self.err}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """Installed clients, each of the pinned version, run in a home and a project of a test's own."""

    home: Path
    project: Path
    installed: Path

    def wanted(self, package: str) -> Path:
        """Return where a package lies. Skips the test where it does not, or is of another version than is pinned."""
        place, pinned = self.installed / "node_modules" / package, PACKAGES["dependencies"][package]
        manifest = place / "package.json"
        if not manifest.is_file():
            pytest.skip(f"{package} is not installed: run `make clients`")
        found = json.loads(manifest.read_text(encoding="utf-8"))["version"]
        if found != pinned:
            pytest.skip(f"{package} is installed as {found}, pinned is {pinned}: run `make clients`")
        return place

    def run(self, package: str, program: str, *arguments: str, **settings: str) -> Finished:
        """Run a program of a package to its end, in the project; settings go into its environment."""
        self.wanted(package)
        programs = self.installed / "node_modules" / ".bin"
        if not (programs / "node").exists():
            pytest.skip("the Node of these clients is not installed: run `make clients`")
        return self.finish([str(programs / program), *arguments], **settings)

    def finish(self, command: list[str], **settings: str) -> Finished:
        """Run a command to its end, in the project; the clients' own Node comes first on the search path."""
        search = os.pathsep.join([str(self.installed / "node_modules" / ".bin"), os.environ["PATH"]])
        ended = subprocess.run(
            command,
            cwd=self.project,
            env={**QUIET, **settings, "HOME": str(self.home), "PATH": search},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE_S,
            check=False,
        )
        return Finished(code=ended.returncode, out=ended.stdout, err=ended.stderr)

    def claude(self, *arguments: str, **settings: str) -> Finished:
        """Run Claude Code. It is a program of its own, in the package of this platform."""
        self.wanted("@anthropic-ai/claude-code")
        found = sorted(self.installed.glob("node_modules/@anthropic-ai/claude-code-*/claude"))
        if not found:
            pytest.skip("Claude Code's program for this platform is not installed: run `make clients`")
        return self.finish([str(found[0]), *arguments], **settings)

    def put_gemini_settings(self, **settings: object) -> None:
        """Write the user's settings of Gemini CLI. Each folder is trusted: in one that is not, it starts no server."""
        quiet = {"privacy": {"usageStatisticsEnabled": False}, "general": {"enableAutoUpdate": False}}
        security = {"folderTrust": {"enabled": False}, "auth": {"selectedType": "gemini-api-key"}}
        path = self.home / ".gemini" / "settings.json"
        path.parent.mkdir()
        path.write_text(json.dumps({**quiet, "security": security, **settings}), encoding="utf-8")

    def put_servers(self) -> Path:
        """Write a file of the shape that most clients read, with the server in it, and return its path."""
        path = self.home / "mcp.json"
        path.write_text(json.dumps({"mcpServers": self.servers()}), encoding="utf-8")
        return path

    def servers(self) -> dict[str, object]:
        """Return the server in the configuration form of most clients."""
        command, *arguments = self.server()
        return {"interlock": {"command": command, "args": arguments}}

    def server(self) -> list[str]:
        """Return the command of a server that keeps its data in the test's directory."""
        data_dir = self.home.with_name("data")
        return [sys.executable, "-m", "interlock", "serve", "--data-dir", str(data_dir)]
