"""Pages, too, pass over nothing: what they do not read is named above the page, and no link of theirs asks for it."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from django.http import QueryDict
from django.test import Client
from django.urls import Resolver404, resolve

from metrics.charts.boards.charts import COLLECTION_CHART_READS
from metrics.charts.sessions.charts import SESSION_CHART_READS
from metrics.charts.values.charts import RUN_CHART_READS
from runs.models import Run, User
from runs.web.parameters import LISTS, parameters_read
from tests.conftest import GOOD, POOR
from tests.shared_data import alice, api, collection, module_data, submit
from tests.web.access.addresses import ADDRESSES, PAGES
from tests.web.worlds import People, run_ids

__all__ = ["alice", "api", "collection", "module_data", "submit"]

pytestmark = pytest.mark.words
# Pages of share links are not there without what opens them; tests/web/test_shares.py asks them.
READING = [
    name
    for name in PAGES
    if "GET" in ADDRESSES[name].methods
    and "share" not in ADDRESSES[name].parameters
    # They lead to a provider and back, where one is set: tests/web/test_provider.py.
    and name not in ("provider-login", "provider-callback")
]
# Pieces of pages and scripts have no place for a note.
PIECES = (
    "board-piece", "stored-comparison-status", "run-status", "session-set-status", "measure-suggestions",
    "snapshot-file", "client-wheel",
)  # fmt: skip


def test_every_page_names_what_it_does_not_read_and_is_shown(
    people: People, values: dict[str, Any], settings: Any
) -> None:
    # Pages that there are only where the server sends mail.
    settings.EVALHUB_REGISTRATION = True
    settings.EVALHUB_MAIL_URL, settings.EVALHUB_URL = "smtp://127.0.0.1:1", "https://x.example"
    browser = people.browsers["staff"]
    for name in READING:
        path = ADDRESSES[name].path(values)
        answer, whole = browser.get(f"{path}?nonsense=1"), browser.get(path)
        assert answer.status_code == 400, name
        if name in PIECES:
            continue
        html = answer.content.decode()
        assert html.count("Unknown parameter &#x27;nonsense&#x27;; ") == 1, name
        assert not answer.has_header("ETag"), name
        if whole.status_code == 200:
            title = re.search("<h1.*?</h1>", whole.content.decode(), re.DOTALL)
            assert title is not None
            assert title[0] in html, name
            assert "nonsense=1" not in html, name


def test_no_page_does_what_is_asked_with_what_it_does_not_read(
    people: People, values: dict[str, Any]
) -> None:
    for name in (name for name in PAGES if ADDRESSES[name].changes):
        path = ADDRESSES[name].path(values)
        for query, form in (("?nonsense=1", {}), ("", {"nonsense": "1"})):
            answer = people.browsers["staff"].post(f"{path}{query}", form)
            assert answer.status_code == 400, (name, query)
            assert "nonsense" in answer.content.decode(), (name, query)


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_probes_read_no_parameter(client: Client, db: None, path: str) -> None:
    answer = client.get(f"{path}?verbose=1")
    assert (answer.status_code, answer.json()["code"]) == (400, "unknown_parameter")


def test_the_nearest_parameter_is_named_and_the_rest_is_kept(
    browser: Client, two_runs: list[Run]
) -> None:
    answer = browser.get("/collections/small/", {"measure": "AP", "sort": "P@3"})
    html = answer.content.decode()
    assert answer.status_code == 400
    assert "Unknown parameter &#x27;measure&#x27;; did you mean &#x27;measures&#x27;?" in html
    assert "Ranked by P@3" in html
    assert "It is ignored." in html
    twice = browser.get("/collections/small/?sort=AP&sort=P@3&foo=1")
    assert (
        "Parameter &#x27;sort&#x27; is given 2 times; it takes one value" in twice.content.decode()
    )
    assert "They are ignored." in twice.content.decode()


def test_a_note_does_not_come_from_the_memory_of_answers(
    browser: Client, two_runs: list[Run]
) -> None:
    for _ in range(2):
        assert browser.get("/collections/small/?measure=AP").status_code == 400
        assert "Unknown parameter" not in browser.get("/collections/small/").content.decode()


def test_lists_add_up_on_pages_too(browser: Client, two_runs: list[Run]) -> None:
    html = browser.get("/collections/small/?measures=RR&measures=P@3").content.decode()
    assert len(re.findall(r'id="sort-\d"', html)) == 2


def known(path: str, method: str = "GET") -> set[str] | None:
    """The parameters that an address of ours reads, None where it is none of ours."""
    try:
        match = resolve(path)
    except Resolver404:
        return None
    if match.namespace == "admin":
        return None
    view = getattr(match.func, "cls", None)
    names = set(getattr(match.func, "reads", ()))
    if view is not None:
        instance = view()
        instance.request, instance.args, instance.kwargs = None, (), {}
        names |= set(parameters_read(instance, method))
    reads = {
        "run-chart": RUN_CHART_READS,
        "collection-chart": COLLECTION_CHART_READS,
        "session-chart": SESSION_CHART_READS,
    }.get(str(match.url_name))
    if reads:
        others = {
            name for read in reads.values() for name in (parameter.name for parameter in read)
        }
        names -= others - {parameter.name for parameter in reads[match.kwargs["chart"]]}
        names |= {"scores"} & others
    return names


LINKS = re.compile(r'(?:href|src|srcset|action|hx-get|data-[a-z-]+)="([^"]*)"')
FORMS = re.compile(r"<form([^>]*)>(.*?)</form>", re.DOTALL)
FIELD = re.compile(r'<(?:input|select|textarea|button)[^>]* name="([^"]*)"')


def unread(page: str, html: str, looked_at: set[str]) -> list[str]:
    """What the links, the pictures and the forms of a page ask for that is not read there."""
    problems = []
    addresses = [(urljoin(page, unescape(link)), ()) for link in LINKS.findall(html)]
    for attributes, inside in FORMS.findall(html):
        if 'method="post"' not in attributes:
            target = re.search(r'action="([^"]*)"', attributes)
            addresses.append(
                (
                    urljoin(page.partition("?")[0], unescape(target[1] if target else "")),
                    FIELD.findall(inside),
                )
            )
    for where, fields in addresses:
        parts = urlsplit(where)
        names = known(parts.path) if parts.path.startswith("/") and not parts.netloc else None
        if names is None:
            continue
        looked_at.add(where)
        query = QueryDict(parts.query)
        twice = {name for name, values in query.lists() if len(values) > 1 and name not in LISTS}
        problems += [
            f"{page}: {where}: {name}"
            for name in {*query, *fields} - names | twice
            if not re.match(r"g\d", name)
        ]
    return problems


def test_no_link_no_picture_and_no_form_asks_for_what_is_not_read(
    people: People, values: dict[str, Any]
) -> None:
    a, b = run_ids("one")
    both = f"runs={a},{b}"
    more = {
        "collection-page": ["?measures=AP,P@3&sort=P@3&order=asc&limit=1&filter=good", f"?statistics=all&baseline={a}",
                            "?measures=foo", "?filter=x=1", "?scores=float32&seed=3&test=sign"],
        "comparison-page": [f"?{both}", f"?baseline={a}&tests=sign,paired_t&tab=AP", "?measure=P@3&test=wilcoxon",
                            f"?{both}&topic=1&curve=DCG&depth=5&scores=float64"],
        "stored-comparison-page": ["?sort=p_value"],
        "run-page": ["?measures=AP&scores=float64&qrels=1"],
        "run-topics-page": [f"?measures=AP&other={b}&sort=AP&scores=float64&qrels=1"],
        "run-curves-page": ["?measures=DCG&depth=5&rel=all&scores=float64&qrels=1"],
        "ranking-page": ["?topic=1&scores=float64"],
        "what-if-page": ["?family=DCG&dis=jk&b=3&g1=2"],
        "session-set-page": ["?system=A&least=1&measure=sDCG&qrels=1"],
        "session-page": ["?documents=1&measure=sDCG"],
        "sessions-page": ["?measure=sDCG&judged_by=topic"],
        "measures-page": ["?search=ndcg"],
    }  # fmt: skip
    wrong: list[str] = []
    looked_at: set[str] = set()
    for name in READING:
        path = ADDRESSES[name].path(values)
        for query in ["", *more.get(name, [])]:
            answer = people.browsers["staff"].get(path + query)
            if answer.status_code not in (200, 400) or name == "client-wheel":
                continue
            html = answer.content.decode()
            assert "Unknown parameter" not in html, (name, query)
            wrong += unread(path + query, html, looked_at)
    assert len([address for address in looked_at if "?" in address]) > 200
    assert not wrong, "\n".join(sorted(set(wrong)))


@pytest.fixture
def browser(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


@pytest.fixture(scope="module")
def two_runs(submit: Any) -> list[Run]:
    return [submit(GOOD), submit(POOR)]


def test_the_board_stays_where_its_filter_cannot_be_read(
    browser: Client, two_runs: list[Run]
) -> None:
    answer = browser.get(
        "/collections/small/", {"filter": "tag=BM25", "measures": "AP", "offset": "0"}
    )
    html = answer.content.decode()
    assert answer.status_code == 400
    assert "write tag:BM25 for tag=BM25" in html
    assert re.search(r'name="filter"[^>]* value="tag=BM25"[^>]* aria-invalid="true"', html)
    assert [run.tag for run in two_runs if f">{run.tag}<" in html] == ["good", "poor"]
    assert "Ranked by AP" in html
    assert not re.search(r'href="[^"]*filter=tag', html)


@pytest.mark.parametrize(
    ("query", "message", "field"),
    [
        (
            {"measures": "nDGC@10,AP"},
            "unknown measure 'nDGC@10'; did you mean nDCG@10?",
            "measures",
        ),
        ({"measures": "mAP"}, "unknown measure 'mAP'; did you mean AP?", "measures"),
        (
            {"add": "recal@100", "measures": "AP"},
            "unknown measure 'recal@100'; did you mean R@100?",
            "add",
        ),
        ({"sort": "mAP@10", "measures": "AP"}, "unknown measure 'mAP@10'; did you mean AP@10?", ""),
    ],
)
def test_the_board_stays_where_a_measure_is_unknown(
    browser: Client, two_runs: list[Run], query: dict[str, str], message: str, field: str
) -> None:
    answer = browser.get("/collections/small/", query)
    html = unescape(answer.content.decode())
    assert answer.status_code == 400
    assert message in html
    assert re.search(r'<a href="/measures/">All measures</a></p>', html)
    assert "/api/v1/measures/" not in html
    assert [run.tag for run in two_runs if f">{run.tag}<" in html] == ["good", "poor"]
    if field:
        assert f'name="{field}"' in html
        assert re.search(
            rf'name="{field}"[^>]* value="{re.escape(query[field])}"[^>]* aria-invalid="true"', html
        )


def test_several_wrong_parameters_are_each_told(browser: Client, two_runs: list[Run]) -> None:
    wrong = {"filter": "k1:0.9", "measures": "foo", "order": "up", "limit": "0"}
    answer = browser.get("/collections/small/", wrong)
    html = unescape(answer.content.decode())
    assert answer.status_code == 400
    for message in (
        "there is no field k1:",
        "'foo'",
        "order='up': order is one of desc, asc",
        "limit=0: limit is a whole",
    ):
        assert message in html, message
    assert ">good<" in html


def test_the_files_of_a_board_without_statistics_can_be_had(
    browser: Client, two_runs: list[Run]
) -> None:
    html = browser.get("/collections/small/?statistics=none&test=sign&alpha=0.1").content.decode()
    links = [unescape(link) for link in re.findall(r'href="([^"]*leaderboard/[^"]*)"', html)]
    assert len(links) == 5
    assert [browser.get(link).status_code for link in links] == [200] * 5
