"""Two runs with replicates: a claim about the method has the error of replicates as well."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metrics.engine.significance.replicates import MethodTest, min_f
from metrics.services.comparisons.comparison import Compared
from metrics.services.comparisons.shown_pairs import topics_of
from metrics.services.comparisons.stored import Answer
from metrics.services.values.judged_views import matrix_of
from metrics.services.values.replicates import of_replicates
from runs.errors import NotFound


@dataclass(frozen=True)
class MethodComparison:
    """The number of replicates of two runs, and min F' of both.

    There is no test where one of them has fewer than two.
    """

    replicates: tuple[int, int]
    test: MethodTest | None

    @property
    def sentence(self) -> str:
        """Return what the tests of topics alone are about."""
        a, b = self.replicates
        if self.test is None:
            return (
                "One of the runs has fewer than two replicates: nothing here says how others, such "
                "as other seeds, would differ."
            )
        return (
            f"The other tests are of the means over these {a} and {b} replicates, for other topics. "
            "This one is of the methods, for other replicates as well."
        )


def compare_methods(answer: Answer, compared: Compared) -> MethodComparison | None:
    """Return the test of the methods of two runs, None where neither has replicates.

    It is None as well where the replicates are others by now than those that were compared.
    """
    if compared.pairs.number != 1 or answer.gone:
        return None

    sides = [int(side[0]) for side in compared.pairs.indices()]
    evaluations = [answer.entrants.evaluations[compared.order[side]] for side in sides]
    if not any(evaluation.run.has_replicates for evaluation in evaluations):
        return None

    keys = [evaluation.pk for evaluation in evaluations]
    try:
        replicates = of_replicates(keys)
    except NotFound:
        return None
    if not replicates:
        return None

    numbers = tuple(len(replicates.get(key, ())) for key in keys)
    if min(numbers) < 2:
        return MethodComparison((numbers[0], numbers[1]), None)

    used = set(topics_of(answer, compared))
    qrels = answer.entrants.qrels
    columns = np.array([topic in used for topic in qrels.topic_ids], np.bool_)
    first, second = (
        matrix_of(replicates[key], compared.measure, qrels)[0][:, columns] for key in keys
    )
    test = min_f(first, second, answer.query.options.confidence)
    return MethodComparison((numbers[0], numbers[1]), test)
