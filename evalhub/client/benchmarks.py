"""Benchmarks of ir_datasets as suites: BEIR and NanoBEIR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .errors import NotFound, WrongOption
from .hub import Hub
from .ir_datasets import import_collection
from .suites import Suite, SuiteAnswer


class Benchmark(NamedTuple):
    """A benchmark of ir_datasets: what its collections are called, and rows of name, dataset, group
    and weight."""

    title: str
    prefix: str
    datasets: list[tuple[str, str, str, float]]


_BEIR = (
    ("msmarco", "msmarco/dev", "passage retrieval"),
    ("trec-covid", "trec-covid", "bio-medical"),
    ("nfcorpus", "nfcorpus/test", "bio-medical"),
    ("nq", "nq", "question answering"),
    ("hotpotqa", "hotpotqa/test", "question answering"),
    ("fiqa", "fiqa/test", "question answering"),
    ("arguana", "arguana", "argument retrieval"),
    ("webis-touche2020", "webis-touche2020/v2", "argument retrieval"),
    ("quora", "quora/test", "duplicate questions"),
    ("dbpedia-entity", "dbpedia-entity/test", "entity retrieval"),
    ("scidocs", "scidocs", "citation prediction"),
    ("fever", "fever/test", "fact checking"),
    ("climate-fever", "climate-fever", "fact checking"),
    ("scifact", "scifact/test", "fact checking"),
)
# The forums of CQADupStack: one dataset of BEIR, which averages them.
_FORUMS = (
    "android", "english", "gaming", "gis", "mathematica", "physics", "programmers", "stats", "tex",
    "unix", "webmasters", "wordpress",
)  # fmt: skip
BENCHMARKS = {
    "beir": Benchmark(
        "BEIR",
        "beir-",
        [
            *((name, f"beir/{dataset}", group, 1.0) for name, dataset, group in _BEIR),
            *(
                (
                    f"cqadupstack-{forum}",
                    f"beir/cqadupstack/{forum}",
                    "duplicate questions",
                    1 / len(_FORUMS),
                )
                for forum in _FORUMS
            ),
        ],
    ),
    "nanobeir": Benchmark(
        "NanoBEIR",
        "nanobeir-",
        [
            (name, f"nano-beir/{name}", group, 1.0)
            for name, _, group in _BEIR
            if name != "trec-covid"
        ],
    ),
}
MEASURE = "nDCG@10"


def import_benchmark(
    hub: Hub,
    slug: str,
    benchmark: Benchmark,
    *,
    only: Sequence[str] = (),
    prefix: str | None = None,
    **options: Any,
) -> tuple[list[dict[str, Any]], SuiteAnswer]:
    """Import the datasets of a benchmark as collections, and make the suite of these.

    Return a row about each import, and the suite. A second call adds the members that the suite
    lacks, and makes no version where it lacks none. `only` names some of the datasets; `options`
    are the `team` and the `visibility` of new collections. Raise WrongOption for an unknown name,
    BadSource as `import_collection` does.
    """
    datasets = [name for name, *_ in benchmark.datasets]
    for name in only:
        if name not in datasets:
            raise WrongOption(f"{benchmark.title} has no {name!r}; it has {', '.join(datasets)}")

    rows, members = [], []
    for name, dataset, group, weight in benchmark.datasets:
        if only and name not in only:
            continue
        collection = f"{benchmark.prefix if prefix is None else prefix}{name}"
        rows.append(import_collection(hub, collection, dataset, **options))
        fields = {"measure": MEASURE, "weight": weight, "group": group}
        members.append({"collection": collection, **fields})

    suite = hub.suite(slug)
    try:
        existing = suite.info()
    except NotFound:
        fields = {"team": options["team"]} if options.get("team") else {}
        return rows, suite.make(members, name=benchmark.title, **fields)

    return rows, _complete(suite, existing, members)


def _complete(
    suite: Suite, existing: SuiteAnswer, members: Sequence[dict[str, Any]]
) -> SuiteAnswer:
    """Add what a suite lacks of the members, in a new version; its own ones stay as they are."""
    fields = ("collection", "measure", "weight", "group", "qrels")
    current = [{name: row[name] for name in fields} for row in existing.rows()]
    collections = {row["collection"] for row in current}
    lacking = [row for row in members if row["collection"] not in collections]
    if not lacking:
        return existing

    # All members have a group, or none.
    grouped = any(row["group"] for row in current)
    return suite.make([*current, *(row if grouped else {**row, "group": ""} for row in lacking)])
