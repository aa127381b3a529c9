"""No flipped bit and no exchanged row of what is stored becomes a number that anybody is shown."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.utils import timezone
from rest_framework.test import APIClient

from evalhub.operating.backup import encode_row
from evalhub.operating.restoring import decode_row
from metrics.engine.curve.curves import curve_measure
from metrics.engine.measures.grammar import parse_measure
from metrics.models import (
    Comparison,
    Evaluation,
    JudgedView,
    MetricVector,
    SessionEvaluation,
    SessionView,
    StoredCurves,
)
from metrics.services.answer_store import forget_all
from metrics.services.boards import ranked_evaluations
from metrics.services.boards.board_question import BoardQuery
from metrics.services.boards.leaderboard import Leaderboard, read_leaderboard
from metrics.services.comparisons import workload
from metrics.services.comparisons.comparison import ComparisonQuery
from metrics.services.comparisons.stored import compare, queue_comparison, read_stored_comparison
from metrics.services.sessions.board import SessionBoardQuery, read_session_board
from metrics.services.sessions.judged_sets import default_measures, load_set
from metrics.services.upkeep.integrity import find_faults
from metrics.services.values.curves import CurveQuery, read_curves
from metrics.services.values.judged_views import depths_of, load_view, vectors_of
from runs.errors import StoredValueCorrupt
from runs.models import Collection, Qrels, Run
from runs.services.storage.stores.folder import stored_path
from tests.conftest import DRAWN_ANEW, GOOD, POOR, SESSIONS, evaluate_all, upload
from tests.damage.flips import flipped
from tests.shared_data import alice, api, collection, module_data, submit

__all__ = ["alice", "api", "collection", "module_data", "submit"]
pytestmark = pytest.mark.django_db

# More of them where properties have more examples.
FLIPS = 1000 if DRAWN_ANEW else 300
MEASURES = [parse_measure(name) for name in ("nDCG@10", "AP")]


@dataclass(frozen=True)
class Stored:
    """A column in which bits are flipped, and what is read of it."""

    model: Any
    column: str
    read: Callable[[], Any]
    share: int = 1


def board() -> Any:
    query = BoardQuery(MEASURES, MEASURES[1])
    board: Leaderboard = read_leaderboard(collection=Collection.objects.get(), query=query)
    return {str(row.run.pk): (row.rank, row.values) for row in board.rows if row.has_values}


def values() -> Any:
    vectors = vectors_of(
        list(Evaluation.objects.evaluated().values_list("pk", flat=True)), MEASURES
    )
    return {pair: (bytes(row.content), row.mean, row.topics) for pair, row in vectors.items()}


def views() -> Any:
    return {
        evaluation.run_id: load_view(evaluation).to_bytes()
        for evaluation in Evaluation.objects.evaluated().order_by("pk")
    }


def depths() -> Any:
    evaluated = Evaluation.objects.evaluated().order_by("pk")
    return depths_of(list(evaluated.values_list("pk", flat=True)))


def curves() -> Any:
    query = CurveQuery([curve_measure("CG"), curve_measure("nDCG")], depth=7, with_readings=True)
    return {
        (evaluation.run_id, drawn.measure.name): (
            drawn.curve.topics.tolist(),
            drawn.curve.mean.tolist(),
            drawn.readings and drawn.readings.missed.tolist(),
        )
        for evaluation in Evaluation.objects.evaluated().order_by("pk")
        for drawn in read_curves(evaluation=evaluation, query=query)
    }


def session_views() -> Any:
    sets = {
        evaluation.session_set_id: load_set(evaluation)
        for evaluation in SessionEvaluation.objects.evaluated().order_by("pk")
    }
    return {pk: (judged.sessions, judged.view.to_bytes()) for pk, judged in sets.items()}


def session_board() -> Any:
    measures = default_measures()
    rows = read_session_board(
        collection=Collection.objects.get(), query=SessionBoardQuery(measures, measures[0])
    ).rows
    return {(row.evaluation.session_set_id, row.system): (row.rank, row.values) for row in rows}


def topic_ids() -> Any:
    return Qrels.objects.get().topic_ids


KINDS = (
    Stored(MetricVector, "content", values, 4),
    Stored(MetricVector, "mean", board, 3),
    Stored(MetricVector, "mean", values),
    Stored(MetricVector, "topics", board),
    Stored(MetricVector, "digest", values),
    Stored(MetricVector, "mean_digest", board),
    Stored(JudgedView, "content", views, 5),
    Stored(JudgedView, "digest", views),
    Stored(StoredCurves, "means", curves, 2),
    Stored(StoredCurves, "content", curves, 2),
    Stored(StoredCurves, "depth", curves),
    Stored(StoredCurves, "digest", curves),
    Stored(Evaluation, "judged_depth", depths),
    Stored(Evaluation, "depth_digest", depths),
    Stored(SessionView, "content", session_views, 3),
    Stored(SessionView, "sessions", session_views, 2),
    Stored(SessionEvaluation, "means", session_board, 2),
    Stored(SessionEvaluation, "means_digest", session_board),
    Stored(Qrels, "topic_ids", topic_ids, 2),
    Stored(Qrels, "topic_ids_digest", topic_ids),
)


@pytest.fixture(scope="module", autouse=True)
def everything(api: APIClient, submit: Callable[..., Run]) -> None:
    for run in (GOOD, POOR):
        submit(run)
    assert upload(api, "collections/small/sessions/", SESSIONS, tag="log").status_code == 202
    evaluate_all()


def set_column(stored: Stored, pk: Any, value: Any, placeholder: str = "%s") -> None:
    table, key = stored.model._meta.db_table, stored.model._meta.pk.column
    with connection.cursor() as cursor:
        cursor.execute(
            f'UPDATE "{table}" SET "{stored.column}" = {placeholder} WHERE "{key}" = %s',
            [value, pk],
        )


def column_of(stored: Stored) -> list[tuple[Any, Any]]:
    table, key = stored.model._meta.db_table, stored.model._meta.pk.column
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT "{key}", "{stored.column}" FROM "{table}" ORDER BY 1')
        return [
            (pk, bytes(value) if isinstance(value, memoryview) else value)
            for pk, value in cursor.fetchall()
        ]


def nothing_is_queued() -> None:
    done = {"state": "evaluated", "error_code": "", "error_message": ""}
    for kind in (Evaluation, SessionEvaluation):
        kind._default_manager.exclude(state="evaluated").update(**done)


@pytest.fixture
def unchecked_text() -> Iterator[None]:
    """Let SQLite take text that is no JSON, as it finds it after a bit was flipped on the disk; log nothing of it."""
    logging.disable(logging.CRITICAL)
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA ignore_check_constraints = ON")
        yield
        cursor.execute("PRAGMA ignore_check_constraints = OFF")
    logging.disable(logging.NOTSET)


@pytest.mark.slow
@pytest.mark.sqlite("PostgreSQL takes no damaged JSON")
def test_no_flipped_bit_becomes_a_number(unchecked_text: None) -> None:
    rng, shares = random.Random(2026), sum(kind.share for kind in KINDS)
    for kind in KINDS:
        right, rows, refused = kind.read(), column_of(kind), 0
        assert right
        for _ in range(-(-FLIPS * kind.share // shares)):
            pk, value = rng.choice(rows)
            set_column(kind, pk, *flipped(value, rng))
            try:
                reading = kind.read()
            except (StoredValueCorrupt, OperationalError) as error:
                assert isinstance(error, StoredValueCorrupt) or "decode to UTF-8" in str(error)
                refused += 1
            else:
                # What is damaged may be missing, until it was evaluated again.
                assert reading == right or is_part_of(reading, right), kind
            set_column(kind, pk, value)
            nothing_is_queued()
        # Values and means are computed again, boards shown without what is damaged.
        assert refused or kind.read in (values, board, session_board, depths, curves), kind


def is_part_of(reading: Any, right: Any) -> bool:
    """Whether a board is right but for what is missing, and for the ranks below that."""
    return len(reading) < len(right) and all(
        right[key][1] == row[1] for key, row in reading.items()
    )


def exchange(model: Any, *names: str) -> None:
    first, second = model.objects.order_by("pk")[:2]
    for name in names:
        mine, other = getattr(first, name), getattr(second, name)
        model.objects.filter(pk=first.pk).update(**{name: other})
        model.objects.filter(pk=second.pk).update(**{name: mine})


def test_exchanged_vectors_and_means_are_computed_again() -> None:
    """Of two measures of one run: both are told apart by the measure they are bound to."""
    right, ranked = values(), board()
    exchange(MetricVector, "content", "digest", "mean", "topics", "mean_digest")
    assert {finding.code for finding in find_faults()} == {"vector_altered"}
    assert board() == ranked
    assert values() == right
    # What was read is stored anew.
    assert list(find_faults()) == []


def test_exchanged_views_are_evaluated_again() -> None:
    right, ranked = views(), board()
    exchange(JudgedView, "content", "digest")
    assert [finding.code for finding in find_faults()] == ["view_unreadable"] * 2
    assert board() == ranked
    with pytest.raises(StoredValueCorrupt):
        views()
    assert Evaluation.objects.filter(state="queued").count() == 1
    evaluate_all()
    with pytest.raises(StoredValueCorrupt):
        views()
    evaluate_all()
    assert (views(), board()) == (right, ranked)


def exchange_runs() -> None:
    """Two evaluations with each other's runs, by way of a third name, as no two may be of one run."""
    first, second = Evaluation.objects.order_by("pk")
    spare = Run.objects.create(
        **{**RUN_OF_NOTHING, "collection": first.run.collection, "team": first.run.team}
    )
    for pk, run in ((first.pk, spare.pk), (second.pk, first.run_id), (first.pk, second.run_id)):
        Evaluation.objects.filter(pk=pk).update(run=run)
    spare.delete()


RUN_OF_NOTHING = {
    "tag": "spare", "sha256": "0" * 64, "size": 1, "lines": 1, "documents": 1, "topics": 1, "tied_documents": 0,
    "grouped": True,
}  # fmt: skip


def test_exchanged_evaluations_are_made_again(api: APIClient) -> None:
    """Nothing that is remembered of the old ones becomes the new ones'."""
    right = board()
    odd = {
        run: api.get(f"/api/v1/runs/{run}/values/?measures=P@7").json()["means"] for run in right
    }
    stored = queue_comparison(
        collection=Collection.objects.get(), query=ComparisonQuery(MEASURES, tests=["paired_t"])
    )
    assert compare(comparison_id=str(stored.pk))
    exchange_runs()
    forget_all()
    assert {finding.code for finding in find_faults()} == {"evaluation_of_other_files"}
    refused = api.get(f"/api/v1/runs/{next(iter(right))}/values/")
    assert (refused.status_code, refused.json()["code"]) == (500, "stored_value_corrupt")
    assert board() == {}
    assert set(Evaluation.objects.values_list("state", flat=True)) == {"queued"}
    evaluate_all()
    assert board() == right
    assert odd == {
        run: api.get(f"/api/v1/runs/{run}/values/?measures=P@7").json()["means"] for run in right
    }
    assert api.get(f"/api/v1/comparisons/{stored.pk}/").status_code == 404
    assert list(find_faults()) == []


def test_a_remembered_roster_shows_no_exchanged_evaluation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ranked_evaluations, "is_isolated", lambda: True)
    right = board()
    exchange_runs()
    assert board() == {}
    evaluate_all()
    assert board() == right


def test_exchanged_evaluations_are_made_again_by_fsck() -> None:
    right = board()
    exchange_runs()
    for finding in find_faults():
        assert finding.repair
        finding.repair()
    evaluate_all()
    assert (board(), list(find_faults())) == (right, [])


def test_runs_that_name_each_others_files_are_shown_nowhere(api: APIClient) -> None:
    run, other = board()
    exchange(Run, "sha256", "size", "lines", "documents", "topics")
    forget_all()
    assert {finding.code for finding in find_faults()} == {
        "run_altered",
        "evaluation_of_other_files",
    }
    assert board() == {}
    evaluate_all()
    # The files are not what they are said to be, and are not evaluated.
    assert board() == {}
    assert set(Evaluation.objects.values_list("state", "error_code")) == {
        ("failed", "stored_value_corrupt")
    }
    for path in (f"runs/{run}/", f"runs/{run}/file/", f"runs/{other}/values/"):
        refused = api.get(f"/api/v1/{path}")
        assert (refused.status_code, refused.json()["code"]) == (500, "stored_value_corrupt")


@pytest.mark.parametrize("name", Run.SEALED)
def test_what_was_counted_of_a_run_is_compared_when_it_is_read(api: APIClient, name: str) -> None:
    run = Run.objects.first()
    assert run
    other: Any = (
        not run.grouped
        if name == "grouped"
        else "f" * 64
        if "sha256" in name
        else getattr(run, name) + 1
    )
    Run.objects.filter(pk=run.pk).update(**{name: other})
    refused = api.get(f"/api/v1/runs/{run.pk}/")
    assert (refused.status_code, refused.json()["code"]) == (500, "stored_value_corrupt")
    assert "run_altered" in {finding.code for finding in find_faults(fast=True)}


def test_exchanged_topics_are_read_again_by_fsck() -> None:
    right = topic_ids()
    Qrels.objects.update(topic_ids=right[::-1])
    with pytest.raises(StoredValueCorrupt, match="fsck --repair"):
        topic_ids()
    # A backup keeps what is there, and restores it.
    backup = decode_row(Qrels, json.loads(encode_row(Qrels.objects.get())))
    Qrels.objects.filter(pk=backup.pk).update(version=2)
    Qrels.objects.bulk_create(
        [backup], update_conflicts=True, unique_fields=["id"], update_fields=["version"]
    )
    for finding in find_faults():
        if finding.repair:
            finding.repair()
    assert (topic_ids(), list(find_faults())) == (right, [])


def test_a_run_without_sound_values_waits_below_the_others(api: APIClient) -> None:
    good, poor = Run.objects.get(tag="good"), Run.objects.get(tag="poor")
    path = "/api/v1/collections/small/leaderboard/?sort=AP"
    right = api.get(path).json()["results"]
    JudgedView.objects.filter(evaluation__run=good).update(content=b"damaged")
    MetricVector.objects.filter(evaluation__run=good, measure="AP").update(mean=0.01)
    forget_all()
    rows = api.get(path).json()["results"]
    assert [(row["run"]["id"], row["state"], row["rank"]) for row in rows] == [
        (str(poor.pk), "ranked", 1), (str(good.pk), "queued", None),
    ]  # fmt: skip
    assert rows[0]["values"] == right[1]["values"]
    evaluate_all()
    assert [row["values"] for row in api.get(path).json()["results"]] == [
        row["values"] for row in right
    ]


def test_a_damaged_view_is_named_and_made_again(api: APIClient) -> None:
    good = Run.objects.get(tag="good")
    path = f"/api/v1/runs/{good.pk}/curve/?measures=P"
    right = api.get(path).json()
    JudgedView.objects.filter(evaluation__run=good).update(content=b"damaged")
    forget_all()
    refused = api.get(path)
    assert (refused.status_code, refused.json()["code"]) == (500, "stored_value_corrupt")
    assert "judged view of run" in refused.json()["detail"]
    assert Evaluation.objects.get(run=good).state == "queued"
    evaluate_all()
    forget_all()
    assert api.get(path).json() == right


def test_what_another_engine_made_is_not_computed_by_this_one() -> None:
    Evaluation.objects.update(engine_version="0.1")
    MetricVector.objects.filter(measure="AP", evaluation__run__tag="good").update(mean=0.25)
    with pytest.raises(StoredValueCorrupt):
        values()
    failed = Evaluation.objects.get(run__tag="good")
    assert (failed.state, failed.error_code) == ("failed", "stored_value_corrupt")


def test_damaged_means_of_sessions_are_computed_again() -> None:
    right = session_board()
    means = SessionEvaluation.objects.get().means
    means["values"][default_measures()[0].name][0][0] += 0.125
    SessionEvaluation.objects.update(means=means)
    assert "session_means_altered" in {finding.code for finding in find_faults()}
    assert session_board() == {}
    evaluate_all()
    assert session_board() == right


def test_a_damaged_comparison_is_made_again(
    api: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workload, "AT_ONCE_SECONDS", 0.0)
    assert api.get("/api/v1/collections/small/comparison/").status_code == 202
    job = Comparison.objects.get()
    assert compare(comparison_id=str(job.pk))
    content = bytes(Comparison.objects.get().content or b"")
    Comparison.objects.update(content=content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    with pytest.raises(StoredValueCorrupt):
        read_stored_comparison(Comparison.objects.get())
    assert Comparison.objects.get().state == "queued"
    assert compare(comparison_id=str(job.pk))
    assert bytes(Comparison.objects.get().content or b"") == content


def test_values_without_a_digest_count_until_fsck_gives_them_theirs() -> None:
    right = values(), board(), views(), session_board()
    JudgedView.objects.update(digest=None)
    MetricVector.objects.update(digest=None, mean_digest=None)
    SessionView.objects.update(digest=None)
    SessionEvaluation.objects.update(means_digest=None, judged_files="", since=timezone.now())
    Evaluation.objects.update(judged_files="")
    Run.objects.update(digest=None)
    assert (values(), board(), views(), session_board()) == right
    findings = list(find_faults())
    assert {(finding.code, finding.note) for finding in findings} == {("digest_missing", True)}
    for finding in findings:
        assert finding.repair
        finding.repair()
    assert list(find_faults()) == []
    MetricVector.objects.filter(measure="AP").update(mean=0.01)
    assert {finding.code for finding in find_faults()} == {"vector_altered"}


def test_what_lacks_its_judged_view_is_evaluated_again(api: APIClient) -> None:
    run, log = Run.objects.first(), SessionEvaluation.objects.get().session_set_id
    assert run
    paths = [f"/api/v1/runs/{run.pk}/curve/?measures=P", f"/api/v1/session-sets/{log}/values/"]
    right = [api.get(path).json() for path in paths]
    JudgedView.objects.all().delete()
    SessionView.objects.all().delete()
    forget_all()
    refused = [api.get(path) for path in paths]
    assert [(answer.status_code, answer.json()["code"]) for answer in refused] == [
        (500, "stored_value_corrupt")
    ] * 2
    evaluate_all()
    assert [api.get(path).json() for path in paths] == right


@pytest.mark.sqlite("PostgreSQL takes no damaged JSON")
@pytest.mark.parametrize("damage", ["replace(query, '\"alpha\"', '\"beta\"')", "'['"])
def test_a_comparison_whose_inputs_are_damaged_is_not_shown(
    api: APIClient, unchecked_text: None, damage: str
) -> None:
    collection = Collection.objects.get()
    stored = queue_comparison(
        collection=collection, query=ComparisonQuery([parse_measure("AP")], tests=["paired_t"])
    )
    assert compare(comparison_id=str(stored.pk))
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE metrics_comparison SET query = {damage}")
    refused = api.get(f"/api/v1/comparisons/{stored.pk}/")
    assert (refused.status_code, refused.json()["code"]) == (500, "stored_value_corrupt")
    assert "comparison_digest" in {finding.code for finding in find_faults()}


def test_a_run_whose_topics_are_no_longer_grouped_is_damaged(api: APIClient) -> None:
    run = Run.objects.get(tag="good")
    path = stored_path(run.sha256)
    path.write_bytes(path.read_bytes().replace(b"1 Q0 c", b"3 Q0 c", 1))
    refused = api.get(f"/api/v1/runs/{run.pk}/ranking/?topic=1")
    assert (refused.status_code, refused.json()["code"]) == (500, "stored_file_corrupt")


JSON_COLUMNS = {
    "runs_run.metadata": "runs/{run}/",
    "runs_run.warnings": "collections/small/runs/",
    "runs_run.ir_metadata": "runs/{run}/",
    "runs_collection.measures": "collections/small/leaderboard/",
    "runs_collection.level_labels": "collections/small/",
    "runs_qrels.levels": "collections/small/qrels/1/",
    "runs_qrels.warnings": "collections/small/qrels/",
    "runs_sessionset.systems": "collections/small/sessions/",
    "runs_auditevent.after": "collections/small/audit/",
    "runs_apitoken.scopes": "tokens/",
}


@pytest.mark.sqlite("PostgreSQL takes no damaged JSON")
@pytest.mark.parametrize("column", JSON_COLUMNS)
def test_what_is_no_json_any_more_is_named(
    api: APIClient, unchecked_text: None, column: str
) -> None:
    table, name = column.split(".")
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET {name} = '[1, '")
    forget_all()
    refused = api.get(
        "/api/v1/" + JSON_COLUMNS[column].format(run=Run.objects.values_list("pk", flat=True)[0])
    )
    assert (refused.status_code, refused.json()["code"]) == (500, "stored_value_corrupt")
    assert name in refused.json()["detail"]
    findings = [finding for finding in find_faults() if finding.code == "value_unreadable"]
    assert any(finding.message.startswith(f"{name} of ") for finding in findings)


@pytest.mark.sqlite("PostgreSQL takes no damaged JSON")
def test_topic_ids_that_are_no_json_are_read_again_by_fsck(
    api: APIClient, unchecked_text: None
) -> None:
    path = f"/api/v1/runs/{Run.objects.values_list('pk', flat=True)[0]}/values/"
    right = api.get(path).json()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE runs_qrels SET topic_ids = '['")
    forget_all()
    refused = api.get(path)
    assert (refused.status_code, refused.json()["code"]) == (500, "stored_value_corrupt")
    for finding in find_faults():
        if finding.repair:
            finding.repair()
    assert (api.get(path).json(), list(find_faults())) == (right, [])
