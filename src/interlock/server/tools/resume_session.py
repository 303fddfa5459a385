"""The tool `resume_session`."""

import re
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from interlock.kernel.blanks import Blank
from interlock.kernel.budgets import ECHO_BYTES_MAX, QUERY_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.kernel.errors import Correction
from interlock.kernel.ids import ID_BODY_PATTERN, LABEL_CHARS, LABEL_CHARS_ON_CLASH, RunId, SessionId
from interlock.kernel.text import one_line, utf8_bytes
from interlock.server.tools.contract import READS, Arguments, Call, Caller, Fault, Tool, too_large
from interlock.server.tools.workspace import workspace_faults, workspace_of
from interlock.service.tools.resume_session import ResumeAnswer, ResumeCommand, resume_session

_LABEL = re.compile(f"[0-9a-z]{{{LABEL_CHARS},{LABEL_CHARS_ON_CLASH}}}", re.IGNORECASE)


class ResumeArguments(Arguments):
    """Arguments of `resume_session`."""

    query: Annotated[
        str | None, Field(description="A few words of the goal, the notes or the workflow; all must occur.")
    ] = None
    workspace_path: Annotated[
        str | None, Field(description="Absolute path of the project; its runs come first. Default: the server's.")
    ] = None
    git_branch: Annotated[
        str | None,
        Field(description="The branch the run started on, or the first part of its name, at most 63 characters."),
    ] = None
    git_head_sha: Annotated[str | None, Field(description="The commit the run started on.")] = None
    session_id: Annotated[str | None, Field(description="Only this session.")] = None
    run_id: Annotated[str | None, Field(description="Only this run.")] = None

    def faults(self, caller: Caller) -> Iterator[Fault]:  # noqa: ARG002 — the faults do not depend on the caller
        """See `Arguments.faults`."""
        yield from workspace_faults(self, self.workspace_path)
        for name, prefix, value in (("sessionId", "sess", self.session_id), ("runId", "run", self.run_id)):
            if value is not None and re.fullmatch(f"{prefix}_{ID_BODY_PATTERN}", value) is None:
                others = {key: one for key, one in self.sent().items() if key != name}
                # A label is no id, but it finds its run.
                words: dict[str, Json] = {"query": value} if _LABEL.fullmatch(value) else {}
                yield Fault(
                    name,
                    f"Found {one_line(value, ECHO_BYTES_MAX)!r}, which is not a `{name}`.",
                    f"Copy `{name}` from an answer, or leave it out and send a few words as `query`.",
                    correction=Correction(understood=words | others),
                )
        size = utf8_bytes(self.query or "")
        if size > QUERY_BYTES_MAX:
            again = Correction(instead={"query": Blank(what="a few words")})
            yield too_large("query", size, QUERY_BYTES_MAX, fix="Send a few words.", correction=again)

    def call(self, caller: Caller) -> Call:
        """See `Arguments.call`."""
        command = ResumeCommand(
            query=self.query,
            workspace=workspace_of(self.workspace_path, caller),
            git_branch=self.git_branch,
            git_head_sha=self.git_head_sha,
            session=None if self.session_id is None else SessionId(self.session_id),
            run=None if self.run_id is None else RunId(self.run_id),
        )
        return Call(run=lambda ports: resume_session(ports.read, command))


RESUME_SESSION = Tool(
    name="resume_session",
    title="Find work to continue",
    description="To find a run when you have no token: in a new chat, after lost memory, or on another machine."
    " Never needed while you have a token. Returns up to five runs, the best match first. Send a run's nextCall"
    " unchanged: it shows the pending step and what was done. Search by a few words of the goal or the notes; without"
    " words, it returns the latest runs of this project. Changes nothing.",
    arguments=ResumeArguments,
    output=ResumeAnswer,
    hints=READS,
    is_always_loaded=True,
)
