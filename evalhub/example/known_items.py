"""Two collections with simulated topics on the example's documents, and a suite of all three."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalhub.example.collection import DOCUMENTS, Corpus, read_file
from evalhub.example.loading import LAB_SLUG, Loader
from evalhub.example.runs import LAB
from evalhub.suites.models import Suite
from evalhub.suites.services.suites import MemberRequest, create_suite, members_of
from metrics.engine.arrays import Floats

SUITE_SLUG = "sea-tasks"
_MEASURES = ["RR", "R@1", "R@5"]
_LABELS = {"1": "the text that is looked for"}
_TOPICS, _TERMS = 30, 2
# How often a term is one of the whole collection, which the searcher remembers wrongly.
_NOISE = 0.2
# The lab's systems that need no description, judgements or second seed.
_SYSTEMS = ("tfidf", "bm25", "bm25-stem", "ql-dirichlet", "bm25-title3", "lsa-100-seed1", "fusion")


@dataclass(frozen=True)
class KnownItemTask:
    """A collection whose topics look for one text, by some of its words, common or rare ones."""

    slug: str
    name: str
    rare: bool


TASKS = (
    KnownItemTask("sea-common-words", "The sea, one text by common words", rare=False),
    KnownItemTask("sea-rare-words", "The sea, one text by rare words", rare=True),
)


def simulate_topics(corpus: Corpus, *, rare: bool) -> Corpus:
    """Return the documents with topics that look for one of them each.

    The terms of a topic are drawn from the document by their counts, or, rare ones, by one over
    their share of all terms: the popular and the discriminative selection of Azzopardi, de Rijke
    and Balog ("Building simulated queries for known-item topics", SIGIR 2007).
    """
    rng = np.random.default_rng([2007, rare])
    index = corpus.indexes[False]
    counts, words = index.counts(), np.array(list(index.numbers))
    shares = counts.sum(axis=0) / counts.sum()
    items = np.sort(rng.choice(len(counts), size=_TOPICS, replace=False))

    topics = []
    for number, item in enumerate(items, 1):
        weights = (counts[item] > 0) / shares if rare else counts[item]
        chances = (1 - _NOISE) * weights / weights.sum() + _NOISE * shares
        drawn = rng.choice(words, size=_TERMS, replace=False, p=chances / chances.sum())
        topics.append({"_id": f"{number}", "title": " ".join(drawn), "description": ""})

    levels: Floats = np.zeros((_TOPICS, len(counts)))
    levels[np.arange(_TOPICS), items] = 1
    return Corpus(corpus.doc_ids, corpus.texts, topics, levels)


def load_suite(loader: Loader, corpus: Corpus) -> None:
    """Load the two collections with runs of the lab's systems, and the suite of all three."""
    for task in TASKS:
        _load_task(loader, simulate_topics(corpus, rare=task.rare), task)

    if not Suite.objects.filter(slug=SUITE_SLUG).exists():
        requests = [MemberRequest(LAB_SLUG, group="by subject")]
        requests += [MemberRequest(task.slug, group="one text") for task in TASKS]
        create_suite(
            slug=SUITE_SLUG,
            name="The sea, three tasks",
            description="Texts on a subject, and one text of which two words are remembered.",
            team=loader.team,
            members=members_of(requests, loader.user),
            user=loader.user,
            origin=loader.origin,
        )


def _load_task(loader: Loader, corpus: Corpus, task: KnownItemTask) -> None:
    collection = loader.create(
        task.slug,
        name=task.name,
        description=f"{_TOPICS} simulated topics of {_TERMS} words each, drawn from the text "
        "that is looked for.",
        simulated=True,
        level_labels=_LABELS,
        measures=_MEASURES,
        documents=len(corpus.doc_ids),
    )
    loader.add_topics(
        collection, "".join(f"{topic['_id']}\t{topic['title']}\n" for topic in corpus.topics)
    )
    loader.add_documents(collection, read_file(DOCUMENTS))
    places = np.argwhere(corpus.levels > 0)
    loader.add_qrels(
        collection,
        "".join(
            f"{corpus.topics[row]['_id']} 0 {corpus.doc_ids[item]} 1\n" for row, item in places
        ),
    )

    for run in LAB:
        if run.tag in _SYSTEMS:
            content = corpus.run(run.tag, run.parameters)
            # Suites know systems by their names: one seed stands for the row of the lab.
            tag = run.replicate or run.tag
            loader.add_run(collection, tag, content, days=run.days, metadata=run.parameters)
