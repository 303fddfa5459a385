"""The MCP conformance suite against the real server, at both revisions of the protocol that it speaks.

Each run is of the frozen set that a revision requires. What the server cannot show, because a scenario calls tools of
the suite's own or asks for what Interlock does not offer, stands with its reason in `conformance-<revision>.yml`; the
suite itself fails on a failure that is not there, and on an entry that passes.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.clients.installed import PATIENCE_S, Clients, Finished
from tests.support.server import workspace_in

HERE = Path(__file__).parent
SUITE = "@modelcontextprotocol/conformance"
WIRE = "wire-schema-valid"
PASSED = "SUCCESS"

SCENARIOS: Mapping[str, Mapping[str, int]] = {
    "2025-11-25": {
        "server-initialize": 3,
        "server-session-lifecycle": 3,
        "server-sse-multiple-streams": 2,
        "dns-rebinding-protection": 2,
        "ping": 2,
        "tools-list": 3,
        "resources-list": 2,
        "prompts-list": 2,
        "completion-complete": 2,
    },
    "2026-07-28": {
        "server-stateless": 21,
        "server-sse-multiple-streams": 1,
        "dns-rebinding-protection": 2,
        "http-header-validation": 14,
        "tools-list": 4,
        "resources-list": 2,
        "sep-2164-resource-not-found": 4,
        "caching": 8,
        "input-required-result-unsupported-methods": 2,
        "input-required-result-validate-input": 3,
        "prompts-list": 2,
        "completion-complete": 2,
    },
}
"""What any server can be asked, and how many checks of it at least have to pass."""

OPTIONAL = re.compile(r"tasks-|json-schema-2020-12$|http-custom-header-server-validation$|server-sse-polling$")
"""What the suite runs beside the required set and does not score: an extension, and scenarios that are pending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One run of the suite: how it ended, and the checks of each scenario."""

    ended: Finished
    checks: Mapping[str, Sequence[Mapping[str, Any]]]

    def passed(self, scenario: str) -> list[str]:
        """Return the checks of a scenario that passed; none if it did not run."""
        return [check["id"] for check in self.checks.get(scenario, ()) if check["status"] == PASSED]

    def failed(self, scenario: str) -> list[str]:
        """Return the checks of a scenario that failed or gave a warning."""
        return [check["id"] for check in self.checks[scenario] if check["status"] in ("FAILURE", "WARNING")]


def reasons(revision: str) -> list[str]:
    """Return the `scenario:check` entries of a revision that are expected to fail."""
    return yaml.safe_load(baseline(revision).read_text(encoding="utf-8"))["server"]


def baseline(revision: str) -> Path:
    return HERE / f"conformance-{revision}.yml"


@pytest.fixture(scope="session")
def suite(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Clients:
    home = tmp_path_factory.mktemp("conformance")
    suite = Clients(home=home, project=workspace_in(home), installed=installed)
    suite.wanted(SUITE)
    return suite


@pytest.fixture(scope="session")
def address(suite: Clients) -> Iterator[str]:
    """Serve over HTTP until the tests end; afterwards it has no fault to report."""
    script, data_dir, errors = str(HERE / "http_server.py"), suite.home / "data", suite.home / "errors"
    command = [sys.executable, script, str(data_dir), str(suite.project)]
    pipe = subprocess.PIPE
    with (
        errors.open("w") as log,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log, encoding="utf-8") as server,
    ):
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/mcp"
        finally:
            server.stdin.close()
            try:
                assert server.wait(PATIENCE_S) == 0
            finally:
                server.kill()
    # The suite comes once in disguise, and is turned away.
    assert set(errors.read_text(encoding="utf-8").splitlines()) <= {"Invalid Host header: evil.example.com"}


@pytest.fixture(scope="session")
def report_of(suite: Clients, address: str) -> Callable[[str], Report]:
    """Run the set of a revision, once for all tests that look at it."""
    runs: dict[str, Report] = {}

    def report_of(revision: str) -> Report:
        if revision not in runs:
            runs[revision] = run_of(suite, address, revision)
        return runs[revision]

    return report_of


def run_of(suite: Clients, address: str, revision: str) -> Report:
    results = suite.home / revision
    wanted = ["--requirements", revision, "--expected-failures", str(baseline(revision)), "-o", str(results)]
    ended = suite.run(SUITE, "conformance", "server", "--url", address, *wanted)
    checks: dict[str, Sequence[Mapping[str, Any]]] = {}
    for path in results.glob("*/checks.json"):
        named = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT.+", path.parent.name)
        assert named is not None, path
        checks[named[1]] = json.loads(path.read_text(encoding="utf-8"))
    return Report(ended=ended, checks=checks)


def held(revision: str, scenario: str) -> Any:
    return pytest.param(revision, scenario, id=f"{scenario} at {revision}")


@pytest.mark.parametrize(
    ("revision", "scenario"), [held(revision, each) for revision, wanted in SCENARIOS.items() for each in wanted]
)
def test_a_scenario_that_needs_no_fixture_runs_its_checks_and_passes_them(
    report_of: Callable[[str], Report], revision: str, scenario: str
) -> None:
    report = report_of(revision)
    passed = report.passed(scenario)
    assert len(passed) >= SCENARIOS[revision][scenario]
    assert set(passed) - {WIRE} != set()
    excused = {entry.partition(":")[2] for entry in reasons(revision) if entry.startswith(f"{scenario}:")}
    assert set(report.failed(scenario)) <= excused


@pytest.mark.parametrize("revision", SCENARIOS)
def test_nothing_fails_but_what_a_reason_stands_for_and_no_reason_is_stale(
    report_of: Callable[[str], Report], revision: str
) -> None:
    ended = report_of(revision).ended
    assert ended.code == 0, ended.output
    assert "Baseline check passed" in ended.out


@pytest.mark.parametrize("revision", SCENARIOS)
def test_every_scenario_of_the_suite_is_held_or_excused(report_of: Callable[[str], Report], revision: str) -> None:
    excused = {entry.partition(":")[0] for entry in reasons(revision)}
    known = excused | set(SCENARIOS[revision])
    assert [one for one in report_of(revision).checks if one not in known and not OPTIONAL.match(one)] == []


@pytest.mark.parametrize("revision", SCENARIOS)
def test_whatever_a_scenario_is_about_every_message_keeps_to_the_schema_of_its_revision(
    report_of: Callable[[str], Report], revision: str
) -> None:
    checks = report_of(revision).checks
    valid = [one["status"] for each in checks.values() for one in each if one["id"] == WIRE]
    assert len(valid) > 25
    assert set(valid) == {PASSED}


@pytest.mark.parametrize("revision", SCENARIOS)
def test_each_expected_failure_is_one_check_and_gives_its_reason(revision: str) -> None:
    lines = [line for line in baseline(revision).read_text(encoding="utf-8").splitlines() if line.startswith("  - ")]
    assert len(lines) == len(set(reasons(revision)))
    assert [line for line in lines if not re.fullmatch(r"  - [\w-]+:[\w-]+ # \w.+", line)] == []
