"""The statistics of a leaderboard: against SciPy and against counting one by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from rest_framework.test import APIClient
from scipy import special, stats

from metrics.engine.significance import TESTS
from metrics.engine.significance.pairs import Matrix
from metrics.engine.significance.resampling import draw_weights
from metrics.models import MetricVector
from runs.models import Collection, Run, User
from tests.conftest import GOOD, POOR
from tests.metrics.boards import add_runs, add_version, make_board, make_run, simulated
from tests.metrics.standings import (
    BOARD,
    RUNS,
    TOPICS,
    board,
    id_of,
    rows_of,
    values,
)
from tests.shared_data import alice, api, collection, module_data, submit

pytestmark = pytest.mark.words
__all__ = ["alice", "api", "board", "collection", "module_data", "submit", "values"]


def holm(p_values: list[float]) -> list[float]:
    """By the definition: each p times the number of those that are not smaller, never below an earlier one."""
    adjusted, least = [0.0] * len(p_values), 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        least = max(least, min(1.0, (len(p_values) - place) * p_values[index]))
        adjusted[index] = least
    return adjusted


def separated_by_scipy(values: Matrix) -> set[frozenset[int]]:
    """Pairs of runs that a paired t test separates at 0.05 after Holm's correction."""
    pairs = list(combinations(range(len(values)), 2))
    p = holm([float(stats.ttest_rel(values[i], values[j]).pvalue) for i, j in pairs])
    return {frozenset(pair) for pair, adjusted in zip(pairs, p, strict=True) if adjusted < 0.05}


def test_a_plain_board_is_what_it_was(anonymous: APIClient, board: Collection) -> None:
    body = anonymous.get(BOARD).json()
    assert "statistics" not in body
    assert set(body["results"][0]["values"]["AP"]) == {"mean", "topics"}
    assert "statistics" not in body["results"][0]


def test_intervals_of_means_against_scipy(
    anonymous: APIClient, board: Collection, values: Matrix
) -> None:
    for confidence in (0.95, 0.8):
        rows = rows_of(anonymous, statistics="intervals", confidence=confidence)
        for index, of_run in enumerate(values):
            interval = rows[f"r{index}"]["values"]["AP"]
            margin = stats.t.ppf((1 + confidence) / 2, TOPICS - 1) * stats.sem(of_run)
            mean = of_run.mean()
            reach = margin / (mean * (1 - mean)) * np.array([-1, 1])
            expected = tuple(special.expit(special.logit(mean) + reach))
            assert (interval["low"], interval["high"]) == pytest.approx(expected, abs=1e-12)
            assert set(rows[f"r{index}"]["values"]["P@10"]) == {"mean", "topics", "low", "high"}


def test_an_interval_is_of_the_topics_with_a_value(
    anonymous: APIClient, alice: User, values: Matrix
) -> None:
    values[0, :5], values[1, :], values[2, 1:] = np.nan, np.nan, np.nan
    make_board(alice.personal_team, {"SearchLength": values})
    rows = rows_of(anonymous, statistics="intervals")
    rest = values[0, 5:]
    expected = stats.t.interval(0.95, len(rest) - 1, rest.mean(), stats.sem(rest))
    assert [rows["r0"]["values"]["SearchLength"][end] for end in ("low", "high")] == pytest.approx(
        expected
    )
    for tag in ("r1", "r2"):
        assert (
            rows[tag]["values"]["SearchLength"]["low"],
            rows[tag]["values"]["SearchLength"]["high"],
        ) == (None, None)


def shown_by_half(values: Matrix, pairs: list[tuple[int, int]]) -> float:
    """The median of what each pair would show with a chance of 0.8, in plain arithmetic."""
    deviations = [(values[i] - values[j]).std(ddof=1) for i, j in pairs]
    return float(np.median(deviations) * stats.t.ppf([0.975, 0.8], TOPICS - 1).sum() / TOPICS**0.5)


def test_tiers_and_groups_against_scipy(
    anonymous: APIClient, board: Collection, values: Matrix
) -> None:
    apart = separated_by_scipy(values)
    assert 5 < len(apart) < 30
    body = anonymous.get(BOARD, {"statistics": "tiers", "test": "paired_t"}).json()
    order = [int(row["run"]["tag"][1:]) for row in body["results"]]
    tier, best, expected = 1, order[0], []
    for run in order:
        if frozenset((best, run)) in apart:
            tier, best = tier + 1, run
        expected.append(tier)
    assert [row["statistics"]["tier"] for row in body["results"]] == expected
    groups = {
        int(row["run"]["tag"][1:]): set(row["statistics"]["groups"]) for row in body["results"]
    }
    for i, j in combinations(range(RUNS), 2):
        assert bool(groups[i] & groups[j]) == (frozenset((i, j)) not in apart)
    summary = body["statistics"]
    means = values.mean(axis=1)
    above = [
        sum(frozenset((i, j)) in apart and means[j] > means[i] for j in range(RUNS))
        for i in range(RUNS)
    ]
    below = [
        sum(frozenset((i, j)) in apart and means[j] < means[i] for j in range(RUNS))
        for i in range(RUNS)
    ]
    sets = {int(row["run"]["tag"][1:]): row["statistics"]["rank_set"] for row in body["results"]}
    assert sets == {run: [1 + above[run], RUNS - below[run]] for run in range(RUNS)}
    marked = {
        int(row["run"]["tag"][1:]): row["statistics"]["in_best_set"] for row in body["results"]
    }
    assert marked == {run: above[run] == 0 for run in range(RUNS)}
    missed = [pair for pair in combinations(range(RUNS), 2) if frozenset(pair) not in apart]
    tiers = dict(zip(order, expected, strict=True))
    across = [
        frozenset(pair) for pair in combinations(range(RUNS), 2) if tiers[pair[0]] != tiers[pair[1]]
    ]
    assert summary["tiers"] == {
        "count": tier, "best": above.count(0), "family": 36, "significant": len(apart),
        "across": len(across), "undecided_across": sum(pair not in apart for pair in across),
        "detectable": pytest.approx(shown_by_half(values, missed)), "cautions": [],
    }  # fmt: skip
    stated = [
        summary[name]
        for name in ("measure", "runs", "topics", "test", "correction", "alpha", "resamples")
    ]
    assert stated == ["AP", RUNS, TOPICS, "paired_t", "holm", 0.05, None]


def test_the_usual_test_is_both_t_and_tukey(
    anonymous: APIClient, board: Collection, values: Matrix
) -> None:
    """A tier, a letter and a mark need both: the larger p of SciPy's tests, over all pairs and with a baseline."""
    body = anonymous.get(BOARD, {"statistics": "tiers", "baseline": id_of("r0")}).json()
    summary = body["statistics"]
    assert (summary["test"], summary["correction"]) == ("t_and_tukey", None)
    pairs = list(combinations(range(RUNS), 2))
    centred = values - values.mean(axis=1, keepdims=True) - values.mean(axis=0) + values.mean()
    freedom = (RUNS - 1) * (TOPICS - 1)
    error = np.sqrt((centred**2).sum() / freedom / TOPICS)
    q = [abs((values[i] - values[j]).mean()) / error for i, j in pairs]
    tukey = stats.studentized_range.sf(q, RUNS, freedom)
    by_t = separated_by_scipy(values)
    apart = {
        frozenset(pair)
        for pair, p in zip(pairs, tukey, strict=True)
        if p < 0.05 and frozenset(pair) in by_t
    }
    assert 0 < len(apart) < len(by_t)
    assert summary["tiers"]["significant"] == len(apart)
    groups = {
        int(row["run"]["tag"][1:]): set(row["statistics"]["groups"]) for row in body["results"]
    }
    assert all(bool(groups[i] & groups[j]) == (frozenset((i, j)) not in apart) for i, j in pairs)
    assert "not_corrected_again" not in str(body)


def test_below_ten_topics_there_are_ranks_and_p_and_no_tiers(
    anonymous: APIClient, alice: User
) -> None:
    make_board(alice.personal_team, {"AP": simulated(RUNS, 9)})
    body = anonymous.get(BOARD, {"statistics": "all", "baseline": id_of("r0")}).json()
    summary = body["statistics"]
    assert summary["tiers"] is None
    assert {"no_tiers", "few_topics_interval"} <= {
        caution["code"] for caution in summary["cautions"]
    }
    row = next(row for row in body["results"] if row["run"]["tag"] == "r1")["statistics"]
    assert row["tier"] is row["groups"] is row["rank_set"] is None
    assert row["rank"]["low"] <= row["rank"]["high"]
    assert row["baseline"]["p_adjusted"] is not None


def naive_rank_intervals(values: Matrix, resamples: int, seed: int) -> list[tuple[int, int, float]]:
    """Rank by rank: the same draws of topics, everything else counted one by one."""
    blocks = [draw_weights(seed, block, values.shape[1]) for block in range(-(-resamples // 1024))]
    drawn = [tile[:, at] for block in blocks for tile in block for at in range(tile.shape[1])][
        :resamples
    ]
    topics = values.shape[1]
    stretch = (
        stats.t.ppf(0.975, topics - 1) / stats.norm.ppf(0.975) * (topics / (topics - 1)) ** 0.5
    )
    ranks: list[list[int]] = [[] for _ in values]
    first = [0 for _ in values]
    for weights in drawn:
        assert weights.sum() == values.shape[1]
        sums = [
            float(sum(w * v for w, v in zip(weights, of_run, strict=True))) for of_run in values
        ]
        wide = [
            (1 - stretch) * of_run.sum() + stretch * total
            for of_run, total in zip(values, sums, strict=True)
        ]
        for run, total in enumerate(wide):
            ranks[run].append(1 + sum(other > total for other in wide))
            first[run] += sums[run] == max(sums)
    intervals = []
    for of_run, wins in zip(ranks, first, strict=True):
        ordered = sorted(of_run)
        low, high = (ordered[math.ceil(share * resamples - 1e-9) - 1] for share in (0.025, 0.975))
        intervals.append((low, high, wins / resamples))
    return intervals


def test_rank_intervals_are_those_of_counting_one_by_one(anonymous: APIClient, alice: User) -> None:
    values = simulated(RUNS, TOPICS)
    make_board(alice.personal_team, {"AP": values})
    rows = rows_of(anonymous, statistics="ranks", rank_resamples=1500, seed=3)
    intervals = [tuple(rows[f"r{index}"]["statistics"]["rank"].values()) for index in range(RUNS)]
    assert intervals == naive_rank_intervals(values, 1500, 3)
    assert sum(share for *_, share in intervals) == pytest.approx(1)


def test_the_baseline_against_scipy(
    anonymous: APIClient, board: Collection, values: Matrix
) -> None:
    middle = int(np.argsort(values.mean(axis=1))[RUNS // 2])
    query = {"baseline": id_of(f"r{middle}"), "limit": 200, "test": "paired_t"}
    body = anonymous.get(BOARD, query).json()
    rows = {int(row["run"]["tag"][1:]): row["statistics"]["baseline"] for row in body["results"]}
    others = [index for index in range(RUNS) if index != middle]
    tests = [stats.ttest_rel(values[index], values[middle]) for index in others]
    adjusted = holm([float(test.pvalue) for test in tests])
    assert rows.pop(middle) is None
    for index, test, p in zip(others, tests, adjusted, strict=True):
        standing, differences = rows[index], values[index] - values[middle]
        assert standing["difference"] == pytest.approx(differences.mean())
        assert [standing["low"], standing["high"]] == pytest.approx(
            list(test.confidence_interval(0.95))
        )
        assert (standing["statistic"], standing["p_value"]) == pytest.approx(
            (test.statistic, test.pvalue)
        )
        assert standing["p_adjusted"] == pytest.approx(p)
        assert standing["relative"] == pytest.approx(differences.mean() / values[middle].mean())
        assert standing["mark"] == (
            None if p >= 0.05 else "better" if differences.mean() > 0 else "worse"
        )
        counts = ((differences > 0).sum(), (differences == 0).sum(), (differences < 0).sum())
        assert (standing["wins"], standing["ties"], standing["losses"]) == counts
    summary = body["statistics"]["baseline"]
    significant = sum(p < 0.05 for p in adjusted)
    assert (summary["run"], summary["family"], summary["significant"]) == (
        id_of(f"r{middle}"),
        RUNS - 1,
        significant,
    )
    assert {row["mark"] for row in rows.values()} == {"better", "worse", None}
    missed = [(middle, index) for index in others if rows[index]["mark"] is None]
    assert summary["detectable"] == pytest.approx(shown_by_half(values, missed))


def test_several_baselines_against_scipy(
    anonymous: APIClient, board: Collection, values: Matrix
) -> None:
    order = np.argsort(values.mean(axis=1)).tolist()
    baselines = [order[RUNS // 2], order[0], order[-1]]
    query = {
        "baseline": ",".join(id_of(f"r{index}") for index in baselines),
        "limit": 200,
        "test": "paired_t",
    }
    body = anonymous.get(BOARD, query).json()
    pairs = [
        (index, baseline)
        for place, baseline in enumerate(baselines)
        for index in range(RUNS)
        if index not in baselines[: place + 1]
    ]
    tests = [stats.ttest_rel(values[a], values[b]) for a, b in pairs]
    adjusted = dict(zip(pairs, holm([float(test.pvalue) for test in tests]), strict=True))

    for row in body["results"]:
        index, against = int(row["run"]["tag"][1:]), row["statistics"]["baselines"]
        assert (len(against), row["statistics"]["baseline"]) == (3, None)
        for baseline, standing in zip(baselines, against, strict=True):
            p = adjusted.get((index, baseline))
            assert (standing is None) == (p is None)
            if standing and p is not None:
                difference = values[index].mean() - values[baseline].mean()
                assert standing["p_adjusted"] == pytest.approx(p)
                assert standing["difference"] == pytest.approx(difference)
                assert standing["relative"] == pytest.approx(difference / values[baseline].mean())
                better = "better" if difference > 0 else "worse"
                assert standing["mark"] == (better if p < 0.05 else None)

    summary = body["statistics"]
    assert summary["baseline"] is None
    assert summary["baselines"]["runs"] == query["baseline"].split(",")
    assert summary["baselines"]["family"] == len(pairs) == 3 * (RUNS - 1) - 3
    assert summary["baselines"]["significant"] == sum(p < 0.05 for p in adjusted.values())

    unknown = f"{id_of('r0')},00000000-0000-4000-8000-000000000000"
    for wrong, code in ((unknown, "unknown_run"), (",", "invalid")):
        refused = anonymous.get(BOARD, {"baseline": wrong})
        assert (refused.status_code, refused.json()["code"]) == (400, code)


@pytest.mark.parametrize("test", list(TESTS))
def test_every_test_makes_tiers_and_holds_runs_against_a_baseline(
    anonymous: APIClient, board: Collection, test: str
) -> None:
    query = {
        "statistics": "all",
        "baseline": id_of("r0"),
        "test": test,
        "resamples": "1000",
        "seed": "7",
    }
    body = anonymous.get(BOARD, query).json()
    summary = body["statistics"]
    assert (summary["test"], summary["resamples"], summary["seed"]) == (
        test,
        1000 if TESTS[test].draws else None,
        7,
    )
    noted = any(
        caution["code"] == "not_corrected_again" for caution in summary["tiers"]["cautions"]
    )
    assert noted is (TESTS[test].simultaneous and test != "t_and_tukey")
    for row in body["results"]:
        against = row["statistics"]["baseline"]
        assert row["statistics"]["tier"] >= 1
        assert against is None or 0 <= against["p_value"] <= against["p_adjusted"] <= 1


def test_a_page_shows_what_the_whole_board_has(anonymous: APIClient, board: Collection) -> None:
    query = {"statistics": "all", "baseline": id_of("r0"), "measures": "P@10", "sort": "AP"}
    whole = anonymous.get(BOARD, query).json()
    for offset in (0, 4, 8):
        page = anonymous.get(BOARD, {**query, "limit": 1, "offset": offset}).json()
        assert page["results"] == whole["results"][offset : offset + 1]
        assert page["statistics"] == whole["statistics"]
    assert whole["statistics"]["measure"] == "AP"
    assert set(whole["results"][0]["values"]) == {"P@10"}


def test_the_worst_first_has_the_ranks_of_that_order(
    anonymous: APIClient, board: Collection
) -> None:
    best = anonymous.get(BOARD, {"statistics": "ranks,tiers"}).json()["results"]
    worst = anonymous.get(BOARD, {"statistics": "ranks,tiers", "order": "asc"}).json()["results"]
    assert [row["run"]["id"] for row in worst] == [row["run"]["id"] for row in best][::-1]
    for rows in (best, worst):
        tiers = [row["statistics"]["tier"] for row in rows]
        assert (tiers[0], tiers) == (1, sorted(tiers))
        # The set of the best is that of the best in either order.
        marked = {row["run"]["id"] for row in rows if row["statistics"]["in_best_set"]}
        assert marked == {row["run"]["id"] for row in best if row["statistics"]["rank_set"][0] == 1}
        for row in rows:
            assert (
                row["statistics"]["rank"]["low"] <= row["rank"] <= row["statistics"]["rank"]["high"]
            )
    assert best[0]["statistics"]["rank"]["share_first"] > 0.3


def test_where_lower_is_better_the_lower_run_is_better(
    anonymous: APIClient, alice: User, values: Matrix
) -> None:
    make_board(alice.personal_team, {"SearchLength": values})
    best = anonymous.get(BOARD).json()["results"][0]["run"]
    rows = rows_of(anonymous, statistics="all", baseline=best["id"])
    marks = {
        row["statistics"]["baseline"]["mark"] for tag, row in rows.items() if tag != best["tag"]
    }
    assert marks == {"worse", None}
    for row in rows.values():
        against = row["statistics"]["baseline"]
        assert against is None or (
            against["difference"] >= 0 and against["losses"] > against["wins"]
        )
    assert rows[best["tag"]]["statistics"]["tier"] == 1


def test_stale_and_unvalued_rows_take_no_part(
    anonymous: APIClient, alice: User, values: Matrix
) -> None:
    collection = make_board(alice.personal_team, {"AP": values[:6]})
    runs = list(Run.objects.order_by("created_at"))
    qrels = add_version(collection, 2, [str(topic) for topic in range(TOPICS)])
    turned = 1 - values[:4]
    add_runs(qrels, runs[:4], {"AP": turned})
    add_runs(qrels, [make_run(collection, "empty")], {"AP": np.full((1, TOPICS), np.nan)})
    body = anonymous.get(BOARD, {"statistics": "all", "baseline": id_of("r0")}).json()
    rows = {row["run"]["tag"]: row for row in body["results"]}
    assert [tag for tag, row in rows.items() if row["stale"]] == ["r4", "r5"]
    for tag in ("r4", "r5", "empty"):
        assert rows[tag]["statistics"] is None
        assert rows[tag]["values"]["AP"]["low"] is None
    assert (body["statistics"]["runs"], body["statistics"]["tiers"]["family"]) == (4, 6)
    expected = stats.ttest_rel(turned[1], turned[0]).pvalue
    assert rows["r1"]["statistics"]["baseline"]["p_value"] == pytest.approx(expected)
    for tag in ("r4", "empty"):
        refused = anonymous.get(BOARD, {"baseline": id_of(tag)})
        assert (refused.status_code, refused.json()["code"]) == (400, "unknown_run")


def test_topics_without_a_value_of_any_run_are_left_out_and_runs_on_fewer(
    anonymous: APIClient, alice: User, values: Matrix
) -> None:
    values[:, 3] = values[2, 7] = np.nan
    make_board(alice.personal_team, {"AP": values})
    query = {"statistics": "tiers", "baseline": id_of("r0"), "test": "paired_t"}
    body = anonymous.get(BOARD, query).json()
    assert (body["statistics"]["topics"], body["statistics"]["runs"]) == (TOPICS - 1, RUNS - 1)
    assert [caution["code"] for caution in body["statistics"]["cautions"]] == ["topics_left_out"]
    common = np.delete(values, 3, axis=1)
    (row,) = [row for row in body["results"] if row["run"]["tag"] == "r1"]
    expected = stats.ttest_rel(common[1], common[0]).pvalue
    assert row["statistics"]["baseline"]["p_value"] == pytest.approx(expected)


@pytest.mark.queries
def test_what_is_remembered_is_never_stale(
    anonymous: APIClient, board: Collection, values: Matrix
) -> None:
    query = {"statistics": "all", "baseline": id_of("r0")}
    before = anonymous.get(BOARD, query).json()
    assert anonymous.get(BOARD, query).json() == before
    qrels = board.active_qrels
    assert qrels is not None
    add_runs(qrels, [make_run(board, "new")], {"AP": values[:1], "P@10": values[:1]})
    after = anonymous.get(BOARD, query).json()
    assert (after["statistics"]["runs"], after["statistics"]["tiers"]["family"]) == (RUNS + 1, 45)
    Run.objects.filter(tag="new").delete()
    assert anonymous.get(BOARD, query).json() == before
    # Whatever changes a mean makes another question of it, also where no id is new.
    row = MetricVector.objects.get(evaluation__run__tag="r1", measure="AP")
    row.content, row.mean = np.ones(TOPICS).tobytes(), 1.0
    row.save()
    assert anonymous.get(BOARD, query).json()["results"][0]["run"]["tag"] == "r1"
    changed = rows_of(anonymous, **query)["r1"]["statistics"]
    assert (changed["rank"]["share_first"], changed["tier"]) == (1.0, 1)


def test_what_is_remembered_is_shown_to_nobody_who_may_not_see_it(
    api: APIClient, anonymous: APIClient, board: Collection
) -> None:
    query = {"statistics": "all"}
    assert anonymous.get(BOARD, query).status_code == 200
    Collection.objects.update(visibility="team")
    assert anonymous.get(BOARD, query).status_code == 404
    assert api.get(BOARD, query).status_code == 200
    Collection.objects.update(visibility="public", blind=True, released_at=None)
    answer = anonymous.get(BOARD, query)
    assert (answer.status_code, answer.json()["code"]) == (403, "blind")


def test_a_board_of_one_run_has_no_statistics_and_says_so(
    anonymous: APIClient, submit: Callable[..., Run]
) -> None:
    submit(GOOD)
    small = "/api/v1/collections/small/leaderboard/"
    body = anonymous.get(small, {"statistics": "all"}).json()
    assert [caution["code"] for caution in body["statistics"]["cautions"]] == ["too_few_runs"]
    assert (
        body["statistics"]["tiers"],
        body["statistics"]["ranks"],
        body["statistics"]["topics"],
    ) == (None,) * 3
    row = body["results"][0]
    parts = (
        "tier",
        "groups",
        "rank_set",
        "in_best_set",
        "rank",
        "expected",
        "chance_best",
        "baseline",
    )
    assert row["statistics"] == dict.fromkeys(parts)
    assert row["values"]["AP"]["low"] is not None
    submit(POOR)
    body = anonymous.get(
        small, {"statistics": "all", "measures": "AP,NumRelRet,nDCG(norm='average')@3"}
    ).json()
    assert (body["statistics"]["tiers"], body["statistics"]["ranks"]) == (None, None)
    assert [caution["code"] for caution in body["statistics"]["cautions"]] == [
        "no_verdict",
        "no_interval",
    ]
    assert body["results"][0]["values"]["NumRelRet"]["low"] is None
    pooled = anonymous.get(
        small, {"statistics": "tiers", "measures": "nDCG(norm='average')@3"}
    ).json()
    assert [caution["code"] for caution in pooled["statistics"]["cautions"]] == ["pooled_measure"]


def test_a_board_of_one_topic_says_so(anonymous: APIClient, alice: User) -> None:
    make_board(
        alice.personal_team, {"AP": np.array([[1.0, np.nan, np.nan], [0.5, np.nan, np.nan]])}
    )
    body = anonymous.get(BOARD, {"statistics": "all"}).json()
    assert [caution["code"] for caution in body["statistics"]["cautions"]] == ["too_few_topics"]


def test_a_board_counts_all_runs_that_ever_came(
    anonymous: APIClient, api: APIClient, submit: Callable[..., Run], alice: User
) -> None:
    small = "/api/v1/collections/small/leaderboard/"
    first, second = submit(GOOD), submit(POOR)
    tagged = anonymous.get(small, {"statistics": "tiers"})
    received = tagged.json()["statistics"]["received"]
    assert received["since"] == min(first.created_at, second.created_at).isoformat().replace(
        "+00:00", "Z"
    )
    assert (received["runs"], received["teams"], received["withdrawn"]) == (2, 1, 0)
    assert api.delete(f"/api/v1/runs/{second.pk}/").status_code == 204
    answer = anonymous.get(
        small, {"statistics": "tiers"}, headers={"If-None-Match": tagged["ETag"]}
    )
    assert [answer.json()["statistics"]["received"][name] for name in ("runs", "withdrawn")] == [
        2,
        1,
    ]
    # A run that came and went between two requests leaves the leaderboard as it was, but not what
    # it has received.
    gone = submit(GOOD.replace("good", "gone"))
    Run.objects.filter(pk=gone.pk).update(deleted_at=gone.created_at)
    again = anonymous.get(small, {"statistics": "tiers"}, headers={"If-None-Match": answer["ETag"]})
    assert again.json()["statistics"]["received"]["runs"] == 3


def test_chances_to_be_the_best_on_other_topics(anonymous: APIClient, alice: User) -> None:
    values = simulated(12, TOPICS)
    make_board(alice.personal_team, {"AP": values, "SearchLength": 1 - values})
    for measure, order in (("AP", "desc"), ("AP", "asc"), ("SearchLength", "asc")):
        body = anonymous.get(
            BOARD, {"statistics": "expected", "sort": measure, "order": order}
        ).json()
        chances = {row["run"]["tag"]: row["statistics"]["chance_best"] for row in body["results"]}
        assert sum(chances.values()) == pytest.approx(1)
        assert max(chances, key=lambda tag: chances[tag]) == f"r{values.mean(axis=1).argmax()}"
        first = f"r{values.mean(axis=1).argmax()}"
        row = next(row for row in body["results"] if row["run"]["tag"] == first)
        excess = abs(row["values"][measure]["mean"] - row["statistics"]["expected"])
        assert body["statistics"]["expected"]["excess"] == pytest.approx(excess)
        assert excess > 0
