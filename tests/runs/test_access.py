"""Who may do what, and what each answer of the API looks like."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from runs.models import ApiToken, Collection, Run, User
from tests.conftest import GOOD, client_of, upload
from tests.shared_data import alice, api, collection, module_data, submit

__all__ = ["alice", "api", "collection", "module_data", "submit"]

pytestmark = pytest.mark.words


@pytest.fixture
def stranger(bob: User) -> APIClient:
    return client_of(bob)


@pytest.mark.queries
def test_public_collections_are_read_without_a_token(
    anonymous: APIClient, submit: Callable[..., Run]
) -> None:
    run = submit(GOOD)
    for path in (
        "collections/", "collections/small/", "collections/small/topics/", "collections/small/qrels/",
        "collections/small/qrels/1/", "collections/small/qrels/1/file/", "collections/small/runs/",
        "collections/small/leaderboard/", f"runs/{run.pk}/", f"runs/{run.pk}/file/", f"runs/{run.pk}/values/",
        f"runs/{run.pk}/curve/", f"runs/{run.pk}/precision-recall/", f"runs/{run.pk}/evaluations/", "measures/",
        "collections/small/what-if/", "schema/",
    ):  # fmt: skip
        answer = anonymous.get(f"/api/v1/{path}")
        assert answer.status_code == 200, path
        assert not answer.streaming or b"".join(answer.streaming_content)


def test_writing_needs_a_token(anonymous: APIClient, submit: Callable[..., Run]) -> None:
    run = submit(GOOD)
    answers = [
        anonymous.post("/api/v1/collections/", {"slug": "x", "name": "x"}),
        upload(anonymous, "collections/small/runs/", GOOD),
        upload(anonymous, "collections/small/qrels/", GOOD),
        upload(anonymous, "collections/small/topics/", "1\tx", "put"),
        anonymous.patch("/api/v1/collections/small/", {"name": "y"}),
        anonymous.delete(f"/api/v1/runs/{run.pk}/"),
        anonymous.post("/api/v1/tokens/", {"name": "x"}),
        anonymous.get("/api/v1/tokens/"),
        anonymous.get("/api/v1/teams/"),
    ]
    assert [answer.status_code for answer in answers] == [401] * len(answers)
    assert all(answer["WWW-Authenticate"] == "Bearer" for answer in answers)
    assert all(answer["Content-Type"] == "application/problem+json" for answer in answers)


@pytest.mark.queries
def test_a_team_collection_does_not_exist_for_others(
    api: APIClient, stranger: APIClient, anonymous: APIClient, submit: Callable[..., Run]
) -> None:
    run = submit(GOOD)
    api.patch("/api/v1/collections/small/", {"visibility": "team"})
    for client in (stranger, anonymous):
        assert client.get("/api/v1/collections/").json()["count"] == 0
        for path in ("collections/small/", "collections/small/leaderboard/", "collections/small/comparison/",
                     "collections/small/qrels/1/file/", f"runs/{run.pk}/", f"runs/{run.pk}/file/",
                     "collections/small/what-if/", "collections/small/difference/", f"runs/{run.pk}/values/",
                     f"runs/{run.pk}/curve/", f"runs/{run.pk}/precision-recall/"):  # fmt: skip
            assert client.get(f"/api/v1/{path}").status_code == 404, path
    assert upload(stranger, "collections/small/runs/", GOOD).status_code == 404
    assert api.get(f"/api/v1/runs/{run.pk}/").status_code == 200


def test_a_stranger_may_submit_to_a_public_collection_but_change_nothing(
    stranger: APIClient, submit: Callable[..., Run]
) -> None:
    run = submit(GOOD)
    answer = upload(stranger, "collections/small/runs/", GOOD)
    assert (answer.status_code, answer.json()["team"]) == (202, "bob")
    refused = [
        stranger.patch("/api/v1/collections/small/", {"name": "mine"}),
        upload(stranger, "collections/small/qrels/", "1 0 a 1\n"),
        upload(stranger, "collections/small/topics/", "1\tx", "put"),
        stranger.post("/api/v1/collections/small/qrels/1/activate/"),
        stranger.post("/api/v1/collections/small/evaluations/", {"scores": "float32"}),
        stranger.delete(f"/api/v1/runs/{run.pk}/"),
        stranger.patch(f"/api/v1/runs/{run.pk}/", {"description": "mine"}),
        stranger.post(f"/api/v1/runs/{run.pk}/evaluations/", {"scores": "float32"}),
    ]
    assert [answer.status_code for answer in refused] == [403] * len(refused)
    assert {answer.json()["code"] for answer in refused} == {"not_allowed"}


def test_nobody_submits_for_a_team_of_others(stranger: APIClient, collection: str) -> None:
    answer = upload(stranger, "collections/small/runs/", GOOD, team="alice")
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"] == "/team"
    assert not Run.objects.exists()


@pytest.mark.parametrize("scheme", ["Bearer", "Token", "bearer"])
def test_both_token_headers_are_understood(alice: User, anonymous: APIClient, scheme: str) -> None:
    _, token = ApiToken.objects.issue(user=alice, name="x")
    anonymous.credentials(HTTP_AUTHORIZATION=f"{scheme} {token}")
    assert anonymous.get("/api/v1/teams/").json()["results"][0]["slug"] == "alice"


@pytest.mark.queries
def test_unusable_tokens_get_one_answer(alice: User, anonymous: APIClient) -> None:
    now = timezone.now()
    _, expired = ApiToken.objects.issue(user=alice, name="x", expires_at=now - timedelta(seconds=1))
    revoked, revoked_text = ApiToken.objects.issue(user=alice, name="x")
    ApiToken.objects.filter(pk=revoked.pk).update(revoked_at=now)
    texts = [
        expired,
        revoked_text,
        "evh_00000000_wrong",
        "",
        "x y",
        "é",
        revoked_text[:-1],
        "evh__",
    ]
    bodies = set()
    for text in texts:
        anonymous.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
        answer = anonymous.get("/api/v1/teams/")
        assert answer.status_code == 401, text
        bodies.add(answer.content)
    assert len(bodies) == 1


@pytest.mark.queries
def test_a_token_is_shown_once_and_stored_hashed(api: APIClient, alice: User) -> None:
    issued = api.post("/api/v1/tokens/", {"name": "pipeline", "scopes": ["read", "manage"]}).json()
    assert issued["token"].startswith("evh_")
    secret = issued["token"].split("_", 2)[2]
    assert all(secret not in token.digest for token in ApiToken.objects.all())
    assert all("token" not in row for row in api.get("/api/v1/tokens/").json()["results"])
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {issued['token']}")
    assert client.delete(f"/api/v1/tokens/{issued['key']}/").status_code == 204
    assert client.get("/api/v1/teams/").status_code == 401


def test_a_token_of_others_cannot_be_revoked(stranger: APIClient, alice: User) -> None:
    token, _ = ApiToken.objects.issue(user=alice, name="x")
    assert stranger.delete(f"/api/v1/tokens/{token.key}/").status_code == 404


def test_every_user_has_a_team_from_the_start(db: None) -> None:
    first = User.objects.create_user("Ann Lee")
    second = User.objects.create_superuser("ann-lee")
    assert [user.personal_team.slug for user in (first, second)] == ["ann-lee", "ann-lee-2"]


def test_the_same_file_and_tag_is_the_same_run(api: APIClient, collection: str) -> None:
    first = upload(api, "collections/small/runs/", GOOD)
    again = upload(api, "collections/small/runs/", GOOD)
    assert (first.status_code, again.status_code) == (202, 200)
    assert first.json()["id"] == again.json()["id"]
    other = upload(api, "collections/small/runs/", GOOD.replace("3.0", "4.0"))
    assert (other.status_code, other.json()["code"]) == (409, "tag_taken")
    assert Run.objects.count() == 1


def test_a_dry_run_stores_nothing(api: APIClient, collection: str) -> None:
    answer = upload(api, "collections/small/runs/", GOOD, dry_run="true")
    assert (answer.status_code, answer.json()["documents"]) == (200, 5)
    bad = upload(api, "collections/small/runs/", GOOD.replace("3.0", "high"), dry_run="true")
    assert (bad.status_code, bad.json()["errors"][0]["line"]) == (422, 1)
    assert not Run.objects.exists()


def test_a_dry_run_that_says_neither_is_refused(api: APIClient, collection: str) -> None:
    answer = upload(api, "collections/small/runs/", GOOD, dry_run="maybe")
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "/dry_run")
    form = {"file": SimpleUploadedFile("run.txt", GOOD.encode()), "dry_run": "true"}
    assert api.post("/api/v1/collections/small/runs/", form, format="multipart").status_code == 200
    assert not Run.objects.exists()


def test_topics_warn_about_what_the_run_lacks(api: APIClient, collection: str) -> None:
    answer = upload(api, "collections/small/topics/", "1\tone\n2\ttwo\n3\tthree\n9\tnine\n", "put")
    assert answer.json() == {
        "format": "tsv",
        "topics": 4,
        "attributes": None,
        "warnings": {"warnings": [], "counts": {}},
    }
    run = upload(api, "collections/small/runs/", GOOD.replace("3 Q0", "4 Q0")).json()
    assert run["warnings"]["counts"] == {"topic_outside": 1, "topic_missing": 2}
    assert "3, 9" in run["warnings"]["warnings"][1]["message"]


def test_a_multipart_form_carries_metadata(api: APIClient, collection: str) -> None:
    file = SimpleUploadedFile("run.txt", GOOD.encode())
    answer = api.post(
        "/api/v1/collections/small/runs/",
        {"file": file, "tag": "mine", "description": "first try", "metadata": '{"commit": "abc"}'},
        format="multipart",
    )
    assert answer.status_code == 202
    run = answer.json()
    assert (run["tag"], run["metadata"], run["description"]) == (
        "mine",
        {"commit": "abc"},
        "first try",
    )
    assert run["warnings"]["counts"] == {"tag_differs": 1}


def test_files_come_back_byte_for_byte(api: APIClient, submit: Callable[..., Run]) -> None:
    run = submit(GOOD)
    answer = api.get(f"/api/v1/runs/{run.pk}/file/")
    assert b"".join(answer.streaming_content) == GOOD.encode()
    assert answer["Content-Disposition"] == 'attachment; filename="good.run"'


@pytest.mark.parametrize(
    "path", ["collections/", "collections/small/runs/", "collections/small/qrels/"]
)
def test_lists_ask_a_fixed_number_of_queries(
    api: APIClient, submit: Callable[..., Run], path: str
) -> None:
    counts = []
    for step in range(2):
        for index in range(3):
            submit(GOOD, tag=f"r{step}{index}")
            Collection.objects.create(
                slug=f"c{step}{index}", name="c", team=Run.objects.all()[0].team
            )
        with CaptureQueriesContext(connection) as queries:
            assert api.get(f"/api/v1/{path}").status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 7


@pytest.mark.queries
def test_runs_are_filtered(api: APIClient, submit: Callable[..., Run]) -> None:
    submit(GOOD, tag="bm25-a")
    upload(api, "collections/small/runs/", GOOD, tag="waiting")

    def tags_of(**query: str) -> list[str]:
        return [
            run["tag"]
            for run in api.get("/api/v1/collections/small/runs/", query).json()["results"]
        ]

    assert tags_of() == ["waiting", "bm25-a"]
    assert tags_of(status="evaluated") == ["bm25-a"]
    assert tags_of(status="queued") == ["waiting"]
    assert tags_of(tag="BM25") == ["bm25-a"]
    assert tags_of(team="nobody") == []
    assert tags_of(submitted_before="2001-01-01T00:00:00Z") == []
    assert api.get("/api/v1/collections/small/runs/", {"status": "done"}).status_code == 400


def test_a_run_without_judgements_waits_with_a_reason(api: APIClient) -> None:
    api.post("/api/v1/collections/", {"slug": "new", "name": "New"})
    run = upload(api, "collections/new/runs/", GOOD).json()
    assert (run["status"]["state"], run["status"]["code"]) == ("queued", "no_active_qrels")
    upload(api, "collections/new/qrels/", "1 0 a 1\n")
    assert api.get(run["url"]).json()["status"]["code"] == ""


def test_unknown_addresses_answer_as_problems(anonymous: APIClient) -> None:
    answer = anonymous.get("/api/v1/nothing/")
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")
