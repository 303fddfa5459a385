"""`interlock event`, `interlock intent` and `interlock keys source`: what comes in and what goes out, for people."""

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.history import Place, label_of
from tests.support.outside import AWAIT, STATUS, HeldOutbox, into_file
from tests.support.verify import unsound

from interlock.cli.commands import command_line
from interlock.cli.main import main
from interlock.define.parts import AwaitEvent
from interlock.kernel.errors import ErrorCode
from interlock.kernel.ids import RunId
from interlock.record.world import Assurance
from interlock.service.outside.demand import how_to_send
from interlock.service.report.resource import session_record
from interlock.testing.harness import Harness, linear_workflow

NOTIFY = {"kind": "team.notify", "fields": {"text": {"value": "Built"}}}
A = {"id": "a", "title": "A", "prompt": "Do a.", "emit": [NOTIFY]}


class World:
    """A run that waits for its event and has sent something, and the commands over it."""

    def __init__(self, place: Place, capsys: pytest.CaptureFixture[str], **awaits: object) -> None:
        self.place, self._capsys = place, capsys
        self.out = place.root.parent / "out.jsonl"
        place.root.mkdir(exist_ok=True)
        self.configure(sources='["project"]')
        served = place.serving(linear_workflow("team.ship", A, {**AWAIT, **awaits}, "b", inputs=[STATUS]))
        channel = into_file(self.out)
        self.harness = Harness(
            ports=replace(served.ports, outbox=HeldOutbox(channels=(channel,))),
            store=served.store,
            workflows=served.workflows,
            data_dir=served.data_dir,
        )
        self.first = self.harness.start("team.ship", goal="Ship it")
        self.waiting = self.harness.advance(self.first, "Did a, completely and with care.")

    def configure(self, sources: str, more: str = "") -> None:
        """Write the configuration: one channel into a file."""
        text = f'[channels.log]\nkind = "file"\naccepts = ["team.notify"]\nsources = {sources}\npath = "{self.out}"\n'
        (self.place.root / "config.toml").write_text(text + more)

    def run(self, *words: str) -> tuple[int, str, str]:
        """Run a command over the data directory; return the exit code and what it printed."""
        self._capsys.readouterr()
        code = main([*words, "--data-dir", str(self.place.root)])
        printed = self._capsys.readouterr()
        return code, printed.out, printed.err

    def json(self, *words: str) -> Any:
        """Return the JSON that a command prints."""
        return json.loads(self.run(*words, "--json")[1])


@pytest.fixture
def world(place: Place, capsys: pytest.CaptureFixture[str]) -> World:
    return World(place, capsys)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("INTERLOCK_DESCENDANT", raising=False)


def answering(*, answer: object) -> Callable[[Path], object]:
    """Return a function that gives this answer for every data directory."""

    def answered(_: Path) -> object:
        return answer

    return answered


def send(
    world: World, *more: str, fields: str = '{"status": "green"}', event: str = "ci.finished"
) -> tuple[int, str, str]:
    return world.run("event", "send", event, "--run", label_of(world.first), "--id", "1", "--fields", fields, *more)


@pytest.mark.inv("WORLD-3")
def test_a_command_records_an_event_and_the_run_continues(world: World) -> None:
    code, out, _ = send(world)
    assert code == 0
    assert "is recorded as claimed. The run continued." in out
    assert world.harness.advance(world.waiting, None)["pending"]["stepId"] == "b"
    assert "was recorded before" in send(world)[1]
    assert "other fields" in send(world, fields='{"status": "red"}')[2]
    assert unsound(world.harness.store) == []


@pytest.mark.inv("WORLD-4")
def test_a_command_says_that_its_event_came_too_late(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    # The harness recorded long ago since when the step waits.
    world = World(place, capsys, timeout="1h")
    code, out, _ = send(world)
    assert code == 0
    assert "It came too late: its step had waited longer than it may, and continues without it." in out
    assert "The run continued." not in out


@pytest.mark.inv("END-4")
def test_a_command_on_an_ended_run_says_what_a_person_can_do(world: World) -> None:
    assert world.run("session", "cancel", label_of(world.first), "--reason", "superseded")[0] == 0
    code, _, err = send(world)
    assert code == 1
    assert "begin a new run. `interlock session show`" in err
    assert "tell the user" not in err


@pytest.mark.inv("WORLD-9")
@pytest.mark.parametrize(
    ("has_terminal", "below", "level"),
    [(True, False, "observed"), (True, True, "claimed"), (True, None, "claimed"), (False, False, "claimed")],
)
def test_a_command_is_believed_only_from_a_terminal_and_not_below_a_client(
    world: World, monkeypatch: pytest.MonkeyPatch, has_terminal: object, below: object, level: str
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: has_terminal, raising=False)
    monkeypatch.setattr("interlock.cli.outside.person.is_of_agent", answering(answer=below))
    send(world)
    [event] = [
        one for one in world.harness.events(world.harness.session_of(world.first)) if one.kind == "event_received"
    ]
    assert event.data.assurance == level  # pyright: ignore[reportAttributeAccessIssue]
    assert event.actor is not None
    assert event.actor.type == ("human" if level == "observed" else "system")


@pytest.mark.inv("WORLD-9")
def test_a_process_that_interlock_started_is_not_believed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setenv("INTERLOCK_DESCENDANT", "1")
    assert "is recorded as claimed" in send(world)[1]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"event": "ci.finishd"}, 1),
        ({"event": "wr.approval"}, 2),
        ({"fields": "[]"}, 2),
        ({"fields": "{"}, 2),
        ({"event": "x"}, 2),
    ],
    ids=["unknown", "reserved", "no object", "no JSON", "no kind"],
)
def test_a_wrong_event_is_refused_and_nothing_is_recorded(world: World, changes: dict[str, str], code: int) -> None:
    before = len(world.harness.events(world.harness.session_of(world.first)))
    assert send(world, **changes)[0] == code
    assert len(world.harness.events(world.harness.session_of(world.first))) == before


@pytest.mark.inv("WORLD-10")
def test_an_event_signed_elsewhere_is_sent_as_it_was_printed(world: World, tmp_path: Path) -> None:
    key = tmp_path / "ci.key"
    made = new_source(world, key)
    world.configure('["project"]', f'[sources.ci]\npublic_key = "{made}"\n')
    code, printed, _ = world.run(
        "event",
        "sign",
        "ci.finished",
        "--run",
        label_of(world.first),
        "--id",
        "1",
        "--fields",
        '{"status": "green"}',
        "--sign",
        str(key),
    )
    assert code == 0
    signed = tmp_path / "event.json"
    signed.write_text(printed)
    code, out, _ = send(world, "--signed", str(signed))
    assert (code, "recorded as signed" in out) == (0, True)
    signed.write_text(printed.replace("green", "red"))
    code, _, err = send(world, "--signed", str(signed))
    assert (code, "holds an event with another `fields`" in err) == (2, True)
    assert send(world, "--signed", str(signed), fields='{"status": "red"}')[0] == 1
    assert unsound(world.harness.store) == []


@pytest.mark.inv("WORLD-10")
def test_a_source_signs_for_a_whole_run_id_without_any_data_directory(world: World, tmp_path: Path) -> None:
    key, run = tmp_path / "ci.key", str(world.first["run"]["runId"])
    made = new_source(world, key)
    world.configure('["project"]', f'[sources.ci]\npublic_key = "{made}"\n')
    words = ("event", "sign", "ci.finished", "--run", run, "--id", "1", "--fields", '{"status": "green"}')
    elsewhere = ("--data-dir", str(tmp_path / "elsewhere"))
    assert main([*words, *elsewhere]) == 2
    assert main([*words, "--sign", str(key), *elsewhere]) == 0
    assert not (tmp_path / "elsewhere").exists()
    signed = tmp_path / "event.json"
    signed.write_text(world.run(*words, "--sign", str(key))[1])
    code, out, _ = world.run("event", "send", "ci.finished", "--run", run, "--id", "1", "--signed", str(signed))
    assert (code, "recorded as signed. The run continued." in out) == (0, True)


@pytest.mark.inv("WORLD-10", "PROOF-7")
def test_views_say_when_the_key_of_a_signature_is_not_configured_here(world: World, tmp_path: Path) -> None:
    key, run = tmp_path / "ci.key", label_of(world.first)
    source = f'[sources.ci]\npublic_key = "{new_source(world, key)}"\n'
    world.configure('["project"]', source)
    assert send(world, "--sign", str(key))[0] == 0

    def views(level: str) -> list[str]:
        shown = [world.run("session", *words)[1] for words in (("show", run), ("timeline", run), ("report", run))]
        assert all("ci.finished" in one and f"({level}, via command)" in one and "signed by" in one for one in shown)
        [hit] = world.json("session", "search", "ci.finished")["passages"]
        assert hit["level"] == level
        return shown

    assert not any("is not configured here" in one for one in views("signed"))
    resource = session_record(world.harness.ports.read, world.harness.session_of(world.first), frozenset())
    assert "with a key that is not configured here" in str(resource)
    other = new_source(world, tmp_path / "other.key")
    for text in ("", source.replace("sources.ci", "sources.other"), f'[sources.ci]\npublic_key = "{other}"\n', "["):
        world.configure('["project"]', text)
        assert all("is not configured here" in one for one in views("claimed"))
        [step] = [one for one in world.json("session", "show", run)["runs"][0]["steps"] if one["received"]]
        assert step["received"][0]["hasUnknownKey"]


@pytest.mark.inv("WORLD-4")
@pytest.mark.parametrize(
    ("level", "command"),
    [("observed", "in a terminal of their own"), ("signed", "interlock event sign ci.finished --run run_")],
)
def test_an_event_below_the_demanded_level_is_answered_with_that_level_and_how_to_send_it(
    place: Place, capsys: pytest.CaptureFixture[str], level: str, command: str
) -> None:
    world = World(place, capsys, assurance=level)
    code, out, _ = send(world)
    assert code == 0
    assert f"No step takes it so: it must be {level} or better." in out
    assert command in out
    assert json.loads(send(world, "--json")[1])["demanded"] == level
    shown = world.harness.advance(world.waiting, None)
    assert f"It was sent as `claimed`, and the step takes it only as `{level}` or better." in shown.text
    assert command in shown.text
    # Without a better event, the answer stays the same.
    assert world.harness.advance(world.waiting, None).text == shown.text


@pytest.mark.parametrize("level", ["claimed", "observed", "signed"])
def test_each_command_that_sends_an_event_has_all_that_it_needs(level: Assurance) -> None:
    awaits = AwaitEvent(event="ci.finished", fields={"status": "string", "tries": "number"}, assurance=level)
    printed = re.findall(r"`(interlock [^`]+)`", how_to_send(awaits, "ab12", RunId("run_" + "a" * 26)))
    parsed = [command_line(words).parse_args(words) for words in (shlex.split(line)[1:] for line in printed)]
    assert {(one.event, one.sent_id) for one in parsed} == {("ci.finished", "ID")}
    assert json.loads(parsed[0].fields) == {"status": "<string>", "tries": "<number>"}


def new_source(world: World, key: Path) -> str:
    assert main(["keys", "source", "new", "ci", "--out", str(key), "--json"]) == 0
    public = json.loads(key.read_text())["publicKey"]
    assert key.stat().st_mode & 0o777 == 0o600
    assert main(["keys", "source", "new", "ci", "--out", str(key)]) == 1
    assert json.loads(key.read_text())["publicKey"] == public
    world.run("config", "check")
    return str(public)


def test_the_lines_that_are_printed_for_a_new_source_are_a_configuration(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["keys", "source", "new", "team.ci", "--out", str(tmp_path / "key")]) == 0
    lines = capsys.readouterr().out.partition("\n")[2]
    world.configure('["project"]', lines)
    assert world.run("config", "check")[0] == 0
    assert main(["keys", "source", "new", "team ci", "--out", str(tmp_path / "other")]) == 2
    assert not (tmp_path / "other").exists()


# Intents.


@pytest.mark.inv("WORLD-6")
def test_what_was_not_sent_is_listed_shown_and_delivered_by_a_person(world: World) -> None:
    [one] = world.json("intent", "list", "--undelivered")["intents"]
    assert (one["state"], one["sends"], one["fields"]) == ("undelivered", "team.notify", {"text": "Built"})
    short = one["intent"][-6:]
    assert "nobody has tried to send it" in world.run("intent", "show", short)[1]
    assert not world.out.exists()
    code, out, _ = world.run("intent", "deliver", short)
    assert (code, out.endswith("delivered\n")) == (0, True)
    assert len(world.out.read_text().splitlines()) == 1
    assert world.run("intent", "deliver", short)[0] == 1
    assert len(world.out.read_text().splitlines()) == 1
    assert world.json("intent", "list", "--undelivered")["intents"] == []
    [shown] = world.json("intent", "list")["intents"]
    assert (shown["state"], shown["channel"], shown["tries"]) == ("delivered", "log", 1)


def test_without_a_channel_nothing_is_delivered_and_the_list_says_why(world: World) -> None:
    world.configure(sources='["user"]')
    [one] = world.json("intent", "list")["intents"]
    assert one["why"].startswith("uncovered: `log` accepts `team.notify`, but not from")
    code, out, _ = world.run("intent", "deliver", one["intent"])
    assert (code, "not sent" in out) == (1, True)
    assert not world.out.exists()


def test_an_abandoned_intent_is_not_listed_as_undelivered_any_more(world: World) -> None:
    [one] = world.json("intent", "list", "--run", label_of(world.first))["intents"]
    assert world.run("intent", "abandon", one["intent"])[0] == 0
    assert world.json("intent", "list", "--undelivered")["intents"] == []
    assert world.run("intent", "abandon", one["intent"])[0] == 1


def test_an_intent_that_is_not_there_is_reported(world: World) -> None:
    code, out, _ = world.run("intent", "show", "nothing", "--json")
    assert (code, json.loads(out)["error"]["code"]) == (1, ErrorCode.SESSION_NOT_FOUND)


# Views.


@pytest.mark.inv("WORLD-1")
def test_views_say_that_a_run_waits_and_for_what(world: World) -> None:
    for command in ("list", "status"):
        assert "waits for ci.finished" in world.run("session", command)[1]
    [run] = world.json("session", "list")["runs"]
    assert (run["status"], run["waiting"]) == ("in_progress", "ci.finished")
    assert "waits for ci.finished" in world.run("session", "show")[1]
    assert "sends team.notify" in world.run("session", "timeline")[1]
