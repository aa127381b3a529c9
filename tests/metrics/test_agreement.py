"""Agreement of two versions of the judgements, and what the difference does to the runs."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rest_framework.test import APIClient
from scipy.stats import kendalltau
from statsmodels.stats.inter_rater import cohens_kappa

from metrics.engine.agreement.run_bias import standardised_residuals
from runs.models import Collection, Run
from tests.conftest import client_of, evaluate_all, upload
from tests.shared_data import alice, api, collection, module_data, submit

__all__ = ["alice", "api", "collection", "module_data", "submit"]

pytestmark = pytest.mark.django_db
TOPICS, DOCUMENTS, RUNS = 12, 20, 6
RNG = np.random.default_rng(17)
LEVELS = RNG.integers(0, 3, (TOPICS, DOCUMENTS))
# The model agrees on most, judges the last five documents of each topic for the first time, and
# prefers the documents of the first run.
MODEL = np.where(RNG.random((TOPICS, DOCUMENTS)) < 0.7, LEVELS, RNG.integers(0, 3, LEVELS.shape))
BY_PERSONS = 15


def lines(levels: np.ndarray, documents: int) -> str:
    return "".join(
        f"{topic + 1} 0 d{document} {levels[topic, document]}\n"
        for topic in range(TOPICS)
        for document in range(documents)
    )


def run_of(number: int) -> str:
    rng = np.random.default_rng(100 + number)
    rows = []
    for topic in range(TOPICS):
        scores = LEVELS[topic] * (0.2 + 0.25 * number) + rng.normal(0, 0.6, DOCUMENTS)
        for document, score in enumerate(scores):
            rows.append(f"{topic + 1} Q0 d{document} 1 {score:.6f} run{number}\n")
    return "".join(rows)


@pytest.fixture(scope="module")
def judged(api: APIClient, collection: str, submit: Callable[..., Run]) -> str:
    path = f"collections/{collection}/qrels/"
    assert upload(api, path, lines(LEVELS, BY_PERSONS), author_kind="person").status_code == 201
    for number in range(RUNS):
        family = "tiny-embed" if number < 2 else "none"
        answer = upload(
            api,
            f"collections/{collection}/runs/",
            run_of(number),
            tag=f"run{number}",
            metadata=f'{{"llm": "{family}"}}',
        )
        assert answer.status_code == 202, answer.content
    fields = {"author_kind": "model", "model": "tiny-1", "activate": False}
    assert upload(api, path, lines(MODEL, DOCUMENTS), **fields).status_code == 201
    return collection


def get(api: APIClient, slug: str, version: int = 3, **parameters: Any) -> Any:
    return api.get(f"/api/v1/collections/{slug}/qrels/{version}/agreement/", parameters)


def evaluate_under(api: APIClient, slug: str, version: int) -> None:
    address = f"/api/v1/collections/{slug}/evaluations/"
    assert api.post(address, {"qrels": version}, format="json").status_code == 202
    evaluate_all()


def test_judgements_are_compared_before_runs_are(api: APIClient, judged: str) -> None:
    answer = get(api, judged, **{"with": 2}).json()
    assert answer["documents"] == TOPICS * BY_PERSONS
    confusion = np.zeros((3, 3), int)
    np.add.at(confusion, (LEVELS[:, :BY_PERSONS], MODEL[:, :BY_PERSONS]), 1)
    assert answer["confusion"] == confusion.tolist()

    coefficients = answer["coefficients"]
    assert coefficients["kappa"]["value"] == pytest.approx(cohens_kappa(confusion).kappa)
    assert coefficients["kappa"]["low"] < coefficients["kappa"]["value"]
    assert answer["runs"] is None
    assert "evaluated" in answer["runs_reason"]
    assert len(answer["by_topic"]) == TOPICS
    assert "judged by model tiny-1" in answer["sentences"][0]


def test_runs_are_compared_under_both_versions(api: APIClient, judged: str) -> None:
    evaluate_all()
    evaluate_under(api, judged, 3)
    parameters = {"with": 2, "measure": "AP", "uses_model": "llm", "family": "TINY", "k": 10}
    effects = get(api, judged, **parameters).json()["runs"]
    runs = effects["runs"]
    assert len(runs) == RUNS

    reference = np.array([run["reference"] for run in runs])
    means = np.array([run["mean"] for run in runs])
    assert effects["tau"]["value"] == pytest.approx(kendalltau(reference, means).statistic)
    residuals = standardised_residuals(reference, means - reference)
    assert [run["residual"] for run in runs] == pytest.approx(residuals.tolist())
    verdicts = effects["verdicts"]
    assert verdicts["significant"] == verdicts["same"] + verdicts["lost"] + verdicts["reversed"]
    assert 0 < verdicts["significant"] <= verdicts["pairs"] == RUNS * (RUNS - 1) // 2

    # The model judges every document, persons judge some of the first ten.
    assert all(run["judged"] == 1 > run["judged_reference"] for run in runs)
    assert effects["family"]["runs"] == 2
    inside = [run["uses_model"] for run in runs]
    differences = means - reference
    chosen = np.array(inside)
    expected = differences[chosen].mean() - differences[~chosen].mean()
    assert effects["family"]["difference"] == pytest.approx(expected)
    assert effects["family"]["exact"]

    for kind in ("csv", "md", "tex"):
        for table in ("coefficients", "topics", "runs"):
            address = f"/api/v1/collections/{judged}/qrels/3/agreement/export/{kind}/"
            content = api.get(address, {**parameters, "table": table})
            assert content.status_code == 200, content.content
            assert "judged by model tiny-1" in content.content.decode() or table == "runs"

    rows = list(csv.DictReader(io.StringIO(content_of(api, judged, parameters))))
    assert {row["tag"] for row in rows} == {f"run{number}" for number in range(RUNS)}
    page = api.get(f"/collections/{judged}/qrels/3/agreement/", parameters)
    text = page.content.decode()
    assert page.status_code == 200
    assert "<svg" in text
    assert "judged by model tiny-1" in text
    assert f"{effects['verdicts']['significant']} pairs that differ significantly" in text


def content_of(api: APIClient, slug: str, parameters: dict[str, Any]) -> str:
    address = f"/api/v1/collections/{slug}/qrels/3/agreement/export/csv/"
    return api.get(address, {**parameters, "table": "runs"}).content.decode()


@pytest.mark.parametrize(
    ("version", "parameters", "status", "words"),
    [
        (3, {}, 400, "with"),
        (3, {"with": 3}, 400, "with"),
        (3, {"with": 9}, 404, "version 9"),
        (9, {"with": 1}, 404, "version 9"),
        (3, {"with": 2, "measure": "Nothing"}, 400, "Nothing"),
        (3, {"with": 2, "test": "luck"}, 400, "test"),
    ],
)
def test_a_request_without_an_answer_says_why(
    api: APIClient, judged: str, version: int, parameters: dict[str, Any], status: int, words: str
) -> None:
    answer = get(api, judged, version, **parameters)
    assert answer.status_code == status, answer.content
    assert words in answer.content.decode()


def test_blind_judgements_show_nothing(api: APIClient, judged: str, bob: Any) -> None:
    Collection.objects.filter(slug=judged).update(blind=True)
    other = client_of(bob)
    assert get(other, judged, **{"with": 2}).status_code == 403
    page = other.get(f"/collections/{judged}/qrels/3/agreement/", {"with": 2}).content.decode()
    assert "<svg" not in page.split("<main")[-1]
    assert "tiny-1" not in page
    assert "v2" not in page.split("<main")[-1]
