"""What a person decides in the console: recorded once, with the level that it has, and by no forged request."""

import re
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from tests.support.approvals import asking, given
from tests.support.console import LINK, ORIGIN, PORT, Browser, console_of, entered
from tests.support.history import HOSTILE, MovingClock
from tests.support.modes import events_of, session_of
from tests.support.notes import CONSTRUCTS, text_of
from tests.support.outside import HeldOutbox, into_file, sender_of
from tests.support.verify import unsound

from interlock.config.checks import PROJECT_CHECKS
from interlock.config.settings import Settings
from interlock.console.access import make_link
from interlock.console.decision_link import make_decision_link, parse_decision_link
from interlock.console.decisions import Decisions, linked_question
from interlock.kernel.budgets import APPROVAL_NOTE_BYTES_MAX
from interlock.kernel.budgets.console import CONSOLE_DECISION_MS
from interlock.kernel.errors import Refusal
from interlock.kernel.text import printable
from interlock.service.outside.dispatch import Dispatcher
from interlock.store.memory.store import MemoryStore
from interlock.store.opening import open_check_files
from interlock.testing.harness import FIXED_KEYS, CounterClock, FixedKeyRing, Harness, ToolResult, linear_workflow

PLAN = "**The plan**: change one file, and test it."
ASKING = asking(show=["notes.a", "goal"])
NOTED = asking(show=["notes.a"], note="required", choices=["go", "stop", "later"])
EMIT = {"kind": "team.notify", "fields": {"text": {"value": "Built"}}}
SENDING = linear_workflow("team.ship", {"id": "a", "title": "A", "prompt": "Do a.", "emit": [EMIT]}, "b")


def waiting(document: Mapping[str, object] = ASKING) -> tuple[Harness, ToolResult]:
    harness = Harness.in_memory(document)
    first = harness.start("test.flow", goal="Ship the box")
    harness.advance(first, PLAN)
    return harness, first


def question_in(browser: Browser) -> str:
    found = re.search(r'href="(/sessions/[^"]+/questions/[^"]+)"', browser.get("/inbox").text)
    assert found is not None
    return found[1]


def form_of(page: str, **changes: str) -> dict[str, str]:
    shown = re.search(r'name="shown" value="([^"]+)"', page)
    assert shown is not None, page
    return {"shown": shown[1], "choice": "approve", "note": "", **changes}


def answers(harness: Harness, start: ToolResult) -> list[tuple[str, str, str | None, object]]:
    return [
        (one.data.assurance, one.data.via, one.actor and one.actor.type, one.data.fields["choice"])  # pyright: ignore[reportAttributeAccessIssue]
        for one in events_of(harness, start, "event_received")
    ]


@pytest.mark.inv("CON-8")
def test_a_question_shows_every_character_of_notes_in_any_markdown() -> None:
    harness = Harness.in_memory(ASKING)
    notes = "\n\n".join(CONSTRUCTS)
    harness.advance(harness.start("test.flow", goal="Ship the box"), notes)
    browser = entered(harness)
    assert printable(notes) in text_of(browser.get(question_in(browser)).text)


@pytest.mark.inv("CON-8", "APPR-1", "INBOX-1")
def test_a_person_reads_what_is_asked_approves_with_a_note_and_the_run_continues() -> None:
    harness = Harness.in_memory(ASKING)
    first = harness.start("test.flow", goal="Ship the box")
    at_the_question = harness.advance(first, PLAN)
    browser = entered(harness)
    question = question_in(browser)
    page = browser.get(question).text
    assert "**The plan**: change one file" in page
    assert "Do it this way?" in page
    done = browser.post(question, form_of(page, note="Do it."))
    assert done.status_code == 200
    assert "is recorded as observed" in done.text
    assert "The run continued." in done.text
    assert answers(harness, first) == [("observed", "console", "human", "approve")]
    assert harness.advance(at_the_question, None)["pending"]["stepId"] == "b"
    assert "Nothing waits for a person" in browser.get("/inbox").text
    assert browser.get(question).status_code == 410
    assert unsound(harness.store) == []


@pytest.mark.inv("CON-8", "APPR-3")
@pytest.mark.parametrize("who", ["a console of no person", "a link of no person"])
def test_an_answer_counts_as_a_claim_unless_a_person_started_the_console_and_admitted_the_browser(who: str) -> None:
    harness, first = waiting()
    app, access = console_of(harness, is_person=who != "a console of no person")
    link = make_link(FIXED_KEYS.current, PORT, access.clock, is_person=False)
    browser = Browser(app)
    browser.enter(LINK if who == "a console of no person" else link)
    question = question_in(browser)
    page = browser.get(question).text
    assert "demands the level observed, and an answer from here is claimed" in page
    assert "<form" not in page
    approval = asked_in(harness, question)
    report = browser.post(question, {"shown": approval, "choice": "approve", "note": ""})
    assert "The run still waits." in report.text
    assert answers(harness, first) == [("claimed", "console", "system", "approve")]


def asked_in(harness: Harness, question: str) -> str:
    _, _, session, _, node = question.split("/")
    asked = decisions_of(harness).question(session, node)  # pyright: ignore[reportArgumentType] — plain texts of an address
    assert asked is not None
    return asked.approval.digest()


def decisions_of(harness: Harness) -> Decisions:
    settings = Settings(data_dir=Path("/nonexistent"), workspace=None, user_workflows=None)
    return Decisions(ports=harness.ports, settings=settings, is_of_agent=lambda: False)


@pytest.mark.inv("CON-8", "APPR-2")
def test_a_question_that_a_command_has_decided_is_not_decided_again() -> None:
    harness, first = waiting()
    browser = entered(harness)
    question = question_in(browser)
    form = form_of(browser.get(question).text, choice="reject")
    token = browser.get("/inbox").text
    given(harness, first)
    found = re.search(r'name="interlock-token" content="([^"]*)"', token)
    assert found is not None
    headers = {"origin": ORIGIN, "sec-fetch-site": "same-origin", "x-interlock-token": found[1]}
    refused = browser.send("POST", question, headers, data=form)
    assert refused.status_code == 409
    assert "observed, by command line" in refused.text
    assert len(answers(harness, first)) == 1


@pytest.mark.inv("CON-8", "APPR-2")
def test_of_two_answers_at_the_same_moment_one_counts(tmp_path: Path) -> None:
    harness = Harness.on_disk(tmp_path, ASKING)
    first = harness.start("test.flow", goal="Ship")
    harness.advance(first, PLAN)
    browser = entered(harness)
    question = question_in(browser)
    form = form_of(browser.get(question).text)
    begin, found = threading.Barrier(2), list[object]()

    def by_console() -> None:
        begin.wait()
        found.append(browser.post(question, form).status_code != 200)

    def by_command() -> None:
        begin.wait()
        found.append(isinstance(given(harness, first, is_approved=False), Refusal))

    threads = [threading.Thread(target=one) for one in (by_console, by_command)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    # A rejection leaves the run waiting, so an approval may follow it; after the approval nothing does.
    choices = [choice for _, _, _, choice in answers(harness, first)]
    assert choices in (["approve"], ["reject", "approve"])
    assert found.count(False) == len(choices)
    assert session_of(harness, first).runs[harness.reference_of(first).run].tip is not None
    assert unsound(harness.store) == []


@pytest.mark.inv("CON-8")
def test_an_answer_to_something_else_than_was_shown_is_refused() -> None:
    harness, first = waiting()
    browser = entered(harness)
    question = question_in(browser)
    other = form_of(browser.get(question).text, shown="sha256:" + "0" * 64)
    refused = browser.post(question, other)
    assert (refused.status_code, answers(harness, first)) == (409, [])
    assert "The question that was shown is not open" in refused.text


@pytest.mark.inv("CON-8", "APPR-2")
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"choice": "stop"}, "A rejection needs a note"),
        ({"choice": "nothing"}, "is no choice"),
        ({"choice": "go", "note": "x" * (APPROVAL_NOTE_BYTES_MAX + 1)}, "too long"),
    ],
)
def test_an_answer_that_the_command_would_refuse_is_refused(fields: dict[str, str], words: str) -> None:
    harness, first = waiting(NOTED)
    browser = entered(harness)
    question = question_in(browser)
    refused = browser.post(question, form_of(browser.get(question).text, **fields))
    assert refused.status_code in (400, 409)
    assert words in refused.text
    assert answers(harness, first) == []


BODIES = [
    b"",
    b"choice=approve",
    b"choice=approve&note=&shown=x&more=1",
    b"choice=approve&choice=reject&note=&shown=x",
    b"&&&",
    b"choice",
    b"%ff=%ff",
    b"\xff\xfe",
    b"choice=%ff&note=&shown=x",
    b"a=1&b=2&c=3&d=4&e=5&f=6&g=7&h=8&i=9",
    b'{"choice":"approve"}',
]


@pytest.mark.inv("CON-2", "CON-8")
@pytest.mark.parametrize("body", BODIES, ids=ascii)
def test_a_form_that_no_page_sends_is_refused_and_records_nothing(body: bytes) -> None:
    harness, first = waiting()
    browser = entered(harness)
    question = question_in(browser)
    for path in (question, "/inbox/checks", f"/inbox/intents/{harness.session_of(first)}/int_x/deliver"):
        assert send(browser, path, body).status_code in (400, 409)
    assert answers(harness, first) == []


def send(browser: Browser, path: str, body: bytes, **changes: str) -> httpx.Response:
    page = browser.get("/inbox").text
    found = re.search(r'name="interlock-token" content="([^"]*)"', page)
    token = found[1] if found is not None else ""
    headers = {"origin": ORIGIN, "sec-fetch-site": "same-origin", "x-interlock-token": token, **changes}
    return browser.send("POST", path, {name: value for name, value in headers.items() if value}, content=body)


FORGED = [
    {"x-interlock-token": ""},
    {"x-interlock-token": "guessed"},
    {"origin": "http://evil.test"},
    {"origin": "null"},
    {"origin": ""},
    {"origin": f"http://localhost:{PORT}"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"host": "evil.test"},
]
WRITING = [
    "{question}",
    "/inbox/checks",
    "/inbox/intents/{session}/int_x/deliver",
    "/inbox/intents/{session}/int_x/abandon",
]


@pytest.mark.inv("CON-2", "CON-8")
@pytest.mark.parametrize("changes", FORGED, ids=str)
def test_a_forged_request_decides_nothing(changes: dict[str, str]) -> None:
    harness, first = waiting()
    browser = entered(harness)
    question = question_in(browser)
    body = f"choice=approve&note=&shown={asked_in(harness, question)}".encode()
    link = link_of(harness, first)
    for path in (*WRITING, link):
        address = path.format(question=question, session=harness.session_of(first))
        assert send(browser, address, body, **changes).status_code >= 400
        assert send(Browser(browser.app), address, body, **changes).status_code >= 400
    assert answers(harness, first) == []


@pytest.mark.inv("CON-2")
def test_a_browser_that_was_not_admitted_decides_nothing() -> None:
    harness, first = waiting()
    question = question_in(entered(harness))
    stranger = Browser(console_of(harness)[0])
    body = f"choice=approve&note=&shown={asked_in(harness, question)}".encode()
    assert send(stranger, question, body).status_code == 401
    assert answers(harness, first) == []


def link_of(harness: Harness, start: ToolResult, clock: MovingClock | None = None, *, is_person: bool = True) -> str:
    """Return the path of a link that decides the open question of a run."""
    run = session_of(harness, start).runs[harness.reference_of(start).run]
    assert run.tip is not None
    asked = decisions_of(harness).question(harness.session_of(start), run.tip)
    assert asked is not None
    question = linked_question(asked, is_person=is_person)
    return make_decision_link(FIXED_KEYS.current, PORT, question, clock or MovingClock()).partition(str(PORT))[2]


@pytest.mark.inv("CON-9")
def test_a_link_shows_its_question_to_any_browser_and_decides_it_once() -> None:
    harness, first = waiting()
    link = link_of(harness, first)
    app, _ = console_of(harness, MovingClock())
    stranger = Browser(app)
    pages = [stranger.get(link) for _ in range(3)]
    assert [page.status_code for page in pages] == [200] * 3
    assert answers(harness, first) == [], "to read it decides nothing"
    assert "Do it this way?" in pages[0].text
    form = form_of(pages[0].text, note="By link.")
    assert "The run continued." in stranger.post(link, form).text
    assert answers(harness, first) == [("observed", "console", "human", "approve")]
    assert stranger.get(link).status_code == 410
    assert send_by_link(stranger, link, form).status_code == 410
    assert len(answers(harness, first)) == 1
    assert "Ship the box" not in stranger.get("/").text, "a link of one question admits to nothing else"


def send_by_link(browser: Browser, link: str, form: Mapping[str, str]) -> httpx.Response:
    headers = {"origin": ORIGIN, "sec-fetch-site": "same-origin", "x-interlock-token": link.rpartition(".")[2]}
    return browser.send("POST", link, headers, data=dict(form))


@pytest.mark.inv("CON-9")
def test_a_link_is_void_after_any_answer_also_one_that_decided_nothing() -> None:
    harness, first = waiting()
    link = link_of(harness, first)
    stranger = Browser(console_of(harness, MovingClock())[0])
    form = form_of(stranger.get(link).text)
    given(harness, first, assurance="claimed")
    assert stranger.get(link).status_code == 410
    assert send_by_link(stranger, link, form).status_code == 410
    assert link_of(harness, first) != link


@pytest.mark.inv("CON-9")
def test_a_link_that_no_person_made_gives_a_claim() -> None:
    harness, first = waiting()
    link = link_of(harness, first, is_person=False)
    page = Browser(console_of(harness, MovingClock())[0]).get(link).text
    assert "an answer from here is claimed" in page
    assert "<form" not in page


@pytest.mark.inv("CON-9")
def test_a_link_that_was_changed_or_is_too_old_or_of_another_port_shows_and_decides_nothing() -> None:
    harness, first = waiting()
    other = harness.start("test.flow", goal="Another")
    harness.advance(other, PLAN)
    clock = MovingClock()
    link = link_of(harness, first)
    made, by, session, node, signature = link.removeprefix("/decide/").split(".")
    _, _, other_session, other_node, _ = link_of(harness, other).removeprefix("/decide/").split(".")
    changed = [
        (str(int(made) + 1), by, session, node, signature),
        (f"0{made}", by, session, node, signature),
        (made, "person" if by != "person" else "anybody", session, node, signature),
        (made, by, other_session, other_node, signature),
        (made, by, session, other_node, signature),
        (made, by, "../keys", node, signature),
        (made, by, session, node, signature[:-1]),
        (made, by, session, node, signature + "A"),
        (made, by, session, node, ""),
    ]
    app, _ = console_of(harness, clock)
    stranger = Browser(app)
    form = form_of(stranger.get(link).text)
    paths = ["/decide/" + ".".join(parts) for parts in changed]
    for path in [*paths, "/decide/", "/decide/....", "/decide/x", link + ".x"]:
        answer = stranger.get(path)
        assert "Do it this way?" not in answer.text
        assert send_by_link(stranger, path, form).status_code >= 400
    clock.now_ms += CONSOLE_DECISION_MS + 1
    assert stranger.get(link).status_code == 410
    assert send_by_link(stranger, link, form).status_code == 410
    assert answers(harness, first) == answers(harness, other) == []
    assert parse_decision_link("9" * 5_000) is None


@pytest.mark.inv("CON-8", "WORLD-6")
def test_an_intent_that_did_not_arrive_is_delivered_or_abandoned(tmp_path: Path) -> None:
    out, harness = tmp_path / "out.jsonl", Harness.in_memory(SENDING)
    channel = into_file(out)
    held = replace(harness, ports=replace(harness.ports, outbox=HeldOutbox(channels=(channel,))))
    for goal in ("First", "Second"):
        held.advance(held.start("team.ship", goal=goal), "Did a, completely and with care.")
    outbox = Dispatcher(sender=sender_of(harness, channel))
    browser = entered(replace(harness, ports=replace(harness.ports, outbox=outbox)))
    paths = re.findall(r'action="(/inbox/intents/[^"]+/(?:deliver|abandon))"', browser.get("/inbox").text)
    assert len(paths) == 4
    assert "delivered" in browser.post(paths[0], {"again": "no"}).text
    assert len(out.read_text().splitlines()) == 1
    assert browser.post(paths[1], {}).status_code == 409, "it arrived"
    assert "abandoned" in browser.post(paths[3], {}).text
    refused = browser.post(paths[2], {"again": "no"})
    assert (refused.status_code, "it is abandoned" in refused.text) == (409, True)
    assert len(out.read_text().splitlines()) == 1
    assert "Nothing waits for a person" in browser.get("/inbox").text
    assert browser.post(paths[0].replace("intent_", "intent_0"), {"again": "no"}).status_code == 404
    assert unsound(harness.store) == []


@pytest.mark.inv("CON-8", "CHECK-5")
def test_only_a_person_allows_checks_and_only_the_file_that_was_shown(tmp_path: Path) -> None:
    project, data = tmp_path / "project", tmp_path / "data"
    (project / ".interlock").mkdir(parents=True)
    file = project / PROJECT_CHECKS
    file.write_text(f'[checks.tests]\ncommand = ["/usr/bin/make", "{HOSTILE[20:60]}"]\n'.replace("\x1b", ""))
    harness = replace(Harness.on_disk(data, ASKING), workspace=project)
    agent, person = entered(harness, is_person=False), entered(harness)
    page = person.get("/inbox").text
    digest = re.search(r'name="digest" value="([^"]+)"', page)
    assert digest is not None
    assert "/usr/bin/make" in page
    assert "Only a person allows checks" in agent.post("/inbox/checks", {"digest": digest[1]}).text
    text = file.read_text()
    file.write_text(text + "# changed\n")
    assert person.post("/inbox/checks", {"digest": digest[1]}).status_code == 409
    file.write_text(text)
    assert open_check_files(data).allowed() == {}
    assert "are allowed as they are" in person.post("/inbox/checks", {"digest": digest[1]}).text
    assert open_check_files(data).allowed() == {str(project): digest[1]}
    assert "Nothing waits for a person" in person.get("/inbox").text


@pytest.mark.inv("APPR-9", "CON-8")
def test_an_expired_question_has_no_form_and_says_what_follows() -> None:
    clock = CounterClock()
    harness = Harness.over(MemoryStore(), asking(expires="24h"), clock=clock, keys=FixedKeyRing())
    harness.advance(harness.start("test.flow", goal="Ship the box"), PLAN)
    browser = entered(harness)
    question = question_in(browser)
    open_page = browser.get(question).text
    clock.skip_ms(24 * 3600 * 1000)
    page, inbox = browser.get(question).text, browser.get("/inbox").text
    for text in (page, inbox):
        assert "To ask again, the step before it, `Step a`, is done again on a new branch." in text_of(text)
    assert "<form" in open_page.split("<main")[1]
    assert "<form" not in page.split("<main")[1]
    assert "Read and decide" not in inbox
    assert browser.post(question, form_of(open_page)).status_code == 409
