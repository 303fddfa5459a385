"""A host that shows pages in a chat: one document with a frame, in Chromium, and a server that it calls."""

from pathlib import Path
from typing import Any

from playwright.sync_api import Frame, Page, expect
from tests.support.server import Served, checked

from interlock.server.apps.extension import PAGE_LINK

HOST = Path(__file__).with_name("chat_host.html")
POLICY = (
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
    "script-src 'unsafe-inline'; style-src 'unsafe-inline'\">"
)
"""What a host allows a page that names no servers."""


def open_chat_page(host: Page, served: Served, answer: dict[str, Any]) -> Frame:
    """Show the page as a host does after a call of a tool: the page in a frame, then the result of the call."""

    def call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        found = checked(tool, served.soon(tool, arguments).result(60))
        return {"structuredContent": dict(found.structure), "isError": found.is_error, "content": []}

    (page,) = served.ask("read_resource", PAGE_LINK).contents
    host.expose_function("callTool", call)
    host.goto(HOST.as_uri())
    text = page.text.replace("<head>", "<head>" + POLICY)
    host.evaluate("([text, result]) => openPage(text, result)", [text, {"structuredContent": answer}])
    expect(host.frame_locator("iframe").get_by_role("status")).to_contain_text("The run waits")
    return host.frames[1]
