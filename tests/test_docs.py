"""The documents say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evalhub.management.commands.document_measures import document
from metrics.engine.grammar import parse_measure

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def test_the_measures_page_is_made_from_the_docstrings() -> None:
    """If it is not: evalhub document_measures > docs/measures.md."""
    assert (ROOT / "docs/measures.md").read_text() == document()


def test_every_setting_that_is_read_is_documented_and_the_other_way_round() -> None:
    read = set(re.findall(r'env\.\w+\(\s*"(EVALHUB_\w+)"', (ROOT / "evalhub/settings.py").read_text()))
    table = re.findall(r"^\| `(EVALHUB_\w+)`", (ROOT / "docs/settings.md").read_text(), re.MULTILINE)
    assert read == set(table)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_measures_named_in_the_readme_exist() -> None:
    text = (ROOT / "README.md").read_text()
    for name in re.findall(r"(?:nDCG|AP|RR|P)(?:\([^)]*\))?@\d+", text):
        assert parse_measure(name)


def codes_in_the_source() -> set[str]:
    """Every code that an error, a problem or a warning is given."""
    codes: set[str] = set()
    for package in ("evalhub", "runs", "metrics"):
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text()
            codes |= set(re.findall(r'\b(?:error_)?code="([a-z_]+)"', text))
            codes |= set(re.findall(r'^    code = "([a-z_]+)"', text, re.MULTILINE))
            codes |= set(re.findall(r'\.(?:problem|warning|add)\([^"()]*(?:\([^()]*\)[^"()]*)*, "([a-z_]+)"', text))
    return codes - {"error", "invalid_file"}


def test_every_code_is_documented() -> None:
    documented = set(re.findall(r"`([a-z_]+)`", (ROOT / "docs/api.md").read_text()))
    assert codes_in_the_source() - documented == set()
    assert len(codes_in_the_source()) > 40
