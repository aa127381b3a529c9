"""The home page, the page of all leaderboards, and the example collection of an empty server."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from runs.models import AuditEvent, Collection, Run, User
from tests.metrics.scored import make_scored, simulated
from tests.web.test_pages import page, text_of


@pytest.fixture
def scored(alice: User) -> Collection:
    """A public collection with five runs."""
    make_scored("lab", alice.personal_team, simulated(5, 12))
    return Collection.objects.get(slug="lab")


def test_a_visitor_sees_the_first_runs_of_public_leaderboards(scored: Collection) -> None:
    home, board = page(Client(), "/"), page(Client(), "/collections/lab/")
    assert "EvalHub ranks search systems" in home

    first = [
        tag for tag in sorted((f"r{n}" for n in range(5)), key=board.index) if f">{tag}</a>" in home
    ]
    assert len(first) == 3
    for tag in first:
        row = home.partition(f">{tag}</a>")[2]
        mean, _, rest = row.partition('class="number">')[2].partition("</td>")
        assert mean in board.partition(f">{tag}</a>")[2].partition("</tr>")[0]
        assert "95% interval" in rest[:300]


@pytest.mark.parametrize(
    "change",
    [
        {"blind": True},
        {"veiled_until": timezone.now() + timedelta(days=1)},
        {"visibility": "team"},
        {"visibility": "private"},
    ],
    ids=["blind", "veiled", "team", "private"],
)
def test_no_value_is_on_the_home_page_that_not_all_readers_see(
    scored: Collection, alice: User, change: dict[str, object]
) -> None:
    Collection.objects.update(**change)
    assert 'class="leaders"' not in page(Client(), "/")

    browser = Client()
    browser.force_login(alice)
    has_card = 'class="leaders"' in page(browser, "/")
    assert has_card == ("visibility" in change)


def test_a_single_run_is_no_ranking(scored: Collection) -> None:
    Run.objects.exclude(tag="r0").update(deleted_at=timezone.now())
    home = page(Client(), "/")
    assert 'class="leaders"' not in home
    assert ">Collection lab</a>" in home


def test_leaderboards_are_found_by_words_of_their_names(scored: Collection) -> None:
    assert ">Collection lab</a>" in page(Client(), "/collections/?search=COLL+lab")
    assert "No leaderboard matches “robust”" in text_of(
        page(Client(), "/collections/?search=robust")
    )


def test_an_administrator_loads_the_example_collection_once(alice: User, bob: User) -> None:
    browser, button = Client(), "Load the example collection (18 runs)"
    browser.force_login(bob)
    assert button not in page(browser, "/")
    assert browser.post("/example-collection/").status_code == 404
    assert not Collection.objects.exists()

    User.objects.filter(pk=alice.pk).update(is_staff=True)
    browser.force_login(alice)
    assert button in page(browser, "/")
    for _ in range(2):
        answer = browser.post("/example-collection/")
        assert (answer.status_code, answer["Location"]) == (303, "/collections/sea/")

    # The rows of its replicates are no runs that somebody sent.
    assert Run.objects.with_files().count() == 18
    rows = Run.objects.filter(sha256="")
    assert {row.tag: row.replicates.count() for row in rows} == {"lsa-100": 3, "reranker": 2}
    assert AuditEvent.objects.filter(action="run.submitted").count() == 18 + 2
    assert Collection.objects.get().document_titles.exists()
    assert Collection.objects.get().topic_attributes.count() == 30
    assert button not in page(browser, "/")


def test_the_header_marks_its_section_and_the_icon_has_its_usual_address(
    scored: Collection,
) -> None:
    assert '/collections/" aria-current="page">Leaderboards' in page(Client(), "/collections/")
    assert '/collections/" aria-current="true">Leaderboards' in page(Client(), "/collections/lab/")
    assert '/campaigns/" aria-current="page">Campaigns' in page(Client(), "/campaigns/")
    assert Client().get("/favicon.ico")["Location"].endswith(".svg")


def test_a_public_leaderboard_has_a_picture_for_links_to_it(
    scored: Collection, alice: User
) -> None:
    html = page(Client(), "/collections/lab/")
    description = re.search(r'<meta name="description" content="([^"]*)"', html)
    assert description
    assert re.match(r"5 runs ranked by AP on 12 topics\. Best: r\d, 0\.\d{4}\.", description[1])
    picture = re.search(r'<meta property="og:image" content="http://testserver([^"]*)"', html)
    assert picture
    assert Client().get(picture[1])["Content-Type"] == "image/png"

    Collection.objects.update(visibility="team")
    browser = Client()
    browser.force_login(alice)
    html = page(browser, "/collections/lab/")
    assert ("og:description" in html, "og:image" in html) == (True, False)


def test_own_runs_are_marked_where_others_are(scored: Collection, alice: User, bob: User) -> None:
    browser = Client()
    browser.force_login(alice)
    assert ">yours<" not in page(browser, "/collections/lab/")
    Run.objects.filter(tag="r0").update(team=bob.personal_team)
    assert page(browser, "/collections/lab/").count(">yours<") == 4
