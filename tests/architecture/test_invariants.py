"""The register of requirements: each rule that holds has a test, and each mark and each citation names a rule."""

import re
from collections import Counter
from collections.abc import Iterator

import pytest

import requirements
from requirements import REGISTER, ROOT, Rule, count_table, marked_tests, parse_register, rule_page

RULES = parse_register(REGISTER.read_text(encoding="utf-8"))
BY_ID = {rule.id: rule for rule in RULES}
PREFIXES = "|".join(sorted({rule.id.partition("-")[0] for rule in RULES}))
CITED = re.compile(rf"\b(?:{PREFIXES})-\d+\b|(?<=\()[A-Z]{{2,}}-\d+(?=[,)])")
DECISION = re.compile(r"\b[Dd]ecision (\d{4})\b")
FOREIGN = re.compile(
    r"\b(?:locks|seed) [§\d][\d.]*|(?<= )\(locks: [^()]*\)|\bD[1-9]\d?\b"
    r"|(?:(?<= )\(|(?<=\d), )(?:TOOLS|ARCHITECTURE|DECISIONS|STYLE)(?: \d+)?\)"
)
"""Sections of specifications, and pages that are no part of the project."""
BARE_DECISION = re.compile(r"\((?:[^()\[\]]* )?(?<!ecision )(?<![-\d.])00\d\d(?![-\d])[^()]*\)")


def cited_texts() -> Iterator[tuple[str, str]]:
    """Yield every file that may cite a rule, with its text. The register itself and generated texts are left out."""
    folders = ("src", "scripts", "tests", "benchmarks", "docs")
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*")) if path.suffix in {".py", ".md"}]
    for path in [*paths, ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "Makefile"]:
        if path != REGISTER:
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def unknown_citations(text: str) -> list[str]:
    return [one for one in CITED.findall(text) if one not in BY_ID]


def test_no_rule_is_listed_twice() -> None:
    assert [one for one, count in Counter(rule.id for rule in RULES).items() if count > 1] == []
    assert RULES


def test_every_rule_that_holds_has_a_test() -> None:
    assert sorted({rule.id for rule in RULES if rule.status == "holds"} - set(marked_tests())) == []


def test_no_rule_that_is_open_or_differs_has_a_test() -> None:
    """A test that passes shows that its rule holds: the status is to be changed with the test."""
    assert sorted({rule.id for rule in RULES if rule.status != "holds"} & set(marked_tests())) == []


def test_every_mark_names_a_rule() -> None:
    assert sorted(set(marked_tests()) - set(BY_ID)) == []


def test_a_rule_that_differs_names_a_decision_or_a_rule_that_holds() -> None:
    records = {path.name[:4] for path in (ROOT / "docs" / "decisions").glob("[0-9]*.md")}
    holding = {rule.id for rule in RULES if rule.status == "holds"} | {f"decision {one}" for one in records}
    assert [rule.id for rule in RULES if rule.instead is not None and rule.instead not in holding] == []


def test_every_citation_names_a_rule() -> None:
    found = {name: unknown for name, text in cited_texts() if (unknown := unknown_citations(text))}
    assert found == {}


def test_no_citation_leads_out_of_the_repository() -> None:
    assert [(name, found) for name, text in cited_texts() for found in FOREIGN.findall(text)] == []


def test_a_decision_is_cited_as_one() -> None:
    documents = [(name, text) for name, text in cited_texts() if not name.startswith("tests/")]
    assert [(name, found) for name, text in documents for found in BARE_DECISION.findall(text)] == []


@pytest.mark.parametrize(
    "planted", ["(lo" + "cks 1.2, D" + "10)", "(se" + "ed 3)", "(D" + "24)", "as in D" + "7", "(TOK-1, TO" + "OLS)"]
)
def test_a_citation_from_outside_is_found(planted: str) -> None:
    assert FOREIGN.search(f"A sentence {planted}. Another one.") is not None


@pytest.mark.parametrize("planted", ["(00" + "24)", "(replaced by 00" + "30)"])
def test_a_bare_number_of_a_decision_is_found(planted: str) -> None:
    assert BARE_DECISION.search(f"A sentence {planted}. Another one.") is not None
    assert BARE_DECISION.search("[00" + "24](decisions/00" + "24-x.md), (decision 00" + "24), (0700)") is None


def test_every_cited_decision_has_a_record() -> None:
    records = {path.name[:4] for path in (ROOT / "docs" / "decisions").glob("[0-9]*.md")}
    texts = [*cited_texts(), (REGISTER.name, REGISTER.read_text(encoding="utf-8"))]
    assert [(name, one) for name, text in texts for one in DECISION.findall(text) if one not in records] == []


def test_an_unknown_rule_is_found_where_it_is_cited() -> None:
    planted = "TOK-" + "999"
    assert unknown_citations(f"as stated (TOK-1, {planted})") == [planted]
    assert unknown_citations("of nothing (NO" + "NE-1)") == ["NO" + "NE-1"]
    assert unknown_citations("UTF-8 and RFC-3339 (ISO 8601)") == []


@pytest.mark.parametrize(
    "row",
    [
        "| AAA-1 | A rule. | durable core 1 |",
        "| AAA-1 | A rule. | durable core | holds |",
        "| AAA-1 | A rule. | another core 1 | holds |",
        "| AAA-1 | A rule. | durable core 1; decision 12 | holds |",
        "| AAA-1 | A rule. | durable core 1 | done |",
        "| AAA-1 | A rule. | durable core 1 | differs |",
    ],
)
def test_a_row_without_source_or_status_in_the_stated_form_is_refused(row: str) -> None:
    with pytest.raises(ValueError, match="AAA-1"):
        parse_register(row)


def test_the_counts_are_those_of_the_rows() -> None:
    rows = [
        "| AAA-1 | One. | durable core 1, 2.1; execution model 6 | holds |",
        "| AAA-2 | Two. | Interlock; decision 0033 | open |",
        "| AAA-3 | Three. | workflow IR phase 2 | differs: AAA-1 |",
    ]
    table = [line.split() for line in count_table(parse_register("\n".join(rows))).splitlines()]
    assert ["durable", "core", "1", "0", "0", "1"] in table
    assert ["execution", "model", "1", "0", "0", "1"] in table
    assert ["workflow", "IR", "0", "1", "0", "1"] in table
    assert ["Interlock", "0", "0", "1", "1"] in table
    assert table[-1] == ["all", "rules", "1", "1", "1", "3"]


def test_a_rule_is_shown_with_its_tests(capsys: pytest.CaptureFixture[str]) -> None:
    assert requirements.main(["TOK-1"]) == 0
    shown = capsys.readouterr().out
    assert BY_ID["TOK-1"].text in shown
    assert "tests/record/test_tokens.py::test_a_token_is_built_as_locked" in shown.replace("tests/unit/", "tests/")
    assert requirements.main(["AAA-1"]) == 1
    assert "AAA-1" in capsys.readouterr().err
    assert "differs: AAA-2" in rule_page(
        Rule(id="AAA-1", text="One.", specifications=("Interlock",), status="differs", instead="AAA-2"), ()
    )
