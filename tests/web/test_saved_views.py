"""Saved views: checked when they are saved, seen by their scope, opened by a short address, gone while it is blind."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from evalhub.operating.backup import saved_models
from runs.models import AuditEvent, Collection, Membership, Run, Team, User, View
from runs.services.sharing.saved_views import create_view
from tests.conftest import client_of
from tests.web.shared_people import module_data, module_people, people, run
from tests.web.worlds import People

__all__ = ["module_data", "module_people", "people", "run"]

pytestmark = pytest.mark.words

API = "/api/v1/collections/one/"
PAGE = "/collections/one/"


def save(
    client: APIClient, query: str = "filter=tag:good", name: str = "Good ones", **fields: Any
) -> Any:
    return client.post(f"{API}views/", {"name": name, "query": query, **fields}, format="json")


def tags(client: APIClient, query: str) -> list[str]:
    return [row["run"]["tag"] for row in client.get(f"{API}leaderboard/?{query}").json()["results"]]


def names(client: APIClient) -> list[str]:
    return [view["name"] for view in client.get(f"{API}views/").json()["results"]]


def test_a_view_is_saved_in_one_form_and_used_by_leaderboard_and_exports(
    people: People, run: str
) -> None:
    guest = people.api["participant"]
    answer = save(
        guest,
        "?measures=ndcg_cut_10,map&limit=7&sort=map&filter= tag:good &arrange=&columns=param:k1",
    )
    assert answer.status_code == 201, answer.content
    view = answer.json()
    assert (
        view["query"]
        == "measures=nDCG%4010%2CAP&sort=AP&limit=7&filter=tag%3Agood&columns=param%3Ak1"
    )
    assert (view["scope"], view["team"], view["owner"], view["parameters"]["sort"]) == (
        "me",
        None,
        "participant",
        "AP",
    )
    assert view["page"] == f"http://testserver/v/{view['code']}/"
    query = f"view={view['code']}"
    assert tags(guest, query) == ["good"]
    # What is given stands in place of it, without a value too.
    assert tags(guest, f"{query}&filter=tag:poor") == ["poor"]
    assert tags(guest, f"{query}&filter=") == ["good", "poor"]
    assert guest.get(f"{API}leaderboard/?{query}&limit=1&filter=").json()["results"][0]["values"].keys() == {
        "nDCG@10", "AP",
    }  # fmt: skip
    lines = guest.get(f"{API}leaderboard/export/csv/?{query}").content.decode().splitlines()
    assert len(lines) == 2
    assert "param:k1" in lines[0]
    assert guest.get(f"/api/v1/views/{view['code']}/").json() == view


def test_an_answer_follows_its_view(people: People, run: str) -> None:
    """The same address with another view, or with another label in it, is another answer."""
    guest = people.api["participant"]
    code = save(guest).json()["code"]
    path = f"{API}leaderboard/?view={code}"
    first = guest.get(path)
    assert guest.get(path, headers={"If-None-Match": first["ETag"]}).status_code == 304
    changed = guest.patch(f"/api/v1/views/{code}/", {"query": "filter=tag:poor"}, format="json")
    assert changed.json()["query"] == "filter=tag%3Apoor"
    again = guest.get(path, headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.json()["results"][0]["run"]["tag"]) == (200, "poor")
    # Nobody else has the answer of a private view, not even from memory.
    refused = people.api["owner"].get(path)
    assert (refused.status_code, refused.json()["code"]) == (400, "unknown_view")
    assert refused.json()["errors"][0]["pointer"] == "view"


def test_a_view_without_statistics_leaves_their_options_to_the_page(
    people: People, run: str
) -> None:
    guest = people.api["participant"]
    for query in ("alpha=0.1&statistics=none", "alpha=0.1"):
        code = save(guest, query).json()["code"]
        assert guest.get(f"{API}leaderboard/?view={code}").status_code == 200
        statistics = guest.get(f"{API}leaderboard/?view={code}&statistics=tiers").json()[
            "statistics"
        ]
        assert (statistics["parts"], statistics["alpha"]) == (["tiers"], 0.1)


@pytest.mark.queries
@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("filter=foo:x", "bad_filter"), ("filter=param:nothing>1", "bad_filter"), ("columns=x", "bad_columns"),
        ("measures=nonsense", "unknown_measure"), ("offset=50", "unknown_parameter"), ("sort=AP&sort=P@3",
        "repeated_parameter"), ("baseline=label:none", "unknown_label"), ("statistics=all&alpha=2", "invalid"),
        ("filter=" + "a" * 13_000, "invalid"), ("filter=%00", "control_character"),
        ("&".join(f"x{n}=1" for n in range(200)), "invalid"),
    ],
)  # fmt: skip
def test_what_the_leaderboard_does_not_read_is_not_saved(
    people: People, run: str, query: str, code: str
) -> None:
    answer = save(people.api["participant"], query)
    assert answer.status_code == 400, answer.content
    payload = answer.json()
    assert (payload["code"], payload["errors"][0]["pointer"]) == (code, "/query")
    assert not View.objects.exists()


@pytest.mark.queries
def test_who_sees_and_who_changes_a_view(people: People, run: str) -> None:
    guest, owner = people.api["participant"], people.api["owner"]
    colleague = User.objects.create_user("colleague")
    Membership.objects.create(team=Team.objects.get(slug="guests"), user=colleague)
    own = save(guest, name="mine").json()["code"]
    shared = save(guest, name="ours", scope="team", team="guests").json()["code"]
    every = save(owner, name="all", scope="collection").json()["code"]
    assert names(guest) == ["all", "mine", "ours"]
    assert names(client_of(colleague)) == ["all", "ours"]
    assert names(people.api["anonymous"]) == names(owner) == names(people.api["staff"]) == ["all"]
    for client in (people.api["anonymous"], owner, people.api["staff"]):
        assert client.get(f"/api/v1/views/{own}/").status_code == 404
    for code, client, status in (
        (own, client_of(colleague), 404), (shared, client_of(colleague), 200), (shared, owner, 404),
        (every, guest, 403), (every, people.api["member"], 403), (every, people.api["staff"], 200),
    ):  # fmt: skip
        assert (
            client.patch(f"/api/v1/views/{code}/", {"name": "x"}, format="json").status_code
            == status
        )
    # Only organisers save for all readers, only members for their team.
    for fields, status, pointer in (
        ({"scope": "collection"}, 403, "/scope"), ({"scope": "team", "team": "lab"}, 400, "/team"),
        ({"scope": "team"}, 400, "/team"), ({"team": "guests"}, 400, "/team"),
        ({"scope": "team", "team": "participant"}, 400, "/team"),
    ):  # fmt: skip
        answer = save(guest, **fields)
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (status, pointer)
        moved = guest.patch(f"/api/v1/views/{own}/", fields, format="json")
        assert moved.status_code == status, moved.content
    taken = client_of(colleague).patch(f"/api/v1/views/{shared}/", {"scope": "me"}, format="json")
    assert taken.status_code == 403
    assert (
        guest.patch(f"/api/v1/views/{shared}/", {"scope": "me"}, format="json").json()["team"]
        is None
    )
    assert guest.delete(f"/api/v1/views/{shared}/").status_code == 204
    assert not View.objects.filter(code=shared).exists()


def test_the_trail_has_the_text_of_what_all_readers_see_alone(people: People, run: str) -> None:
    save(people.api["participant"], name="a secret name")
    save(people.api["owner"], name="open", scope="collection")
    texts = {
        event.object_id: str(event.after)
        for event in AuditEvent.objects.filter(action="view.created")
    }
    assert len(texts) == 2
    trail = str(list(texts.values()))
    assert "secret" not in trail
    assert "open" in trail


def test_views_of_a_blind_collection_are_for_its_organisers(people: People, run: str) -> None:
    codes = [
        save(people.api["participant"], "filter=tag:rare_name").json()["code"],
        save(people.api["owner"], "filter=tag:rare_name", scope="collection").json()["code"],
    ]
    Collection.objects.update(blind=True)
    for role in ("anonymous", "participant", "member", "other"):
        listed = people.api[role].get(f"{API}views/")
        assert (listed.status_code, listed.json()["code"]) == (403, "blind")
        for code in codes:
            gone = people.api[role].get(f"/api/v1/views/{code}/")
            none = people.api[role].get("/api/v1/views/2222222222/")
            assert gone.content.replace(code.encode(), b"") == none.content.replace(
                b"2222222222", b""
            )
            page = people.browsers[role].get(f"/v/{code}/")
            assert page.status_code == 404
            assert b"rare_name" not in page.content
    assert names(people.api["owner"]) == ["Good ones"]
    Collection.objects.update(blind=False)
    assert len(names(people.api["participant"])) == 2


@pytest.mark.queries
def test_accounts_teams_and_limits(
    people: People, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A view of others outlives the account that saved it; a private one does not. A backup has them."""
    monkeypatch.setattr("runs.services.sharing.saved_views.MAX_VIEWS", 2)
    leaver, collection = User.objects.create_user("leaver"), Collection.objects.get(slug="one")
    Membership.objects.create(team=Team.objects.get(slug="lab"), user=leaver, role="owner")
    for scope in ("me", "collection"):
        create_view(collection=collection, owner=leaver, name=scope, query="", scope=scope)
    full = save(client_of(leaver))
    assert (full.status_code, full.json()["code"]) == (409, "too_many_views")
    leaver.delete()
    save(people.api["owner"])
    assert list(View.objects.values_list("name", "owner__username")) == [
        ("Good ones", "owner"),
        ("collection", None),
    ]
    assert View in saved_models()


def menu(browser: Client, path: str) -> str:
    html = " ".join(browser.get(path).content.decode().split())
    return unescape(re.search(r'<details class="tool views".*?</details>', html)[0])  # type: ignore[index]


@pytest.mark.queries
def test_the_menu_saves_opens_and_says_what_changed(people: People, run: str) -> None:
    browser = people.browsers["owner"]
    hidden = re.search(
        r'name="query" value="([^"]*)"',
        menu(browser, f"{PAGE}?filter=tag:good&offset=0&select={run}"),
    )
    assert hidden
    form = {"action": "create", "name": "Good", "query": hidden[1], "share": "collection"}
    saved = browser.post(f"{PAGE}views/", form)
    view = View.objects.get()
    assert (saved.status_code, saved["Location"], view.query) == (
        303,
        f"/v/{view.code}/",
        "filter=tag%3Agood",
    )
    opened = browser.get(saved["Location"])
    assert opened["Location"] == f"{PAGE}?filter=tag%3Agood&opened={view.code}"
    html = menu(browser, opened["Location"])
    assert "Views: Good" in html
    assert "changed" not in html.lower()
    # Without its filter it is another leaderboard; what the page exports is what it shows.
    bare = f"{PAGE}?opened={view.code}"
    assert "Views: Good, changed" in menu(browser, bare)
    assert "poor" in browser.get(bare).content.decode()
    actions = re.search(
        r'class="page-actions".*?<h1', browser.get(bare).content.decode(), re.DOTALL
    )
    assert actions
    assert "opened=" not in actions[0]
    assert browser.get(f"{PAGE}?view={view.code}&filter=tag:poor")["Location"].startswith(
        f"{PAGE}?filter=tag%3Apoor"
    )
    changed = browser.post(
        f"{PAGE}views/", {"action": "update", "code": view.code, "query": "sort=AP"}
    )
    assert changed.status_code == 303
    assert View.objects.get().query == "sort=AP"
    # A reader opens it; an anonymous one is sent to log in to save another.
    anonymous = menu(people.browsers["anonymous"], bare)
    assert "Good" in anonymous
    assert "/login/?next=" in anonymous
    assert "<form" not in anonymous


@pytest.mark.queries
def test_the_page_of_views_renames_shares_and_deletes(people: People, run: str) -> None:
    browser = people.browsers["participant"]
    code = save(people.api["participant"]).json()["code"]
    foreign = save(people.api["owner"], name="For all", scope="collection").json()["code"]
    path = f"{PAGE}views/"
    refused = browser.post(
        path, {"action": "create", "name": "  ", "query": "filter=tag:good", "share": "me"}
    )
    assert refused.status_code == 400
    assert 'value="filter=tag:good"' in refused.content.decode()
    bad = browser.post(path, {"action": "create", "name": "x\u202ey", "query": "", "share": "me"})
    assert (bad.status_code, View.objects.count()) == (400, 2)
    assert (
        browser.post(
            path, {"action": "change", "code": code, "name": "Ours", "share": "team:guests"}
        ).status_code
        == 303
    )
    assert View.objects.get(code=code).team == Team.objects.get(slug="guests")
    html = browser.get(path).content.decode()
    assert "View “Ours” changed." in html
    assert html.count('value="delete"') == 1
    assert browser.post(path, {"action": "delete", "code": foreign}).status_code == 403
    assert browser.post(path, {"action": "delete", "code": code}).status_code == 303
    assert list(View.objects.values_list("code", flat=True)) == [foreign]
    assert "Ours" not in browser.get(path).content.decode().split('<section class="panel')[1]


def test_hidden_and_missing_views_answer_alike_and_offer_to_log_in(
    people: People, run: str
) -> None:
    code = save(people.api["participant"]).json()["code"]
    Collection.objects.update(visibility="private")
    texts = [people.browsers["anonymous"].get(f"/v/{address}/") for address in (code, "2222222222")]
    assert [answer.status_code for answer in texts] == [404, 404]
    assert texts[0].content.decode().replace(code, "2222222222") == texts[1].content.decode()
    assert f"/login/?next=/v/{code}/" in texts[0].content.decode().replace("%2F", "/")
    assert Run.objects.exists()
