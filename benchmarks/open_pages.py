"""What open pages of the console cost an agent: an advance over stdio with and without them, by turns.

As a program (`python -m benchmarks.open_pages ADDRESS COOKIE NUMBER`) it is the pages: each holds a stream, and loads
its page again after each change, as a browser does.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

import httpx
from tests.support.load import Site, linear_workflow

from benchmarks.history import Line
from benchmarks.table import Figure, at_most, ms, noted
from benchmarks.wire import environment, serving, temporary_site

PAGES, PORT = 20, 7617
COST_MAX = 1.1
_PAUSE_S = 0.1
"""Between two advances: an agent works, and does not only call."""
_HEADERS = {"sec-fetch-site": "same-origin"}


def figures(*, is_quick: bool) -> list[Figure]:
    """Measure medians of advances, in turns without pages and with them."""
    turns, rounds = (1, 20) if is_quick else (3, 50)
    with temporary_site() as site:
        site.add_workflow(linear_workflow("bench.pages", 2 * turns * rounds + 1))
        with serving(site) as wire, _console(site) as cookie:
            line = Line(wire, "bench.pages")
            alone, beside = list[float](), list[float]()
            for _ in range(turns):
                alone += _advances(line, rounds)
                with _pages(cookie):
                    beside += _advances(line, rounds)
    cost = ms(beside) / ms(alone)
    what, found = f"advance p50 with {PAGES} open pages / without", f"{ms(beside):.2f} / {ms(alone):.2f} ms"
    return [noted(what, f"{cost:.2f} ({found})") if is_quick else at_most(what, cost, COST_MAX, beside=found)]


def _advances(line: Line, rounds: int) -> list[float]:
    found: list[float] = []
    for _ in range(rounds):
        time.sleep(_PAUSE_S)
        found.append(line.advance())
    return found


@contextmanager
def _console(site: Site) -> Generator[str]:
    """Serve a console over a site; give the cookie of a browser that has entered."""
    command = [sys.executable, "-u", "-m", "interlock", "console", "--no-open", "--port", str(PORT)]
    directories = ["--data-dir", str(site.data_dir), "--workspace", str(site.root)]
    with subprocess.Popen([*command, *directories], stdout=subprocess.PIPE, text=True, env=environment()) as process:
        assert process.stdout is not None
        address, _, secret = process.stdout.readline().split()[-1].partition("/#")
        headers = {"origin": address, **_HEADERS}
        answer = httpx.post(f"{address}/enter", content=secret, headers=headers, trust_env=False)
        try:
            yield "; ".join(f"{name}={value}" for name, value in answer.cookies.items())
        finally:
            process.terminate()


@contextmanager
def _pages(cookie: str) -> Generator[None]:
    command = [sys.executable, "-m", "benchmarks.open_pages", f"http://127.0.0.1:{PORT}", cookie, str(PAGES)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(PAGES):
            assert process.stdout.readline() == "live\n", "each page is live before the measurement"
        yield
        process.terminate()


def _open_page(address: str, cookie: str) -> None:
    headers = {"cookie": cookie, **_HEADERS}
    with (
        httpx.Client(base_url=address, headers=headers, trust_env=False, timeout=None) as client,  # noqa: S113 — a stream has no end
        client.stream("GET", "/live?session=*") as stream,
    ):
        for line in stream.iter_lines():
            if line.startswith("retry"):
                sys.stdout.write("live\n")
                sys.stdout.flush()
            elif line == "event: changed":
                client.get("/").raise_for_status()


if __name__ == "__main__":
    for _ in range(int(sys.argv[3])):
        threading.Thread(target=_open_page, args=sys.argv[1:3]).start()
