"""A collection is created and maintained in the browser, without scripts."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from metrics.models import Evaluation
from runs.models import AuditEvent, Collection, Membership, Run, Team, User
from tests.conftest import GOOD, QRELS
from tests.web.test_pages import HOSTILE, page, text_of

pytestmark = pytest.mark.words

MANAGE = "/collections/small/manage/"


@pytest.fixture
def browser(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def send(browser: Client, section: str, content: str | None = None, **fields: Any) -> Any:
    if content is not None:
        fields["file"] = SimpleUploadedFile("file", content.encode())
    return browser.post(MANAGE + section, fields)


def message_of(answer: Any) -> str:
    return text_of(answer.content.decode())


def done(browser: Client, answer: Any) -> str:
    """The sentence on the page to which a form that did something leads."""
    assert answer.status_code == 303, message_of(answer)
    html = page(browser, answer["Location"])
    return text_of(html.partition('role="status">')[2].partition("</p>")[0])


def test_a_collection_is_created_for_a_team(browser: Client, alice: User) -> None:
    html = page(browser, "/new-collection/")
    assert 'value="public" checked' in html
    lab = Team.objects.create(slug="lab", name="Lab")
    Membership.objects.create(team=lab, user=alice, role="owner")
    html = page(browser, "/new-collection/")
    assert 'value="team" checked' in html
    assert '<option value="lab" selected' in html
    fields = {"name": "Größe Läb 2026", "team": "lab", "visibility": "private", "blind": "true"}
    answer = browser.post("/new-collection/", fields)
    assert "created" in done(browser, answer)
    collection = Collection.objects.get()
    assert (collection.slug, collection.team, collection.visibility, collection.blind) == (
        "groe-lab-2026",
        lab,
        "private",
        True,
    )
    assert AuditEvent.objects.get(action="collection.created").actor == "alice"


@pytest.mark.parametrize(
    ("fields", "status", "field", "says"),
    [
        ({"name": "Small", "slug": "small"}, 409, "slug", "exists already"),
        ({"name": "New", "slug": "No Good"}, 400, "slug", "Use lower-case letters"),
        ({"name": "", "slug": "new"}, 400, "name", "may not be blank"),
        ({"name": "New", "team": "others"}, 400, "team", "does not exist"),
        (
            {"name": "New", "visibility": "all"},
            400,
            "visibility",
            "is not one of public, team, private",
        ),
    ],
)
def test_a_collection_that_cannot_be_created_keeps_what_was_typed(
    browser: Client, collection: str, fields: dict[str, str], status: int, field: str, says: str
) -> None:
    Team.objects.create(slug="others", name="Others")
    answer = browser.post("/new-collection/", {"description": "typed before", **fields})
    html = answer.content.decode()
    assert answer.status_code == status
    assert "typed before" in html
    assert says in html.partition(f'id="{field}-hint"')[2].partition("</span>")[0]
    assert Collection.objects.count() == 1


def test_the_description_is_edited(browser: Client, collection: str) -> None:
    form = {"name": "Renamed", "description": "d", "team": "alice", "visibility": "team"}
    answer = send(browser, "", **form, level_labels="0 = no\n\n 2=very = much \n")
    assert done(browser, answer) == "Changes saved."
    small = Collection.objects.get()
    assert (small.name, small.visibility, small.level_labels) == (
        "Renamed",
        "team",
        {"0": "no", "2": "very = much"},
    )
    assert "0 = no\n2 = very = much</textarea>" in browser.get(MANAGE).content.decode()
    wrong = send(browser, "", **{**form, "name": "Again"}, level_labels="0 = no\none: yes")
    assert wrong.status_code == 400
    assert "Line 2: write a level" in wrong.content.decode()
    assert 'value="Again"' in wrong.content.decode()
    assert Collection.objects.get().name == "Renamed"


def test_what_changed_meanwhile_is_not_overwritten(browser: Client, collection: str) -> None:
    html = page(browser, MANAGE)
    seen = html.partition('name="seen" value="')[2].partition('">')[0].replace("&quot;", '"')
    Collection.objects.update(name="By another")
    form = {"description": "mine", "team": "alice", "visibility": "public"}
    answer = send(browser, "", **form, name="Small", seen=seen)
    assert answer.status_code == 412
    assert "mine</textarea>" in answer.content.decode()
    assert Collection.objects.get().name == "By another"


def test_topics_are_checked_and_uploaded(browser: Client, collection: str) -> None:
    checked = message_of(send(browser, "topics/", "1\tone\n9\tnine\n", action="check"))
    assert "Topics 2 New 2 No longer listed 0" in checked
    assert "1 (one), 9 (nine)" in checked
    small = Collection.objects.get()
    assert not small.topics.exists()
    assert "2 topics uploaded" in done(
        browser, send(browser, "topics/", "1\tone\n9\tnine\n", action="upload")
    )
    assert "New 0 No longer listed 1" in message_of(
        send(browser, "topics/", "1\tone\n", action="check", format="tsv")
    )
    bad = send(browser, "topics/", "1\tone\n1\ttwice\n")
    assert bad.status_code == 422
    assert "2 Topic" in message_of(bad)
    assert "nothing was stored" in message_of(bad)
    assert "Choose a file first" in message_of(
        browser.post(f"{MANAGE}topics/", {"action": "check"})
    )
    assert small.topics.count() == 2


def test_topics_get_attributes(browser: Client, collection: str) -> None:
    file = f"topic\ttype\n1\tshort {HOSTILE.replace(chr(34), chr(39))}\n2\tlong\n"
    checked = message_of(send(browser, "topics/", file, action="check-attributes"))
    assert "Topics 2 type 2 values" in checked
    small = Collection.objects.get()
    assert not small.topic_attributes.exists()

    bad = send(browser, "topics/", "topic\ttype\n1\ta\n1\tb\n", action="upload-attributes")
    assert (bad.status_code, "already in line 2" in message_of(bad)) == (422, True)
    answer = send(browser, "topics/", file, action="upload-attributes")
    assert done(browser, answer) == "Attributes of 2 topics uploaded."
    assert "Attributes of 2 topics" in text_of(page(browser, f"{MANAGE}topics/"))
    answer = send(browser, "topics/", action="delete-attributes")
    assert done(browser, answer) == "Attributes of 2 topics deleted."
    assert not small.topic_attributes.exists()


def test_documents_get_a_link_and_titles(browser: Client, collection: str) -> None:
    link = "https://example.org/{doc_id}"
    answer = send(browser, "documents/", action="link", document_url=link)
    assert done(browser, answer) == "Changes saved."
    small = Collection.objects.get()
    assert small.document_url == link
    refused = send(browser, "documents/", action="link", document_url="https://{doc_id}.org/")
    assert refused.status_code == 400
    assert "stands the name of a server alone" in message_of(refused)
    assert 'value="https://{doc_id}.org/"' in refused.content.decode()

    checked = message_of(send(browser, "documents/", f"a\tCats {HOSTILE}\nb\t\n", action="check"))
    assert "Documents 2 With a title 1" in checked
    assert not small.document_titles.exists()
    bad = send(browser, "documents/", "a\tCats\na\tDogs\n", action="upload")
    assert (bad.status_code, "already in line 1" in message_of(bad)) == (422, True)
    assert "Choose a file first" in message_of(
        browser.post(f"{MANAGE}documents/", {"action": "upload"})
    )

    answer = send(browser, "documents/", f"a\tCats {HOSTILE}\nb\t\n", action="upload")
    assert done(browser, answer) == "2 documents uploaded."
    assert "2 documents" in text_of(page(browser, f"{MANAGE}documents/"))
    answer = send(browser, "documents/", action="delete")
    assert done(browser, answer) == "Titles of 2 documents deleted."
    assert not small.document_titles.exists()


def test_judgements_are_checked_uploaded_and_activated(
    browser: Client, collection: str, submit: Any
) -> None:
    run = submit(GOOD)
    small = Collection.objects.get()
    checked = message_of(
        send(browser, "judgements/", f"{QRELS}4 0 x 2\n", action="check", activate="true")
    )
    assert "Judgements 7 active: 6 Topics 4 active: 3" in checked
    assert small.qrels.count() == 1
    answer = send(browser, "judgements/", f"{QRELS}4 0 x 2\n", note="second pool", column="ignore")
    assert done(browser, answer) == "Version 2 uploaded; it is not active."
    assert Evaluation.objects.count() == 1
    html = page(browser, f"{MANAGE}judgements/")
    assert "second pool" in html
    assert "Differences between two versions" in html
    page(browser, "/collections/small/judgements/", qrels=["1", "2"])
    activated = send(browser, "judgements/", action="activate", version="2")
    assert done(browser, activated) == "Version 2 activated; 1 run is evaluated against it."
    assert Evaluation.objects.get(qrels__version=2).run == run
    again = send(browser, "judgements/", QRELS, activate="true")
    assert "Version 1 has the same judgements" in done(browser, again)
    assert small.active_qrels.version == 1  # type: ignore[union-attr]
    assert send(browser, "judgements/", action="activate", version="9").status_code == 404
    bad = send(browser, "judgements/", "1 0 a\n2 0 b x\n", note="kept", activate="true")
    assert (bad.status_code, "2 problems" in message_of(bad)) == (422, True)
    assert small.qrels.count() == 2


def test_measures_are_chosen(browser: Client, collection: str) -> None:
    assert "P@7, RR added" in done(browser, send(browser, "measures/", add=["", "P@7, RR"]))
    assert done(browser, send(browser, "measures/", first="RR")) == "RR is the first measure now."
    assert done(browser, send(browser, "measures/", remove="AP")) == "AP removed."
    assert Collection.objects.get().measures == ["RR", "nDCG@10", "P@7"]
    for add, says in (
        ("nDGC@10", "unknown measure"),
        ("", "type the name"),
        ("InferredX", "unknown"),
    ):
        wrong = send(browser, "measures/", add=add)
        assert (wrong.status_code, says in message_of(wrong).lower()) == (400, True), message_of(
            wrong
        )
        assert f'value="{add}"' in wrong.content.decode()
    assert send(browser, "measures/", remove="AP").status_code == 400
    assert (
        done(browser, send(browser, "measures/", documents="1000", scores="float32"))
        == "Changes saved."
    )
    small = Collection.objects.get()
    assert (small.documents, small.scores, small.measures) == (
        1000,
        "float32",
        ["RR", "nDCG@10", "P@7"],
    )
    assert send(browser, "measures/", documents="none", scores="float32").status_code == 400


def test_blind_scores_are_released_by_typing_the_name(browser: Client, collection: str) -> None:
    assert "cannot become blind" in message_of(browser.get(f"{MANAGE}access/"))
    Collection.objects.update(blind=True)
    html = page(browser, f"{MANAGE}access/")
    assert "version 1 of the judgements" in text_of(html)
    wrong = send(browser, "access/", action="release", confirm="Small")
    assert (wrong.status_code, 'value="Small"' in wrong.content.decode()) == (400, True)
    assert Collection.objects.get().blind
    assert "Released" in done(browser, send(browser, "access/", action="release", confirm="small"))
    assert Collection.objects.get().released_at
    assert send(browser, "access/", action="blind").status_code == 409


def test_an_empty_collection_becomes_blind(browser: Client, api: Any) -> None:
    api.post("/api/v1/collections/", {"slug": "small", "name": "Small"})
    assert "is blind now" in done(browser, send(browser, "access/", action="blind"))
    assert "when there are active judgements" in message_of(browser.get(f"{MANAGE}access/"))


def test_the_quota_is_set_and_its_use_is_shown(
    browser: Client, collection: str, submit: Any
) -> None:
    assert done(browser, send(browser, "quota/", daily_submissions="2")) == "Changes saved."
    submit(GOOD)
    assert "alice 1" in message_of(browser.get(f"{MANAGE}quota/"))
    assert send(browser, "quota/", daily_submissions="0").status_code == 400
    assert done(browser, send(browser, "quota/", daily_submissions="")) == "Changes saved."
    assert Collection.objects.get().daily_submissions is None


def test_what_was_withdrawn_is_restored_by_its_team_alone(
    browser: Client, collection: str, submit: Any, bob: User, api: Any
) -> None:
    assert "Nothing has been withdrawn" in message_of(browser.get(f"{MANAGE}withdrawn/"))
    run = submit(GOOD)
    assert api.delete(f"/api/v1/runs/{run.pk}/").status_code == 204
    assert "Restore good" in page(browser, f"{MANAGE}withdrawn/")
    # Another team's run: its organiser sees that it was withdrawn.
    Run.objects.update(team=bob.personal_team)
    html = page(browser, f"{MANAGE}withdrawn/")
    assert "bob" in html
    assert "Restore good" not in html
    assert send(browser, "withdrawn/", kind="run", id=str(run.pk)).status_code == 404
    Run.objects.update(team=run.team)
    assert "restored" in done(browser, send(browser, "withdrawn/", kind="run", id=str(run.pk)))
    assert Run.objects.get().deleted_at is None
    for wrong in (
        {"kind": "run", "id": str(run.pk)},
        {"kind": "run", "id": "x"},
        {"kind": "user", "id": str(run.pk)},
    ):
        assert send(browser, "withdrawn/", **wrong).status_code == 404


def test_the_audit_trail_has_no_addresses(browser: Client, collection: str) -> None:
    send(browser, "quota/", daily_submissions="2")
    text = message_of(browser.get(f"{MANAGE}audit/"))
    assert (
        "collection.changed small alice before: daily_submissions not set after: daily_submissions 2"
        in text
    )
    assert "127.0.0.1" not in text


def test_the_audit_trail_writes_values_as_json(browser: Client, collection: str) -> None:
    Collection.objects.update(level_labels={"0": "no"})
    send(browser, "", name="Other", level_labels="1 = yes", visibility="public", team="alice")
    html = browser.get(f"{MANAGE}audit/").content.decode()
    assert "{&quot;0&quot;: &quot;no&quot;}" in html
    assert "&#x27;" not in html


def test_sections_show_hostile_text_as_text_and_ask_little(
    browser: Client, collection: str, django_assert_max_num_queries: Any
) -> None:
    Collection.objects.update(
        name=HOSTILE, description=HOSTILE, level_labels={"1": HOSTILE}, measures=[HOSTILE, "AP"]
    )
    sections = (
        "",
        "topics/",
        "judgements/",
        "measures/",
        "access/",
        "quota/",
        "withdrawn/",
        "audit/",
    )
    for section in sections:
        with django_assert_max_num_queries(10):
            html = page(browser, MANAGE + section)
        assert "&lt;script&gt;" in html
        assert "<img src=x" not in html


def test_only_organisers_find_the_way(browser: Client, collection: str, bob: User) -> None:
    assert MANAGE in page(browser, "/collections/small/")
    other = Client()
    other.force_login(bob)
    assert MANAGE not in page(other, "/collections/small/")
    assert "nly owners of team alice" in page(other, MANAGE, 403)


def test_forms_need_a_csrf_token(alice: User, collection: str) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(alice)
    for path in ("/new-collection/", MANAGE, f"{MANAGE}quota/", f"{MANAGE}topics/"):
        assert browser.post(path).status_code == 403, path
    assert not Collection.objects.exclude(name="Small").exists()
