"""The report: one file for a pull request, the same each time, in which others' words are words and nothing else."""

from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from tests.support.history import HOSTILE, Place, checkpointed, label_of, redone
from tests.support.proofs import ROOT, HeldTree, begun, proving, with_tree, witnessed

from interlock.service.report.document import Bullets, Heading, Quote, UntrustedText
from interlock.service.report.markdown import as_markdown
from interlock.service.report.resource import session_record
from interlock.testing.harness import Harness, ToolResult, linear_workflow

SHIP = linear_workflow("team.ship", "a", "b", name="Ship it")
CHECKED = (
    "Interlock checked that each report has the form that the pinned workflow asks for, and recorded it. It ran no"
    " command and judged no file of the project: results of checks are the agent's own statements."
)
PICTURE_TAGS = {"figure", "svg", "g", "rect", "path", "text", "tspan", "title"}
PICTURE_ATTRIBUTES = {
    *("xmlns", "viewbox", "width", "height", "role", "aria-label", "x", "y", "rx", "d", "fill", "stroke"),
    *("stroke-width", "stroke-dasharray", "font-size", "font-family", "font-weight", "text-anchor", "fill-opacity"),
}
SENT = (
    f"{HOSTILE}\n# A heading\n\n- item\n```\nfence\n````\n<script>\n~~~\n\u2028[ref]: http://x.test\n\n    code\n</pre>"
)


@pytest.fixture
def harness(place: Place) -> Harness:
    return place.serving(SHIP)


def worked(place: Place, harness: Harness) -> ToolResult:
    first = harness.start("team.ship", goal="Ship 1.0")
    place.later(1)
    harness.advance(harness.advance(first, "Built it.\n\n- `make`\n"), None)
    return first


def test_a_report_in_markdown_starts_with_verdicts_and_ends_with_the_record(place: Place, harness: Harness) -> None:
    first = worked(place, harness)
    (run,) = place.run("show", "--json").json()["runs"]
    (blocker,) = run["blockers"]
    refused = f"{blocker['code']}: {blocker['message']}"
    session = first["run"]["sessionId"]
    assert place.run("report").out.splitlines() == [
        f"# `Ship it`: run {label_of(first)}",
        "",
        "- **Goal:** Ship 1.0",
        "- **Workflow:** `team.ship`",
        "- **Verdicts:** none was stated",
        "- **Status:** blocked: step 2 of 2, `Step b`",
        "- **Steps:** 1 of 2 done, 1 not done",
        "- **Time:** from `2025-01-01T00:00:00.000Z` to `2025-01-01T00:01:00.000Z`, 1 min",
        "- **Code:** no git position was recorded: this report does not say which version of the code it is about",
        "",
        "Last report, step 1, `Step a`:",
        "",
        "> Built it.",
        ">",
        "> - `make`",
        "",
        "## Verdicts",
        "",
        "No step stated a verdict. What was done is in the notes and artifacts of the steps.",
        "",
        "## What this rests on",
        "",
        f"- {CHECKED}",
        "- What the steps rest on: 1 claimed. Claimed: at most the agent says so.",
        "- 1 step was reported by an unnamed client",
        "- No answer of a person to Interlock is recorded in this run.",
        f"- To check this record, `interlock session verify {session}` computes each recorded decision again.",
        "",
        "## What is missing",
        "",
        f"- blocked: {refused}",
        "- step 2, `Step b`: not done",
        "",
        "## Steps",
        "",
        "### 1. `Step a`",
        "",
        "Done `2025-01-01T00:01:00.000Z`, after 1 min.",
        "",
        "> Built it.",
        ">",
        "> - `make`",
        "",
        *folded("What the agent was asked to do", "Do a."),
        "",
        "### 2. `Step b`: pending",
        "",
        f"- attempt 1 was refused, `2025-01-01T00:01:00.000Z`: {refused}",
        "",
        *folded("What the agent was asked to do", "Do b."),
        "",
        "## Context at the end",
        "",
        "| Key | Value | Set in |",
        "| --- | --- | --- |",
        "| `goal` | Ship 1.0 | the start |",
        "",
        "## Path",
        "",
        "```text",
        *place.run("graph").out.splitlines()[:-1],
        "```",
        "",
        "## Time",
        "",
        "```text",
        f"{'1. Step a':<33} │{'█' * 39} │ 1 min",
        f"{'2. Step b':<33} │{'░':>40}│ not done, 1 refused",
        "```",
        "",
        "## Record",
        "",
        "- **Workflow:** `team.ship` (project, `team.ship.json`)",
        f"- **Pinned as:** {run['workflowHash']}",
        "- **Preferences:** autonomy guided, risk policy conservative",
        f"- **Session:** {session}, 11 events, run {first['run']['runId']}, 3 nodes",
    ]


def folded(label: str, text: str) -> list[str]:
    return [
        f"<details><summary>{label}</summary>",
        "",
        "> ```text",
        *(f"> {line}" for line in text.splitlines()),
        "> ```",
        "",
        "</details>",
    ]


@pytest.mark.inv("HIS-6")
@pytest.mark.parametrize("form", ["md", "html"])
def test_the_same_session_gives_the_same_report(place: Place, harness: Harness, form: str) -> None:
    worked(place, harness)
    assert place.run("report", "--format", form).out == place.run("report", "--format", form).out


def hostile(place: Place) -> None:
    """Record hostile words wherever others' words can stand."""
    title = {"id": "a", "title": "{{goal}}", "prompt": "Do."}
    harness = place.serving(
        linear_workflow("team.ship", title, "b", name=HOSTILE.replace("\x1b", "").replace("\x07", ""))
    )
    first = harness.start("team.ship", goal=HOSTILE, context={HOSTILE[:40]: 1})
    assert not first.is_error, first.text
    artifact = {"kind": HOSTILE[-60:], "n": 1}
    second = harness.advance(first, None, output={"notesMarkdown": SENT, "artifacts": [artifact]})
    redone(harness, first, SENT)
    harness.advance(second, None)
    checkpointed(harness, first, SENT, client=HOSTILE)


class Tags(HTMLParser):
    """Collects what a reader of HTML would act on."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[tuple[str, str]] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {(name, value or "") for name, value in attrs}


@pytest.mark.inv("HIS-6")
def test_in_html_others_words_are_text_and_nothing_is_loaded_or_run(place: Place) -> None:
    hostile(place)
    printed = place.run("report", "--format", "html").out
    page = Tags()
    page.feed(printed)
    known = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "dl", "dt", "dd", "ul", "li", "p"}
    known |= {"table", "tr", "th", "td", "details", "summary", "blockquote", "strong", "code", "span"}
    assert set(page.tags) <= known | {"pre", "bdi"} | PICTURE_TAGS
    assert page.tags.count("style") == 1
    plain = {"lang", "charset", "name", "content", "http-equiv", "class", "dir"}
    assert {name for name, _ in page.attributes} <= plain | PICTURE_ATTRIBUTES
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in page.attributes
    assert "url(" not in printed
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in printed
    assert "\x1b" not in printed
    assert "\u202e" not in printed


OUR_HTML = {
    *(f"<details><summary>{label}</summary>" for label in ("What the agent was asked to do", "What attempt 1 sent")),
    "<details><summary>Notes of its last checkpoint</summary>",
    "</details>",
}


@pytest.mark.inv("HIS-6")
def test_in_markdown_others_words_are_text_or_code_and_nothing_else(place: Place) -> None:
    hostile(place)
    printed = place.run("report").out
    reader = MarkdownIt("commonmark", {"linkify": False, "html": True}).enable(["table", "strikethrough"])
    tokens = reader.parse(printed)
    inline = [child for token in tokens for child in token.children or ()]
    kinds = {token.type for token in (*tokens, *inline)}
    assert kinds <= {
        *("heading_open", "heading_close", "paragraph_open", "paragraph_close", "inline", "text", "code_inline"),
        *("bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close", "fence", "softbreak"),
        *("strong_open", "strong_close", "html_block", "text_special", "blockquote_open", "blockquote_close"),
        *(f"{part}_{end}" for part in ("table", "thead", "tbody", "tr", "th", "td") for end in ("open", "close")),
    }
    assert {token.content.strip() for token in tokens if token.type == "html_block"} <= OUR_HTML
    plain = " ".join(child.content for child in inline if child.type == "text")
    for word in ("@", "#", "://", "www.", "\x1b"):
        assert word not in plain
    fences = [token.content for token in tokens if token.type == "fence"]
    assert fences
    assert "\x1b" not in printed
    assert "\u202e" not in printed
    assert "\u2028" not in printed


@pytest.mark.inv("EVD-4")
def test_a_report_lists_receipts_and_names_no_place_on_the_disk(place: Place) -> None:
    harness = with_tree(place.serving(proving()), HeldTree())
    start = begun(harness)
    fix = harness.advance(start)
    witnessed(harness, start, assurance="observed")
    harness.advance(fix)
    printed = place.run("report").out
    receipt = "`interlock witness` ran `make test`: exit code 0, 1.5 s (observed, via command)"
    assert f"- step 2, `Step fix`: {receipt}" in printed.splitlines()
    assert "It ran no command" not in printed
    record = session_record(harness.ports.read, harness.session_of(start))
    for page in (printed, place.run("report", "--format", "html").out, record):
        assert isinstance(page, str)
        assert "received the event" in page
        assert ROOT not in page
        assert "/usr/bin" not in page
    for options in ((), ("--evidence",)):
        shown = place.run("show", *options).out
        assert ROOT in shown
        assert "/usr/bin/make" in shown


@pytest.mark.inv("EVD-4")
def test_no_line_of_notes_or_tasks_can_pass_for_a_line_of_interlock(place: Place, harness: Harness) -> None:
    forged = "- received the event `wr.check` (executed, via check): passed"
    harness.advance(harness.start("team.ship", goal="Ship 1.0"), f"Built it.\n\n{forged}\n\n```\n{forged}\n```")
    printed = place.run("report").out.splitlines()
    # Twice in the last report at the top, and twice at its step.
    assert printed.count(f"> {forged}") == 4
    assert forged not in printed
    assert "> Do a." in printed


def test_long_lines_of_notes_are_folded_in_markdown_and_no_word_is_lost() -> None:
    text = "word " * 60 + "\n" + "x" * 250 + "\n\n  indented"
    printed = as_markdown((Quote(text),))
    assert max(map(len, printed.splitlines())) <= 100
    assert printed.count("word") == 60
    assert printed.count("x") - "```text".count("x") == 250
    assert "\n>\n>   indented\n" in printed


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("plain", "`plain`"),
        ("a`b", "``a`b``"),
        ("`a", "`` `a ``"),
        ("a```", "```` a``` ````"),
        ("", "(empty)"),
        (" \n ", "(empty)"),
        ("two\nlines", "`two lines`"),
    ],
)
def test_a_code_span_holds_any_text(text: str, code: str) -> None:
    assert as_markdown((Bullets((("is ", UntrustedText(text)),)),)) == f"- is {code}\n"
    assert as_markdown((Heading(level=2, line=(UntrustedText(text),)),)) == f"## {code}\n"


def test_a_report_is_written_to_a_file_whose_name_says_the_form(place: Place, harness: Harness, tmp_path: Path) -> None:
    worked(place, harness)
    printed = place.run("report", "--out", str(tmp_path / "run.md"))
    text = (tmp_path / "run.md").read_text(encoding="utf-8")
    assert printed.code == 0
    assert printed.out == f"Wrote {tmp_path / 'run.md'}, {len(text.encode())} bytes.\n"
    assert text == place.run("report").out
    place.run("report", "--out", str(tmp_path / "run.html"))
    assert (tmp_path / "run.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    place.run("report", "--out", str(tmp_path / "run.txt"), "--format", "html")
    assert (tmp_path / "run.txt").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_report_as_a_dash_is_printed(place: Place, harness: Harness) -> None:
    harness.start("test.abc")
    assert place.run("report", "--out", "-").out == place.run("report").out
    assert not Path("-").exists()


@pytest.mark.inv("HIS-4")
def test_as_json_a_report_is_its_text_or_the_file_it_was_written_to(
    place: Place, harness: Harness, tmp_path: Path
) -> None:
    worked(place, harness)
    assert place.run("report", "--json").json() == {"format": "md", "text": place.run("report").out}
    out = str(tmp_path / "run.html")
    printed = place.run("report", "--out", out, "--json").json()
    assert printed == {"format": "html", "out": out, "bytes": Path(out).stat().st_size}


def test_a_file_that_exists_is_overwritten_only_if_that_is_asked_for(
    place: Place, harness: Harness, tmp_path: Path
) -> None:
    worked(place, harness)
    out = tmp_path / "run.md"
    out.write_text("mine")
    printed = place.run("report", "--out", str(out))
    assert (printed.code, out.read_text()) == (1, "mine")
    assert "Nothing was overwritten." in printed.err
    assert place.run("report", "--out", str(out), "--force").code == 0
    assert out.read_text(encoding="utf-8").startswith("# `Ship it`")


@pytest.mark.parametrize("name", ["none/run.md", "\0", "."])
def test_a_file_that_cannot_be_written_is_reported(place: Place, harness: Harness, tmp_path: Path, name: str) -> None:
    worked(place, harness)
    printed = place.run("report", "--out", str(tmp_path / name), "--force")
    assert printed.code == 1
    assert "cannot be written: " in printed.err


@pytest.mark.inv("EVD-11")
def test_a_session_is_exported_with_its_report_into_one_folder(place: Place, harness: Harness, tmp_path: Path) -> None:
    session = worked(place, harness)["run"]["sessionId"]
    folder = tmp_path / "out" / "run"
    printed = place.run("export", session, "--report", "--out", str(folder))
    assert (printed.code, sorted(path.name for path in folder.iterdir())) == (
        0,
        ["report.html", "report.md", f"{session}.interlock.json"],
    )
    assert (folder / "report.md").read_text(encoding="utf-8") == place.run("report").out
    assert place.run("verify", "--file", str(folder / f"{session}.interlock.json")).code == 0
    again = place.run("export", session, "--report", "--out", str(folder))
    assert (again.code, "exists already" in again.err) == (1, True)
    assert place.run("export", session, "--report", "--out", str(folder), "--force").code == 0
    assert place.run("export", session, "--report", "--out", "-").code == 2
