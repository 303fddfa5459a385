"""An agent with a shell that answers a question in a person's name, in each way that it has.

`client DATA SPACE` is the agent's client: it starts a server, reads with it and writes nothing, then runs what each
line of its input names. The other ways are what such an agent starts: `form` is a client with a server of its own that
answers the form itself, `terminal` opens a terminal for the command, `page` answers in the console.
"""

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

ME = str(Path(__file__).resolve())
DETACHED = """
import os, sys
if os.fork():
    os._exit(0)
os.setsid()
parent = int(sys.argv[1])
while os.getppid() == parent:
    pass
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""
"""Runs Python as a process whose parents have ended: nothing shows any more who started it."""
DETACH = f"""
import os, sys
os.execv(sys.executable, [sys.executable, "-c", {DETACHED!r}, str(os.getpid()), *sys.argv[1:]])
"""


class OwnServer:
    """A server over pipes, and a client that can show forms and answers each with its first choice."""

    def __init__(self, data: str, space: str, launcher: list[str], *, can_ask: bool) -> None:
        serve = [sys.executable, "-m", "interlock", "serve", "--data-dir", data, "--workspace", space]
        self._process = subprocess.Popen(
            [*launcher, *serve], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=space
        )
        self._number = 0
        capabilities: dict[str, object] = {"elicitation": {"form": {}}} if can_ask else {}
        client = {"name": "claude-code", "version": "1"}
        self._ask("initialize", {"protocolVersion": "2025-06-18", "clientInfo": client, "capabilities": capabilities})
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, tool: str, arguments: Mapping[str, object]) -> dict[str, Any]:
        """Return the structure of a tool's answer."""
        return self._ask("tools/call", {"name": tool, "arguments": arguments})["structuredContent"]

    def look(self, run: str) -> dict[str, Any]:
        """Return the current step of a run, which is named as `SESSION/LABEL`."""
        (found,) = self.call("resume_session", {"sessionId": run.partition("/")[0]})["candidates"]
        return self.call(found["nextCall"]["tool"], found["nextCall"]["arguments"])

    def close(self) -> None:
        """End the server."""
        self._process.communicate(timeout=60)

    def _ask(self, method: str, params: object) -> dict[str, Any]:
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        assert self._process.stdout is not None
        while True:
            message = json.loads(self._process.stdout.readline())
            if message.get("method") == "elicitation/create":
                fields = message["params"]["requestedSchema"]["properties"]
                content = {name: first_choice(field) for name, field in fields.items() if name != "comment"}
                result = {"action": "accept", "content": content}
                self._send({"jsonrpc": "2.0", "id": message["id"], "result": result})
            if message.get("id") == self._number and "result" in message:
                return message["result"]

    def _send(self, message: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{json.dumps(message)}\n")
        self._process.stdin.flush()


def first_choice(field: Mapping[str, Any]) -> object:
    """Return the first answer that a field of a form can have."""
    choices = [*field.get("enum", ()), *(one["const"] for one in field.get("oneOf", ()))]
    return choices[0] if choices else "yes"


def form(data: str, space: str, run: str, *launcher: str) -> None:
    """Answer a question through the form of a server of our own."""
    server = OwnServer(data, space, list(launcher), can_ask=True)
    server.call("continue_workflow", {"ackToken": server.look(run)["ackToken"]})
    server.close()


def terminal(command: list[str], environment: Mapping[str, str] | None = None, *, is_session: bool = False) -> None:
    """Run a command in a terminal that we open."""
    _, slave = os.openpty()
    pipe, quiet = subprocess.PIPE, subprocess.STDOUT
    with subprocess.Popen(
        command, stdin=slave, stdout=pipe, stderr=quiet, env=environment, start_new_session=is_session
    ) as process:
        process.communicate(timeout=60)


def page(data: str, space: str, run: str) -> None:
    """Answer in the console that we start in a terminal that we open."""
    _, slave = os.openpty()
    console = ["console", "--no-open", "--data-dir", data, "--workspace", space, "--port", str(free_port())]
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "interlock", *console], stdin=slave, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        origin, _, secret = process.stdout.readline().split()[-1].partition("/#")
        headers = {"origin": origin, "sec-fetch-site": "same-origin"}
        transport = httpx.HTTPTransport(retries=5)
        with httpx.Client(base_url=origin, headers=headers, transport=transport) as browser:
            browser.post("/enter", content=secret)
            links = re.findall(r'href="(/sessions/[^"]+/questions/[^"]+)"', browser.get("/inbox").text)
            pages = {link: browser.get(link).text for link in links}
            [(link, text)] = [one for one in pages.items() if f"run {run.partition('/')[2]}<" in one[1]]
            token, shown = (
                re.findall(pattern, text)[0]
                for pattern in (r'name="interlock-token" content="([^"]*)"', r'name="shown" value="([^"]+)"')
            )
            fields = {"shown": shown, "choice": "approve", "note": ""}
            browser.post(link, data=fields, headers={"x-interlock-token": token})
        process.terminate()


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def approve(data: str, run: str) -> list[str]:
    """Return the arguments of Python that answer by command."""
    return ["-m", "interlock", "--data-dir", data, "approve", run.partition("/")[2]]


@dataclass(frozen=True)
class Attempt:
    """A try to answer the question of a run, which is named as `SESSION/LABEL`, by the agent of a client."""

    client: OwnServer
    data: str
    space: str
    run: str

    @property
    def own_form(self) -> list[str]:
        """Return the command that answers the form of a server of its own."""
        return [sys.executable, ME, "form", self.data, self.space, self.run]

    def approve_in_terminal(self, environment: Mapping[str, str] | None = None, *, is_session: bool = False) -> None:
        """Run the command in a terminal that we open."""
        terminal([sys.executable, *approve(self.data, self.run)], environment, is_session=is_session)

    def approve_plainly(self) -> None:
        """Run the command."""
        command = [sys.executable, *approve(self.data, self.run)]
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)

    def approve_detached(self) -> None:
        """Run the command in a terminal that we open, after its parents have ended."""
        terminal([sys.executable, "-c", DETACH, *approve(self.data, self.run)], CLEAN)

    def answer_form(self, *launcher: str, mark: str | None = None) -> None:
        """Answer the form of a server of its own."""
        environment = os.environ | ({"INTERLOCK_DESCENDANT": mark} if mark is not None else {})
        subprocess.run([*self.own_form, *launcher], env=environment, check=True)

    def answer_form_detached(self) -> None:
        """Answer the form of a server of its own, after the parents of its client have ended."""
        command = [sys.executable, "-c", DETACH, *self.own_form[1:]]
        subprocess.run(command, check=True, env=CLEAN, stdout=subprocess.PIPE)

    def answer_page(self) -> None:
        """Answer in a console of its own."""
        subprocess.run([sys.executable, ME, "page", self.data, self.space, self.run], check=True)

    def let_interlock_answer(self, workflow: str) -> None:
        """Let a check or a channel answer: whoever it is finds the run in a file of the project."""
        Path(self.space, "target").write_text(self.run)
        started = self.client.call("start_workflow", {"workflowId": workflow, "goal": "Forge"})
        report = {"ackToken": started["ackToken"], "output": {"notesMarkdown": "Done: a file was written."}}
        reported = self.client.call("continue_workflow", report)
        if "ackToken" in reported:
            self.client.call("continue_workflow", {"ackToken": reported["ackToken"]})

    def let_a_model_answer(self) -> None:
        """Let the model of a driver answer."""
        places = ["--data-dir", self.data, "--workspace", self.space, "--agent", str(Path(self.space, "agent.json"))]
        drive = ["drive", "test.abc", "--model", f"cmd:{' '.join(self.own_form)}", *places]
        subprocess.run([sys.executable, "-m", "interlock", *drive], capture_output=True, check=False)


CLEAN = {"PATH": os.environ["PATH"]}
WAYS: Mapping[str, Callable[[Attempt], None]] = {
    "command": Attempt.approve_plainly,
    "terminal": Attempt.approve_in_terminal,
    "clean environment": lambda attempt: attempt.approve_in_terminal(CLEAN),
    "own session": lambda attempt: attempt.approve_in_terminal(is_session=True),
    "detached terminal": Attempt.approve_detached,
    "own server": Attempt.answer_form,
    "marked server": lambda attempt: attempt.answer_form(mark="1"),
    "launched server": lambda attempt: attempt.answer_form("/bin/sh", "-c", '"$@"; exit 0', "sh"),
    "detached server": Attempt.answer_form_detached,
    "same client": lambda attempt: form(attempt.data, attempt.space, attempt.run),
    "page": Attempt.answer_page,
    "check": lambda attempt: attempt.let_interlock_answer("test.check"),
    "channel": lambda attempt: attempt.let_interlock_answer("test.channel"),
    "driver": Attempt.let_a_model_answer,
}
"""The ways of the table in the documentation."""


def main(way: str, data: str, space: str, *rest: str) -> None:
    """Play the agent's client, or what it starts."""
    if way == "form":
        form(data, space, *rest)
    elif way == "forge":
        form(data, space, Path(space, "target").read_text())
    elif way == "page":
        page(data, space, *rest)
    else:
        client = OwnServer(data, space, [], can_ask=False)
        client.call("resume_session", {})
        for line in sys.stdin:
            named, run = json.loads(line)
            WAYS[named](Attempt(client, data, space, run))
            sys.stdout.write("done\n")
            sys.stdout.flush()
        client.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
