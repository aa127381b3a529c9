"""The agreement of two or more assessors on the levels of documents, with intervals over topics.

Every coefficient is a function of counts that add up over topics. A bootstrap sample of the topics
therefore adds whole numbers, and the same seed gives the same interval on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from metrics.engine.agreement.intervals import stretch_of
from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.judgement.judging import Judgements
from metrics.engine.significance.pairs import Options
from metrics.engine.significance.resampling import Plan, draw_weights, resampled_sums

# The place of a level that an assessor did not give.
UNJUDGED = -1
# Why a coefficient is undefined: no document has the judgements that it needs, or chance agreement
# is complete, because all of these judgements have the same level.
NO_DOCUMENTS, ONE_LEVEL = UNDEFINED = ("no_documents", "one_level")
NOMINAL, ORDINAL, INTERVAL = METRICS = ("nominal", "ordinal", "interval")
_LEAST = {"agreement": 0.0, "overlap": 0.0}

Counts = Callable[[Floats], Floats]
"""value(counts (..., features)) -> coefficients (...), NaN where undefined"""


@dataclass(frozen=True)
class AssessedDocuments:
    """The levels that assessors give the documents of topics.

    Shapes: `levels` are those that occur, ascending; `places` (documents, assessors) has the place
    of each judgement in `levels`, or UNJUDGED; `topics` (documents,) is the number of each
    document's topic among `topic_ids`.
    """

    topic_ids: list[bytes]
    topics: Ints
    places: Ints
    levels: Ints

    @property
    def judgements(self) -> Ints:
        """Return the number of judgements of each document."""
        numbers: Ints = (self.places != UNJUDGED).sum(axis=1)
        return numbers

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Return every two assessors."""
        return list(combinations(range(self.places.shape[1]), 2))

    @property
    def confusions(self) -> Ints:
        """Return documents by the levels of every two assessors.

        Shape (topics, pairs, levels, levels); rows are the levels of the pair's first assessor.
        """
        size = len(self.levels)
        tables = []
        for first, second in self.pairs:
            both = (self.places[:, [first, second]] != UNJUDGED).all(axis=1)
            rows, columns = self.places[both, first], self.places[both, second]
            cells = (self.topics[both] * size + rows) * size + columns
            table = np.bincount(cells, minlength=len(self.topic_ids) * size * size)
            tables.append(table.reshape(-1, size, size))

        return np.stack(tables, axis=1)


@dataclass(frozen=True)
class Estimate:
    """A coefficient over all documents, the ends of its interval, and its value for each topic.

    NaN where it is undefined: `reason` says why, of the value over all documents.
    """

    value: float
    low: float
    high: float
    topics: Floats
    reason: str = ""


@dataclass(frozen=True)
class Threshold:
    """The agreement on which documents are relevant: those of `level` or above."""

    level: int
    overlap: Estimate
    kappa: Estimate


@dataclass(frozen=True)
class AssessorAgreement:
    """The agreement of assessors.

    `documents` (topics,) is the number with at least two judgements. `confusion` (levels, levels)
    is that of the first two assessors. `estimates` has each coefficient by its name.
    """

    documents: Ints
    confusion: Ints
    estimates: dict[str, Estimate]
    thresholds: list[Threshold]


def assessed_documents(assessors: Sequence[Judgements]) -> AssessedDocuments:
    """Match the judgements of assessors by topic and document id.

    Topics are in the order of the first assessor, then those of the others.
    """
    topic_ids = list(
        dict.fromkeys(topic for judgements in assessors for topic in judgements.topic_ids)
    )
    numbers = {topic_id: number for number, topic_id in enumerate(topic_ids)}
    levels = np.unique(np.concatenate([judgements.levels for judgements in assessors]))

    rows: dict[tuple[int, bytes], int] = {}
    columns = []
    for judgements in assessors:
        topics = [numbers[topic_id] for topic_id in judgements.topic_ids]
        columns.append(
            [
                rows.setdefault((topics[topic], document), len(rows))
                for topic, document in judgements.places
            ]
        )

    places = np.full((len(rows), len(assessors)), UNJUDGED, np.int64)
    for assessor, (judgements, column) in enumerate(zip(assessors, columns, strict=True)):
        order = list(judgements.places.values())
        places[column, assessor] = np.searchsorted(levels, judgements.levels[order])

    return AssessedDocuments(
        topic_ids=topic_ids,
        topics=np.fromiter((topic for topic, _ in rows), np.int64, len(rows)),
        places=places,
        levels=levels,
    )


def assessor_agreement(assessed: AssessedDocuments, options: Options) -> AssessorAgreement:
    """Return every coefficient of agreement, with intervals over bootstrap samples of the topics.

    Two assessors have a table C of documents by both levels, with n documents, row sums r and
    column sums c; for more assessors these coefficients are the mean over pairs of assessors for
    which they are defined.

    - `agreement`: p_o = sum_i C_ii / n
    - `kappa`: 1 - n sum w C / sum w r c', w = [i != j]; `linear_kappa` with w = |i - j|,
      `quadratic_kappa` with w = (i - j)^2, of the levels
    - `fleiss_kappa`: (P - P_e) / (1 - P_e), on documents that all assessors judged: P the share of
      pairs of judgements of a document with the same level, P_e the sum of squared shares of levels
    - `alpha_nominal`, `alpha_ordinal`, `alpha_interval`: Krippendorff's, on documents with at least
      two judgements; see `krippendorff_alpha`
    - by level: `overlap` |A and B| / |A or B| of the documents that both judged and call relevant,
      and the kappa of relevant against not relevant

    The interval has the percentiles of a + s (a* - a): a* the coefficient of a sample of topics, s
    = t(n - 1) / z sqrt(n / (n - 1)) of n topics with documents. It is NaN with fewer than two.

    Sources: Cohen (1960), Educational and Psychological Measurement 20; Cohen (1968), Psychological
    Bulletin 70; Fleiss (1971), Psychological Bulletin 76; Krippendorff, Content Analysis, chapter
    11; overlap: Voorhees (2000), Information Processing & Management 36; s: Hesterberg (2015), The
    American Statistician 69(4).
    """
    size = len(assessed.levels)
    confusions = assessed.confusions
    several = assessed.judgements >= 2
    documents = np.bincount(assessed.topics[several], minlength=len(assessed.topic_ids))
    by_pair = confusions.reshape(len(confusions), -1)
    shape = confusions.shape[1:]
    apart = np.abs(np.subtract.outer(assessed.levels, assessed.levels)).astype(np.float64)

    def of_pairs(coefficient: Counts) -> Counts:
        return lambda counts: _mean_of_pairs(
            coefficient(counts.reshape(*counts.shape[:-1], *shape))
        )

    def weighted(weights: Floats) -> Counts:
        return of_pairs(lambda tables: weighted_kappa(tables, weights))

    def estimate(name: str, counts: Ints, value: Counts) -> Estimate:
        return _estimate(counts, value, documents, options, _LEAST.get(name, -1.0))

    estimates = {
        "agreement": estimate("agreement", by_pair, of_pairs(observed_agreement)),
        "kappa": estimate("kappa", by_pair, weighted(1.0 - np.eye(size))),
        "linear_kappa": estimate("linear_kappa", by_pair, weighted(apart)),
        "quadratic_kappa": estimate("quadratic_kappa", by_pair, weighted(apart**2)),
        "fleiss_kappa": estimate("fleiss_kappa", _fleiss_counts(assessed), fleiss_kappa),
    }

    coincidences, unit = _coincidences(assessed)

    def alpha(metric: str) -> Counts:
        return lambda counts: krippendorff_alpha(
            counts.reshape(*counts.shape[:-1], size, size) / unit, assessed.levels, metric
        )

    for metric in METRICS:
        estimates[f"alpha_{metric}"] = estimate("alpha", coincidences, alpha(metric))

    thresholds = []
    for level in assessed.levels[assessed.levels >= 1].tolist():
        relevant = assessed.levels >= level
        binary = _binarised(confusions, relevant)
        thresholds.append(
            Threshold(
                level=level,
                overlap=estimate("overlap", binary, _of_binary(overlap, shape[0])),
                kappa=estimate("kappa", binary, _of_binary(_binary_kappa, shape[0])),
            )
        )

    return AssessorAgreement(documents, confusions[:, 0].sum(axis=0), estimates, thresholds)


def observed_agreement(tables: Floats) -> Floats:
    """Return the share of documents on the diagonal of tables; shape (..., levels, levels)."""
    return _ratio(np.trace(tables, axis1=-2, axis2=-1), tables.sum(axis=(-2, -1)))


def weighted_kappa(tables: Floats, weights: Floats) -> Floats:
    """Return 1 minus observed disagreement over that of independent assessors.

    Shapes: `tables` (..., levels, levels), `weights` of disagreement (levels, levels).
    """
    expected = np.einsum(
        "...i,ij,...j->...", tables.sum(axis=-1), weights, tables.sum(axis=-2), optimize=True
    )
    observed = tables.sum(axis=(-2, -1)) * (tables * weights).sum(axis=(-2, -1))
    return 1.0 - _ratio(observed, expected)


def overlap(tables: Floats) -> Floats:
    """Return documents relevant to both over those relevant to either; shape (..., 2, 2)."""
    either = tables.sum(axis=(-2, -1)) - tables[..., 0, 0]
    return _ratio(tables[..., 1, 1], either)


def fleiss_kappa(counts: Floats) -> Floats:
    """Return Fleiss' kappa.

    `counts` (..., levels + 2): judgements at each level, ordered pairs of judgements of a document
    with the same level, and all such pairs.
    """
    levels, agreeing, pairs = counts[..., :-2], counts[..., -2], counts[..., -1]
    total = levels.sum(axis=-1)
    expected = (levels**2).sum(axis=-1)
    # With whole numbers as long as possible: (P - P_e) / (1 - P_e) times pairs total^2.
    return _ratio(agreeing * total**2 - expected * pairs, pairs * (total**2 - expected))


def krippendorff_alpha(coincidences: Floats, levels: Ints, metric: str = ORDINAL) -> Floats:
    """Return Krippendorff's alpha of coincidences; shape (..., levels, levels).

    Formula: 1 - D_o / D_e, D_o = sum o_ck d2_ck / n, D_e = sum n_c n_k d2_ck / (n (n - 1)); o_ck
    are the ordered pairs of judgements of a document at levels c and k, each divided by the number
    of its judgements less 1; n_c = sum_k o_ck, n = sum n_c. d2 is [c != k] (nominal), (c - k)^2
    (interval), or (n_c / 2 + the n_g between + n_k / 2)^2 (ordinal)
    Source: Krippendorff, Content Analysis: An Introduction to Its Methodology, 2nd edition 2004,
    chapter 11; Computing Krippendorff's Alpha-Reliability, 2011
    """
    marginals = coincidences.sum(axis=-1)
    total = marginals.sum(axis=-1)
    if metric == NOMINAL:
        squares = 1.0 - np.eye(len(levels))
    elif metric == INTERVAL:
        squares = np.subtract.outer(levels, levels).astype(np.float64) ** 2
    else:
        middles = np.cumsum(marginals, axis=-1) - marginals / 2
        squares = (middles[..., :, None] - middles[..., None, :]) ** 2

    observed = (coincidences * squares).sum(axis=(-2, -1)) * (total - 1)
    expected = (marginals[..., :, None] * marginals[..., None, :] * squares).sum(axis=(-2, -1))
    return 1.0 - _ratio(observed, expected)


def _estimate(
    counts: Ints, value: Counts, documents: Ints, options: Options, least: float
) -> Estimate:
    """Return the coefficient of counts (topics, features) with its interval."""
    with_documents = documents > 0
    own = counts[with_documents]
    observed = float(value(counts.sum(axis=0, dtype=np.float64)))
    of_topics = value(counts.astype(np.float64))
    if math.isnan(observed):
        reason = ONE_LEVEL if counts.any() else NO_DOCUMENTS
        return Estimate(observed, math.nan, math.nan, of_topics, reason)
    if len(own) < 2:
        return Estimate(observed, math.nan, math.nan, of_topics)

    # Few features occur: the others add nothing to any sample.
    occurring = np.flatnonzero(own.any(axis=0))
    plan = Plan(draw_weights, options.resamples, options.seed, watch=options.watch)
    sums = np.zeros((options.resamples, counts.shape[1]))
    sums[:, occurring] = resampled_sums(own[:, occurring].T.astype(np.float64), plan).T

    resampled = value(sums)
    resampled = resampled[~np.isnan(resampled)]
    stretched = observed + stretch_of(len(own), options.confidence) * (resampled - observed)
    ends = [(1 - options.confidence) / 2, (1 + options.confidence) / 2]
    low, high = np.quantile(stretched, ends, method="inverted_cdf").clip(least, 1.0).tolist()
    return Estimate(observed, low, high, of_topics)


def _mean_of_pairs(values: Floats) -> Floats:
    """Return the mean over pairs of assessors, the last axis, without undefined ones."""
    defined = ~np.isnan(values)
    return _ratio(np.where(defined, values, 0.0).sum(axis=-1), defined.sum(axis=-1))


def _fleiss_counts(assessed: AssessedDocuments) -> Ints:
    """Return the counts of `fleiss_kappa` for each topic; shape (topics, levels + 2)."""
    size, assessors = len(assessed.levels), assessed.places.shape[1]
    complete = (assessed.places != UNJUDGED).all(axis=1)
    places, topics = assessed.places[complete], assessed.topics[complete]
    at_level = (places[:, :, None] == np.arange(size)).sum(axis=1)
    of_document = np.column_stack(
        [
            at_level,
            (at_level * (at_level - 1)).sum(axis=1),
            np.full(len(places), assessors * (assessors - 1)),
        ]
    )

    counts = np.zeros((len(assessed.topic_ids), size + 2), np.int64)
    np.add.at(counts, topics, of_document)
    return counts


def _coincidences(assessed: AssessedDocuments) -> tuple[Ints, int]:
    """Return the coincidences of each topic, shape (topics, levels * levels), and their unit.

    They are whole numbers: a coincidence is a count over the unit.
    """
    size, several = len(assessed.levels), assessed.judgements >= 2
    others = np.maximum(assessed.judgements - 1, 1)
    unit = math.lcm(*np.unique(others[several]).tolist())

    cells, counts = len(assessed.topic_ids) * size * size, unit // others
    sums = np.zeros(cells, np.int64)
    for first, second in assessed.pairs:
        both = (assessed.places[:, [first, second]] != UNJUDGED).all(axis=1)
        for rows, columns in ((first, second), (second, first)):
            cell = assessed.topics[both] * size + assessed.places[both, rows]
            np.add.at(sums, cell * size + assessed.places[both, columns], counts[both])

    return sums.reshape(len(assessed.topic_ids), -1), unit


def _binarised(confusions: Ints, relevant: Flags) -> Ints:
    """Return tables of not relevant and relevant documents; shape (topics, pairs * 4)."""
    sides = np.stack([~relevant, relevant]).astype(np.int64)
    tables: Ints = np.einsum("ai,tpij,bj->tpab", sides, confusions, sides, optimize=True)
    return tables.reshape(len(tables), -1)


def _of_binary(coefficient: Counts, pairs: int) -> Counts:
    return lambda counts: _mean_of_pairs(
        coefficient(counts.reshape(*counts.shape[:-1], pairs, 2, 2))
    )


def _binary_kappa(tables: Floats) -> Floats:
    return weighted_kappa(tables, 1.0 - np.eye(2))


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Return the ratio, NaN where the denominator is 0."""
    ratio: Floats = np.full(np.shape(denominator), np.nan)
    np.divide(numerator, denominator, out=ratio, where=np.asarray(denominator) != 0)
    return ratio
