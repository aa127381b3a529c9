"""The crossed analysis of sessions: against plain arithmetic, statsmodels, a published example, and by simulation."""

from __future__ import annotations

from itertools import product
from statistics import mean, variance

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.formula.api import ols
from statsmodels.stats.anova import AnovaRM, anova_lm
from statsmodels.stats.oneway import anova_oneway

from metrics.engine.errors import StatisticsError
from metrics.engine.sessions.blocks import Session
from metrics.engine.sessions.designs import Factors, crossing_of, crossings_of
from metrics.engine.significance import crossed
from tests.engine.calibration import ALPHA, rate_of
from tests.engine.crossed import SEARCHERS, TOPICS, found_differences, mean_coverage, study

# The simulated times of eight subjects for four words after a short and four other words after a
# long interval of Raaijmakers, Schrijnemakers and Gremmen, Journal of Memory and Language 41, 1999:
# every number as in the data set `quasif` of the R package languageR.
PUBLISHED = """546 567 547 566 554 545 594 522
566 556 538 566 512 523 569 524
567 598 568 584 536 539 589 521
556 565 536 550 516 522 560 486
595 609 585 588 578 540 615 546
569 578 560 583 501 535 568 514
527 554 535 527 480 467 540 473
551 575 558 556 588 563 631 558"""


def frame(data: tuple[np.ndarray, ...]) -> pd.DataFrame:
    return pd.DataFrame(dict(zip(("y", "system", "topic", "searcher"), data, strict=True)))


def f_of(analysis: crossed.OmnibusResult) -> list[float]:
    """min F', F1 and F2."""
    return [float(source.statistic or 0.0) for source in analysis.sources]


@pytest.mark.parametrize("systems", [2, 3])
def test_repeated_measures_agree_with_statsmodels_and_plain_arithmetic(systems: int) -> None:
    rng = np.random.default_rng(systems)
    searcher, topic, system = (part.ravel() for part in np.indices((7, 5, systems)))
    values = (
        rng.normal(0, 1, len(system))
        + searcher
        + rng.normal(0, 1, (7, systems))[searcher, system]
        + 0.3 * system
    )
    analysis, table = (
        crossed.analyse(values, system, topic, searcher),
        frame((values, system, topic, searcher)),
    )
    expected = []
    for unit, number in (("searcher", 7), ("topic", 5)):
        theirs = (
            AnovaRM(table, "y", unit, within=["system"], aggregate_func="mean")
            .fit()
            .anova_table.iloc[0]
        )
        expected.append((theirs["F Value"], theirs["Num DF"], theirs["Den DF"], theirs["Pr > F"]))
        assert theirs["Den DF"] == (systems - 1) * (number - 1)
    for source, (f, _, within, p_value) in zip(analysis.sources[1:], expected, strict=True):
        assert (source.statistic, source.freedom, source.p_value) == pytest.approx(
            (f, within, p_value)
        )
        assert source.squares == pytest.approx(analysis.sources[0].mean_square / f * within)
    (f1, between, n1, _), (f2, _, n2, _) = expected
    freedom = (f1 + f2) ** 2 / (f1**2 / n2 + f2**2 / n1)
    assert analysis.statistic == pytest.approx(f1 * f2 / (f1 + f2))
    assert analysis.freedom == pytest.approx((between, freedom))
    assert analysis.p_value == pytest.approx(stats.f.sf(f1 * f2 / (f1 + f2), between, freedom))
    fit = anova_lm(ols("y ~ C(system) + C(topic) + C(searcher)", table).fit())
    squares = fit["sum_sq"]
    assert analysis.effect == pytest.approx(
        squares["C(system)"] / (squares["C(system)"] + squares["Residual"])
    )


def test_the_interval_is_that_of_min_f() -> None:
    """In plain arithmetic, of the differences of each searcher and each topic."""
    values, system, topic, searcher = study(np.random.default_rng(4), "paired", 0.5, gap=0.4)
    cells = {(s, t, k): v for v, k, t, s in zip(values, system, topic, searcher, strict=True)}
    each = {
        (s, t): cells[s, t, 0] - cells[s, t, 1] for s in range(SEARCHERS) for t in range(TOPICS)
    }
    by_searcher = [mean(each[s, t] for t in range(TOPICS)) for s in range(SEARCHERS)]
    by_topic = [mean(each[s, t] for s in range(SEARCHERS)) for t in range(TOPICS)]
    difference = mean(each.values())
    v1, v2 = variance(by_searcher) / SEARCHERS, variance(by_topic) / TOPICS
    freedom = (v1 + v2) ** 2 / (v1**2 / (SEARCHERS - 1) + v2**2 / (TOPICS - 1))
    contrast = crossed.contrast(values, system, topic, searcher, 0.9)
    margin = float(stats.t.ppf(0.95, freedom)) * (v1 + v2) ** 0.5
    assert (contrast.difference, contrast.low, contrast.high) == pytest.approx(
        (difference, difference - margin, difference + margin)
    )
    assert f_of(contrast.analysis) == pytest.approx([difference**2 / v for v in (v1 + v2, v1, v2)])
    other = crossed.contrast(1000 * values, 1 - system, topic, searcher, 0.9)
    assert (other.difference, other.low) == pytest.approx(
        (-1000 * contrast.difference, -1000 * contrast.high)
    )
    assert other.analysis.p_value == pytest.approx(contrast.analysis.p_value)


def test_a_published_example_of_topics_with_one_system_each() -> None:
    """SciPy's t tests of the means of subjects and of words give F1(1, 7) = 7.41 and F2(1, 6) = 2.17."""
    times = np.array([row.split() for row in PUBLISHED.splitlines()], np.float64)
    searcher, topic = (part.ravel() for part in np.indices(times.shape))
    analysis = crossed.analyse(times.ravel(), topic // 4, topic, searcher)
    whole, by_searchers, by_topics = f_of(analysis)
    assert (round(by_searchers, 2), round(by_topics, 2)) == (7.41, 2.17)
    subjects = stats.ttest_rel(times[:, :4].mean(axis=1), times[:, 4:].mean(axis=1))
    assert (by_searchers, analysis.sources[1].freedom) == pytest.approx((subjects.statistic**2, 7))
    f2 = by_topics
    assert whole == pytest.approx(by_searchers * f2 / (by_searchers + f2))
    words = times.mean(axis=0)
    theirs = stats.ttest_ind(words[:4], words[4:], equal_var=False)
    assert (f2, analysis.sources[2].freedom) == pytest.approx((theirs.statistic**2, theirs.df))


@pytest.mark.parametrize("systems", [2, 3])
def test_searchers_with_one_system_each_are_compared_by_their_means(systems: int) -> None:
    rng = np.random.default_rng(5)
    searcher, topic = (part.ravel() for part in np.indices((11, 4)))
    system = np.array([0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2])[searcher] % systems
    values = rng.normal(0, 1 + system) + rng.normal(0, 1, 11)[searcher] + topic
    analysis = crossed.analyse(values, system, topic, searcher)
    means = [
        np.array(
            [
                values[searcher == searcher_id].mean()
                for searcher_id in np.unique(searcher[system == k])
            ]
        )
        for k in range(systems)
    ]
    theirs = anova_oneway(means, use_var="bf" if systems > 2 else "unequal")
    assert analysis.sources[1].statistic == pytest.approx(theirs.statistic)
    assert analysis.sources[1].freedom == pytest.approx(
        theirs.df_denom if systems == 2 else theirs.df[1]
    )
    if systems == 2:
        by_topic = np.array(
            [[values[(topic == t) & (system == k)].mean() for t in range(4)] for k in range(2)]
        )
        assert analysis.sources[2].statistic == pytest.approx(
            stats.ttest_rel(*by_topic).statistic ** 2
        )


def test_a_latin_square_loses_its_orders() -> None:
    """F1 of the means of searchers, with the order in which they had the systems as a factor, and F2 likewise."""
    drawn = study(np.random.default_rng(6), "latin_square", 0.4)
    analysis = crossed.analyse(*drawn)
    table = frame(drawn)
    for unit, other, source in (("searcher", "topic", 1), ("topic", "searcher", 2)):
        means = table.pivot_table(index=unit, columns="system", values="y", aggfunc="mean")
        gaps = pd.DataFrame(
            {"d": means[0] - means[1], "order": [1 if index % 2 else -1 for index in means.index]}
        )
        fit = ols("d ~ order", gaps).fit()
        assert analysis.sources[source].statistic == pytest.approx(fit.tvalues["Intercept"] ** 2), (
            other
        )
        assert analysis.sources[source].freedom == pytest.approx(len(gaps) - 2)


def test_missing_sessions_leave_an_analysis_of_the_others() -> None:
    values, system, topic, searcher = study(np.random.default_rng(8), "paired", 0.4, share=0.7)
    contrast = crossed.contrast(values, system, topic, searcher, 0.95)
    fit = ols(
        "y ~ C(system) + C(topic) + C(searcher)", frame((values, system, topic, searcher))
    ).fit()
    assert contrast.difference == pytest.approx(-fit.params["C(system)[T.1]"])
    assert 0 < contrast.analysis.sources[1].freedom < SEARCHERS - 1
    assert 0 < contrast.analysis.sources[2].freedom < TOPICS - 1
    again = crossed.contrast(values[::-1], system[::-1], topic[::-1] + 7, searcher[::-1] * 3, 0.95)
    assert (again.low, again.high) == pytest.approx((contrast.low, contrast.high))


def test_what_does_not_vary_has_no_test() -> None:
    searcher, topic, system = (part.ravel() for part in np.indices((4, 3, 2)))
    apart = crossed.contrast(1.0 * system + searcher, system, topic, searcher, 0.95)
    assert (apart.analysis.statistic, np.isnan(apart.analysis.p_value), np.isnan(apart.low)) == (
        None,
        True,
        True,
    )
    same = crossed.contrast(1.0 * searcher + topic, system, topic, searcher, 0.95)
    assert (same.analysis.statistic, same.analysis.p_value, same.low, same.high) == (
        0.0,
        1.0,
        0.0,
        0.0,
    )
    by_topic = crossed.contrast(1.0 * system * topic, system, topic, searcher, 0.95)
    assert by_topic.analysis.sources[1].statistic is None
    assert by_topic.analysis.freedom[1] == pytest.approx(2)
    assert not np.isnan(by_topic.low)


@pytest.mark.parametrize(
    ("searcher", "topic", "system", "message"),
    [
        ([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0], "too few"),
        ([0, 0, 1, 1, 2, 2], [0, 1, 1, 2, 2, 3], [0, 1, 0, 1, 0, 1], "told apart"),
        ([0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0], "two systems"),
        ([0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 1, 1], "too few"),
    ],
)
def test_what_cannot_be_analysed_says_why(
    searcher: list[int], topic: list[int], system: list[int], message: str
) -> None:
    with pytest.raises(StatisticsError, match=message):
        crossed.analyse(
            np.arange(len(system)) ** 1.5, np.array(system), np.array(topic), np.array(searcher)
        )


def factors_of(rows: list[tuple[str, str, str]]) -> Factors:
    """Of (topic, searcher, system)."""
    return Factors.of(
        [Session(b"s%d" % n, *(part.encode() for part in row)) for n, row in enumerate(rows)]
    )


ALL = list(product(["t1", "t2", "t3", "t4"], ["u1", "u2", "u3", "u4"], ["A", "B"]))


def test_searchers_and_topics_without_the_systems_of_most_are_left_out() -> None:
    crossing = crossing_of(np.ones(len(ALL)), factors_of(ALL))
    assert (
        crossing.searchers_cross,
        crossing.topics_cross,
        len(crossing.sessions),
        crossing.fewest,
    ) == (
        True,
        True,
        32,
        4,
    )
    more = [*ALL, ("t1", "u5", "A"), ("t2", "u5", "A"), ("t9", "u1", "B")]
    crossing = crossing_of(np.ones(len(more)), factors_of(more))
    assert crossing.sessions.tolist() == list(range(32))
    assert (
        crossing.searchers,
        crossing.topics,
        crossing.searchers_left_out,
        crossing.topics_left_out,
    ) == (
        4,
        4,
        1,
        1,
    )
    values = np.where([row[1:] == ("u1", "A") for row in ALL], np.nan, 1.0)
    crossing = crossing_of(values, factors_of(ALL))
    assert (crossing.searchers, crossing.searchers_left_out, len(crossing.sessions)) == (3, 1, 24)
    between = [row for row in ALL if (row[1] in ("u1", "u2")) == (row[2] == "A")]
    crossing = crossing_of(np.ones(len(between)), factors_of(between))
    assert (crossing.searchers_cross, crossing.topics_cross) == (False, True)
    assert (crossing.fewest, crossing.fewest_are) == (2, "searchers of a system")


def test_pairs_of_several_studies_are_crossed_one_by_one() -> None:
    rows = [
        *ALL,
        *((topic, f"{user}b", "C" if system == "A" else "D") for topic, user, system in ALL),
    ]
    factors, pairs = factors_of(rows), (np.array([0, 0, 2]), np.array([1, 2, 3]))
    both, mixed, other = crossings_of(np.ones(len(rows)), factors, *pairs)
    assert (both.sessions.tolist(), other.sessions.tolist()) == ([*range(32)], [*range(32, 64)])
    assert (
        both.searchers_cross,
        mixed.searchers_cross,
        mixed.topics_cross,
        len(mixed.sessions),
    ) == (
        True,
        False,
        True,
        32,
    )
    (whole,) = crossings_of(np.ones(32), factors_of(ALL), *(side[:1] for side in pairs))
    assert len(whole.sessions) == 32
    with pytest.raises(StatisticsError, match="no searcher has several topics"):
        crossings_of(
            np.ones(64),
            factors_of([(topic, user + topic, system) for topic, user, system in rows]),
            *pairs,
        )


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([row for row in ALL if row[1] in ("u1", "u2")], "3 searchers or more of each system"),
        ([row for row in ALL if row[0] in ("t1", "t2")], "3 topics or more of each system"),
        (
            [(topic, "", system) for topic, _, system in ALL],
            "the topic and the searcher of every session",
        ),
        (
            [(topic, topic + user, system) for topic, user, system in ALL],
            "no searcher has several topics",
        ),
        (
            [(user + topic, user, system) for topic, user, system in ALL],
            "no topic has several searchers",
        ),
        (
            [row for row in ALL if row[1] > "u2" or row[2] == "A"],
            "most searchers have neither all systems nor one each",
        ),
        (
            [row for row in ALL if row[2] == "A" or row[1] == "u1"],
            "2 searchers or more of each system",
        ),
    ],
)
def test_sessions_that_cannot_be_crossed_say_why(
    rows: list[tuple[str, str, str]], message: str
) -> None:
    with pytest.raises(StatisticsError, match=message):
        crossing_of(np.ones(len(rows)), factors_of(rows))


def test_min_f_keeps_its_level_where_the_paired_test_does_not() -> None:
    plain, _, _, whole = (
        rate_of(column[:, None]) for column in found_differences("paired", 0.7, 60).T
    )
    assert plain.value > ALPHA + 3 * plain.error
    assert whole.value < ALPHA + 3 * whole.error


def test_the_interval_of_a_mean_is_that_of_a_difference_from_nothing() -> None:
    """A second system of zeros, with searchers and topics of its own, adds no spread."""
    rng = np.random.default_rng(3)
    searcher, topic = rng.integers(5, size=30), rng.integers(7, size=30)
    values = rng.normal(0, 1, 5)[searcher] + rng.normal(0, 1, 7)[topic] + rng.normal(4, 1, 30)
    zeros = np.zeros(9, np.int64)
    oracle = crossed.contrast(
        np.concatenate([values, zeros]),
        np.repeat([0, 1], [30, 9]),
        np.concatenate([topic, 7 + np.arange(9) // 3]),
        np.concatenate([searcher, 5 + np.arange(9) % 3]),
        0.9,
    )
    ends = crossed.mean_interval(values, topic, searcher, 0.9)
    assert ends == pytest.approx((oracle.low, oracle.high))
    # Sessions without a value take no part, and those of unknown searchers are of one each.
    more = np.append(values, np.nan), np.append(topic, 0), np.append(searcher, 0)
    assert crossed.mean_interval(*more, 0.9) == ends
    unknown = crossed.mean_interval(values, np.arange(30), np.full(30, -1), 0.9)
    student = stats.t.interval(0.9, 29, values.mean(), stats.sem(values))
    assert unknown == pytest.approx(student)


def test_what_all_sessions_share_takes_no_part_in_the_interval_of_a_mean() -> None:
    values = np.random.default_rng(4).normal(0, 1, 12)
    searcher, same = np.arange(12) // 3, np.zeros(12, np.int64)
    means = values.reshape(4, 3).mean(axis=1)
    ends = stats.t.interval(0.95, 3, values.mean(), stats.sem(means))
    assert crossed.mean_interval(values, same, searcher, 0.95) == pytest.approx(ends)
    assert np.isnan(crossed.mean_interval(values[:1], same[:1], same[:1], 0.95)).all()
    assert crossed.mean_interval(same + 0.5, same, searcher, 0.95) == (0.5, 0.5)


@pytest.mark.parametrize(("searchers", "topics"), [(8, 6), (24, 4), (10, 10)])
def test_the_interval_of_a_mean_holds(searchers: int, topics: int) -> None:
    """Searchers and topics differ as much as sessions: Student's interval holds 59, 44 and 53 per cent. The bounds leave
    out 1 in 10,000 on either side of 93 and 97 per cent; in 2,000 studies it is 96.2, 93.2 and
    95.7."""
    studies = 400
    hold = round(mean_coverage(searchers, topics, 1.0, studies) * studies)
    assert stats.binom.ppf(0.0001, studies, 0.93) <= hold <= stats.binom.ppf(0.9999, studies, 0.97)
