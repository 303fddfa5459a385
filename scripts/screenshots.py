"""Takes the pictures of the console's pages in docs/console-pages.md, in both themes: `make screenshots`."""

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from playwright.sync_api import BrowserContext, Page, ViewportSize, sync_playwright  # noqa: E402 — below the path
from tests.support.approvals import asking  # noqa: E402 — below the path
from tests.support.browser import ARGUMENTS, THEMES, console_process, free_port, require_browser  # noqa: E402
from tests.support.chat_host import open_chat_page  # noqa: E402
from tests.support.console_data import Shown, fill  # noqa: E402
from tests.support.server import SHOWS_PAGES, Server, workspace_in  # noqa: E402

from interlock.service.clock import SystemClock  # noqa: E402

PICTURES = ROOT / "docs" / "console-pages"
SIZE = ViewportSize(width=900, height=620)
SCALE, QUALITY = 0.6, 33
"""Small pictures: all of them together have less than 600 kB."""


def main() -> int:
    """Write a picture of each page in each theme, and the page of the documents that shows them."""
    PICTURES.mkdir(exist_ok=True)
    for old in PICTURES.glob("*.jpg"):
        old.unlink()
    path = require_browser()
    with tempfile.TemporaryDirectory(prefix="interlock-") as made, sync_playwright() as playwright:
        shown, port = fill(Path(made), SystemClock()), free_port()
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        with console_process(shown.data_dir, shown.workspace, port) as link:
            context = browser.new_context(viewport=SIZE, device_scale_factor=SCALE)
            names = take_pictures(context, shown, link, f"http://127.0.0.1:{port}")
        names.append(take_chat_page(context, Path(made)))
        browser.close()
    sections = [f"## {name[:1].upper()}{name[1:]}\n\n{_images(name)}\n" for name in names]
    text = "# Pages of the console\n\n`make screenshots` takes these pictures of a made-up data directory.\n\n"
    (ROOT / "docs" / "console-pages.md").write_text(text + "\n".join(sections), encoding="utf-8")
    size = sum(one.stat().st_size for one in PICTURES.glob("*.jpg"))
    print(f"{len(names)} pages, {size // 1000} kB")
    return 0


def take_pictures(context: BrowserContext, shown: Shown, link: str, origin: str) -> list[str]:
    """Write the pictures, and return the names of the pages."""
    page = context.new_page()
    page.goto(link)
    page.get_by_role("heading", name="Now").wait_for()
    pages = dict(shown.pages)
    page.goto(f"{origin}/inbox")
    pages["question"] = str(page.get_by_role("link", name="Read and decide").first.get_attribute("href"))
    page.goto(f"{origin}{pages['run']}")
    pages["comparison"] = str(page.locator('a[href^="/compare?"]').first.get_attribute("href"))
    for name, address in pages.items():
        page.goto(f"{origin}{address}")
        _take(page, name)
    return list(pages)


def take_chat_page(context: BrowserContext, made: Path) -> str:
    """Write the pictures of the page in a chat, and return its name."""
    name, workspace = (
        "page in a chat",
        workspace_in(made / "chat", asking=asking(show=["notes.a"], assurance="claimed")),
    )
    with Server(made / "chat-data", workspace, declared=SHOWS_PAGES) as agent:
        waiting = agent.advance(agent.start("test.flow"), "Change one file, and test it.")
        page = context.new_page()
        open_chat_page(page, agent, dict(waiting.structure))
        _take(page, name)
    return name


def _take(page: Page, name: str) -> None:
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        page.screenshot(path=PICTURES / f"{_file(name)}-{theme}.jpg", type="jpeg", quality=QUALITY)


def _file(name: str) -> str:
    return name.replace(" ", "-")


def _images(name: str) -> str:
    return "\n".join(f"![{name}, {theme} theme](console-pages/{_file(name)}-{theme}.jpg)" for theme in THEMES)


if __name__ == "__main__":
    sys.exit(main())
