"""Pages of the console over many sessions and over one long session, as a browser's requests find them."""

import statistics
import tempfile
import time
from pathlib import Path

from tests.support.console import Browser, entered

from benchmarks import open_pages
from benchmarks.many_sessions import make_sessions
from benchmarks.table import Figure, at_most, noted
from interlock.store.local.store import LocalStore
from interlock.testing.harness import Harness

SESSIONS, STEPS = 10_000, 24_900
"""The long run has more than 100,000 events: a loop with 996 passes."""
QUICK_SHARE = 20
PAGE_MS_MAX = 300
LIVE_MS_MAX = 1_000
NODES_MAX = 500
_ROUNDS = 5


def figures(*, is_quick: bool) -> list[Figure]:
    """Measure the pages; with `is_quick` over a twentieth of the sessions and of the events, which holds no budget."""
    share = QUICK_SHARE if is_quick else 1
    many, long = _many(SESSIONS // share, is_quick=is_quick), _long(STEPS // share, is_quick=is_quick)
    return [*many, *long, *open_pages.figures(is_quick=is_quick)]


def _many(sessions: int, *, is_quick: bool) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="interlock-") as made:
        make_sessions(Path(made), sessions=sessions, advances=1)
        browser = entered(Harness.on_disk(Path(made)))
        first = _ms(browser, "/")
        warm = min(_ms(browser, "/") for _ in range(_ROUNDS))
        found = min(_ms(browser, "/?q=cache+layer") for _ in range(_ROUNDS))
    where = f"of {sessions} sessions"
    return [
        noted(f"Now {where}, the first time", f"{first:.0f} ms"),
        _figure(f"Now {where}, again", warm, is_quick=is_quick),
        _figure(f"Now {where}, a search", found, is_quick=is_quick),
    ]


def _long(steps: int, *, is_quick: bool) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="interlock-") as made:
        data_dir = Path(made)
        session = make_sessions(data_dir, sessions=1, advances=steps, is_loop=True)[0].session
        folded = LocalStore(data_dir).load(session)
        assert folded is not None, "it was written"
        browser = entered(Harness.on_disk(data_dir))
        path = f"/sessions/{session}/runs/{next(iter(folded.runs))}"
        began = time.perf_counter()
        shell = _ms(browser, path)
        browser.get(path)
        read_s = time.perf_counter() - began
        warm = min(_ms(browser, path) for _ in range(_ROUNDS))
        page = browser.get(path).text
        live = _live(Harness.on_disk(data_dir), browser, path, is_quick=is_quick)
        size, nodes = len(page), page.count(f'href="/sessions/{session}/nodes/')
    where = f"of {folded.next_index} events"
    return [
        _figure(f"Run {where}: the first page, with the progress", shell, is_quick=is_quick),
        noted(f"Run {where}: until the run is shown", f"{read_s:.1f} s"),
        _figure(f"Run {where}, again", warm, is_quick=is_quick),
        live,
        at_most(f"Run {where}: nodes of the run in its page", nodes, NODES_MAX, ""),
        noted(f"Run {where}: its page", f"{size // 1000} kB"),
    ]


def _live(writer: Harness, browser: Browser, path: str, *, is_quick: bool) -> Figure:
    """Advance the run in another store, and measure how long its page takes to show that."""
    candidate = writer.resume()["candidates"][0]["nextCall"]
    answer, took = writer.call(candidate["tool"], candidate["arguments"]), list[float]()
    for number in range(_ROUNDS):
        answer = writer.follow(answer, f"This is report number {number}.")
        began = time.perf_counter()
        while f"This is report number {number}." not in browser.get(path).text:
            time.sleep(0.01)
        took.append((time.perf_counter() - began) * 1000)
    what, shown = "Run: an append is on its page", statistics.median(took)
    return noted(what, f"{shown:.0f} ms") if is_quick else at_most(what, shown, LIVE_MS_MAX, " ms")


def _figure(what: str, found_ms: float, *, is_quick: bool) -> Figure:
    return noted(what, f"{found_ms:.0f} ms") if is_quick else at_most(what, found_ms, PAGE_MS_MAX, " ms")


def _ms(browser: Browser, path: str) -> float:
    began = time.perf_counter()
    answer = browser.send("GET", path, {"sec-fetch-site": "same-origin"})
    assert answer.status_code == 200, answer.text
    return (time.perf_counter() - began) * 1000
