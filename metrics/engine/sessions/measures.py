"""SESSION_MEASURES: every measure of sessions, in display order. Each gives a value per session."""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics.engine.arrays import Floats
from metrics.engine.judgement.gains import LINEAR, GainMap
from metrics.engine.measures.definition import GAINS, REL, Cutoff, MeasureDefinition, Parameter
from metrics.engine.measures.grammar import Measure
from metrics.engine.measures.ratio import ratio
from metrics.engine.sessions.figures import Figure, normalised_figure, of_queries, raw_figure
from metrics.engine.sessions.instances import instance_recall
from metrics.engine.sessions.judged import JudgedSessions
from metrics.engine.sessions.lists import concatenated, one_by_one
from metrics.engine.sessions.parameters import (
    BASE,
    DD_BASE,
    DUP,
    DUP_LIST,
    EXP,
    EXPONENTIAL,
    FIGURE,
    HALF_LIFE,
    IDEAL,
    NORM,
    OF,
    QUERIES,
    QUERY_BASE,
    QUERY_FIGURE,
    SCAN,
    SHORT,
    SHORT_LIST,
    check_ideal,
)
from metrics.engine.sessions.settings import (
    DEFAULT_DEPTH,
    MAX_DEPTH,
    Duplicates,
    Ideal,
    Norm,
    Scan,
    Setting,
)
from metrics.engine.sessions.variants import dd_bound, dd_gain, log2_gain


def sdcg(
    view: JudgedSessions,
    *,
    cutoff: int = DEFAULT_DEPTH,
    gains: GainMap = LINEAR,
    b: float = 2.0,
    bq: float | None = 4.0,
    short: str = "pad",
    dup: Duplicates = "every",
    scan: Scan = "fixed",
    half_life: float | None = None,
    figure: Figure = "final",
) -> Floats:
    """Session-based discounted cumulated gain: gain counts less the later it comes in its list, and
    the later its query comes in the session.

    Formula: sDCG(q)[i] = sum of G[r] / (1 + log_b r) for r = 1..i, divided by 1 + log_bq q; the
    session's vector puts the gains of the first X documents of each query one after another and
    cumulates them. half_life=h multiplies the gains of a query by 2^(-t / h), t being the seconds
    from the session's first query to this one
    Range: 0 and above
    Source: Järvelin, Price, Delcambre and Nielsen, ECIR 2008, equation 1, section 3.3 and appendix,
    equation 2; the discount by time is that of Smucker and Clarke, SIGIR 2012, who take h = 224 and
    model the time of each rank
    Elsewhere: sDCG_shifted and sDCG_DD are what two scripts compute under this name; SDCG is scaled
    DCG in ir_measures
    Undefined: where no query of the session is judged
    """
    setting = Setting(gains, cutoff, b, bq, short, dup, scan, half_life=half_life)
    return raw_figure(view, setting, figure)


def nsdcg(
    view: JudgedSessions,
    *,
    cutoff: int = DEFAULT_DEPTH,
    gains: GainMap = LINEAR,
    b: float = 2.0,
    bq: float | None = 4.0,
    short: str = "pad",
    dup: Duplicates = "every",
    scan: Scan = "fixed",
    half_life: float | None = None,
    ideal: Ideal = "repeated",
    norm: Norm = "session",
    figure: Figure = "final",
) -> Floats:
    """Normalised session-based discounted cumulated gain: the share of what the ideal session has
    gained.

    Formula: nsDCG[i] = sDCG[i] / ideal sDCG[i] with norm='session'; the ideal session has as many
    queries, each with the ideal ranking of the topic in as many places. norm='query' divides each
    query's sDCG(q) by the DCG of the ideal ranking, undiscounted by the query's place and time, so
    that the value of a query cannot exceed 1 / (1 + log_bq q)
    Range: 0 to 1 with ideal='repeated'; with ideal='once' up to 1 for figure='final' and
    dup='first', else above 1 where a document gains twice or a session is ahead of the ideal on the
    way
    Source: Järvelin, Price, Delcambre and Nielsen, ECIR 2008, sections 2.2 (norm='query') and 3.3
    Elsewhere: nsDCG_shifted and nsDCG_DD are what two scripts compute under this name
    Undefined: where no query of the session is judged, or its judgements have no gain
    """
    setting = Setting(gains, cutoff, b, bq, short, dup, scan, half_life=half_life)
    return normalised_figure(view, setting, figure, ideal, norm)


def sdcg_shifted(
    view: JudgedSessions,
    *,
    cutoff: int = DEFAULT_DEPTH,
    gains: GainMap = EXP,
    b: float = 2.0,
    bq: float | None = 4.0,
    figure: Figure = "final",
) -> Floats:
    """sDCG with discounts shifted by the base, and exponential gains: what the scripts of Jiang and
    Allan compute.

    Formula: sum over queries q of (sum of G[r] / log_b(r + b - 1) for r = 1..X) / log_bq(q + bq -
    1); G = 2^level - 1; bq=none leaves the query's place out; figure='mean' is their sDCG/q
    Range: 0 and above
    Source: Jiang and Allan, CHIIR 2016, and the scripts published with it (2015), SDCG and SDCGQ
    Undefined: where no query of the session is judged
    """
    return raw_figure(view, Setting(gains, cutoff, b, bq, form="shifted"), figure)


def nsdcg_shifted(
    view: JudgedSessions,
    *,
    cutoff: int = DEFAULT_DEPTH,
    gains: GainMap = EXP,
    b: float = 2.0,
    bq: float | None = 4.0,
    figure: Figure = "final",
) -> Floats:
    """sDCG_shifted as a share of the session that has the ideal ranking in each of its queries.

    Formula: sDCG_shifted / sDCG_shifted of as many queries that all return the judged documents,
    best first
    Range: 0 to 1
    Source: Kanoulas, Carterette, Clough and Sanderson, SIGIR 2011; the scripts of Jiang and Allan,
    CHIIR 2016, NSDCG
    Elsewhere: the scripts fail where nothing is relevant
    Undefined: where no query of the session is judged, or its judgements have no gain
    """
    return normalised_figure(view, Setting(gains, cutoff, b, bq, form="shifted"), figure)


def sdcg_dd(
    view: JudgedSessions,
    *,
    cutoff: int = 5,
    gains: GainMap = LINEAR,
    b: float = 2.0,
    bq: float = 4.0,
    queries: int = 10,
) -> Floats:
    """sDCG of a session's first queries only: what the jig of TREC Dynamic Domain computes.

    Formula: sDCG of the first X documents of queries 1..queries
    Range: 0 and above
    Source: trec-dd-jig, scorer/sDCG.py (2017), whose cutoff is the number of queries and which
    takes all of the five documents that the track allows; a document's level is the sum of the
    ratings of its passages
    Undefined: where no query of the session is judged
    """
    return dd_gain(view, Setting(gains, cutoff, b, bq), queries)


def nsdcg_dd(
    view: JudgedSessions,
    *,
    cutoff: int = 5,
    gains: GainMap = LINEAR,
    b: float = 2.0,
    bq: float = 4.0,
    queries: int = 10,
) -> Floats:
    """sDCG_DD as a share of a bound: the best that `queries` queries could gain without repeating a
    document.

    Formula: sDCG_DD / sum of the best gains, each at another of the queries times X places, the
    best where a gain counts most; `queries` counts, however many the session has
    Range: 0 to 1, above 1 where documents come back
    Source: trec-dd-jig, scorer/sDCG.py (2017), sDCG_bound_per_topic, which assumes five documents a
    query
    Elsewhere: the track's script of 2015 divides by the ideal over as many documents as were
    returned, and again by the number of queries
    Undefined: where no query of the session is judged, or its judgements have no gain
    """
    setting = Setting(gains, cutoff, b, bq)
    gain, most = dd_gain(view, setting, queries), dd_bound(view, setting, queries)
    return np.where(most > 0, ratio(gain, most), np.nan)


def nsdcg_log2(view: JudgedSessions, *, cutoff: int = DEFAULT_DEPTH) -> Floats:
    """Sum of the queries' nDCG, each divided by log2(q + 1), with gains that never are 0.

    Formula: sum over queries q of nDCG_q / log2(q + 1); nDCG_q = sum of 2^level / log2(r + 1) over
    the first X documents of the query, unjudged ones with level 0 / the same sum over all judged
    documents, best first
    Range: 0 to the sum of 1 / log2(q + 1), if no more documents count for a query than are judged
    Source: evaluation_measures of S. Kondo (github.com/skondo), sessionndcg
    Elsewhere: its ideal is that of all judged documents also where X is smaller
    Undefined: where the session is not judged, or judged query by query
    """
    return log2_gain(view, Setting(depth=cutoff))


def instances(
    view: JudgedSessions,
    *,
    cutoff: int = DEFAULT_DEPTH,
    rel: int = 1,
    short: str = "pad",
    scan: Scan = "fixed",
) -> Floats:
    """Instance recall: the share of the topic's instances (subtopics) that the session has found.

    Formula: instances with a relevant document among the first X of any query / instances with a
    relevant document
    Range: 0 to 1
    Source: Over, TREC interactive track, 1997 to 1999; named by Järvelin, Price, Delcambre and
    Nielsen, ECIR 2008
    Elsewhere: the track counted the documents that searchers saved, not those that were listed
    Undefined: where the session is not judged, judged query by query, or its topic has no relevant
    document
    """
    return instance_recall(view, Setting(depth=cutoff, short=short, scan=scan), rel)


def of_session(
    view: JudgedSessions,
    *,
    of: Measure,
    cutoff: int = DEFAULT_DEPTH,
    short: str = "asis",
    dup: Duplicates = "first",
    scan: Scan = "fixed",
) -> Floats:
    """A measure of runs, of the session as one ranking: its lists one after another.

    Formula: the measure of the ranking that holds the first X documents of each query in turn; a
    document that comes back keeps its place, and with dup='first' is relevant only once. For
    Coverage and Novelty the user knows what the log says was known before the session
    Range: that of the measure
    Source: the concatenation of Järvelin, Price, Delcambre and Nielsen, ECIR 2008, section 3.3
    Undefined: where the session is not judged, and where the measure is
    """
    run = concatenated(view, Setting(depth=cutoff, short=short, duplicates=dup, scan=scan))
    return np.where(view.is_judged, of.compute(run), np.nan)


def of_each_query(
    view: JudgedSessions,
    *,
    of: Measure,
    cutoff: int = DEFAULT_DEPTH,
    dup: Duplicates = "every",
    scan: Scan = "fixed",
    figure: str = "mean",
) -> Floats:
    """A measure of runs, of each query by itself, made one figure of the session.

    Formula: mean, best, worst, first, last or sum of the measure's values for the lists of the
    session's queries, cut at X, or with figure='turn:2' the value of the second query; queries
    without a value are left out of mean, best, worst and sum. For Coverage and Novelty the user
    knows what earlier queries of the session have shown, and what the log says was known before the
    session
    Range: that of the measure
    Source: TREC session track 2011 to 2014 (figure='last'); Jiang and Allan, CHIIR 2016
    Undefined: where the session is not judged, where the measure is, and with figure='turn:n' for a
    session of fewer than n queries
    """
    values = of.compute(one_by_one(view, Setting(depth=cutoff, duplicates=dup, scan=scan)))
    opposite = {"best": "worst", "worst": "best"} if of.definition.lower_is_better else {}
    return np.where(view.is_judged, of_queries(view, values, opposite.get(figure, figure)), np.nan)


def _define(
    name: str, compute: Any, *parameters: Parameter, depth: int = DEFAULT_DEPTH, **options: Any
) -> MeasureDefinition:
    return MeasureDefinition(
        name,
        compute,
        Cutoff.OPTIONAL,
        parameters,
        max_cutoff=MAX_DEPTH,
        default_cutoff=depth,
        **options,
    )


_DISCOUNTS = (GAINS, BASE, QUERY_BASE)
_READING = (SHORT, DUP, SCAN)
_TABLE = (
    _define("sDCG", sdcg, *_DISCOUNTS, *_READING, HALF_LIFE, FIGURE, aliases=("session-dcg",)),
    _define(
        "nsDCG", nsdcg, *_DISCOUNTS, *_READING, HALF_LIFE, IDEAL, NORM, FIGURE, check=check_ideal
    ),
    _define("sDCG_shifted", sdcg_shifted, EXPONENTIAL, BASE, QUERY_BASE, FIGURE),
    _define("nsDCG_shifted", nsdcg_shifted, EXPONENTIAL, BASE, QUERY_BASE, FIGURE),
    _define("sDCG_DD", sdcg_dd, GAINS, BASE, DD_BASE, QUERIES, depth=5),
    _define("nsDCG_DD", nsdcg_dd, GAINS, BASE, DD_BASE, QUERIES, depth=5),
    _define("nsDCG_log2", nsdcg_log2),
    _define("InstanceRecall", instances, REL, SHORT, SCAN),
    _define("Session", of_session, OF, SHORT_LIST, DUP_LIST, SCAN),
    _define("Query", of_each_query, OF, DUP, SCAN, QUERY_FIGURE),
)

SESSION_MEASURES: dict[str, MeasureDefinition] = {
    definition.name: definition for definition in _TABLE
}
