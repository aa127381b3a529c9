"""Share links: one object, read-only, ended at once by whatever ends them, and their secret
nowhere."""

from __future__ import annotations

import logging
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from html import unescape
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qs

import pytest
from django.core import signing
from django.test import Client, override_settings
from django.utils import timezone

from evalhub.operating.backup import saved_models
from evalhub.operating.logs import JsonFormatter, LineFormatter
from runs.models import AuditEvent, Collection, Disclosure, Membership, Run, ShareLink, User
from runs.models.accounts.accounts import digest_of_secret
from tests.conftest import client_of
from tests.web.shared_people import module_data, module_people, people, run
from tests.web.test_pages import text_of
from tests.web.worlds import People, body_of, make_campaign, make_comparison, make_share

__all__ = ["module_data", "module_people", "people", "run"]

pytestmark = pytest.mark.words

API = "/api/v1/shares/"
# Until then names of teams are hidden.
VEIL = datetime(2100, 8, 1, tzinfo=UTC)


@pytest.fixture
def hidden(people: People, run: str) -> str:
    """The id of a run of a collection that only its owners see."""
    Collection.objects.update(visibility="private")
    return run


def make(people: People, role: str = "owner", **fields: Any) -> Any:
    """Share the leaderboard of the collection, or what the fields say; those that are empty are not
    sent."""
    body = {"kind": "leaderboard", "collection": "one", **fields}
    return people.api[role].post(
        API, {name: text for name, text in body.items() if text}, format="json"
    )


def opened(people: People, **fields: Any) -> tuple[Client, str, str]:
    """A browser without an account that has opened a new link, the page's address, and the secret."""
    link = make(people, **fields).json()
    browser = Client()
    address = link["url"].removeprefix("http://testserver")
    answer = browser.get(address)
    assert answer.status_code == 302, answer.content
    return browser, answer["Location"], address.split("/")[3]


def test_a_link_opens_one_leaderboard_without_an_account(people: People, hidden: str) -> None:
    response = make(people, query="filter=tag:good&measures=AP,P@3&chart=means")
    created_link = response.json()
    assert (response.status_code, response["Cache-Control"]) == (201, "no-store")
    assert created_link["query"] == "measures=AP%2CP%403&filter=tag%3Agood&chart=means"
    remaining = timezone.datetime.fromisoformat(created_link["expires_at"]) - timezone.now()  # type: ignore[attr-defined]
    assert timedelta(days=29) < remaining <= timedelta(days=30)
    assert re.fullmatch(
        rf"http://testserver/s/{created_link['key']}/[\w-]{{32}}/", created_link["url"]
    )
    secret = created_link["url"].split("/")[5]
    assert ShareLink.objects.get().digest == digest_of_secret(secret)
    browser = Client()
    redirect = browser.get(f"/s/{created_link['key']}/{secret}/?utm_source=mail")
    page = f"/shared/{created_link['key']}/"
    assert (redirect.status_code, redirect["Location"]) == (302, page)
    cookie = redirect.cookies["evalhub_share"]
    assert (cookie["path"], cookie["httponly"], cookie["samesite"]) == (page, True, "Lax")
    assert secret not in str(redirect.cookies)
    for answer in (redirect, browser.get(page)):
        assert (answer["Referrer-Policy"], answer["X-Robots-Tag"]) == (
            "no-referrer",
            "noindex, nofollow",
        )
    html = browser.get(page).content.decode()
    assert "good" in html
    assert "poor" not in html
    assert "P@3" in html
    # No way on: its own exports and charts, styles, and places on the page.
    links = set(re.findall(r'(?:href|action|src|srcset|hx-get)="([^"]+)"', html))
    assert {link for link in links if not link.startswith((page, "/static/", "#", "?"))} == set()
    for kind, words in (
        ("csv", b"good"),
        ("tex", b"booktabs"),
        ("md", b"| good"),
        ("trec_eval", b"good"),
    ):
        file = browser.get(f"{page}export/{kind}/")
        assert (file.status_code, words in body_of(file)) == (200, True), kind
        assert file["Content-Disposition"].startswith("attachment")
    odd = browser.get(f"{page}?nonsense=1")
    assert (odd.status_code, odd.content.count(b"Unknown parameter &#x27;nonsense&#x27;")) == (
        400,
        1,
    )
    assert browser.get(f"{page}charts/means.svg?theme=dark").content.startswith(b"<svg")
    # Nothing else opens, neither with the cookie nor with a path that it does not cover.
    for path in ("/collections/one/", f"/runs/{hidden}/", "/api/v1/collections/one/leaderboard/",
                 f"{page}export/json/", f"{page}charts/what-if.svg", f"{page}charts/means.json"):  # fmt: skip
        assert browser.get(path).status_code == 404, path
    assert Client().get(page).status_code == 404
    link = ShareLink.objects.get()
    assert (link.opened, link.last_opened_on) == (1, timezone.now().date())


@pytest.mark.queries
def test_a_link_opens_one_comparison_or_one_run(people: People, hidden: str) -> None:
    runs = list(Run.objects.filter(collection__slug="one").values_list("pk", flat=True))
    stored = make_comparison("one")
    pair = f"runs={runs[0]},{runs[1]}&tests=sign"
    for fields, words in (
        ({"kind": "comparison", "query": pair}, "Sign test"),
        (
            {"kind": "comparison", "query": f"{pair},tost,bayes_t&margin=0.5&rope=0.2"},
            "Both: they differ by less",
        ),
        (
            {"kind": "comparison", "query": f"{pair},bayes_t&rope=0.2"},
            "practically equal: at most 0.2",
        ),
        ({"kind": "comparison", "query": "tests=tost,bayes_t&margin=0.5"}, "Paired t test"),
        ({"kind": "comparison"}, "Paired t test"),
        ({"kind": "comparison", "collection": "", "comparison": stored}, "Paired t test"),
        (
            {"kind": "run", "collection": "", "run": hidden, "query": "measures=P@3"},
            "Topic by topic",
        ),
    ):
        browser, page, _ = opened(people, **fields)
        html = browser.get(page).content.decode()
        assert words in html, fields
        assert "good" in html
        links = set(re.findall(r'(?:href|action|src|srcset|hx-get)="([^"]+)"', html))
        assert {
            link for link in links if not link.startswith((page, "/static/", "#", "?"))
        } == set()
        for link in sorted(link for link in links if link.startswith(page)):
            if "theme" not in link and "png" not in link and "pdf" not in link:
                assert len(body_of(browser.get(link))) > 20, link
        assert browser.get(f"{page}export/file/").status_code == 404
    assert "P@3" in html


@pytest.mark.queries
def test_whatever_ends_a_link_ends_it_at_once(people: People, hidden: str) -> None:
    browser, page, secret = opened(people, query="chart=means")
    link = ShareLink.objects.get()
    address = f"/s/{link.key}/{secret}/"

    def answers() -> list[tuple[int, str]]:
        """Of the link itself, its page, an export and a chart."""
        bodies = []
        for path in (address, page, f"{page}export/csv/", f"{page}charts/means.svg"):
            answer = browser.get(path)
            match = re.search(r"</h1>\s*<p>(.*?)</p>", answer.content.decode(), re.DOTALL)
            bodies.append((answer.status_code, match[1] if match else ""))
        return bodies

    # Blind: one text for all, without a name; after the release it works again.
    Collection.objects.update(blind=True)
    assert {status for status, _ in answers()} == {403}
    assert {text for _, text in answers()} == {
        "The judgements of this collection are blind until the organisers release them"
    }
    blind = browser.get(page).content.decode()
    assert not [name for name in ("A collection", "good", "owner", "lab") if name in blind]
    assert people.api["owner"].post("/api/v1/collections/one/release/").status_code == 200
    assert [status for status, _ in answers()] == [302, 200, 200, 200]
    # The maker is no organiser any more, and is one again.
    Membership.objects.filter(user__username="owner", team__slug="lab").update(role="member")
    assert {status for status, _ in answers()} == {410}
    Membership.objects.filter(user__username="owner", team__slug="lab").update(role="owner")
    assert [status for status, _ in answers()][1] == 200
    User.objects.filter(username="owner").update(is_active=False)
    assert {status for status, _ in answers()} == {410}
    User.objects.filter(username="owner").update(is_active=True)
    # Expired, and revoked.
    ShareLink.objects.update(expires_at=timezone.now())
    assert {text.split(";")[0] for _, text in answers()} == {"This link has expired"}
    ShareLink.objects.update(expires_at=timezone.now() + timedelta(days=1))
    assert people.api["participant"].delete(f"{API}{link.key}/").status_code == 404
    assert people.api["staff"].delete(f"{API}{link.key}/").status_code == 204
    assert people.api["owner"].delete(f"{API}{link.key}/").status_code == 404
    assert {text.split(";")[0] for _, text in answers()} == {"This link was revoked"}
    # Without the secret it is not even told that there was one.
    wrong = Client().get(f"/s/{link.key}/wrong/")
    never = Client().get("/s/00000000/wrong/")
    assert (wrong.status_code, wrong.content) == (404, never.content)


@pytest.mark.queries
def test_the_run_of_a_link_is_withdrawn_or_of_another_team(people: People, hidden: str) -> None:
    Collection.objects.update(visibility="public")
    guest = people.users["participant"]
    collection = Collection.objects.get(slug="one")
    link = make(people, "participant", kind="run", collection="", run=hidden).json()
    browser = Client()
    page = browser.get(link["url"])["Location"]
    assert browser.get(page).status_code == 200
    Membership.objects.filter(user=guest, team__slug="guests").delete()
    assert browser.get(page).status_code == 410
    _, secret = make_share(people, "one", kind="run", target=hidden, collection=collection)
    again = ShareLink.objects.latest("pk")
    path = browser.get(f"/s/{again.key}/{secret}/")["Location"]
    assert browser.get(path).status_code == 200
    Run.objects.filter(pk=hidden).update(deleted_at=timezone.now())
    assert browser.get(path).status_code == 404


@pytest.mark.queries
@pytest.mark.parametrize(
    ("role", "fields", "status", "pointer"),
    [
        ("participant", {}, 403, None), ("member", {"kind": "comparison"}, 403, None),
        ("participant", {"kind": "run", "run": "{run}", "collection": ""}, 201, None),
        ("member", {"kind": "run", "run": "{run}", "collection": ""}, 403, None),
        ("owner", {"kind": "folder"}, 400, "/kind"), ("owner", {"run": "{run}"}, 400, "/run"),
        ("owner", {"kind": "run", "run": "{run}"}, 400, "/collection"),
        ("owner", {"kind": "run", "collection": ""}, 400, "/run"), ("owner", {"collection": "none"}, 404, None),
        ("owner", {"collection": ""}, 400, "/collection"), ("owner", {"query": "filter=foo:x"}, 400, "/query"),
        ("owner", {"kind": "comparison", "query": "filter=x"}, 400, "/query"),
        ("owner", {"expires_at": "2020-01-01T00:00Z"}, 400, "/expires_at"),
        ("owner", {"expires_at": "2999-01-01T00:00Z"}, 400, "/expires_at"),
    ],
)  # fmt: skip
def test_who_shares_what(
    people: People, run: str, role: str, fields: dict[str, Any], status: int, pointer: str | None
) -> None:
    named = {name: text.format(run=run) for name, text in fields.items()}
    answer = make(people, role, **named)
    assert answer.status_code == status, answer.content
    assert ShareLink.objects.count() == (status == 201)
    if pointer:
        assert answer.json()["errors"][0]["pointer"] == pointer


@pytest.mark.queries
def test_lists_and_limits(people: People, run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runs.services.sharing.shares.MAX_SHARES", 1)
    assert make(people, "participant", kind="run", collection="", run=run).status_code == 201
    assert make(people).status_code == 201
    full = make(people)
    assert (full.status_code, full.json()["code"]) == (409, "too_many_shares")
    kinds = {
        role: [row["kind"] for row in people.api[role].get(API).json()["results"]]
        for role in ("participant", "owner", "other")
    }
    assert kinds == {"participant": ["run"], "owner": ["leaderboard", "run"], "other": []}
    assert [
        row["kind"] for row in people.api["owner"].get(f"{API}?kind=run").json()["results"]
    ] == ["run"]
    weak = client_of(people.users["owner"], ["read", "submit"])
    assert (
        weak.post(API, {"kind": "leaderboard", "collection": "one"}, format="json").status_code
        == 403
    )
    assert ShareLink in saved_models()


@pytest.mark.queries
def test_the_secret_is_in_no_log_no_page_and_no_event(
    people: People, hidden: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither where the link works, nor where it is refused, nor where the server breaks before its
    view."""
    caplog.set_level(logging.DEBUG)
    browser, page, secret = opened(people)
    key = ShareLink.objects.get().key
    texts: list[str] = [browser.get(page).content.decode()]
    for path in (
        f"/s/{key}/{secret}",
        f"/s/{key}/{secret}/",
        f"/s/{key}/x{secret}/",
        f"/s/{key}/{secret}/more/",
        f"/s//{key}/{secret}/",
        f"/s///{key}//{secret}//",
    ):
        for host in ("testserver", "elsewhere"):
            answer = browser.get(path, headers={"Host": host})
            texts += [str(answer.headers), answer.content.decode()]
        texts.append(browser.post(path).content.decode())
    # No share links, and their pages repeat the address; the log does not.
    for path in (f"/s/./{key}/{secret}/", f"/x/s/{key}//{secret}/"):
        assert browser.get(path).status_code == 404
    ShareLink.objects.update(revoked_at=timezone.now())
    texts.append(Client().get(f"/s/{key}/{secret}/").content.decode())
    with override_settings(EVALHUB_ADDRESS_RATE=1):
        texts += [Client().get(f"/s/{key}/{secret}/").content.decode() for _ in range(3)]
    shares = people.browsers["owner"].get("/shares/").content.decode()
    assert key in shares
    trail = str(list(AuditEvent.objects.values()))
    assert key in trail
    lines = [
        form().format(record)
        for record in caplog.records
        for form in (LineFormatter, JsonFormatter)
    ]
    assert any(f"/s/{key}/" in line for line in lines)
    for text in (*texts, shares, trail, *lines):
        assert secret not in text


def test_guesses_are_limited_and_cookies_signed(people: People, hidden: str) -> None:
    _, page, secret = opened(people)
    key = ShareLink.objects.get().key
    with override_settings(EVALHUB_LOGIN_RATE=2):
        statuses = [Client().get(f"/s/{key}/guess{number}/").status_code for number in range(4)]
        assert statuses == [404, 404, 429, 429]
        # The right secret opens it all the same.
        assert Client().get(f"/s/{key}/{secret}/").status_code == 302
    for value in ("x", signing.get_cookie_signer(salt="other").sign(digest_of_secret(secret)[:32])):
        forged = Client()
        forged.cookies["evalhub_share"] = value
        assert forged.get(page).status_code == 404
    # The cookie of one link opens no other.
    another = make(people).json()["key"]
    browser = Client()
    browser.get(f"/s/{key}/{secret}/")
    browser.cookies["evalhub_share"]["path"] = "/"
    assert browser.get(f"/shared/{another}/").status_code == 404


def test_the_page_says_who_sees_makes_a_link_once_and_revokes_it(people: People, run: str) -> None:
    browser = people.browsers["owner"]
    board = browser.get("/collections/one/?filter=tag:good").content.decode()
    address = re.search(r'href="(/shares/\?[^"]+)">Address and share link<', board)
    assert address
    assert "Everyone can see this" in board
    open_page = browser.get(address[1].replace("&amp;", "&")).content.decode()
    assert "http://testserver/collections/one/?filter=tag%3Agood" in open_page
    assert "Create a link" not in open_page
    Collection.objects.update(visibility="team")
    dialog = browser.get(address[1].replace("&amp;", "&")).content.decode()
    assert "Members of team lab can see this" in " ".join(dialog.split())
    fields = dict(
        re.findall(r'<input type="hidden" name="(kind|collection|query)" value="([^"]*)"', dialog)
    )
    answer = browser.post("/shares/", {**fields, "days": "7", "action": "create"})
    assert answer.status_code == 201, answer.content
    link = ShareLink.objects.get()
    match = re.search(rf"http://testserver(/s/{link.key}/[\w-]+/)", answer.content.decode())
    assert match
    assert Client().get(match[1]).status_code == 302
    assert link.expires_at < timezone.now() + timedelta(days=8)
    assert match[1] not in browser.get("/shares/").content.decode()
    assert (
        people.browsers["member"]
        .post("/shares/", {"action": "revoke", "key": link.key})
        .status_code
        == 404
    )
    assert browser.post("/shares/", {"action": "revoke", "key": link.key}).status_code == 303
    assert "revoked" in browser.get("/shares/").content.decode()
    for path in (f"/runs/{run}/", "/collections/one/comparison/"):
        assert 'href="/shares/?kind=' in browser.get(path).content.decode(), path


@pytest.mark.queries
def test_organisers_see_and_revoke_the_links_of_others(people: People, run: str) -> None:
    make(people, "participant", kind="run", collection="", run=run)
    link = ShareLink.objects.get()
    listed = {role: text_of(people.browsers[role].get("/shares/").content.decode())
              for role in ("participant", "owner", "staff", "member", "other")}  # fmt: skip
    assert [role for role, text in listed.items() if link.key in text] == [
        "participant",
        "owner",
        "staff",
    ]
    assert f"{link.key} you " in listed["participant"]
    assert f"{link.key} participant " in listed["owner"]
    statuses = [
        people.browsers[role].post("/shares/", {"action": "revoke", "key": link.key}).status_code
        for role in ("member", "other", "owner", "participant")
    ]
    assert statuses == [404, 404, 303, 404]
    assert people.browsers["participant"].get("/shares/").content.decode().count("revoked") == 1


@pytest.mark.queries
@pytest.mark.parametrize(
    ("state", "words", "works"),
    [
        ({}, "Everyone can see this, without an account.", None),
        ({"visibility": "team"}, "Members of team lab can see this.", "may no longer share this."),
        ({"visibility": "private"}, "Only owners of team lab can see this.", "may no longer share this."),
        ({"blind": True}, "Only the organisers can see this until the judgements are", "released to everyone."),
        ({"blind": True, "shown_to": Disclosure.TEAMS},
         "Only the organisers can see this until the judgements are released.", "released to everyone."),
        ({"blind": True, "shown_to": Disclosure.PARTICIPANTS},
         "The organisers and the participants of its campaigns can see this.", "released to everyone."),
        ({"veiled_until": VEIL}, "while names of teams are hidden, until 1 Aug 2100, 00:00 UTC.", "are hidden."),
        ({"veiled_until": VEIL, "blind": True, "shown_to": Disclosure.PARTICIPANTS},
         "while names of teams are hidden, until 1 Aug 2100, 00:00 UTC.", "released to everyone."),
        ({"veiled_until": VEIL, "blind": True}, "until 1 Aug 2100, 00:00 UTC at least.", "released to everyone."),
    ],
)  # fmt: skip
def test_who_sees_something_is_said_in_every_state(
    people: People, run: str, state: dict[str, Any], words: str, works: str | None
) -> None:
    make_campaign(people, "one", run)
    Collection.objects.filter(slug="one").update(**state)
    for path in ("/collections/one/", f"/runs/{run}/", "/shares/?kind=leaderboard&collection=one"):
        assert words in text_of(people.browsers["owner"].get(path).content.decode()), path
    dialog = text_of(people.browsers["owner"].get(path).content.decode())
    assert ("A link opens this" in dialog) == (works is not None)
    assert (works or "") in dialog
    # What is said holds for those who take part, and for anybody.
    seen = [people.browsers[role].get("/api/v1/collections/one/leaderboard/").status_code == 200
            for role in ("anonymous", "member", "participant")]  # fmt: skip
    assert seen == ["Everyone" in words, "Everyone" in words or "Members" in words,
                    "Everyone" in words or "participants" in words]  # fmt: skip


@pytest.mark.queries
def test_a_leaderboard_is_cited_with_what_it_depends_on(people: People, run: str) -> None:
    Collection.objects.update(name="A & B_{c}")
    citation = people.api["anonymous"].get("/api/v1/collections/one/citation/?sort=map").json()
    qrels = Collection.objects.get().active_qrels
    assert qrels
    assert (citation["qrels"], citation["sha256"]) == (1, qrels.sha256)
    assert citation["url"] == "http://testserver/collections/one/?sort=map"
    assert r"title = {{Leaderboard of A \& B\_\{c\} by AP}}," in citation["bibtex"]
    assert f"urldate = {{{timezone.now():%Y-%m-%d}}}" in citation["bibtex"]
    assert qrels.sha256 in citation["bibtex"]
    assert citation["bibtex"].count("{") - citation["bibtex"].count(r"\{") == citation[
        "bibtex"
    ].count("}") - citation["bibtex"].count(r"\}")
    page = people.browsers["anonymous"].get("/collections/one/?sort=AP").content.decode()
    assert "@misc{evalhub-one-v1-" in page
    assert "http://testserver/collections/one/?sort=AP" in page


class Words(HTMLParser):
    """The words of the content of a page, with those of its titles and labels, and how often each
    is there."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        self.feed(html.partition("<main")[2].partition("</main>")[0])

    def handle_data(self, data: str) -> None:
        self.counts.update(re.findall(r"[\w.@\N{MINUS SIGN}+-]*\w", data))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = ("title", "alt", "aria-label")
        for name, text in attrs:
            if name in named:
                self.handle_data(text or "")


def test_a_link_shows_the_chart_of_its_leaderboard(people: People, run: str) -> None:
    owner = people.browsers["owner"]
    assert "<figure" not in (browser := opened(people))[0].get(browser[1]).content.decode()
    for chart, caption in (
        ("chart=means", "95%"),
        ("chart=scatter&y=P@3", "Mean P@3 over mean"),
        ("chart=over-time", "best"),
    ):
        html = owner.get(f"/collections/one/?{chart}").content.decode()
        share = re.search(r'href="/shares/\?([^"]+)"', html)
        assert share
        query = parse_qs(unescape(share[1]))["query"][0]
        reader, page, _ = opened(people, query=query)
        markup = reader.get(page).content.decode()
        captions = [
            re.findall("<figcaption>(.*?)</figcaption>", text, re.DOTALL) for text in (html, markup)
        ]
        assert caption in captions[1][0]
        assert captions[0] == captions[1]
        name = parse_qs(chart)["chart"][0]
        assert reader.get(f"{page}charts/{name}.svg").status_code == 200

    for query in ("chart=pie", "chart=scatter&x=nonsense"):
        answer = make(people, query=query)
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "/query")


@pytest.mark.queries
def test_readers_of_a_link_see_a_part_of_what_its_maker_sees(people: People, hidden: str) -> None:
    """Of every kind: no word and no number that is not on the page of its maker, and a good part of
    it."""
    runs = list(Run.objects.filter(collection__slug="one").values_list("pk", flat=True))
    stored, board, run = make_comparison("one"), "/collections/one/", f"/runs/{hidden}/"
    pair, many = f"runs={runs[0]},{runs[1]}&tests=sign", "tests=conover,tukey_hsd"
    parameters = (
        f"measures=AP,P@3&filter=tag:good&statistics=all&columns=param:k1&baseline={runs[0]}"
    )
    comparison = {"kind": "comparison"}
    cases: list[tuple[dict[str, str], str]] = [
        ({"kind": "leaderboard"}, f"{board}?statistics=all"),
        ({"kind": "leaderboard", "query": f"{parameters}&chart=means"}, f"{board}?{parameters}&chart=means"),
        (comparison, f"{board}comparison/"),
        ({**comparison, "query": pair}, f"{board}comparison/?{pair}"),
        ({**comparison, "query": many}, f"{board}comparison/?{many}"),
        ({**comparison, "collection": "", "comparison": stored}, f"/comparisons/{stored}/"),
        ({"kind": "run", "collection": "", "run": hidden, "query": "measures=P@3"}, f"{run}?measures=P@3"),
    ]  # fmt: skip
    assert {fields["kind"] for fields, _ in cases} == set(ShareLink.Kind.values)
    for fields, address in cases:
        browser, page, _ = opened(people, **fields)
        # A run has several pages.
        path, _, query = address.partition("?")
        parts = ("", "topics/", "curves/") if path == run else ("",)
        theirs = [people.browsers["owner"].get(f"{path}{part}?{query}") for part in parts]
        ours = browser.get(page)
        assert {answer.status_code for answer in (ours, *theirs)} == {200}, fields
        words = Words(ours.content.decode()).counts
        all_words = sum((Words(answer.content.decode()).counts for answer in theirs), Counter())
        assert not words - all_words, (fields, words - all_words)
        assert words["good"], fields
        assert len(words) > len(all_words) / 5, fields
        # Parameters but in a column of the link, digests of files, titles of topics, lineage and
        # notes.
        kept_back = {"k1", "SHA-256", "three", "Lineage", "Notes"}
        with_column = fields.get("query", "").startswith(parameters)
        assert kept_back & set(words) == ({"k1"} if with_column else set()), fields
        # Who reads the page is not asked anything, and makes nothing run.
        html = ours.content.decode()
        if fields["kind"] == "leaderboard":
            assert "qrels v1" in html.partition("<h1")[2].partition("</h1>")[0]
            assert ("the filter <code>tag:good</code>" in html) == ("query" in fields)
        assert not re.findall(r"<(?:form|input|button|script|textarea|select)\b|hx-", html), fields
        assert not ours.cookies, fields
