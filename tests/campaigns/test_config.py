"""A campaign as a file: read, tried, applied all or nothing, and copied; and YAML that means harm."""

from __future__ import annotations

import time
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
import yaml
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from evalhub.campaigns.api.inputs import (
    AgreementSerializer,
    CampaignChangeSerializer,
    PhaseSerializer,
)
from runs.formats.yaml_values import MAX_NODES, UnusableYaml, read_yaml
from runs.models import AuditEvent, Campaign, Collection, Entry, Phase
from tests.campaigns.test_pages import browser, send
from tests.campaigns.worlds import (
    CAMPAIGN,
    CLOSES,
    OPENS,
    TICK,
    Clock,
    code_of,
    enter,
    make_campaign,
    register,
)
from tests.web.test_pages import page, text_of

pytestmark = pytest.mark.sqlite
CONFIG = f"{CAMPAIGN}config/"
Clients = dict[str, APIClient]
FORM = [{"key": "stages", "type": "number", "label": "Stages", "required": True}]


def put(client: APIClient, config: Any, *, dry_run: bool = False) -> Any:
    """Send a configuration: a dictionary as JSON, a text as YAML."""
    address = f"{CONFIG}?dry_run=true" if dry_run else CONFIG
    if isinstance(config, dict):
        return client.put(address, config, format="json")
    return client.put(address, config.encode(), content_type="application/yaml")


@pytest.fixture
def olga(people: Clients) -> APIClient:
    make_campaign(people["olga"], publish=False, form=FORM, zone="AoE")
    text = {"guidelines": "Rank all topics.\n\n- no: yes\n- ‘quotes’ # and more\n"}
    people["olga"].patch(CAMPAIGN, text, format="json")
    people["olga"].post(
        f"{CAMPAIGN}agreements/", {"title": "Data", "text": "No.\nNever."}, format="json"
    )
    return people["olga"]


def test_a_file_has_every_field_that_can_be_set_and_changes_nothing_as_it_is(
    olga: APIClient,
) -> None:
    config = olga.get(CONFIG).json()
    for section, serializer in (
        (config["campaign"], CampaignChangeSerializer()), (config["agreements"][0], AgreementSerializer()),
        (config["phases"][0], PhaseSerializer()),
    ):  # fmt: skip
        assert set(section) == set(serializer.fields)
    written = olga.get(f"{CONFIG}?format=yaml")
    assert written["Content-Type"] == "application/yaml"
    assert yaml.safe_load(written.content) == config
    # A text of several lines is a block, so that git shows which of them changed.
    assert "  guidelines: |" in written.content.decode()
    for text in (config, written.content.decode()):
        assert put(olga, text).json() == {"dry_run": False, "changes": []}
    assert AuditEvent.objects.filter(action__in=("phase.changed", "agreement.made")).count() == 1


def test_a_dry_run_lists_what_would_change_and_changes_nothing(
    olga: APIClient, people: Clients
) -> None:
    config = olga.get(CONFIG).json()
    config["campaign"]["summary"] = "New"
    config["phases"][0] |= {
        "closes_at": "2027-05-31",
        "late_closes_at": None,
        "slots": 5,
        "form": [{**FORM[0], "label": "How many"}],
    }
    config["phases"].append({**config["phases"][0], "slug": "two", "form": []})
    config["agreements"].append({"title": "More", "text": "Be kind."})
    events = AuditEvent.objects.count()
    changes = put(olga, config, dry_run=True).json()["changes"]
    assert [
        (change["path"], change["from"], change["to"], change["allowed"], change["why"])
        for change in changes
    ][:3] == [
        ("campaign.summary", "", "New", True, None),
        (
            "agreements[1]",
            None,
            {"title": "More", "text": "Be kind.", "required_of": "each_member"},
            True,
            None,
        ),
        # The end of that day, anywhere on earth.
        ("phases[0].closes_at", "2027-05-02T12:00:00Z", "2027-06-01T12:00:00Z", True, None),
    ]
    assert [change["path"] for change in changes][3:] == [
        "phases[0].late_closes_at", "phases[0].slots", "phases[0].form", "phases[1]",
    ]  # fmt: skip
    assert AuditEvent.objects.count() == events
    assert (
        olga.get(CAMPAIGN).json()["summary"],
        olga.get(f"{CAMPAIGN}phases/").json()["count"],
    ) == ("", 1)
    # The same without the dry run.
    assert put(olga, config).json() == {"dry_run": False, "changes": changes}
    assert put(olga, config).json()["changes"] == []
    assert olga.get(f"{CAMPAIGN}phases/two/").json()["closes_at"] == "2027-06-01T12:00:00Z"
    assert AuditEvent.objects.filter(action="phase.created").count() == 2


def test_what_patch_refuses_a_file_refuses_and_then_changes_nothing(
    olga: APIClient, clock: Clock
) -> None:
    assert olga.post(f"{CAMPAIGN}publish/").status_code == 200
    config = olga.get(CONFIG).json()
    config["campaign"]["name"] = "Renamed"
    config["phases"][0] |= {
        "opens_at": (OPENS + TICK).isoformat(), "closes_at": (CLOSES + timedelta(days=1)).isoformat(),
        "kind": "training", "slots": 9,
    }  # fmt: skip
    config["agreements"] = []
    config["phases"].append({**config["phases"][0], "slug": "late", "opens_at": "2020-01-01"})
    changes = {
        change["path"]: change for change in put(olga, config, dry_run=True).json()["changes"]
    }
    assert {path: change["allowed"] for path, change in changes.items()} == {
        "campaign.name": True, "agreements": False, "phases[0].kind": False, "phases[0].opens_at": True,
        "phases[0].closes_at": False, "phases[0].slots": True, "phases[1]": False,
    }  # fmt: skip
    assert "extend/" in changes["phases[0].closes_at"]["why"]
    assert changes["agreements"]["from"]["title"] == "Data"
    refused = put(olga, {**config, "agreements": olga.get(CONFIG).json()["agreements"]})
    assert (code_of(refused), refused.json()["errors"][0]["pointer"]) == (
        (409, "campaign_published"),
        "/phases/0/kind",
    )
    assert olga.get(CAMPAIGN).json()["name"] == "Cup"
    config = olga.get(CONFIG).json()
    assert code_of(put(olga, {"phases": []})) == (409, "conflict")
    # Two changes that are allowed alone and not together: the error names its field.
    draft = {
        **config["phases"][0],
        "slug": "two",
        "opens_at": CLOSES.isoformat(),
        "closes_at": CLOSES.isoformat(),
    }
    assert (
        put(olga, {"phases": [config["phases"][0], draft]}).json()["errors"][0]["pointer"]
        == "/phases/1"
    )


def test_a_file_is_checked_field_by_field_and_is_of_its_campaign(
    olga: APIClient, people: Clients
) -> None:
    phase = olga.get(CONFIG).json()["phases"][0]
    for config, pointer in (
        ({"slug": "other"}, "/slug"), ({"campaign": {"nme": "x"}}, "/campaign/nme"),
        ({"campaign": {"registration": "ask"}}, "/campaign/registration"), ({"runs": []}, "/runs"),
        ({"phases": [phase, {"slug": "new"}]}, "/phases/1/name"), ({"phases": [phase, phase]}, "/phases/1/slug"),
        ({"phases": [{**phase, "closes_at": "soon"}]}, "/phases/0/closes_at"),
        ({"phases": [{**phase, "form": [{"key": "A"}]}]}, "/phases/0/form/0/key"),
        ({"agreements": [{"title": "x"}]}, "/agreements/0/text"), ({"phases": {"a": 1}}, "/phases"),
    ):  # fmt: skip
        refused = put(olga, config)
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, pointer), (
            refused.content
        )
    assert code_of(olga.put(f"{CONFIG}?dry_run=maybe", {}, format="json"))[0] == 400
    assert code_of(olga.get(f"{CONFIG}?format=toml")) == (400, "bad_parameter")
    assert people["eve"].get(CONFIG).status_code == 404
    olga.post(f"{CAMPAIGN}publish/")
    assert {people["eve"].get(CONFIG).status_code, put(people["ann"], {}).status_code} == {403}


# Newer releases of libyaml have a limit of their own, which they meet before they tell of the first
# bracket.
TOO_DEEP = "nested more than|maximum nesting depth"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: &a [1]\nb: *a", "line 1 uses an anchor"), ("a: !!python/object/apply:os.system [ls]", "line 1 uses a tag"),
        ("a: !x y", "line 1 uses a tag"), ("[" * 21 + "]" * 21, "nested more than"), ("a: 1\na: 2", "line 2 has the"),
        ("a: {b: 1, b: 2}", "a second time"), ("a: 1\n---\nb: 2", "bad YAML in line"), ("a: [1", "bad YAML in line"),
        ("a: \x00", "bad YAML"), ("x" * 1_000_001, "1,000,001 bytes"), ("- x\n" * (MAX_NODES + 1), "50,000 values"),
        ("[" * 400_000, TOO_DEEP), ("{a: " * 200_000, TOO_DEEP), ("a: 2027-13-45", "bad YAML"),
        ("? {x: 1}\n: 2", "bad YAML in line"), ("&" * 300_000, "bad YAML"), ("a: " + "!" * 300_000, "uses a tag"),
    ],
)  # fmt: skip
def test_hostile_yaml_is_refused_before_it_is_built(content: str, message: str) -> None:
    start = time.process_time()
    with pytest.raises(UnusableYaml, match=message):
        read_yaml(content.encode())
    assert time.process_time() - start < 5.0


def test_bytes_that_are_no_text_and_yaml_that_is_no_mapping_are_refused(olga: APIClient) -> None:
    for content in (b"\xff\xfe\xff", b"- a", b"a: \xef\xbf\xbe", b'campaign: {name: "\\x07"}'):
        answer = olga.put(CONFIG, content, content_type="application/yaml")
        assert (answer.status_code, bool(answer.json()["code"])) == (400, True), content
    # What looks like a number or a day is taken as a field takes it.
    config = "phases:\n- slug: task\n  closes_at: 2027-05-05\n  opens_at: 2027-04-02T12:00:00+00:00\n  place: 3\n"
    assert [change["path"] for change in put(olga, config).json()["changes"]] == [
        "phases[0].place",
        "phases[0].closes_at",
    ]


def test_a_copy_has_the_configuration_and_neither_people_nor_runs(
    olga: APIClient, people: Clients, clock: Clock
) -> None:  # fmt: skip
    olga.patch(f"{CAMPAIGN}phases/task/", {"zone": "Europe/Rome"}, format="json")
    olga.post(f"{CAMPAIGN}publish/")
    register(people["ann"], "apples")
    clock.now = OPENS
    assert (
        enter(people["ann"], "dense", answers='{"stages": 1}').status_code == 409
    )  # an agreement is not signed
    citation = {
        "citation_authors": "Lima, Ana",
        "paper_doi": "10.1000/paper",
        "judgements_doi": "10.1000/qrels",
    }
    assert olga.patch(CAMPAIGN, citation, format="json").status_code == 200
    address, body = (
        "/api/v1/campaigns/?from=cup&shift_days=200",
        {"slug": "next", "name": "Next", "team": "lab"},
    )
    assert code_of(people["ann"].post(address, {**body, "team": "apples"}, format="json")) == (
        403,
        "not_allowed",
    )
    copy = olga.post(address, {**body, "summary": "2028"}, format="json")
    assert (copy.status_code, copy.json()["state"], copy.json()["summary"]) == (
        201,
        "draft",
        "2028",
    )
    old, new = (olga.get(f"/api/v1/campaigns/{slug}/config/").json() for slug in ("cup", "next"))
    # From summer to winter time in Rome: the same hour of the day there.
    assert (old["phases"][0]["opens_at"], new["phases"][0]["opens_at"]) == (
        "2027-04-02T12:00:00Z", "2027-10-19T12:00:00Z",
    )  # fmt: skip
    assert (old["phases"][0]["closes_at"], new["phases"][0]["closes_at"]) == (
        "2027-05-02T12:00:00Z", "2027-11-18T13:00:00Z",
    )  # fmt: skip
    assert new["agreements"] == old["agreements"]
    # What was published of the old one is not of the new one.
    assert {name: old["campaign"][name] for name in citation} == citation
    assert {name: new["campaign"][name] for name in citation} == {
        **citation,
        "paper_doi": "",
        "judgements_doi": "",
    }
    assert new["phases"][0]["form"] == old["phases"][0]["form"]
    copied = Campaign.objects.get(slug="next")
    assert (copied.participations.count(), copied.members.count(), Entry.objects.count()) == (
        0,
        0,
        0,
    )
    assert code_of(olga.post(address, body, format="json")) == (409, "slug_taken")


def test_a_copy_takes_other_collections_where_the_old_ones_are_open(olga: APIClient) -> None:
    Collection.objects.filter(slug="dark").update(blind=False)
    olga.post(
        "/api/v1/collections/",
        {"slug": "new", "name": "New", "team": "lab", "blind": True},
        format="json",
    )
    address, body = "/api/v1/campaigns/?from=cup", {"slug": "next", "name": "Next", "team": "lab"}
    refused = olga.post(address, body, format="json")
    assert (code_of(refused), "collections" in refused.json()["detail"]) == (
        (409, "evaluation_needs_blind"),
        True,
    )
    assert not Campaign.objects.filter(slug="next").exists()
    for wrong in ({"dark": "none"}, ["new"]):
        assert olga.post(address, {**body, "collections": wrong}, format="json").status_code == 400
    copy = olga.post(address, {**body, "collections": {"dark": "new"}}, format="json")
    assert copy.json()["phases"][0]["collection"] == "new"
    for query, sent in (
        ("?from=cup&shift_days=x", body), ("?from=cup&shift_days=9999", body), ("?from=none", body),
        ("", {**body, "slug": "x", "collections": {"a": "new"}}),
    ):  # fmt: skip
        assert olga.post(f"/api/v1/campaigns/{query}", sent, format="json").status_code in (
            400,
            404,
        )


def test_the_desk_shows_what_a_file_changes_before_it_is_applied(people: Clients) -> None:
    make_campaign(people["olga"])
    olga, path = browser("olga"), "/campaigns/cup/desk/file/"
    assert "/api/v1/campaigns/cup/config/?format=yaml" in page(olga, path)

    def check(text: str, status: int = 200) -> str:
        answer = olga.post(
            path, {"action": "check", "file": SimpleUploadedFile("cup.yaml", text.encode())}
        )
        assert answer.status_code == status, answer.content
        return answer.content.decode()

    text = "campaign:\n  summary: |\n    Find it <b>\nphases:\n- slug: task\n  slots: 3\n"
    html = check(text)
    assert "campaign.summary" in html
    assert "phases[0].slots" in html
    assert "Find it &lt;b&gt;" in html
    assert Phase.objects.get().slots is None
    words = unescape(
        html.partition('<textarea name="text"')[2].partition(">")[2].partition("</textarea>")[0]
    )
    # A browser ends lines so.
    assert "2 changes applied." in send(
        olga, path, action="apply", text=words.replace("\n", "\r\n")
    )
    assert (Phase.objects.get().slots, Campaign.objects.get().summary.strip()) == (3, "Find it <b>")
    assert "No changes." in text_of(check(text))
    earlier = "phases:\n- slug: task\n  closes_at: 2027-04-20\n  slots: 4\n"
    html = check(earlier)
    assert "Nothing is applied while one change is not allowed." in text_of(html)
    assert 'value="apply"' not in html
    assert send(olga, path, 409, action="apply", text=earlier)
    assert Phase.objects.get().slots == 3
    assert "line 2" in text_of(check("campaign:\n  name: &a x\n", 400))
    assert "Place in the file: /phases/0/slots" in text_of(
        check("phases:\n- slug: task\n  slots: 0\n", 400)
    )
    assert "Choose a file first" in send(olga, path, 400, action="check")
    assert browser("ann").post(path, {"action": "apply", "text": text}).status_code == 403


def test_the_desk_copies_a_campaign(people: Clients) -> None:
    make_campaign(people["olga"])
    next_one = {"slug": "dark-2", "name": "Dark 2", "team": "lab", "blind": True}
    assert people["olga"].post("/api/v1/collections/", next_one, format="json").status_code == 201
    olga, path = browser("olga"), "/campaigns/cup/desk/copy/"
    assert path in page(olga, "/campaigns/cup/desk/")
    fields = {
        "name": "Cup 2028",
        "team": "lab",
        "shift_days": "366",
        "collections": "dark = dark-2\n",
    }
    assert "Line 1" in send(olga, path, 400, **{**fields, "collections": "dark-2"})
    assert "whole number of days" in send(olga, path, 400, **{**fields, "shift_days": "a year"})
    assert "There is no collection" in send(
        olga, path, 400, **{**fields, "collections": "dark = light"}
    )
    assert Campaign.objects.count() == 1
    assert "Campaign Cup 2028 is a draft." in send(olga, path, **fields)
    campaign = Campaign.objects.get(slug="cup-2028")
    (phase,) = campaign.phases.all()
    assert (phase.collection.slug, phase.closes_at) == ("dark-2", CLOSES + timedelta(days=366))
    assert browser("ann").get(path).status_code == 403
