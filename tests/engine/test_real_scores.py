"""All systems of TREC tracks: published score matrices, and what another program answered for their pairs."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from metrics.engine.arrays import Floats
from metrics.engine.significance import CORRECTIONS, OMNIBUS, TESTS
from metrics.engine.significance.effect_sizes import effect_sizes
from metrics.engine.significance.pairs import Matrix, Options, PairedResult, all_pairs

pytestmark = pytest.mark.real_data
Rows = list[dict[str, str]]
ZEROS = [("drop", "wilcoxon_W", "p_wilcoxon"), ("pratt", "pratt_W", "p_pratt")]


def matrix(folder: Path, name: str) -> tuple[list[str], Matrix]:
    """System names and values (runs, topics)."""
    with (folder / "score-matrices-urbano2019" / name).open() as file:
        header, *rows = csv.reader(file)
    return header, np.array(rows, np.float64).T


def expected(folder: Path, name: str) -> Rows:
    with (folder / "score-matrices-urbano2019/expected" / name).open() as file:
        return list(csv.DictReader(file, delimiter="\t"))


def column(rows: Rows, name: str) -> Floats:
    return np.array([float(row[name] or "nan") for row in rows])


def top20(folder: Path, test: str, **options: object) -> tuple[Rows, PairedResult]:
    systems, values = matrix(folder, "adhoc6_ap.csv")
    rows = expected(folder, "adhoc6_ap_top20.tsv")
    first, second = (np.array([systems.index(row[side]) for row in rows]) for side in "ab")
    return rows, TESTS[test].compare(values, first, second, Options(**options))  # type: ignore[arg-type]


def test_paired_t_and_its_interval(real_data: Path) -> None:
    rows, ours = top20(real_data, "paired_t")
    for name, value in (
        ("t", ours.statistic),
        ("p_t", ours.p_value),
        ("mean_diff", ours.difference),
    ):
        np.testing.assert_allclose(value, column(rows, name), rtol=2e-9, atol=1e-12)
    for name, end in (("ci95_low", ours.low), ("ci95_high", ours.high)):
        np.testing.assert_allclose(end, column(rows, name), rtol=2e-8, atol=1e-10)


@pytest.mark.parametrize(("zeros", "statistic", "p_value"), ZEROS)
def test_wilcoxon(real_data: Path, zeros: str, statistic: str, p_value: str) -> None:
    rows, ours = top20(real_data, "wilcoxon", zeros=zeros)
    np.testing.assert_array_equal(ours.statistic, column(rows, statistic))
    np.testing.assert_allclose(ours.p_value, column(rows, p_value), rtol=1e-8)


def test_sign_test(real_data: Path) -> None:
    rows, ours = top20(real_data, "sign")
    np.testing.assert_array_equal(ours.statistic, column(rows, "wins"))
    np.testing.assert_allclose(ours.p_value, column(rows, "p_sign"), rtol=1e-8)


def test_randomisation_within_what_both_draw(real_data: Path) -> None:
    """The statistic is |mean|, as ours: asked for two sides, scipy doubles one side's count and with it the error."""
    _, values = matrix(real_data, "adhoc6_ap.csv")
    first, second, drawn = np.arange(0, 20, 2), np.arange(1, 21, 2), 20_000
    ours = TESTS["randomisation"].compare(values, first, second, Options(resamples=drawn)).p_value
    theirs = [
        stats.permutation_test(
            (values[i] - values[j],),
            lambda differences, axis: np.abs(differences.mean(axis)),
            permutation_type="samples",
            alternative="greater",
            n_resamples=drawn,
            vectorized=True,
            rng=1,
        ).pvalue
        for i, j in zip(first, second, strict=True)
    ]
    error = np.sqrt(2 * ours * (1 - ours) / drawn)
    assert (np.abs(ours - theirs) < 4 * error + 2 / drawn).all()


@pytest.mark.parametrize(
    ("name", "theirs"), [("holm", "p_t_holm"), ("benjamini_hochberg", "p_t_bh")]
)
def test_corrections(real_data: Path, name: str, theirs: str) -> None:
    rows, ours = top20(real_data, "paired_t")
    np.testing.assert_allclose(CORRECTIONS[name](ours.p_value), column(rows, theirs), rtol=2e-8)


def test_effect_size_and_counts(real_data: Path) -> None:
    systems, values = matrix(real_data, "adhoc6_ap.csv")
    rows = expected(real_data, "adhoc6_ap_top20.tsv")
    first, second = (np.array([systems.index(row[side]) for row in rows]) for side in "ab")
    ours = effect_sizes(values, first, second)
    np.testing.assert_allclose(ours.cohen_d.value, column(rows, "cohen_dz"), rtol=1e-8)
    for name, counts in (("wins", ours.wins), ("ties", ours.ties), ("losses", ours.losses)):
        np.testing.assert_array_equal(counts, column(rows, name))


@pytest.mark.parametrize(
    "name", ["adhoc5_p10.csv", "adhoc7_rr.csv", "web2010_err20.csv", "web2011_ndcg20.csv"]
)
def test_every_test_answers_every_pair_of_a_track(real_data: Path, name: str) -> None:
    """Small steps, many ties, many zeros: a p of each pair, and the tests agree in the main."""
    _, values = matrix(real_data, name)
    pairs = all_pairs(len(values))
    p_values = {
        test: TESTS[test].compare(values, *pairs, Options(resamples=2000)).p_value for test in TESTS
    }
    for test, of_test in p_values.items():
        assert ((of_test >= 0) & (of_test <= 1)).all(), test
    for test in ("randomisation", "bootstrap", "wilcoxon"):
        assert stats.spearmanr(p_values[test], p_values["paired_t"]).statistic > 0.9, test
    assert all(OMNIBUS[test](values).p_value < 1e-10 for test in ("anova", "friedman"))
