"""The parameters of what explains values, and of effectiveness against cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from metrics.questions.parameters import MAX_SEED, flag_in, measure_in
from metrics.questions.values import together_query
from metrics.services.boards.frontier import FrontierQuery
from metrics.services.boards.importance import ImportanceQuery
from metrics.services.values.selection import tested_measures
from runs.api.parameters import integer_in
from runs.models import Collection
from runs.services.parameters import COST


def importance_query(
    parameters: Mapping[str, str], collection: Collection, reader: Any
) -> ImportanceQuery:
    """Return the query of an importance: one measure, and the runs of `runs` or `filter`, by default all."""
    return ImportanceQuery(
        measure=measure_in(
            parameters, "measure", tested_measures(collection)[0], collection.documents
        ),
        chosen=together_query(parameters, collection, reader),
        seed=integer_in(parameters, "seed", 0, 0, MAX_SEED),
    )


def frontier_query(
    parameters: Mapping[str, str], collection: Collection, reader: Any
) -> FrontierQuery:
    """Return the query of a frontier: `y` is a measure, `x` a cost with or without the space cost:, by default the one
    that most runs have."""
    return FrontierQuery(
        measure=measure_in(parameters, "y", tested_measures(collection)[0], collection.documents),
        cost=parameters.get("x", "").strip().removeprefix(f"{COST}:").strip('"'),
        across=flag_in(parameters, "across"),
        chosen=together_query(parameters, collection, reader),
        reader=reader,
    )
