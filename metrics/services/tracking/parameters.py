"""Read parameters and costs of the runs that a reader sees, with facets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.db import connection
from django.db.models import Count, QuerySet

from metrics.services.boards.conditions import Board, visible_board, visible_keys
from metrics.services.boards.matching import matching_runs
from runs.models import Collection, Parameter, ParameterKey, ParameterSet, Run

# How many values of a key are listed, the most frequent ones.
LISTED = 20
MAX_LIMIT, DEFAULT_LIMIT = 100, 50
_TYPES = {"number": "number", "folded": "text", "boolean": "boolean"}
# Count the runs of every value; then select the most frequent values of each key, with the totals of
# the key.
_FREQUENT = """
WITH grouped (key_id, value, runs) AS ({grouped}),
     placed AS (
         SELECT key_id, value, runs,
                ROW_NUMBER() OVER (PARTITION BY key_id ORDER BY runs DESC, value) AS place,
                SUM(runs) OVER (PARTITION BY key_id) AS total,
                COUNT(*) OVER (PARTITION BY key_id) AS different,
                MIN(value) OVER (PARTITION BY key_id) AS low,
                MAX(value) OVER (PARTITION BY key_id) AS high
         FROM grouped)
SELECT key_id, value, runs, total, different, low, high FROM placed
WHERE place <= %s ORDER BY key_id, place
"""


@dataclass
class Facet:
    """A key with its values in some runs.

    `types` has the number of runs by type of the value; `low` and `high` are the lowest and the
    highest number, `distinct` is the number of different values, and `values` has the most
    frequent ones with their runs. Texts are without regard to case, and cut.
    """

    key: ParameterKey
    types: dict[str, int] = field(default_factory=dict)
    low: float | None = None
    high: float | None = None
    distinct: int = 0
    values: list[tuple[float | str | bool, int]] = field(default_factory=list)

    @property
    def runs(self) -> int:
        return sum(self.types.values())


@dataclass(frozen=True)
class Facets:
    """A page of keys: `count` is that of all pages, and `runs` that of the runs they are about."""

    count: int
    runs: int
    results: list[Facet]


def read_facets(
    *,
    collection: Collection,
    reader: Any,
    filter: str = "",
    name: str = "",
    offset: int = 0,
    limit: int = DEFAULT_LIMIT,
) -> Facets:
    """Return the keys that contain `name`, parameters before costs.

    They are those of the visible runs that a filter selects. Raise what `matching_runs` raises.
    """
    visible = visible_board(collection, reader).runs
    runs = matching_runs(collection, filter, reader, visible).order_by()
    keys = (
        visible_keys(Board(collection, runs))
        .filter(name__icontains=name)
        .order_by("-space", "name")
    )

    matching_keys = list(keys)
    page = matching_keys[offset : offset + limit]
    return Facets(len(matching_keys), runs.count(), _facets(collection, page, runs))


def _facets(collection: Collection, keys: list[ParameterKey], runs: QuerySet[Run]) -> list[Facet]:
    """Return the facets of keys of the collection in the given runs."""
    facets = {key.pk: Facet(key) for key in keys}
    rows = Parameter.objects.filter(key__in=list(facets)).order_by()
    # The condition on runs is slow, and not needed where they are all runs of the collection.
    sets = ParameterSet.objects.filter(run__collection=collection)
    if sets.exclude(run__in=runs).exists():
        rows = rows.filter(owner__in=sets.filter(run__in=runs).values("pk"))

    for kind in ("number", "folded") if facets else ():
        for key, value, count, total, different, low, high in _frequent(
            rows.filter(**{f"{kind}__isnull": False}), kind
        ):
            facet = facets[key]
            # The totals of the key are the same in all of its rows.
            if _TYPES[kind] not in facet.types:
                facet.types[_TYPES[kind]] = int(total)
                facet.distinct += different
                if kind == "number":
                    facet.low, facet.high = low, high

            facet.values.append((value, count))

    booleans = (
        rows.filter(boolean__isnull=False).values_list("key", "boolean").annotate(n=Count("pk"))
    )

    for key, value, count in booleans:
        facet = facets[key]
        facet.types["boolean"] = facet.types.get("boolean", 0) + count
        facet.distinct += 1
        facet.values.append((value, count))

    for facet in facets.values():
        facet.values = sorted(facet.values, key=lambda pair: -pair[1])[:LISTED]

    return list(facets.values())


def _frequent(rows: QuerySet[Parameter], kind: str) -> list[tuple[Any, ...]]:
    grouped, parameters = (
        rows.values_list("key", kind).annotate(n=Count("pk")).query.sql_with_params()
    )

    with connection.cursor() as cursor:
        cursor.execute(_FREQUENT.format(grouped=grouped), [*parameters, LISTED])
        result: list[tuple[Any, ...]] = cursor.fetchall()

    return result
