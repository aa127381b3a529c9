"""Every form of a board ranks like with like: no mean over fewer topics, and no bold one, stands above the others."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import numpy as np
import pytest
from django.test import Client
from rest_framework.test import APIClient

from metrics.models import Evaluation
from runs.models import Collection, Run, User
from tests.metrics.boards import add_version, make_board

pytestmark = pytest.mark.words
BOARD = "/api/v1/collections/board/leaderboard/"
ADDRESSES = (
    BOARD,
    f"{BOARD}export/csv/",
    f"{BOARD}export/md/",
    f"{BOARD}export/tex/",
    f"{BOARD}export/trec_eval/",
)
NAN = float("nan")


@pytest.fixture
def board(alice: User) -> Collection:
    """Of ten topics r1 fails on all but one, where it is perfect; E is a measure of which low is good as well."""
    search = np.array([[2.0] * 10, [1.0] + [NAN] * 9, [3.0] * 10])
    error = np.array([[0.4] * 10, [0.9] * 10, [0.7] * 10])
    ap = np.array([[0.5] * 10, [1.0] + [0.0] * 9, [0.4] * 10])
    return make_board(alice.personal_team, {"SearchLength": search, "E@10": error, "AP": ap})


def rows(api: APIClient, **query: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = api.get(BOARD, query).json()["results"]
    return rows


def lines_of(html: str) -> list[list[str]]:
    body = html.split("<tbody>")[1].split("</tbody>", maxsplit=1)[0]
    return [
        re.findall(r"<(?:td|th)[^>]*>(.*?)</(?:td|th)>", line, re.DOTALL)
        for line in body.split("<tr")[1:]
    ]


def test_a_run_that_fails_on_nine_topics_is_not_ranked_by_the_tenth(
    api: APIClient, board: Collection
) -> None:
    answer = api.get(BOARD).json()
    listed = [
        (row["rank"], row["run"]["tag"], row["state"], row["code"]) for row in answer["results"]
    ]
    assert listed == [
        (1, "r0", "ranked", ""), (2, "r2", "ranked", ""), (None, "r1", "unranked", "fewer_topics"),
    ]  # fmt: skip
    assert answer["results"][2]["reason"] == "mean of 1 of 10 topics"
    assert answer["results"][2]["values"]["SearchLength"] == {"mean": 1.0, "topics": 1}
    assert (answer["ranked"], answer["count"], answer["topics"]) == (2, 3, 10)
    assert [row["rank"] for row in rows(api, sort="AP")] == [1, 2, 3]


def test_every_form_of_the_board_has_the_same_order(
    api: APIClient, client: Client, board: Collection
) -> None:
    order = [row["run"]["tag"] for row in rows(api)]
    files = {address: api.get(address).content.decode() for address in ADDRESSES[1:]}
    table = list(csv.DictReader(io.StringIO(files[ADDRESSES[1]])))
    assert [(row["rank"], row["tag"], row["reason"]) for row in table] == [
        ("1", "r0", ""), ("2", "r2", ""), ("", "r1", "mean of 1 of 10 topics"),
    ]  # fmt: skip
    markdown = [
        line.split(" | ")[:3] for line in files[ADDRESSES[2]].splitlines() if line.startswith("| ")
    ][2:]
    assert markdown == [
        ["| 1", "r0", "**2.0000**"],
        ["| 2", "r2", "3.0000"],
        ["| –", "r1", "1.0000"],
    ]
    assert "r1 has no rank: mean of 1 of 10 topics." in files[ADDRESSES[2]]
    assert re.findall(r"^runid\s+all\t(\w+)$", files[ADDRESSES[4]], re.MULTILINE) == order
    html = client.get("/collections/board/").content.decode()
    lines = lines_of(html)
    assert [re.search(r">(r\d)</a>", "".join(line)).group(1) for line in lines] == order  # type: ignore[union-attr]
    assert [re.sub(r"<.*?>", "", line[1]).split()[0] for line in lines] == ["1", "2", "–"]
    assert "mean of 1 of 10 topics" in html
    assert "Ranked by SearchLength, lowest first, means over 10 topics, qrels v1." in html


@pytest.mark.parametrize("form", ["page", "md", "tex"])
def test_bold_is_the_best_ranked_run_also_where_lower_is_better(
    api: APIClient, client: Client, board: Collection, form: str
) -> None:
    """By AP r1 is ranked as well, and still no best one by the one topic that it has a search length for."""
    query = {"measures": "AP,SearchLength,E@10"}
    if form == "page":
        html = client.get("/collections/board/", query).content.decode()
        assert "Bold: the best value of each column, not a test." in html
        bold = re.findall(r"<strong>([\d.]+)</strong>", html.split("<tbody>")[1])
    else:
        text = api.get(f"{BOARD}export/{form}/", query).content.decode()
        bold = re.findall(r"\*\*([\d.]+)\*\*|\\textbf\{([\d.]+)\}", text)
        bold = [first or other for first, other in bold]
        assert "SearchLength has values on 1 to 10 topics, bold is the best on the most." in text
    assert bold == ["0.5000", "2.0000", "0.4000"]


def test_statistics_are_of_the_ranked_runs_and_their_topics(
    api: APIClient, board: Collection
) -> None:
    answer = api.get(BOARD, {"statistics": "tiers,ranks"}).json()
    assert (answer["statistics"]["runs"], answer["statistics"]["topics"]) == (2, 10)
    assert "topics_left_out" not in [
        caution["code"] for caution in answer["statistics"]["cautions"]
    ]
    assert [row["statistics"] is None for row in answer["results"]] == [False, False, True]
    refused = api.get(BOARD, {"baseline": answer["results"][2]["run"]["id"]})
    assert (refused.status_code, refused.json()["code"]) == (400, "unknown_run")


def test_what_if_and_its_tau_leave_the_run_out(api: APIClient, board: Collection) -> None:
    Collection.objects.filter(pk=board.pk).update(measures=["SearchLength", "AP", "E@10"])
    answer = api.get("/api/v1/collections/board/what-if/", {"measures": "AP,E@10"}).json()
    official = answer["official"]["leaderboard"]
    assert [(place["rank"], place["reason"]) for place in official] == [
        (1, ""), (2, ""), (None, "mean of 1 of 10 topics"),
    ]  # fmt: skip
    # By AP and by E@10 it is in the middle and last: over all three runs tau would be lower.
    assert [board["tau_official"] for board in answer["combinations"]] == [1.0, 1.0]


@pytest.mark.queries
def test_a_filter_by_status_knows_who_is_ranked(api: APIClient, board: Collection) -> None:
    def tags_of(status: str, **query: str) -> list[str]:
        return [row["run"]["tag"] for row in rows(api, filter=f"status:{status}", **query)]

    assert (tags_of("ranked"), tags_of("unranked"), tags_of("stale")) == (["r0", "r2"], ["r1"], [])
    assert (tags_of("ranked", sort="AP"), tags_of("unranked", sort="AP")) == (
        ["r0", "r2", "r1"],
        [],
    )
    pages = [
        tag
        for offset in range(4)
        for tag in [row["run"]["tag"] for row in rows(api, limit=1, offset=offset)]
    ]
    assert pages == ["r0", "r2", "r1"]


def test_means_of_the_same_values_share_a_rank(api: APIClient, alice: User) -> None:
    rng = np.random.default_rng(4)
    values = np.round(rng.random(50), 2)
    make_board(
        alice.personal_team,
        {"AP": np.array([rng.permutation(values) for _ in range(8)] + [values / 2])},
    )
    answer = rows(api, statistics="ranks")
    assert len({row["values"]["AP"]["mean"] for row in answer}) > 2
    assert [row["rank"] for row in answer] == [1] * 8 + [9]
    assert [row["run"]["tag"] for row in answer] == [f"r{number}" for number in range(9)]
    text = api.get(f"{BOARD}export/md/").content.decode()
    assert text.count("**") == 2 * 8
    combination = api.get("/api/v1/collections/board/what-if/", {"measures": "AP"}).json()[
        "official"
    ]
    assert [place["rank"] for place in combination["leaderboard"]] == [1] * 8 + [9]


def test_the_answer_says_what_is_no_mean(api: APIClient, client: Client, alice: User) -> None:
    values = np.array([[3.0, 4.0], [1.0, 2.0]])
    make_board(alice.personal_team, {"NumRet": values, "gm_map": values / 10, "AP": values / 10})
    assert api.get(BOARD).json()["aggregates"] == {
        "NumRet": "sum",
        "gm_map": "geometric mean",
        "AP": "mean",
    }
    html = client.get("/collections/board/").content.decode()
    assert "Ranked by NumRet, highest first, sums over 2 topics, qrels v1." in html
    assert re.findall(r'title="([\w ]+), not means"', html) == ["sums", "geometric means"]
    text = api.get(f"{BOARD}export/md/").content.decode()
    assert (
        "Values of 2 runs of board (qrels version 1) on 2 topics. NumRet: sums. gm\\_map: geometric means. Ranked"
        in text
    )


def test_a_board_without_a_ranked_run_claims_no_order(
    api: APIClient, client: Client, board: Collection
) -> None:
    add_version(board, 2, [str(topic) for topic in range(10)])
    html = client.get("/collections/board/", {"measures": "AP"}).content.decode()
    assert "No run has been evaluated against qrels v2 yet, so none is ranked." in html
    assert "The values below come from earlier judgements or an older engine version." in html
    for claim in ("Ranked by", "Bold:", "Two ranked runs", "provisional"):
        assert claim not in html
    assert api.get(BOARD).json()["provisional"] is True


def test_ranks_are_provisional_while_runs_wait(
    api: APIClient, client: Client, board: Collection
) -> None:
    Evaluation.objects.filter(run__tag="r2").update(state="queued", topics_answered=None)
    answer = api.get(BOARD, {"sort": "AP"}).json()
    assert (answer["provisional"], answer["ranked"], answer["states"]) == (
        True,
        2,
        {"evaluated": 2, "queued": 1},
    )
    html = client.get("/collections/board/", {"sort": "AP"}).content.decode()
    assert "provisional: 2 of 3 runs evaluated</span>" in html
    assert "Provisional: 2 of 3 runs evaluated." in api.get(f"{BOARD}export/md/").content.decode()
    Evaluation.objects.filter(run__tag="r2").update(state="failed")
    assert api.get(BOARD, {"sort": "AP"}).json()["provisional"] is False
    assert "provisional" not in client.get("/collections/board/", {"sort": "AP"}).content.decode()
    assert Run.objects.count() == 3
