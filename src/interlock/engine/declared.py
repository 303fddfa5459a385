"""What a step sets must fit what the workflow declares, whatever the evidence brought."""

from interlock.define.declared import misfit
from interlock.define.parts import SetAction
from interlock.engine import reasons
from interlock.engine.findings import Finding
from interlock.plan.compiled import CompiledWorkflow


def unfit_set(workflow: CompiledWorkflow, step_title: str, action: SetAction, value: object) -> Finding | None:
    """Return why a value may not be set, or None where it may.

    A key that nobody declares takes anything: routines that a workflow unfolds set keys of their own.
    """
    declared = next((one for one in workflow.inputs if one.key == action.key), None)
    unfit = misfit(declared, value) if declared is not None else None
    if unfit is None:
        return None
    return reasons.unfit_key(step_title, action.key, action.source or action.key, unfit)
