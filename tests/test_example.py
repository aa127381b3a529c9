"""The example collection: its files fit each other, and its systems do what their names say."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from evalhub.example import systems
from evalhub.example.collection import (
    OPEN_TOPICS,
    RELEVANT,
    Corpus,
    pooled_qrels,
    read_corpus,
    read_file,
)
from evalhub.example.known_items import (
    SUITE_SLUG,
    TASKS,
    KnownItemTask,
    load_suite,
    simulate_topics,
)
from evalhub.example.loading import LAB_SLUG, Loader
from evalhub.example.runs import ENTRIES, LAB, OPEN_ENTRIES, TEAMS
from evalhub.suites.models import SuiteVersion
from runs.models import Collection, User


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return read_corpus()


def test_judgements_name_documents_and_topics_once(corpus: Corpus) -> None:
    lines = [line.split() for line in read_file(RELEVANT).splitlines()]
    pairs = Counter((topic, doc_id) for topic, _, doc_id, _ in lines)
    assert max(pairs.values()) == 1
    assert {doc_id for _, doc_id in pairs} <= set(corpus.doc_ids)
    assert {topic for topic, _ in pairs} == {topic["_id"] for topic in corpus.topics}
    assert {level for *_, level in lines} == {"1", "2", "3"}
    assert len(set(corpus.doc_ids)) == len(corpus.doc_ids)


def test_the_open_round_has_other_topics_and_no_judgements(corpus: Corpus) -> None:
    second = read_corpus(OPEN_TOPICS)
    assert not {topic["_id"] for topic in second.topics} & {topic["_id"] for topic in corpus.topics}
    assert second.levels.sum() == 0


def test_the_story_that_the_notes_of_the_lab_tell_is_true(corpus: Corpus) -> None:
    qrels = pooled_qrels(corpus)
    assert qrels == pooled_qrels(read_corpus())

    means = {}
    for run in LAB:
        content = corpus.run(run.tag, run.parameters)
        judgements = _levels(qrels)
        means[run.tag] = np.mean(
            [
                _ndcg(judgements.get(topic["_id"], {}), _ranking(content, topic["_id"]))
                for topic in corpus.topics
            ]
        )

    assert means["bm25-stem"] > means["bm25"] + 0.05
    assert means["bm25-long"] > means["bm25-title3"] + 0.05
    tuned = [means[tag] for tag in ("bm25-stem", "bm25-k09-b04", "bm25-k20")]
    assert max(tuned) - min(tuned) < 0.02
    seeds = [means[f"lsa-100-seed{seed}"] for seed in (1, 2, 3)]
    assert 0 < max(seeds) - min(seeds) < 0.01
    assert means["reranker-seed2"] < means["fusion"] < means["reranker-seed1"]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.slug)
def test_words_lead_to_their_text_better_than_latent_dimensions(
    corpus: Corpus, task: KnownItemTask
) -> None:
    known = simulate_topics(corpus, rare=task.rare)
    assert (known.levels.sum(axis=1) == 1).all()
    assert known.topics == simulate_topics(corpus, rare=task.rare).topics

    systems = {run.tag: run.parameters for run in LAB}
    means = []
    for tag in ("bm25", "lsa-100-seed1"):
        content = known.run(tag, systems[tag])
        rankings = [_ranking(content, topic["_id"]) for topic in known.topics]
        texts = [known.doc_ids[item] for item in known.levels.argmax(axis=1)]
        means.append(
            np.mean(
                [
                    1 / (1 + ranking.index(text)) if text in ranking else 0
                    for text, ranking in zip(texts, rankings, strict=True)
                ]
            )
        )
    assert 0.95 > means[0] > means[1] > 0.7


@pytest.mark.django_db
def test_the_suite_is_loaded_once(corpus: Corpus) -> None:
    user = User.objects.create_user("mira")
    loader = Loader(team=user.personal_team, user=user)
    lab = loader.create(LAB_SLUG, name="The sea", level_labels={}, measures=["nDCG@10"])
    loader.add_qrels(lab, "1 0 tides 1\n")
    for _ in range(2):
        load_suite(loader, corpus)

    version = SuiteVersion.objects.get(suite__slug=SUITE_SLUG)
    measures = version.members.values_list("collection__slug", "measure")
    assert list(measures) == [("sea", "nDCG@10"), *((task.slug, "RR") for task in TASKS)]
    for task in TASKS:
        collection = Collection.objects.get(slug=task.slug)
        assert (collection.topics.count(), collection.runs.count()) == (30, 7)
        assert collection.active_qrels.topics == 30


def test_entries_are_of_the_teams_and_have_short_tags() -> None:
    slugs = {slug for slug, *_ in TEAMS}
    assert {team for team, _, _ in [*ENTRIES, *OPEN_ENTRIES]} <= slugs
    assert all(
        tag.startswith(team) and len(tag) <= 20 for team, tag, _ in [*ENTRIES, *OPEN_ENTRIES]
    )


def test_bm25_and_fusion_by_hand() -> None:
    index = systems.make_index([("", "tide tide sea"), ("", "sea ice")], stemmed=False)
    queries = np.array([index.query("tide")])
    # One of two documents has the term: idf = ln(1 + 1.5 / 1.5). It has 3 of on average 2.5 terms.
    norm = 1.2 * (1 - 0.75 + 0.75 * 3 / 2.5)
    expected = np.log(2) * 2 * 2.2 / (2 + norm)
    assert systems.bm25(queries, index.counts(), k1=1.2, b=0.75) == pytest.approx(
        np.array([[expected, 0]])
    )
    fused = systems.fuse([np.array([[2.0, 1.0]]), np.array([[1.0, 2.0]])])
    assert fused == pytest.approx(np.full((1, 2), 1 / 61 + 1 / 62))


def _levels(qrels: str) -> dict[str, dict[str, int]]:
    levels: dict[str, dict[str, int]] = {}
    for line in qrels.splitlines():
        topic, _, doc_id, level = line.split()
        levels.setdefault(topic, {})[doc_id] = int(level)
    return levels


def _ranking(run: str, topic: str) -> list[str]:
    return [line.split()[2] for line in run.splitlines() if line.split()[0] == topic]


def _ndcg(levels: dict[str, int], ranking: list[str]) -> float:
    discounts = 1 / np.log2(np.arange(10) + 2)
    gains = np.array([levels.get(doc_id, 0) for doc_id in ranking[:10]] + [0] * 10)[:10]
    ideal = np.array([*sorted(levels.values(), reverse=True), *[0] * 10])[:10]
    return float(gains @ discounts / (ideal @ discounts))
