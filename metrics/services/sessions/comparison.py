"""Compare systems on one value of each session: paired, in a Latin square, by topic, or as unpaired samples."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from metrics.engine.errors import StatisticsError
from metrics.engine.grammar import Measure
from metrics.engine.ranking import Floats
from metrics.engine.sessions.blocks import Session
from metrics.engine.sessions.cautions import dependent_cells, of_sessions
from metrics.engine.sessions.designs import Design, Factors, paired_values, recognise, samples, topic_values
from metrics.engine.sessions.grammar import session_values
from metrics.engine.significance import CORRECTIONS, OMNIBUS, TESTS, latin_square, welch_t
from metrics.engine.significance.cautions import untested
from metrics.engine.significance.families import USUAL_RULE, Pairs, Rule, check_known, compare_family
from metrics.engine.significance.omnibus import OmnibusResult
from metrics.engine.significance.pairs import DEFAULTS, Options, PairedResult
from metrics.engine.significance.verdicts import REASONS, Verdicts, adjust, cautions_of, decide
from metrics.models import SessionEvaluation
from metrics.services.sessions.board import current_evaluations, first_judged_by, system_name
from metrics.services.sessions.judged_sets import begin_sessions, check_means, load_sets, work_of
from metrics.services.snapshots import one_snapshot
from metrics.services.values.effort import seconds_of_test
from metrics.services.work import begin
from runs.models import Collection, Qrels

DESIGNS: tuple[Design, ...] = ("paired", "latin_square", "two_way", "unpaired")
MAX_SYSTEMS = 50
_WHY: dict[Design, str] = {
    "paired": "every searcher who searched a topic used every system on it",
    "latin_square": "every searcher searched every topic once, with systems balanced over searchers and topics",
    "two_way": "every topic was searched with every system, but not by the same searchers",
    "unpaired": "some topics were not searched with every system",
}
# In a Latin square the pairs are compared by its own analysis, unpaired samples by Welch's test.
_ONLY = {"latin_square": "latin_square", "unpaired": "welch_t"}
_USUAL = "paired_t"
# Seconds to solve a system of equations, by the cube of their number.
_CUBED = 4e-9


@dataclass(frozen=True)
class SessionComparisonQuery:
    """The parameters of a comparison; no sets or systems means all, no design the recognised one, no test the usual one
    of the design."""

    measure: Measure
    sets: list[str] = field(default_factory=list)
    systems: list[str] = field(default_factory=list)
    baseline: str | None = None
    design: Design | None = None
    test: str | None = None
    rule: Rule = USUAL_RULE
    options: Options = DEFAULTS
    judged_by: str | None = None


@dataclass(frozen=True)
class Compared:
    """One system that takes part: its sessions, those with a value, and its mean over them."""

    name: str
    evaluation: SessionEvaluation
    system: str
    sessions: int
    with_value: int
    mean: float | None


@dataclass(frozen=True)
class SessionComparison:
    """The systems best first, and every pair of them or with the baseline.

    `recognised` is the design of the sessions, with the reason in `why`; `design` is the one by which they are
    compared, on this many `cells`: pairs of topic and searcher, topics, or sessions. Bounds of `result` are NaN if the
    test has none. `family` is the number of pairs that p values account for.
    """

    query: SessionComparisonQuery
    judged_by: str
    recognised: Design
    why: str
    design: Design
    test: str
    correction: str | None
    family: int
    cells: int
    systems: list[Compared]
    pairs: Pairs
    result: PairedResult
    adjusted: Floats
    verdicts: Verdicts
    omnibus: dict[str, OmnibusResult]

    @property
    def qrels(self) -> Qrels | None:
        """Return the active judgements, which are the same for every system, or None if the logs contain their own."""
        return self.systems[0].evaluation.qrels

    @property
    def draws(self) -> bool:
        """Return whether the results depend on B and the seed."""
        return self.test in TESTS and TESTS[self.test].draws

    def better(self, place: int) -> int:
        """Return for one pair 1 if its first system is significantly better, -1 if it is worse, 0 without a verdict."""
        return int(self.verdicts.better(self.query.measure.definition.lower_is_better)[place])

    def withheld(self, place: int) -> str:
        return REASONS[self.verdicts.withheld[place]]


@dataclass(frozen=True)
class _Sample:
    """All sessions that take part, with their values; `names` are in the order of the factors' systems."""

    values: Floats
    factors: Factors
    names: list[str]
    entrants: dict[str, tuple[SessionEvaluation, str]]


def compare_systems(*, collection: Collection, query: SessionComparisonQuery) -> SessionComparison:
    """Compare systems on the measure, by the design of their sessions or the requested one.

    Raise StatisticsError for fewer than two systems, too many, an unknown one, a test that does not fit the design, or
    too few values.
    """
    with one_snapshot():
        judged_by = query.judged_by or first_judged_by(collection)
        sample = _best_first(_read_sample(collection, judged_by, query), query.measure)
    recognised = recognise(sample.factors)
    design = query.design or recognised
    only = _ONLY.get(design)
    test, known = query.test or only or _USUAL, [only] if only else [name for name, one in TESTS.items() if one.paired]
    if test not in known:
        message = f"test {test[:40]!r} does not fit the {design} design; choose from:  {', '.join(known)}"
        raise StatisticsError(message, code="unknown_test", pointer="test")
    check_known([], query.rule.correction)
    pairs = Pairs(len(sample.names), _place(sample.names, query.baseline))
    if design == "latin_square":
        cells, fewest, result, omnibus = _in_square(sample, pairs)
    elif design == "unpaired":
        cells, fewest, result, omnibus = _unpaired(sample, pairs, query.options)
    else:
        cells, fewest, result, omnibus = _paired(sample, design, pairs, test, query)
    simultaneous = test in TESTS and TESTS[test].simultaneous
    correction = None if simultaneous else query.rule.correction
    adjusted = adjust(result.p_value, CORRECTIONS[correction]) if correction else result.p_value
    verdicts = decide(result, adjusted, query.rule.alpha, fewest)
    told = (*result.cautions, *of_sessions(cautions_of(verdicts, fewest), design))
    result, family = replace(result, cautions=tuple(dict.fromkeys(told))), Pairs(pairs.runs) if simultaneous else pairs
    counts = np.bincount(sample.factors.system, minlength=len(sample.names)).tolist()
    systems = [
        Compared(name, *sample.entrants[name], count, len(values), float(np.mean(values)) if len(values) else None)
        for name, count, values in zip(sample.names, counts, samples(sample.values, sample.factors), strict=True)
    ]
    return SessionComparison(
        query, judged_by, recognised, _WHY[recognised], design, test, correction, family.number, cells, systems, pairs,
        result, adjusted, verdicts, omnibus,
    )  # fmt: skip


def _read_sample(collection: Collection, judged_by: str, query: SessionComparisonQuery) -> _Sample:
    evaluations = current_evaluations(collection, judged_by)
    if query.sets:
        evaluated = {str(evaluation.session_set_id) for evaluation in evaluations}
        missing = [pk for pk in query.sets if pk not in evaluated]
        if missing:
            message = f"session set {missing[0]} is not evaluated, judged by {judged_by}, in {collection.slug}"
            raise StatisticsError(message, code="unknown_session_set", pointer="sets")
        evaluations = [evaluation for evaluation in evaluations if str(evaluation.session_set_id) in query.sets]
    queries = sum(one.session_set.queries for one in evaluations)
    begin_sessions(work_of(queries, [query.measure]), "sets", read=queries)
    check_means(evaluations)
    entrants = {
        system_name(evaluation, system): (evaluation, system)
        for evaluation in evaluations
        for system in evaluation.means["systems"]
    }
    names = _chosen(entrants, query)
    parts: list[Floats] = []
    sessions: list[Session] = []
    for evaluation, judged in load_sets(evaluations):
        label = [system_name(evaluation, name.decode()) for name in judged.systems]
        taking = np.flatnonzero(np.isin(judged.system, [i for i, name in enumerate(label) if name in names]))
        parts.append(session_values(judged.view, query.measure)[taking])
        owners = judged.system[taking].tolist()
        kept = (judged.sessions[index] for index in taking.tolist())
        sessions += [replace(one, system=label[owner].encode()) for one, owner in zip(kept, owners, strict=True)]
    factors = Factors.of(sessions)
    return _Sample(np.concatenate(parts), factors, [name.decode() for name in factors.systems], entrants)


def _chosen(entrants: dict[str, tuple[SessionEvaluation, str]], query: SessionComparisonQuery) -> set[str]:
    """Return the systems that take part by their full names; a system's own name is enough if only one set has it."""
    names = set()
    for name in [*query.systems, *([query.baseline] if query.systems and query.baseline else [])]:
        found = [full for full, (_, system) in entrants.items() if name in (full, system)]
        if len(found) != 1:
            what = "is in several session sets" if found else "is not in any evaluated session set here"
            message = f"system {name[:100]!r} {what}; write team/tag:system"
            raise StatisticsError(message, code="unknown_system", pointer="systems")
        names.add(found[0])
    names = names or set(entrants)
    if not 2 <= len(names) <= MAX_SYSTEMS:
        few = len(names) < 2
        say = f"a comparison needs 2 to {MAX_SYSTEMS} systems; found {len(names)}. Name some with systems="
        raise StatisticsError(say, code="too_few_systems" if few else "too_many_systems", pointer="systems")
    return names


def _best_first(sample: _Sample, measure: Measure) -> _Sample:
    """Return the same sample with the systems in the order of their means."""
    means = [float(np.mean(values)) if len(values) else np.nan for values in samples(sample.values, sample.factors)]
    sign = 1 if measure.lower_is_better else -1
    order = np.argsort(sign * np.array(means), kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    names = [sample.names[index] for index in order.tolist()]
    systems = [sample.factors.systems[index] for index in order.tolist()]
    factors = replace(sample.factors, systems=systems, system=place[sample.factors.system])
    return replace(sample, factors=factors, names=names)


def _place(names: list[str], baseline: str | None) -> int | None:
    if baseline is None:
        return None
    found = [index for index, name in enumerate(names) if name == baseline or name.endswith(f":{baseline}")]
    if len(found) != 1:
        message = f"baseline {baseline[:100]!r} is not one of the compared systems; write team/tag:system"
        raise StatisticsError(message, code="unknown_system", pointer="baseline")
    return found[0]


_Outcome = tuple[int, int, PairedResult, dict[str, OmnibusResult]]
"""Number of cells, of those that a verdict rests on, the result of each pair, and tests of all systems at once."""


def _paired(sample: _Sample, design: Design, pairs: Pairs, test: str, query: SessionComparisonQuery) -> _Outcome:
    """Return the paired test on cells, which are pairs of topic and searcher, or topics."""
    paired = (paired_values if design == "paired" else topic_values)(sample.values, sample.factors)
    values, cells = paired.values, paired.values.shape[1]
    if cells < 2:
        message = f"a paired comparison needs at least 2 cells in which every system has a value; found {cells}"
        raise StatisticsError(message, code="too_few_topics")
    seconds = seconds_of_test(test, pairs.runs, cells, pairs.number, query.options.resamples)
    begin(seconds, "this comparison", "use fewer resamples or systems", "resamples")
    family = compare_family(values, pairs, test, query.rule, query.options)
    cautions = (*of_sessions(family.result.cautions, design), *dependent_cells(paired))
    found = {name: OMNIBUS[name](values) for name in ("anova", "friedman")} if pairs.runs > 2 else {}
    omnibus = {name: replace(one, cautions=of_sessions(one.cautions, design)) for name, one in found.items()}
    return cells, cells, replace(family.result, cautions=cautions), omnibus


def _in_square(sample: _Sample, pairs: Pairs) -> _Outcome:
    """Return the analysis of all systems, and of each pair the same analysis of its own sessions."""
    taking = np.flatnonzero(~np.isnan(sample.values))
    values, factors = sample.values[taking], sample.factors.take(taking)
    found = samples(values, factors)
    if min(map(len, found)) < 1:
        raise StatisticsError("a system has no session with a value", code="too_few_topics")
    # The equations of every topic, searcher and system are solved four times for each analysis.
    unknowns = sum(len(names) for names in (factors.topics, factors.searchers, factors.systems))
    analyses = 1 if pairs.runs == 2 else 1 + pairs.number
    begin(_CUBED * unknowns**3 * analyses, "this analysis", "name fewer systems", "systems")
    whole = latin_square.analyse(values, factors.system, factors.topic, factors.searcher)
    first, second = pairs.indices()
    each = [whole]
    if pairs.runs > 2:
        each = []
        for i, j in zip(first.tolist(), second.tolist(), strict=True):
            own = np.flatnonzero((factors.system == i) | (factors.system == j))
            each.append(
                latin_square.analyse(values[own], factors.system[own], factors.topic[own], factors.searcher[own])
            )
    means = np.array([one.mean() for one in found])
    unknown, exact = np.full(len(first), np.nan), np.zeros(len(first), np.bool_)
    statistic = np.array([np.nan if one.statistic is None else one.statistic for one in each])
    p_value = np.array([one.p_value for one in each])
    fewest = min(each, key=lambda one: one.freedom[1])
    cautions = (*fewest.cautions, *untested(p_value, "the factors leave no residual"))
    result = PairedResult(means[first] - means[second], unknown, unknown, statistic, p_value, exact, cautions)
    return len(values), len(values), result, {"latin_square": whole}


def _unpaired(sample: _Sample, pairs: Pairs, options: Options) -> _Outcome:
    found = samples(sample.values, sample.factors)
    result = welch_t.compare_samples(found, *pairs.indices(), options)
    result = replace(result, cautions=of_sessions(result.cautions, "unpaired"))
    return sum(map(len, found)), min(map(len, found)), result, {}
