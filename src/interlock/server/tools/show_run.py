"""The tool `show_run`, for the page in a chat."""

from interlock.server.tools.contract import READS, Call, Caller, Tool
from interlock.server.tools.page_arguments import PageArguments
from interlock.service.trust.run_page import RunPage, show_run


class ShowArguments(PageArguments):
    """Arguments of `show_run`."""

    def call(self, caller: Caller) -> Call:
        """See `Arguments.call`."""
        tokens = self.tokens()
        return Call(run=lambda ports: show_run(ports, tokens, caller.asking))


SHOW_RUN = Tool(
    name="show_run",
    title="Show a run",
    description="For the page of Interlock in a chat: the picture of a run, and the question that it waits for.",
    arguments=ShowArguments,
    output=RunPage,
    hints=READS,
    is_for_pages=True,
)
