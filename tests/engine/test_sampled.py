"""Estimates from sampled judgements: against NIST's sample_eval, naive loops, and many samples of one collection."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.errors import MeasureError
from metrics.engine.judgement.judged import JudgedRun, RecallBase
from metrics.engine.judgement.judging import judge
from metrics.engine.judgement.sampling import Design, Sampling
from metrics.engine.measures import ESTIMATES, MEASURES
from metrics.engine.measures.grammar import parse_measure
from runs.formats.compression import in_memory
from runs.formats.limits import DEFAULT_LIMITS
from runs.formats.sampled_qrels import read_sampled_qrels
from runs.formats.trec_run import check_run, read_run
from tests.engine import naive_sampled as naive
from tests.engine.build import SEED, judged_run, ranked

# Documents as id:stratum:level, and rankings, drawn by chance. The values are those that NIST's
# sample_eval.pl (change log of 10 October 2011) printed for them, with 15 decimals instead of 4.
NIST_POOLS = {
    "1": "d00:1:2 d01:1:1 d02:1:0 d03:1:0 d04:1:0 d05:1:0 d06:2:-1 d07:2:1 d08:2:-1 d09:2:-1 d10:2:2 d11:2:2 "
    "d12:2:0 d13:2:-1 d14:3:1 d15:3:1 d16:3:0 d17:3:1 d18:3:2 d19:3:-1 d20:3:-1 d21:3:-1 d22:3:-1 d23:3:-1",
    "2": "d00:1:2 d01:1:2 d02:1:2 d03:1:2 d04:1:2 d05:1:0 d06:2:-1 d07:2:1 d08:2:0 d09:2:1 d10:2:0 d11:2:1 "
    "d12:2:-1 d13:2:0 d14:3:0 d15:3:-1 d16:3:-1 d17:3:-1 d18:3:-1 d19:3:0 d20:3:-1 d21:3:2 d22:3:0 d23:3:-1",
}
NIST_RANKINGS = {
    "1": "d19 x2 d22 d20 d08 d18 d01 d15 d11 d06 d21 d04 d10 d12 d00 d03",
    "2": "d02 x3 d22 d04 d12 d19 d05 x2 d14 x1 d08 d17 d15 d06 d13 d21",
}
NIST = {
    "xinfAP": [0.450027005816496, 0.171195797102989, 0.310611401459742],
    "infNDCG": [0.594817727651512, 0.397437904698711, 0.496127816175111],
}
OTHER = (
    "AP",
    "nDCG@10",
    "infAP",
    "Bpref",
    "P@5",
    "AvgCut(of='P',cutoffs='5,10')",
    "NumRelRet",
    "RBP",
)


def judged(lines: str, rankings: dict[str, list[str]], design: Design) -> JudgedRun:
    summary = read_sampled_qrels(
        lambda: in_memory(lines.encode(), DEFAULT_LIMITS), design, seed=SEED
    )
    summary.report.check()
    content = "".join(
        f"{topic} Q0 {doc} 0 {-rank} t\n"
        for topic, docs in rankings.items()
        for rank, doc in enumerate(docs)
    ).encode()
    grouped = check_run(lambda: in_memory(content, DEFAULT_LIMITS), seed=SEED).grouped
    blocks = read_run(lambda: in_memory(content, DEFAULT_LIMITS), grouped=grouped, seed=SEED)
    return judge(blocks, summary.judgements)


NIST_LINES = "".join(
    f"{topic} {stratum} {doc} {level}\n"
    for topic, documents in NIST_POOLS.items()
    for doc, stratum, level in (document.split(":") for document in documents.split())
)


@pytest.mark.parametrize(
    "form", ["{topic} {stratum} {doc} {level}\n", "{topic} 0 {doc} {stratum} {level}\n"]
)
def test_values_of_sample_eval(form: str) -> None:
    lines = ""
    for topic, documents in NIST_POOLS.items():
        for document in documents.split():
            doc, stratum, level = document.split(":")
            lines += form.format(topic=topic, doc=doc, stratum=stratum, level=level)
    view = judged(lines, {topic: docs.split() for topic, docs in NIST_RANKINGS.items()}, "strata")
    for name, expected in NIST.items():
        measure = parse_measure(name)
        values = measure.compute(view)
        means = [*values, measure.aggregate(values)[0]]
        assert means == pytest.approx(expected, abs=1e-14), name


@pytest.mark.parametrize("cutoff", ["", "@20000"])
def test_an_ideal_ranking_of_many_documents(cutoff: str) -> None:
    measure = parse_measure(f"infNDCG{cutoff}")
    values = []
    for p in (1e-4, 4e-5, 1e-6):
        # Two documents at level 2 and one at level 1, each of which stands for 1 / p.
        lines = f"1 0 d1 2 {p}\n1 0 d2 2 {p}\n1 0 d3 1 {p}\n"
        (value,) = measure.compute(judged(lines, {"1": ["d3", "d1"]}, "probabilities"))
        values.append((p, value))

    for p, value in values:
        number = round(1 / p)
        ranks = np.arange(1, min(3 * number, 20_000 if cutoff else 3 * number) + 1)
        gains = np.where(ranks <= 2 * number, 2, 1)
        ideal = np.sum(gains / np.log2(ranks + 1))
        assert value == pytest.approx((1 + 2 / np.log2(3)) / p / ideal, rel=1e-12)


def test_a_condensed_list_lacks_what_is_in_no_stratum() -> None:
    rankings = {topic: docs.split() for topic, docs in NIST_RANKINGS.items()}
    listed = {topic: [doc for doc in docs if doc[0] == "d"] for topic, docs in rankings.items()}
    condensed, expected = (judged(NIST_LINES, docs, "strata") for docs in (rankings, listed))
    for name in ("xinfAP", "xinfAP_se", "infNDCG@5", "statAP"):
        measure = parse_measure(name)
        values = measure.compute(condensed.condensed)
        assert values.tolist() == measure.compute(expected).tolist(), name


def a_pool(rng: random.Random) -> tuple[dict[str, tuple[str, int]], list[str]]:
    documents = [f"d{i:02}" for i in range(rng.randrange(8, 60))]
    strata = [str(rng.randrange(3)) for _ in documents]
    rates = {"0": 1.0, "1": 0.6, "2": 0.3}
    pool = {
        doc: (s, rng.choice([0, 0, 1, 2, 3]) if rng.random() < rates[s] else -1)
        for doc, s in zip(documents, strata, strict=True)
    }
    ranking = rng.sample([*documents, "x1", "x2", "x3"], rng.randrange(2, len(documents)))
    return pool, ranking


@pytest.mark.parametrize("k", [7, 1000])
def test_estimates_from_strata_are_those_of_naive_loops(k: int) -> None:
    rng = random.Random(k)
    pools = {f"t{i}": a_pool(rng) for i in range(40)}
    lines = "".join(
        f"{topic} {stratum} {doc} {level}\n"
        for topic, (pool, _) in pools.items()
        for doc, (stratum, level) in pool.items()
    )
    view = judged(lines, {topic: ranking for topic, (_, ranking) in pools.items()}, "strata")
    loops = {
        f"xinfAP@{k}": lambda pool, ranking: naive.xinfap(pool, ranking, k, 1),
        f"xinfAP(rel=2)@{k}": lambda pool, ranking: naive.xinfap(pool, ranking, k, 2),
        f"statAP@{k}": lambda pool, ranking: naive.statap(pool, ranking, k, 1),
        f"statAP(rel=2)@{k}": lambda pool, ranking: naive.statap(pool, ranking, k, 2),
        f"infNDCG@{k}": lambda pool, ranking: naive.infndcg(pool, ranking, k),
    }
    for name, loop in loops.items():
        expected = [loop(pool, ranking) for pool, ranking in pools.values()]
        assert parse_measure(name).compute(view) == pytest.approx(expected, abs=1e-12), name
        assert len(set(expected)) > 20


@pytest.mark.parametrize("k", [7, 1000])
def test_estimates_from_probabilities_are_those_of_naive_loops(k: int) -> None:
    rng = random.Random(k)
    pools = {}
    for i in range(40):
        pool, ranking = a_pool(rng)
        drawn = {doc: (level, rng.choice([1.0, 0.5, 0.125])) for doc, (_, level) in pool.items()}
        pools[f"t{i}"] = drawn, ranking
    lines = "".join(
        f"{topic} 0 {doc} {level} {p}\n"
        for topic, (drawn, _) in pools.items()
        for doc, (level, p) in drawn.items()
    )
    view = judged(lines, {topic: ranking for topic, (_, ranking) in pools.items()}, "probabilities")
    loops = {
        f"statAP@{k}": lambda drawn, r: naive.statap_of_probabilities(drawn, r, k, 1),
        f"statAP(rel=2)@{k}": lambda drawn, r: naive.statap_of_probabilities(drawn, r, k, 2),
        f"infNDCG@{k}": lambda drawn, r: naive.infndcg_of_probabilities(drawn, r, k),
    }
    for name, loop in loops.items():
        expected = [loop(drawn, ranking) for drawn, ranking in pools.values()]
        assert parse_measure(name).compute(view) == pytest.approx(expected, abs=1e-12), name
        assert len(set(expected)) > 20


def test_undeclared_sampling_is_one_stratum() -> None:
    whole = ranked(1, 0, 2, 0, 0, 1, recall_base={"x": 1, "y": 0})
    for estimate, measure in (("xinfAP", "AP"), ("statAP", "AP"), ("infNDCG@4", "nDCG@4")):
        value = parse_measure(measure).compute(whole)
        assert parse_measure(estimate).compute(whole) == pytest.approx(value, abs=1e-4)
        assert parse_measure(estimate).error
        assert parse_measure(f"{estimate.partition('@')[0]}_se").compute(whole).tolist() == [0.0]

    # Level -1 is in the pool and not drawn, as infAP takes it; the smoothing differs.
    part = ranked(1, 0, 2, 0, -1, 1, recall_base={"x": 1, "y": 0})
    infap = parse_measure("infAP").compute(part)
    assert parse_measure("xinfAP").compute(part) == pytest.approx(infap, abs=1e-5)
    assert parse_measure("xinfAP_se").compute(part)[0] > 0.01
    nothing = judged_run({"1": {"a": 0}, "2": {"a": 1}}, {"1": {"a": 1.0}})
    for name in ESTIMATES:
        assert parse_measure(name).compute(nothing).tolist() == [0.0, 0.0]
        assert parse_measure(f"{name}_se").compute(nothing).tolist() == [0.0, 0.0]


def sampled_view(
    levels: Ints, strata: Ints, ranks: Ints, drawn: Flags, probabilities: Floats | None = None
) -> JudgedRun:
    """The view of a run under many samples of the same documents, each as a topic; `drawn` has shape
    (samples, documents), rank 0 is that of documents that are not retrieved."""
    samples, documents = drawn.shape
    topic = np.repeat(np.arange(samples), documents)
    level, rank = np.where(drawn, levels, -1).ravel(), np.tile(ranks, samples)
    if probabilities is None:
        sampling = Sampling.of_strata(topic, np.tile(strata, samples), level)
    else:
        kept = np.flatnonzero(drawn)
        topic, level, rank = topic[kept], level[kept], rank[kept]
        sampling = Sampling.of_probabilities(topic, np.tile(probabilities, samples)[kept], level)

    rows = np.flatnonzero(rank)
    rows = rows[np.lexsort((rank[rows], topic[rows]))]
    return JudgedRun(
        topic=topic[rows],
        rank=rank[rows],
        level=level[rows],
        judgement=rows,
        score=-rank[rows].astype(np.float64),
        tie_first=rank[rows],
        tie_size=np.ones(len(rows), np.int64),
        num_ret=np.full(samples, ranks.max()),
        squared_scores=np.ones(samples),
        recall_base=RecallBase.of(topic, level, samples),
        sampling=sampling.take(rows),
    )


@pytest.mark.parametrize("design", ["strata", "probabilities"])
def test_estimates_are_right_on_average_and_err_as_they_say(design: Design) -> None:
    samples, documents = 2000, 300
    rng = np.random.default_rng(2)
    place = rng.permutation(documents)
    relevant = rng.random(documents) < 0.6 * (1 - place / documents)
    levels = np.where(relevant, rng.choice([1, 2], documents), 0)
    ranks = np.where(rng.random(documents) < 0.8, place + 1, 0)
    strata = np.clip((place + rng.integers(-50, 50, documents)) // 100, 0, 2)
    rates = np.array([1.0, 0.6, 0.4])

    if design == "strata":
        drawn = np.zeros((samples, documents), np.bool_)
        for stratum, rate in enumerate(rates):
            members = np.flatnonzero(strata == stratum)
            order = np.argsort(rng.random((samples, len(members))), axis=1)
            chosen = members[order[:, : round(rate * len(members))]]
            np.put_along_axis(drawn, chosen, True, axis=1)
        view = sampled_view(levels, strata, ranks, drawn)
    else:
        drawn = rng.random((samples, documents)) < rates[strata]
        view = sampled_view(levels, strata, ranks, drawn, rates[strata])

    everything = np.ones((1, documents), np.bool_)
    whole = replace(sampled_view(levels, strata, ranks, everything), sampling=None)
    for name, measure in (("xinfAP", "AP"), ("statAP", "AP"), ("infNDCG", "nDCG")):
        if design not in MEASURES[name].designs:
            continue

        estimate = parse_measure(name)
        assert estimate.error
        values, errors = estimate.compute(view), estimate.error.compute(view)
        spread = values.std(ddof=1)
        true = parse_measure(measure).compute(whole)[0]
        # A ratio of two unbiased estimates has a bias, here of .2 % for infNDCG.
        assert abs(values[:500].mean() - true) < 3 * spread / np.sqrt(500), name

        # The spread of 2,000 values is known to 1.6 %.
        stated = np.sqrt(np.mean(np.square(errors)))
        assert stated == pytest.approx(spread, rel=3 / np.sqrt(2 * samples)), name


def test_the_error_of_the_mean_is_that_of_independent_topics() -> None:
    measure = parse_measure("statAP_se")
    assert measure.aggregate(np.array([0.3, 0.0, 0.4])) == (pytest.approx(0.5 / 3), 3)
    assert measure.aggregate_name == "standard error of the mean"


def test_a_stratum_with_one_judged_document_errs_by_its_square() -> None:
    lines = "1 a d1 1\n1 a d2 0\n1 b d3 1\n1 b d4 -1\n1 b d5 -1\n"
    view = judged(lines, {"1": ["d1", "d3"]}, "strata")
    # R = 1 + 3; statAP = (1 + 3 (1 + 1) / 2) / 4 = 1; of d3 z = 1, u = 0.
    assert parse_measure("statAP").compute(view).tolist() == [1.0]
    assert parse_measure("statAP_se").compute(view).tolist() == [0.0]
    view = judged(lines, {"1": ["d1", "d6", "d3"]}, "strata")
    # statAP = (1 + 3 (2 / 3)) / 4 = .75; u = (2 / 3 - .75) / (4 sqrt(1 - 3 / 4)), N (N - J) u^2 / J.
    assert parse_measure("statAP").compute(view) == pytest.approx([0.75])
    expected = np.sqrt(3 * 2) * (0.75 - 2 / 3) / (4 * 0.5)
    assert parse_measure("statAP_se").compute(view) == pytest.approx([expected])


def test_other_measures_are_refused() -> None:
    view = judged("1 a d1 1\n1 a d2 -1\n", {"1": ["d1", "d2"]}, "strata")
    for name in OTHER:
        with pytest.raises(
            MeasureError, match=r"outside the sample.*use xinfAP, infNDCG"
        ) as caught:
            parse_measure(name).compute(view)
        assert caught.value.code == "sampled_judgements"
        assert len(parse_measure(name).compute(replace(view, sampling=None))) == 1

    for name in ("NumQ", "NumRet", "NumRel", "Judged@10", "unj_5"):
        parse_measure(name).compute(view)
    with pytest.raises(MeasureError, match="sampled ones"):
        view.without(np.array([True, False]), view.recall_base)

    drawn = judged("1 0 d1 1 0.5\n", {"1": ["d1"]}, "probabilities")
    with pytest.raises(MeasureError, match="needs strata, not probabilities: use infNDCG, statAP"):
        parse_measure("xinfAP").compute(drawn)


@pytest.mark.parametrize("design", ["strata", "probabilities"])
def test_a_stored_view_has_its_sampling(design: Design) -> None:
    form = "{} a {} {}\n" if design == "strata" else "{} 0 {} {} 0.25\n"
    lines = "".join(form.format(t, f"d{i}", (i * t) % 3) for t in (1, 2) for i in range(9))
    view = judged(lines, {"1": ["d1", "x", "d4"], "2": ["d2"]}, design)
    stored = JudgedRun.from_bytes(view.to_bytes())
    assert stored.sampling
    assert stored.sampling.design == design
    for name in ("statAP", "infNDCG_se@2"):
        measure = parse_measure(name)
        assert np.array_equal(measure.compute(stored), measure.compute(view))
    assert np.array_equal(
        stored.truncated(1).sampling.rows, view.sampling.take(view.rank == 1).rows
    )  # type: ignore[union-attr]
    # Without a sampling nothing is stored of it.
    assert b"sampling" not in replace(view, sampling=None).to_bytes()
