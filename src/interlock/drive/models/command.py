"""A model that is a command: it reads the request and prints the answer, both as JSON; one process for each."""

import json
import os
from collections.abc import Sequence
from tempfile import TemporaryFile

from interlock.drive import child
from interlock.drive.faults import MODEL_UNAVAILABLE, Fault, TurnError
from interlock.drive.models.answers import parse_answer
from interlock.drive.models.protocol import InferenceRequest, InferenceResponse
from interlock.kernel.budgets import ECHO_BYTES_MAX
from interlock.kernel.budgets.drive import MODEL_ANSWER_BYTES_MAX
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
        answered, said = bytearray(), b""

        def keep(chunk: bytes) -> None:
            answered.extend(chunk)
            if len(answered) > MODEL_ANSWER_BYTES_MAX:
                message = f"The model's answer has more than {MODEL_ANSWER_BYTES_MAX} bytes."
                raise TurnError(Fault(code="LLM_ERROR", message=message))

        def keep_beginning(chunk: bytes) -> None:
            nonlocal said
            said = (said + chunk)[: 4 * ECHO_BYTES_MAX]

        try:
            # A file and no pipe: a command may end before it has read all of it.
            with TemporaryFile() as request_file:
                request_file.write(sent)
                request_file.seek(0)
                command = child.Command(argv=self._argv, environment=os.environ, message=request_file)
                code = await child.run_command(command, keep, keep_beginning)
        except OSError as error:
            message = f"The command of the model cannot be started: {error.strerror}."
            raise TurnError(Fault(code="LLM_ERROR", message=message, details=MODEL_UNAVAILABLE)) from error
        if code != 0:
            shown = one_line(said.decode("utf-8", "replace"), ECHO_BYTES_MAX)
            message = f"The command of the model ended with {code}: {shown}"
            raise TurnError(Fault(code="LLM_ERROR", message=message, recoverable=True))
        try:
            answer: object = json.loads(answered)
        except (ValueError, RecursionError) as error:
            message = "The command of the model printed no JSON."
            raise TurnError(Fault(code="LLM_ERROR", message=message, recoverable=True)) from error
        return parse_answer(answer, self.name)
