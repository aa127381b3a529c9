"""A person without an account, on a phone: from the link of a campaign to a ranked entry."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import httpx
from playwright.sync_api import Browser, expect

from tests.browser.site import PASSWORD, TEAM, Site
from tests.browser.test_forms import check, choose, press
from tests.browser.visits import PHONE, watched

QRELS = b"1 0 d1 1\n1 0 d2 0\n2 0 d1 1\n"
RUN = b"1 Q0 d1 1 9 phone\n1 Q0 d2 2 8 phone\n2 Q0 d2 1 9 phone\n2 Q0 d1 2 8 phone\n"
PATIENCE = 60_000


def invitation(site: Site) -> str:
    """Return the link of a campaign whose teams see the leaderboard at once."""
    headers = {"Authorization": f"Bearer {site.server.token}"}
    now = datetime.now(UTC)
    with httpx.Client(base_url=f"{site.url}/api/v1/", headers=headers) as client:

        def post(path: str, **fields: object) -> httpx.Response:
            return client.post(path, json=fields).raise_for_status()

        post("collections/", slug="practice", name="Practice", team=TEAM, measures=["AP", "P@1"])
        client.post("collections/practice/qrels/", files={"file": QRELS}).raise_for_status()
        post("campaigns/", slug="practice", name="Practice", team=TEAM, registration="closed")
        post(
            "campaigns/practice/phases/",
            slug="first",
            name="First",
            collection="practice",
            kind="development",
            feedback="board",
            opens_at=(now - timedelta(days=1)).isoformat(),
            closes_at=(now + timedelta(days=9)).isoformat(),
        )
        post("campaigns/practice/publish/")
        return str(post("campaigns/practice/links/").json()["url"])


def test_a_visitor_comes_from_a_link_to_a_ranked_entry(chromium: Browser, site: Site) -> None:
    link = invitation(site)
    context = chromium.new_context(base_url=site.url, viewport=PHONE)
    with watched(context, site) as seen:
        phone = seen.page
        phone.goto(link)
        phone.get_by_label("User name").fill("walker")
        for label in ("Password", "Password again"):
            phone.get_by_label(label, exact=True).fill(PASSWORD)
        phone.get_by_label("Name of the team").fill("Walkers")
        check(phone)
        press(phone, "Create the account and take part")

        phone.get_by_role("main").get_by_role("link", name="Enter a run").first.click()
        choose(phone, "phone.run", RUN)
        press(phone, "Enter the run", "received")
        check(phone)

        phone.get_by_role("link", name="The leaderboard of First").click()
        row = phone.get_by_role("row", name="phone")
        for _ in range(PATIENCE // 500):
            if row.count() and row.locator(".place").inner_text().strip() == "1":
                break
            phone.wait_for_timeout(500)
            phone.reload()
        expect(row.locator(".place")).to_have_text("1")
        expect(row).to_contain_text("Walkers")
        expect(row).to_contain_text("0.7500")
        check(phone)
    context.close()
