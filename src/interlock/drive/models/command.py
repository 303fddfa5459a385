"""A model that is a command: it reads the request and prints the answer, both as JSON; one process for each."""

import json
import os
import subprocess
from collections.abc import Sequence
from tempfile import TemporaryFile

import anyio

from interlock.drive.faults import Fault, TurnError
from interlock.drive.models.answers import parse_answer
from interlock.drive.models.protocol import InferenceRequest, InferenceResponse
from interlock.kernel.budgets import ECHO_BYTES_MAX
from interlock.kernel.budgets.drive import MODEL_ANSWER_BYTES_MAX
from interlock.kernel.descent import DESCENDANT
from interlock.kernel.text import one_line


class CommandModel:
    """Runs a command for each request."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._argv = list(argv)

    @property
    def name(self) -> str:
        """See `Model.name`."""
        return f"cmd:{self._argv[0]}"

    async def infer(self, request: InferenceRequest) -> InferenceResponse:
        """See `Model.infer`. A cancelled request ends the command."""
        sent = json.dumps(request.to_json(), ensure_ascii=True).encode("ascii")
        try:
            # A file and no pipe: a command may end before it has read all of it.
            with TemporaryFile() as request_file:
                request_file.write(sent)
                request_file.seek(0)
                done = await anyio.run_process(
                    self._argv,
                    stdin=request_file,
                    check=False,
                    stderr=subprocess.PIPE,
                    env={**os.environ, DESCENDANT: "1"},
                )
        except OSError as error:
            message = f"The command of the model cannot be started: {error.strerror}."
            raise TurnError(Fault(code="LLM_ERROR", message=message)) from error
        if done.returncode != 0:
            said = one_line(done.stderr.decode("utf-8", "replace"), ECHO_BYTES_MAX)
            message = f"The command of the model ended with {done.returncode}: {said}"
            raise TurnError(Fault(code="LLM_ERROR", message=message, recoverable=True))
        if len(done.stdout) > MODEL_ANSWER_BYTES_MAX:
            message = f"The model's answer has {len(done.stdout)} bytes; {MODEL_ANSWER_BYTES_MAX} are allowed."
            raise TurnError(Fault(code="LLM_ERROR", message=message))
        try:
            answer: object = json.loads(done.stdout)
        except (ValueError, RecursionError) as error:
            message = "The command of the model printed no JSON."
            raise TurnError(Fault(code="LLM_ERROR", message=message, recoverable=True)) from error
        return parse_answer(answer, self.name)
