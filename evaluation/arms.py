"""The arms: the tasks for the model, each with its workflow. The work needs no tools except Interlock's."""

from collections.abc import Mapping
from dataclasses import dataclass

from interlock.kernel.canonical import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A task for the model. Without a document, the workflow is a bundled one."""

    workflow_id: str
    goal: str
    document: Mapping[str, Json] | None = None


def _haiku(workflow_id: str, check: Mapping[str, Json]) -> dict[str, Json]:
    return {
        "id": workflow_id,
        "name": "Haiku",
        "description": "Writes a haiku and checks it.",
        "steps": [
            {"id": "write", "title": "Write it", "prompt": "Write a haiku about the subject of the goal."},
            {"id": "check", "title": "Check it", **check},
            {"id": "finish", "title": "Finish", "prompt": "Write the final haiku, improved if the check found faults."},
        ],
    }


_SEA = "A haiku about the sea"
_CHECK = "Count the syllables of each line. Say whether they are 5, 7 and 5."
_CONTRACT: Json = {"contractRef": "wr.contracts.review_verdict"}
_LINEAR = _haiku("eval.haiku", {"prompt": _CHECK})
_VERDICT = _haiku("eval.haiku_verdict", {"prompt": f"{_CHECK} Report a verdict.", "outputContract": _CONTRACT})

ARMS = {
    "linear": Arm(workflow_id="eval.haiku", goal=_SEA, document=_LINEAR),
    "verdict": Arm(workflow_id="eval.haiku_verdict", goal=_SEA, document=_VERDICT),
    "quick_task": Arm(
        workflow_id="wr.quick_task",
        goal="Correct the spelling of this sentence, in your notes: 'Their are two cats in teh garden.'",
    ),
}
