"""The stored form of a run's curves of cumulated gain: gains by topic and rank, means by rank."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.compiled.packing import pack, unpack
from metrics.engine.curve.curves import CURVES, Curve, ideal_steps, normalised
from metrics.engine.curve.readings import Readings, missed_of, ranks_needed
from metrics.engine.judgement.gains import GainMap
from metrics.engine.judgement.judged import JudgedRun, RankedGains
from metrics.engine.judgement.steps import Matrix, Steps, same_rows
from metrics.engine.measures import MEASURES
from metrics.engine.measures.cumulated_gain import best_gains, discount
from metrics.engine.measures.grammar import Measure, parse_measure

# The curves of a set, in the order of `GainCurves.means`.
FAMILY = ("CG", "DCG", "nCG", "nDCG")


@dataclass(frozen=True)
class GainCurves:
    """CG, DCG, nCG and nDCG of a run at ranks 1..depth; gains, discount and ideal are of `measure`.

    `retrieved` and `best` are the gains of the run and of the ideal rankings at these ranks: each
    value of a topic is a sum of them, or the quotient of two sums. Shapes: `means` (4, depth), the
    means over topics in the order of FAMILY; `needed` (2, depth), of CG and DCG the rank at which
    the run's mean has what the ideal's has at the rank, 0 where it never has. `horizontal_from` is
    the last rank at which an ideal ranking gains, 0 without a gain.
    """

    measure: Measure
    depth: int
    retrieved: RankedGains
    best: RankedGains
    means: Matrix
    needed: Ints
    horizontal_from: int

    @classmethod
    def of(cls, run: JudgedRun, measure: Measure, depth: int) -> GainCurves:
        """Compute the curves of a judged run."""
        judged, parameters = measure.as_called(run)
        gains, ideal = parameters["gains"], parameters["ideal"]
        retrieved = judged.gains(gains)

        # The run may reach at any later rank what the ideal has within the depth.
        length = max(depth, int(retrieved.rank.max(initial=0)))
        discounts = (None, (parameters["dis"], parameters["b"]))
        ranking = best_gains(judged, gains, ideal)

        def of_ideal(name: Hashable, compute: Callable[[], Any]) -> Any:
            # All runs under the same judgements share the ideal of the recall base.
            if ideal != "recall_base":
                return compute()
            return judged.recall_base.once((name, depth, gains), compute)

        top, index = retrieved.within(depth), retrieved.rank - 1
        raw, best, means, needed = [], [], [], []
        for by in discounts:
            worth = 1.0 / discount(np.arange(1, length + 1), *by) if by else np.ones(length)
            raw.append(Steps.cumulated(top, depth, worth[:depth] if by else None))
            best.append(ideal_steps(judged, depth, gains, ideal, by))
            means.append(raw[-1].sum() / judged.n_topics)
            sums: Floats = np.cumsum(np.bincount(index, retrieved.gain * worth[index], length))
            needed.append(ranks_needed(sums, of_ideal(("ideal sum", by), best[-1].sum)))

        # A discount changes values, and not the ranks at which they change.
        rows = same_rows(raw[0], best[0])
        shares = [normalised(*steps, rows).mean for steps in zip(raw, best, strict=True)]
        return cls(
            measure=measure,
            depth=depth,
            retrieved=top,
            best=of_ideal("ideal ranking", lambda: ranking.within(depth)),
            means=np.array([*means, *shares]),
            needed=np.array(needed),
            horizontal_from=int(ranking.rank.max(initial=0)),
        )

    def serves(self, measure: Measure, depth: int) -> bool:
        """Return whether this measure's curve to this depth can be read from the set."""
        if measure.definition.name not in FAMILY or depth > self.depth:
            return False

        parameters = self.measure.parameters
        requested = {"ideal": "recall_base", **measure.parameters}
        return all(parameters[name] == value for name, value in requested.items() if name != "norm")

    def curve(self, measure: Measure, depth: int) -> Curve:
        """Return the same curve, bit by bit, as `metrics.engine.curve.curves.curve` of the run."""
        name, parameters = measure.definition.name, measure.parameters
        del parameters["judged_only"]
        curve = CURVES[name](self, depth, **parameters)
        if curve.pooled:
            return curve
        return replace(curve, averages=self.means[FAMILY.index(name), :depth])

    def readings(self, measure: Measure, depth: int) -> Readings:
        """Return the readings of the curve, as `metrics.engine.curve.readings.readings` does,
        except `reached`."""
        curve = self.curve(measure, depth)
        missed, percent = missed_of(curve.mean, curve.ideal_mean)
        if not curve.cumulates:
            return Readings(None, missed, percent, None)

        needed = self.needed[FAMILY.index(measure.definition.name), :depth]

        return Readings(needed, missed, percent, self.horizontal_from or None)

    def to_bytes(self) -> bytes:
        """Return everything except the means, in few bytes."""
        best = self.best
        starts = np.flatnonzero(
            (np.diff(best.topic, prepend=-1) != 0) | (np.diff(best.gain, prepend=-1.0) != 0)
        )
        numbers = {"topics": best.n_topics, "horizontal_from": self.horizontal_from}
        arrays = (
            ("count", np.bincount(self.retrieved.topic, minlength=best.n_topics)),
            ("rank", self.retrieved.rank),
            ("gain", _whole(self.retrieved.gain)),
            ("best_topic", best.topic[starts]),
            ("best_gain", _whole(best.gain[starts])),
            ("best_count", np.diff(starts, append=len(best.topic))),
            ("needed", self.needed.ravel()),
        )

        return pack(numbers, arrays)

    @classmethod
    def from_bytes(cls, stored: bytes, means: bytes, measure: Measure, depth: int) -> GainCurves:
        """Read what `to_bytes` wrote, with the means as float64."""
        header, arrays = unpack(stored, "stored curves")
        topics = header["topics"]
        topic = np.repeat(np.arange(topics), arrays["count"])
        best_topic = np.repeat(arrays["best_topic"], arrays["best_count"])
        first = np.searchsorted(best_topic, np.arange(topics))
        best_rank = np.arange(len(best_topic)) - first[best_topic] + 1
        best_gain = np.repeat(arrays["best_gain"].astype(np.float64), arrays["best_count"])

        return cls(
            measure=measure,
            depth=depth,
            retrieved=RankedGains(topic, arrays["rank"], arrays["gain"].astype(np.float64), topics),
            best=RankedGains(best_topic, best_rank, best_gain, topics),
            means=np.frombuffer(means, np.dtype("<f8")).reshape(len(FAMILY), depth),
            needed=arrays["needed"].reshape(-1, depth),
            horizontal_from=header["horizontal_from"],
        )

    # The functions of CURVES read these from a judged run.

    def gains(self, gains: GainMap) -> RankedGains:
        return self.retrieved

    def ideal_gains(self, gains: GainMap) -> RankedGains:
        return self.best

    retrieved_ideal_gains = ideal_gains

    @property
    def recall_base(self) -> GainCurves:
        return self

    @cached_property
    def _memo(self) -> dict[Hashable, Any]:
        return {}

    def once(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        if key not in self._memo:
            self._memo[key] = compute()
        return self._memo[key]


def curve_sets(measures: Iterable[Measure]) -> list[Measure]:
    """Return the sets of curves that these measures belong to, each as its nDCG; without any, the
    set of the default gains."""
    sets = [_set_of(measure) for measure in measures if measure.definition.name in FAMILY]
    return list(dict.fromkeys(sets)) or [parse_measure("nDCG")]


def _set_of(measure: Measure) -> Measure:
    parameters, definition = {**measure.parameters, "norm": "topic"}, MEASURES["nDCG"]
    values = (
        (parameter.name, parameters.get(parameter.name, parameter.default))
        for parameter in definition.parameters
    )

    return Measure(definition, None, tuple(values))


def _whole(gain: Floats) -> Floats | Ints:
    """Return gains as whole numbers where all are."""
    whole = gain.astype(np.int64)
    return whole if np.array_equal(whole, gain) else gain
