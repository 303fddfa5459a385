"""What is wrong with the runs of an agent, judged by the log alone: what was done twice, elsewhere, or lost."""

import itertools
from collections.abc import Iterator, Sequence

from tests.agents.agent import Task, notes_on

from interlock.record.payloads import NotesPayload
from interlock.service.run.context import RunContext, load_run_context
from interlock.service.tools.pending_step import render_pending_step
from interlock.testing.harness import Harness
from interlock.views.session import Node, Run, Session


def faults_in_log(harness: Harness, tasks: Sequence[Task]) -> list[str]:
    """Return what is wrong with the runs of these tasks, of which each was to be done once, to the end.

    Wrong are a run too many or too few, a run that is not complete, a step that was done twice or on a branch, and a
    step whose evidence is missing, or is another run's or another step's.
    """
    scenes = list(_scenes(harness))
    counts = {task.word: sum(_goal(scene) == task.goal for scene in scenes) for task in tasks}
    wrong = [f"{count} runs for the {word}" for word, count in counts.items() if count != 1]
    for scene in scenes:
        label = scene.session.label(scene.run.run)
        task = next((one for one in tasks if one.goal == _goal(scene)), None)
        faults = _faults(scene, task) if task is not None else iter(["is nobody's"])
        wrong += [f"run {label} {fault}" for fault in faults]
    return wrong


def _scenes(harness: Harness) -> Iterator[RunContext]:
    reader, plans = harness.ports.read.reader, harness.ports.read.plans
    for name in reader.sessions():
        session = reader.load(name)
        assert session is not None, "a listed session is there"
        yield from (load_run_context(session, run, plans) for run in session.runs.values())


def _goal(scene: RunContext) -> object:
    assert scene.run.root is not None, "a run has a root"
    return scene.session.context(scene.run.root).get("goal")


def _faults(scene: RunContext, task: Task) -> Iterator[str]:
    session, run = scene.session, scene.run
    path = list(_path(session, run))
    if render_pending_step(scene, path[-1]) is not None:
        yield "is not complete"
    nodes = [node for node in session.nodes.values() if node.run == run.run]
    if any(node.forks for node in nodes):
        yield "was forked"
    if len(path) != sum(node.kind != "checkpoint" for node in nodes):
        yield "has nodes off its path"
    sent = list[str]()
    for node, child in itertools.pairwise(path):
        sent += _notes(child)
        if child.kind == "step":
            step = render_pending_step(scene, node)
            assert step is not None, "a step was advanced"
            wanted = notes_on(task, step.title)
            if step.needs_notes and wanted not in sent:
                yield f"lost the evidence of {step.title}"
            yield from (f"{step.title} has the notes {notes!r}" for notes in sent if notes != wanted)
            sent = []


def _path(session: Session, run: Run) -> Iterator[Node]:
    """Yield the nodes from where a run began to its tip."""
    assert run.tip is not None, "a run has a tip"
    path = [session.nodes[run.tip]]
    while (parent := path[-1].parent) is not None:
        path.append(session.nodes[parent])
    yield from reversed(path)


def _notes(node: Node) -> list[str]:
    texts = [output.payload.notes_markdown for output in node.outputs if isinstance(output.payload, NotesPayload)]
    return [text for text in texts if text.strip()]
