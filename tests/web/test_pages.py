"""The pages, as a browser without scripts asks for them."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import unquote

import pytest
from django.db import OperationalError
from django.test import Client

from metrics.models import Evaluation
from runs.models import ApiToken, Collection, Qrels, Run, Topic, User
from tests.conftest import GOOD, POOR, QRELS, submit_run, upload
from tests.shared_data import alice, api, collection, module_data

__all__ = ["alice", "api", "collection", "module_data"]
pytestmark = [pytest.mark.django_db, pytest.mark.words]
HOSTILE = '<script>alert("1")</script><img src=x onerror=alert(2)>'
METADATA = f"""\
# ir_metadata.start
# research goal:
#   venue: '{HOSTILE}'
#   years: [2023, 2024]
# ir_metadata.end
"""
# Scripts and styles are files of ours: nothing stands in a page.
SCRIPT_OR_STYLE = re.compile(
    rb"<script(?! src=\"/static/)|<style|\sstyle=|\son[a-z]+=\"|javascript:", re.IGNORECASE
)
Submit = Callable[..., Run]


@pytest.fixture
def browser() -> Client:
    """Somebody without an account."""
    return Client()


@pytest.fixture(scope="module")
def board(api: Any, collection: str) -> tuple[Run, Run]:
    """Two evaluated runs of the small collection, the better one first."""
    return submit_run(api, GOOD), submit_run(api, POOR)


@pytest.fixture
def submit(api: Any, collection: str) -> Submit:
    """Submit a run to the small collection, which has none of those that other tests share."""
    Run.objects.all().delete()
    return partial(submit_run, api)


@pytest.fixture(scope="module")
def pages(board: tuple[Run, Run]) -> list[str]:
    """Every page there is, of a collection with two runs."""
    run = f"/runs/{board[0].pk}/"
    return [
        "/", "/collections/small/", run, f"/api/v1{run}charts/curve.svg", "/collections/small/comparison/",
        "/measures/",
        f"{run}ranking/", f"{run}status/", "/collections/small/what-if/", "/measures/AP/", "/measures/suggestions/",
        "/collections/small/board/",
    ]  # fmt: skip


BLOCKS = (
    "table|thead|tbody|tr|td|th|ul|ol|li|dl|dt|dd|div|p|section|form|label|select|option|h[1-6]"
)


def page(browser: Client, path: str, status: int = 200, **query: Any) -> str:
    answer = browser.get(path, query)
    assert answer.status_code == status, answer.content
    return squeezed(answer.content.decode())


def squeezed(html: str) -> str:
    """The page without the white space that no browser shows, however the lines of its template are broken."""
    return re.sub(rf"\s*(</?(?:{BLOCKS})\b[^>]*>)\s*", r"\1", " ".join(html.split()))


def text_of(html: str) -> str:
    """What a reader sees: no tags, single blanks."""
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def new_qrels(api: Any) -> None:
    """A second version of the judgements, under which nothing is evaluated yet."""
    assert upload(api, "collections/small/qrels/", QRELS + "3 0 y 1\n").status_code == 201


def test_every_page_of_a_public_collection_is_open_to_everybody(
    browser: Client, pages: list[str]
) -> None:
    for path in pages:
        answer = browser.get(path)
        assert answer.status_code == 200, path
        assert "default-src 'self'" in answer["Content-Security-Policy"]


def test_a_team_only_collection_is_not_there_for_strangers(
    browser: Client, pages: list[str], alice: User
) -> None:
    Collection.objects.update(visibility="team", name="Secret name")
    hidden = [path for path in pages if path != "/" and not path.startswith("/measures/")]
    for path in hidden:
        assert "Secret name" not in page(browser, path, 404)
    assert "Secret name" not in page(browser, "/")
    browser.force_login(alice)
    for path in hidden:
        page(browser, path)
    assert "Secret name" in page(browser, "/")


def test_a_deleted_run_is_not_there(browser: Client, board: tuple[Run, Run], api: Any) -> None:
    assert api.delete(f"/api/v1/runs/{board[0].pk}/").status_code == 204
    page(browser, f"/runs/{board[0].pk}/", 404)
    page(browser, f"/runs/{board[0].pk}/ranking/", 404)
    assert "good" not in page(browser, "/collections/small/")


def test_no_page_has_a_script_or_a_style_of_its_own(browser: Client, pages: list[str]) -> None:
    for path in [*pages, "/nowhere/"]:
        assert not SCRIPT_OR_STYLE.search(browser.get(path).content), path


def test_hostile_text_is_shown_as_text(browser: Client, submit: Submit) -> None:
    run = submit(METADATA + GOOD)
    Collection.objects.update(
        name=HOSTILE, description=HOSTILE, level_labels={HOSTILE: HOSTILE, "1": [HOSTILE]}
    )
    Run.objects.update(
        description=HOSTILE,
        metadata={HOSTILE: {"deep": [HOSTILE, {"deeper": HOSTILE}]}},
        tag=HOSTILE,
    )
    submit(POOR)
    paths = [
        "/",
        "/collections/small/",
        f"/runs/{run.pk}/",
        *(f"/runs/{run.pk}/{part}/" for part in ("topics", "curves", "parameters", "files")),
        f"/runs/{run.pk}/ranking/",
        "/collections/small/what-if/",
    ]
    for path in [
        *paths,
        "/collections/small/comparison/",
        f"/api/v1/runs/{run.pk}/charts/curve.svg",
    ]:
        html = page(browser, path)
        assert not SCRIPT_OR_STYLE.search(html.encode()), path
        assert "<img src=x" not in html, path
        assert "&lt;script&gt;" in html, path
    ET.fromstring(page(browser, f"/api/v1/runs/{run.pk}/charts/curve.svg"))


@pytest.mark.slow
def test_hostile_queries_are_shown_as_text(browser: Client, pages: list[str]) -> None:
    for path in pages:
        for name in (
            "measures",
            "measure",
            "sort",
            "order",
            "baseline",
            "runs",
            "depth",
            "offset",
            "test",
            "qrels",
        ):
            answer = browser.get(path, {name: f'">{HOSTILE}'}, follow=True)
            assert answer.status_code in {200, 400}, (path, name)
            if "json" not in answer["Content-Type"]:
                assert b"<script>" not in answer.content, (path, name)
                assert b"<img src=x" not in answer.content, (path, name)


def test_the_page_of_leaderboards_lists_them_and_says_what_is_simulated(
    browser: Client, collection: str
) -> None:
    Collection.objects.update(simulated=True)
    text = text_of(page(browser, "/collections/"))
    assert "Small simulated" in text
    assert "v1" in text


def test_the_page_of_leaderboards_counts_judged_topics_where_none_are_listed(
    browser: Client, collection: str
) -> None:
    Topic.objects.all().delete()
    assert re.search(
        r'<span title="judged; no list of topics was uploaded">\s*3</span>',
        page(browser, "/collections/"),
    )
    Collection.objects.update(blind=True)
    assert "judged;" not in page(browser, "/collections/")


def test_an_empty_site_tells_how_to_begin(browser: Client, alice: User) -> None:
    Run.objects.all().delete()
    Collection.objects.all().delete()
    assert "There are no public collections" in page(browser, "/")
    browser.force_login(alice)
    html = page(browser, "/")
    assert "/new-collection/" in html
    assert "http://testserver/api/v1" in html


def test_the_leaderboard_ranks_and_marks(browser: Client, board: tuple[Run, Run]) -> None:
    html = page(browser, "/collections/small/")
    assert html.index(">good</a>") < html.index(">poor</a>")
    assert html.count("<strong>1.0000</strong>") == 2
    assert "2 of 3 topics answered; the rest count 0" in html
    assert 'aria-sort="descending"' in html
    assert "?sort=nDCG%4010&amp;order=asc" in html
    assert "?sort=AP&amp;order=desc" in html


def test_the_leaderboard_sorts_the_other_way_round(browser: Client, board: tuple[Run, Run]) -> None:
    html = page(browser, "/collections/small/", sort="AP", order="asc", measures="AP,P@5")
    assert html.index(">poor</a>") < html.index(">good</a>")
    assert 'aria-sort="ascending"' in html
    assert "measures=AP%2CP%405" in html


def test_the_leaderboard_has_pages(browser: Client, board: tuple[Run, Run]) -> None:
    first = page(browser, "/collections/small/", limit=1)
    assert "1–1 of 2" in first
    assert "limit=1&amp;offset=1" in first
    second = page(browser, "/collections/small/", limit=1, offset=1)
    assert ">poor</a>" in second
    assert ">good</a>" not in second
    assert "No runs on this page" in page(browser, "/collections/small/", offset=100)


def test_a_stale_run_is_at_the_bottom_and_says_so(
    browser: Client, api: Any, submit: Submit
) -> None:
    submit(GOOD)
    new_qrels(api)
    html = page(browser, "/collections/small/")
    assert "stale, qrels v1" in html
    assert "1 run in the queue" in html
    assert 'name="runs"' not in html
    run = page(browser, f"/runs/{Run.objects.get().pk}/")
    assert 'class="answer"' not in run
    assert "stale, qrels v1" in run
    assert "no longer active" in run
    submit(POOR)
    html = page(browser, "/collections/small/")
    assert html.index(">poor</a>") > html.index(">good</a>")
    assert "stale, qrels" not in html


def test_a_run_of_an_older_engine_is_stale(browser: Client, board: tuple[Run, Run]) -> None:
    Evaluation.objects.filter(run=board[1]).update(engine_version="0")
    assert "stale, older engine" in page(browser, "/collections/small/")
    run = page(browser, f"/runs/{board[1].pk}/")
    assert "an older engine version" in run
    assert "no active judgements" not in run


def test_a_failed_run_says_so_on_the_board(browser: Client, board: tuple[Run, Run]) -> None:
    Evaluation.objects.filter(run=board[1]).update(state="failed", error_message="the file is gone")
    assert '<span class="label failed" title="the file is gone">failed</span>' in page(
        browser, "/collections/small/"
    )
    run = text_of(page(browser, f"/runs/{board[1].pk}/"))
    assert "Failed: the file is gone" in run


@pytest.mark.parametrize(
    ("name", "value"), [("measures", "foo"), ("sort", "foo"), ("order", "up"), ("offset", "-1")]
)
def test_a_leaderboard_that_cannot_be_read_says_why(
    browser: Client, collection: str, name: str, value: str
) -> None:
    html = page(browser, "/collections/small/", 400, **{name: value})
    assert 'role="alert"' in html
    assert "Submit a run" in html


def test_a_bad_measure_is_named_in_the_page(browser: Client, board: tuple[Run, Run]) -> None:
    for path in ("/collections/small/", f"/runs/{board[0].pk}/"):
        html = page(browser, path, 400, measures="nDCG@10,foo")
        assert "unknown measure &#x27;foo&#x27;" in html
        assert 'value="nDCG@10,foo"' in html
    assert "unknown measure" in page(browser, "/collections/small/comparison/", 400, measure="foo")


def test_a_collection_without_judgements_is_no_error(
    browser: Client, api: Any, submit: Submit
) -> None:
    run = submit(GOOD)
    Qrels.objects.update(active=False)
    assert "No judgements yet" in page(browser, "/collections/small/")
    assert "no active judgements" in page(browser, "/collections/small/comparison/")
    Evaluation.objects.all().delete()
    assert "no active judgements" in page(browser, f"/runs/{run.pk}/")


def test_a_run_page_shows_what_the_run_is(browser: Client, submit: Submit) -> None:
    run = submit(METADATA + GOOD.replace(" 2.0 ", " 3.0 "), description="A fine run.")
    html = "".join(page(browser, f"/runs/{run.pk}/{part}") for part in ("", "files/"))
    text = text_of(html)
    assert run.sha256 in text
    assert "Ties are broken by document id, descending" in text
    assert "A fine run." in text
    assert "Topics answered 3 of 3" in text
    assert f"Tied documents {run.tied_documents}" in text
    assert "research goal.years 2023, 2024" in text
    for warning in run.warnings["warnings"]:
        assert warning["message"][:20] in html.replace("&#x27;", "'")


def test_topics_sort_by_a_measure(browser: Client, board: tuple[Run, Run]) -> None:
    path = f"/runs/{board[1].pk}/topics/"

    def topics(**query: Any) -> list[str]:
        return re.findall(
            r'<th scope="row" class="fixed"><a [^>]*>\s*(\w+)', page(browser, path, **query)
        )

    assert topics() == ["1", "2", "3"]
    assert topics(sort="AP") == ["2", "1", "3"]
    assert topics(sort="AP", order="asc") == ["3", "1", "2"]
    assert topics(sort="P(rel=2)@5", order="asc", measures="AP") == ["1", "2", "3"]


def test_the_pages_and_forms_of_a_run_keep_its_parameters(
    browser: Client, board: tuple[Run, Run]
) -> None:
    path = f"/runs/{board[0].pk}/"
    query: dict[str, Any] = {"measures": "AP", "other": str(board[1].pk), "qrels": "1"}
    html = page(browser, f"{path}curves/", **query, depth=7, rel="1")
    query_text = f"measures=AP&amp;other={board[1].pk}&amp;qrels=1"
    for part in ("", "topics/", "curves/", "parameters/", "files/"):
        assert f'href="{path}{part}?{query_text}"' in html
        assert browser.get(f"{path}{part}", query).status_code == 200
    for name, value in ({**query, "depth": "7", "rel": "1"}).items():
        assert f'<input type="hidden" name="{name}" value="{value}">' in html


@pytest.mark.parametrize(
    ("query", "address"),
    [
        ("by=AP&measures=P@5", "?measures=AP"),
        ("by=AP&other=x", "topics/?measures=AP&other=x"),
        ("sort=AP&order=asc&offset=5", "topics/?sort=AP&order=asc&offset=5"),
        ("measure=CG&depth=5&rel=all&sort=AP&qrels=1", "curves/?measures=CG&qrels=1&depth=5&rel=all"),
    ],
)  # fmt: skip
def test_older_addresses_of_a_run_lead_to_its_pages(
    browser: Client, board: tuple[Run, Run], query: str, address: str
) -> None:
    path = f"/runs/{board[0].pk}/"
    answer = browser.get(f"{path}?{query}")
    assert (answer.status_code, unquote(answer["Location"])) == (302, f"{path}{address}")


def test_the_curve_of_a_run_is_that_of_the_first_measure_with_one(
    browser: Client, board: tuple[Run, Run]
) -> None:
    path = f"/runs/{board[0].pk}/curves/"
    text = text_of(page(browser, path, measures="AP,P@5"))
    assert "AP has no curve; this is the curve of P." in text
    assert "this is the curve of nDCG." in text_of(page(browser, path, measures="AP"))


@pytest.mark.slow
def test_every_link_leads_somewhere(browser: Client, pages: list[str]) -> None:
    run = pages[2]
    sorted_board = "/collections/small/?sort=AP&order=asc&measures=AP,P@5"
    kinds: set[tuple[str, ...]] = set()
    for path in [
        *pages,
        f"{run}curves/?measures=P(rel=2)@5",
        f"{run}topics/?sort=AP",
        sorted_board,
        "/collections/small/comparison/?measure=AP",
    ]:
        html = page(browser, path)
        links = (
            set(re.findall(r'(?:href|src|srcset)="([^"]*)"', html))
            if not path.endswith(".svg")
            else set()
        )
        links = {
            link for link in links if "#" not in link[:1] and not link.endswith((".pdf", ".png"))
        }
        for link in sorted(link for link in links if not link.startswith(("/static/", "/admin/"))):
            target = link.replace("&amp;", "&")
            address = path.partition("?")[0] + target if target.startswith("?") else target
            # One of those that differ in values alone.
            where, _, query = address.partition("?")
            kind = (where, *sorted(re.findall(r"(?:^|&)(\w+)=", query)))
            if kind in kinds:
                continue
            kinds.add(kind)
            answer = browser.get(address)
            to_login = answer.status_code == 302 and answer["Location"].startswith("/login/")
            assert answer.status_code == 200 or to_login, (path, link)
            assert not answer.streaming or b"".join(answer.streaming_content)


def test_runs_ticked_on_the_leaderboard_are_compared(
    browser: Client, board: tuple[Run, Run]
) -> None:
    ids = [str(run.pk) for run in board]
    assert "2 runs selected" in page(browser, "/collections/small/comparison/", runs=ids)
    html = page(browser, "/collections/small/comparison/", runs=ids[:1])
    assert "a comparison needs at least two evaluated runs; found 1" in html
    assert 'role="alert"' not in html


@pytest.mark.parametrize(
    "query",
    [{"baseline": "x"}, {"baseline": "0" * 32}, {"test": "x"}, {"correction": "x"}, {"alpha": "2"}],
)
def test_a_comparison_that_cannot_be_made_says_why(
    browser: Client, board: tuple[Run, Run], query: dict[str, str]
) -> None:
    assert 'role="alert"' in page(browser, "/collections/small/comparison/", 400, **query)


def test_what_is_not_there_is_a_page(browser: Client, alice: User) -> None:
    assert "Log in" in page(browser, "/nowhere/", 404)
    browser.force_login(alice)
    assert "Log out" in page(browser, "/nowhere/", 404)
    for path in (
        "/nowhere/",
        "/collections/nowhere/",
        "/runs/00000000-0000-0000-0000-000000000000/",
    ):
        assert "Not found" in page(browser, path, 404)
    assert browser.post("/").status_code == 405


def test_a_silent_database_is_a_page_that_asks_it_nothing(
    browser: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(user: Any) -> Any:
        raise OperationalError("gone")

    browser.force_login(alice)
    monkeypatch.setattr("metrics.pages.home.collections_of", silent)
    assert "The database does not answer" in page(browser, "/", 503)


@pytest.mark.parametrize(
    ("number", "most"),
    # The page of pairs with the look for attributes of topics.
    [(0, 12), (1, 26), (2, 35), (3, 6), (4, 32), (5, 0), (6, 9), (7, 5), (8, 10), (9, 0), (10, 0)],
    ids=[
        "home",
        "board",
        "run",
        "svg",
        "pairs",
        "measures",
        "ranking",
        "status",
        "what-if",
        "measure",
        "suggestions",
    ],
)
def test_a_page_asks_the_database_little(
    browser: Client, pages: list[str], django_assert_max_num_queries: Any, number: int, most: int
) -> None:
    with django_assert_max_num_queries(most):
        page(browser, pages[number])


def test_more_runs_need_no_more_queries(
    browser: Client, submit: Submit, django_assert_max_num_queries: Any
) -> None:
    for number in range(6):
        submit(GOOD, tag=f"run-{number}")
    with django_assert_max_num_queries(26):
        page(browser, "/collections/small/")


@pytest.fixture
def admin(browser: Client, db: None) -> Client:
    browser.force_login(User.objects.create_superuser("root"))
    return browser


def test_every_list_of_the_administration_opens(admin: Client, board: tuple[Run, Run]) -> None:
    names = ["user", "team", "collection", "qrels", "run", "apitoken"]
    for path in [*(f"/admin/runs/{name}/" for name in names), "/admin/metrics/evaluation/"]:
        page(admin, path, q="small")
        listed = page(admin, path)
        link = re.search(rf'<th class="field-[^>]*><a href="({path}[^"]+)"', listed)
        assert link, path
        page(admin, link[1])


def test_the_administration_never_shows_a_digest(admin: Client, alice: User) -> None:
    token = ApiToken.objects.issue(user=alice, name="secret")[0]
    for path in ("/admin/runs/apitoken/", f"/admin/runs/apitoken/{token.pk}/change/"):
        assert token.digest not in page(admin, path)
