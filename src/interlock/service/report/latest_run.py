"""Finds the run with the latest activity without reading every session."""

from interlock.service.clock import moment_of
from interlock.service.report.run_list import Row, newest_first, rows_of
from interlock.service.run.plans import Plans
from interlock.service.run.summaries import read_entry
from interlock.store.ports.reader import SessionReader
from interlock.views.summary import SessionSummary


def read_latest_run(reader: SessionReader, plans: Plans) -> Row | None:
    """Return the run with the latest recorded activity of all that can be read; None if there is none. Writes nothing.

    A log is written after the time of its last event. So sessions are read from the log that was written last, until
    every other log is older than the latest activity so far. In a copy that did not keep the times of files, more
    sessions are read, and the answer is the same.

    Raises:
        StoreFailureError: The disk failed.
    """
    written_ms = {one: modified_s * 1000 for one, (_, _, modified_s, _) in reader.log_versions().items()}
    rows, latest_ms = list[Row](), 0
    for session in sorted(written_ms, key=lambda one: written_ms[one], reverse=True):
        if written_ms[session] < latest_ms:
            break
        entry = read_entry(reader, plans, session)
        if isinstance(entry, SessionSummary):
            rows += rows_of(entry)
            latest_ms = max(latest_ms, moment_of(entry.last_at) or 0)
    return newest_first(rows)[0] if rows else None
