"""The documents say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from evalhub.management.commands.document_measures import document
from evalhub.management.commands.document_sessions import reference as document_sessions
from evalhub.management.commands.document_statistics import reference
from evalhub.operating.middleware import count_request
from evalhub.operating.monitoring import exposition
from metrics.engine.compiled import machine_code
from metrics.engine.measures.grammar import parse_measure
from runs.models import Webhook
from runs.services.storage.files import upload_folder

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def test_the_measures_page_is_made_from_the_docstrings() -> None:
    """If it is not: evalhub document_measures > docs/measures.md."""
    assert (ROOT / "docs/measures.md").read_text() == document()


def test_the_reference_of_statistics_is_made_from_the_docstrings() -> None:
    """If it is not: evalhub document_statistics, and put what it prints at the end of docs/statistics.md."""
    assert (ROOT / "docs/statistics.md").read_text().endswith(reference())


def test_the_reference_of_session_measures_is_made_from_the_docstrings() -> None:
    """If it is not: evalhub document_sessions, and put what it prints at the end of docs/sessions.md."""
    assert (ROOT / "docs/sessions.md").read_text().endswith(document_sessions())


def test_every_setting_that_is_read_is_documented_and_the_other_way_round() -> None:
    read = set(
        re.findall(r'env\.\w+\(\s*"(EVALHUB_\w+)"', (ROOT / "evalhub/settings.py").read_text())
    )
    read |= {machine_code.FOLDER, machine_code.PROCESSOR}
    table = re.findall(
        r"^\| `(EVALHUB_\w+)`", (ROOT / "docs/settings.md").read_text(), re.MULTILINE
    )
    assert read == set(table)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_every_decision_has_a_date_and_a_line_in_the_index() -> None:
    folder = ROOT / "docs/decisions"
    listed = dict(
        re.findall(
            r"^\| \[\d{4}\]\((.+?)\) \| (.+) \|$", (folder / "README.md").read_text(), re.MULTILINE
        )
    )
    numbers = {}
    for page in sorted(folder.glob("[0-9]*.md")):
        title, _, status, *_ = page.read_text().split("\n")
        assert re.fullmatch(r"(Accepted|Replaced by \[\d{4}\]\(.+\)), \d{4}-\d\d-\d\d\.", status), (
            page.name
        )
        numbers[page.name] = title.removeprefix("# ")
    assert listed == numbers


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_installs_what_has_our_name_on_the_public_index(page: Path) -> None:
    assert not re.search(r"pip\S* install[^\n`]* evalhub(?![\w*./-])", page.read_text())


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
            codes |= set(
                re.findall(
                    r'\.(?:problem|warning|add)\([^"()]*(?:\([^()]*\)[^"()]*)*, "([a-z_]+)"', text
                )
            )
    return codes - {"error", "invalid_file"}


def test_every_code_is_documented() -> None:
    pages = [ROOT / "docs/api.md", *(ROOT / "docs/api").glob("*.md")]
    documented = {code for page in pages for code in re.findall(r"`([a-z_]+)`", page.read_text())}
    assert codes_in_the_source() - documented == set()
    assert len(codes_in_the_source()) > 40


RUNBOOK = (ROOT / "docs/operations.md").read_text()


def figures() -> set[str]:
    """The names of all figures, as Prometheus asks for them."""
    count_request("none", "GET", 200, 0.1)
    upload_folder()
    families = list(text_string_to_metric_families(exposition()[0].decode()))
    return {
        f"{family.name}_total" if family.type == "counter" else family.name for family in families
    }


def test_every_event_of_webhooks_is_documented() -> None:
    page = (ROOT / "docs/api/webhooks.md").read_text()
    assert [event.value for event in Webhook.Event if f"`{event}`" not in page] == []


def test_every_figure_is_in_the_runbook_and_the_other_way_round(db: None) -> None:
    table = RUNBOOK.partition("| metric | meaning |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(evalhub_\w+)", table)) == figures()


def test_the_alarms_ask_for_figures_that_exist_and_each_has_its_advice(db: None) -> None:
    blocks = [
        yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", RUNBOOK, re.DOTALL)
    ]
    (rules,) = [
        group["rules"] for block in blocks if "groups" in block for group in block["groups"]
    ]
    known = figures()
    for rule in rules:
        names = set(re.findall(r"evalhub_\w+", rule["expr"]))
        assert {name.removesuffix("_count") for name in names} <= known, rule["alert"]
    advised = re.findall(r"^\| `(\w+)` \|", RUNBOOK.partition("| alarm |")[2], re.MULTILINE)
    assert advised == [rule["alert"] for rule in rules]


def test_the_commands_of_the_runbook_are_those_of_the_files() -> None:
    """What it says of `docker compose` names files that are there."""
    for name in set(re.findall(r"docker/[\w.-]+", RUNBOOK)) - {"docker/.env"}:
        assert (ROOT / name).exists(), name


def test_every_test_that_the_cases_name_exists() -> None:
    text = (ROOT / "docs/cases.md").read_text()
    written = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", text))
    assert {name for name in named if f"def {name}(" not in written} == set()
    cases = re.findall(r"^\| ([FBA]\d+) \|", text, re.MULTILINE)
    assert cases == [
        f"{kind}{n}" for kind, last in (("F", 41), ("B", 32), ("A", 33)) for n in range(1, last + 1)
    ]
