"""What a forgetful agent brought about, judged by the log alone: what was done twice, elsewhere, or lost."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from interlock.record.payloads import NotesPayload
from interlock.service.handed_out import step_of
from interlock.service.words import Scene, scene_of
from interlock.testing.forgetful import Errand, notes_on
from interlock.testing.harness import Harness
from interlock.views.session import Node, Run, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """One thing that should not be in the log: which run, and what."""

    label: str
    found: str


def wrong_effects(harness: Harness, errands: Sequence[Errand]) -> list[Wrong]:
    """Return what is wrong with the runs of these errands, of which each was to be done once, to the end.

    Wrong are a run too many or too few, a run that is not complete, a step that was done twice or on a branch, and a
    step whose evidence is missing, or is another run's or another step's.
    """
    scenes = list(_scenes(harness))
    wrong = [
        Wrong(label="", found=f"{count} runs for the {errand.word}")
        for errand in errands
        if (count := sum(_goal(scene) == errand.goal for scene in scenes)) != 1
    ]
    for scene in scenes:
        label = scene.session.label(scene.run.run)
        errand = next((one for one in errands if one.goal == _goal(scene)), None)
        faults = _faults(scene, errand) if errand is not None else iter(["is nobody's"])
        wrong += [Wrong(label=label, found=found) for found in faults]
    return wrong


def _scenes(harness: Harness) -> Iterator[Scene]:
    reader, plans = harness.ports.read.reader, harness.ports.read.plans
    for name in reader.sessions():
        session = reader.load(name)
        assert session is not None, "a listed session is there"
        yield from (scene_of(session, run, plans) for run in session.runs.values())


def _goal(scene: Scene) -> object:
    assert scene.run.root is not None, "a run has a root"
    return scene.session.context(scene.run.root).get("goal")


def _faults(scene: Scene, errand: Errand) -> Iterator[str]:
    session, run = scene.session, scene.run
    way = list(_way(session, run))
    if step_of(scene, way[-1]) is not None:
        yield "is not complete"
    nodes = [node for node in session.nodes.values() if node.run == run.run]
    if any(node.forks for node in nodes):
        yield "was forked"
    if len(way) != sum(node.kind != "checkpoint" for node in nodes):
        yield "has nodes off the way"
    brought = list[str]()
    for node, child in itertools.pairwise(way):
        brought += _notes(child)
        if child.kind == "step":
            step = step_of(scene, node)
            assert step is not None, "what was advanced was a step"
            wanted = notes_on(errand, step.title)
            if step.needs_notes and wanted not in brought:
                yield f"lost the evidence of {step.title}"
            yield from (f"{step.title} bears {notes!r}" for notes in brought if notes != wanted)
            brought = []


def _way(session: Session, run: Run) -> Iterator[Node]:
    """Yield the nodes from where a run began to where it stands."""
    assert run.tip is not None, "a run has a tip"
    way = [session.nodes[run.tip]]
    while (parent := way[-1].parent) is not None:
        way.append(session.nodes[parent])
    yield from reversed(way)


def _notes(node: Node) -> list[str]:
    texts = [output.payload.notes_markdown for output in node.outputs if isinstance(output.payload, NotesPayload)]
    return [text for text in texts if text.strip()]
