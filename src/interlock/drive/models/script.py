"""A model that answers from a script: for tests, demonstrations and steps that need no model at all."""

from typing import cast

from interlock.drive.conversation.messages import members_of
from interlock.drive.faults import Fault, TurnError
from interlock.drive.models.answers import parse_answer
from interlock.drive.models.protocol import InferenceRequest, InferenceResponse


class ScriptModel:
    """Answers each turn of a step with the next answer of that step, and repeats the last one.

    The script is `{"steps": {STEP: [answer, …]}, "default": [answer, …]}`, or `{"turns": [answer, …]}` with an
    answer for each turn of the run. What it answers depends on the place in the run alone, so a continued run gets
    the same answers.
    """

    def __init__(self, script: object, name: str = "script") -> None:
        self._name = name
        self._script = script

    @property
    def name(self) -> str:
        """See `Model.name`."""
        return self._name

    async def infer(self, request: InferenceRequest) -> InferenceResponse:
        """See `Model.infer`."""
        answers, number = self._answers(request)
        if not answers:
            message = f"The script has no answer for the step {request.place.step_id!r}."
            raise TurnError(Fault(code="LLM_ERROR", message=message))
        return parse_answer(answers[min(number, len(answers)) - 1], self._name)

    def _answers(self, request: InferenceRequest) -> tuple[list[object], int]:
        place = request.place
        script = members_of(self._script)
        turns = script.get("turns")
        if isinstance(turns, list):
            return cast("list[object]", turns), place.turn
        found = members_of(script.get("steps")).get(place.step_id, script.get("default", []))
        return (cast("list[object]", found) if isinstance(found, list) else [found]), place.turn_of_step
