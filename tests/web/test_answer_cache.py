"""304 for what is unchanged, and never for what is not: every change of a body gives another tag."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction
from django.urls import reverse
from rest_framework.test import APIClient

from metrics.models import Evaluation
from metrics.questions import answer_cache
from metrics.services.answer_store import forget_all
from metrics.services.queue.lifecycle import claim, fail
from runs.models import AuditEvent, Collection, Membership, Run, Team
from runs.services.audit.trail import SYSTEM, record
from tests.conftest import GOOD, QRELS, client_of, evaluate_all, upload
from tests.web.shared_people import module_data, module_people, people, run
from tests.web.worlds import People, add_qrels, run_ids, submit_form

__all__ = ["module_data", "module_people", "people", "run"]

pytestmark = [pytest.mark.words, pytest.mark.usefixtures("answers_kept")]
PATHS = (
    "/api/v1/collections/one/leaderboard/", "/api/v1/collections/one/leaderboard/?measures=P@3&limit=1",
    "/api/v1/collections/one/comparison/", "/api/v1/collections/one/what-if/",
    "/api/v1/collections/one/charts/significance.json", "/api/v1/collections/one/charts/precision-recall.json",
    "/api/v1/collections/one/curves/?readings=true", "/api/v1/collections/one/precision-recall/",
    "/api/v1/collections/one/difference/?runs={run},{other}", "/api/v1/runs/{run}/values/",
    "/api/v1/collections/one/parameters/", "/api/v1/collections/one/parameters/?q=k&limit=1",
    "/api/v1/runs/{run}/curve/", "/api/v1/runs/{run}/precision-recall/", "/api/v1/measures/", "/api/v1/measures/AP/",
    "/collections/one/", "/collections/one/board/", "/collections/one/comparison/", "/runs/{run}/", "/measures/",
)  # fmt: skip
BOARD, PAGE, VALUES = PATHS[0], "/collections/one/", "/api/v1/runs/{run}/values/"
PARAMETERS = "/api/v1/collections/one/parameters/"


def client_for(people: People, path: str, role: str = "participant") -> Any:
    return people.api[role] if path.startswith("/api/") else people.browsers[role]


def content_of(answer: Any) -> bytes:
    """Without what a form carries, which differs each time."""
    return re.sub(rb'csrfmiddlewaretoken" value="\w+', b"", answer.content)


def ask(people: People, path: str, role: str = "participant", known: str = "") -> Any:
    ids = [*run_ids("one"), "", ""]
    headers = {"If-None-Match": known} if known else {}
    return client_for(people, path, role).get(
        path.format(run=ids[0], other=ids[1]), headers=headers
    )


@pytest.mark.slow
def test_what_is_unchanged_is_not_sent_again(
    people: People, run: str, subtests: pytest.Subtests
) -> None:
    for path in PATHS:
        # A page with a form sets a cookie with it; from then on it is the same page.
        ask(people, path)
        with subtests.test(path):
            first = ask(people, path)
            assert first.status_code == 200, first.content
            assert first["Cache-Control"] == "private, no-cache"
            assert {"Authorization", "Cookie"} <= set(first["Vary"].split(", "))

            tag = first["ETag"]
            for known in (tag, tag.removeprefix("W/"), f'"other", {tag}', "*"):
                again = ask(people, path, known=known)
                assert (again.status_code, again.content) == (304, b"")
                assert (again["ETag"], again["Cache-Control"]) == (tag, "private, no-cache")

            assert content_of(ask(people, path, known='W/"other"')) == content_of(first)


@pytest.mark.slow
def test_what_is_remembered_is_what_is_made(
    people: People, run: str, subtests: pytest.Subtests
) -> None:
    """With the same headers, too: they do not reveal whether somebody asked before."""

    def read(path: str, known: str) -> tuple[int, bytes, dict[str, str]]:
        answer = ask(people, path, known=known)
        headers = {name: value for name, value in answer.items() if name != "X-Request-ID"}
        return answer.status_code, content_of(answer), headers

    for path in PATHS:
        # A page with a form sets a cookie with it, on which its tag depends.
        ask(people, path)
        with subtests.test(path):
            tag, computed = ask(people, path)["ETag"], []
            for known in ("", tag):
                forget_all()
                computed.append(read(path, known))

            assert [read(path, known) for known in ("", tag)] == computed
            assert [status for status, *_ in computed] == [200, 304]


def submit_one(people: People) -> None:
    """A run more, not evaluated yet."""
    assert (
        submit_form(people.api["other"], "one", GOOD, team="others", tag="late").status_code == 202
    )


def finish_one(people: People) -> None:
    assert evaluate_all() == 1


def fail_one(people: People) -> None:
    submit_one(people)
    lease = claim(Evaluation.objects.get(state="queued").pk)
    assert lease
    assert fail(lease, code="evaluation_timeout", message="too long")


def delete_one(people: People) -> None:
    run = Run.objects.filter(team__slug="others").latest("created_at")
    assert people.api["other"].delete(f"/api/v1/runs/{run.pk}/").status_code == 204


def judge_anew(people: People) -> None:
    add_qrels(people, "one", QRELS.replace("1 0 a 2", "1 0 a 1"))


def activate_first(people: People) -> None:
    assert people.api["owner"].post("/api/v1/collections/one/qrels/1/activate/").status_code == 200


def rename_team(people: People) -> None:
    """As the administration does it."""
    with transaction.atomic():
        Team.objects.filter(slug="guests").update(slug="visitors", name="Visitors")
        record(SYSTEM, AuditEvent.Action.TEAM_CHANGED, Team.objects.get(slug="visitors"))


def change(people: People, **fields: Any) -> None:
    assert people.api["owner"].patch("/api/v1/collections/one/", fields).status_code == 200


CHANGES: dict[str, Callable[[People], object]] = {
    "a new run": submit_one,
    "an evaluation finished": finish_one,
    "a deleted run": delete_one,
    "a failed evaluation": fail_one,
    "new judgements": judge_anew,
    "evaluated under them": lambda people: evaluate_all(),
    "the earlier judgements": activate_first,
    "another name": lambda people: change(people, name="Renamed"),
    "other measures": lambda people: change(people, measures=["P@1"]),
    "other scores": lambda people: change(people, scores="float32"),
    "evaluated with them": lambda people: evaluate_all(),
    "a team renamed": rename_team,
}


# The leaderboard of the API has no name of its collection.
NOT_IN_BODY = {("another name", BOARD)}


@pytest.mark.slow
@pytest.mark.queries
def test_a_board_has_another_tag_exactly_when_its_body_changes(people: People, run: str) -> None:
    """One after another, as they come; the answer behind the new tag is the one that is made anew."""
    latest = {path: ask(people, path) for path in (BOARD, PAGE)}
    for name, make in CHANGES.items():
        make(people)
        for path, earlier in list(latest.items()):
            conditional = ask(people, path, known=earlier["ETag"])
            answer = ask(people, path)
            same = (name, path) in NOT_IN_BODY
            assert (content_of(answer) == content_of(earlier)) == same, (name, path)
            assert (answer["ETag"] == earlier["ETag"]) == same, (name, path)
            assert conditional.status_code == (304 if same else 200), (name, path)
            latest[path] = answer
        forget_all()
        for path, answer in latest.items():
            again = ask(people, path)
            assert (content_of(again), again["ETag"]) == (content_of(answer), answer["ETag"]), (
                name,
                path,
            )


def test_every_change_of_parameters_changes_the_tag_of_their_list(people: People, run: str) -> None:
    def patch(role: str, path: str, **changes: Any) -> None:
        assert people.api[role].patch(f"/api/v1/{path}", changes, format="json").status_code == 200

    known = ask(people, PARAMETERS)
    assert known.json()["runs"] == 2
    changes: dict[str, Callable[[], object]] = {
        "another value": lambda: patch("participant", f"runs/{run}/", metadata={"k1": 1.2}),
        "another parameter": lambda: patch("participant", f"runs/{run}/", metadata={"b": 0.4}),
        "a note": lambda: patch("owner", "collections/one/parameters/param/k1/", note="saturation"),
        "a run without any": lambda: submit_one(people),
        "a run deleted": lambda: delete_one(people),
    }
    for name, make in changes.items():
        make()
        answer = ask(people, PARAMETERS, known=known["ETag"])
        assert answer.status_code == 200, name
        forget_all()
        assert ask(people, PARAMETERS).content == answer.content != known.content, name
        assert ask(people, PARAMETERS, "owner").content == answer.content, name
        known = answer
    Collection.objects.update(blind=True)
    assert "ETag" not in ask(people, PARAMETERS)


def test_every_change_of_a_run_changes_the_tag_of_its_values(people: People, run: str) -> None:
    tags = [ask(people, VALUES)["ETag"]]
    changes = {
        "judged": judge_anew,
        "evaluated": lambda people: evaluate_all(),
        "other measures": lambda people: change(people, measures=["P@1"]),
    }
    for name, make in changes.items():
        make(people)
        answer = ask(people, VALUES, known=tags[-1])
        assert (answer.status_code, answer["ETag"] in tags) == (200, False), name
        tags.append(answer["ETag"])
    topics = "/runs/{run}/"
    before = ask(people, topics)["ETag"]
    assert (
        upload(people.api["owner"], "collections/one/topics/", "1\tanother\n", "put").status_code
        == 200
    )
    assert ask(people, topics, known=before).status_code == 200


def test_who_leaves_a_team_gets_nothing_with_the_tag_of_a_member(people: People, run: str) -> None:
    Collection.objects.update(visibility="team")
    assert ask(people, BOARD, "other").status_code == 404
    lab, other = Team.objects.get(slug="lab"), people.users["other"]
    Membership.objects.create(team=lab, user=other, role="member")
    tag = ask(people, BOARD, "other")["ETag"]
    assert ask(people, BOARD, "other", tag).status_code == 304
    Membership.objects.filter(team=lab, user=other).delete()
    # The body is remembered, but not for somebody who may not see it any more.
    assert ask(people, BOARD, "other", tag).status_code == 404


def test_pages_say_who_reads_them(people: People, run: str) -> None:
    pages = {role: ask(people, PAGE, role) for role in ("anonymous", "participant", "owner")}
    assert len({page["ETag"] for page in pages.values()}) == 3
    for role in ("participant", "owner"):
        assert [name for name in pages if f">{role}<" in pages[name].content.decode()] == [role]


@pytest.mark.slow
def test_nothing_blind_has_a_tag_for_outsiders(people: People, run: str) -> None:
    Collection.objects.filter(slug="one").update(blind=True)
    for path in PATHS:
        if "measures/" not in path:
            for role in ("anonymous", "participant", "other"):
                answer = ask(people, path, role, "*")
                assert answer.status_code in {200, 403, 404}, (path, role)
                assert "ETag" not in answer, (path, role)
                assert answer["Cache-Control"] == "private, no-cache"
    known = ask(people, BOARD, "owner")["ETag"]
    assert ask(people, BOARD, "owner", known).status_code == 304
    assert ask(people, BOARD, "participant", known).status_code == 403
    assert people.api["owner"].post("/api/v1/collections/one/release/").status_code == 200
    released = ask(people, BOARD, "participant")
    assert (released.status_code, released["ETag"]) == (200, known)
    for path in (BOARD, PAGE, VALUES):
        assert ask(people, path, "anonymous")["ETag"], path


def test_a_problem_is_never_remembered(people: People, run: str) -> None:
    for path, status in (
        (f"{BOARD}?measures=foo", 400),
        (f"{PAGE}?measures=foo", 400),
        (f"{BOARD}?limit=0", 400),
    ):
        for _ in range(2):
            answer = ask(people, path)
            assert (answer.status_code, "ETag" in answer) == (status, False), path


def test_no_answer_may_be_kept_by_a_cache_that_others_share(people: People, run: str) -> None:
    for name in ("collections", "teams", "tokens", "home"):
        answer = client_for(people, reverse(name)).get(reverse(name))
        assert answer["Cache-Control"] == "private, no-cache", name
        assert {"Authorization", "Cookie"} <= set(answer["Vary"].replace(" ", "").split(",")), name


def test_a_compressed_answer_keeps_its_tag(people: People, run: str) -> None:
    plain = ask(people, BOARD)
    zipped = people.api["participant"].get(BOARD, headers={"Accept-Encoding": "gzip"})
    assert (zipped["Content-Encoding"], zipped["ETag"]) == ("gzip", plain["ETag"])


def test_another_host_gets_its_own_addresses(people: People, run: str) -> None:
    client: APIClient = client_of(people.users["participant"])
    pages = [
        client.get(f"{BOARD}?limit=1", headers={"Host": host}).json()["next"]
        for host in ("testserver", "localhost")
    ]
    assert [page.split("/")[2] for page in pages] == ["testserver", "localhost"]


@pytest.fixture
def lagging(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Boards may be an hour old, and all of them take long to make."""
    settings.EVALHUB_BOARD_SECONDS = 3600
    monkeypatch.setattr(answer_cache, "_SLOW_SECONDS", 0.0)


def test_a_board_may_be_old_while_runs_arrive_and_says_so(
    people: People, run: str, lagging: None
) -> None:
    first = ask(people, BOARD)
    assert "Age" not in first
    submit_one(people)
    for _ in range(2):
        late = ask(people, BOARD)
        assert (late.content, late["ETag"], late["Age"]) == (first.content, first["ETag"], "1")
    assert ask(people, BOARD, known=first["ETag"]).status_code == 304
    finish_one(people)
    done = ask(people, BOARD)
    assert "Age" not in done
    assert done.json()["states"] == {"evaluated": first.json()["states"]["evaluated"] + 1}


@pytest.mark.slow
@pytest.mark.parametrize("move", ["another name", "new judgements", "other measures"])
def test_an_old_board_is_given_out_only_where_nothing_but_runs_has_moved(
    people: People, run: str, lagging: None, move: str
) -> None:
    submit_one(people)
    first = ask(people, BOARD)
    CHANGES[move](people)
    changed = ask(people, BOARD)
    assert "Age" not in changed
    assert (changed["ETag"] == first["ETag"]) == ((move, BOARD) in NOT_IN_BODY)
    forget_all()
    assert ask(people, BOARD).content == changed.content


def test_a_board_that_is_made_quickly_is_never_old(
    people: People, run: str, lagging: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_cache, "_SLOW_SECONDS", 60.0)
    first = ask(people, BOARD)
    submit_one(people)
    assert ask(people, BOARD)["ETag"] != first["ETag"]
