"""The runs of the example's lab, and the entries of the teams of its campaigns, by their parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

_LONG = "title+description"
_BM25 = {"k1": 1.2, "b": 0.75}
_RM3 = {"documents": 5, "terms": 15, "weight": 0.6}


@dataclass(frozen=True)
class LabRun:
    """A run of the lab, submitted some days ago, with parameters, latency and perhaps a note.

    `parents` are tags of the runs that it was made from. A `replicate` is a seed of the system of this
    name, whose row has the note. The latency of a query, in milliseconds, is
    made up in plausible proportions: the chart of effectiveness against cost needs one.
    """

    tag: str
    days: float
    latency: float
    description: str
    parameters: dict[str, Any]
    note: str = ""
    label: str = ""
    parents: tuple[str, ...] = field(default=())
    replicate: str = ""


def _of(model: str, *, stemmer: bool = True, query: str = "title", **more: Any) -> dict[str, Any]:
    return {"model": model, "stemmer": stemmer, "query": query, "title_weight": 1, **more}


_FUSION: dict[str, Any] = {
    "query": _LONG,
    "title_weight": 3,
    "bm25": _BM25,
    "lsa": {"dimensions": 100},
}
_RERANKER: dict[str, Any] = {**_FUSION, "reranker": {"depth": 20, "penalty": 30, "folds": 10}}

LAB = [
    LabRun("overlap", 71, 0.05, "Number of matched terms", _of("overlap", stemmer=False)),
    LabRun("tfidf", 70, 0.32, "Cosine of TF-IDF vectors", _of("TF-IDF", stemmer=False)),
    LabRun("bm25", 66.2, 0.12, "BM25 with the usual parameters, no stemmer",
           _of("BM25", stemmer=False, bm25=_BM25), label="baseline",
           note="Our baseline from now on: what everybody can run without tuning."),
    LabRun("bm25-stem", 63, 0.12, "The same with a stemmer", _of("BM25", bm25=_BM25),
           note="The stemmer brings more than any other single change. On topic 3 the warning of tsunamis "
           "moves from rank 5 to rank 1."),
    LabRun("ql-dirichlet", 57.3, 0.28, "Query likelihood", _of("QL Dirichlet", mu=50)),
    LabRun("ql-jm", 57.1, 0.27, "Query likelihood, other smoothing",
           _of("QL Jelinek-Mercer", smoothing=0.5)),
    LabRun("bm25-k09-b04", 51, 0.12, "Parameters tuned on news",
           _of("BM25", bm25={"k1": 0.9, "b": 0.4})),
    LabRun("bm25-k20", 50.8, 0.12, "Slower saturation", _of("BM25", bm25={"k1": 2.0, "b": 0.75}),
           note="All settings of k1 and b are within two points, which 30 topics cannot tell apart. "
           "No more tuning of these two."),
    LabRun("bm25-title3", 44, 0.13, "A term of the title counts three times",
           {**_of("BM25", bm25=_BM25), "title_weight": 3}),
    LabRun("rm3", 38.4, 0.61, "Query expansion by pseudo-relevance feedback",
           {**_of("BM25 + RM3", bm25=_BM25, rm3=_RM3), "title_weight": 3}, parents=("bm25-title3",)),
    LabRun("lsa-50", 31, 0.04, "Latent dimensions instead of terms",
           {**_of("LSA", lsa={"dimensions": 50}, seed=1), "title_weight": 3}),
    LabRun("lsa-100-seed1", 30.2, 0.07, "Twice as many dimensions",
           {**_of("LSA", lsa={"dimensions": 100}, seed=1), "title_weight": 3}, replicate="lsa-100"),
    LabRun("lsa-100-seed2", 30.1, 0.07, "Another start of the decomposition",
           {**_of("LSA", lsa={"dimensions": 100}, seed=2), "title_weight": 3}, replicate="lsa-100"),
    LabRun("lsa-100-seed3", 30, 0.07, "A third start",
           {**_of("LSA", lsa={"dimensions": 100}, seed=3), "title_weight": 3}, replicate="lsa-100",
           note="Three seeds differ by less than one point: smaller differences mean nothing."),
    LabRun("bm25-long", 20, 0.13, "The description of the topic is part of the query",
           {**_of("BM25", query=_LONG, bm25=_BM25), "title_weight": 3},
           note="Brings nearly as much as the stemmer. On topic 26, *knots*, the title alone matches four "
           "texts; the description adds the nautical mile."),
    LabRun("fusion", 12, 0.21, "BM25 and LSA by reciprocal ranks", _of("BM25 + LSA", **_FUSION, seed=1),
           label="main", parents=("bm25-long", "lsa-100-seed1")),
    LabRun("reranker-seed1", 4, 0.35, "A linear model reorders the first 20 of the fusion; it never saw "
           "the topic", _of("reranker", **_RERANKER, seed=1), parents=("fusion",),
           replicate="reranker"),
    LabRun("reranker-seed2", 0.2, 0.35, "The same with other folds",
           _of("reranker", **_RERANKER, seed=2), parents=("fusion",), replicate="reranker",
           note="One seed is ahead of the fusion, the other one behind: no evidence that reranking helps. "
           "We stay with the fusion until there are more topics."),
]  # fmt: skip

# What the rows of replicates are.
REPLICATED = {
    "lsa-100": "Twice as many dimensions, from three starts of the decomposition",
    "reranker": "A linear model reorders the first 20 of the fusion, with two divisions into folds",
}

# Teams of the campaigns: short name, name, who enters, affiliation.
TEAMS = [
    ("dogger", "Dogger", "mira", "University of the North Sea"),
    ("fastnet", "Fastnet", "brian", "Fastnet Institute"),
    ("forties", "Forties", "chen", "Forties Search"),
    ("humber", "Humber", "dora", "Humber College"),
    ("lundy", "Lundy", "emil", "Lundy Labs"),
    ("viking", "Viking", "freya", "Viking Research"),
    ("wight", "Wight", "george", "University of Wight"),
]

# Entries of the first round: team, tag, parameters.
ENTRIES: list[tuple[str, str, dict[str, Any]]] = [
    ("dogger", "dogger-bm25", _of("BM25", query=_LONG, bm25={"k1": 0.9, "b": 0.4})),
    ("dogger", "dogger-rm3", {**_of("BM25 + RM3", bm25=_BM25, rm3=_RM3), "title_weight": 2}),
    ("fastnet", "fastnet-lsa", _of("LSA", query=_LONG, lsa={"dimensions": 120}, seed=7)),
    ("fastnet", "fastnet-both", _of("BM25 + LSA", query=_LONG, bm25=_BM25, seed=7,
                                    lsa={"dimensions": 120})),
    ("forties", "forties-ql", _of("QL Dirichlet", query=_LONG, mu=100)),
    ("forties", "forties-ql-title", _of("QL Dirichlet", mu=100)),
    ("humber", "humber-tfidf", _of("TF-IDF", stemmer=False)),
    ("humber", "humber-tfidf-stem", _of("TF-IDF")),
    ("lundy", "lundy-expanded", _of("BM25 + RM3", query=_LONG, bm25=_BM25,
                                    rm3={"documents": 10, "terms": 30, "weight": 0.5})),
    ("viking", "viking-words", _of("overlap", query=_LONG)),
    ("viking", "viking-jm", _of("QL Jelinek-Mercer", query=_LONG, smoothing=0.3)),
    ("wight", "wight-dense", _of("LSA", lsa={"dimensions": 60}, seed=3)),
]  # fmt: skip
BASELINE_ENTRY = ("", "organisers-bm25", _of("BM25", stemmer=False, bm25=_BM25))

# Of the second round, which is open.
OPEN_ENTRIES: list[tuple[str, str, dict[str, Any]]] = [
    ("dogger", "dogger-long", _of("BM25", query=_LONG, bm25=_BM25)),
    ("fastnet", "fastnet-fused", _of("BM25 + LSA", query=_LONG, bm25=_BM25, seed=7,
                                     lsa={"dimensions": 100})),
    ("lundy", "lundy-rm3", _of("BM25 + RM3", bm25=_BM25, rm3=_RM3)),
]  # fmt: skip
