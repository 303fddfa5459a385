"""A data directory in which every page of the console has something to show."""

from dataclasses import dataclass, replace
from pathlib import Path

from tests.support.approvals import ASK
from tests.support.history import damage, redone
from tests.support.outside import HeldOutbox, into_file
from tests.support.server import workspace_in

from interlock.config.checks import PROJECT_CHECKS
from interlock.service.clock import Clock
from interlock.testing.harness import Harness, linear_workflow

EMIT = {"kind": "team.notify", "fields": {"text": {"value": "Built"}}}
SHIP = linear_workflow(
    "team.ship",
    {"id": "plan", "title": "Plan the change", "prompt": "Write the plan."},
    {**ASK, "show": ["notes.plan", "goal"]},
    {"id": "build", "title": "Build it", "prompt": "Build what was agreed.", "emit": [EMIT]},
    {"id": "check", "title": "Check it", "prompt": "Check it.", "requireConfirmation": True},
    name="Ship a change",
    description="Plans a change, asks, builds and checks it.",
)
FIX = linear_workflow(
    "team.fix", "reproduce", "repair", "verify", name="Fix a defect", description="Finds and repairs."
)
FAULTY = linear_workflow("team.faulty", {"id": "a", "titel": "A", "prompt": "Do a."})
NOTES = """## Result

Changed `cart.py`:

- one test added
- **all** tests pass

| case | result |
|---|---|
| empty | ok |
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The directories, and the addresses of pages with something to show."""

    data_dir: Path
    workspace: Path
    pages: dict[str, str]


def fill(root: Path, clock: Clock | None = None) -> Shown:
    """Fill a data directory: runs that wait, forked, complete and damaged, and faulty files."""
    workspace = workspace_in(root, ship=SHIP, fix=FIX, faulty=FAULTY)
    (workspace / PROJECT_CHECKS).write_text('[checks.tests]\ncommand = ["/usr/bin/make", "test"]\n')
    served = Harness.on_disk(root / "data", SHIP, FIX, clock=clock)
    outbox = HeldOutbox(channels=(into_file(root / "out.jsonl"),))
    harness = replace(served, ports=replace(served.ports, outbox=outbox))
    fixed = harness.start("team.fix", goal="Repair the discount of an empty cart")
    second = harness.advance(fixed, NOTES)
    harness.advance(harness.advance(second, "Repaired it by counting items first."), "Verified with the whole suite.")
    redone(harness, second, "Repaired it otherwise: the discount is computed last.")
    asked = harness.start("team.ship", goal="Ship the new checkout page")
    harness.advance(asked, NOTES)
    broken = harness.start("team.fix", goal="A session that is damaged")
    harness.advance(harness.advance(broken, NOTES), "Repaired.")
    damage(root / "data", harness.session_of(broken))
    here, waiting, damaged = (harness.session_of(one) for one in (fixed, asked, broken))
    node = harness.reference_of(second).node
    run = f"/sessions/{here}/runs/{harness.reference_of(fixed).run}"
    pages = {
        "now": "/",
        "nothing found": "/?q=zebra",
        "inbox": "/inbox",
        "run": f"/sessions/{here}",
        "waiting run": f"/sessions/{waiting}",
        "damaged run": f"/sessions/{damaged}",
        "node": f"/sessions/{here}/nodes/{node}",
        "proof": f"/sessions/{here}/prove",
        "failed proof": f"/sessions/{damaged}/prove",
        "workflows": "/workflows",
        "workflow": "/workflows/team.ship",
        "edit": "/workflows/team.ship/edit",
        "built-in source": "/workflows/wr.quick_task/edit",
        "compare": "/compare",
        "contracts": "/contracts",
        "settings": "/settings?collection=dry-run",
        "replay": f"{run}/replay?at=1",
        "turns": f"{run}/turns",
        "not found": "/nothing",
    }
    return Shown(data_dir=root / "data", workspace=workspace, pages=pages)
