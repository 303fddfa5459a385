"""`interlock session report`: a session as one Markdown or HTML file, for a pull request. Deterministic."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from interlock.cli.screen import StopError, printable_line, say, say_json
from interlock.cli.session.html import as_html
from interlock.cli.session.show import account_of, drawn
from interlock.service.account_page import Look, page_of
from interlock.service.markdown import as_markdown
from interlock.store.ports import Store

ReportForm: TypeAlias = Literal["md", "html"]
_HTML_SUFFIXES = {".html", ".htm"}
_STANDARD_OUTPUT = Path("-")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOrder:
    """What a person asked for. Without a form the file's name says which; without a file it is printed."""

    session: str | None
    form: ReportForm | None = None
    out: Path | None = None
    is_forced: bool = False
    as_json: bool = False


def run_report(store: Store, order: ReportOrder) -> int:
    """Write or print the report of a session, or of one run of it; return the exit code.

    Raises:
        StopError: No one session is meant, the store cannot answer, or the file cannot be written.
    """
    form = order.form or ("html" if order.out is not None and order.out.suffix in _HTML_SUFFIXES else "md")
    look = Look(newest_first=False, is_whole=True, is_for_others=True, draw=drawn)
    page = page_of(account_of(store, order.session), look)
    text = as_html(page) if form == "html" else as_markdown(page)
    if order.out in (None, _STANDARD_OUTPUT):
        if order.as_json:
            say_json({"format": form, "text": text})
        else:
            sys.stdout.write(text)
        return 0
    assert order.out is not None, "what is not printed goes to a file"
    data = text.encode("utf-8", "backslashreplace")
    _write(order.out, data, is_forced=order.is_forced)
    if order.as_json:
        say_json({"format": form, "out": str(order.out), "bytes": len(data)})
    else:
        say(f"Wrote {printable_line(str(order.out))}, {len(data)} bytes.")
    return 0


def _write(path: Path, data: bytes, *, is_forced: bool) -> None:
    try:
        with path.open("wb" if is_forced else "xb") as stream:
            stream.write(data)
    except FileExistsError:
        message = f"{printable_line(str(path))} exists already."
        raise StopError(
            message, "Nothing was overwritten. Choose another --out, or add --force.", exit_code=1
        ) from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        message = f"{printable_line(str(path))} cannot be written: {why}."
        raise StopError(message, "Choose another --out, or correct its permissions.", exit_code=1) from None
