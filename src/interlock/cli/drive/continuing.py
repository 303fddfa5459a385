"""The lines that say how a drive that stopped is continued: with commands that work as they are printed (DRIVE-18)."""

import argparse
import shlex
from collections.abc import Mapping

from interlock.cli.options import place_arguments, printed_command
from interlock.config.data_dir import absolute
from interlock.drive.run.result import DriveResult
from interlock.drive.run.waiting import waits_for
from interlock.kernel.canonical import Json
from interlock.kernel.errors import ErrorCode

_OF_PROFILE = ("constraints.max_tokens", "budget.max_cost")
"""Limits of a run that no option raises."""


def lines_to_continue(options: argparse.Namespace, result: DriveResult) -> list[str]:
    """Return the lines that follow the result of a drive; none if its run is over."""
    place = result.position
    if result.is_removed:
        return ["No run was left behind. Correct the model, then run the command again."]
    if place.is_complete or place.ended is not None:
        return []
    details: Mapping[str, Json] = {} if result.fault is None else result.fault.details
    command = _resuming(options, place.run, _turns(options, details))
    if details.get("serverCode") == ErrorCode.ATTEMPT_LIMIT_REACHED:
        line = (
            "No `--resume` continues this run. To redo the step on a new branch, use a client: call `resume_session`"
            f' with `runId: "{place.run}"`, send the `nextCall` of the run that it returns, then send the `nextCall` of'
            " that answer with the evidence."
        )
        return [line]
    limit = details.get("limit")
    if limit == "checkpoints":
        return [
            "No `--resume` continues this step. Report it in a client, which finds the run by `resume_session`.",
            f"To continue after that: {command}",
        ]
    if "calls" in details:
        return [
            f"To continue if the call took place: {command} --lost-calls happened",
            f"To continue if it did not take place: {command} --lost-calls not-happened",
        ]
    if limit in _OF_PROFILE:
        return [f"Raise `{limit}` in {options.agent}. To continue after that: {command}"]
    if waits_for(place) == "approval" and result.status == "person_needed":
        inbox = printed_command(options, "interlock inbox")
        return [f"To see the question: {inbox}", f"To continue after the answer: {command}"]
    return [f"To continue: {command}"]


def _turns(options: argparse.Namespace, details: Mapping[str, Json]) -> int | None:
    """Return the turns that the run may have: as many again as before if they are used up."""
    used, allowed = details.get("used"), details.get("allowed")
    if details.get("limit") == "constraints.max_turns" and isinstance(used, int) and isinstance(allowed, int):
        return used + allowed
    return options.max_turns


def _resuming(options: argparse.Namespace, run: str, max_turns: int | None) -> str:
    """Return the command that continues a run with the same agent, model and directories."""
    places = place_arguments(options)
    stated = {
        "--agent": options.agent,
        "--model": options.model,
        "--max-turns": max_turns,
        "--workspace": absolute(places.workspace) if places.workspace else None,
        "--workflows-dir": absolute(places.workflows_dir) if places.workflows_dir else None,
    }
    named = [f"{name} {shlex.quote(str(value))}" for name, value in stated.items() if value is not None]
    asked = ["--ask"] if options.ask else []
    return printed_command(options, " ".join([f"interlock drive --resume {run}", *named, *asked]))
