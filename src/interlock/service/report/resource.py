"""The readable record of one session, as its resource shows it. Writes nothing."""

from interlock.kernel.budgets import ECHO_BYTES_MAX, RECORD_BYTES_MAX, RECORD_STEPS_MAX
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.ids import SessionId
from interlock.kernel.text import one_line, truncated, utf8_bytes
from interlock.service.ports import ReadPorts
from interlock.service.report.layout import RenderOptions, page_of
from interlock.service.report.markdown import as_markdown
from interlock.service.report.session_report import SessionReporter
from interlock.service.run.history import history_of
from interlock.views.outside import SigningKeys

_WHOLE = RenderOptions(newest_first=False, is_whole=True, is_for_others=True)
_SHORT = RenderOptions(newest_first=True, is_whole=False, is_for_others=True)


def session_record(ports: ReadPorts, session: SessionId, keys: SigningKeys | None = None) -> str | Refusal:
    """Return a session's runs as Markdown: the current step, the finished steps, the open gaps.

    `keys` are the signing keys that are configured, if they are known.

    A long record is shortened to the latest steps, newest first, then cut at the limit; a note says so.

    Raises:
        SessionUnhealthyError, ContentDamagedError, UnknownVersionError, StoreFailureError: See `service.failures`.
    """
    history = history_of(ports.reader, session)
    if history is None:
        found = one_line(session, ECHO_BYTES_MAX)
        return Refusal(
            code=ErrorCode.SESSION_NOT_FOUND,
            message=f"There is no session {found!r} in this data directory.",
            suggestion="`resume_session` finds sessions by words of their goal or notes.",
        )
    accounts, runs = SessionReporter(ports.reader, ports.plans, history, keys), tuple(history.session.runs)
    whole = as_markdown(page_of(accounts.session(runs), _WHOLE))
    if utf8_bytes(whole) <= RECORD_BYTES_MAX:
        return whole
    short = as_markdown(page_of(accounts.session(runs, steps_max=RECORD_STEPS_MAX), _SHORT))
    rest = f"\n\nThis record is shortened; `interlock session report {session}` prints all of it.\n"
    return truncated(short, RECORD_BYTES_MAX - utf8_bytes(rest)) + rest
