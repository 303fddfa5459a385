"""Requests that no page of the console sends get no page, whatever they carry."""

import re
from collections.abc import Mapping

import httpx
import pytest
from tests.support.console import HOST, LINK, ORIGIN, PORT, Browser, console_of, entered
from tests.support.history import MovingClock

from interlock.console.access import make_link
from interlock.console.rendering.static_files import address_of
from interlock.kernel.budgets.console import CONSOLE_BODY_BYTES_MAX, CONSOLE_BROWSERS_MAX, CONSOLE_LINK_MS
from interlock.testing.harness import FIXED_KEYS, Harness, linear_workflow

SECRET_GOAL = "The goal that nobody else may read"
OWN = {"sec-fetch-site": "same-origin"}
FOREIGN_HOSTS = [
    "evil.test",
    f"evil.test:{PORT}",
    "127.0.0.1",
    "localhost",
    f"127.0.0.1:{PORT + 1}",
    f"localhost:{PORT}0",
    f"127.0.0.1.evil.test:{PORT}",
    f"evil.test#{HOST}",
    f"{HOST}.",
    f"{HOST}@evil.test",
    f"0.0.0.0:{PORT}",
    f"[::1]:{PORT}",
    f"127.1:{PORT}",
    f"2130706433:{PORT}",
    f"LOCALHOST:{PORT}",
    f" {HOST}",
    f"{HOST},evil.test",
    "",
]
FOREIGN_ORIGINS = [
    "null",
    "http://evil.test",
    f"https://{HOST}",
    f"http://{HOST}/",
    f"http://localhost:{PORT}",
    "http://127.0.0.1",
    f"http://127.0.0.1:{PORT + 1}",
    f"http://{HOST}.evil.test",
    f"http://evil.test/{ORIGIN}",
    f"{ORIGIN} {ORIGIN}",
    ORIGIN.upper(),
    "file://",
    "chrome-extension://abc",
    "",
]
FOREIGN_FETCHES: list[Mapping[str, str]] = [
    {},
    {"sec-fetch-site": "same-site"},
    {"sec-fetch-site": "same-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"},
    {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "script"},
    {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"},
    {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"},
    {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "object"},
    {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
    {"sec-fetch-site": "other"},
    {"sec-fetch-site": "same-origin, cross-site"},
    {"sec-fetch-site": ""},
]
METHODS = ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"]
ODD_PATHS = [
    "/static/../app.py",
    "/static/..%2fapp.py",
    "/static/%2e%2e/app.py",
    "/static//etc/passwd",
    "/static/console.css%00.js",
    "/sessions/..%2f..%2fkeys",
    "/sessions/../../etc/passwd",
    "/sessions/sess_x/nodes/..%2f..",
    "/sessions/%2e%2e/prove",
    "/workflows/..%2f..%2fetc%2fpasswd",
    "/workflows/%00",
    "/sessions/sess_%0d%0aset-cookie:%20a=b",
    "/compare?a=../..:x&b=/etc:passwd",
    "/compare?a=x&b=y",
    "/keys/keyring.json",
    "/sessions/sess_x/runs/run_x/replay?at=1",
    "/sessions/..%2f/runs/run_x/turns",
    "/sessions/sess_x/contract",
    "/sessions/%2e%2e/questions/node_x",
    "/decide/1.person.sess_x.node_x.",
    "/decide/..%2f..%2fkeys",
    "/workflows/..%2f..%2fetc%2fpasswd/edit",
    "/workflows/team.ship/save",
    "/workflows/%2e%2e/copy",
    "/inbox/checks",
    "/inbox/intents/sess_x/intent_x/deliver",
]


@pytest.fixture(scope="module")
def harness() -> Harness:
    harness = Harness.in_memory(linear_workflow("team.ship", "a", "b"))
    harness.start("team.ship", goal=SECRET_GOAL)
    return harness


@pytest.fixture(scope="module")
def browser(harness: Harness) -> Browser:
    return entered(harness)


def is_refused(answer: httpx.Response) -> bool:
    return answer.status_code >= 400 and SECRET_GOAL not in answer.text


@pytest.mark.inv("CON-2")
@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_a_request_for_another_host_is_refused(browser: Browser, host: str) -> None:
    answer = browser.send("GET", "/", {**OWN, "host": host})
    assert (answer.status_code, is_refused(answer)) == (421, True)


@pytest.mark.inv("CON-2")
@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("origin", FOREIGN_ORIGINS)
def test_a_request_of_another_origin_is_refused(browser: Browser, origin: str, method: str) -> None:
    answer = browser.send(method, "/", {**OWN, "origin": origin, "content-length": "0"})
    assert (answer.status_code, is_refused(answer)) == (403, True)
    assert not {name for name in answer.headers if name.startswith("access-control-")}


@pytest.mark.inv("CON-2")
@pytest.mark.parametrize("headers", FOREIGN_FETCHES, ids=str)
def test_what_another_site_fetches_or_embeds_is_refused(browser: Browser, headers: Mapping[str, str]) -> None:
    assert is_refused(browser.send("GET", "/", headers))


@pytest.mark.inv("CON-2")
def test_a_link_of_another_site_leads_to_a_page_that_shows_nothing(browser: Browser) -> None:
    followed = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    answer = browser.send("GET", "/?q=%22%3E%3Cb%3E", followed)
    assert (answer.status_code, SECRET_GOAL in answer.text, "<b>" in answer.text) == (200, False, False)
    assert 'href="/?q=%22%3E%3Cb%3E"' in answer.text


@pytest.mark.inv("CON-2")
@pytest.mark.parametrize(
    "path", ["//evil.example/x", "///evil.example", "/%5Cevil.example", "/%09/evil.example", "/%2F/evil.example"]
)
def test_the_page_for_another_site_leads_to_no_other_site(browser: Browser, path: str) -> None:
    followed = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    answer = browser.send("GET", path, followed)
    [target] = re.findall('<a href="([^"]*)">Open this page', answer.text)
    assert re.match(r"/(?![/\\\t])", target), target


@pytest.mark.inv("CON-4")
def test_a_browser_that_is_not_admitted_is_asked_to_enter_also_from_another_site(browser: Browser) -> None:
    followed = {
        "sec-fetch-site": "cross-site",
        "sec-fetch-mode": "navigate",
        "sec-fetch-dest": "document",
        "cookie": "x=1",
    }
    answer = browser.send("GET", "/", followed)
    assert (answer.status_code, "data-enter" in answer.text, SECRET_GOAL in answer.text) == (200, True, False)


@pytest.mark.inv("CON-2")
@pytest.mark.parametrize("method", METHODS)
def test_methods_other_than_get_and_post_are_refused(browser: Browser, method: str) -> None:
    assert is_refused(browser.send(method, "/", {**OWN, "origin": ORIGIN}))


@pytest.mark.inv("CON-2")
@pytest.mark.parametrize("headers", [{}, {"x-interlock-token": ""}, {"x-interlock-token": "x"}], ids=str)
def test_a_post_without_the_token_of_its_page_is_refused(browser: Browser, headers: Mapping[str, str]) -> None:
    answer = browser.send("POST", "/", {**OWN, "origin": ORIGIN, "content-length": "0", **headers})
    assert (answer.status_code, is_refused(answer)) == (403, True)


@pytest.mark.inv("CON-2")
def test_a_post_without_an_origin_is_refused(browser: Browser) -> None:
    answer = browser.send("POST", "/enter", {**OWN, "content-length": "0"})
    assert (answer.status_code, is_refused(answer)) == (403, True)


@pytest.mark.inv("CON-2")
@pytest.mark.parametrize("length", ["-1", "x", "1e3", str(CONSOLE_BODY_BYTES_MAX + 1), "9" * 4_000])
def test_a_body_that_is_too_large_or_of_unknown_length_is_refused(browser: Browser, length: str) -> None:
    answer = browser.send("POST", "/enter", {**OWN, "origin": ORIGIN, "content-length": length})
    assert answer.status_code in (411, 413)


@pytest.mark.inv("CON-2")
def test_an_address_that_is_too_long_is_refused(browser: Browser) -> None:
    assert browser.send("GET", "/?q=" + "a" * 5_000, OWN).status_code == 414


@pytest.mark.inv("CON-2")
@pytest.mark.parametrize("path", ODD_PATHS)
def test_a_path_leads_to_no_file_and_to_no_page_but_those_of_the_table(browser: Browser, path: str) -> None:
    answer = browser.send("GET", path, OWN)
    assert is_refused(answer), answer.text
    assert "Traceback" not in answer.text
    assert "set-cookie" not in answer.headers


@pytest.mark.inv("CON-11")
def test_only_a_file_that_is_asked_for_by_its_content_is_kept_by_a_browser(browser: Browser) -> None:
    found = {name: browser.send("GET", address_of(name), OWN) for name in ("console.js", "console.css")}
    assert [answer.status_code for answer in found.values()] == [200, 200]
    assert {answer.headers["cache-control"] for answer in found.values()} == {"private, max-age=31536000, immutable"}
    for other in ("/static/console.js?v=", "/static/console.js?v=0123456789abcdef", f"{address_of('console.js')}&v=1"):
        answer = browser.send("GET", other, OWN)
        assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")


@pytest.mark.inv("CON-3")
@pytest.mark.parametrize("path", ["/", "/nope", "/static/console.js", "/live?session=*x"])
def test_every_response_forbids_scripts_frames_and_caches(browser: Browser, path: str) -> None:
    if path.startswith("/live"):
        path = "/workflows"
    answers = [browser.send("GET", path, OWN), browser.send("GET", path, {**OWN, "origin": "null"})]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'nonce-")
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
    nonces = [answer.headers["content-security-policy"].split("'")[3] for answer in answers]
    assert nonces[0] != nonces[1]


@pytest.mark.inv("CON-4")
@pytest.mark.parametrize(
    "cookies",
    [
        {},
        {f"interlock_console_{PORT}": "x"},
        {f"interlock_console_{PORT}": ""},
        {f"interlock_console_{PORT + 1}": "x"},
        {f"interlock_console_{PORT}": LINK},
    ],
    ids=str,
)
def test_a_browser_that_was_not_admitted_sees_only_how_to_get_a_link(harness: Harness, cookies: dict[str, str]) -> None:
    stranger = Browser(console_of(harness)[0], cookies)
    answer = stranger.send("GET", "/", {**OWN, "sec-fetch-mode": "navigate"})
    assert (answer.status_code, SECRET_GOAL in answer.text) == (200, False)
    assert f"interlock console --link --port {PORT}" in answer.text
    assert stranger.send("GET", "/live?session=*", {**OWN, "sec-fetch-mode": "cors"}).status_code == 401


@pytest.mark.inv("CON-4")
def test_a_cookie_of_another_start_admits_nobody(harness: Harness, browser: Browser) -> None:
    restarted = Browser(console_of(harness)[0], dict(browser.cookies))
    assert SECRET_GOAL not in restarted.get("/").text


@pytest.mark.inv("CON-4")
def test_a_link_admits_one_browser_once_with_a_cookie_that_no_script_reads(harness: Harness) -> None:
    app, _ = console_of(harness)
    first, second = Browser(app), Browser(app)
    answer = first.enter()
    assert answer.headers["set-cookie"].startswith(f"interlock_console_{PORT}=")
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert "SameSite=strict" in answer.headers["set-cookie"]
    assert (second.enter().status_code, first.get("/").status_code) == (403, 200)
    assert SECRET_GOAL in first.get("/").text


@pytest.mark.inv("CON-4")
def test_a_signed_link_is_valid_once_for_its_port_and_for_a_time() -> None:
    clock = MovingClock()
    app, access = console_of(Harness.in_memory(), clock)
    old = make_link(FIXED_KEYS.current, PORT, clock, is_person=True)
    clock.now_ms += CONSOLE_LINK_MS + 1
    good = make_link(FIXED_KEYS.current, PORT, clock, is_person=True)
    body, _, signature = good.rpartition(".")
    bad = [
        old,
        make_link(FIXED_KEYS.current, PORT + 1, clock, is_person=True),
        good[:-1],
        good + "A",
        f"{body}x.{signature}",
        f"{int(body.partition('.')[0]) + 1}.{body.partition('.')[2]}.{signature}",
        f"0{good}",
        "",
        ".",
        "..",
        "\u0660." + body,
        "9" * 4_000,
    ]
    keys = FIXED_KEYS.keys()
    assert [access.admit(one, keys) for one in bad] == [None] * len(bad)
    assert access.admit(good, ()) is None
    assert access.admit(good, keys) is not None
    assert access.admit(good, keys) is None
    del app


@pytest.mark.inv("CON-4")
def test_a_link_of_before_the_start_is_not_valid_any_more() -> None:
    clock = MovingClock()
    link = make_link(FIXED_KEYS.current, PORT, clock, is_person=True)
    clock.now_ms += 1
    _, access = console_of(Harness.in_memory(), clock)
    assert access.admit(link, FIXED_KEYS.keys()) is None


@pytest.mark.inv("CON-4")
def test_only_so_many_browsers_are_admitted_at_a_time() -> None:
    clock = MovingClock()
    _, access = console_of(Harness.in_memory(), clock)
    links = [make_link(FIXED_KEYS.current, PORT, clock, is_person=True) for _ in range(CONSOLE_BROWSERS_MAX + 1)]
    cookies = [access.admit(link, FIXED_KEYS.keys()) for link in links]
    browsers = [access.browser_of(cookie) for cookie in cookies]
    assert (browsers[0], None in browsers[1:]) == (None, False)
