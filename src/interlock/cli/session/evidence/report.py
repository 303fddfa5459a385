"""`interlock session report`: a session as one Markdown or HTML file, for a pull request. Deterministic."""

import argparse
import sys
from pathlib import Path

from interlock.cli.options import add_store_options
from interlock.cli.render.out_file import SHARED, write_out
from interlock.cli.screen import printable_line, say, say_json
from interlock.cli.session.chosen import add_session_argument
from interlock.cli.session.evidence.damage import Viewed
from interlock.cli.session.evidence.graph import picture_of
from interlock.cli.session.evidence.show import account_of
from interlock.cli.store import open_chosen_reader
from interlock.service.report.html import as_html
from interlock.service.report.markdown import as_markdown
from interlock.service.report.review import ReviewOptions, review_page
from interlock.service.report.session_report import SessionReport

_HTML_SUFFIXES = {".html", ".htm"}
_STANDARD_OUTPUT = Path("-")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store_options(parser)
    add_session_argument(parser)
    parser.add_argument("--format", choices=["md", "html"], help="the format (default: by the file name, else md)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the file to write (default: `-`, standard output)")
    parser.add_argument("--force", dest="is_forced", action="store_true", help="overwrite the file")


def run(options: argparse.Namespace) -> int:
    """Write or print the report of a session, or of one run of it; return the exit code.

    Raises:
        StopError: The name fits no session or several, the store cannot answer, or the file cannot be written.
    """
    out: Path | None = options.out
    form: str = options.format or ("html" if out is not None and out.suffix in _HTML_SUFFIXES else "md")
    viewed = account_of(open_chosen_reader(options), options.session, options=options)
    text = rendered_report(viewed, form)
    if out in (None, _STANDARD_OUTPUT):
        if options.as_json:
            say_json(viewed.with_damage({"format": form, "text": text}))
        else:
            sys.stdout.write(text)
        return viewed.exit_code
    assert out is not None, "without a file the report was printed"
    data = text.encode("utf-8", "backslashreplace")
    write_out(out, data, is_forced=options.is_forced, mode=SHARED)
    if options.as_json:
        say_json(viewed.with_damage({"format": form, "out": str(out), "bytes": len(data)}))
    else:
        say(f"Wrote {printable_line(str(out))}, {len(data)} bytes.")
    return viewed.exit_code


def rendered_report(viewed: Viewed[SessionReport], form: str) -> str:
    """Return the report of a session in a form: `md` or `html`."""
    review_options = ReviewOptions(draw=lambda run: picture_of(run.run_context, run.graph))
    page = (*viewed.banner, *review_page(viewed.view, review_options))
    return as_html(page) if form == "html" else as_markdown(page)
