"""A server without an account, in a real browser: its first visitor becomes its administrator."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.browser.site import PASSWORD
from tests.browser.visits import PHONE, faults_of_access
from tests.reliability.servers import empty_server


def test_the_first_account_is_made_on_an_empty_server(chromium: Browser, tmp_path: Path) -> None:
    with empty_server(tmp_path / "data") as (server, code):
        context = chromium.new_context(base_url=server.url, color_scheme="dark")
        page = context.new_page()
        page.goto("/")
        expect(page.get_by_role("heading", name="Welcome to EvalHub")).to_be_visible()
        assert faults_of_access(page) == []
        for label, text in (("Code", "WRNG-CODE"), ("User name", "ada")):
            page.get_by_label(label, exact=True).fill(text)
        for again in (False, True):
            for label in ("Password", "Password again"):
                page.get_by_label(label, exact=True).fill(PASSWORD)
            page.get_by_role("button", name="Create the administrator").click()
            if not again:
                expect(page.locator("#code-hint")).to_contain_text("This is not the code")
                expect(page.get_by_label("User name")).to_have_value("ada")
                assert faults_of_access(page) == []
                page.get_by_label("Code", exact=True).fill(code)
        expect(page.get_by_role("status")).to_contain_text(
            "Welcome, ada. You are the administrator"
        )
        page.set_viewport_size(PHONE)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        context.close()
