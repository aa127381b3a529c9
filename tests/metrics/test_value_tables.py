"""Value tables: declared measures, tables that are refused, and the values that boards then have."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rest_framework.test import APIClient

from metrics.engine.measures.grammar import parse_measure
from metrics.engine.significance.pairs import Matrix
from metrics.models import MetricVector
from metrics.services.upkeep.integrity import find_faults
from metrics.services.values import value_tables
from metrics.services.values.value_tables import change_measure, delete_measure
from runs.errors import NotFound
from runs.models import AuditEvent, Collection, ExternalMeasure, Run, TableValues, User, ValueTable
from tests.conftest import GOOD, POOR, QRELS, client_of, evaluate_all, submit_run, upload
from tests.metrics.boards import make_board, simulated

MEASURES = "/api/v1/collections/small/external-measures/"
TABLES = "collections/small/value-tables/"


def declare(client: APIClient, slug: str = "small", **fields: Any) -> Any:
    fields = {"name": "ap", "direction": "higher", **fields}
    return client.post(f"/api/v1/collections/{slug}/external-measures/", fields, format="json")


def table_of(collection: Collection, values: Matrix, measure: str = "x:ap") -> str:
    """A table with the values of the runs of `make_board`, as Python writes them."""
    return "".join(
        f"r{run}\t{topic}\t{measure}\t{value!r}\n"
        for run, row in enumerate(values.tolist())
        for topic, value in enumerate(row)
        if not np.isnan(value)
    )


# What an answer says of documents, or calls the measure.
_OF_DOCUMENTS = frozenset(
    ("judged", "answered", "k", "cautions", "judged_only", "on_judged", "warnings", "coverage")
)


def differences(a: Any, b: Any, path: str = "") -> Iterator[str]:
    """Where two answers differ, except in what they say of documents."""
    if isinstance(a, dict) and isinstance(b, dict):
        a = {key.replace("x:ap", "AP"): value for key, value in a.items()}
        b = {key.replace("x:ap", "AP"): value for key, value in b.items()}
        if a.keys() != b.keys():
            yield f"{path}: {sorted(a)} {sorted(b)}"
        for key in (a.keys() & b.keys()) - _OF_DOCUMENTS:
            yield from differences(a[key], b[key], f"{path}/{key}")
    elif isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            yield f"{path}: {len(a)} {len(b)}"
        for index, (one, other) in enumerate(zip(a, b, strict=False)):
            yield from differences(one, other, f"{path}/{index}")
    elif isinstance(a, str) and isinstance(b, str):
        if a != b.replace("x:ap", "AP").replace("x%3Aap", "AP"):
            yield f"{path}: {a!r} {b!r}"
    elif a != b or type(a) is not type(b):
        yield f"{path}: {a!r} {b!r}"


TESTS = "t_and_tukey,wilcoxon,sign,bootstrap,randomisation,max_t,tukey_hsd,nemenyi"
QUESTIONS = [
    ("leaderboard/", {"measures": "{}", "statistics": "all"}),
    ("leaderboard/", {"measures": "P@10,{}", "sort": "{}", "filter": "{}>0.4"}),
    ("leaderboard/export/csv/", {"measures": "{}"}),
    ("values/", {"measures": "{}"}),
    ("values/export/csv/", {"measures": "{}"}),
    ("difference/", {"measure": "{}", "runs": "RUNS"}),
    ("comparison/", {"measures": "{}", "tests": TESTS, "resamples": "500"}),
    ("comparison/", {"measures": "{}", "margin": "0.1", "rope": "0.02"}),
    ("comparison/export/md/", {"measures": "{}"}),
    ("comparison/export/tex/", {"measures": "{}"}),
    ("design/", {"measures": "{}"}),
    ("orders/", {"measures": "{},P@10"}),
    ("difficulty/", {"measure": "{}"}),
    ("heat-map/export/csv/", {"measure": "{}"}),
    ("charts/means.csv", {"measures": "{}"}),
    ("charts/significance.csv", {"measures": "{}"}),
]


def check_equal(client: APIClient, slug: str, questions: list[tuple[str, dict[str, str]]]) -> None:
    runs = Run.objects.filter(collection__slug=slug).order_by("tag").values_list("pk", flat=True)
    pair = ",".join(str(pk) for pk in runs[:2])
    for address, query in questions:
        answers = []
        for name in ("AP", "x:ap"):
            asked = {key: text.format(name).replace("RUNS", pair) for key, text in query.items()}
            answer = client.get(f"/api/v1/collections/{slug}/{address}", asked)
            assert answer.status_code == 200, (address, answer.content)
            content = answer.getvalue().decode()
            answers.append(
                json.loads(content) if answer["Content-Type"] == "application/json" else content
            )
        assert list(differences(*answers)) == [], address


def check_same_statistics(api: APIClient, collection: Collection, values: Matrix) -> None:
    slug = collection.slug
    assert declare(api, slug, low=0, high=1).status_code == 201
    answer = upload(api, f"collections/{slug}/value-tables/", table_of(collection, values))
    assert answer.status_code == 201, answer.content
    assert answer.json()["measures"] == {"x:ap": values.size}

    stored = MetricVector.objects.filter(evaluation__run__collection=collection)
    for run in Run.objects.filter(collection=collection):
        computed, given = (stored.get(measure=name, evaluation__run=run) for name in ("AP", "x:ap"))
        assert bytes(computed.content) == bytes(given.content)
        assert (computed.mean, computed.topics) == (given.mean, given.topics)
    check_equal(api, slug, QUESTIONS)


@pytest.mark.django_db
def test_uploaded_ap_gives_the_statistics_of_computed_ap(api: APIClient, alice: User) -> None:
    values = np.clip(simulated(6, 40), 0.0, 1.0)
    board = make_board(alice.personal_team, {"AP": values, "P@10": simulated(6, 40, seed=8)})
    check_same_statistics(api, board, values)


@pytest.mark.real_data
def test_the_same_on_a_real_track(api: APIClient, alice: User, real_data: Path) -> None:
    matrices = {}
    for measure, name in (("AP", "adhoc7_ap.csv"), ("P@10", "adhoc7_p10.csv")):
        with (real_data / "score-matrices-urbano2019" / name).open() as file:
            _, *lines = csv.reader(file)
        matrices[measure] = np.ascontiguousarray(np.array(lines, np.float64).T[:40])
    board = make_board(alice.personal_team, matrices)
    check_same_statistics(api, board, matrices["AP"])


def problems_of(answer: Any) -> list[tuple[int | None, str]]:
    assert answer.status_code == 422, answer.content
    return [(entry["line"], entry["code"]) for entry in answer.json()["errors"]]


@pytest.mark.django_db
def test_lines_that_are_refused_change_nothing(api: APIClient, collection: str) -> None:
    submit_run(api, GOOD, tag="good")
    declare(api, name="share", low=0, high=1)
    table = (
        "run_id query_id measure value\n"
        "good\t1\tx:share\t0.5\n"
        "nobody 1 share 0.5\n"
        "good 1 shore 0.5\n"
        "good 2 share 1.5\n"
        "good 2 share much\n"
        "good 2 share nan\n"
        "good 2 share 1.5e308\n"
        "good 2 share\n"
        "good 1 share 0.25\n"
    )
    expected = [
        (3, "unknown_run"), (4, "undeclared_measure"), (5, "out_of_bounds"), (6, "bad_value"),
        (7, "bad_value"), (8, "bad_value"), (9, "too_few_columns"), (10, "duplicate_value"),
    ]  # fmt: skip
    answer = upload(api, TABLES, table)
    assert problems_of(answer) == expected
    assert "did you mean 'share'?" in answer.json()["errors"][1]["detail"]
    assert problems_of(upload(api, TABLES, table, dry_run="true")) == expected
    assert problems_of(upload(api, TABLES, '{"run": "good", "topic": "1"}\n[]\n{')) == [
        (1, "missing_field"), (2, "bad_json"), (3, "bad_json"),
    ]  # fmt: skip
    assert problems_of(upload(api, TABLES, "\n")) == [(None, "no_values")]
    assert not TableValues.objects.exists()
    assert not ValueTable.objects.exists()


@pytest.mark.django_db
def test_a_later_table_replaces_single_values(api: APIClient, collection: str) -> None:
    run = submit_run(api, GOOD, tag="good")
    declare(api, name="ms", direction="lower", low=0, unit="ms")
    checked = upload(api, TABLES, "good 1 ms 5\n", dry_run="true").json()
    assert (checked["values"], checked["runs"], ValueTable.objects.count()) == (1, 1, 0)

    board = "/api/v1/collections/small/leaderboard/?measures=x:ms"
    before = api.get(board)
    first = upload(api, TABLES, "good 1 x:ms 5\ngood 2 ms 7\ngood 9 ms 9\n").json()
    assert (first["number"], first["warnings"]["counts"]) == (1, {"unknown_topic": 1})
    assert api.get(board)["ETag"] != before["ETag"]
    assert api.get(board).json()["results"][0]["values"]["x:ms"]["mean"] == 6.0

    lines = [
        {"run": str(run.pk), "topic": "1", "measure": "ms", "value": 0.1},
        {"run": f"{run.team.slug}/good", "topic": "2", "measure": "x:ms", "value": None},
    ]
    second = upload(api, TABLES, "\n".join(map(json.dumps, lines)), tool="timer").json()
    assert (second["number"], second["tool"]) == (2, "timer")
    values = api.get(f"/api/v1/runs/{run.pk}/values/?measures=x:ms").json()
    assert values["means"]["x:ms"]["mean"] == 0.1
    given = api.get(f"{MEASURES}ms/values/").content.decode()
    assert given.splitlines()[1:] == [
        f"{run.team.slug}/good\t1\tx:ms\t0.1",
        f"{run.team.slug}/good\t9\tx:ms\t9.0",
    ]
    assert api.get(f"{MEASURES}x:ms/").json()["version"] == 2
    numbers = [table["number"] for table in api.get(f"/api/v1/{TABLES}").json()["results"]]
    assert numbers == [2, 1]
    actions = AuditEvent.objects.filter(action="table.uploaded").order_by("pk")
    assert [event.after["measures"] for event in actions] == [{"x:ms": 3}, {"x:ms": 2}]


@pytest.mark.django_db
def test_a_geometric_mean_has_no_floor(api: APIClient, collection: str) -> None:
    submit_run(api, GOOD, tag="good")
    assert declare(api, name="s", low=1e-9, aggregate="geometric").status_code == 201
    upload(api, TABLES, "good 1 s 1e-8\ngood 2 s 1e-6\n")
    (row,) = api.get("/api/v1/collections/small/leaderboard/?measures=x:s").json()["results"]
    assert row["values"]["x:s"]["mean"] == pytest.approx(1e-7, rel=1e-12)


@pytest.mark.django_db
def test_values_follow_the_judgements(api: APIClient, collection: str) -> None:
    """Another version has other topics, and runs that come later are evaluated with values."""
    submit_run(api, GOOD, tag="good")
    declare(api, name="ms", direction="lower", missing="zero")
    upload(api, TABLES, "good 1 ms 6\ngood 4 ms 2\n")
    upload(api, "collections/small/qrels/", "4 0 a 1\n" + QRELS)
    evaluate_all()
    poor = submit_run(api, POOR, tag="poor")
    board = "/api/v1/collections/small/leaderboard/?measures=x:ms"
    rows = api.get(board).json()["results"]
    assert [(row["run"]["tag"], row["rank"], row["values"]["x:ms"]["mean"]) for row in rows] == [
        ("good", 1, 2.0), ("poor", None, None),
    ]  # fmt: skip
    upload(api, TABLES, "poor 1 ms 1\n")
    rows = api.get(board).json()["results"]
    assert [(row["run"]["tag"], row["rank"]) for row in rows] == [("poor", 1), ("good", 2)]

    values = api.get(f"/api/v1/runs/{poor.pk}/values/?measures=x:ms").json()
    assert values["means"]["x:ms"]["mean"] == 0.25
    filtered = api.get(f"{board}&filter=x:ms<1").json()["results"]
    assert [row["run"]["tag"] for row in filtered] == ["poor"]
    phrase = api.get("/api/v1/collections/small/leaderboard/", {"filter": 'measure:"x:ms">1'})
    assert [row["run"]["tag"] for row in phrase.json()["results"]] == ["good"]


@pytest.mark.django_db
def test_teams_report_values_of_their_own_runs(api: APIClient, collection: str, bob: User) -> None:
    submit_run(api, GOOD, tag="good")
    guest = client_of(bob)
    answer = upload(guest, "collections/small/runs/", POOR, tag="poor")
    assert answer.status_code == 202
    evaluate_all()
    declare(api, name="ms", direction="lower", source="reported")
    declare(api, name="quality", direction="higher")

    table = "poor 1 ms 5\ngood 1 ms 1\npoor 1 quality 1\n"
    assert problems_of(upload(guest, TABLES, table)) == [(2, "unknown_run"), (3, "not_your_values")]
    assert upload(guest, TABLES, "poor 1 ms 5\npoor 2 ms 6\n").status_code == 201
    assert problems_of(upload(api, TABLES, "poor 1 ms 1\n")) == [(1, "not_your_values")]
    assert upload(api, TABLES, "poor 1 quality 1\n").status_code == 201

    # A token that may only submit does not speak for the organisers.
    alice = User.objects.get(username="alice")
    submitting = client_of(alice, ["submit"])
    assert problems_of(upload(submitting, TABLES, "good 1 quality 1\n")) == [(1, "not_your_values")]
    assert upload(submitting, TABLES, "good 1 ms 1\n").status_code == 201
    assert guest.post(MEASURES, {"name": "mine", "direction": "higher"}).status_code == 403


@pytest.mark.django_db
def test_judged_answers_declare_their_measures(api: APIClient, collection: str, bob: User) -> None:
    submit_run(api, GOOD, tag="good")
    submit_run(api, POOR, tag="poor")

    def answers(*assignments: tuple[str, str, str]) -> str:
        """Lines with one vital nugget and one that is okay, by run, topic and assignment."""
        return "".join(
            json.dumps({
                "run_id": run, "qid": topic, "response_length": 9,
                "nuggets": [
                    {"text": "a", "importance": "vital", "assignment": assignment},
                    {"text": "b", "importance": "okay", "assignment": "support"},
                ],
            }) + "\n"
            for run, topic, assignment in assignments
        )  # fmt: skip

    table = answers(
        ("good", "1", "support"), ("good", "2", "partial_support"), ("poor", "1", "not_support"),
        ("poor", "2", "partial_support"),
    )  # fmt: skip
    assert upload(api, TABLES, table, dry_run="true").status_code == 200
    assert api.get(MEASURES).json()["results"] == []
    guest = problems_of(upload(client_of(bob), TABLES, answers(("good", "1", "support"))))
    assert set(guest) == {(1, "undeclared_measure"), (1, "unknown_run")}
    assert problems_of(upload(api, TABLES, answers(("good", "1", "yes")))) == [(1, "bad_answer")]

    # A value by itself declares nothing, before the answer or behind it.
    value = '{"run": "good", "topic": "3", "measure": "vital_score", "value": 1}\n'
    assert problems_of(upload(api, TABLES, value + table)) == [(1, "undeclared_measure")]
    assert problems_of(upload(api, TABLES, table + value)) == [(5, "undeclared_measure")]

    assert upload(api, TABLES, table).status_code == 201
    declared = {row["name"]: row for row in api.get(MEASURES).json()["results"]}
    assert sorted(declared) == [
        "x:all_score", "x:answer_words", "x:strict_all_score", "x:strict_vital_score",
        "x:vital_score",
    ]  # fmt: skip
    assert declared["x:vital_score"]["high"] == 1
    assert declared["x:answer_words"]["unit"] == "words"

    query = {"measures": "x:vital_score,x:strict_all_score,x:answer_words"}
    board = api.get("/api/v1/collections/small/leaderboard/", query).json()["results"]
    assert [[row["values"][name]["mean"] for name in query["measures"].split(",")] for row in board] == [
        [0.75, 0.75, 9.0], [0.25, 0.5, 9.0],
    ]  # fmt: skip
    # Again, with other assignments: the measures are there.
    assert upload(api, TABLES, answers(("poor", "1", "support"))).status_code == 201
    assert len(api.get(MEASURES).json()["results"]) == len(declared)


@pytest.mark.django_db
def test_values_of_a_blind_collection(api: APIClient, collection: str, bob: User) -> None:
    guest = client_of(bob)
    assert upload(guest, "collections/small/runs/", POOR, tag="poor").status_code == 202
    submit_run(api, GOOD, tag="good")
    Collection.objects.filter(slug="small").update(blind=True)
    declare(api, name="ms", direction="lower", source="reported")
    declare(api, name="quality", direction="higher")
    upload(api, TABLES, "good 1 ms 3\npoor 1 quality 1\n")
    # Whether the judgements have a topic is not said.
    assert upload(guest, TABLES, "poor none ms 5\n").json()["warnings"]["counts"] == {}

    own = guest.get(f"{MEASURES}ms/values/").content.decode()
    assert own.splitlines()[1:] == ["bob/poor\tnone\tx:ms\t5.0"]
    assert guest.get(f"{MEASURES}quality/values/").status_code == 403
    assert [row["number"] for row in guest.get(f"/api/v1/{TABLES}").json()["results"]] == [2]
    assert guest.get("/api/v1/collections/small/leaderboard/?measures=x:ms").status_code == 403


def test_values_of_tables_suit_sampled_judgements() -> None:
    measure = ExternalMeasure(name="ms", direction="lower").measure
    assert (measure.suits("strata"), measure.lower_is_better) == (True, True)
    assert not parse_measure("AP").suits("strata")


@pytest.mark.django_db
def test_what_needs_rankings_has_no_curve(api: APIClient, collection: str) -> None:
    run = submit_run(api, GOOD, tag="good")
    declare(api, name="ms", direction="lower")
    for address in (
        f"/api/v1/runs/{run.pk}/curve/?measures=x:ms",
        "/api/v1/collections/small/curves/?measures=x:ms",
        "/api/v1/collections/small/what-if/?measures=x:ms",
    ):
        answer = api.get(address)
        assert (answer.status_code, answer.json()["code"]) == (400, "no_curve"), address
    unknown = api.get("/api/v1/collections/small/leaderboard/?measures=x:m")
    assert unknown.json()["code"] == "unknown_measure"
    assert "did you mean 'x:ms'?" in unknown.json()["detail"]


@pytest.mark.django_db
def test_declarations_are_fixed_once_they_have_values(api: APIClient, collection: str) -> None:
    submit_run(api, GOOD, tag="good")
    assert declare(api, name="x:ms", direction="lower", unit="ms").json()["name"] == "x:ms"
    assert declare(api, name="ms").json()["code"] == "measure_taken"
    for fields in (
        {"low": 2, "high": 1}, {"low": 1, "missing": "zero"}, {"aggregate": "geometric"},
        {"direction": "sideways"}, {"name": "a b"}, {"name": "a,b"}, {"unit": "m\ns"},
        {"aggregate": "geometric", "low": 0}, {"high": 1e101},
    ):  # fmt: skip
        assert declare(api, **{"name": "other", **fields}).status_code == 400, fields

    small = "/api/v1/collections/small/"
    assert api.patch(f"{MEASURES}ms/", {"direction": "higher", "low": 0}).status_code == 200
    assert api.patch(small, {"measures": ["AP", "x:ms"]}).status_code == 200
    assert api.patch(small, {"measures": ["AP", "x:none"]}).status_code == 400
    upload(api, TABLES, "good 1 ms 5\n")
    refused = api.patch(f"{MEASURES}ms/", {"direction": "lower"})
    assert (refused.status_code, refused.json()["code"]) == (409, "has_values")
    assert api.patch(f"{MEASURES}ms/", {"unit": "s"}).json()["unit"] == "s"
    board = api.get(f"{small}leaderboard/").json()["results"]
    assert board[0]["values"]["x:ms"] == {"mean": 5.0, "topics": 1}

    in_use = api.delete(f"{MEASURES}ms/")
    assert (in_use.status_code, in_use.json()["code"]) == (409, "measure_in_use")
    api.patch(small, {"measures": ["AP"]})
    assert api.delete(f"{MEASURES}ms/").status_code == 204
    assert not MetricVector.objects.filter(measure="x:ms").exists()
    assert not TableValues.objects.exists()


@pytest.mark.django_db
def test_a_measure_that_was_deleted_meanwhile(api: APIClient, collection: str) -> None:
    declare(api, name="ms", direction="lower")
    measure = ExternalMeasure.objects.get()
    delete_measure(measure=ExternalMeasure.objects.get())
    with pytest.raises(NotFound, match="collection small declares no measure x:ms"):
        delete_measure(measure=measure)
    with pytest.raises(NotFound):
        change_measure(measure=measure, fields={"unit": "s"})


@pytest.mark.django_db
@pytest.mark.parametrize("change", [{"low": 6.0}, {"source": "reported"}, {"unit": "s"}, {}])
def test_a_declaration_that_changes_under_a_table(
    api: APIClient, collection: str, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    """What was checked holds of what is stored; texts are no part of it, and {} is a deletion."""
    submit_run(api, GOOD, tag="good")
    declare(api, name="ms", direction="lower")
    check_table = value_tables.check_table

    def check_and_change(**fields: Any) -> value_tables.Table:
        table = check_table(**fields)
        if change:
            ExternalMeasure.objects.update(**change)
        else:
            ExternalMeasure.objects.all().delete()
        return table

    monkeypatch.setattr(value_tables, "check_table", check_and_change)
    answer = upload(api, TABLES, "good 1 ms 5\n")
    assert answer.status_code == (201 if "unit" in change else 409), answer.content
    assert TableValues.objects.exists() == ("unit" in change)


@pytest.mark.django_db
def test_a_request_sent_again_uploads_once(api: APIClient, collection: str) -> None:
    submit_run(api, GOOD, tag="good")
    declare(api, name="ms", direction="lower")
    answers = [
        api.post(
            f"/api/v1/{TABLES}", b"good 1 ms 5\n", content_type="text/plain",
            HTTP_IDEMPOTENCY_KEY="once",
        )
        for _ in range(2)
    ]  # fmt: skip
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json()["number"] == answers[1].json()["number"] == 1
    assert ValueTable.objects.count() == 1


@pytest.mark.django_db
def test_damaged_values_are_made_again_or_not_shown(api: APIClient, collection: str) -> None:
    submit_run(api, GOOD, tag="good")
    declare(api, name="ms", direction="lower")
    upload(api, TABLES, "good 1 ms 5\ngood 2 ms 7\n")
    vectors = MetricVector.objects.filter(measure="x:ms")
    vectors.update(mean=1.0, content=b"\0" * 24)
    board = "/api/v1/collections/small/values/?measures=x:ms"
    assert api.get(board).status_code == 200
    assert vectors.get().mean == 6.0

    vectors.delete()
    TableValues.objects.update(content=b'{"1":5.0,"2":8.0}')
    assert api.get(board).json()["code"] == "stored_value_corrupt"
    upload(api, TABLES, "good 1 ms 5\ngood 2 ms 7\n")
    assert vectors.get().mean == 6.0


@pytest.mark.django_db
def test_effectiveness_against_a_cost_from_tables(api: APIClient, collection: str) -> None:
    for tag, content in (("good", GOOD), ("poor", POOR), ("late", GOOD.replace("good", "late"))):
        submit_run(api, content, tag=tag)
    declare(api, name="ms", direction="lower", unit="ms")
    declare(api, name="quality")
    upload(api, TABLES, "good 1 ms 9\ngood 2 ms 7\npoor 1 ms 5\n")

    frontier = "/api/v1/collections/small/frontier/?y=AP&x=x:ms"
    body = api.get(frontier).json()
    assert (body["x"], body["unit"]) == ("x:ms", "ms")
    assert [(row["run"]["tag"], row["cost"]["value"]) for row in body["results"]] == [
        ("poor", 5.0),
        ("good", 8.0),
    ]
    assert "runs_without_cost" in {caution["code"] for caution in body["cautions"]}
    refused = api.get(frontier.replace("x:ms", "x:quality"))
    assert (refused.status_code, refused.json()["code"]) == (400, "bad_columns")
    assert api.get("/api/v1/collections/small/charts/frontier.csv?y=AP&x=x:ms").status_code == 200
    reach = api.get("/api/v1/collections/small/reusability/?depth=1&measures=x:ms")
    assert (reach.status_code, reach.json()["code"]) == (400, "no_curve")


@pytest.mark.django_db
def test_fsck_checks_values_of_tables(api: APIClient, collection: str) -> None:
    submit_run(api, GOOD, tag="good")
    declare(api, name="ms", direction="lower")
    upload(api, TABLES, "good 1 ms 5\n")
    assert [finding.code for finding in find_faults()] == []

    MetricVector.objects.filter(measure="x:ms").update(mean=4.0)
    (finding,) = find_faults()
    assert finding.code == "vector_altered"
    assert finding.repair is not None
    finding.repair()
    assert MetricVector.objects.get(measure="x:ms").mean == 5.0

    TableValues.objects.update(content=b'{"1":6.0}')
    assert [finding.code for finding in find_faults()] == ["table_altered"]
