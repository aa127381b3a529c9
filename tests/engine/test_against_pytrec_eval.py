"""Every measure that pytrec_eval has, per topic, on random collections full of ties and holes."""

from __future__ import annotations

import numpy as np
import pytest
import pytrec_eval

from metrics.engine.measures.grammar import parse_measure
from tests.engine.build import judged_run

CUTOFFS = (1, 3, 5, 10, 20, 100)
NAMES = [
    "map", "recip_rank", "Rprec", "ndcg", "num_ret", "num_rel", "num_rel_ret",
    *(f"{name}_{k}" for name in ("P", "recall", "ndcg_cut", "map_cut", "success") for k in CUTOFFS),
]  # fmt: skip


def random_collection(seed: int) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Ties, unjudged documents, negative levels, topics without relevant documents, unanswered and unknown topics."""
    rng = np.random.default_rng(seed)
    qrels, run = {}, {}
    for topic in range(12):
        documents = [f"d{i}" for i in range(60)]
        levels = (
            rng.choice([-2, -1, 0, 0, 0, 1, 2, 3], 30) if topic % 4 else rng.choice([-1, 0], 30)
        )
        qrels[f"t{topic}"] = {
            str(doc): int(level) for doc, level in zip(documents[::2], levels, strict=True)
        }
        retrieved = rng.choice(documents, rng.integers(1, 60), replace=False)
        scores = (
            rng.integers(0, 8, len(retrieved)) / 4 if topic % 3 else rng.normal(size=len(retrieved))
        )
        run[f"t{topic}"] = {
            str(doc): float(score) for doc, score in zip(retrieved, scores, strict=True)
        }
    del run["t5"]
    run["unjudged topic"[:8]] = {"d1": 1.0}
    return qrels, run


@pytest.mark.parametrize("seed", range(25))
def test_every_topic_agrees_to_nine_decimals(seed: int) -> None:
    qrels, run = random_collection(seed)
    peer = pytrec_eval.RelevanceEvaluator(qrels, set(NAMES)).evaluate(run)
    ours = judged_run(qrels, run, "float32")
    for name in NAMES:
        values = parse_measure(name).compute(ours)
        expected = [peer.get(topic, {}).get(name, 0.0) for topic in qrels]
        if name == "num_rel":
            expected[5] = values[5]
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("seed", range(5))
def test_relevance_thresholds_agree(seed: int) -> None:
    qrels, run = random_collection(seed)
    spelled = {
        "map": "AP(rel=2)",
        "recip_rank": "RR(rel=2)",
        "Rprec": "Rprec(rel=2)",
        "P_10": "P(rel=2)@10",
        "recall_10": "R(rel=2)@10",
        "success_5": "Success(rel=2)@5",
        "num_rel_ret": "NumRelRet(rel=2)",
    }
    peer = pytrec_eval.RelevanceEvaluator(qrels, set(spelled), relevance_level=2).evaluate(run)
    ours = judged_run(qrels, run, "float32")
    for name, measure in spelled.items():
        values = parse_measure(measure).compute(ours)
        expected = [peer.get(topic, {}).get(name, 0.0) for topic in qrels]
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("seed", range(5))
def test_condensed_lists_agree(seed: int) -> None:
    qrels, run = random_collection(seed)
    peer_names = ["map", "ndcg_cut_10", "P_10", "recip_rank"]
    peer = pytrec_eval.RelevanceEvaluator(
        qrels, set(peer_names), judged_docs_only_flag=True
    ).evaluate(run)
    ours = judged_run(qrels, run, "float32")
    spelled = (
        "AP(judged_only=True)",
        "nDCG(judged_only=True)@10",
        "P(judged_only=True)@10",
        "RR(judged_only=True)",
    )
    for name, measure in zip(peer_names, spelled, strict=True):
        expected = [peer.get(topic, {}).get(name, 0.0) for topic in qrels]
        np.testing.assert_allclose(
            parse_measure(measure).compute(ours), expected, rtol=0, atol=1e-9, err_msg=name
        )


def test_float32_ties_what_doubles_tell_apart() -> None:
    qrels = {"1": {"a": 1, "b": 0}}
    run = {"1": {"a": 16777217.0, "b": 16777216.0}}
    (as_double,) = parse_measure("RR").compute(judged_run(qrels, run))
    (as_float,) = parse_measure("RR").compute(judged_run(qrels, run, "float32"))
    assert (as_double, as_float) == (1.0, 0.5)
