"""Hostile texts in every field that a page shows: they are shown, and nothing of them acts."""

import re
from collections import Counter
from html.parser import HTMLParser

import pytest
from tests.support.approvals import ASK
from tests.support.console import Browser, entered
from tests.support.flow import declared
from tests.support.history import HOSTILE, redone
from tests.support.hostile import HOSTILE_TEXTS, WRITTEN_TEXTS, hostile_runs
from tests.support.notes import CONSTRUCTS, text_of

from interlock.console.rendering.markdown import notes_html
from interlock.console.rendering.static_files import address_of
from interlock.kernel.text import printable
from interlock.testing.harness import Harness, linear_workflow

ALLOWED = {
    *("html", "head", "meta", "title", "link", "script", "body", "header", "nav", "main", "footer", "section", "div"),
    *("p", "a", "strong", "em", "del", "code", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "dl", "dt"),
    *("dd", "bdi", "span", "time", "form", "label", "input", "fieldset", "legend", "button", "details", "summary"),
    *("article", "blockquote", "table", "thead", "tbody", "tr", "th", "td", "figure", "br", "hr"),
    *("svg", "rect", "path", "text", "textarea", "select", "option"),
}
"""The elements that templates and renderers write. A hostile text would have to add another one, or an attribute."""
SCHEMES = re.compile(r"(?:#main$|/(?!/)|\?|$|https?://)")


class Elements(HTMLParser):
    """Collects the elements of a page with their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def faults(page: str, *, is_whole: bool = True) -> list[str]:
    """Return what could act on a page besides its own two files."""
    parser = Elements()
    parser.feed(page)
    found = [tag for tag, _ in parser.found if tag not in ALLOWED]
    for tag, attributes in parser.found:
        found += [name for name in attributes if name.startswith("on") or name in ("style", "srcdoc", "formaction")]
        found += [f"{tag} {name}" for name in ("src", "href", "action") if not is_own(tag, attributes.get(name, ""))]
    files = [attributes.get("src") for tag, attributes in parser.found if tag == "script"]
    return found if not is_whole or files == [address_of("console.js")] else [*found, f"scripts {files}"]


def is_own(tag: str, address: str | None) -> bool:
    """Say whether an address is one of ours; a link of notes may lead to a site, and does so only if followed."""
    return (SCHEMES.match(address or "") is not None and (tag == "a" or not (address or "").startswith("http"))) or (
        tag,
        address,
    ) == ("link", "data:,")


@pytest.mark.inv("CON-5")
@pytest.mark.parametrize("text", HOSTILE_TEXTS, ids=lambda text: ascii(text)[:50])
def test_nothing_of_a_text_acts_in_notes(text: str) -> None:
    html = notes_html(text)
    assert faults(html, is_whole=False) == []
    assert "<img" not in html
    assert not re.search(r'href="(?!https?://)', html)


@pytest.fixture(scope="module")
def pages() -> list[str]:
    """Return every page of a console over sessions in which each field holds each hostile text."""
    everything = "\n\n".join(WRITTEN_TEXTS[:52])
    document = linear_workflow(
        "team.hostile",
        {"id": "a", "title": everything[:90], "prompt": everything},
        {"id": "b", "title": HOSTILE[:80], "prompt": everything},
        name=HOSTILE[:80],
        description=everything[:900],
    )
    asking = linear_workflow(
        "team.ask",
        {"id": "a", "title": everything[:90], "prompt": everything},
        {**ASK, "title": HOSTILE[:80], "question": HOSTILE, "show": ["notes.a", "artifact.a", "all"]},
        inputs=[declared("all", required=False)],
    )
    harness = Harness.in_memory(document, asking)
    began = harness.start("team.hostile", goal=everything[:900], context={"<b>key": everything, "list": [HOSTILE]})
    artifact = {"kind": "my.report", "<i>": everything[:2_000], "rows": [{"<u>": HOSTILE}]}
    own_words = "\n\n".join(["What I did and decided.", *reversed(WRITTEN_TEXTS[:52])])
    output = {"notesMarkdown": own_words, "artifacts": [artifact]}
    done = harness.call("continue_workflow", {"ackToken": began.ack, "output": output, "context": {"<s>": HOSTILE}})
    assert done["kind"] == "ok", done.text
    redone(harness, began, everything[:2_000])
    asked = harness.start("team.ask", goal=HOSTILE, context={"all": everything})
    waiting = harness.call("continue_workflow", {"ackToken": asked.ack, "output": output})
    assert waiting["waiting"]["for"] == "approval", waiting.text
    browser = entered(harness)
    session = harness.session_of(began)
    main = browser.get(f"/sessions/{session}").text
    links = dict.fromkeys(re.findall(r'href="((?:/|\?)[^"]*)"', main))
    others = [
        "/",
        "/?q=%3Cscript%3E%22%3E",
        "/workflows",
        "/workflows/team.hostile",
        "/workflows/wr.quick_task/edit",
        "/inbox",
        "/contracts",
        "/settings?collection=x",
        "/compare?a=%22%3E&b=",
    ]
    followed = [link.replace("&amp;", "&") for link in links if link.startswith(("/sessions", "/compare?"))]
    assert any(link.startswith("/compare?a=") for link in followed)
    questions = re.findall(r'href="(/sessions/[^"]*/questions/[^"]*)"', browser.get("/inbox").text)
    assert questions
    followed += dict.fromkeys(questions)
    return [main, *(checked(browser, path) for path in (*others, *followed))]


def checked(browser: Browser, path: str) -> str:
    answer = browser.get(path)
    assert answer.status_code == 200, (path, answer.text)
    return answer.text


@pytest.mark.inv("CON-5")
def test_nothing_of_any_text_acts_on_any_page(pages: list[str]) -> None:
    assert len(pages) > 9
    assert [faults(page) for page in pages] == [[]] * len(pages)
    assert any("&lt;script&gt;alert(1)" in page for page in pages)


@pytest.mark.inv("CON-5")
def test_a_query_is_shown_as_text(pages: list[str]) -> None:
    assert 'value="&lt;script&gt;&#34;&gt;"' in pages[2]


@pytest.mark.parametrize("page", ["<p onclick=x>", "<script>1</script>", "<img src=x>", '<a href="javascript:x">'])
def test_the_check_of_pages_finds_what_acts(page: str) -> None:
    assert faults(page)


@pytest.mark.inv("CON-5")
def test_none_of_two_hundred_texts_acts_in_any_field_that_a_page_shows() -> None:
    assert len(set(HOSTILE_TEXTS)) >= 200
    harness, paths = hostile_runs(Harness.in_memory)
    browser = entered(harness)
    found = {path: faults(checked(browser, path)) for path in paths}
    assert {path: one for path, one in found.items() if one} == {}


@pytest.mark.inv("CON-17")
def test_notes_are_rendered_as_markdown() -> None:
    html = notes_html(
        "| a | b |\n| --- | --- |\n| *one* | [two](http://two.example) |\n\n```py\ncode = 1\n```\n\n2. second"
    )
    for part in ("<td><em>one</em></td>", '<a href="http://two.example"', "<code>code = 1\n</code>", '<ol start="2">'):
        assert part in html
    assert "<p><code>py</code></p>" in html


@pytest.mark.inv("CON-17")
@pytest.mark.parametrize("text", CONSTRUCTS)
def test_no_word_of_notes_is_left_out(text: str) -> None:
    shown = notes_html(text)
    found = Counter(re.findall(r"[^\W_]+", text_of(shown) + " " + " ".join(re.findall(r'href="([^"]*)"', shown))))
    left_out = Counter(re.findall(r"[^\W_]+", printable(text))) - found
    assert not [word for word in left_out if not word.isdigit()]
