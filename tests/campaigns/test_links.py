"""Links of organisers: from nothing to a team in a campaign by one form."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client

from evalhub.operating.logs import hide_secrets
from runs.models import (
    AuditEvent,
    Campaign,
    CampaignMember,
    InvitationLink,
    Mail,
    Membership,
    Participation,
    Signature,
    Team,
    User,
)
from runs.services.mail.sending import send_due
from tests.campaigns.test_pages import TEAM, browser
from tests.campaigns.worlds import (
    CAMPAIGN,
    CLOSES,
    Clients,
    Clock,
    code_of,
    enter,
    make_campaign,
    register,
)
from tests.conftest import client_of
from tests.mail_server import mail_server
from tests.web.test_pages import page, text_of

pytestmark = pytest.mark.words
LINKS, JOIN, DESK = f"{CAMPAIGN}links/", "/join-campaign/", "/campaigns/cup/desk/"
SECRET = "correct horse battery"


@pytest.fixture
def olga(people: Clients, clock: Clock) -> Any:
    """The organiser of a campaign with an agreement, in which nobody registers without a link."""
    make_campaign(people["olga"])
    people["olga"].post(
        f"{CAMPAIGN}agreements/", {"title": "Data", "text": "Keep it."}, format="json"
    )
    Campaign.objects.update(registration="closed")
    return people["olga"]


def make_link(organiser: Any, **fields: Any) -> str:
    answer = organiser.post(LINKS, fields, format="json")
    assert answer.status_code == 201, answer.content
    return parse_qs(urlsplit(answer.json()["url"]).query)["code"][0]


def form_of(code: str, username: str = "", **fields: str) -> dict[str, str]:
    agreement = Campaign.objects.get(slug="cup").agreements.get()
    account = {"username": username, "password": SECRET, "again": SECRET} if username else {}
    signed = {"agreements": agreement.sha256, "typed_name": "Ada Lee"}
    return {"code": code, **account, "team_name": "Lab of Ada", **signed, **fields}


def test_a_stranger_opens_a_link_and_enters_a_run(olga: Any, clock: Clock, settings: Any) -> None:
    """One form makes account, team, participation and signature; then the first run is entered."""
    code = make_link(olga, max_uses=1)
    stranger = Client()
    answer = stranger.get(JOIN, {"code": code})
    html = answer.content.decode()
    assert (answer["X-Robots-Tag"], answer["Cache-Control"]) == ("noindex, nofollow", "no-store")
    assert "dark" not in html.lower().replace("light dark", "")
    assert "Keep it." in text_of(html)
    strict = Client(enforce_csrf_checks=True)
    assert strict.post(JOIN, form_of(code, "ada")).status_code == 403

    for field, wrong in (
        ("agreements", ""),
        ("typed_name", ""),
        ("team_name", " "),
        ("again", "x"),
        ("username", "olga"),
    ):
        status = stranger.post(JOIN, {**form_of(code, "ada"), field: wrong}).status_code
        assert status in (400, 409), field
    assert not User.objects.filter(username="ada").exists()
    assert not Team.objects.filter(name="Lab of Ada").exists()

    answer = stranger.post(JOIN, form_of(code, "ada"))
    assert (answer.status_code, answer["Location"]) == (303, TEAM)
    ada = User.objects.get(username="ada")
    own = Participation.objects.get(members__user=ada)
    assert (own.state, own.team.slug, own.name) == ("accepted", "lab-of-ada", "Lab of Ada")
    assert Signature.objects.get(user=ada).typed_name == "Ada Lee"
    assert "Lab of Ada in Cup" in page(stranger, TEAM)
    assert Client().get(JOIN, {"code": code}).status_code == 404
    actions = set(AuditEvent.objects.filter(actor="ada").values_list("action", flat=True))
    assert {"team.created", "participation.requested", "agreement.signed"} <= actions
    clock.now = CLOSES - timedelta(days=1)
    assert enter(client_of(ada), "first").status_code == 201


def test_a_link_for_one_team_is_joined_by_its_people(olga: Any, people: Clients) -> None:
    code = make_link(olga, team_name="Delta")
    assert Client().post(JOIN, form_of(code, "ada")).status_code == 303
    assert Client().post(JOIN, form_of(code, "bob")).status_code == 303
    eve = browser("eve")
    assert "Take part as eve" in page(eve, f"{JOIN}?code={code}")
    assert eve.post(JOIN, form_of(code)).status_code == 303
    assert eve.post(JOIN, form_of(code))["Location"] == TEAM
    team = Team.objects.get(name="Delta")
    roles = dict(Membership.objects.filter(team=team).values_list("user__username", "role"))
    assert roles == {"ada": "owner", "bob": "member", "eve": "member"}
    assert CampaignMember.objects.filter(participation__team=team).count() == 3
    assert InvitationLink.objects.get().uses == 3
    assert browser("olga").post(JOIN, form_of(code)).status_code == 409

    # A removed team has a dead link.
    state = {"state": "removed", "reason": "test"}
    assert olga.patch(f"{CAMPAIGN}teams/delta/", state, format="json").status_code == 200
    assert Client().post(JOIN, form_of(code, "cy")).status_code == 409
    assert not User.objects.filter(username="cy").exists()


def test_somebody_with_an_account_registers_a_team_of_theirs(olga: Any, people: Clients) -> None:
    code = make_link(olga)
    ann = browser("ann")
    assert ann.post(JOIN, form_of(code, team="berries")).status_code == 400
    assert ann.post(JOIN, form_of(code, team="apples"))["Location"] == TEAM
    assert Participation.objects.get(team__slug="apples").state == "accepted"
    # It leads on to the same after a login, and back to no other host.
    html = page(Client(), f"{JOIN}?code={code}")
    assert f"/login/?next=%2Fjoin-campaign%2F%3Fcode%3D{code}" in html
    assert Client().get("/join/", {"code": code})["Location"] == f"{JOIN}?code={code}"


def test_links_are_made_and_revoked_by_organisers_alone(
    olga: Any, people: Clients, clock: Clock
) -> None:
    for name, status in (("ann", 403), ("eve", 403)):
        assert people[name].post(LINKS, {}, format="json").status_code == status
        assert people[name].get(LINKS).status_code == status
        assert browser(name).get(f"{DESK}invitations/").status_code == status
    for wrong in ({"days": 0}, {"days": 91}, {"max_uses": 0}, {"team_name": "a\nb"}, {"no": 1}):
        assert olga.post(LINKS, wrong, format="json").status_code == 400
    first, second = make_link(olga), make_link(olga, team_name="Delta")
    listed = olga.get(LINKS).json()["results"]
    assert {link["key"] for link in listed} == {first[:8], second[:8]}
    assert first.partition("-")[2] not in str(listed)
    assert people["ann"].delete(f"{LINKS}{first[:8]}/").status_code == 403
    assert olga.delete(f"{LINKS}{first[:8]}/").status_code == 204
    assert olga.delete(f"{LINKS}{first[:8]}/").status_code == 404
    desk = browser("olga")
    html = desk.post(f"{DESK}invitations/", {"action": "create", "days": "2"})
    assert (html.status_code, "/join-campaign/?code=" in html.content.decode()) == (201, True)
    assert desk.post(f"{DESK}invitations/", {"action": "create", "days": "x"}).status_code == 400
    revoked = desk.post(f"{DESK}invitations/", {"action": "revoke", "key": second[:8]})
    assert revoked.status_code == 303
    for code in (first, second, "x", f"{first[:8]}-x"):
        assert Client().get(JOIN, {"code": code}).status_code == 404

    # Nobody joins once teams stay as they are.
    third = make_link(olga)
    clock.now = CLOSES
    assert code_of(olga.post(LINKS, {}, format="json")) == (409, "registration_closed")
    assert Client().post(JOIN, form_of(third, "ada")).status_code == 409
    assert not User.objects.filter(username="ada").exists()


def test_a_server_may_keep_accounts_to_administrators(
    olga: Any, people: Clients, settings: Any
) -> None:
    code = make_link(olga)
    settings.EVALHUB_ORGANISERS_CREATE_ACCOUNTS = False
    html = page(Client(), f"{JOIN}?code={code}")
    assert "You need an account of this server" in text_of(html)
    assert "Password again" not in html
    assert Client().post(JOIN, form_of(code, "ada")).status_code == 403
    assert not User.objects.filter(username="ada").exists()
    assert "they need an account" in text_of(page(browser("olga"), f"{DESK}invitations/"))
    assert browser("eve").post(JOIN, form_of(code))["Location"] == TEAM

    User.objects.filter(username="olga").update(is_staff=True)
    assert Client().post(JOIN, form_of(code, "ada")).status_code == 303


def test_the_confirmation_of_a_release_names_teams_without_mail(
    olga: Any, people: Clients, settings: Any
) -> None:
    Campaign.objects.update(registration="open")
    answer = register(people["ann"], "apples")
    assert answer.status_code == 201, answer.content
    path = "/campaigns/cup/acts/release-to-teams/?phase=task"
    sentence = "1 team has no mail address, and no mail about it reaches them: apples."
    # Where the server sends no mail, nobody waits for one.
    assert sentence not in text_of(page(browser("olga"), path))
    settings.EVALHUB_MAIL_URL = "smtp://127.0.0.1:1"
    assert sentence in text_of(page(browser("olga"), path))
    assert sentence in text_of(page(browser("olga"), "/campaigns/cup/acts/publish/"))
    User.objects.filter(username__in=("ann", "abe")).update(email="x@example.org")
    assert "mail address" not in text_of(page(browser("olga"), path))


def test_a_draft_has_no_links(people: Clients, clock: Clock) -> None:
    make_campaign(people["olga"], publish=False)
    answer = people["olga"].post(LINKS, {}, format="json")
    assert answer.status_code == 409
    assert "is a draft; publish it first" in answer.json()["detail"]


def test_an_organiser_who_leaves_takes_the_links_along(olga: Any) -> None:
    code = make_link(olga)
    Membership.objects.filter(user__username="olga").update(role="member")
    assert Client().get(JOIN, {"code": code}).status_code == 404


def test_mail_arrives_and_the_dashboard_names_whom_none_reaches(
    olga: Any, people: Clients, settings: Any
) -> None:
    Campaign.objects.update(registration="open")
    with mail_server(settings) as mails:
        register(people["ann"], "apples")
        User.objects.filter(username="ben").update(email="ben@example.org")
        register(people["ben"], "berries")
        code, visitor = make_link(olga), Client()
        assert visitor.post(JOIN, form_of(code, "ada")).status_code == 400
        form = form_of(code, "ada", email="ada@example.org")
        assert visitor.post(JOIN, form).status_code == 303
        notes = text_of(page(browser("olga"), DESK))
        assert "2 of 3 teams have no member with a mail address" in notes
        send_due()
        (link,) = mails.links("ada@example.org")
        assert link.startswith("https://eval.example.org/account/?confirm=")
        confirmation = parse_qs(urlsplit(link).query)["confirm"][0]
        visitor.post("/account/", {"action": "confirm", "confirmation": confirmation})
        assert "1 of 3 teams has no member" in text_of(page(browser("olga"), DESK))

        notice = {"title": "Topics", "text": "They are here."}
        assert olga.post(f"{CAMPAIGN}notices/", notice, format="json").status_code == 201
        send_due()
        assert mails.links("ada@example.org") == ["https://eval.example.org/campaigns/cup/"]
        assert mails.links("ben@example.org") == ["https://eval.example.org/campaigns/cup/"]
        states = Mail.objects.filter(event="notice.posted", recipient__username="ann")
        assert states.get().state == "no_address"


def test_logs_hide_the_secrets_of_links() -> None:
    code, confirmation = f"1a2b3c4d-{'s3cretS_-' * 4}", "eyJ1c2VyIjoyfQ:1xXixD:" + "s3cret-" * 6
    token = "12-c8x1ab-" + "5" * 32
    for line in (
        f"GET {JOIN}?code={code} failed",
        f"GET /login/?next=%2Fjoin-campaign%2F%3Fcode%3D{code} failed",
        f"GET /new-password/?code={token} failed",
        f"GET /account/?confirm={confirmation} failed",
        f"GET /login/?next=/account/%3Fconfirm%3D{confirmation.replace(':', '%3A')} failed",
    ):
        hidden = hide_secrets(line)
        assert "s3cret" not in hidden, hidden
        assert "5" * 32 not in hidden
        assert hidden.endswith("[hidden] failed")
