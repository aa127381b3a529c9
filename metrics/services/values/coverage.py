"""How much of runs was measured: the topics that they answered, and the documents that are judged.

A topic without an answer counts 0, and a document without a judgement counts as not relevant. Where
little of a run was measured, or one run is judged more deeply than another, a difference says more
about that than about the runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.judgement.sampling import PROBABILITIES
from metrics.engine.measures.grammar import Measure, parse_measure
from metrics.engine.significance.families import Family, Pairs
from metrics.engine.significance.pairs import Caution, Matrix
from metrics.engine.significance.tiers import tiers
from metrics.engine.significance.verdicts import (
    DEPENDS_ON_JUDGING,
    FEW_TOPICS_ANSWERED,
    NOTHING_JUDGED,
    TOO_FEW_TOPICS,
    Verdicts,
)
from metrics.services.queue.vectors import JUDGED
from metrics.services.values.judged_views import condensed_matrix, means_of, vectors_of
from runs.models import Qrels

# Chosen from real collections (docs/decisions/0059-nothing-measured.md).
LEAST_ANSWERED = 0.9
MOST_UNEVEN = 0.1
# The ranks looked at for a measure without a cutoff.
USUAL_DEPTH = 10
# Runs that a caution names.
_NAMED = 3
# Measures of what was judged or listed, which no judgement would change.
_RETRIEVED = parse_measure("NumRet")
_OF_COVERAGE = frozenset(("Judged", "unj", "NumQ", "NumRel", "NumRet", "IdealDCG"))


@dataclass(frozen=True)
class OnJudged:
    """The same pairs on judged documents alone.

    It has the mean of each run, whether any of its values differs there, the number of topics, and
    a family for each test, without tiers.
    """

    means: Floats
    changed: Flags
    topics: int
    families: Sequence[Family]


@dataclass(frozen=True)
class Coverage:
    """The measured shares of each run, in the order of the compared values; shape (runs,).

    `answered` is the share of the judged topics that the run answered, `judged` the share of the
    first `k` documents that are judged, the mean over these topics; NaN where it is not known.
    `judging_counts` is False for a measure that does not ask how documents are judged. With `drawn`
    judgements shares differ by the chances of being drawn, which estimates allow for. `on_judged`
    is None where no pair is judged unevenly, or values on judged documents do not exist.
    """

    answered: Floats
    judged: Floats
    k: int
    judging_counts: bool = True
    drawn: bool = False
    on_judged: OnJudged | None = None

    def of(self, rows: Ints, pairs: Ints) -> Coverage:
        """Return some of the runs and pairs, by their places.

        Verdicts stay those of the whole family.
        """
        on_judged = self.on_judged and OnJudged(
            self.on_judged.means[rows],
            self.on_judged.changed[rows],
            self.on_judged.topics,
            [family.of(rows, pairs) for family in self.on_judged.families],
        )

        return replace(
            self, answered=self.answered[rows], judged=self.judged[rows], on_judged=on_judged
        )

    @property
    def few_answered(self) -> Flags:
        """Return the runs that answered fewer topics than a verdict needs."""
        few: Flags = self.answered < LEAST_ANSWERED
        return few

    @property
    def nothing_judged(self) -> Flags:
        """Return the runs without a judged document in the first ranks of any topic."""
        nothing: Flags = (self.judged == 0) & self.judging_counts
        return nothing

    def uneven(self, pairs: Pairs) -> Flags:
        """Return the pairs of runs that are not judged alike.

        There are none where no value would differ on judged documents alone, or where the pool that
        they were drawn from is not known.
        """
        first, second = pairs.indices()
        # Shares are rounded, so that 0.8 and 0.7 differ by no more than 0.1.
        differ = np.abs(self.judged[first] - self.judged[second]).round(9) > MOST_UNEVEN
        if self.on_judged is not None:
            differ &= self.on_judged.changed[first] | self.on_judged.changed[second]

        uneven: Flags = differ & (self.judging_counts and not self.drawn)
        return uneven

    @property
    def lacking(self) -> list[tuple[Flags, str]]:
        """Return the runs with too little measured for any verdict, with the reason.

        Where both apply, the last one is the reason.
        """
        return [
            (self.nothing_judged, NOTHING_JUDGED),
            (self.few_answered, FEW_TOPICS_ANSWERED),
        ]

    def decide(self, families: Sequence[Family], pairs: Pairs) -> list[Verdicts]:
        """Return the verdicts of the families without those that rest on what was not measured.

        A pair that is judged unevenly has a verdict if the same test, corrected over the same
        pairs, has the same one on judged documents alone.
        """
        first, second = pairs.indices()
        uneven, decided = self.uneven(pairs), []
        for index, family in enumerate(families):
            verdicts = family.verdicts
            enough = ~verdicts.have(TOO_FEW_TOPICS)
            depends = uneven & (verdicts.withheld == 0)
            if self.on_judged is not None:
                depends &= verdicts.higher != self.on_judged.families[index].verdicts.higher

            verdicts = verdicts.withhold(depends, DEPENDS_ON_JUDGING)
            for runs, reason in self.lacking:
                verdicts = verdicts.withhold((runs[first] | runs[second]) & enough, reason)

            decided.append(verdicts)

        return decided

    def apply(
        self, families: Sequence[Family], values: Matrix, pairs: Pairs, *, lower_is_better: bool
    ) -> list[Family]:
        """Return the families with the remaining verdicts, and the tiers and groups that follow.

        `values` has shape (runs, topics).
        """
        applied = []
        for family, verdicts in zip(families, self.decide(families, pairs), strict=True):
            separated = family.tiers
            if separated and (verdicts.higher != family.verdicts.higher).any():
                separated = tiers(
                    values.mean(axis=1),
                    *pairs.indices(),
                    verdicts.significant,
                    lower_is_better=lower_is_better,
                )

            applied.append(replace(family, verdicts=verdicts, tiers=separated))

        return applied

    def cautions(
        self, pairs: Pairs, verdicts: Verdicts, names: Mapping[int, str] | None = None
    ) -> list[Caution]:
        """Return what a reader must know before trusting differences.

        `verdicts` are those of the first test.

        `names` has the runs that may be named, by their rows; others are left out. Without it all
        are counted.
        """
        cautions = []
        named = np.zeros(pairs.runs, np.bool_)
        named[list(range(pairs.runs) if names is None else names)] = True

        few_rows = np.flatnonzero(self.few_answered & named)
        if len(few_rows):
            answered = self.answered[few_rows]
            if names is None or len(few_rows) > _NAMED:
                span = dict.fromkeys(percent(share) for share in (answered.min(), answered.max()))
                runs = f"{_runs(few_rows)}, {' to '.join(span)} of them"
            else:
                runs = ", ".join(
                    f"{names[row]} {percent(share)}"
                    for row, share in zip(few_rows.tolist(), answered.tolist(), strict=True)
                )

            message = (
                f"few topics answered ({runs}): an unanswered topic counts 0, and below "
                f"{percent(LEAST_ANSWERED)} there is no verdict"
            )
            cautions.append(Caution("few_topics_answered", message))

        unjudged_rows = np.flatnonzero(self.nothing_judged & named)
        if len(unjudged_rows):
            runs = (
                _runs(unjudged_rows)
                if names is None or len(unjudged_rows) > _NAMED
                else ", ".join(names[row] for row in unjudged_rows.tolist())
            )
            message = (
                f"nothing judged ({runs}): none of the first {self.k} documents of any topic is, "
                "so there is no verdict"
            )
            cautions.append(Caution("nothing_judged", message))

        first, second = pairs.indices()
        both_named = named[first] & named[second]
        uneven = int(np.count_nonzero(self.uneven(pairs) & both_named))
        if uneven:
            undecided = int(np.count_nonzero(verdicts.have(DEPENDS_ON_JUDGING) & both_named))
            if names is not None and len(names) == 2:
                end = ", and the verdict depends on judging" if undecided else ""
                message = f"{self.judged_sentence(names)}{end}"
            else:
                total = int(np.count_nonzero(both_named))
                verdicts_depend = {0: "no verdict depends", 1: "1 verdict depends"}.get(
                    undecided, f"{undecided:,} verdicts depend"
                )

                message = (
                    f"the shares of the first {self.k} documents that are judged differ by more "
                    f"than {percent(MOST_UNEVEN)[:-1]} points in {uneven:,} of {total:,} pairs, "
                    f"and {verdicts_depend} on judging"
                )

            cautions.append(Caution("uneven_judging", message))

        return cautions

    def judged_sentence(self, names: Mapping[int, str]) -> str:
        """Return how much of the first documents of each of a few runs is judged."""
        shares = [
            (name, "an unknown share" if np.isnan(self.judged[row]) else percent(self.judged[row]))
            for row, name in names.items()
        ]

        (name, share), *others = shares
        following = "".join(f"; {other}: {share_of_other}" for other, share_of_other in others)
        return f"{name}: {share} of the first {self.k} documents are judged{following}"


def percent(share: float) -> str:
    """Return a share in per cent: of 0 and of 1 only what is exactly so."""
    rounded = round(100 * share)
    if share > 0 and not rounded:
        return "less than 1%"
    return f"{min(rounded, 99) if share < 1 else rounded}%"


def _runs(rows: Ints) -> str:
    return f"{len(rows):,} run{'s' if len(rows) > 1 else ''}"


def depth_of(measure: Measure) -> int:
    """Return the ranks at which documents count as judged: the cutoff, or the usual ten."""
    return measure.cutoff if isinstance(measure.cutoff, int) else USUAL_DEPTH


def judged_only(measure: Measure) -> Measure | None:
    """Return the measure of judged documents alone, or None if it has no such parameter."""
    if "judged_only" not in measure.parameters:
        return None
    values = {**measure.parameters, "judged_only": True}
    return replace(measure, values=tuple(values.items()))


def read_coverage(
    answered: Mapping[int, int | None],
    measure: Measure,
    qrels: Qrels,
    selected: Flags | None = None,
) -> Coverage:
    """Return the shares of evaluated runs under these judgements, in this order.

    `answered` has the number of topics that each answered. Means of Judged@k that are not stored
    are computed and cached. With `selected`, a flag for each topic of the judgements, both shares
    are of these topics alone.
    """
    if measure.is_external:
        # What its values say of documents is not known.
        unknown = np.full(len(answered), np.nan)
        return Coverage(unknown, unknown, USUAL_DEPTH, judging_counts=False)

    k = depth_of(measure)
    judged_measure = JUDGED if k == USUAL_DEPTH else parse_measure(f"Judged@{k}")
    judging_counts = measure.definition.name not in _OF_COVERAGE
    # Judgements in strata list the documents that were not drawn, which count as judged.
    drawn = qrels.design == PROBABILITIES
    if selected is not None:
        has_answer = _answered(answered, qrels)[:, selected]
        judged_values = _matrix(list(answered), judged_measure)
        judged = np.where(has_answer, judged_values[:, selected], 0.0).sum(axis=1)
        return Coverage(
            has_answer.mean(axis=1),
            judged / np.maximum(has_answer.sum(axis=1), 1),
            k,
            judging_counts,
            drawn,
        )

    means = means_of(list(answered), [judged_measure], qrels.pk)
    topics = np.array(
        [np.nan if number is None else number for number in answered.values()], np.float64
    )
    shares = [means[pk, judged_measure.name][0] for pk in answered]
    judged = np.array([np.nan if judged is None else judged for judged in shares], np.float64)

    # Judged@k is 0 for a topic without an answer, which says nothing of judgements.
    judged = np.where(topics > 0, judged * qrels.topics / np.maximum(topics, 1), judged)
    return Coverage(topics / qrels.topics, judged, k, judging_counts, drawn)


def _answered(answered: Mapping[int, int | None], qrels: Qrels) -> Flags:
    """Return whether each run answered each topic of the judgements, shape (runs, topics)."""
    flags = np.ones((len(answered), qrels.topics), np.bool_)
    # Most runs answer all topics: of the others the judged views are read.
    rows = [row for row, topics in enumerate(answered.values()) if topics != qrels.topics]
    if rows:
        keys = list(answered)
        flags[rows] = _matrix([keys[row] for row in rows], _RETRIEVED) > 0

    return flags


def _matrix(evaluation_ids: list[int], measure: Measure) -> Matrix:
    """Return the values of a measure that sampled judgements refuse elsewhere, too."""
    vectors = vectors_of(evaluation_ids, [measure])
    return np.vstack([vectors[pk, measure.name].values for pk in evaluation_ids])


def with_judged(
    coverage: Coverage,
    evaluation_ids: list[int],
    measure: Measure,
    values: Matrix,
    common: Flags,
    pairs: Pairs,
    compare: Callable[[Matrix], Sequence[Family]],
) -> Coverage:
    """Return the coverage with the comparison on judged documents if a pair is judged unevenly.

    `values` has a row for each evaluation and a column for each topic that is `common` among those
    of the judgements; `compare` makes the families of other values of the same runs. A measure
    without the parameter judged_only is computed from the condensed list as well.

    Source: Sakai, SIGIR 2007, "Alternatives to Bpref": unjudged documents removed, the rest moved
    up
    """
    if not coverage.uneven(pairs).any():
        return coverage

    condensed = condensed_matrix(evaluation_ids, measure)[:, common]
    changed = (condensed != values).any(axis=1)
    condensed = condensed[:, ~np.isnan(condensed).any(axis=0)]

    topics = condensed.shape[1]
    if topics < 2:
        return coverage
    families = [replace(family, tiers=None) for family in compare(condensed)]
    on_judged = OnJudged(condensed.mean(axis=1), changed, topics, families)

    return replace(coverage, on_judged=on_judged)
