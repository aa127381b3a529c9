"""An address that was shared with somebody who is not logged in leads on to it, and tells nothing."""

from __future__ import annotations

import html as markup
import re
from collections.abc import Callable

import pytest
from django.test import Client

from runs.models import Collection, Run, User
from tests.conftest import GOOD
from tests.shared_data import alice, api, collection, module_data, submit
from tests.web.test_pages import page

__all__ = ["alice", "api", "collection", "module_data", "submit"]

pytestmark = pytest.mark.words
NOBODY = "00000000-0000-0000-0000-000000000000"


def login_links(html: str) -> list[str]:
    return [markup.unescape(link) for link in re.findall(r'<a href="(/login/[^"]*)"', html)]


@pytest.fixture(scope="module")
def run(submit: Callable[..., Run], alice: User) -> Run:
    alice.set_password("correct horse")
    alice.save()
    return submit(GOOD)


@pytest.mark.slow
@pytest.mark.parametrize(
    "address",
    ["/runs/{0}/?by=AP&topic=1", "/collections/small/", "/collections/small/comparison/?runs={0}&family=all",
     "/collections/small/what-if/?preset=impatient", "/runs/{0}/ranking/?topic=1", "/collections/small/sessions/"],
)  # fmt: skip
def test_who_may_not_see_a_page_logs_in_and_is_there(
    client: Client, run: Run, address: str
) -> None:
    Collection.objects.update(visibility="team")
    address = address.format(run.pk)
    html = page(client, address, 404)
    assert "log in to see it" in html
    header, hint = login_links(html)
    assert header == hint
    answer = client.post(
        "/login/", {"username": "alice", "password": "correct horse", "next": next_of(client, hint)}
    )
    assert (answer.status_code, answer["Location"]) == (302, address)
    assert "log in to see it" not in client.get(address).content.decode()


def next_of(client: Client, link: str) -> str:
    """What the form of the login page sends back."""
    match = re.search(r'name="next" value="([^"]*)"', page(client, link))
    assert match
    return markup.unescape(match[1])


def test_what_is_hidden_and_what_is_not_there_look_alike(client: Client, run: Run) -> None:
    Collection.objects.update(visibility="team")
    hidden, nothing = page(client, f"/runs/{run.pk}/", 404), page(client, f"/runs/{NOBODY}/", 404)
    assert hidden.replace(str(run.pk), NOBODY) == nothing


def test_log_in_leads_back_to_the_page_it_was_on(client: Client, run: Run) -> None:
    address = "/collections/small/?sort=AP&measures=AP,P@5"
    # In the header, and where a view of the leaderboard can be saved.
    (link,) = set(login_links(page(client, address)))
    assert next_of(client, link) == address
    # The login page itself keeps where it was to lead.
    (again,) = login_links(page(client, link))
    assert next_of(client, again) == address


def test_log_in_leads_to_no_other_host(client: Client, run: Run) -> None:
    sent = {"username": "alice", "password": "correct horse", "next": "https://elsewhere.example/"}
    assert next_of(client, "/login/?next=https://elsewhere.example/") == ""
    assert client.post("/login/", sent)["Location"] == "/"


def test_blind_judgements_ask_organisers_to_log_in(client: Client, run: Run, alice: User) -> None:
    Collection.objects.update(blind=True)
    assert "Log in to see it" in page(client, "/collections/small/")
    assert "log in to see it" in page(client, f"/runs/{run.pk}/", 404)
    client.force_login(alice)
    assert "Log in to see it" not in page(client, "/collections/small/")
