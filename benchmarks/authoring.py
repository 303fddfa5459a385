"""What authors wait for: compiling one large workflow, and listing many files with nothing read before."""

import json
import os
import sys
import time
from pathlib import Path

from tests.support.load import Sent, Site

from benchmarks.table import Figure, at_most, ms
from benchmarks.wire import Wire, temporary_site
from interlock.define.document import WorkflowDocument
from interlock.define.front import parse_workflow
from interlock.kernel.canonical import Json
from interlock.plan.compile.compiler import Compiled, compile_workflow

FILES = 200
COLD_MS_MAX = 300.0
WARM_MS_MAX = 30.0
COMPILE_MS_MAX = 50.0
_STEPS = 60


def figures(*, is_quick: bool) -> list[Figure]:
    """Compile the largest document at hand after a first one, and list 200 files in fresh servers."""
    rounds = 3 if is_quick else 9
    name, value = _largest()
    document = parse_workflow(value)
    assert isinstance(document, WorkflowDocument), f"{name} can be read"
    compile_workflow(document)
    seconds = [_compiled(document) for _ in range(rounds)]
    found = [at_most(f"compile {name}", ms(seconds), COMPILE_MS_MAX, " ms")]
    with temporary_site() as site:
        for number in range(FILES):
            site.add_workflow(_document(f"bench.w{number}", 3 + number % 8))
        listed = [_listed(site) for _ in range(rounds)]
    what = f"list_workflows over {FILES} files"
    found.append(at_most(f"{what}, first in a server", ms(cold for cold, _ in listed), COLD_MS_MAX, " ms"))
    found.append(at_most(f"{what}, again", ms(warm for _, warm in listed), WARM_MS_MAX, " ms"))
    return found


def _compiled(document: WorkflowDocument) -> float:
    began = time.perf_counter()
    compiled = compile_workflow(document)
    took = time.perf_counter() - began
    assert isinstance(compiled, Compiled), "it compiles"
    return took


def _listed(site: Site) -> tuple[float, float]:
    with Wire(site.command(), extra=site.environment()) as wire:
        wire.hello()
        # The front answers before the server is imported: a tool's answer shows that it is.
        wire.call(Sent(tool="resume_session", arguments={"query": "anything"}))
        seconds: list[float] = []
        # The second list compiles the files that the first one left.
        for _ in range(3):
            began = time.perf_counter()
            wire.call(Sent(tool="list_workflows", arguments={}))
            seconds.append(time.perf_counter() - began)
    return seconds[0], seconds[-1]


def _largest() -> tuple[str, dict[str, Json]]:
    """Return the largest file of the directory that INTERLOCK_CORPUS names, else a document made here."""
    directory = os.environ.get("INTERLOCK_CORPUS")
    if directory is None:
        return f"a workflow of {_STEPS} steps with conditions", _document("bench.large", _STEPS)
    path = max(Path(directory).rglob("*.json"), key=lambda one: one.stat().st_size)
    print(f"largest: {path.name}", file=sys.stderr)
    return path.name, json.loads(path.read_bytes())


def _document(workflow_id: str, steps: int) -> dict[str, Json]:
    made: list[Json] = [
        {
            "id": f"s{number}",
            "title": f"Step {number}",
            "promptBlocks": {
                "goal": f"Do part {number}. " * 20,
                "procedure": ["First look. " * 10, "Then act. " * 10],
                "verify": ["It is done."],
            },
            "when": {"or": [{"var": "size", "equals": "large"}, {"var": "size", "in": ["medium", number]}]},
        }
        for number in range(steps)
    ]
    size: Json = {"key": "size", "description": "How large it is.", "type": "string", "required": True}
    return {"id": workflow_id, "name": workflow_id, "inputs": [size], "steps": made}
