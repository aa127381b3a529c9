"""Pages that are kept: without their reader, for readers of whom they show the same, and made for
the cache by a worker."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils.html import escape

from evalhub.serving import cache_warming
from evalhub.serving.cache_warming import PAGES, warm_cache
from metrics.services.answer_store import forget_all
from metrics.services.upkeep.dispatch import Dispatcher
from runs.models import Collection, Run, View
from runs.services.audit import revisions
from runs.services.audit.revisions import mark_changed
from runs.services.tracking.labels import move_label
from tests.conftest import GOOD, POOR, evaluate_all
from tests.kept import recalled_answers
from tests.web.shared_people import module_data, module_people, people, run
from tests.web.worlds import ROLES, People, make_collection, make_label, submit_form

__all__ = ["module_data", "module_people", "people", "run"]

pytestmark = [pytest.mark.words, pytest.mark.usefixtures("answers_kept")]
ONE = "/collections/one/"
SHARED = (
    "board/", "comparison/", "parameters/", "parameters/importance/", "frontier/", "what-if/", "heat-map/", "orders/",
    "design/", "board/?filter=own:yes", "comparison/?tests=randomised_tukey_hsd&resamples=5000",
)  # fmt: skip

# Addresses of pages and of the API about a run that a label names, or a saved view with one.
LABELLED = (
    "{one}comparison/?baseline=l%61bel:main", "{one}comparison/?%62aseline=%6cabel%3amai%6E",
    "{one}board/?baseline=%6C%61%62%65%6C%3A%6D%61%69%6E", "{one}board/?%76iew=named",
    "{api}comparison/?baseline=l%61bel:main", "{api}leaderboard/?%76iew=named",
    "{api}difference/?runs={run},l%61bel:main", "{api}charts/significance.json?runs={run},l%61bel:main",
)  # fmt: skip


@pytest.fixture
def answer_files(settings: Any) -> Path:
    """Answers are in files, as those of a server are."""
    folder: Path = settings.EVALHUB_DATA / "answers"
    in_files = {
        "BACKEND": "django.core.cache.backends.filebased.FileBasedCache",
        "LOCATION": folder,
        "OPTIONS": {"MAX_ENTRIES": 1000},
    }
    settings.CACHES = {**settings.CACHES, "answers": in_files}
    settings.EVALHUB_KEPT_ANSWERS_BYTES = 2**26
    return folder


@pytest.fixture
def no_view(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever would compute an answer fails."""

    def refuse(*arguments: Any, **named: Any) -> Any:
        raise AssertionError("computed again")

    for name in (
        "boards.views._context",
        "tracking.frontier._answer",
        "boards.what_if._answer",
        "tracking.importance._answer",
    ):
        monkeypatch.setattr(f"metrics.pages.{name}", refuse)


def without_token(content: bytes) -> bytes:
    return re.sub(rb'csrfmiddlewaretoken" value="\w+', b"", content)


@pytest.mark.slow
@pytest.mark.parametrize("path", SHARED)
def test_a_page_kept_for_one_reader_is_the_page_of_the_next(
    people: People, run: str, path: str
) -> None:
    """Of those who share a page, the first one's is that of all others."""
    pages = {
        role: without_token(people.browsers[role].get(f"{ONE}{path}").content) for role in ROLES
    }
    for role in ROLES:
        forget_all()
        answer = people.browsers[role].get(f"{ONE}{path}")
        assert without_token(answer.content) == pages[role], role


@pytest.mark.parametrize("path", ["board/", "parameters/"])
def test_a_page_that_names_the_host_is_kept_for_nobody(
    people: People, answer_files: Path, settings: Any, path: str
) -> None:
    """Its commands send the reader's token there."""
    make_collection(people, "bare")
    settings.ALLOWED_HOSTS = ["*"]
    owner = people.browsers["owner"]
    theirs = owner.get(f"/collections/bare/{path}", headers={"host": "theirs.example"})
    assert b"theirs.example" in theirs.content
    ours = owner.get(f"/collections/bare/{path}")
    assert b"http://testserver/" in ours.content
    assert b"theirs.example" not in ours.content


def test_pages_are_the_same_under_every_name_of_the_host(people: People, run: str) -> None:
    for path in SHARED:
        assert b"testserver" not in people.browsers["owner"].get(f"{ONE}{path}").content, path


def test_the_page_of_somebody_signed_in_is_remembered_with_a_token_that_works(
    people: People, run: str
) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(people.users["participant"])
    for path in (ONE, f"{ONE}frontier/", "/measures/"):
        browser.get(path)
        with recalled_answers() as recalled:
            page = browser.get(path).content.decode()
        assert len(recalled) == 1, path
        tokens = re.findall(r'csrfmiddlewaretoken" value="(\w+)"', page)
        assert tokens, path
        assert all(len(token) == 64 for token in tokens), path
    # Another browser of the same user has a token of its own.
    other = Client(enforce_csrf_checks=True)
    other.force_login(people.users["participant"])
    (token,) = set(
        re.findall(r'csrfmiddlewaretoken" value="(\w+)"', other.get("/measures/").content.decode())
    )
    assert other.post("/logout/", {"csrfmiddlewaretoken": token}).status_code == 302
    assert browser.post("/logout/", {"csrfmiddlewaretoken": "a" * 64}).status_code == 403
    assert browser.post("/logout/", {"csrfmiddlewaretoken": tokens[0]}).status_code == 302


def test_names_cannot_imitate_the_places_of_reader_and_token(people: People, run: str) -> None:
    text = '{{ account_slot }}{{ csrf_token }}<input name="csrfmiddlewaretoken" value="">'
    Collection.objects.update(name=text)
    for role in ("anonymous", "owner"):
        pages = [people.browsers[role].get(f"{ONE}frontier/").content for _ in range(2)]
        assert without_token(pages[0]) == without_token(pages[1])
        assert escape(text).encode() in pages[1]


def test_other_processes_find_what_one_has_kept(
    people: People, run: str, answer_files: Path, request: pytest.FixtureRequest
) -> None:
    paths = [
        f"{ONE}{path}" for path in ("board/", "frontier/", "what-if/", "parameters/importance/")
    ]
    pages = [people.browsers["anonymous"].get(path).content for path in paths]
    board = people.api["anonymous"].get("/api/v1/collections/one/leaderboard/").content
    request.getfixturevalue("no_view")
    assert [people.browsers["anonymous"].get(path).content for path in paths] == pages
    answer = people.api["anonymous"].get("/api/v1/collections/one/leaderboard/")
    assert (answer.content, answer["Content-Type"]) == (board, "application/json")


def test_a_page_of_one_reader_is_kept_for_that_reader_alone(people: People, run: str) -> None:
    for role, times in (("participant", 0), ("owner", 0), ("participant", 1)):
        with recalled_answers() as recalled:
            people.browsers[role].get(ONE)
        assert len(recalled) == times, role


def test_nothing_blind_is_kept_for_others_and_what_was_kept_is_not_shown(
    people: People, run: str
) -> None:
    path = f"{ONE}frontier/"
    public = people.browsers["anonymous"].get(path)
    Collection.objects.update(blind=True)
    for role in ("owner", "anonymous", "participant", "other"):
        with recalled_answers() as recalled:
            answer = people.browsers[role].get(path)
        assert not recalled, role
        if role != "owner":
            assert without_token(answer.content) != without_token(public.content), role
            assert "ETag" not in answer, role
    assert warm_cache(collection_id=Collection.objects.get(slug="one").pk) == 0


def test_an_adopted_database_has_no_answers_of_another(
    people: People, run: str, answer_files: Path
) -> None:
    people.browsers["anonymous"].get(f"{ONE}frontier/")
    assert list(answer_files.glob("*"))
    call_command("adopt", stdout=io.StringIO(), stderr=io.StringIO())
    assert not list(answer_files.glob("*"))


# A worker, ahead of the first reader.


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_warming, "LEAST_RUNS", 2)
    monkeypatch.setattr(revisions, "SETTLED_SECONDS", -1.0)


def settle() -> list[int]:
    """Let a dispatcher look for collections that have settled, and return what it asked for."""
    requests: list[int] = []
    Dispatcher(lambda pk: None, publish_warming=requests.append).round()
    return requests


@pytest.mark.parametrize("visibility", ["public", "team"])
def test_after_a_new_evaluation_the_answers_are_there_before_the_first_request(
    people: People,
    run: str,
    answer_files: Path,
    large: None,
    visibility: str,
    django_capture_on_commit_callbacks: Any,
    request: pytest.FixtureRequest,
) -> None:
    Collection.objects.update(visibility=visibility)
    settle()
    late = submit_form(
        people.api["other" if visibility == "public" else "owner"], "one", GOOD, tag="late"
    )
    assert late.status_code == 202, late.content
    assert settle() == []
    with django_capture_on_commit_callbacks(execute=True):
        evaluate_all()
    (collection,) = settle()
    assert warm_cache(collection_id=collection) >= len(PAGES)
    request.getfixturevalue("no_view")
    role = "anonymous" if visibility == "public" else "member"
    for path in ("frontier/", "what-if/", "parameters/importance/"):
        page = people.browsers[role].get(f"{ONE}{path}")
        assert page.status_code == 200, path
    if visibility == "public":
        assert b"late" in people.browsers[role].get(f"{ONE}board/").content


def test_a_change_that_is_no_evaluation_marks_its_collection_too(
    people: People,
    run: str,
    answer_files: Path,
    large: None,
    django_capture_on_commit_callbacks: Any,
) -> None:
    settle()
    with django_capture_on_commit_callbacks(execute=True):
        changed = people.api["owner"].patch(
            "/api/v1/collections/one/", {"name": "New"}, format="json"
        )
    assert changed.status_code == 200, changed.content
    assert settle() == [Collection.objects.get(slug="one").pk]
    with django_capture_on_commit_callbacks(execute=True):
        people.api["owner"].get("/api/v1/collections/one/")
    assert settle() == []


@pytest.mark.parametrize(("visibility", "role"), [("public", "anonymous"), ("private", "owner")])
def test_a_page_made_ahead_is_the_page_of_a_request(
    people: People, run: str, answer_files: Path, large: None, visibility: str, role: str
) -> None:
    Collection.objects.update(visibility=visibility)
    # Of a private collection the organisers alone are readers.
    assert warm_cache(collection_id=Collection.objects.get(slug="one").pk) == len(PAGES) * len(
        {"owner", role}
    )
    paths = [reverse(name, args=["one"]) for name in PAGES]
    ahead_of_all = [without_token(people.browsers[role].get(path).content) for path in paths]
    forget_all()
    for path, content in zip(paths, ahead_of_all, strict=True):
        assert without_token(people.browsers[role].get(path).content) == content, path


def test_nothing_more_is_made_ahead_of_a_collection_that_becomes_blind(
    people: People, run: str, answer_files: Path, large: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[str] = []

    def hide(address: str, reader: Any) -> int:
        Collection.objects.update(blind=True)
        requests.append(address)
        return 200

    monkeypatch.setattr(cache_warming, "_request", hide)
    warm_cache(collection_id=Collection.objects.get(slug="one").pk)
    assert len(requests) == 1


def test_a_page_that_fails_ahead_loses_nothing(
    people: People, run: str, answer_files: Path, large: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> int:
        raise RuntimeError("broken")

    mark_changed(Collection.objects.get(slug="one").pk)
    (collection,) = settle()
    monkeypatch.setattr(cache_warming, "_request", fail)
    assert warm_cache(collection_id=collection) == 0
    # The task is not repeated, and readers get what they ask for.
    assert settle() == []
    assert people.browsers["anonymous"].get(f"{ONE}frontier/").status_code == 200


def test_small_collections_and_those_with_evaluations_under_way_are_left_alone(
    people: People, run: str, answer_files: Path, large: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection = Collection.objects.get(slug="one").pk
    assert (
        submit_form(people.api["other"], "one", GOOD, team="others", tag="late").status_code == 202
    )
    assert warm_cache(collection_id=collection) == 0
    evaluate_all()
    monkeypatch.setattr(cache_warming, "LEAST_RUNS", Run.objects.count() + 1)
    assert warm_cache(collection_id=collection) == 0
    assert warm_cache(collection_id=collection + 1000) == 0


def test_nothing_is_made_ahead_where_answers_are_not_kept(
    people: People, run: str, settings: Any, large: None
) -> None:
    settings.EVALHUB_KEPT_ANSWERS_BYTES = 0
    assert (
        submit_form(people.api["other"], "one", GOOD, team="others", tag="late").status_code == 202
    )
    evaluate_all()
    assert settle() == []


@pytest.fixture
def two_labels(people: People, run: str) -> None:
    """Two teams have a label `main` for a run of their own, and the collection a view with it."""
    make_label(run)
    late = submit_form(people.api["other"], "one", POOR, tag="late").json()["id"]
    evaluate_all()
    move_label(run=Run.objects.get(pk=late), name="main", user=None)
    named = {"code": "named", "query": "baseline=label%3Amain", "scope": View.Scope.COLLECTION}
    View.objects.create(collection=Collection.objects.get(slug="one"), **named)


@pytest.mark.parametrize("path", LABELLED)
def test_a_label_is_that_of_the_reader_however_the_address_is_encoded(
    people: People, run: str, answer_files: Path, two_labels: None, path: str
) -> None:
    clients = people.browsers if path.startswith("{one}") else people.api
    address, contents = path.format(one=ONE, api="/api/v1/collections/one/", run=run), {}
    for role in ("participant", "other"):
        forget_all()
        answer = clients[role].get(address)
        assert answer.status_code == 200, answer.content
        contents[role] = without_token(answer.content)
    assert without_token(clients["participant"].get(address).content) == contents["participant"]
    forget_all()
    assert without_token(clients["participant"].get(address).content) == contents["participant"]
    assert contents["participant"].replace(b"participant", b"") != contents["other"].replace(
        b"other", b""
    )
