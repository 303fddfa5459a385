"""Links between the pages lead to files and headings that are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
every_page = pytest.mark.parametrize("page", PAGES, ids=[page.relative_to(ROOT).as_posix() for page in PAGES])


def links(page: Path) -> list[tuple[Path, str]]:
    """Return where the links of a page lead that stay in the checkout: a file, and a heading or nothing."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    found = re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", text)
    return [(page.parent / target if target else page, anchor) for target, anchor in found if "://" not in target]


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 _-]", "", heading.lower()).replace(" ", "-") for heading in headings}


@every_page
def test_a_link_leads_to_a_file_that_is_there(page: Path) -> None:
    assert [str(target) for target, _ in links(page) if not target.exists()] == []


@every_page
def test_a_link_to_a_section_names_a_heading(page: Path) -> None:
    assert [anchor for target, anchor in links(page) if anchor and anchor not in anchors(target)] == []
