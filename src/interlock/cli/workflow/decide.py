"""`interlock workflow decide`: what a step would set and decide with a context. Needs no session and writes nothing."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from interlock.cli.options import add_json
from interlock.cli.screen import StopError, say, say_json, say_table
from interlock.cli.workflow.places import (
    add_place_options,
    chosen_places,
    chosen_workflow,
    given_path,
    read_given,
    shown,
)
from interlock.decide.condition import describe_condition
from interlock.decide.evaluation_pass import PassAborted, PassResult
from interlock.decide.lowering import trigger_id
from interlock.define.diagnostics import suggest_name
from interlock.engine.decide_step import DecidedStep, decide_step
from interlock.engine.walk.trace import DecisionPoint, DecisionRecord
from interlock.kernel.budgets import (
    ARGUMENT_VALUES_MAX,
    ARTIFACT_BYTES_MAX,
    ARTIFACT_DEPTH_MAX,
    CONTEXT_BYTES_MAX,
    ECHO_BYTES_MAX,
    NUMBER_DIGITS_MAX,
)
from interlock.kernel.canonical import Json, NotCanonicalError, canonical_bytes
from interlock.kernel.json_bounds import Excess, JsonBounds, find_excess
from interlock.kernel.text import one_line
from interlock.plan.compiled import CompiledWorkflow
from interlock.record.snapshot import Running

_BOUNDS = JsonBounds(values_max=ARGUMENT_VALUES_MAX, depth_max=ARTIFACT_DEPTH_MAX)
_EXCESS: dict[Excess, str] = {
    "values": f"has more than {ARGUMENT_VALUES_MAX} values",
    "depth": f"is nested too deeply: at most {ARTIFACT_DEPTH_MAX} levels",
    "digits": f"has a number of more than {NUMBER_DIGITS_MAX} digits",
}
_PASS_HEADS = ("AT", "NODE", "VALUE", "TRIGGER", "OUTCOME", "EFFECT")
_DECISION_HEADS = ("AT", "DECISION", "RESULT", "TAKEN")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_place_options(parser)
    parser.add_argument("workflow", metavar="ID|FILE", help="the id of a workflow, or the path of a workflow file")
    parser.add_argument("--at", metavar="STEP", required=True, help="the id of the step that is done")
    parser.add_argument("--context", metavar="FILE", required=True, help="a JSON object: the context of the run")
    parser.add_argument(
        "--artifact",
        metavar="FILE",
        dest="artifacts",
        action="append",
        default=[],
        help="a JSON object: an artifact of the step's report; can be repeated",
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Print the decisions of a step: 0, or 1 if a report of the step would be refused.

    Raises:
        StopError: There is no such workflow or step, it has faults, or a file is no JSON object within its limits.
    """
    context = _read_object(options.context, CONTEXT_BYTES_MAX)
    artifacts = tuple(_read_object(name, ARTIFACT_BYTES_MAX) for name in options.artifacts)
    _, pinned = chosen_workflow(chosen_places(options), options.workflow)
    workflow, step_id = pinned.workflow, str(options.at)
    if step_id not in workflow.steps:
        raise _unknown_step(workflow, step_id)
    decided = decide_step(workflow, step_id, context, artifacts)
    if options.as_json:
        say_json(_json(workflow, step_id, decided))
    else:
        _say(workflow, step_id, decided)
    return 1 if decided.findings else 0


def _unknown_step(workflow: CompiledWorkflow, step_id: str) -> StopError:
    guess = suggest_name(step_id, workflow.steps)
    return StopError(
        f"{workflow.workflow_id} has no step {one_line(step_id, ECHO_BYTES_MAX)!r}.",
        (f"Did you mean {guess}? " if guess else "") + f"Its steps are {', '.join(workflow.steps)}.",
        exit_code=2,
    )


def _read_object(name: str, bytes_max: int) -> dict[str, Json]:
    """Read a file that holds one JSON object.

    Raises:
        StopError: It cannot be read, is too large, or holds something else.
    """
    path = given_path(name)
    data = read_given(path, bytes_max)
    if len(data) > bytes_max:
        raise _unusable(path, f"has more than {bytes_max} bytes", "Use a smaller file.")
    excess = find_excess(data, _BOUNDS)
    if excess is not None:
        raise _unusable(path, _EXCESS[excess], "Use a smaller value.")
    try:
        value = cast("object", json.loads(data))
        if not isinstance(value, dict):
            raise _unusable(path, "is not a JSON object", 'Write one, for example {"size": "small"}.')
        canonical_bytes(cast("Json", value))
    except NotCanonicalError as error:
        raise _unusable(path, f"has {error.found} at {error.path}", "Write the value as text.") from error
    except ValueError as error:
        raise _unusable(path, f"is not valid JSON: {error}", "Correct the file.") from error
    return cast("dict[str, Json]", value)


def _unusable(path: Path, what: str, fix: str) -> StopError:
    return StopError(f"{shown(path)} {what}.", fix, exit_code=2)


def _say(workflow: CompiledWorkflow, step_id: str, decided: DecidedStep) -> None:
    rows = [] if decided.evaluated is None else list(_pass_rows(step_id, decided.evaluated))
    for one in decided.conditions:
        rows += _pass_rows(_place(one.point), one.evaluated)
    if rows:
        say_table(_PASS_HEADS, rows, ids=("AT",))
        say("")
    if decided.decided:
        say_table(_DECISION_HEADS, (_decision_row(workflow, one) for one in decided.decided), ids=("AT",))
        say("")
    for finding in decided.findings:
        say(f"Refused at {_pointer_words(finding.pointer.to_json())}: {finding.message}")
    if isinstance(decided.state, Running):
        say(f"Next: {decided.state.pending.step.step_id}")
    elif decided.state is not None:
        say("Next: the end of the run")


def _pass_rows(at: str, done: PassResult | PassAborted) -> Iterator[tuple[str, ...]]:
    """Yield a row for each node of a graph, in the order of evaluation; of an aborted pass, what it read."""
    if isinstance(done, PassAborted):
        yield from ((at, path, json.dumps(value), "-", "-", "-") for path, value in done.read.items())
        yield at, done.node, f"failed: {done.found}", "-", "-", "-"
        yield from ((at, node, "-", "-", outcome.kind, "-") for node, outcome in done.outcomes.items())
        return
    body = done.to_json()
    values, triggers = (cast("dict[str, Json]", body[part]) for part in ("values", "triggers"))
    yield from ((at, node, _value_words(value), "-", "-", "-") for node, value in values.items())
    yield from ((at, node, "-", _trigger_words(verdict), "-", "-") for node, verdict in triggers.items())
    yield from ((at, node, "-", "-", one.kind, _effect_words(node, done)) for node, one in done.outcomes.items())


def _effect_words(action: str, done: PassResult) -> str:
    """Return what an action sends, with its kind and fields, and what it sets."""
    sent = [f"{one.sends} {json.dumps(dict(one.fields))}" for one in done.intents if one.action == action]
    effects = [f"{one.key} = {json.dumps(one.value)}" for one in done.effects if one.action == action]
    return "; ".join([*(f"send {one}" for one in sent), *effects]) or "-"


def _value_words(value: Json) -> str:
    body = cast("dict[str, Json]", value)
    if "value" in body:
        return json.dumps(body["value"])
    return "not set" if "absent" in body else "undecided"


def _trigger_words(verdict: Json) -> str:
    return verdict.replace("_", " ") if isinstance(verdict, str) else "undecided"


def _decision_row(workflow: CompiledWorkflow, one: DecisionRecord) -> tuple[str, ...]:
    described = (
        describe_condition(workflow.graphs.conditions[one.condition_id]) if one.condition_id is not None else "passes"
    )
    result = "undecided" if one.verdict is None else "holds" if one.verdict else "does not hold"
    return _place(one.point), described, result, (one.took or "-").replace("_", " ")


def _place(point: DecisionPoint) -> str:
    passes = "".join(f", pass {frame.iteration + 1} of {frame.loop_id}" for frame in point.frames)
    return point.node_id + passes


def _pointer_words(pointer: dict[str, Json]) -> str:
    return " ".join(str(value) for value in pointer.values())


def _json(workflow: CompiledWorkflow, step_id: str, decided: DecidedStep) -> dict[str, Json]:
    state, evaluated = decided.state, decided.evaluated
    conditions: list[Json] = [
        {
            "at": one.point.node_id,
            "passes": [frame.to_json() for frame in one.point.frames],
            "conditionId": one.condition_id,
            "trigger": trigger_id(one.condition_id),
            "pass": _pass_json(one.evaluated),
        }
        for one in decided.conditions
    ]
    decisions: list[Json] = [
        {
            "at": one.point.node_id,
            "passes": [frame.to_json() for frame in one.point.frames],
            "conditionId": one.condition_id,
            "read": dict(one.read),
            "verdict": one.verdict,
            "took": one.took,
        }
        for one in decided.decided
    ]
    return {
        "workflowId": workflow.workflow_id,
        "step": step_id,
        "pass": None if evaluated is None else _pass_json(evaluated),
        "conditions": conditions,
        "decisions": decisions,
        "refusedFor": [finding.blocker().to_json() for finding in decided.findings],
        "next": state.pending.step.step_id if isinstance(state, Running) else None,
        "isComplete": state is not None and not isinstance(state, Running),
    }


def _pass_json(done: PassResult | PassAborted) -> dict[str, Json]:
    if isinstance(done, PassResult):
        return {"isAborted": False, "read": dict(done.read), **done.to_json()}
    outcomes: dict[str, Json] = {node: outcome.to_json() for node, outcome in done.outcomes.items()}
    return {
        "isAborted": True,
        "read": dict(done.read),
        "failed": {"node": done.node, "name": done.name, "found": done.found, "wanted": done.expected},
        "outcomes": outcomes,
    }
