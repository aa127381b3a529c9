"""Merge the judgements of a version and of pools, with how their documents were drawn."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from evalhub.pools.models import Pool
from evalhub.pools.services.pool_file import read_topics, read_undrawn
from evalhub.pools.services.pooling import EXTRA
from evalhub.pools.services.recipes import Method
from metrics.engine.judgement.sampling import PROBABILITIES, STRATA, Design
from runs.attention import keep_going
from runs.errors import Conflict
from runs.models import Qrels
from runs.services.collections.qrels import drawn_by_topic, levels_by_topic

# The stratum of documents that were not drawn but chosen, in a version with strata.
_CHOSEN = "chosen"
# The level of a document in a stratum that is not judged.
_UNJUDGED = -1


@dataclass(frozen=True)
class _TopicSample:
    """The sample of a topic of a pool.

    `drawn` are the documents of the pool. `strata` has the stratum of each document that could be
    drawn, `rates` stratum and probability of the drawn ones where the file of the pool does not
    list the others.
    """

    drawn: set[str] = field(default_factory=set)
    strata: dict[str, str] = field(default_factory=dict)
    rates: dict[str, tuple[int, float]] = field(default_factory=dict)

    def undrawn(self, judged: set[str]) -> set[str]:
        """Return judged documents that were not drawn, or may have been left undrawn."""
        return judged - self.drawn if self.rates else (judged & self.strata.keys()) - self.drawn

    def without(self, documents: set[str]) -> _TopicSample:
        return _TopicSample(
            self.drawn,
            {doc_id: row for doc_id, row in self.strata.items() if doc_id not in documents},
            {doc_id: row for doc_id, row in self.rates.items() if doc_id not in documents},
        )


class MergedJudgements:
    """Judgements of a version and of pools, added from the oldest to the newest.

    A document that was judged again has its newest level. Samples are merged as long as they are
    of different documents: a document of a stratum that was not drawn is estimated by the drawn
    ones, and would count twice if it were judged later as well.
    """

    def __init__(self) -> None:
        self._levels: dict[str, dict[str, int]] = {}
        # By topic and document; a stratum has the documents that were not drawn, too.
        self._strata: dict[str, dict[str, str]] = defaultdict(dict)
        self._probabilities: dict[str, dict[str, float]] = defaultdict(dict)
        # Topics of which documents were judged that an earlier sample stands for.
        self._judged_twice: set[str] = set()

    @property
    def design(self) -> Design | None:
        """Return how the documents were drawn, or None if each of them is judged."""
        if any(p < 1 for drawn in self._probabilities.values() for p in drawn.values()):
            return PROBABILITIES
        if any(self._unjudged(topic_id) for topic_id in self._strata):
            return STRATA
        return None

    def check_samples(self) -> None:
        """Raise Conflict if documents were judged that an earlier sample stands for."""
        if self._judged_twice:
            first, *others = sorted(self._judged_twice)
            more = f" and {len(others):,} more" if others else ""
            message = (
                f"documents of topic {first[:40]}{more} were judged that were not drawn, and that "
                "an earlier sample of the topic stands for: estimates would count them twice. "
                "Write ignore_sampling=true, or make the version of the earlier pool alone"
            )
            raise Conflict(message, code="sampled_judgements", pointer="/ignore_sampling")

    def add_version(self, qrels: Qrels) -> None:
        """Add the judgements of a version, with its sampling even if it is ignored."""
        drawn = drawn_by_topic(qrels)
        for topic_id, levels in levels_by_topic(qrels).items():
            if qrels.sampling == STRATA:
                levels = {doc_id: level for doc_id, level in levels.items() if level >= 0}
                groups = sorted({row.group for row in drawn[topic_id].values()})
                names = {
                    group: f"version{qrels.version}-{number}"
                    for number, group in enumerate(groups, 1)
                }
                self._strata[topic_id] = {
                    doc_id: names[row.group] for doc_id, row in drawn[topic_id].items()
                }
            elif qrels.sampling == PROBABILITIES:
                self._probabilities[topic_id] = {
                    doc_id: row.probability for doc_id, row in drawn[topic_id].items()
                }
            self._levels[topic_id] = levels

    def add_pool(self, pool: Pool, levels: dict[str, dict[str, int]]) -> None:
        """Add the levels of a pool, by topic and document.

        The judged documents of a stratum are a random part of it, since documents come to assessors
        in a drawn order. Topics without a judged document are left out.
        """
        samples = _samples(pool) if pool.recipe["method"] == Method.SAMPLE else {}
        for topic_id, own_levels in levels.items():
            keep_going()
            judged = {doc_id for doc_id, level in own_levels.items() if level >= 0}
            known = self._levels.setdefault(topic_id, {})
            sample = samples.get(topic_id, _TopicSample())

            # What was judged elsewhere is not estimated by the sample.
            own = self._forget(topic_id, sample)
            sample = sample.without({doc for doc, level in known.items() if level >= 0} - own)

            unjudged = self._unjudged(topic_id)
            hides_undrawn = any(p < 1 for p in self._probabilities[topic_id].values())
            if (
                not unjudged.isdisjoint(judged | sample.strata.keys())
                or (hides_undrawn and not judged <= known.keys())
                or sample.undrawn(judged)
            ):
                self._judged_twice.add(topic_id)

            known |= own_levels
            if judged:
                self._strata[topic_id] |= sample.strata
                self._probabilities[topic_id] |= _probabilities(sample, judged)

    def lines(self, design: Design | None) -> Iterator[str]:
        """Yield the lines of a qrels file."""
        for topic_id, levels in self._levels.items():
            keep_going()
            strata = self._strata[topic_id]
            if design == STRATA:
                for doc_id in sorted(levels.keys() | strata.keys()):
                    level, stratum = levels.get(doc_id, _UNJUDGED), strata.get(doc_id, _CHOSEN)
                    if level >= 0 or stratum != _CHOSEN:
                        yield f"{topic_id} {stratum} {doc_id} {level}\n"
                continue

            fifth = dict.fromkeys(levels, "")
            if design == PROBABILITIES:
                shares = self._judged_shares(topic_id) | self._probabilities[topic_id]
                fifth = {
                    doc_id: f" {shares.get(doc_id, 1.0) if level >= 0 else 1.0!r}"
                    for doc_id, level in levels.items()
                }
            for doc_id in sorted(levels):
                yield f"{topic_id} 0 {doc_id} {levels[doc_id]}{fifth[doc_id]}\n"

    def _forget(self, topic_id: str, sample: _TopicSample) -> set[str]:
        """Forget what an earlier version has of the same sample, and return its documents."""
        strata, probabilities = self._strata[topic_id], self._probabilities[topic_id]
        of_others = {stratum for doc_id, stratum in strata.items() if doc_id not in sample.strata}
        own = {doc_id for doc_id, stratum in strata.items() if stratum not in of_others}
        for doc_id in own:
            del strata[doc_id]

        drawn = probabilities.keys() & sample.drawn
        for doc_id in drawn:
            del probabilities[doc_id]
        return own | drawn

    def _unjudged(self, topic_id: str) -> set[str]:
        """Return the documents of strata that are not judged."""
        levels = self._levels.get(topic_id, {})
        return {doc_id for doc_id in self._strata[topic_id] if levels.get(doc_id, _UNJUDGED) < 0}

    def _judged_shares(self, topic_id: str) -> dict[str, float]:
        strata = self._strata[topic_id]
        unjudged = self._unjudged(topic_id)
        size = Counter(strata.values())
        judged = Counter(stratum for doc_id, stratum in strata.items() if doc_id not in unjudged)
        return {
            doc_id: judged[stratum] / size[stratum]
            for doc_id, stratum in strata.items()
            if doc_id not in unjudged
        }


def _samples(pool: Pool) -> dict[str, _TopicSample]:
    """Return the sample of each topic of a pool; documents that organisers added are in none."""
    pooled, undrawn = read_topics(pool), read_undrawn(pool)
    is_listed = undrawn or all(row.probability == 1 for _, rows in pooled for row in rows)

    samples = {}
    for topic_id, rows in pooled:
        drawn, chances = {row.doc_id for row in rows}, [row for row in rows if row.stratum != EXTRA]
        if is_listed:
            numbers = {row.doc_id: row.stratum for row in chances} | undrawn.get(topic_id, {})
            strata = {doc_id: f"pool{pool.number}-{number}" for doc_id, number in numbers.items()}
            samples[topic_id] = _TopicSample(drawn, strata)
        else:
            rates = {row.doc_id: (row.stratum, row.probability) for row in chances}
            samples[topic_id] = _TopicSample(drawn, rates=rates)
    return samples


def _probabilities(sample: _TopicSample, judged: set[str]) -> dict[str, float]:
    """Return the probability that each drawn document was drawn and is judged."""
    drawn = Counter(stratum for stratum, _ in sample.rates.values())
    judged_of = Counter(stratum for doc, (stratum, _) in sample.rates.items() if doc in judged)
    return {
        doc_id: probability * judged_of[stratum] / drawn[stratum]
        for doc_id, (stratum, probability) in sample.rates.items()
    }
