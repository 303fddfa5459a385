"""From a command to its use case: one line for each tool."""

import logging
from typing import assert_never

from interlock.engine.answer import Answer
from interlock.kernel.errors import Refusal
from interlock.server.arguments import Command
from interlock.service.checkpoint_workflow import CheckpointCommand, checkpoint_workflow
from interlock.service.continue_workflow import ContinueCommand, continue_workflow
from interlock.service.failures import EXPECTED_ERRORS, refusal_of
from interlock.service.inspect_workflow import InspectCommand, inspect_workflow
from interlock.service.list_workflows import ListCommand, list_workflows
from interlock.service.person import NeedsPerson
from interlock.service.ports import Ports
from interlock.service.resume_session import ResumeCommand, resume_session
from interlock.service.start_workflow import StartCommand, start_workflow

_log = logging.getLogger(__name__)


def run_command(ports: Ports, command: Command) -> Answer | Refusal | NeedsPerson:
    """Run one command; what can be expected to fail is a refusal."""
    try:
        return _run(ports, command)
    except EXPECTED_ERRORS as error:
        _log.warning("%s", error)
        return refusal_of(error)


def _run(ports: Ports, command: Command) -> Answer | Refusal | NeedsPerson:
    match command:
        case ListCommand():
            return list_workflows(ports.catalog, command)
        case InspectCommand():
            return inspect_workflow(ports.catalog, command)
        case StartCommand():
            return start_workflow(ports, command)
        case ContinueCommand():
            return continue_workflow(ports, command)
        case CheckpointCommand():
            return checkpoint_workflow(ports, command)
        case ResumeCommand():
            return resume_session(ports.read, command)
        case _:
            assert_never(command)
