"""Rank sets and the set of the best: by their definition, and that they hold what they promise."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from metrics.engine.significance.families import Pairs, Rule, compare_family
from metrics.engine.significance.pairs import Options
from metrics.engine.significance.rank_sets import holds_for_ranks, rank_sets


@given(st.integers(2, 7).flatmap(lambda runs: st.tuples(st.just(runs), st.lists(st.sampled_from([-1, 0, 1]),
       min_size=runs * (runs - 1) // 2, max_size=runs * (runs - 1) // 2))))  # fmt: skip
def test_a_rank_is_excluded_by_each_run_that_is_better_or_worse(
    drawn: tuple[int, list[int]],
) -> None:
    runs, better = drawn
    first, second = Pairs(runs).indices()
    ranks = rank_sets(runs, first, second, np.array(better))
    for run in range(runs):
        verdicts = [
            verdict if a == run else -verdict
            for a, b, verdict in zip(first.tolist(), second.tolist(), better, strict=True)
            if run in (a, b)
        ]
        assert ranks.low[run] == 1 + verdicts.count(-1)
        assert ranks.high[run] == runs - verdicts.count(1)
        assert ranks.best[run] == (-1 not in verdicts)


def test_all_true_ranks_are_in_their_sets_in_95_per_cent_of_the_collections() -> None:
    """Eight runs with true means, three of them nearly equal; normal noise of unequal spread."""
    truth = np.array([0.5, 0.49, 0.48, 0.3, 0.3, 0.2, 0.1, 0.0])
    spread, hits, best, sizes = np.array([1, 0.3, 1, 0.5, 1, 1, 2, 1])[:, None], 0, 0, []
    for number in range(400):
        values = (
            truth[:, None] + np.random.default_rng((9, number)).normal(0, 0.4, (8, 50)) * spread
        )
        family = compare_family(
            values, Pairs(8), "max_t", Rule(), Options(resamples=499, seed=number)
        )
        ranks = rank_sets(8, *Pairs(8).indices(), family.verdicts.better(False))
        # Runs of one mean share ranks: either order is true.
        low, high = (
            np.array([(truth > mean).sum() + 1 for mean in truth]),
            np.array([(truth >= mean).sum() for mean in truth]),
        )
        hits += bool(((ranks.low <= low) & (high <= ranks.high)).all())
        best += bool(ranks.best[0])
        sizes.append(int(ranks.best.sum()))
    assert hits / 400 > 0.95 - 3 * np.sqrt(0.05 * 0.95 / 400)
    assert best / 400 >= hits / 400
    # They say something: the three that are nearly equal and few others.
    assert 2 < np.mean(sizes) < 6


def test_only_a_family_that_limits_any_wrong_finding_about_means_has_rank_sets() -> None:
    assert holds_for_ranks("max_t", "none")
    assert holds_for_ranks("paired_t", "holm")
    assert not holds_for_ranks("paired_t", "benjamini_hochberg")
    assert not holds_for_ranks("paired_t", "none")
    assert not holds_for_ranks("wilcoxon", "holm")
    assert not holds_for_ranks("nemenyi", "holm")
