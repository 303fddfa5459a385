"""The tools, one module each, and the instructions that a client receives with them."""

from functools import cache

from interlock.server.tools.checkpoint_workflow import CHECKPOINT_WORKFLOW
from interlock.server.tools.continue_workflow import CONTINUE_WORKFLOW
from interlock.server.tools.contract import Tool
from interlock.server.tools.inspect_workflow import INSPECT_WORKFLOW
from interlock.server.tools.list_workflows import LIST_WORKFLOWS
from interlock.server.tools.resume_session import RESUME_SESSION
from interlock.server.tools.start_workflow import START_WORKFLOW

TOOLS: tuple[Tool, ...] = (
    LIST_WORKFLOWS,
    INSPECT_WORKFLOW,
    START_WORKFLOW,
    CONTINUE_WORKFLOW,
    CHECKPOINT_WORKFLOW,
    RESUME_SESSION,
)

INSTRUCTIONS = (
    "Interlock runs workflows step by step and records each one, so that work survives a crash, a new chat or a change"
    " of agent. When the user wants a workflow (a bug investigation, a review, a coding task, or one of the project's"
    " own): list_workflows, then start_workflow once. From then on, continue_workflow. Each answer gives one step:"
    " perform it, then report it with continue_workflow: send the answer's nextCall with the step's result. Tokens are"
    " opaque: copy them whole, from the last answer of the same run. Several runs may be open in one chat: each answer"
    " names its run first, and `run` is its label. If an answer was lost, repeat the same call, or send the stateToken"
    " alone. If you have no token, as in a new chat, find the run with resume_session. If an answer is"
    " blocked, do what its blockers say, with the tokens in it. Resources: `interlock://sessions/{sessionId}` shows"
    " what was done in a session, `interlock://workflows` what can be started."
)


@cache
def page_tools() -> tuple[Tool, ...]:
    """Return the tools of the page in a chat: listed for hosts that show one, and kept from models by them (CHAT-1).

    Most clients show no page, so what these tools need is imported when one of them is asked for.
    """
    from interlock.server.tools.answer_question import ANSWER_QUESTION  # noqa: PLC0415 — see above
    from interlock.server.tools.show_run import SHOW_RUN  # noqa: PLC0415 — see above

    return SHOW_RUN, ANSWER_QUESTION


def tool_named(name: str) -> Tool | None:
    """Return the tool with this name, or None."""
    found = next((tool for tool in TOOLS if tool.name == name), None)
    return found or next((tool for tool in page_tools() if tool.name == name), None)
